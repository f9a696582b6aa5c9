//! The door to staged changes, across processes that know only a call id.

use std::{fs, sync::Arc};

use haft_runtime::{CallId, ChangeState, Direction, ErrorCode, Turn, Workbench};
use haft_tools::{OpenWorkspaces, SandboxWorkbench};
use serde_json::json;

use crate::place::{Place, scope};

fn staged(place: &Place) -> Turn {
    place.put("a", "old\n");
    let edits = json!({ "path": "a", "old": "old", "new": "new" });
    place.stage("edit_file", edits).unwrap().turn
}

#[test]
fn another_workbench_shows_takes_and_takes_back() {
    let place = Place::new();
    let turn = staged(&place);
    let other = SandboxWorkbench::new(Arc::new(OpenWorkspaces::new(&place.data())));
    let shown = place.wait(other.show(&scope(), &turn.of)).unwrap();
    assert_eq!((shown.0[0].path.as_str(), shown.0[0].state), ("a", ChangeState::Staged));
    assert!(shown.0[0].diff.as_deref().unwrap().contains("+new"));
    assert_eq!(place.wait(other.preview(&scope(), &turn)).unwrap().paths(), ["a"]);
    assert_eq!(place.text("a"), "old\n");
    let done = place.wait(other.take(&scope(), &turn)).unwrap();
    assert_eq!((done.0[0].state, place.text("a").as_str()), (ChangeState::Committed, "new\n"));
    let back = Turn { direction: Direction::Undo, paths: Some(vec!["a".to_owned()]), ..turn.clone() };
    assert!(place.wait(other.preview(&scope(), &back)).unwrap().0[0].diff.as_deref().unwrap().contains("+old"));
    assert_eq!(place.wait(other.take(&scope(), &back)).unwrap().0[0].state, ChangeState::Undone);
    assert_eq!(place.text("a"), "old\n");
    place.wait(other.take(&scope(), &turn)).unwrap();
    assert_eq!(place.text("a"), "new\n");
}

#[test]
fn what_is_discarded_cannot_be_taken() {
    let place = Place::new();
    let turn = staged(&place);
    place.wait(place.workbench.discard(&scope(), &turn.of)).unwrap();
    let refused = place.wait(place.workbench.take(&scope(), &turn)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidArgs, "{refused}");
    assert_eq!(place.wait(place.workbench.show(&scope(), &turn.of)).unwrap().0[0].state, ChangeState::Discarded);
    assert_eq!(place.text("a"), "old\n");
}

#[test]
fn a_wrong_choice_is_told() {
    let place = Place::new();
    let turn = staged(&place);
    let choice = Turn { paths: Some(vec!["b".to_owned()]), ..turn.clone() };
    let refused = place.wait(place.workbench.take(&scope(), &choice)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidArgs);
    let back = Turn { direction: Direction::Undo, ..turn };
    let refused = place.wait(place.workbench.take(&scope(), &back)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidArgs, "{refused}");
    let refused = place.wait(place.workbench.show(&scope(), &CallId::new())).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Unavailable);
    assert!(!refused.message.contains(place.data().to_str().unwrap()));
}

#[test]
fn recovery_says_where_a_turn_stands() {
    let place = Place::new();
    let turn = staged(&place);
    let found = place.wait(place.workbench.recover(&scope(), &turn)).unwrap();
    assert_eq!((found.done.0.len(), found.sentence.contains("not begun")), (0, true), "{}", found.sentence);
    place.wait(place.workbench.take(&scope(), &turn)).unwrap();
    let found = place.wait(place.workbench.recover(&scope(), &turn)).unwrap();
    assert_eq!((found.done.paths(), found.sentence.contains("complete")), (vec!["a".to_owned()], true));
}

#[test]
fn a_missing_workspace_is_told() {
    let place = Place::new();
    let turn = staged(&place);
    fs::rename(place.path(""), place.outside("moved")).unwrap();
    let refused = place.wait(place.workbench.take(&scope(), &turn)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Unavailable, "{refused}");
}

#[test]
fn a_stopped_call_leaves_nothing_aside() {
    let place = Place::new();
    for number in 0..200 {
        place.put(&format!("d/{number}"), "");
    }
    let ctx = crate::place::ctx();
    ctx.cancel.cancel();
    let input = json!({ "path": "d", "recursive": true });
    let refused = place.wait(place.tool("delete_file").prepare(&ctx, &input));
    assert_eq!(refused.map(|_| ()).unwrap_err().code, ErrorCode::Cancelled);
    assert!(place.holds_nothing_aside());
}

#[test]
fn half_a_plan_of_a_dead_process_is_swept_away() {
    let place = Place::new();
    let call = CallId::new();
    let dir = place.data().join("changes").join(call.as_str());
    fs::create_dir_all(dir.join("slot-1/deep")).unwrap();
    fs::write(dir.join("slot-1/deep/half"), "half").unwrap();
    place.wait(place.workbench.discard(&scope(), &call)).unwrap();
    assert!(place.holds_nothing_aside());
    place.wait(place.workbench.discard(&scope(), &call)).unwrap();
}

#[test]
fn a_series_of_edits_is_undone_step_by_step_and_leaves_nothing_else() {
    let place = Place::living();
    place.put("a", "0\n");
    let other = SandboxWorkbench::new(Arc::new(OpenWorkspaces::new(&place.data())));
    let mut turns = Vec::new();
    for number in 0..20 {
        let edit = json!({ "path": "a", "old": number.to_string(), "new": (number + 1).to_string() });
        let turn = place.stage("edit_file", edit).unwrap().turn;
        place.wait(place.workbench.take(&scope(), &turn)).unwrap();
        assert_eq!(place.text("a"), format!("{}\n", number + 1));
        turns.push(turn);
    }
    // What changes nothing, fails or makes something else than a file is no different.
    place.change("write_file", json!({ "path": "a", "content": "20\n" })).unwrap();
    place.stage("edit_file", json!({ "path": "a", "old": "absent", "new": "b" })).unwrap_err();
    place.change("create_directory", json!({ "path": "new/folder" })).unwrap();
    assert!(place.path("new/folder").is_dir());
    for turn in turns.iter().rev() {
        place.wait(other.take(&scope(), &Turn { direction: Direction::Undo, ..turn.clone() })).unwrap();
    }
    assert_eq!(place.text("a"), "0\n");
    let kept = haft_tools::KeptChanges::new(place.data());
    assert_eq!(kept.calls().len(), turns.len() + 1);
    place.wait(kept.clear_leftovers()).unwrap();
    place.wait(place.workspace.end_background());
    assert_eq!(place.held_aside().len(), turns.len() + 1, "{:?}", place.held_aside());
}
