//! Speaking to a server: one message after the other, then farewell.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::AsyncWriteExt,
    net::unix::OwnedWriteHalf,
    sync::mpsc,
    time::{sleep, timeout},
};

use super::{FAREWELL, LanguageClient, request};
use crate::lsp::{documents::note, frame::framed};

/// How long a server may take to listen to one message: while it loads a large project, that is long.
const PATIENCE: Duration = Duration::from_secs(120);

impl LanguageClient {
    /// Tells the server everything that waits, until it ends, is told to, or was asked nothing for long.
    pub(super) async fn speak(
        self: Arc<Self>,
        mut waiting: mpsc::Receiver<Vec<u8>>,
        mut to: OwnedWriteHalf,
        idle: Duration,
    ) {
        let mut heard = self.heard.subscribe();
        loop {
            let message = tokio::select! {
                message = waiting.recv() => message,
                _ = heard.wait_for(|heard| heard.leaves || heard.ended.is_some()) => None,
                () = sleep(idle) => match self.users.load(Ordering::Relaxed) {
                    0 => None,
                    _ => continue,
                },
            };
            let Some(message) = message else { break };
            match timeout(PATIENCE, to.write_all(&message)).await {
                Ok(Ok(())) => {}
                Ok(Err(err)) => return self.give_up(format!("it does not listen: {err}")),
                Err(_) => return self.give_up("it does not listen".to_owned()),
            }
        }
        self.heard.send_modify(|heard| heard.leaves = heard.ended.is_none());
        let farewell = [framed(&request(-1, "shutdown", Value::Null)), framed(&note("exit", Value::Null))].concat();
        let _ = timeout(FAREWELL, to.write_all(&farewell)).await;
        drop(to);
        self.is_gone_within(FAREWELL).await;
        self.stopper.stop();
    }
}
