//! How names of hosts become addresses.

use std::{
    fmt, io,
    net::{IpAddr, ToSocketAddrs},
    sync::Arc,
};

type LookUp = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

/// Looks names of hosts up. It blocks, and is asked once for each connection.
#[derive(Clone)]
pub struct Resolver(Arc<LookUp>);

impl Resolver {
    /// One that asks the system, as every program does.
    pub fn of_system() -> Self {
        Self::new(|host| Ok((host, 0).to_socket_addrs()?.map(|found| found.ip()).collect()))
    }

    /// One that asks somebody else.
    pub fn new(look_up: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(look_up))
    }

    /// The addresses of a host, at least one.
    pub(super) async fn look_up(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let (look_up, host) = (Arc::clone(&self.0), host.to_owned());
        let looked = tokio::task::spawn_blocking(move || look_up(&host)).await;
        let found = looked.unwrap_or_else(|fault| Err(io::Error::other(fault)))?;
        if found.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it has no addresses"));
        }
        Ok(found)
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}
