//! The hosts that are read from unasked.

use std::str::FromStr;

use haft_runtime::host_matches;
use haft_sandbox::web::WebTarget;

/// Hosts, and where on them, that the user has put on the list: `docs.rs`, `*.example.org`, `example.org/docs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSite {
    host: String,
    port: Option<u16>,
    /// Begins with a slash and does not end with one.
    path: String,
}

/// Why an entry of the list means nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct ListedSiteError(String);

impl std::fmt::Display for ListedSiteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` is no host; write it like `docs.rs`, `*.example.org` or `example.org/docs`", self.0)
    }
}

impl std::error::Error for ListedSiteError {}

impl FromStr for ListedSite {
    type Err = ListedSiteError;

    fn from_str(text: &str) -> Result<Self, ListedSiteError> {
        let (place, path) = text.split_once('/').unwrap_or((text, ""));
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
            Some(_) | None => (place, None),
        };
        let wrong = || ListedSiteError(text.to_owned());
        let port = port.map(str::parse).transpose().map_err(|_| wrong())?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let known = |letter: char| letter.is_ascii_alphanumeric() || "-_.*:".contains(letter);
        if host.is_empty() || !host.chars().all(known) {
            return Err(wrong());
        }
        let path = if path.is_empty() { String::new() } else { format!("/{}", path.trim_end_matches('/')) };
        Ok(Self { host, port, path })
    }
}

impl ListedSite {
    /// Whether it covers a URL: the host, the port if it names one, and the beginning of the path by whole names.
    pub(super) fn covers(&self, target: &WebTarget) -> bool {
        let path = target.url().path().strip_prefix(&self.path);
        host_matches(&self.host, target.host())
            && self.port.is_none_or(|only| only == target.port())
            && path.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

#[cfg(test)]
mod tests {
    use haft_sandbox::web::WebRules;

    use super::ListedSite;

    #[test]
    fn an_entry_covers_a_host_and_the_beginning_of_a_path() {
        for (entry, url, expected) in [
            ("docs.rs", "https://docs.rs/", true),
            ("docs.rs", "https://docs.rs:8443/x?y", true),
            ("docs.rs:443", "https://docs.rs:8443/x?y", false),
            ("docs.rs:443", "https://docs.rs/x", true),
            ("Docs.rs", "https://DOCS.rs./", true),
            ("docs.rs", "https://docs.rs.evil.org/", false),
            ("*.example.org", "https://a.example.org/", true),
            ("*.example.org", "https://example.org/", false),
            ("example.org/docs", "https://example.org/docs", true),
            ("example.org/docs/", "https://example.org/docs/a/b", true),
            ("example.org/docs", "https://example.org/docsx", false),
            ("example.org/docs", "https://example.org/docs/../admin", false),
            ("example.org/docs", "https://example.org/docs/%2e%2e/admin", false),
            ("example.org/docs", "https://example.org/", false),
        ] {
            let target = WebRules::default().target(url).unwrap();
            assert_eq!(entry.parse::<ListedSite>().unwrap().covers(&target), expected, "{entry} {url}");
        }
        for wrong in ["", "/docs", "https://docs.rs", "a b", "docs.rs:x"] {
            assert!(wrong.parse::<ListedSite>().is_err(), "{wrong}");
        }
    }
}
