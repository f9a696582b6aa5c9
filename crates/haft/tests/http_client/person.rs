//! Somebody who is signed in.

use serde_json::{Value, json};

use super::{Answer, Gateway};

/// A person with what their browser holds.
pub(crate) struct Person<'a> {
    served: &'a Gateway,
    pub(crate) id: String,
    pub(crate) cookie: String,
    pub(crate) csrf: String,
}

impl<'a> Person<'a> {
    /// Somebody whom the operator adds.
    pub(crate) fn added(served: &'a Gateway, email: &str, tenant: &str, role: &str) -> Self {
        let added = served.admin(&["person", "add", email, "--tenant", tenant, "--role", role]);
        Self::by_link(served, added["signIn"].as_str().unwrap())
    }

    /// Whoever has this link.
    pub(crate) fn by_link(served: &'a Gateway, link: &str) -> Self {
        Self::signed_in(served, &json!({"link": link}))
    }

    /// Whoever knows this password.
    pub(crate) fn by_password(served: &'a Gateway, email: &str, password: &str) -> Self {
        Self::signed_in(served, &json!({"email": email, "password": password}))
    }

    fn signed_in(served: &'a Gateway, how: &Value) -> Self {
        let answer = served.post("/api/sign-in", how, None);
        assert_eq!(answer.status, 200, "{answer:?}");
        let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Self { served, id: text(&answer.body["caller"]["id"]), cookie, csrf: text(&answer.body["csrf"]) }
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let headers = [("Cookie", self.cookie.as_str()), ("X-CSRF-Token", self.csrf.as_str())];
        match body {
            Some(body) => self.served.request(method, path, Some(&body), &headers),
            None => self.served.request(method, path, None, &headers),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, None)
    }

    pub(crate) fn post(&self, path: &str, body: Value) -> Answer {
        self.ask("POST", path, Some(body))
    }
}
