//! Signing in with a provider of OpenID Connect: there and back, who that is, and everything that a wrong provider, a thief or
//! a stranger may try.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod http_client;
mod oidc;

use http_client::{Answer, Gateway, fetch, person::Person};
use oidc::{Browser, Provider};
use serde_json::{Value, json};

/// A gateway with the providers that one scripted one plays, and Ann and Bob.
struct Site {
    provider: Provider,
    served: Gateway,
}

impl Site {
    fn new() -> Self {
        Self::with("")
    }

    fn with(more: &str) -> Self {
        let provider = Provider::scripted();
        let url = &provider.url;
        let mut settings = more.to_owned();
        for name in ["good", "mismatch", "hang", "large", "script"] {
            settings += &format!(
                "[auth.oidc.{name}]\nissuer = \"{url}/{name}\"\nclient_id = \"haft\"\nclient_secret = \"secret:SSO\"\n\
                 label = \"Acme {name}\"\nprivate = true\n"
            );
        }
        settings += "[auth.oidc.good.join]\ntenant = \"acme\"\nrole = \"viewer\"\ndomains = [\"join.example\"]\n";
        // An address of this machine that nobody called private, and one where nobody is.
        let https = url.replace("http://", "https://");
        settings += &format!("[auth.oidc.near]\nissuer = \"{https}/good\"\nclient_id = \"haft\"\n");
        settings += "[auth.oidc.gone]\nissuer = \"http://127.0.0.1:9/\"\nclient_id = \"haft\"\nprivate = true\n";
        let served = Gateway::start_among(&settings, &[("SSO", "s/cret+of-haft"), ("HAFT_LOG", "info")]);
        served.admin(&["tenant", "add", "acme"]);
        Self { provider, served }
    }

    fn add(&self, email: &str) {
        self.served.admin(&["person", "add", email, "--tenant", "acme"]);
    }

    /// One sign-in with tokens that are made so.
    fn attempt(&self, script: &Value) -> Answer {
        self.provider.script(script);
        Browser::new(&self.served).go("good")
    }

    /// Whom that signs in.
    fn signs_in(&self, script: &Value) -> Value {
        self.provider.script(script);
        let mut browser = Browser::new(&self.served);
        let page = browser.go("good");
        browser.sign_in(&page).body
    }
}

fn html(answer: &Answer) -> &str {
    answer.body.as_str().unwrap()
}

fn refused(answer: &Answer, status: u16, words: &str) {
    assert_eq!(answer.status, status, "{words}: {answer:?}");
    assert!(html(answer).contains(words) && !html(answer).contains("data-link"), "{words}: {}", html(answer));
    assert!(html(answer).contains("id=\"password\""), "every other way stays open");
}

/// A gateway where people sign in with this provider.
fn served_with(provider: &Provider) -> Gateway {
    let settings = format!(
        "[auth.oidc.acme]\nissuer = \"{}\"\nclient_id = \"haft\"\nclient_secret = \"secret:SSO\"\nlabel = \"Acme & Co\"\n\
         private = true\n",
        provider.url
    );
    Gateway::start_among(&settings, &[("SSO", "some-secret-of-haft"), ("HAFT_LOG", "info")])
}

