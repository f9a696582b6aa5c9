//! Which URLs may be fetched: the rules, and the type that proves that they were kept.

use std::net::{IpAddr, SocketAddr};

use url::{Host, Url};

use super::{
    address,
    allowed_host::AllowedHost,
    error::Refusal,
    name::{self, without_last_dot},
};

/// The ports that web servers usually have.
pub const PORTS: &[u16] = &[80, 443, 8080, 8443];

/// What may be reached: public addresses on these ports, and what an operator allows beside them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebRules {
    /// The ports that may be dialled.
    pub ports: Vec<u16>,
    /// What an operator allows although it is not public.
    pub allowed: Vec<AllowedHost>,
    /// How something that is refused can be allowed.
    pub remedy: AllowRemedy,
}

/// How something that is refused can be allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AllowRemedy {
    /// By a line in the user's own settings.
    #[default]
    Settings,
    /// By the operator, for the tenant of this name.
    Tenant(String),
}

impl Default for WebRules {
    fn default() -> Self {
        Self { ports: PORTS.to_vec(), allowed: Vec::new(), remedy: AllowRemedy::Settings }
    }
}

/// A URL that keeps the rules, as far as that can be told without looking its host up. Only `WebRules` makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebTarget {
    url: Url,
    host: String,
    address: Option<IpAddr>,
    port: u16,
}

impl WebRules {
    /// Checks a URL as somebody wrote it.
    pub fn target(&self, text: &str) -> Result<WebTarget, Refusal> {
        match Url::parse(text) {
            Ok(url) => self.check(url),
            Err(err) => {
                let rule = format!("it is no URL ({err}); write it whole, like `https://example.org/page`");
                Err(Refusal { url: text.to_owned(), rule })
            }
        }
    }

    /// Checks a URL.
    pub fn check(&self, url: Url) -> Result<WebTarget, Refusal> {
        match self.part(&url) {
            Ok((host, address, port)) => Ok(WebTarget { url, host, address, port }),
            Err(rule) => Err(Refusal { url: without_credentials(url), rule }),
        }
    }

    fn part(&self, url: &Url) -> Result<(String, Option<IpAddr>, u16), String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("only http and https are fetched, not {}", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("a URL must not carry a name or a password; put them into a header".to_owned());
        }
        let port = url.port_or_known_default().unwrap_or_default();
        let (host, address) = match url.host().ok_or("it names no host")? {
            Host::Domain(name) => (without_last_dot(name).to_owned(), None),
            Host::Ipv4(address) => (address.to_string(), Some(IpAddr::V4(address))),
            Host::Ipv6(address) => (address.to_string(), Some(IpAddr::V6(address))),
        };
        let exception = self.exception(&host, address, port);
        let wrong = match address {
            Some(address) => address::not_public(address).map(|what| format!("is {what}")),
            None => name::not_public(&host),
        };
        if let Some(wrong) = wrong.filter(|_| exception.is_none()) {
            return Err(format!("`{host}` {wrong}; {}", self.remedy.told(&host, port)));
        }
        let usual = self.ports.contains(&port) || exception.is_some_and(|allowed| allowed.names_port(port));
        if !usual {
            let usual: Vec<String> = self.ports.iter().map(u16::to_string).collect();
            let ports = usual.join(", ");
            return Err(format!(
                "port {port} is none of the allowed ones ({ports}); {}",
                self.remedy.told(&host, port)
            ));
        }
        Ok((host, address, port))
    }

    /// Checks what a name was looked up as. One bad answer spoils all: whoever gives it may give it alone next time.
    pub(super) fn addresses(&self, target: &WebTarget, found: &[IpAddr]) -> Result<Vec<SocketAddr>, Refusal> {
        let (host, port) = (&target.host, target.port);
        let bad = |address: &IpAddr| {
            let what = address::not_public(*address)?;
            self.exception(host, Some(*address), port).is_none().then_some((*address, what))
        };
        if let Some((address, what)) = found.iter().find_map(bad) {
            let rule = format!("`{host}` leads to {address}, {what}; {}", self.remedy.told(host, port));
            return Err(Refusal { url: target.url.to_string(), rule });
        }
        Ok(found.iter().map(|address| SocketAddr::new(*address, port)).collect())
    }

    /// What an operator said about a host; an entry with a port of its own comes first.
    fn exception(&self, host: &str, address: Option<IpAddr>, port: u16) -> Option<&AllowedHost> {
        let fits = |allowed: &&AllowedHost| {
            allowed.names(host, port) || address.is_some_and(|address| allowed.holds(address, port))
        };
        let fitting = || self.allowed.iter().filter(fits);
        fitting().find(|allowed| allowed.names_port(port)).or_else(|| fitting().next())
    }
}

impl WebTarget {
    /// The URL.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The name or address of the host, without brackets and without a last dot.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address, when the URL has one in the place of a name.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// Whether it is fetched through TLS.
    pub(super) fn is_secure(&self) -> bool {
        self.url.scheme() == "https"
    }
}

impl AllowRemedy {
    fn told(&self, host: &str, port: u16) -> String {
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        match self {
            Self::Settings => {
                format!("a person can allow it with `web.allow = [\"{host}:{port}\"]` in their own haft.toml")
            }
            Self::Tenant(tenant) => {
                format!("the operator can allow it with `haft admin tenant set {tenant} --allow {host}:{port}`")
            }
        }
    }
}

/// What may be shown of a URL.
fn without_credentials(mut url: Url) -> String {
    // Both fail only for URLs that cannot have any.
    let _none = url.set_username("").and_then(|()| url.set_password(None));
    url.to_string()
}
