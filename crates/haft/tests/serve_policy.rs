//! The rules of a tenant and remembered answers over REST, and a person's own form.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::needless_pass_by_value, reason = "values are written where they are passed")]

mod http_client;

use http_client::{Answer, Gateway};
use serde_json::{Value, json};

/// Two tenants with a workspace each, and keys that may ask and answer there.
struct Tenants {
    served: Gateway,
    key: String,
    other: String,
}

/// The headers of somebody at a page.
type Person = Vec<(String, String)>;

impl Tenants {
    fn new() -> Self {
        let served = Gateway::start();
        let folder = served.workspace();
        std::fs::write(folder.join("a.txt"), "alpha\n").unwrap();
        for tenant in ["acme", "bolt"] {
            served.admin(&["tenant", "add", tenant]);
            served.admin(&["workspace", "add", "shop", "--tenant", tenant, "--map", folder.to_str().unwrap()]);
        }
        let key = served.key_in("agent", "acme", "tools:execute", "shop");
        let other = served.key_in("agent", "bolt", "tools:execute", "shop");
        Self { served, key, other }
    }

    fn person(&self, role: &str, tenant: &str) -> Person {
        let email = format!("{role}@{tenant}.example");
        let added = self.served.admin(&["person", "add", &email, "--tenant", tenant, "--role", role]);
        let signed_in = self.served.post("/api/sign-in", &json!({"link": added["signIn"]}), None);
        let cookie = signed_in.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let csrf = signed_in.body["csrf"].as_str().unwrap().to_owned();
        vec![("Cookie".to_owned(), cookie), ("X-CSRF-Token".to_owned(), csrf)]
    }

    fn by(&self, person: &Person, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let headers: Vec<(&str, &str)> = person.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.served.request(method, path, body, &headers)
    }

    fn policy(&self, person: &Person, body: &Value) -> Answer {
        self.by(person, "PUT", "/api/policy", Some(body))
    }

    fn form(&self, person: &Person, tool: &str, input: Value) -> Answer {
        let body = json!({"input": input, "workspace": "shop", "wait": 0});
        self.by(person, "POST", &format!("/api/tools/{tool}/calls"), Some(&body))
    }

    fn call(&self, tool: &str, input: Value, key: &str) -> Answer {
        self.served.post(&format!("/api/tools/{tool}/calls"), &json!({"input": input, "wait": 0}), Some(key))
    }

    fn write(&self, path: &str, key: &str) -> Answer {
        self.call("write_file", json!({"path": path, "content": "x"}), key)
    }
}

fn code(answer: &Answer) -> (u16, &str) {
    (answer.status, answer.body["error"]["code"].as_str().unwrap_or_default())
}

fn status(answer: &Answer) -> &str {
    answer.body["status"].as_str().unwrap_or_default()
}

#[test]
fn a_tenant_s_rules_are_in_force_at_once_and_for_it_alone() {
    let tenants = Tenants::new();
    let (admin, member) = (tenants.person("admin", "acme"), tenants.person("member", "acme"));
    let empty = tenants.by(&member, "GET", "/api/policy", None);
    assert_eq!((empty.status, &empty.body["version"], &empty.body["rules"]), (200, &json!(0), &json!([])), "{empty:?}");
    assert_eq!(empty.body["autoApprove"], "safe");
    assert!(empty.body["defaults"][0]["name"].as_str().unwrap().contains("derived"));
    let allow = json!({"tool": "write_file", "decision": "allow", "bounds": {"paths": ["out/**"]}, "reason": "ours"});
    let deny = json!({"decision": "deny", "bounds": {"paths": ["secret/**"]}});
    let rules = json!({"rules": [allow, deny], "version": 0});
    assert_eq!(code(&tenants.policy(&member, &rules)), (403, "FORBIDDEN"));
    let set = tenants.policy(&admin, &rules);
    assert_eq!((set.status, &set.body["version"]), (200, &json!(1)), "{set:?}");
    assert_eq!(set.body["rules"], json!([allow, deny]), "as they were written");
    assert!(set.body["savedBy"].as_str().unwrap().starts_with("person:"));
    let inside = tenants.write("out/w.txt", &tenants.key);
    assert_eq!((status(&inside), &inside.body["approved_by"]), ("success", &json!("config")), "{inside:?}");
    assert_eq!(status(&tenants.write("elsewhere.txt", &tenants.key)), "pending");
    assert_eq!(tenants.write("secret/w.txt", &tenants.key).body["error"]["code"], "FORBIDDEN");
    assert_eq!(status(&tenants.write("out/w2.txt", &tenants.other)), "pending", "nobody else's rules");
    let theirs = tenants.by(&tenants.person("admin", "bolt"), "GET", "/api/policy", None);
    assert_eq!((&theirs.body["version"], &theirs.body["rules"]), (&json!(0), &json!([])));

    let late = tenants.policy(&admin, &rules);
    assert_eq!((code(&late), &late.body["error"]["details"]["version"]), ((409, "CONFLICT"), &json!(1)), "{late:?}");
    for (wrong, reason) in [
        (json!({"rules": [{"decision": "maybe"}], "version": 1}), "allow, ask or deny"),
        (json!({"rules": [{"decision": "ask", "tol": "x"}], "version": 1}), "did you mean `tool`"),
        (json!({"rules": [{"decision": "deny", "bounds": {"max_files": 3}}], "version": 1}), "single changes"),
        (json!({"rules": [{"decision": "allow", "bounds": {"paths": []}}], "version": 1}), "empty"),
        (json!({"rules": []}), "version"),
        (json!({"rules": [], "version": 1, "autoApprove": "yolo"}), "yolo"),
    ] {
        let refused = tenants.policy(&admin, &wrong);
        assert_eq!(code(&refused), (400, "INVALID_ARGS"), "{wrong}");
        assert!(refused.body["error"]["message"].as_str().unwrap().contains(reason), "{refused:?}");
    }
    assert_eq!(tenants.by(&admin, "GET", "/api/policy", None).body["version"], 1, "what is wrong changes nothing");
}