#[test]
fn somebody_signs_in_with_a_provider_that_others_keep() {
    let provider = Provider::real();
    let served = served_with(&provider);
    served.admin(&["tenant", "add", "acme"]);
    served.admin(&["person", "add", "ann@acme.example", "--tenant", "acme"]);
    let page = served.get("/sign-in?to=%2Fdevice%3Fcode%3DBCDF-GHJK", None);
    let button = "<a class=\"button\" href=\"/sign-in/oidc/acme?to=%2Fdevice%3Fcode%3DBCDF-GHJK\">Sign in with Acme &amp; Co</a>";
    assert!(html(&page).contains(button), "{page:?}");
    let mut browser = Browser::new(&served);
    // What the form of the provider sends.
    let mut come_back = |sub: &str| {
        let left = browser.leave("/sign-in/oidc/acme?to=%2Fdevice%3Fcode%3DBCDF-GHJK");
        let there = fetch("POST", left.header("location").unwrap(), "", &format!("sub={sub}"));
        let to = there.header("location").unwrap_or_else(|| panic!("{there:?}")).to_owned();
        (browser.back(&to), to)
    };
    let (stranger, _) = come_back("eve-1");
    refused(&stranger, 403, "You are not a member here; ask an administrator to add eve@elsewhere.example.");
    let (back, address) = come_back("ann-1");
    assert!(back.header("set-cookie").is_none() && !html(&back).contains("csrf"), "nothing secret in a GET: {back:?}");
    let ann = browser.sign_in(&back);
    assert_eq!((&ann.body["tenant"]["slug"], ann.to.as_str()), (&json!("acme"), "/device?code=BCDF-GHJK"));
    let me = served.request("GET", "/api/me", None, &[("Cookie", &ann.cookie)]);
    assert_eq!((me.status, &me.body["caller"]["kind"]), (200, &json!("person")));
    let session = served.request(
        "POST",
        "/api/sessions",
        Some(&json!({})),
        &[("Cookie", &ann.cookie), ("X-CSRF-Token", &ann.csrf)],
    );
    assert!(session.status < 300, "{session:?}");
    let by_cookie = served.request("POST", "/api/sessions", Some(&json!({})), &[("Cookie", &ann.cookie)]);
    assert_eq!(by_cookie.status, 403, "a cookie alone changes nothing");
    refused(&browser.back(&address), 401, "was used before");
    let log = served.log();
    let code = address.split("code=").nth(1).unwrap().split('&').next().unwrap();
    assert!(!log.contains("some-secret-of-haft") && !log.contains(code), "{log}");
}

/// The pages in Chromium, by keyboard alone.
#[test]
#[expect(clippy::disallowed_methods, reason = "a browser is started as people start it")]
fn somebody_at_a_browser_signs_in_and_lets_a_device_in() {
    let provider = Provider::real();
    let served = served_with(&provider);
    served.admin(&["tenant", "add", "acme"]);
    served.admin(&["person", "add", "ann@acme.example", "--tenant", "acme"]);
    let grant = "urn:ietf:params:oauth:grant-type:device_code";
    let client = served.post("/oauth/register", &json!({"grant_types": [grant]}), None).body["client_id"].clone();
    let client = client.as_str().unwrap();
    let given = fetch("POST", &format!("{}/oauth/device", served.url), "", &format!("client_id={client}")).body;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oidc/browser.py");
    let page = given["verification_uri_complete"].as_str().unwrap();
    let ran = std::process::Command::new(http_client::clients_python()).args([script, page]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "The device is let in\n");
    let code = given["device_code"].as_str().unwrap();
    let body = format!("grant_type={grant}&client_id={client}&device_code={code}");
    let tokens = fetch("POST", &format!("{}/oauth/token", served.url), "", &body).body;
    assert_eq!(served.get("/api/me", tokens["access_token"].as_str()).body["tenant"]["slug"], "acme", "{tokens}");
}

#[test]
fn tokens_that_a_provider_has_not_made_for_this_sign_in_count_for_nothing() {
    let site = Site::new();
    site.add("ann@acme.example");
    for wrong in [
        json!({"alg": "none"}),
        json!({"alg": "HS256"}),
        json!({"alg": "RS256", "header": {"alg": "HS256"}}),
        json!({"alg": "RS256", "header": {"alg": "ES256"}}),
        json!({"alg": "RS256", "header": {"alg": "RS512"}}),
        json!({"header": {"crit": ["exp"]}}),
        json!({"stranger": true}),
        json!({"stranger": true, "header": {"kid": null}}),
        json!({"header": {"kid": "nobody knows it"}}),
        json!({"tamper": true}),
        json!({"claims": {"iss": "http://elsewhere.example"}}),
        json!({"claims": {"iss": format!("{}/good/", site.provider.url)}}),
        json!({"claims": {"iss": null}}),
        json!({"claims": {"aud": "another"}}),
        json!({"claims": {"aud": []}}),
        json!({"claims": {"aud": ["haft", "another"]}}),
        json!({"claims": {"aud": ["haft", "another"], "azp": "another"}}),
        json!({"claims": {"azp": "another"}}),
        json!({"claims": {"nonce": "of-another-sign-in"}}),
        json!({"claims": {"nonce": null}}),
        json!({"shift": {"exp": -120}}),
        json!({"shift": {"iat": 600}}),
        json!({"shift": {"nbf": 600}}),
        json!({"claims": {"exp": null}}),
        json!({"claims": {"exp": "soon"}}),
        json!({"claims": {"sub": ""}}),
        json!({"claims": {"sub": null}}),
        json!({"claims": {"sub": "x".repeat(300)}}),
    ] {
        let answer = site.attempt(&wrong);
        assert_eq!(answer.status, 401, "{wrong}: {answer:?}");
        refused(&answer, 401, "What Acme good says of you cannot be trusted");
    }
    for right in [
        json!({}),
        json!({"alg": "ES256"}),
        json!({"claims": {"aud": ["haft"]}}),
        json!({"claims": {"aud": ["haft", "another"], "azp": "haft"}}),
        json!({"shift": {"exp": -30, "iat": 30}}),
    ] {
        assert_eq!(site.signs_in(&right)["tenant"]["slug"], "acme", "{right}");
    }
    let log = site.served.log();
    assert!(log.contains("it belongs to another sign-in") && !log.contains("s/cret"), "the operator learns why: {log}");
}

