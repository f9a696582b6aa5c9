//! Streams that are read on any node while several write: nothing is missed, nothing comes twice, wherever a reader begins.

use std::{thread, time::Duration};

use serde_json::{Value, json};

use crate::{
    http_client::{event_stream::StreamFrame, until},
    proxy::{Proxy, ProxyMode},
    site::{Dice, Site, for_each, id, new_database, text},
};

/// How many calls are written while somebody reads.
const CALLS: usize = 240;
/// The run of the last call.
const LAST: &str = "the-last";

/// An event: its number, its name and what it says.
type Told = (i64, String, Value);
/// Whether a filter lets an event through.
type IsWanted<'a> = &'a dyn Fn(&Told) -> bool;

fn told(frame: StreamFrame) -> Told {
    let StreamFrame { id, event, data, .. } = frame;
    (id.unwrap().parse().unwrap(), event.unwrap(), data)
}

/// Reads from the beginning until the last call has ended, and begins anew after a random number of events, on a random node.
fn heard(site: &Site, query: &str, seed: u64) -> Vec<Told> {
    let (mut dice, mut heard, mut after) = (Dice::new(seed * 7919), Vec::new(), 0);
    loop {
        let mut stream = site.events(dice.below(site.nodes.len()), &format!("/api/events{query}"), Some(after));
        for _ in 0..=dice.below(40) {
            let (number, name, data) = told(stream.next().unwrap());
            assert!(number > after, "{number} came after {after}");
            after = number;
            let is_last = data["runId"] == LAST && name == "tool.completed";
            heard.push((number, name, data));
            if is_last {
                return heard;
            }
        }
    }
}