#[test]
fn the_mode_of_a_tenant_holds_for_its_calls() {
    let tenants = Tenants::new();
    let admin = tenants.person("admin", "acme");
    let read = || tenants.call("read_file", json!({"path": "a.txt"}), &tenants.key);
    assert_eq!(status(&read()), "success");
    assert_eq!(tenants.policy(&admin, &json!({"rules": [], "autoApprove": "none", "version": 0})).status, 200);
    assert_eq!(status(&read()), "pending", "not even a read");
    assert_eq!(status(&tenants.form(&admin, "read_file", json!({"path": "a.txt"}))), "success", "but one's own form");
    assert_eq!(tenants.policy(&admin, &json!({"rules": [], "autoApprove": "all", "version": 1})).status, 200);
    let written = tenants.write("all.txt", &tenants.key);
    assert_eq!((status(&written), &written.body["approved_by"]), ("success", &json!("config")), "{written:?}");
    assert_eq!(status(&tenants.write("other.txt", &tenants.other)), "pending");
}

#[test]
fn a_person_s_own_form_is_the_yes_but_not_to_what_destroys() {
    let tenants = Tenants::new();
    let (admin, member) = (tenants.person("admin", "acme"), tenants.person("member", "acme"));
    let written = tenants.form(&member, "write_file", json!({"path": "form.txt", "content": "by hand"}));
    assert_eq!((status(&written), &written.body["approved_by"]), ("success", &json!("user")), "{written:?}");
    assert!(tenants.served.workspace().join("form.txt").exists());
    assert_eq!(status(&tenants.form(&member, "delete_file", json!({"path": "form.txt"}))), "pending");
    let flagged = json!({"path": ".vscode/settings.json", "content": "{}"});
    assert_eq!(status(&tenants.form(&member, "write_file", flagged)), "pending");
    assert_eq!(status(&tenants.write("key.txt", &tenants.key)), "pending", "a key is nobody's form");

    let strict = json!({"permissionPolicy": "always_ask"});
    assert_eq!(tenants.by(&admin, "PATCH", "/api/tools/write_file", Some(&strict)).status, 200);
    let over = json!({"path": "form.txt", "content": "again"});
    assert_eq!(status(&tenants.form(&member, "write_file", over.clone())), "success", "always_ask is for others");
    let rule = json!({"rules": [{"tool": "write_file", "decision": "ask", "reason": "look first"}], "version": 0});
    assert_eq!(tenants.policy(&admin, &rule).status, 200);
    assert_eq!(status(&tenants.form(&member, "write_file", over)), "pending", "a rule that asks counts");
}

#[test]
fn rules_are_tried_on_recorded_calls_before_they_are_kept() {
    let tenants = Tenants::new();
    let (admin, member) = (tenants.person("admin", "acme"), tenants.person("member", "acme"));
    tenants.call("read_file", json!({"path": "a.txt"}), &tenants.key);
    let asked = tenants.write("out/w.txt", &tenants.key);
    tenants.write("out/theirs.txt", &tenants.other);
    let allow = json!({"rules": [{"tool": "write_file", "decision": "allow", "bounds": {"paths": ["out/**"]}}]});
    let replay = |body: &Value| tenants.by(&admin, "POST", "/api/policy/replay", Some(body));
    let tried = replay(&allow);
    assert_eq!((tried.status, &tried.body["same"]), (200, &json!(1)), "{tried:?}");
    let differing = tried.body["differing"].as_array().unwrap();
    assert_eq!(differing.len(), 1, "of one's own tenant only: {tried:?}");
    assert_eq!(differing[0]["callId"], asked.body["tool_call_id"]);
    assert_eq!((&differing[0]["was"], &differing[0]["now"]), (&json!("ask"), &json!("yes")));
    assert!(differing[0]["because"].as_str().unwrap().contains("rule 1 of the tenant"));
    let deny = json!({"rules": [{"decision": "deny"}], "last": 1});
    assert_eq!(replay(&deny).body["differing"][0]["now"], "no");
    assert_eq!(replay(&deny).body["differing"].as_array().unwrap().len(), 1, "only the last one");
    let strict = replay(&json!({"rules": [], "autoApprove": "none"}));
    assert_eq!(strict.body["differing"][0]["tool"], "read_file", "a mode is tried, too: {strict:?}");
    assert_eq!(code(&replay(&json!({"rules": [], "last": 0}))), (400, "INVALID_ARGS"));
    assert_eq!(code(&tenants.by(&member, "POST", "/api/policy/replay", Some(&allow))), (403, "FORBIDDEN"));
    assert_eq!(tenants.by(&admin, "GET", "/api/policy", None).body["version"], 0, "nothing is kept");
    assert_eq!(status(&tenants.write("out/w2.txt", &tenants.key)), "pending");
}

