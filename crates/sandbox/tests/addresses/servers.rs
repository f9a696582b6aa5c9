//! Servers on this machine that say what a test tells them to.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, channel},
    },
    time::Duration,
};

/// A server; each connection is one request, answered by a function of the test.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    hits: Arc<AtomicUsize>,
    requests: Receiver<String>,
}

impl Server {
    pub(crate) fn new(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let hits = Arc::new(AtomicUsize::new(0));
        let (counted, (tell, requests)) = (Arc::clone(&hits), channel());
        let answer = Arc::new(answer);
        // It ends with the test process; a server has nothing to put away.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                counted.fetch_add(1, Ordering::SeqCst);
                let (answer, tell) = (Arc::clone(&answer), tell.clone());
                std::thread::spawn(move || {
                    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                    let request = read_request(&stream);
                    let _gone = tell.send(request.clone());
                    answer(&request, &mut stream);
                });
            }
        });
        Self { address, hits, requests }
    }

    /// One that always says the same.
    pub(crate) fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::new(move |_, stream| {
            let _gone = stream.write_all(&answer);
        })
    }

    /// One that redirects to a place.
    pub(crate) fn redirecting(status: u16, to: impl Into<String>) -> Self {
        let to = to.into();
        Self::saying(format!("HTTP/1.1 {status} X\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n"))
    }

    pub(crate) fn hits(&self) -> usize {
        self.hits.load(Ordering::SeqCst)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The next request that came.
    pub(crate) fn request(&self) -> String {
        self.requests.recv_timeout(Duration::from_secs(20)).unwrap()
    }
}

/// The head and the body of a request.
fn read_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return request;
        }
        if let Some(said) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = said.trim().parse().unwrap();
        }
        request.push_str(&line);
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    request + &String::from_utf8(body).unwrap()
}
