//! A call that its caller may drop: it is then cancelled, and finished in the background so that its end is recorded.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::Outcome;

pub(crate) struct FinishInBackground {
    call: Option<BoxFuture<'static, Outcome>>,
    cancel: CancellationToken,
    orphans: TaskTracker,
}

impl FinishInBackground {
    pub(crate) fn new(call: BoxFuture<'static, Outcome>, cancel: CancellationToken, orphans: TaskTracker) -> Self {
        Self { call: Some(call), cancel, orphans }
    }
}

impl Future for FinishInBackground {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let Some(call) = &mut self.call else { return Poll::Pending };
        let polled = call.as_mut().poll(context);
        if polled.is_ready() {
            self.call = None;
        }
        polled
    }
}

impl Drop for FinishInBackground {
    fn drop(&mut self) {
        if let Some(call) = self.call.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            self.cancel.cancel();
            self.orphans.spawn_on(call, &runtime);
        }
    }
}