#[test]
fn grants_are_given_listed_used_and_revoked() {
    let tenants = Tenants::new();
    let (admin, member) = (tenants.person("admin", "acme"), tenants.person("member", "acme"));
    let id = tenants.key.split('_').nth(1).unwrap();
    let whom = json!({"kind": "key", "id": id});
    let grant = json!({"tool": "write_file", "bounds": {"paths": ["out/**"]}, "caller": whom, "for": "8h", "uses": 2,
        "workspace": "shop"});
    let give = |person: &Person, body: &Value| tenants.by(person, "POST", "/api/grants", Some(body));
    assert_eq!(code(&give(&member, &grant)), (403, "FORBIDDEN"), "for others only by those who manage everybody's");
    let given = give(&admin, &grant);
    assert_eq!((given.status, &given.body["usesLeft"], &given.body["standing"]), (201, &json!(2), &json!("usable")));
    assert_eq!((&given.body["caller"], &given.body["tool"]), (&whom, &json!("write_file")));
    assert!(given.body["until"].is_string() && given.body["givenBy"]["kind"] == "person", "{given:?}");
    let own = give(&member, &json!({"tool": "delete_file", "bounds": {"paths": ["tmp/*"]}, "workspace": "shop"}));
    assert_eq!((own.status, &own.body["caller"]["kind"]), (201, &json!("person")), "{own:?}");
    for wrong in [
        json!({"tool": "write_file", "bounds": {"paths": []}, "workspace": "shop"}),
        json!({"tool": "write_file", "uses": 0, "workspace": "shop"}),
        json!({"tool": "write_file", "for": "soon", "workspace": "shop"}),
        json!({"tool": "write_file", "colour": "red", "workspace": "shop"}),
    ] {
        assert_eq!(code(&give(&admin, &wrong)), (400, "INVALID_ARGS"), "{wrong}");
    }
    assert_eq!(code(&give(&admin, &json!({"tool": "nothing"}))), (404, "TOOL_NOT_FOUND"));

    let used = tenants.write("out/w.txt", &tenants.key);
    assert_eq!((status(&used), &used.body["grant"]), ("success", &given.body["id"]), "{used:?}");
    let list = |person: &Person, query: &str| tenants.by(person, "GET", &format!("/api/grants?{query}"), None).body;
    let ids = |listed: &Value| -> Vec<Value> {
        listed["items"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect()
    };
    let all = list(&admin, "");
    assert_eq!(ids(&all), [own.body["id"].clone(), given.body["id"].clone()]);
    let spent = &all["items"][1];
    assert_eq!((&spent["usesLeft"], &spent["used"]), (&json!(1), &json!(1)));
    assert!(spent["lastUsed"].is_string(), "{spent}");
    assert_eq!(ids(&list(&member, "")), [own.body["id"].clone()], "one's own");
    assert_eq!(ids(&list(&admin, "tool=write_file")), [given.body["id"].clone()]);
    let first = list(&admin, "limit=1");
    let next = first["next"].as_str().unwrap();
    assert_eq!(ids(&list(&admin, &format!("limit=1&after={next}"))), [given.body["id"].clone()]);

    let path = format!("/api/grants/{}", given.body["id"].as_str().unwrap());
    let shown = tenants.by(&admin, "GET", &path, None);
    assert_eq!((shown.status, &shown.body["coverage"]), (200, &json!({"covered": 1, "of": 1})), "{shown:?}");
    assert_eq!(code(&tenants.by(&member, "GET", &path, None)), (404, "NOT_FOUND"));
    assert_eq!(code(&tenants.by(&member, "DELETE", &path, None)), (404, "NOT_FOUND"));
    let bolt = tenants.person("admin", "bolt");
    assert_eq!(code(&tenants.by(&bolt, "DELETE", &path, None)), (404, "NOT_FOUND"));
    assert!(ids(&list(&bolt, "all=true")).is_empty());
    let revoked = tenants.by(&admin, "DELETE", &path, None);
    assert_eq!((revoked.status, &revoked.body["standing"]), (200, &json!("revoked")), "{revoked:?}");
    assert_eq!(status(&tenants.write("out/w2.txt", &tenants.key)), "pending", "at once");
    assert_eq!(ids(&list(&admin, "")), [own.body["id"].clone()]);
    assert_eq!(ids(&list(&admin, "all=true")).len(), 2);
}
