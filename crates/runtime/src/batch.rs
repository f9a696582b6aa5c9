//! Many calls at once, with the same end as one after the other.

use std::{future::Future, pin::pin};

use futures_util::{
    Stream, StreamExt,
    stream::{FusedStream, FuturesOrdered},
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
    /// Takes calls as they come, and hands their outcomes on in the same order, each with the tag it came with.
    ///
    /// What only reads runs at once. A call that may do more begins when everything before it has ended, and whatever
    /// comes after it is prepared after its end; if it is left waiting for an answer, it has ended as `pending` and
    /// nothing was committed. Once `stop` fires nothing more is begun.
    pub async fn batch<T>(
        &self,
        wishes: impl Stream<Item = (T, Wish)>,
        stop: &CancellationToken,
        mut hand_on: impl FnMut(T, Outcome),
    ) {
        let mut wishes = pin!(wishes.fuse());
        let mut under_way = FuturesOrdered::new();
        loop {
            let takes_more = !stop.is_cancelled() && !wishes.is_terminated() && under_way.len() < AT_ONCE;
            tokio::select! {
                biased;
                Some((tag, outcome)) = under_way.next() => hand_on(tag, outcome),
                () = stop.cancelled(), if takes_more => {}
                wish = wishes.next(), if takes_more => {
                    let Some((tag, wish)) = wish else { continue };
                    let alone = self.may_change_something(&wish).await;
                    if alone {
                        all(&mut under_way, &mut hand_on).await;
                    }
                    if stop.is_cancelled() {
                        continue;
                    }
                    under_way.push_back(self.start(tag, wish));
                    if alone {
                        all(&mut under_way, &mut hand_on).await;
                    }
                }
                else => return,
            }
        }
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
    fn start<T>(&self, tag: T, wish: Wish) -> impl Future<Output = (T, Outcome)> + use<T> {
        let begun = match wish {
            Wish::Call(request) => {
                let tool = request.tool.clone();
                Ok((tool, AbortOnDropHandle::new(tokio::spawn(self.call(*request)))))
            }
            Wish::Unreadable(outcome) => Err(outcome),
        };
        async move {
            match begun {
                Ok((tool, call)) => (tag, call.await.unwrap_or_else(|_| broke_off(&tool))),
                Err(outcome) => (tag, *outcome),
            }
        }
    }
}

async fn all<T, F>(under_way: &mut FuturesOrdered<F>, hand_on: &mut impl FnMut(T, Outcome))
where
    F: Future<Output = (T, Outcome)>,
{
    while let Some((tag, outcome)) = under_way.next().await {
        hand_on(tag, outcome);
    }
}

fn broke_off(tool: &str) -> Outcome {
    let message = "the call broke off by a fault in haft; `haft log` shows how far it came";
    Outcome::refused(tool, ToolError::new(ErrorCode::Internal, message))
}
