//! Logins that somebody else wants: forged answers, other authorization servers, addresses that are nobody's to ask.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    added,
    guarded_peer::{GuardedPeer, path_of, said_yes},
    http_client::person::Person,
    is_nobody, link, log_in, logged_in, site, text, whoami,
};

#[test]
fn an_answer_counts_once_for_whoever_began_it_where_they_are_signed_in() {
    let peer = GuardedPeer::start();
    let served = site(&peer);
    let [ann, bob] =
        ["ann", "bob"].map(|name| Person::added(&served, &format!("{name}@acme.example"), "acme", "admin"));
    added(&ann, &peer, &json!({}));
    let back = path_of(&said_yes(&link(&ann), "ann"));
    let stranger = served.text(&back);
    assert!(
        stranger.contains(" 401 ") && stranger.contains("Nobody is signed in to haft in this browser."),
        "{stranger}"
    );
    let other = bob.get(&back);
    assert!(other.status == 400 && text(&other).contains("was not begun here by you"), "{other:?}");
    // Another sign-in of the same person is another browser.
    assert_eq!(ann.post("/api/me/password", json!({"password": "correct horse"})).status, 200);
    let elsewhere = Person::by_password(&served, "ann@acme.example", "correct horse");
    assert_eq!(elsewhere.get(&back).status, 400);
    is_nobody(&whoami(&bob));
    assert_eq!(peer.count("token"), 0, "nobody's code was sent anywhere");
    assert_eq!(ann.get(&back).status, 200);
    let again = ann.get(&back);
    assert!(again.status == 400 && text(&again).contains("Not logged in"), "{again:?}");
    assert_eq!((whoami(&ann)["result"]["content"].clone(), peer.count("token")), (json!("ann"), 1));
    // Whoever takes too long begins again.
    let late = path_of(&said_yes(&link(&ann), "ann"));
    let database = rusqlite::Connection::open(served.data().join("haft.db")).unwrap();
    database.execute("update upstream_login_attempts set expires_at = 1", ()).unwrap();
    assert_eq!((ann.get(&late).status, peer.count("token")), (400, 1));
    for forged in ["/servers/login", "/servers/login?state=x&code=y", "/servers/login?state=&code="] {
        assert_eq!(ann.get(forged).status, 400, "{forged}");
    }
}

#[test]
fn the_page_leads_nowhere_and_shows_nothing_of_what_it_is_given() {
    let peer = GuardedPeer::start();
    let served = site(&peer);
    let ann = Person::added(&served, "ann@acme.example", "acme", "admin");
    added(&ann, &peer, &json!({}));
    let bad = "<script>alert(1)</script>";
    let begun = link(&ann);
    let state = begun.split("state=").nth(1).unwrap().split('&').next().unwrap();
    let iss = format!("http://{}", peer.host());
    let page = ann.get(&format!(
        "/servers/login?state={state}&error=%3Cscript%3Ealert(1)%3C/script%3E&iss={iss}&to=https://evil.example"
    ));
    let shown = text(&page);
    assert!(page.status == 400 && !shown.contains(bad) && !shown.contains("evil.example"), "{shown}");
    assert!(page.header("location").is_none() && page.header("content-security-policy").is_some(), "{page:?}");
    assert!(shown.contains("The authorization server gave no login") || shown.contains("gave no login"), "{shown}");
}

