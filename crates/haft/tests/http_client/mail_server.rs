//! A mail server of the tests' own, and what it was given.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{
        Mutex,
        mpsc::{Receiver, channel},
    },
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

use super::clients_python;

/// How long a mail may take to come.
const SOON: Duration = Duration::from_secs(40);

/// A mail server; it ends with the test.
pub(crate) struct MailServer {
    pub(crate) port: u16,
    folder: TempDir,
    child: Child,
    mails: Mutex<Receiver<Value>>,
}

impl MailServer {
    /// One that takes everything as it comes.
    pub(crate) fn plain() -> Self {
        Self::start("plain")
    }

    /// One that wants STARTTLS, and to know whose mail it is.
    pub(crate) fn secure() -> Self {
        Self::start("secure")
    }

    fn start(kind: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http_client/smtp.py");
        let mut command = Command::new(clients_python());
        command.arg(script).arg(folder.path()).arg(kind).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (mut lines, mut port) = (BufReader::new(child.stdout.take().unwrap()), String::new());
        lines.read_line(&mut port).unwrap();
        let (tell, mails) = channel();
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                if tell.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        Self { port: port.trim().parse().unwrap(), folder, child, mails: Mutex::new(mails) }
    }

    /// Where the certificate lies that it is to be believed by.
    pub(crate) fn authority(&self) -> String {
        self.folder.path().join("ca.pem").display().to_string()
    }

    /// The next mail.
    pub(crate) fn next(&self) -> Value {
        self.mails.lock().unwrap().recv_timeout(SOON).unwrap()
    }

    /// The next mail, if one comes within this time.
    pub(crate) fn next_within(&self, time: Duration) -> Option<Value> {
        self.mails.lock().unwrap().recv_timeout(time).ok()
    }

    /// The next mail to somebody; what others are sent meanwhile is passed over.
    pub(crate) fn next_to(&self, address: &str) -> Value {
        loop {
            let mail = self.next();
            if mail["to"][0] == address {
                return mail;
            }
        }
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The paths of the links in a mail by which its questions are answered.
pub(crate) fn links(mail: &Value) -> Vec<String> {
    let words = mail["text"].as_str().unwrap().split_whitespace();
    let links = words.filter_map(|word| word.find("/a/").map(|at| word[at..].to_owned()));
    links.collect()
}
