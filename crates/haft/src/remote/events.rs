//! The events of a gateway, as they come; a stream that breaks is taken up again behind the last event.

use std::time::Duration;

use anyhow::Result;
use haft_runtime::CallEvent;
use haft_sandbox::web::Response;
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep};

use super::client::{AWAY, Client, StreamFailure};

const PAUSE: Duration = Duration::from_millis(200);

/// A stream that goes on until nobody wants it any more.
pub(crate) struct RemoteEvents<'a> {
    client: &'a Client,
    path: String,
    open: Option<Response>,
    /// What came of the next lines.
    text: Vec<u8>,
    /// The number of the last event.
    last: Option<String>,
    away_since: Option<Instant>,
}

/// One event.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct RemoteEvent {
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl<'a> RemoteEvents<'a> {
    pub(super) fn new(client: &'a Client, path: String) -> Self {
        Self { client, path, open: None, text: Vec::new(), last: None, away_since: None }
    }

    /// The next event; waits for one.
    pub(crate) async fn next(&mut self) -> Result<RemoteEvent> {
        loop {
            while let Some(frame) = next_frame(&mut self.text) {
                let (id, event) = parsed(&frame);
                if id.is_some() {
                    self.last = id;
                }
                if !event.name.is_empty() {
                    return Ok(event);
                }
            }
            self.read_on().await?;
        }
    }

    /// Waits for more. A server that went away is waited for, too.
    async fn read_on(&mut self) -> Result<()> {
        let failure = match &mut self.open {
            None => match self.client.stream(&self.path, self.last.as_deref()).await {
                Ok(opened) => {
                    self.open = Some(opened);
                    return Ok(());
                }
                Err(failure) => failure,
            },
            Some(open) => match open.chunk().await {
                Ok(Some(bytes)) => {
                    self.text.extend_from_slice(&bytes);
                    self.away_since = None;
                    return Ok(());
                }
                // What was half told is told again.
                ended => {
                    self.text.clear();
                    self.open = None;
                    match ended {
                        Ok(_) => {
                            sleep(PAUSE).await;
                            return Ok(());
                        }
                        Err(err) => StreamFailure::Broken(err.into()),
                    }
                }
            },
        };
        let since = *self.away_since.get_or_insert_with(Instant::now);
        if matches!(failure, StreamFailure::Refused(_)) || since.elapsed() > AWAY {
            return Err(self.client.told_of_stream(failure).into());
        }
        sleep(PAUSE).await;
        Ok(())
    }
}

/// The next whole frame of a text, which is taken out of it.
fn next_frame(text: &mut Vec<u8>) -> Option<String> {
    let end = text.windows(2).position(|pair| pair == b"\n\n")?;
    let frame = text.drain(..end + 2).collect::<Vec<u8>>();
    Some(String::from_utf8_lossy(&frame).into_owned())
}

fn parsed(frame: &str) -> (Option<String>, RemoteEvent) {
    let (mut id, mut event) = (None, RemoteEvent::default());
    for line in frame.lines() {
        let Some((field, value)) = line.split_once(':') else { continue };
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => id = Some(value.to_owned()),
            "event" => event.name = value.to_owned(),
            "data" => event.data = serde_json::from_str(value).unwrap_or_default(),
            _ => {}
        }
    }
    (id, event)
}

impl RemoteEvent {
    /// The same as the journal keeps it; `None` where it is told in another way.
    pub(crate) fn of_journal(&self) -> Option<CallEvent> {
        let mut fields: Map<String, Value> =
            self.data.as_object()?.iter().map(|(name, fact)| (snake_case(name), fact.clone())).collect();
        fields.insert("event".to_owned(), self.name.clone().into());
        serde_json::from_value(Value::Object(fields)).ok()
    }
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn frames_are_read_as_they_come_in_pieces() {
        let mut text = b"id: 7\nevent: tool.progress\ndata: {\"mess".to_vec();
        assert_eq!(next_frame(&mut text), None);
        text.extend_from_slice(b"age\": \"half\", \"toolCallId\": \"x\"}\n\n: comment\n\nid: 8");
        let (id, event) = parsed(&next_frame(&mut text).unwrap_or_default());
        assert_eq!((id.as_deref(), event.name.as_str()), (Some("7"), "tool.progress"));
        let told = event.of_journal();
        assert_eq!(told, Some(CallEvent::Progress { progress: None, part: None, message: "half".to_owned() }));
        assert_eq!(parsed(&next_frame(&mut text).unwrap_or_default()), (None, RemoteEvent::default()));
        assert_eq!(text, b"id: 8");
    }

    #[test]
    fn an_old_name_is_told() {
        let data = json!({"tool": "write_file", "calledAs": "create_file", "removeBy": "2027-01-01", "args": {}});
        let event = RemoteEvent { name: "tool.call".to_owned(), data };
        assert!(matches!(event.of_journal(), Some(CallEvent::Called { called_as: Some(_), remove_by: Some(_), .. })));
    }
}
