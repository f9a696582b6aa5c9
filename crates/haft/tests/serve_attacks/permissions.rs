//! Every role and every scope of a key against every route: the table of permissions holds.

use std::collections::BTreeSet;

use haft_platform::{KeyScope, Permission, Role};
use serde_json::Value;

use crate::{
    http_client::{Gateway, person::Person},
    talk::Talk,
};

/// A route and what it needs.
struct Guarded {
    method: String,
    path: String,
    needs: Permission,
}

fn guarded(document: &Value) -> Vec<Guarded> {
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let Some(needs) = operation["x-permission"].as_str() else { continue };
            let needs = Permission::parse(needs).unwrap_or_else(|| panic!("{needs} is no permission"));
            let path = path.replace(['{', '}'], "").replace("/n/", "/1/");
            all.push(Guarded { method: method.to_uppercase(), path, needs });
        }
    }
    all
}

fn try_every_route(routes: &[Guarded], who: &str, talk: &mut Talk, may: &BTreeSet<Permission>) {
    for Guarded { method, path, needs } in routes {
        let body: Option<&[u8]> = (method != "GET").then_some(b"{}");
        let reply = talk.ask(method, path, body);
        let told = format!("{who}: {method} {path} needs {}: {reply:?}", needs.word());
        if may.contains(needs) {
            assert!(reply.status != 401 && !reply.text.contains("may not do this"), "{told}");
        } else {
            assert_eq!((reply.status, reply.code().as_str()), (403, "FORBIDDEN"), "{told}");
            assert!(reply.text.contains(needs.word()), "{told}");
        }
    }
}

#[test]
fn each_role_and_each_scope_may_what_the_table_says_and_nothing_else() {
    let served = Gateway::start();
    served.admin(&["tenant", "add", "acme"]);
    let routes = guarded(&served.get("/openapi.json", None).body);
    assert!(routes.len() > 40, "{}", routes.len());
    for role in [Role::Owner, Role::Admin, Role::Member, Role::Viewer] {
        let person = Person::added(&served, &format!("{}@acme.example", role.word()), "acme", role.word());
        let mut talk = Talk::with(&served, &[("Cookie", &person.cookie), ("X-CSRF-Token", &person.csrf)]);
        try_every_route(&routes, role.word(), &mut talk, &role.permissions());
    }
    for scope in KeyScope::ALL {
        let key = served.key(scope.word(), "acme", scope.word());
        let may = scope.permissions().into_iter().collect();
        try_every_route(&routes, scope.word(), &mut Talk::by_key(&served, &key), &may);
    }
}

#[test]
fn a_key_never_may_more_than_whoever_made_it_may_now() {
    let served = Gateway::start();
    served.admin(&["tenant", "add", "acme"]);
    let owner = Person::added(&served, "owner@acme.example", "acme", "owner");
    let maker = Person::added(&served, "maker@acme.example", "acme", "member");
    let wanted = serde_json::json!({"name": "all", "scopes": ["tools:execute", "tools:write", "mcp:manage"]});
    let made = maker.post("/api/keys", wanted);
    assert_eq!(made.status, 201, "{made:?}");
    let mut talk = Talk::by_key(&served, made.body["key"].as_str().unwrap());
    let routes = guarded(&served.get("/openapi.json", None).body);
    let scopes = [KeyScope::ToolsExecute, KeyScope::ToolsWrite, KeyScope::McpManage];
    let wanted: BTreeSet<Permission> = scopes.into_iter().flat_map(KeyScope::permissions).collect();
    for role in [Role::Member, Role::Viewer] {
        if role != Role::Member {
            let path = format!("/api/people/{}", maker.id);
            assert_eq!(owner.ask("PATCH", &path, Some(serde_json::json!({"role": role.word()}))).status, 200);
        }
        let may = wanted.intersection(&role.permissions()).copied().collect();
        try_every_route(&routes, role.word(), &mut talk, &may);
    }
    assert_eq!(owner.ask("DELETE", &format!("/api/people/{}", maker.id), None).status, 200);
    assert!([401, 403].contains(&talk.get("/api/tools").status));
    assert_eq!(maker.get("/api/me").status, 401);
}
