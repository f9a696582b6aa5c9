//! What an operator allows.

use haft_sandbox::web::{AllowRemedy, AllowedHost, WebRules};

fn rules(allowed: &[&str]) -> WebRules {
    WebRules { allowed: allowed.iter().map(|entry| entry.parse().unwrap()).collect(), ..WebRules::default() }
}

#[test]
fn an_entry_allows_what_it_names_and_nothing_beside_it() {
    for (entry, url, expected) in [
        ("127.0.0.1:9000", "http://127.0.0.1:9000/", true),
        ("127.0.0.1:9000", "http://127.1:9000/", true),
        ("127.0.0.1:9000", "http://[::ffff:127.0.0.1]:9000/", true),
        ("127.0.0.1:9000", "http://127.0.0.1:9001/", false),
        ("127.0.0.1:9000", "http://127.0.0.1/", false),
        ("127.0.0.1:9000", "http://127.0.0.2:9000/", false),
        ("127.0.0.1:9000", "http://localhost:9000/", false),
        ("127.0.0.1:9000", "http://example.org:9000/", false),
        ("127.0.0.1", "http://127.0.0.1:8080/", true),
        ("127.0.0.1", "http://127.0.0.1:9000/", false),
        ("[::1]:9000", "http://[::1]:9000/", true),
        ("::1", "http://[::1]/", true),
        ("10.1.0.0/16", "http://10.1.255.255/", true),
        ("10.1.0.0/16", "http://10.2.0.0/", false),
        ("10.1.0.0/16", "http://[::ffff:10.1.0.1]/", true),
        ("fd00::/8", "http://[fd12::1]/", true),
        ("fd00::/8", "http://[fc12::1]/", false),
        ("wiki.local", "http://wiki.local/", true),
        ("wiki.local", "http://WIKI.local./", true),
        ("wiki.local", "http://other.wiki.local/", false),
        ("wiki.local", "http://wiki.local:9000/", false),
        ("wiki:9000", "http://wiki:9000/", true),
        ("example.org:9000", "http://example.org:9000/", true),
        ("example.org:9000", "http://example.org/", true),
        ("127.0.0.1:9000", "ftp://127.0.0.1:9000/", false),
        ("127.0.0.1:9000", "http://me@127.0.0.1:9000/", false),
    ] {
        assert_eq!(rules(&[entry]).target(url).is_ok(), expected, "{entry} {url}");
    }
}

#[test]
fn an_entry_is_shown_as_it_is_written() {
    for entry in ["127.0.0.1:9000", "127.0.0.1", "[::1]:9000", "10.1.0.0/16", "fd00::/8", "wiki.local", "wiki:9000"] {
        assert_eq!(entry.parse::<AllowedHost>().unwrap().to_string(), entry);
    }
    for wrong in ["", "10.0.0.0/33", "10.0/8", "fd00::/129", "a b", "wiki:0", "wiki:70000", "http://wiki", "/8"] {
        assert!(wrong.parse::<AllowedHost>().is_err(), "{wrong}");
    }
}

#[test]
fn a_refusal_says_who_can_allow_it() {
    let of_user = rules(&[]).target("http://127.0.0.1:9000/").unwrap_err().to_string();
    assert!(of_user.contains("`web.allow = [\"127.0.0.1:9000\"]` in their own haft.toml"), "{of_user}");
    let of_tenant = WebRules { remedy: AllowRemedy::Tenant("acme".to_owned()), ..WebRules::default() };
    let of_tenant = of_tenant.target("http://[::1]/").unwrap_err().to_string();
    assert!(of_tenant.contains("`haft admin tenant set acme --allow [::1]:80`"), "{of_tenant}");
}
