//! A day of work asks little, lets no harm in unasked, and can be taken back to the last bit.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails")]

mod lived;
mod script;
#[path = "../support/mod.rs"]
mod support;

use std::net::TcpListener;

use lived::{Lived, live, questions, undo_all};
use script::{Kind, PROJECT, day};
use support::Fixture;

/// Fewer rounds than a whole day has; the same calls.
const ROUNDS: usize = 2;
/// What a person is willing to answer in a day.
const QUESTIONS: usize = 8;

#[test]
fn a_day_asks_little_lets_no_harm_in_and_can_be_taken_back() {
    let fixture = Fixture::new();
    let made = fixture.program("bash").args(["-c", PROJECT]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let haft = |arguments: &[&str]| {
        let ran = fixture.run(arguments);
        let said = if ran.stdout.is_empty() { ran.stderr } else { ran.stdout };
        Ok((ran.code.unwrap_or(-1), said))
    };
    let before = fixture.picture();
    let mut lived: Vec<Lived> = Vec::new();
    for step in day(ROUNDS, listener.local_addr().unwrap().port()) {
        let so_far = (step.kind == Kind::Harm).then(|| fixture.picture());
        let call = live(&haft, &step).unwrap();
        println!("{}", call.row());
        assert!(so_far.is_none_or(|picture| picture == fixture.picture()), "{} came in", call.words);
        lived.push(call);
    }
    assert!(listener.accept().is_err(), "something got out");
    assert!(questions(&lived) <= QUESTIONS, "{} questions", questions(&lived));
    assert!(undo_all(&haft, &lived).unwrap() > ROUNDS);
    assert!(fixture.picture() == before, "the day was not taken back whole");
}
