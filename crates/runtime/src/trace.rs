//! Which trace the work at hand belongs to, and the spans that are told to whoever watches.
//!
//! The names are those of OpenTelemetry; how spans leave the program is not known here.

use std::{borrow::Cow, future::Future, pin::pin, sync::Arc};

use jiff::Timestamp;
use serde_json::Value;

use crate::{Effect, End, Outcome};

/// A place in a trace, as `traceparent` tells it to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace: u128,
    /// The span that work is done in.
    pub span: u64,
    /// Whether its spans are kept.
    pub sampled: bool,
}

impl TraceContext {
    /// Reads `00-<trace>-<span>-<flags>`; what is not that is nothing.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().splitn(4, '-');
        let (version, trace, span, rest) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let flags = rest.split('-').next()?;
        let is_hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        let fits = version.len() == 2 && trace.len() == 32 && span.len() == 16 && flags.len() == 2;
        if !fits || ![version, trace, span, flags].into_iter().all(is_hex) || version == "ff" {
            return None;
        }
        // A later version may say more behind; of this one there is no more.
        if version == "00" && rest.len() != 2 {
            return None;
        }
        let (trace, span) = (u128::from_str_radix(trace, 16).ok()?, u64::from_str_radix(span, 16).ok()?);
        let sampled = u8::from_str_radix(flags, 16).ok()? & 1 == 1;
        (trace != 0 && span != 0).then_some(Self { trace, span, sampled })
    }

    /// As the header `traceparent` has it.
    pub fn header(self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

tokio::task_local! {
    /// The span that this task works in.
    static CURRENT: TraceContext;
}

/// The span that this task works in, if it is in a trace.
pub fn current_trace() -> Option<TraceContext> {
    CURRENT.try_with(|current| *current).ok()
}

/// Does work within a span; without one, as it would be done anyway.
pub async fn in_trace<W: Future>(place: Option<TraceContext>, work: W) -> W::Output {
    // Pinned once: work that is moved twice would need room for both.
    let work = pin!(work);
    match place {
        Some(place) => CURRENT.scope(place, work).await,
        None => work.await,
    }
}

/// Whose work a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// A part of other work.
    Internal,
    /// An answer to somebody outside.
    Server,
}

/// A piece of work that has ended.
#[derive(Clone, Debug)]
pub struct SpanRecord {
    /// Where it is in its trace.
    pub place: TraceContext,
    /// The span that it is part of.
    pub parent: Option<u64>,
    /// What it is called.
    pub name: Cow<'static, str>,
    /// Whose work it is.
    pub kind: SpanKind,
    /// When it began.
    pub began: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// What is known of it.
    pub attributes: Vec<(&'static str, Value)>,
    /// Why it failed, as a word.
    pub error: Option<String>,
}

/// Who watches. Nothing waits for them.
pub trait SpanSink: Send + Sync {
    /// A place for new work, within another or as the beginning of a trace.
    fn place(&self, parent: Option<TraceContext>) -> TraceContext;

    /// Takes a span of a trace that is kept; drops it where there is no room.
    fn ended(&self, span: SpanRecord);

    /// Whether inputs and results may be part of a span.
    fn wants_content(&self) -> bool;

    /// How many spans were sent, and how many dropped.
    fn counts(&self) -> (u64, u64);
}

/// Work that is watched while it goes on.
pub struct OpenSpan {
    sink: Arc<dyn SpanSink>,
    place: TraceContext,
    parent: Option<u64>,
    began: Timestamp,
}

impl OpenSpan {
    /// Begins work, if anybody watches.
    pub fn begin(sink: Option<&Arc<dyn SpanSink>>, parent: Option<TraceContext>) -> Option<Self> {
        let sink = Arc::clone(sink?);
        let place = sink.place(parent);
        Some(Self { sink, place, parent: parent.map(|parent| parent.span), began: Timestamp::now() })
    }

    /// Where it is.
    pub fn place(&self) -> TraceContext {
        self.place
    }

    /// Ends it. `describe` says what is known of it, and is asked only where the trace is kept.
    pub fn end(self, kind: SpanKind, name: impl Into<Cow<'static, str>>, describe: impl FnOnce(&mut SpanRecord, bool)) {
        let Self { sink, place, parent, began } = self;
        if !place.sampled {
            return;
        }
        let (name, ended) = (name.into(), Timestamp::now());
        let mut span = SpanRecord { place, parent, name, kind, began, ended, attributes: Vec::new(), error: None };
        describe(&mut span, sink.wants_content());
        sink.ended(span);
    }
}

/// A call as a span of its own, which its end is told of by [`tell`].
pub(crate) async fn traced<W: Future>(
    sink: Option<&Arc<dyn SpanSink>>,
    parent: Option<TraceContext>,
    work: W,
) -> (W::Output, Option<OpenSpan>) {
    let span = OpenSpan::begin(sink, parent);
    let place = span.as_ref().map(OpenSpan::place).or(parent);
    (in_trace(place, work).await, span)
}

/// Ends the span of a call.
pub(crate) fn tell(span: Option<OpenSpan>, outcome: &Outcome, effect: Option<Effect>, input: Option<&Value>) {
    let Some(span) = span else { return };
    span.end(SpanKind::Internal, format!("execute_tool {}", outcome.tool), |span, with_content| {
        describe(span, outcome, (effect, input.filter(|_| with_content)));
    });
}

/// One stage of a call, as a part of the span of the call.
pub(crate) async fn stage<W: Future>(sink: Option<&Arc<dyn SpanSink>>, name: &'static str, work: W) -> W::Output {
    let work = pin!(work);
    let Some(span) = OpenSpan::begin(sink, current_trace()) else { return work.await };
    let done = in_trace(Some(span.place()), work).await;
    span.end(SpanKind::Internal, name, |_, _| ());
    done
}

/// The longest input or result in a span.
const LONGEST_CONTENT: usize = 8192;

/// What a span says of a call, by the names that others use for tools of models.
fn describe(span: &mut SpanRecord, outcome: &Outcome, (effect, input): (Option<Effect>, Option<&Value>)) {
    let mut add = |name: &'static str, value: Value| span.attributes.push((name, value));
    add("gen_ai.operation.name", "execute_tool".into());
    add("gen_ai.tool.name", outcome.tool.as_str().into());
    add("gen_ai.tool.call.id", outcome.tool_call_id.as_str().into());
    add("haft.status", outcome.end.status().into());
    add("haft.isolation", serde_json::json!(outcome.isolation));
    if let Some(by) = outcome.approved_by {
        add("haft.approved_by", serde_json::json!(by));
    }
    if let Some(effect) = effect {
        add("haft.effect", serde_json::json!(effect));
    }
    if let Some(input) = input {
        add("gen_ai.tool.call.arguments", shortened(input.to_string()).into());
        if let End::Success { result } = &outcome.end {
            add("gen_ai.tool.call.result", shortened(result.content.clone()).into());
        }
    }
    if let Some(error) = outcome.end.error() {
        let code = error.code.to_string();
        add("error.type", code.as_str().into());
        span.error = Some(code);
    }
}

fn shortened(mut text: String) -> String {
    let end = (0..=LONGEST_CONTENT.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.truncate(end);
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written_and_nothing_else_is_one() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let place = TraceContext::parse(text).unwrap();
        assert!(place.sampled && place.header() == text);
        assert!(TraceContext::parse("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more").is_some());
        for wrong in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(wrong), None, "{wrong}");
        }
    }
}
