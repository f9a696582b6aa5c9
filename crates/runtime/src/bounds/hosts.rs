//! Hosts as bounds and lists name them.

/// Whether a pattern such as `docs.rs` or `*.example.org` stands for a host. `*` stands for any letters, dots too;
/// upper and lower case are one.
pub fn host_matches(pattern: &str, host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let pattern = pattern.to_ascii_lowercase();
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == host };
    let Some(mut left) = host.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for piece in middle.split('*').filter(|piece| !piece.is_empty()) {
        let Some(at) = left.find(piece) else { return false };
        left = &left[at + piece.len()..];
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::host_matches;

    #[test]
    fn a_star_stands_for_any_letters() {
        for (pattern, host, expected) in [
            ("docs.rs", "docs.rs", true),
            ("Docs.rs", "docs.RS", true),
            ("docs.rs", "docs.rs.evil.org", false),
            ("docs.rs", "evil-docs.rs", false),
            ("*.example.org", "a.example.org", true),
            ("*.example.org", "a.b.example.org", true),
            ("*.example.org", "example.org", false),
            ("*.example.org", "evilexample.org", false),
            ("*.example.org", "a.example.org.evil.net", false),
            ("*", "anything.net", true),
            ("api-*.example.*", "api-1.example.net", true),
            ("api-*.example.*", "api.example.net", false),
            ("a*b*c", "abbc", true),
            ("a*b*b", "ab", false),
        ] {
            assert_eq!(host_matches(pattern, host), expected, "{pattern} {host}");
        }
    }
}