#[test]
fn new_keys_of_a_provider_are_fetched_once_and_not_for_everybody() {
    let site = Site::new();
    site.add("ann@acme.example");
    site.signs_in(&json!({}));
    site.signs_in(&json!({}));
    assert_eq!(site.provider.count("keys"), 1, "they are kept");
    site.signs_in(&json!({"renew": true}));
    assert_eq!(site.provider.count("keys"), 2);
    for _ in 0..5 {
        assert_eq!(site.attempt(&json!({"header": {"kid": "invented"}})).status, 401);
    }
    assert_eq!(site.provider.count("keys"), 2, "strangers cannot have them fetched all day long");
    assert_eq!(site.provider.count(".well-known/openid-configuration"), 1);
}

#[test]
fn an_account_is_who_it_was_linked_with_and_an_address_counts_once_and_verified() {
    let site = Site::new();
    for email in ["ann@acme.example", "bob@acme.example"] {
        site.add(email);
    }
    let unverified = json!({"claims": {"email_verified": false}});
    refused(&site.attempt(&unverified), 403, "has not verified the address ann@acme.example");
    for not_said in [json!({"claims": {"email_verified": null}}), json!({"claims": {"email_verified": "yes"}})] {
        assert_eq!(site.attempt(&not_said).status, 403, "{not_said}");
    }
    refused(&site.attempt(&json!({"claims": {"email": null}})), 403, "does not tell your mail address");
    let another = json!({"claims": {"email": null}, "userinfo": {"sub": "bob-1", "email": "bob@acme.example", "email_verified": true}});
    refused(&site.attempt(&another), 403, "does not tell your mail address");
    let user = site.served.admin(&["person", "list", "--tenant", "local"])["items"][0]["email"].clone();
    assert_eq!(
        site.attempt(&json!({"claims": {"sub": "root-1", "email": user}})).status,
        403,
        "never this machine's own user"
    );

    let told_later =
        json!({"claims": {"email": null}, "userinfo": {"email": "ANN@acme.example", "email_verified": "true"}});
    let ann = site.signs_in(&told_later)["caller"]["id"].clone();
    // From now on the address does not matter any more.
    for same in
        [json!({}), unverified, json!({"claims": {"email": "bob@acme.example"}}), json!({"claims": {"email": null}})]
    {
        assert_eq!(site.signs_in(&same)["caller"]["id"], ann, "{same}");
    }
    // The address of somebody who has an account already makes nobody else that person.
    let thief = json!({"claims": {"sub": "mallory-1"}});
    refused(&site.attempt(&thief), 403, "Another account of Acme good is linked with ann@acme.example already");
    site.served.admin(&["person", "unlink", "ann@acme.example"]);
    assert_eq!(site.signs_in(&thief)["caller"]["id"], ann, "once the operator says so");
    assert_eq!((site.served.acts("local", "account.linked"), site.served.acts("local", "account.unlinked")), (2, 1));

    let bob = json!({"claims": {"sub": "bob-1", "email": "bob@acme.example"}});
    assert_ne!(site.signs_in(&bob)["caller"]["id"], ann);
    site.served.admin(&["person", "remove", "bob@acme.example", "--tenant", "acme"]);
    refused(&site.attempt(&bob), 403, "ask an administrator to add bob@acme.example");
}

