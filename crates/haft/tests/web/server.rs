//! A server on this machine that says what a test tells it to, and a haft that may reach it.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
    time::Duration,
};

use crate::support::Fixture;

/// A server; each connection is one request.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Receiver<String>,
}

impl Server {
    pub(crate) fn new(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, requests) = channel();
        let answer = Arc::new(answer);
        // It ends with the test process; a server has nothing to put away.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let (answer, tell) = (Arc::clone(&answer), tell.clone());
                std::thread::spawn(move || {
                    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                    let request = read_request(&stream);
                    let _gone = tell.send(request.clone());
                    answer(&request, &mut stream);
                });
            }
        });
        Self { address, requests }
    }

    /// One that always gives the same page.
    pub(crate) fn page(kind: &str, body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut answer =
            format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
        answer.extend_from_slice(body);
        Self::new(move |_, stream| {
            let _gone = stream.write_all(&answer);
        })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The next request that came.
    pub(crate) fn request(&self) -> String {
        self.requests.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    /// How many more requests came.
    pub(crate) fn others(&self) -> usize {
        self.requests.try_iter().count()
    }
}

/// The head and the body of a request.
fn read_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut request, mut length) = (String::new(), 0);
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

/// Writes the user's own settings.
pub(crate) fn settings(fixture: &Fixture, text: &str) {
    let folder = fixture.home.join(".config/haft");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("haft.toml"), text).unwrap();
}

/// A haft that may reach these servers, and reads from them unasked.
pub(crate) fn reaching(servers: &[&Server]) -> Fixture {
    let fixture = Fixture::new();
    let all: Vec<String> = servers.iter().map(|server| server.address.to_string()).collect();
    settings(
        &fixture,
        &format!("web.silence = '10s'\nweb.connect = '10s'\nweb.allow = {all:?}\nweb.allowlist = {all:?}\n"),
    );
    fixture
}
