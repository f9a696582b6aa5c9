//! Calls that reach a host: what of them is asked about, and which bounds cover them.

use serde_json::json;

use super::{Row, acts_outside, beneath, exactly, written};
use crate::{AutoApprove, Bounds, Described, Evidence, Reach, Verdict, WrittenBounds};

fn fetch(listed: bool, sends: bool) -> Evidence {
    let reach = Some(Reach { host: "docs.example.org".into(), listed, sends });
    let preview = sends.then(|| "POST https://docs.example.org/".to_owned());
    Evidence::Plain(Described { reach, preview, ..Described::default() })
}

fn of_hosts(hosts: &[&str]) -> Bounds {
    let hosts = Some(hosts.iter().map(|host| (*host).to_owned()).collect());
    written(WrittenBounds { hosts, ..WrittenBounds::default() })
}

#[test]
fn a_host_that_is_not_listed_is_asked_about() {
    let read = |mode, listed| Row::new(mode, fetch(listed, false)).word();
    assert_eq!(read(AutoApprove::Reads, true), "auto");
    assert_eq!(read(AutoApprove::Reads, false), "ask");
    assert_eq!(read(AutoApprove::Everything, false), "config");
    assert_eq!(read(AutoApprove::Nothing, true), "ask");
    assert_eq!(
        Row::new(AutoApprove::Reads, fetch(true, true)).word(),
        "ask",
        "what sends something only looks by its list"
    );
}

#[test]
fn bounds_on_hosts_cover_what_is_read_from_them() {
    let safe = AutoApprove::Reads;
    let asked = || Row::new(safe, fetch(false, false));
    for (hosts, expected) in
        [(&["docs.example.org"][..], "config"), (&["a.org", "*.example.org"], "config"), (&["example.org"], "ask")]
    {
        assert_eq!(asked().grant(of_hosts(hosts)).word(), expected, "{hosts:?}");
        assert_eq!(asked().rule(Verdict::Allow, of_hosts(hosts)).word(), expected, "{hosts:?}");
    }
    assert_eq!(asked().grant(beneath("**")).word(), "ask", "bounds on paths say nothing of hosts");
    assert_eq!(asked().grant(exactly(json!({"path": "src/a"}))).word(), "config");
    let sends = || Row::new(safe, fetch(true, true));
    assert_eq!(sends().grant(of_hosts(&["*"])).word(), "ask", "to read is not to send");
    assert_eq!(sends().grant(exactly(json!({"path": "src/a"}))).word(), "config");
    let nearly = asked().grant(of_hosts(&["example.org"])).nearly().unwrap();
    assert!(nearly.contains("`docs.example.org` is not one of its hosts"), "{nearly}");
}

#[test]
fn rules_that_ask_or_deny_may_name_hosts() {
    let all = AutoApprove::Everything;
    for sends in [false, true] {
        let row = || Row::new(all, fetch(true, sends));
        assert_eq!(row().rule(Verdict::Deny, of_hosts(&["*.example.org"])).word(), "no");
        assert_eq!(row().rule(Verdict::Ask, of_hosts(&["docs.example.org"])).word(), "ask");
        assert_eq!(row().rule(Verdict::Deny, of_hosts(&["example.net"])).word(), "config");
        assert_eq!(row().tightened(Verdict::Deny, of_hosts(&["*"])).word(), "no");
    }
    let command = Row::new(all, acts_outside()).rule(Verdict::Deny, of_hosts(&["*"]));
    assert_eq!(command.word(), "config", "which hosts a command reaches, nobody can tell");
}
