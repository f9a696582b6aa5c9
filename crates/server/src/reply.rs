//! Replies in the shape that clients take best. One message is sent as JSON: clients refuse long events. A stream is opened
//! when something else comes first, and whoever waits long hears that the connection is alive.

use std::{convert::Infallible, future::Future, time::Duration};

use axum::{
    body::{Body, BodyDataStream, Bytes},
    extract::Request,
    http::{HeaderValue, Method, StatusCode, header, response::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::{Stream, StreamExt, stream};
use haft_mcp::is_answer;
use tokio::time::{Instant, timeout, timeout_at};

use crate::JSON;

const EVENTS: &str = "text/event-stream";
/// How long the head of a reply is held back for the one message that may be all of it.
const HELD_BACK: Duration = Duration::from_secs(10);
/// How often a client hears of a connection on which nothing is said.
const ALIVE: Duration = Duration::from_secs(10);
/// What is sent then: JSON may begin with it.
const SPACE: &[u8] = b" ";

/// Shapes what the service behind answers.
pub(crate) async fn fit(request: Request, next: Next) -> Response {
    match *request.method() {
        Method::POST => post(next.run(request)).await,
        Method::DELETE => deleted(next.run(request).await),
        _ => next.run(request).await,
    }
}

/// What was deleted is gone by now.
fn deleted(mut response: Response) -> Response {
    if response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}

async fn post(reply: impl Future<Output = Response> + Send + 'static) -> Response {
    let until = Instant::now() + HELD_BACK;
    let mut reply = Box::pin(reply);
    match timeout_at(until, &mut reply).await {
        Ok(response) => shaped(response, until).await,
        // Only a call that tells nothing but its result says nothing for so long.
        Err(_) => json(Body::from_stream(kept_alive(async move { answer(reply.await).await }))),
    }
}

/// The reply as JSON if it is one message, or else as it is.
async fn shaped(response: Response, until: Instant) -> Response {
    if response.status() != StatusCode::OK || !is_stream(&response) {
        return response;
    }
    let (head, body) = response.into_parts();
    let mut events = SseEvents::of(body);
    match timeout_at(until, events.next_message()).await {
        Ok(Some(message)) if is_answer(&message) => json_of(head, message),
        Ok(_) | Err(_) => {
            let SseEvents { rest, read, .. } = events;
            let read = stream::iter([Ok::<_, axum::Error>(Bytes::from(read))]);
            Response::from_parts(head, Body::from_stream(read.chain(rest)))
        }
    }
}

/// Spaces while nothing is there, then the message.
fn kept_alive(
    message: impl Future<Output = Bytes> + Send + 'static,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
    let begins = stream::iter([Ok(Bytes::from_static(SPACE))]);
    begins.chain(stream::unfold(Some(Box::pin(message)), |waiting| async move {
        let mut message = waiting?;
        match timeout(ALIVE, &mut message).await {
            Ok(message) => Some((Ok(message), None)),
            Err(_) => Some((Ok(Bytes::from_static(SPACE)), Some(message))),
        }
    }))
}

/// The one message of a reply.
async fn answer(response: Response) -> Bytes {
    if !is_stream(&response) {
        return axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap_or_default();
    }
    let mut events = SseEvents::of(response.into_body());
    while let Some(message) = events.next_message().await {
        if is_answer(&message) {
            return message.into();
        }
    }
    Bytes::new()
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with(EVENTS))
}

fn json(body: Body) -> Response {
    // Nobody on the way should wait for the end of it.
    let headers = [(header::CONTENT_TYPE.as_str(), JSON), ("cache-control", "no-store"), ("x-accel-buffering", "no")];
    (headers, body).into_response()
}

/// The same reply with another body.
fn json_of(mut head: Parts, message: String) -> Response {
    head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    Response::from_parts(head, Body::from(message))
}

/// The events of a body, and everything that was read of it.
struct SseEvents {
    rest: BodyDataStream,
    read: Vec<u8>,
    /// How much of it was looked at.
    taken: usize,
}

impl SseEvents {
    fn of(body: Body) -> Self {
        Self { rest: body.into_data_stream(), read: Vec::new(), taken: 0 }
    }

    /// The data of the next event that has some; `None` at the end. NoFields is lost when it is dropped half-way.
    async fn next_message(&mut self) -> Option<String> {
        loop {
            while let Some(length) = end_of_event(&self.read[self.taken..]) {
                let event = String::from_utf8_lossy(&self.read[self.taken..self.taken + length]).into_owned();
                self.taken += length;
                let data = event.lines().filter_map(|line| line.strip_prefix("data:"));
                let data: Vec<&str> = data.map(|data| data.strip_prefix(' ').unwrap_or(data)).collect();
                if data.iter().any(|data| !data.is_empty()) {
                    return Some(data.join("\n"));
                }
            }
            let piece = self.rest.next().await?.ok()?;
            self.read.extend_from_slice(&piece);
        }
    }
}

/// How long the first event is, with the empty line behind it.
fn end_of_event(bytes: &[u8]) -> Option<usize> {
    bytes.windows(2).position(|pair| pair == b"\n\n").map(|at| at + 2)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#;

    /// A stream of these messages, as the service behind sends them: what can be resumed begins with an empty event.
    fn streamed(messages: &[&str]) -> Response {
        let events: String = messages.iter().map(|message| format!("data: {message}\nid: 2\n\n")).collect();
        ([(header::CONTENT_TYPE, EVENTS)], format!("data: \nid: 1\nretry: 3000\n\n:\n\n{events}")).into_response()
    }

    async fn told(response: Response) -> (String, String) {
        let kind = response.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (kind, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn one_message_is_json_and_several_are_a_stream() {
        let one = post(async { streamed(&[ANSWER]) }).await;
        assert_eq!(told(one).await, (JSON.to_owned(), ANSWER.to_owned()));
        let (kind, body) = told(post(async { streamed(&[PROGRESS, ANSWER]) }).await).await;
        assert_eq!(kind, EVENTS);
        assert!(body.starts_with("data: \nid: 1") && body.contains(PROGRESS) && body.contains(ANSWER), "{body}");
        let refused = post(async { (StatusCode::BAD_REQUEST, "no").into_response() }).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_long_hears_that_the_connection_is_alive() {
        let slow = async {
            tokio::time::sleep(Duration::from_secs(35)).await;
            streamed(&[ANSWER])
        };
        let begun = Instant::now();
        let response = post(slow).await;
        assert_eq!(begun.elapsed(), HELD_BACK);
        assert_eq!(told(response).await, (JSON.to_owned(), format!("   {ANSWER}")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_says_nothing_yet_is_opened() {
        let quiet = stream::pending::<Result<Bytes, Infallible>>();
        let quiet = ([(header::CONTENT_TYPE, EVENTS)], Body::from_stream(quiet)).into_response();
        let response = post(async { quiet }).await;
        assert_eq!(response.headers()[header::CONTENT_TYPE], EVENTS);
    }
}
