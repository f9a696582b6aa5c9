//! Why something on the web could not be had.

use std::{io, time::Duration};

/// A rule that forbids a URL. Nothing was sent there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{url}` may not be fetched: {rule}")]
pub struct Refusal {
    /// The URL, without a password that it may carry.
    pub url: String,
    /// Which rule, and what to do.
    pub rule: String,
}

/// Why something on the web could not be had.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// A rule forbids the address.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The name of the host could not be looked up.
    #[error("`{host}` cannot be looked up")]
    Unresolved {
        /// The name.
        host: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// None of the host's addresses could be reached.
    #[error("`{host}` cannot be reached on port {port}")]
    Unreachable {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// What the system said to the last of them.
        #[source]
        source: io::Error,
    },
    /// The connection could not be secured.
    #[error("the connection to `{host}` cannot be secured")]
    Insecure {
        /// The host.
        host: String,
        /// What was wrong.
        #[source]
        source: io::Error,
    },
    /// The system has no certificates to judge others by.
    #[error("no certificates are installed that a host could be judged by: {why}")]
    NoRoots {
        /// What was found instead.
        why: String,
    },
    /// The connection took too long.
    #[error("`{host}` took longer than {} ms to connect", .limit.as_millis())]
    SlowToConnect {
        /// The host.
        host: String,
        /// The limit.
        limit: Duration,
    },
    /// The host was silent for too long.
    #[error("`{host}` was silent for longer than {} ms", .limit.as_millis())]
    Silent {
        /// The host.
        host: String,
        /// The limit.
        limit: Duration,
    },
    /// The time for the whole of it was over.
    #[error("it took longer than it may")]
    Late,
    /// The host said something that is no HTTP, or went away.
    #[error("`{host}` broke off or does not speak HTTP")]
    Broken {
        /// The host.
        host: String,
        /// What was wrong.
        #[source]
        source: hyper::Error,
    },
    /// Every answer was a redirect.
    #[error("it was redirected more than {most} times")]
    TooManyRedirects {
        /// How many are followed.
        most: usize,
    },
    /// The request cannot be written down.
    #[error("the request cannot be written down")]
    Unwritable(#[source] hyper::http::Error),
}

impl WebError {
    /// Whether it is certain that the host got nothing.
    pub fn nothing_sent(&self) -> bool {
        match self {
            Self::Refused(_)
            | Self::Unresolved { .. }
            | Self::Unreachable { .. }
            | Self::Insecure { .. }
            | Self::NoRoots { .. }
            | Self::SlowToConnect { .. }
            | Self::Unwritable(_) => true,
            Self::Silent { .. } | Self::Late | Self::Broken { .. } | Self::TooManyRedirects { .. } => false,
        }
    }
}
