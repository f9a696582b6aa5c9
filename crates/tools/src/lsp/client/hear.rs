//! Hearing a server: answers, notifications, and questions of its own.

use std::{io::ErrorKind, sync::Arc};

use serde_json::{Value, json};
use tokio::{io::BufReader, net::unix::OwnedReadHalf};

use super::{FAREWELL, GREETING, LanguageClient, lock};
use crate::lsp::{
    documents::note,
    error::LanguageServerError,
    frame::{framed, next},
    handshake::LanguageCapabilities,
    replies::reply,
    server_state::cut,
};

impl LanguageClient {
    /// Hears everything that the server says.
    pub(super) async fn listen(self: Arc<Self>, from: OwnedReadHalf) {
        let mut from = BufReader::new(from);
        let why = loop {
            match next(&mut from).await {
                Ok(Some(bytes)) => {
                    if let Err(why) = self.take(&bytes) {
                        break why;
                    }
                }
                Err(err) if err.kind() == ErrorKind::InvalidData => break err.to_string(),
                Ok(None) | Err(_) => {
                    // Most often it has ended, which says more.
                    self.is_gone_within(FAREWELL).await;
                    break "it closed its output".to_owned();
                }
            }
        };
        self.give_up(why);
    }

    fn take(&self, bytes: &[u8]) -> Result<(), String> {
        let message: Value = serde_json::from_slice(bytes).map_err(|err| format!("it sent what is no JSON: {err}"))?;
        self.heard.send_modify(|heard| heard.messages += 1);
        match (message["method"].as_str(), message.get("id")) {
            (Some(_), Some(_)) => {
                let reply = framed(&reply(&self.server, &self.workspace, &message));
                self.outbox.try_send(reply).map_err(|_| "it asks more than it listens to".to_owned())
            }
            (Some(method), None) => {
                self.heard.send_modify(|heard| heard.take(method, &message["params"]));
                Ok(())
            }
            (None, Some(id)) => {
                self.take_answer(id.as_i64().unwrap_or(-1), message);
                Ok(())
            }
            (None, None) => Err("it sent what is neither a question nor an answer".to_owned()),
        }
    }

    fn take_answer(&self, number: i64, mut message: Value) {
        let answer = match message.get("error") {
            Some(error) => Err(LanguageServerError::Refused {
                code: error["code"].as_i64().unwrap_or(0),
                message: error["message"].as_str().unwrap_or("it does not say why").to_owned(),
            }),
            None => Ok(message["result"].take()),
        };
        match (number, answer) {
            (GREETING, Ok(answer)) => {
                let offered =
                    LanguageCapabilities::read(&answer, self.server.command.first().map_or("", String::as_str));
                let _ = self.outbox.try_send(framed(&note("initialized", json!({}))));
                self.heard.send_modify(|heard| heard.offered = Some(Arc::new(offered)));
            }
            (GREETING, Err(LanguageServerError::Refused { message, .. })) => {
                self.give_up(format!("it refused to begin: {}", cut(&message, 500)));
            }
            (GREETING, Err(_)) => self.give_up("it refused to begin".to_owned()),
            (_, answer) => {
                if let Some(asker) = lock(&self.asked).remove(&number) {
                    // Whoever asked may have gone.
                    let _ = asker.send(answer);
                }
            }
        }
    }
}
