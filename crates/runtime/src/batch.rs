//! Many calls at once, with the same end as one after the other.

use std::pin::Pin;

use futures_util::{
    FutureExt, Stream, StreamExt,
    future::BoxFuture,
    stream::{self, Fuse, FusedStream, FuturesOrdered},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    CallRequest, Effect, ErrorCode, Forward, Outcome, Pipeline, ToolError,
    stage::resolve::{find, translate},
};

/// How many calls of a batch are under way, or have ended and wait for an earlier one, at the most.
const AT_ONCE: usize = 8;

/// One item of a batch.
pub enum Wish {
    /// A call.
    Call(Box<CallRequest>),
    /// What a door could not even read; its envelope keeps its place.
    Unreadable(Box<Outcome>),
}

impl Pipeline {
    /// Takes calls as they come, and gives their outcomes in the same order, each with the tag it came with.
    ///
    /// What only reads runs at once. A call that may do more begins when everything before it has ended, and whatever
    /// comes after it is prepared after its end; if it is left waiting for an answer, it has ended as `pending` and
    /// nothing was committed. Once `stop` fires nothing more is begun.
    pub fn batch<T, W>(&self, wishes: W, stop: &CancellationToken) -> impl Stream<Item = (T, Outcome)> + use<T, W>
    where
        T: Send + 'static,
        W: Stream<Item = (T, Wish)>,
    {
        let batch = RunningBatch {
            pipeline: self.clone(),
            wishes: Box::pin(wishes.fuse()),
            under_way: FuturesOrdered::new(),
            next_alone: None,
            is_alone: false,
            stop: stop.clone(),
        };
        stream::unfold(batch, |mut batch| async move { batch.next().await.map(|ended| (ended, batch)) })
    }

    /// Whether a later call could see what this one does.
    async fn may_change_something(&self, wish: &Wish) -> bool {
        let Wish::Call(request) = wish else { return false };
        let CallRequest { caller, tool, input, .. } = &**request;
        // What will be refused changes nothing.
        let Ok((found, meant)) = find(&*self.doors.catalog, caller, tool, input).await else { return false };
        if found.spec().effect == Effect::Read {
            return false;
        }
        let Forward { tool, mut input } = meant.unwrap_or_else(|| Forward { tool: tool.clone(), input: input.clone() });
        translate(&mut input, found.spec(), &tool).is_ok() && found.tool().effect(&input) > Effect::Read
    }

    /// Begins at once, whether or not anybody looks; whoever drops it cancels the call.
    fn start<T: Send + 'static>(&self, tag: T, wish: Wish) -> BoxFuture<'static, (T, Outcome)> {
        match wish {
            Wish::Call(request) => {
                let tool = request.tool.clone();
                let call = AbortOnDropHandle::new(tokio::spawn(self.call(*request)));
                async move { (tag, call.await.unwrap_or_else(|_| broke_off(&tool))) }.boxed()
            }
            Wish::Unreadable(outcome) => std::future::ready((tag, *outcome)).boxed(),
        }
    }
}

/// A batch of which some calls have begun.
struct RunningBatch<T, W: Stream> {
    pipeline: Pipeline,
    wishes: Pin<Box<Fuse<W>>>,
    under_way: FuturesOrdered<BoxFuture<'static, (T, Outcome)>>,
    /// What begins once everything before it has ended.
    next_alone: Option<(T, Wish)>,
    /// Whether what is under way must end before anything else begins.
    is_alone: bool,
    stop: CancellationToken,
}

impl<T: Send + 'static, W: Stream<Item = (T, Wish)>> RunningBatch<T, W> {
    /// The next outcome; `None` after the last one.
    async fn next(&mut self) -> Option<(T, Outcome)> {
        loop {
            if self.is_alone || self.next_alone.is_some() {
                if let Some(ended) = self.under_way.next().await {
                    return Some(ended);
                }
                self.is_alone = false;
                if let Some((tag, wish)) = self.next_alone.take().filter(|_| !self.stop.is_cancelled()) {
                    self.under_way.push_back(self.pipeline.start(tag, wish));
                    self.is_alone = true;
                }
                continue;
            }
            let takes_more =
                !self.stop.is_cancelled() && !self.wishes.is_terminated() && self.under_way.len() < AT_ONCE;
            tokio::select! {
                biased;
                Some(ended) = self.under_way.next() => return Some(ended),
                () = self.stop.cancelled(), if takes_more => {}
                wish = self.wishes.next(), if takes_more => {
                    let Some((tag, wish)) = wish else { continue };
                    if self.pipeline.may_change_something(&wish).await {
                        self.next_alone = Some((tag, wish));
                    } else {
                        self.under_way.push_back(self.pipeline.start(tag, wish));
                    }
                }
                else => return None,
            }
        }
    }
}

fn broke_off(tool: &str) -> Outcome {
    let message = "the call broke off by a fault in haft; `haft log` shows how far it came";
    Outcome::refused(tool, ToolError::new(ErrorCode::Internal, message))
}
