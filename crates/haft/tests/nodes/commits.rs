//! A commit whose answer is lost, and which the server carries out only afterwards: nothing is written twice.

use std::time::Duration;

use serde_json::json;

use crate::{
    proxy::{Proxy, ProxyMode},
    site::{Site, id, is_end, new_database},
};

#[test]
fn a_commit_that_comes_through_late_is_carried_out_once() {
    let Some((_folder, url)) = new_database() else { return };
    let proxy = Proxy::before(&url);
    let site = Site::on(&[&proxy.url(), &url]);
    site.tool("write", "internal", json!({"effect": "write"}));
    for late in [0, 50, 200, 400] {
        proxy.set(ProxyMode::CutCommit(Duration::from_millis(late)));
        let answer = site.call(0, "write", 1, json!({}));
        assert_eq!((answer.status, &answer.body["status"]), (200, &json!("success")), "{answer:?}");
        let call = id(&answer);
        let history = site.history(1);
        let names: Vec<&str> = history
            .iter()
            .filter(|(_, _, data)| data["toolCallId"] == *call)
            .map(|(_, name, _)| name.as_str())
            .collect();
        let ends = history.iter().filter(|(_, name, data)| data["toolCallId"] == *call && is_end(name, data)).count();
        assert_eq!(ends, 1, "{names:?}");
        let mut once = names.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), names.len(), "a commit that came {late} ms later wrote {names:?}");
    }
}