#[test]
fn those_whom_the_operator_lets_join_do_and_others_do_not() {
    let site = Site::new();
    let somebody = |sub: &str, email: &str| json!({"claims": {"sub": sub, "email": email, "name": "Nora N."}});
    for (sub, email) in [
        ("n1", "nora@elsewhere.example"),
        ("n2", "nora@sub.join.example"),
        ("n3", "nora@join.example.evil.example"),
        ("n4", "nora@join.example@evil.example"),
    ] {
        refused(&site.attempt(&somebody(sub, email)), 403, "You are not a member here");
    }
    let unverified = json!({"claims": {"sub": "n5", "email": "nora@join.example", "email_verified": false}});
    assert_eq!(site.attempt(&unverified).status, 403);
    let nora = site.signs_in(&somebody("n6", "Nora@Join.example"));
    assert_eq!((&nora["tenant"]["slug"], &nora["caller"]["name"]), (&json!("acme"), &json!("Nora N.")));
    let people = site.served.admin(&["person", "list", "--tenant", "acme"]);
    assert_eq!(
        (&people["items"][0]["email"], &people["items"][0]["role"]),
        (&json!("nora@join.example"), &json!("viewer"))
    );
    site.served.admin(&["person", "remove", "nora@join.example", "--tenant", "acme"]);
    let again = site.attempt(&somebody("n6", "nora@join.example"));
    refused(&again, 403, "You are not a member here");
}

