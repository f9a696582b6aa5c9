//! Certificates and the handshake that makes a connection a secure one.

use std::{
    io,
    sync::{Arc, OnceLock},
};

use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{error::WebError, rules::WebTarget};

/// The system's certificates, read when the first secure connection is made, once for all who share this.
#[derive(Clone, Debug, Default)]
pub(super) struct Tls(Arc<OnceLock<Result<Arc<ClientConfig>, String>>>);

impl Tls {
    /// What secure connections are made with.
    pub(super) fn connector(&self) -> Result<TlsConnector, WebError> {
        match self.0.get_or_init(configured) {
            Ok(config) => Ok(TlsConnector::from(Arc::clone(config))),
            Err(why) => Err(WebError::NoRoots { why: why.clone() }),
        }
    }
}

fn configured() -> Result<Arc<ClientConfig>, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (usable, _broken) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        let why = found.errors.first().map_or_else(|| "none was found".to_owned(), ToString::to_string);
        return Err(format!("{why}; install the package ca-certificates, or name a file in SSL_CERT_FILE"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = versions.map_err(|err| err.to_string())?.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Makes a connection a secure one, with the host that the URL names and nobody else.
pub(super) async fn secured(
    connector: &TlsConnector,
    stream: TcpStream,
    target: &WebTarget,
) -> io::Result<TlsStream<TcpStream>> {
    let name = match target.address() {
        Some(address) => ServerName::IpAddress(address.into()),
        None => ServerName::try_from(target.host().to_owned()).map_err(io::Error::other)?,
    };
    connector.connect(name, stream).await
}
