//! Sending mail by SMTP. Every step has a limit: a server that hangs or talks for ever costs no more than that.

use std::{
    error::Error as _,
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use lettre::{
    Address, Message,
    transport::smtp::{
        Error as SmtpError,
        authentication::{Credentials, DEFAULT_MECHANISMS},
        client::{AsyncSmtpConnection, AsyncTokioStream, TlsParameters},
        extension::ClientId,
    },
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::Semaphore,
};

use crate::plain_text::plain_line;

/// The most that a server may say before it is its turn to listen, with what secures the connection.
const MOST_SAID: usize = 32 << 10;
/// The most that is told of what it said.
const MOST_TOLD: usize = 300;

/// How a connection with a mail server is secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailTls {
    /// Not at all.
    None,
    /// By STARTTLS, or not used.
    Starttls,
    /// From the beginning.
    Tls,
}

/// The server that takes mail.
#[derive(Clone)]
pub struct MailServer {
    /// Its name.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is secured.
    pub tls: MailTls,
    /// The name and the password that it knows haft by.
    pub login: Option<(String, String)>,
    /// Whom mail comes from.
    pub from: lettre::message::Mailbox,
    /// How long one mail may take, with everything.
    pub timeout: Duration,
}

/// Sends mail, one after the other.
pub struct Mailer {
    server: MailServer,
    /// One delivery at a time: a server that hangs holds up no other work.
    pub(super) turn: Semaphore,
}

/// Why a mail did not go out.
#[derive(Debug)]
pub(super) enum MailFailure {
    /// The server will not take it for this person, today or tomorrow.
    Refused(String),
    /// The server does not take it for this person now.
    Later(String),
    /// The server could not be talked with; no other mail goes out either.
    Unreachable(String),
}

impl MailFailure {
    /// What happened.
    pub(super) fn told(&self) -> &str {
        match self {
            Self::Refused(why) | Self::Later(why) | Self::Unreachable(why) => why,
        }
    }
}

impl Mailer {
    /// By this server.
    pub fn new(server: MailServer) -> Self {
        Self { server, turn: Semaphore::new(1) }
    }

    pub(super) fn from(&self) -> &lettre::message::Mailbox {
        &self.server.from
    }

    /// What stands behind `@` in the ids of mails.
    pub(super) fn domain(&self) -> &str {
        Address::domain(&self.server.from.email)
    }

    /// Sends one mail. The connection is kept for the next one, as long as nothing is wrong.
    pub(super) async fn send(
        &self,
        connection: &mut Option<AsyncSmtpConnection>,
        mail: &Message,
    ) -> Result<(), MailFailure> {
        let sent = tokio::time::timeout(self.server.timeout, async {
            let mut open = match connection.take().filter(|open| !open.has_broken()) {
                Some(open) => open,
                None => self.connect().await.map_err(MailFailure::Unreachable)?,
            };
            open.send(mail.envelope(), &mail.formatted()).await.map_err(|err| self.failure(&err))?;
            *connection = Some(open);
            Ok(())
        });
        let late = || format!("the mail server did not answer within {} s", self.server.timeout.as_secs());
        sent.await.unwrap_or_else(|_| Err(MailFailure::Unreachable(late())))
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, String> {
        let server = &self.server;
        let told = |err: SmtpError| self.told(&err);
        let (place, hello) = ((server.host.as_str(), server.port), ClientId::Domain(self.domain().to_owned()));
        let tls = || TlsParameters::new_rustls(server.host.clone()).map_err(told);
        let mut open = match server.tls {
            MailTls::Tls => {
                AsyncSmtpConnection::connect_tokio1(place, Some(server.timeout), &hello, Some(tls()?), None)
                    .await
                    .map_err(told)?
            }
            MailTls::None | MailTls::Starttls => {
                let unreachable = |err| format!("{}:{} cannot be reached: {err}", server.host, server.port);
                let stream = TcpStream::connect(place).await.map_err(unreachable)?;
                let stream = BoundedStream { stream, left: MOST_SAID };
                AsyncSmtpConnection::connect_with_transport(Box::new(stream), &hello).await.map_err(told)?
            }
        };
        if server.tls == MailTls::Starttls {
            open.starttls(tls()?, &hello).await.map_err(told)?;
        }
        if let Some((user, password)) = &server.login {
            let credentials = Credentials::new(user.clone(), password.clone());
            open.auth(DEFAULT_MECHANISMS, &credentials).await.map_err(told)?;
        }
        Ok(open)
    }

    fn failure(&self, err: &SmtpError) -> MailFailure {
        let told = self.told(err);
        match (err.is_permanent(), err.is_transient() || err.is_client()) {
            (true, _) => MailFailure::Refused(told),
            (false, true) => MailFailure::Later(told),
            (false, false) => MailFailure::Unreachable(told),
        }
    }

    /// What went wrong, in one line without the password.
    fn told(&self, err: &SmtpError) -> String {
        let mut told = err.to_string();
        let mut source = err.source();
        while let Some(cause) = source {
            let cause_told = cause.to_string();
            if !told.contains(&cause_told) {
                told = format!("{told}: {cause_told}");
            }
            source = cause.source();
        }
        if let Some((_, password)) = &self.server.login {
            told = told.replace(password.as_str(), "[redacted]");
        }
        plain_line(&told, MOST_TOLD)
    }
}

/// A connection on which only so much can be read between two writes: a server that talks for ever costs neither memory nor
/// time.
#[derive(Debug)]
struct BoundedStream {
    stream: TcpStream,
    left: usize,
}

impl AsyncTokioStream for BoundedStream {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }
}

impl AsyncRead for BoundedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        match self.left.checked_sub(buf.filled().len() - before) {
            Some(left) => {
                self.left = left;
                read
            }
            None => Poll::Ready(Err(io::Error::other("the mail server says more than any mail server would"))),
        }
    }
}

impl AsyncWrite for BoundedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.left = MOST_SAID;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
