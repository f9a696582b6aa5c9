//! Secure connections: with the host that the URL names, vouched for by somebody this machine knows.
//! The keys in `tls/` are made for these tests and open nothing.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    server::settings,
    support::{Fixture, Running},
};

struct Secure {
    process: Child,
    port: u16,
}

impl Secure {
    #[expect(clippy::disallowed_methods, reason = "a server to talk to, which no tool starts")]
    fn new(certificate: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web/tls");
        let mut server = Command::new("/usr/bin/python3");
        server.arg(folder.join("serve.py")).arg(folder.join(certificate)).stdout(Stdio::piped());
        let mut process = server.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, port: line.trim().parse().unwrap() }
    }

    /// Fetches from it with a haft that knows only these certificates.
    fn fetched(&self, known: &str) -> Value {
        let fixture = Fixture::new();
        let address = format!("127.0.0.1:{}", self.port);
        settings(&fixture, &format!("web.connect = '30s'\nweb.silence = '30s'\nweb.allow = ['{address}']\n"));
        let input = json!({"url": format!("https://{address}/")}).to_string();
        let mut haft = fixture.haft(&["call", "web_fetch", &input, "--auto-approve", "all", "--json"]);
        haft.env("SSL_CERT_FILE", Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web/tls").join(known));
        Running::start(haft).finish().json()
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn a_host_is_who_its_certificate_says() {
    let server = Secure::new("here.pem");
    let outcome = server.fetched("ca.pem");
    assert_eq!(outcome["result"]["structured"]["body"], "secure", "{outcome:#}");
    for (certificate, known, says) in [
        ("here.pem", "elsewhere.pem", "certificate"),
        ("elsewhere.pem", "ca.pem", "certificate"),
        ("here.pem", "nothing.pem", "no certificates are installed"),
    ] {
        let outcome = Secure::new(certificate).fetched(known);
        let error = &outcome["error"];
        assert_eq!((&error["code"], &error["recoverable"]), (&json!("NETWORK_ERROR"), &json!(false)), "{outcome:#}");
        assert!(error["message"].as_str().unwrap().contains(says), "{certificate} {known}: {error}");
    }
}
