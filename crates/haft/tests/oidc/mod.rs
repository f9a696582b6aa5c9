//! Providers of OpenID Connect that tests start, and a browser that goes there and back.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that cannot go on fails")]

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::http_client::{Answer, Gateway, clients_python, fetch};

/// A provider; it ends with the test.
pub(crate) struct Provider {
    pub(crate) url: String,
    child: Child,
}

impl Provider {
    /// One that others keep.
    pub(crate) fn real() -> Self {
        Self::start("real_provider.py")
    }

    /// One that does what it is told.
    pub(crate) fn scripted() -> Self {
        Self::start("scripted_provider.py")
    }

    fn start(script: &str) -> Self {
        let script = format!("{}/tests/oidc/{script}", env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new(clients_python());
        let mut child = command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(url.starts_with("http://"), "the provider has not started: {url}");
        Self { url: url.trim().to_owned(), child }
    }

    /// Says how the next tokens are made.
    pub(crate) fn script(&self, script: &Value) {
        let answer = fetch("POST", &format!("{}/script", self.url), "", &script.to_string());
        assert_eq!(answer.status, 200);
    }

    /// How often something was asked for.
    pub(crate) fn count(&self, path: &str) -> u64 {
        fetch("GET", &format!("{}/good/counts", self.url), "", "").body[path].as_u64().unwrap_or(0)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// What somebody holds who is signed in.
pub(crate) struct SignedIn {
    pub(crate) cookie: String,
    pub(crate) csrf: String,
    pub(crate) body: Value,
    /// The page that they wanted to see.
    pub(crate) to: String,
}

/// A browser with its cookie for the way to a provider.
pub(crate) struct Browser<'a> {
    served: &'a Gateway,
    cookie: String,
}

impl<'a> Browser<'a> {
    pub(crate) fn new(served: &'a Gateway) -> Self {
        Self { served, cookie: String::new() }
    }

    /// What the page's button leads to.
    pub(crate) fn leave(&mut self, path: &str) -> Answer {
        let left = fetch("GET", &format!("{}{path}", self.served.url), &self.cookie, "");
        if let Some(cookie) = left.header("set-cookie") {
            assert!(cookie.contains("; HttpOnly; SameSite=Lax; Max-Age=900"), "{cookie}");
            self.cookie = cookie.split(';').next().unwrap().to_owned();
        }
        left
    }

    /// The address that the scripted provider sends the browser back to.
    pub(crate) fn at_provider(&mut self, path: &str) -> String {
        let left = self.leave(path);
        assert_eq!(left.status, 303, "{left:?}");
        let there = fetch("GET", left.header("location").unwrap(), "", "");
        assert_eq!(there.status, 302, "{there:?}");
        there.header("location").unwrap().to_owned()
    }

    /// What is shown to somebody who comes back.
    pub(crate) fn back(&self, address: &str) -> Answer {
        fetch("GET", address, &self.cookie, "")
    }

    /// All of it.
    pub(crate) fn go(&mut self, provider: &str) -> Answer {
        let address = self.at_provider(&format!("/sign-in/oidc/{provider}"));
        self.back(&address)
    }

    /// What the script of the last page does.
    pub(crate) fn sign_in(&self, page: &Answer) -> SignedIn {
        let html = page.body.as_str().unwrap();
        assert_eq!(page.status, 200, "{html}");
        let between = |from: &str| html.split(from).nth(1).unwrap().split('"').next().unwrap().to_owned();
        let answer = self.served.post("/api/sign-in", &serde_json::json!({"link": between("data-link=\"")}), None);
        assert_eq!(answer.status, 200, "{answer:?}");
        let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let csrf = answer.body["csrf"].as_str().unwrap().to_owned();
        SignedIn { cookie, csrf, to: between("class=\"button\" href=\""), body: answer.body }
    }
}
