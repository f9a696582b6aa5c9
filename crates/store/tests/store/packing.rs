//! Long envelopes are kept in fewer bytes, and nobody who reads them can tell.

use std::sync::Arc;

use haft_runtime::{CallState, End, Entry, Isolation, Journal, Outcome, ToolOutput};
use haft_store::CallFilter;
use rusqlite::Connection;
use serde_json::json;

use crate::samples::{here, new_store, opened, outcome, scope};

/// A call that gave back so many lines.
fn ended_with(lines: usize) -> Entry {
    let entry = opened(CallState::Ended);
    let said: Vec<String> = (0..lines).map(|line| format!("line {line} of \"many\" – é\n")).collect();
    let structured = json!({ "lines": said }).into();
    let result = ToolOutput { content: said.concat(), structured, ..ToolOutput::default() };
    let told = Outcome { isolation: Isolation::Limits, ..(*outcome(&entry.call, End::Success { result })).clone() };
    Entry { outcome: Some(Arc::new(told)), ..entry }
}

#[tokio::test]
async fn envelopes_of_any_length_come_back_as_they_were() {
    let (folder, store) = new_store().await;
    for lines in [0, 10, 400, 800, 5000] {
        let entry = ended_with(lines);
        let (call, told) = (entry.call.clone(), entry.outcome.clone().unwrap());
        store.record(&scope(), entry).await.unwrap();
        let found = Journal::find(&store, &scope(), &call).await.unwrap().unwrap();
        assert_eq!(found.outcome.as_ref(), Some(&*told), "{lines} lines");
        let End::Success { result } = &told.end else { panic!("{told:?}") };
        let output = store.output(&scope(), &call).await.unwrap();
        assert_eq!(output.as_ref(), Some(result), "{lines} lines");
        let listed = store.calls(&scope(), &here(), &CallFilter::default()).await.unwrap();
        assert_eq!((&listed[0].id, listed[0].isolation), (&call, Some(Isolation::Limits)), "{lines} lines");
        let conn = Connection::open(folder.path().join("data/haft.db")).unwrap();
        let bytes = "select length(outcome) from calls where id = ?";
        let kept: u32 = conn.query_row(bytes, [call.as_str()], |row| row.get(0)).unwrap();
        let whole = serde_json::to_string(&*told).unwrap().len();
        assert!(
            if whole > 32 << 10 { (kept as usize) * 2 < whole } else { kept as usize <= whole },
            "{kept} of {whole}"
        );
    }
}