/// Calls are written on all nodes while readers come and go; afterwards everybody has heard the same.
fn read_while_others_write(site: &Site, beside: impl FnOnce() + Send) {
    let session = text(&site.post(0, "/api/sessions", &json!({"title": "one"})).body["id"]);
    let (readers, last) = thread::scope(|scope| {
        let readers: Vec<_> = (1..4).map(|seed| scope.spawn(move || heard(site, "", seed))).collect();
        let beside = scope.spawn(beside);
        for_each(CALLS, 8, |n| {
            let more = if n % 3 == 0 { json!({"session": session}) } else { json!({}) };
            assert_eq!(site.call(n, "echo", n, more).status, 200);
        });
        beside.join().unwrap();
        let last = id(&site.call(0, "echo", 0, json!({"session": session, "run": LAST})));
        (readers.into_iter().map(|reader| reader.join().unwrap()).collect::<Vec<_>>(), last)
    });
    let all = heard(site, "", 99);
    assert!(all.len() >= CALLS * 3, "{}", all.len());
    let numbers = |heard: &[Told]| heard.iter().map(|(number, ..)| *number).collect::<Vec<_>>();
    for reader in &readers {
        assert_eq!(numbers(reader), numbers(&all));
    }
    let some = text(&all[all.len() / 2].2["toolCallId"]);
    let of_session = |told: &Told| told.2["sessionId"] == *session;
    let of_calls = |told: &Told| told.2["toolCallId"] == *some || told.2["toolCallId"] == *last;
    let filters: [(String, IsWanted<'_>); 3] = [
        ("?types=tool.completed".to_owned(), &|told| told.1 == "tool.completed"),
        (format!("?sessions={session}"), &of_session),
        (format!("?calls={some},{last}"), &of_calls),
    ];
    for (query, is_wanted) in filters {
        let expected: Vec<Told> = all.iter().filter(|told| is_wanted(told)).cloned().collect();
        assert_eq!(numbers(&heard(site, &query, 5)), numbers(&expected), "{query}");
    }
}

#[test]
fn a_reader_that_comes_and_goes_misses_nothing_while_two_nodes_write() {
    let Some((_folder, url)) = new_database() else { return };
    // The commits of one node take their time.
    let slow = Proxy::before(&url);
    let site = Site::on(&[&slow.url(), &url]);
    slow.set(ProxyMode::Late(Duration::from_millis(3)));
    read_while_others_write(&site, || {});
}

#[test]
fn on_sqlite_too_while_another_process_writes() {
    let site = Site::on_a_file();
    let lines: String =
        (0..40).map(|n| format!("{}\n", json!({"tool": "glob", "input": {"pattern": format!("{n}")}}))).collect();
    let file = site.node(0).workspace().join("calls.jsonl");
    std::fs::write(&file, lines).unwrap();
    read_while_others_write(&site, || {
        let done = site.node(0).haft(&["batch", file.to_str().unwrap()]).current_dir(file.parent().unwrap()).output();
        assert!(done.unwrap().status.success());
    });
}

#[test]
fn a_reader_may_begin_at_the_beginning_inside_an_entry_or_too_far_on() {
    let Some(site) = Site::of_two_nodes() else { return };
    for n in 0..5 {
        site.call(n, "echo", n, json!({}));
    }
    let all = site.history(0);
    for after in 0..10 {
        let mut stream = site.events(1, "/api/events", Some(after));
        let first = told(stream.next().unwrap());
        assert_eq!(first.0, all.iter().map(|(number, ..)| *number).find(|number| *number > after).unwrap());
    }
    // What another node told a moment ago is not too far on, also where nobody has looked since.
    let mut waiting = site.events(1, "/api/events", None);
    let mut on_first = site.events(0, "/api/events?types=tool.completed", None);
    let call = id(&site.call(0, "echo", 7, json!({})));
    let (newest, _, data) = told(on_first.next().unwrap());
    assert_eq!(data["toolCallId"], *call);
    let mut resumed = site.events(1, "/api/events", Some(newest));
    let next = id(&site.call(0, "echo", 8, json!({})));
    assert_eq!(told(resumed.next().unwrap()).2["toolCallId"], *next);
    assert_eq!(told(waiting.next().unwrap()).2["toolCallId"], *call);
    // A number that nobody was ever told is of another database: look again at everything, and go on from here.
    let mut lost = site.events(1, "/api/events", Some(i64::MAX));
    let (number, name, data) = told(lost.next().unwrap());
    assert_eq!((name.as_str(), &data["after"]), ("resync", &json!(number)));
    let after = id(&site.call(0, "echo", 9, json!({})));
    let (following, _, data) = told(lost.next().unwrap());
    assert_eq!((following > number, &data["toolCallId"]), (true, &json!(after)));
}

#[test]
fn a_reader_behind_what_is_kept_is_told_so() {
    let site = Site::on_a_file();
    let first = id(&site.call(0, "echo", 1, json!({})));
    let begun = std::time::Instant::now();
    until(|| (begun.elapsed() > Duration::from_millis(1100)).then_some(()));
    let forgotten = site.node(0).haft(&["gc"]).env("HAFT_RETENTION_JOURNAL", "1s").output().unwrap();
    assert!(forgotten.status.success(), "{forgotten:?}");
    assert_eq!(site.get(0, &format!("/api/calls/{first}")).status, 404);
    let next = id(&site.call(0, "echo", 2, json!({})));
    let mut behind = site.events(0, "/api/events", Some(1));
    let (number, name, _) = told(behind.next().unwrap());
    assert_eq!(name, "resync");
    let (following, _, data) = told(behind.next().unwrap());
    assert!(following > number && data["toolCallId"] == *next);
    let mut from_zero = site.events(0, "/api/events", Some(0));
    assert_eq!(told(from_zero.next().unwrap()).2["toolCallId"], *next, "zero means everything that is kept");
}

/// A database that takes longer for an answer than a stream has between two looks at its listener.
#[test]
fn a_stream_goes_on_while_the_database_is_slow() {
    let Some((_folder, url)) = new_database() else { return };
    let slow = Proxy::before(&url);
    let site = Site::on(&[&url, &slow.url()]);
    let call = id(&site.call(0, "echo", 1, json!({})));
    slow.set(ProxyMode::Late(Duration::from_millis(600)));
    let mut stream = site.events(1, &format!("/api/events?calls={call}"), Some(0));
    assert_eq!(told(stream.next().unwrap()).2["toolCallId"], *call);
}