#[test]
fn what_does_not_fit_is_not_believed() {
    let peer = GuardedPeer::start();
    let served = site(&peer);
    let ann = Person::added(&served, "ann@acme.example", "acme", "admin");
    added(&ann, &peer, &json!({}));
    let here = format!("http://{}", peer.host());
    let refused: [(Value, &str); 8] = [
        (json!({"issuer": "https://other.example"}), "calls itself `https://other.example/`"),
        (json!({"resource": "https://other.example/mcp"}), "is about another address"),
        (json!({"resource": format!("{here}/mcp/more")}), "is about another address"),
        (json!({"authorization_server": "http://127.0.0.1:9"}), "may not be fetched"),
        (json!({"authorization_server": "http://169.254.169.254"}), "may not be fetched"),
        (json!({"metadata_at": "http://10.0.0.1"}), "may not be fetched"),
        (json!({"pkce": ["plain"]}), "does not know PKCE with S256"),
        (json!({"token_endpoint": "ftp://127.0.0.1/token"}), "is no https address"),
    ];
    for (fault, why) in refused {
        peer.fault(&fault);
        let begun = ann.post("/api/servers/docs/login", json!({}));
        assert!(begun.status == 503 && begun.body.to_string().contains(why), "{fault}: {begun:?}");
        let names: Vec<&String> = fault.as_object().unwrap().keys().collect();
        let pkce = if names == ["pkce"] { json!(["S256"]) } else { Value::Null };
        peer.fault(&json!({ names[0]: pkce }));
    }
    assert_eq!((peer.count("register"), peer.count("token")), (0, 0), "nothing was told to anybody");

    // Another authorization server answers in the place of the one that was asked.
    for iss in ["https://other.example", &format!("{here}/"), ""] {
        peer.fault(&json!({"iss": iss}));
        let back = log_in(&ann, "ann");
        assert_eq!(back.status, 400, "{iss}: {back:?}");
    }
    assert_eq!(peer.count("token"), 0, "no code was sent");
    peer.fault(&json!({"iss": null, "token_endpoint": "http://127.0.0.1:9/token"}));
    let back = log_in(&ann, "ann");
    assert!(back.status == 400 && text(&back).contains("may not be fetched"), "{}", text(&back));
    peer.fault(&json!({"token_endpoint": null, "token": "huge"}));
    let back = log_in(&ann, "ann");
    assert!(back.status == 400 && text(&back).contains("more than 256 KiB"), "{}", text(&back));
    peer.fault(&json!({"token": "redirect"}));
    let back = log_in(&ann, "ann");
    assert!(back.status == 400 && text(&back).contains("redirects elsewhere"), "{}", text(&back));
    peer.fault(&json!({"token": "hang"}));
    let begun = Instant::now();
    let back = log_in(&ann, "ann");
    assert!(back.status == 400 && begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    peer.fault(&json!({"token": null}));
    is_nobody(&whoami(&ann));
    logged_in(&ann, "ann");
}

#[test]
fn a_secret_of_a_client_goes_only_to_the_hosts_that_it_names() {
    let peer = GuardedPeer::start();
    let served = site(&peer);
    let ann = Person::added(&served, "ann@acme.example", "acme", "admin");
    for wrong in [
        json!({"clientSecret": "{{secret:APP}}"}),
        json!({"clientId": "haft", "clientSecret": "in-the-open"}),
        json!({"scopes": ["a b"]}),
        json!({"for": "everybody"}),
        json!({"clientID": "haft"}),
    ] {
        let refused = ann.post("/api/servers", crate::entry(&peer, &wrong));
        assert_eq!((refused.status, &refused.body["error"]["code"]), (400, &json!("INVALID_ARGS")), "{wrong}");
    }
    let set =
        ann.ask("PUT", "/api/secrets/APP", Some(json!({"value": "s3cr3t-of-app", "hosts": ["elsewhere.example"]})));
    assert!(set.status < 300, "{set:?}");
    added(&ann, &peer, &json!({"clientId": "haft", "clientSecret": "{{secret:APP}}"}));
    let refused = ann.post("/api/servers/docs/login", json!({}));
    assert!(
        refused.status == 403 && refused.body.to_string().contains("may not be sent to `127.0.0.1`"),
        "{refused:?}"
    );
    ann.ask("PUT", "/api/secrets/APP", Some(json!({"value": "s3cr3t-of-app", "hosts": ["127.0.0.1"]})));
    let begun = link(&ann);
    assert!(begun.contains("client_id=haft") && !begun.contains("s3cr3t"), "{begun}");
    logged_in(&ann, "ann");
    assert_eq!(whoami(&ann)["result"]["content"], "ann");
    assert_eq!(peer.count("register"), 0);
}