#[test]
fn an_answer_counts_once_in_the_browser_that_was_sent_away() {
    let site = Site::new();
    site.add("ann@acme.example");
    site.provider.script(&json!({}));
    let (mut ann, mut mallory) = (Browser::new(&site.served), Browser::new(&site.served));
    let address = ann.at_provider("/sign-in/oidc/good");
    mallory.leave("/sign-in/oidc/good");
    refused(&mallory.back(&address), 401, "was begun in another browser");
    refused(&Browser::new(&site.served).back(&address), 401, "was begun in another browser");
    refused(&ann.back(&address.replace("/good/", "/large/")), 401, "was begun in another browser");
    let address = ann.at_provider("/sign-in/oidc/good");
    let first = ann.at_provider("/sign-in/oidc/good");
    ann.sign_in(&ann.back(&address));
    ann.sign_in(&ann.back(&first));
    refused(&ann.back(&address), 401, "was used before");
    let (before, _) = address.split_once('?').unwrap();
    refused(&ann.back(before), 401, "sign in again");
    refused(&ann.back(&format!("{before}?code=x&state=invented")), 401, "sign in again");
    assert_eq!(ann.back(&format!("{before}?state=a&state=b")).status, 400);

    let address = ann.at_provider("/sign-in/oidc/good");
    let database = rusqlite::Connection::open(site.served.data().join("haft.db")).unwrap();
    database.execute("update oidc_requests set expires_at = 1", []).unwrap();
    refused(&ann.back(&address), 401, "took longer than 15 minutes");

    site.provider.script(&json!({"back": {"iss": "http://elsewhere.example"}}));
    refused(&Browser::new(&site.served).go("good"), 401, "did not come from Acme good");
    site.provider.script(&json!({"back": {"error": "access_denied", "error_description": "<script>no</script>"}}));
    refused(&Browser::new(&site.served).go("good"), 401, "has not signed you in: &lt;script&gt;no&lt;/script&gt;");
    // A code that the provider does not know, or gave to somebody else.
    site.provider.script(&json!({}));
    let stolen = ann.at_provider("/sign-in/oidc/good");
    let wrong = stolen.replace("code=", "code=x");
    refused(&ann.back(&wrong), 401, "does not confirm this sign-in");
    let mut mallory = Browser::new(&site.served);
    let (code, state) = (ann.at_provider("/sign-in/oidc/good"), mallory.at_provider("/sign-in/oidc/good"));
    let field = |address: &str, name: &str| {
        address.split(&format!("{name}=")).nth(1).unwrap().split('&').next().unwrap().to_owned()
    };
    let mixed = format!("{before}?code={}&state={}", field(&code, "code"), field(&state, "state"));
    refused(&mallory.back(&mixed), 401, "does not confirm this sign-in");
    // The link that the page signs in with works once, too.
    let mut browser = Browser::new(&site.served);
    let page = browser.go("good");
    browser.sign_in(&page);
    let link = html(&page).split("data-link=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(site.served.post("/api/sign-in", &json!({"link": link}), None).status, 401);
}

#[test]
fn nobody_is_sent_to_another_server_afterwards() {
    let site = Site::new();
    site.add("ann@acme.example");
    site.provider.script(&json!({}));
    for wrong in
        ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/%0d%0aX: y", "/\tx"]
    {
        let encoded: String = wrong.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let mut browser = Browser::new(&site.served);
        let address = browser.at_provider(&format!("/sign-in/oidc/good?to={encoded}"));
        let to = browser.sign_in(&browser.back(&address)).to;
        assert!(to == "/" || to == "/%0d%0aX: y", "{wrong}: {to}");
    }
    let mut browser = Browser::new(&site.served);
    let address = browser.at_provider("/sign-in/oidc/good?to=%2Fdevice%3Fcode%3D%22%3E%3Cb%3E&tenant=acme");
    assert_eq!(browser.sign_in(&browser.back(&address)).to, "/device?code=&quot;&gt;&lt;b&gt;");
    let address = browser.at_provider("/sign-in/oidc/good?tenant=local");
    refused(&browser.back(&address), 403, "You are not a member here");
    assert_eq!(browser.leave("/sign-in/oidc/unknown").status, 404);
}

#[test]
fn a_provider_that_cannot_be_used_says_so_and_every_other_way_works() {
    let site = Site::new();
    let began = std::time::Instant::now();
    for name in ["near", "gone", "mismatch", "large", "script", "hang"] {
        let left = Browser::new(&site.served).leave(&format!("/sign-in/oidc/{name}"));
        refused(&left, 503, "cannot be reached right now; try again later, or sign in another way.");
        assert!(left.header("set-cookie").is_none() && !html(&left).contains("127.0.0.1"), "{left:?}");
    }
    for path in ["token", "keys"] {
        for fault in ["large", "hang"] {
            let answer = site.attempt(&json!({fault: path}));
            refused(&answer, 503, "Acme good cannot be reached right now");
        }
    }
    assert!(began.elapsed().as_secs() < 30, "each is waited for a few seconds");
    let log = site.served.log();
    for why in [
        "web.allow",
        "cannot be reached on port 9",
        "it calls itself",
        "more than 262144 bytes",
        "authorization_endpoint",
        "longer",
    ] {
        assert!(log.contains(why), "{why}: {log}");
    }
    Person::added(&site.served, "ann@acme.example", "acme", "member");
    site.provider.script(&json!({}));
    assert_eq!(site.signs_in(&json!({}))["tenant"]["slug"], "acme");
}

#[test]
fn passwords_can_be_switched_off() {
    let site = Site::with("[auth]\npassword = false\n");
    let ann = Person::added(&site.served, "ann@acme.example", "acme", "member");
    let page = site.served.get("/sign-in", None);
    assert!(html(&page).contains("Sign in with Acme good") && !html(&page).contains("type=\"password\""), "{page:?}");
    assert_eq!(ann.post("/api/me/password", json!({"password": "a-long-password-1"})).status, 403);
    let tried = site.served.post("/api/sign-in", &json!({"email": "ann@acme.example", "password": "x"}), None);
    assert_eq!((tried.status, &tried.body["error"]["message"]), (403, &json!("nobody signs in by password here")));
    let alone = http_client::new_folder("auth.password = false");
    let ran = http_client::haft(&alone, &["serve", "--listen", "127.0.0.1:0"]).output().unwrap();
    assert!(!ran.status.success() && String::from_utf8_lossy(&ran.stderr).contains("nobody could sign in"), "{ran:?}");
    let settings =
        "[auth.oidc.acme]\nissuer = \"https://a.example\"\nclient_id = \"haft\"\nclient_secret = \"secret:NOT_THERE\"";
    let alone = http_client::new_folder(settings);
    let ran = http_client::haft(&alone, &["serve", "--listen", "127.0.0.1:0"]).output().unwrap();
    assert!(
        !ran.status.success() && String::from_utf8_lossy(&ran.stderr).contains("there is no secret `NOT_THERE`"),
        "{ran:?}"
    );
}
