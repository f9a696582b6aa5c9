//! Something between a node and its PostgreSQL that delays, holds or cuts what they say.

use std::{
    io::{Read, Write},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::http_client::until;

const SOCKET: &str = ".s.PGSQL.5432";

/// What becomes of what passes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProxyMode {
    /// It passes.
    Open,
    /// Every answer comes so much later.
    Late(Duration),
    /// Nothing passes, and nobody is told so.
    Silent,
    /// Nothing passes after the next transaction that speaks of this has been committed.
    SilentAfter(&'static str),
    /// The next commit of a node reaches the server so much later, and the node's connection breaks at once.
    CutCommit(Duration),
}

/// A way to the server.
pub(crate) struct Proxy {
    folder: TempDir,
    url: String,
    mode: Arc<Mutex<ProxyMode>>,
}

impl Proxy {
    /// Before the server of an address.
    pub(crate) fn before(url: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let host = url.split(['@', '/']).find(|part| part.contains("%2F")).unwrap();
        let server = PathBuf::from(host.replace("%2F", "/")).join(SOCKET);
        let here = folder.path().to_str().unwrap().replace('/', "%2F");
        let (url, mode) = (url.replace(host, &here), Arc::new(Mutex::new(ProxyMode::Open)));
        let listener = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
        let shared = Arc::clone(&mode);
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let far = UnixStream::connect(&server).unwrap();
                let (from_near, to_near) = (near.try_clone().unwrap(), near);
                let (from_far, to_far) = (far.try_clone().unwrap(), far);
                let passage = Arc::new(Passage { mode: Arc::clone(&shared), is_last: AtomicBool::new(false) });
                let back = Arc::clone(&passage);
                thread::spawn(move || passage.requests(from_near, to_far));
                thread::spawn(move || back.answers(from_far, to_near));
            }
        });
        Self { folder, url, mode }
    }

    /// The address that leads through here.
    pub(crate) fn url(&self) -> String {
        assert!(self.folder.path().exists());
        self.url.clone()
    }

    pub(crate) fn set(&self, mode: ProxyMode) {
        *self.mode.lock().unwrap() = mode;
    }
}

/// One connection.
struct Passage {
    mode: Arc<Mutex<ProxyMode>>,
    /// After the next answer nothing passes.
    is_last: AtomicBool,
}

impl Passage {
    fn requests(&self, mut from: UnixStream, mut to: UnixStream) {
        let (mut bytes, mut was_spoken_of) = ([0; 64 << 10], false);
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            let said = String::from_utf8_lossy(&bytes[..count]).into_owned();
            match self.now() {
                ProxyMode::CutCommit(late) if said.contains("commit") => {
                    *self.mode.lock().unwrap() = ProxyMode::Open;
                    from.shutdown(Shutdown::Both).ok();
                    pause(late);
                    to.write_all(&bytes[..count]).ok();
                    // What the server says is nobody's any more; it is read so that the server comes to its end.
                    to.set_read_timeout(Some(Duration::from_secs(1))).ok();
                    while let Ok(1..) = to.read(&mut bytes) {}
                    break;
                }
                ProxyMode::SilentAfter(word) => {
                    was_spoken_of |= said.contains(word);
                    self.is_last.fetch_or(was_spoken_of && said.contains("commit"), Ordering::SeqCst);
                }
                ProxyMode::Open | ProxyMode::Late(_) | ProxyMode::Silent | ProxyMode::CutCommit(_) => {}
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        end(&from, &to);
    }

    fn answers(&self, mut from: UnixStream, mut to: UnixStream) {
        let mut bytes = [0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if let ProxyMode::Late(time) = self.now() {
                pause(time);
            }
            if self.is_last.swap(false, Ordering::SeqCst) {
                *self.mode.lock().unwrap() = ProxyMode::Silent;
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        end(&from, &to);
    }

    /// What holds now, as soon as anything passes.
    fn now(&self) -> ProxyMode {
        until(|| Some(*self.mode.lock().unwrap()).filter(|mode| *mode != ProxyMode::Silent))
    }
}

fn end(one: &UnixStream, other: &UnixStream) {
    one.shutdown(Shutdown::Both).ok();
    other.shutdown(Shutdown::Both).ok();
}

fn pause(time: Duration) {
    let end = Instant::now() + time;
    until(|| (Instant::now() >= end).then_some(()));
}
