//! The connections of a server: how many there are at a time, how long each may take, and how they end.

use std::{
    collections::HashMap,
    convert::Infallible,
    future::{Future, poll_fn},
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, HttpBody},
    http::{Request, Response},
};
use futures_util::future::BoxFuture;
use hyper::{
    body::{Frame, Incoming, SizeHint},
    server::conn::http1,
    service::Service,
};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::Notify,
    task::AbortHandle,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    pace::{ConnectionPace, PacedStream},
    refusal::LONGEST_HEAD,
};

/// How long it is waited before the next connection when the system has none left to give.
const BREATH: Duration = Duration::from_millis(50);
/// How long an ended connection is listened to, so that the last answer is not lost with what was not read.
const LINGER: Duration = Duration::from_secs(2);

/// How many connections may wait to be taken. What the system allows is the most anyway.
const WAITING: u32 = 4096;

/// Listens at an address.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A server that was just ended must not keep the next one from its address.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(WAITING)
}

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddress(pub(crate) SocketAddr);

/// Serves connections, at most so many at a time, until it is told to stop; then it waits for what is under way.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    most: usize,
    stop: CancellationToken,
) -> io::Result<()> {
    let (open, tasks) = (Arc::new(OpenConnections::default()), TaskTracker::new());
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(err) if is_of_the_client(&err) => continue,
            Err(err) => {
                // No connection can be made: most likely there are too many open files.
                tracing::warn!(%err, "a connection cannot be taken");
                open.close_the_idlest();
                sleep(BREATH).await;
                continue;
            }
        };
        if stop.run_until_cancelled(open.room(most)).await.is_none() {
            break;
        }
        let (pace, router) = (ConnectionPace::new(), router.clone());
        let place = ConnectionPlace { open: open.clone(), number: open.next_number() };
        let number = place.number;
        let task = tasks.spawn({
            let (pace, stop) = (pace.clone(), stop.clone());
            async move {
                let _place = place;
                // Answers are small and waited for.
                stream.set_nodelay(true).ok();
                carry((stream, PeerAddress(peer)), router, pace, stop).await;
            }
        });
        open.note(number, OpenConnection { pace, task: task.abort_handle() });
    }
    drop(listener);
    tasks.close();
    tasks.wait().await;
    Ok(())
}

/// Whether only this one connection failed.
fn is_of_the_client(err: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(err.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// The connections there are.
#[derive(Default)]
struct OpenConnections {
    all: Mutex<KnownConnections>,
    /// Told when one ends.
    ended: Notify,
}

#[derive(Default)]
struct KnownConnections {
    by_number: HashMap<u64, OpenConnection>,
    last: u64,
}

struct OpenConnection {
    pace: Arc<ConnectionPace>,
    task: AbortHandle,
}

impl OpenConnections {
    fn known(&self) -> MutexGuard<'_, KnownConnections> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_number(&self) -> u64 {
        let mut known = self.known();
        known.last += 1;
        known.last
    }

    fn note(&self, number: u64, connection: OpenConnection) {
        // It may have ended before it was noted.
        if !connection.task.is_finished() {
            self.known().by_number.insert(number, connection);
        }
    }

    fn forget(&self, number: u64) {
        self.known().by_number.remove(&number);
        self.ended.notify_one();
    }

    /// Waits until there is room for one more. Whoever asks nothing makes room for others.
    async fn room(&self, most: usize) {
        loop {
            let ended = self.ended.notified();
            if self.known().by_number.len() < most || self.close_the_idlest() {
                return;
            }
            ended.await;
        }
    }

    /// Closes the connection on which nothing is under way for the longest time; `false` if there is none.
    fn close_the_idlest(&self) -> bool {
        let mut known = self.known();
        let unused = known.by_number.iter().filter_map(|(number, open)| Some((open.pace.unused_since()?, *number)));
        let Some((_, number)) = unused.min() else { return false };
        let closed = known.by_number.remove(&number);
        closed.inspect(|closed| closed.task.abort()).is_some()
    }
}

/// A connection's place among the others, free when it has ended.
struct ConnectionPlace {
    open: Arc<OpenConnections>,
    number: u64,
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.open.forget(self.number);
    }
}

/// Carries one connection to its end, or gives it up when it is too slow.
async fn carry(
    (stream, peer): (TcpStream, PeerAddress),
    router: Router,
    pace: Arc<ConnectionPace>,
    stop: CancellationToken,
) {
    let service = PacedService { router: TowerToHyperService::new(router), pace: pace.clone(), peer };
    let stream = TokioIo::new(PacedStream::new(stream, pace.clone()));
    let mut connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_header_size(LONGEST_HEAD)
        // A little more, so that it is the head that is said to be too long.
        .max_buf_size(LONGEST_HEAD + 4096)
        .serve_connection(stream, service);
    let (mut slow, mut stopping) = (pin!(sleep_until(Instant::now())), pin!(stop.cancelled()));
    let mut is_told = false;
    let ended = poll_fn(|cx| {
        if !is_told && stopping.as_mut().poll(cx).is_ready() {
            is_told = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        if connection.poll_without_shutdown(cx).is_ready() {
            return Poll::Ready(ConnectionEnd::Done);
        }
        // Whatever changes the pace happens in the poll above.
        while let Some(deadline) = pace.deadline() {
            if deadline <= Instant::now() {
                return Poll::Ready(ConnectionEnd::TooSlow);
            }
            if slow.deadline() > deadline || slow.as_mut().poll(cx).is_ready() {
                slow.as_mut().reset(deadline);
                continue;
            }
            break;
        }
        Poll::Pending
    });
    if matches!(ended.await, ConnectionEnd::Done) {
        let stream = connection.into_parts().io.into_inner().into_inner();
        stop.run_until_cancelled(linger(stream)).await;
    }
}

enum ConnectionEnd {
    Done,
    TooSlow,
}

/// Says that nothing more comes, and waits a little for the other end to say so too: a connection that is closed while
/// something of it is unread takes its last answer with it.
async fn linger(mut stream: TcpStream) {
    let until_the_end = async {
        stream.shutdown().await?;
        let mut unread = [0; 4096];
        while stream.read(&mut unread).await? > 0 {}
        io::Result::Ok(())
    };
    // Whoever goes on is not listened to.
    _ = timeout(LINGER, until_the_end).await;
}

/// Answers the requests of one connection, and tells its pace.
struct PacedService {
    router: TowerToHyperService<Router>,
    pace: Arc<ConnectionPace>,
    peer: PeerAddress,
}

impl Service<Request<Incoming>> for PacedService {
    type Response = Response<PacedBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        self.pace.head_came();
        request.extensions_mut().insert(self.peer);
        let (answer, pace) = (self.router.call(request), self.pace.clone());
        Box::pin(async move {
            let response = answer.await?;
            pace.answer_begins();
            Ok(response.map(|body| PacedBody { body, pace }))
        })
    }
}

/// The body of an answer; when it is gone, the answer has ended.
struct PacedBody {
    body: Body,
    pace: Arc<ConnectionPace>,
}

impl HttpBody for PacedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for PacedBody {
    fn drop(&mut self) {
        self.pace.answer_ended();
    }
}

#[cfg(test)]
mod tests;
