//! From a checked URL to a connection with a checked address.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::{Instant, timeout_at},
};

use super::{client::WebClient, error::WebError, rules::WebTarget, tls::secured};

/// Something that bytes go through both ways.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

impl WebClient {
    /// Looks the host up, checks what was found and connects to that very address. Looking up, connecting and securing
    /// have one limit together.
    pub(super) async fn dial(&self, target: &WebTarget) -> Result<Box<dyn Duplex>, WebError> {
        let connector = if target.is_secure() { Some(self.tls.connector()?) } else { None };
        let limit = self.limits.connect;
        let until = Instant::now() + limit;
        let slow = |_| WebError::SlowToConnect { host: target.host().to_owned(), limit };
        let addresses = timeout_at(until, self.addresses(target)).await.map_err(slow)??;
        let stream = reached(&addresses, until).await.map_err(|source| {
            let host = target.host().to_owned();
            if source.kind() == io::ErrorKind::TimedOut {
                return WebError::SlowToConnect { host, limit };
            }
            WebError::Unreachable { host, port: target.port(), source }
        })?;
        // Small requests must not wait for company; where that cannot be said they only come later.
        let _later = stream.set_nodelay(true);
        let Some(connector) = connector else { return Ok(Box::new(stream)) };
        let insecure = |source| WebError::Insecure { host: target.host().to_owned(), source };
        let secured = timeout_at(until, secured(&connector, stream, target)).await.map_err(slow)?;
        Ok(Box::new(secured.map_err(insecure)?))
    }

    /// Invariant: every address that is dialled has been checked here, and is not looked up again.
    async fn addresses(&self, target: &WebTarget) -> Result<Vec<SocketAddr>, WebError> {
        let found = match target.address() {
            Some(address) => vec![address],
            None => {
                let unresolved = |source| WebError::Unresolved { host: target.host().to_owned(), source };
                self.resolver.look_up(target.host()).await.map_err(unresolved)?
            }
        };
        Ok(self.rules.addresses(target, &found)?)
    }
}

/// Tries one address after the other, each for its share of the time that is left.
async fn reached(addresses: &[SocketAddr], until: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::TimedOut);
    for (tried, address) in addresses.iter().enumerate() {
        let left = until.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        match connected(*address, share).await {
            Ok(stream) => return Ok(stream),
            Err(err) => last = err,
        }
    }
    Err(last)
}

async fn connected(address: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    let connecting = tokio::time::timeout(limit, TcpStream::connect(address));
    connecting.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
