//! Programs that people let in by OAuth: how they get tokens, what those open, and when they no longer do.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod http_client;

use std::{
    io::{Read, Write},
    net::TcpStream,
    process::Command,
};

use http_client::{Answer, Gateway, clients_python, person::Person};
use serde_json::{Value, json};

/// The example of the standard.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const BACK: &str = "http://127.0.0.1:3999/back";

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn pairs(fields: &[(&str, &str)]) -> String {
    fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect::<Vec<_>>().join("&")
}

/// Sends a form, as programs do; what came back is JSON.
fn form(served: &Gateway, path: &str, fields: &[(&str, &str)]) -> (u16, Value) {
    let (address, body) = (served.url.trim_start_matches("http://"), pairs(fields));
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    let (head, body) = said.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap_or_else(|_| panic!("{said}")))
}

/// A server with a tenant, somebody there, and a program that has registered.
struct Site {
    served: Gateway,
    client: String,
}

impl Site {
    fn new() -> Self {
        let served = Gateway::start();
        served.admin(&["tenant", "add", "acme"]);
        let folder = served.workspace();
        std::fs::write(folder.join("a.txt"), "alpha\n").unwrap();
        served.admin(&["workspace", "add", "shop", "--tenant", "acme", "--map", folder.to_str().unwrap()]);
        let wish = json!({"client_name": "Probe <b>", "redirect_uris": [BACK], "token_endpoint_auth_method": "none"});
        let registered = served.post("/oauth/register", &wish, None);
        assert_eq!(registered.status, 201, "{registered:?}");
        let client = text(&registered.body["client_id"]);
        Self { served, client }
    }

    fn ann(&self) -> Person<'_> {
        Person::added(&self.served, "ann@acme.example", "acme", "member")
    }

    /// What the program puts into the address of the page, with some of it otherwise.
    fn request(&self, otherwise: &[(&str, &str)]) -> Value {
        let resource = format!("{}/mcp", self.served.url);
        let mut request = json!({
            "response_type": "code", "client_id": self.client, "redirect_uri": BACK, "code_challenge": CHALLENGE,
            "code_challenge_method": "S256", "state": "s t&1", "scope": "tools:read tools:execute", "resource": resource,
        });
        for (name, value) in otherwise {
            request[*name] = json!(value);
        }
        request
    }

    fn page(&self, person: &Person<'_>, otherwise: &[(&str, &str)]) -> Answer {
        let request = self.request(otherwise);
        let fields: Vec<(&str, &str)> =
            request.as_object().unwrap().iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())).collect();
        person.get(&format!("/oauth/authorize?{}", pairs(&fields)))
    }

    /// What the page sends when somebody presses a button.
    fn answer(&self, person: &Person<'_>, allow: bool, otherwise: &[(&str, &str)]) -> Answer {
        let mut body = self.request(otherwise);
        let scopes: Vec<&str> = body["scope"].as_str().unwrap().split(' ').collect();
        let chosen = json!({"tenant": "acme", "workspace": "shop", "scopes": scopes, "allow": allow});
        body.as_object_mut().unwrap().extend(chosen.as_object().unwrap().clone());
        person.post("/api/oauth/consents", body)
    }

    /// The code that the program is sent.
    fn code(&self, person: &Person<'_>) -> String {
        let answer = self.answer(person, true, &[]);
        assert_eq!(answer.status, 200, "{answer:?}");
        let to = text(&answer.body["to"]);
        let (address, query) = to.split_once('?').unwrap();
        assert_eq!(address, BACK);
        assert!(query.contains("&state=s+t%261&iss=http"), "{to}");
        query.strip_prefix("code=").unwrap().split('&').next().unwrap().to_owned()
    }

    fn exchange(&self, code: &str, otherwise: &[(&str, &str)]) -> (u16, Value) {
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("client_id", self.client.as_str()),
            ("redirect_uri", BACK),
            ("code_verifier", VERIFIER),
        ];
        for (name, value) in otherwise {
            fields.retain(|(known, _)| known != name);
            fields.push((name, value));
        }
        form(&self.served, "/oauth/token", &fields)
    }

    fn tokens(&self, person: &Person<'_>) -> (String, String) {
        let (status, given) = self.exchange(&self.code(person), &[]);
        assert_eq!(status, 200, "{given}");
        assert_eq!((&given["token_type"], &given["scope"]), (&json!("Bearer"), &json!("tools:read tools:execute")));
        (text(&given["access_token"]), text(&given["refresh_token"]))
    }

    fn refresh(&self, token: &str) -> (u16, Value) {
        let fields = [("grant_type", "refresh_token"), ("refresh_token", token), ("client_id", self.client.as_str())];
        form(&self.served, "/oauth/token", &fields)
    }

    fn status(&self, token: &str) -> u16 {
        self.served.get("/api/me", Some(token)).status
    }
}

#[test]
fn a_program_is_let_in_for_a_person_and_for_what_they_chose() {
    let site = Site::new();
    let served = &site.served;
    let refused = served.get("/api/me", None);
    let challenge = refused.header("www-authenticate").unwrap();
    let metadata = challenge.split("resource_metadata=\"").nth(1).unwrap().trim_end_matches('"');
    let resource = served.get(metadata.strip_prefix(&served.url).unwrap(), None).body;
    assert_eq!(
        (&resource["resource"], &resource["authorization_servers"][0]),
        (&json!(format!("{}/mcp", served.url)), &json!(served.url))
    );
    let server = served.get("/.well-known/oauth-authorization-server", None).body;
    assert_eq!(
        (&server["issuer"], &server["code_challenge_methods_supported"]),
        (&json!(served.url), &json!(["S256"]))
    );
    let ann = site.ann();
    let (access, _) = site.tokens(&ann);
    let me = served.get("/api/me", Some(&access)).body;
    assert_eq!(
        (&me["caller"]["kind"], &me["caller"]["id"], &me["tenant"]["slug"]),
        (&json!("person"), &json!(ann.id), &json!("acme"))
    );
    let read = served.post("/api/tools/read_file/calls", &json!({"input": {"path": "a.txt"}}), Some(&access));
    assert_eq!(read.body["result"]["structured"]["content"], "alpha\n", "{read:?}");
    // Neither what the person did not choose, nor what only a person does.
    for (method, path) in
        [("GET", "/api/approvals"), ("GET", "/api/keys"), ("GET", "/api/me/programs"), ("GET", "/api/me/sign-ins")]
    {
        let bearer = format!("Bearer {access}");
        let answer = served.request(method, path, None, &[("Authorization", &bearer)]);
        assert_eq!(answer.status, 403, "{path}: {answer:?}");
    }
    // What changes something is asked about: it is a program that asks, not the person on a page.
    let input = json!({"input": {"path": "b.txt", "content": "b"}, "wait": 0});
    let asked = served.post("/api/tools/write_file/calls", &input, Some(&access));
    assert_eq!((asked.status, &asked.body["status"]), (202, &json!("pending")), "{asked:?}");
    let programs = ann.get("/api/me/programs").body;
    assert_eq!(programs["items"][0]["name"], "Probe <b>");
    let id = text(&programs["items"][0]["id"]);
    assert_eq!(ann.ask("DELETE", &format!("/api/me/programs/{id}"), None).status, 200);
    assert_eq!(site.status(&access), 401, "at the next request");
}

#[test]
fn the_page_shows_who_asks_and_sends_nobody_where_nobody_said() {
    let site = Site::new();
    let stranger = site.served.get("/oauth/authorize?client_id=x&state=%2F", None);
    assert_eq!(stranger.status, 303);
    assert_eq!(
        stranger.header("location").unwrap(),
        "/sign-in?to=%2Foauth%2Fauthorize%3Fclient_id%3Dx%26state%3D%252F"
    );
    let ann = site.ann();
    let page = site.page(&ann, &[]);
    let shown = text(&page.body);
    assert_eq!(page.status, 200);
    assert!(
        shown.contains("Let Probe &lt;b&gt; in?") && shown.contains("nobody vouches") && shown.contains(BACK),
        "{shown}"
    );
    assert!(page.header("content-security-policy").unwrap().contains("frame-ancestors 'none'"));
    for wrong in [
        ("client_id", "client_unknown"),
        ("client_id", ""),
        ("client_id", "https://127.0.0.1/client.json"),
        ("client_id", "https://localhost/client.json"),
        ("client_id", "http://evil.example/client.json"),
        ("redirect_uri", "https://evil.example/"),
        ("redirect_uri", "http://127.0.0.1:3999/back?x"),
        ("redirect_uri", "http://127.0.0.1:3999@evil.example/back"),
        ("redirect_uri", "javascript:alert(1)"),
        ("redirect_uri", ""),
    ] {
        let (page, sent) = (site.page(&ann, &[wrong]), site.answer(&ann, true, &[wrong]));
        assert_eq!(
            (page.status, page.header("location"), sent.status),
            (400, None, 400),
            "{wrong:?}: {page:?}, {sent:?}"
        );
    }
    for (wrong, code) in [
        (("response_type", "token"), "unsupported_response_type"),
        (("code_challenge", ""), "invalid_request"),
        (("code_challenge", "short"), "invalid_request"),
        (("code_challenge_method", "plain"), "invalid_request"),
        (("scope", "tools:read everything"), "invalid_scope"),
        (("resource", "https://elsewhere.example/mcp"), "invalid_target"),
    ] {
        let page = site.page(&ann, &[wrong]);
        let to = page.header("location").unwrap_or_else(|| panic!("{wrong:?}: {page:?}"));
        assert!(to.starts_with(&format!("{BACK}?error={code}&")) && to.contains("state=s+t%261"), "{wrong:?}: {to}");
        assert_eq!(site.answer(&ann, true, &[wrong]).status, 400, "{wrong:?}");
    }
    let other_port = site.page(&ann, &[("redirect_uri", "http://127.0.0.1:5000/back")]);
    assert_eq!(other_port.status, 200, "a program on one's own machine takes any port");
    let no = site.answer(&ann, false, &[]);
    assert!(text(&no.body["to"]).starts_with(&format!("{BACK}?error=access_denied&")), "{no:?}");
}

#[test]
fn only_a_page_of_this_server_lets_somebody_in() {
    let site = Site::new();
    let ann = site.ann();
    let mut body = site.request(&[]);
    let chosen = json!({"tenant": "acme", "scopes": ["tools:read"], "allow": true});
    body.as_object_mut().unwrap().extend(chosen.as_object().unwrap().clone());
    let by = |headers: &[(&str, &str)], body: &Value| {
        site.served.request("POST", "/api/oauth/consents", Some(body), headers).status
    };
    assert_eq!(by(&[("Cookie", &ann.cookie)], &body), 403, "a cookie alone changes nothing");
    assert_eq!(by(&[("Cookie", &ann.cookie), ("X-CSRF-Token", "wrong")], &body), 403);
    let elsewhere = [("Cookie", ann.cookie.as_str()), ("X-CSRF-Token", &ann.csrf), ("Origin", "http://127.0.0.1:1")];
    assert_eq!(by(&elsewhere, &body), 403);
    assert_eq!(by(&[], &body), 401);
    let (access, _) = site.tokens(&ann);
    assert_eq!(by(&[("Authorization", &format!("Bearer {access}"))], &body), 403, "a program lets in no other");
    site.served.admin(&["tenant", "add", "bolt"]);
    body["tenant"] = json!("bolt");
    let not_theirs = ann.post("/api/oauth/consents", body.clone());
    body["tenant"] = json!("nothing");
    let nothing = ann.post("/api/oauth/consents", body.clone());
    assert_eq!((not_theirs.status, nothing.status), (404, 404));
    body["tenant"] = json!("acme");
    body["scopes"] = json!(["tools:write"]);
    assert_eq!(ann.post("/api/oauth/consents", body).status, 400, "nothing that the program did not ask for");
}

#[test]
fn codes_and_tokens_work_once_and_for_whom_they_were_made() {
    let site = Site::new();
    let ann = site.ann();
    let other = site.served.post("/oauth/register", &json!({"redirect_uris": [BACK]}), None).body;
    let other = text(&other["client_id"]);
    let code = site.code(&ann);
    for wrong in [
        ("code_verifier", "x"),
        ("code_verifier", ""),
        ("client_id", other.as_str()),
        ("redirect_uri", "http://127.0.0.1:3999/other"),
        ("resource", "https://elsewhere.example/mcp"),
        ("code", "unknown"),
    ] {
        let (status, said) = site.exchange(&code, &[wrong]);
        assert_eq!((status, &said["error"]), (400, &json!("invalid_grant")), "{wrong:?}: {said}");
    }
    let (status, said) = site.exchange(&code, &[("grant_type", "password")]);
    assert_eq!((status, &said["error"]), (400, &json!("unsupported_grant_type")));
    let (_, given) = site.exchange(&code, &[]);
    let access = text(&given["access_token"]);
    assert_eq!(site.status(&access), 200, "a wrong attempt uses nothing up");
    // Whoever shows the code once more has stolen it, or it was stolen from them.
    assert_eq!(site.exchange(&code, &[]).0, 400);
    assert_eq!(site.status(&access), 401);

    let (first, refresh) = site.tokens(&ann);
    let (status, second) = site.refresh(&refresh);
    assert_eq!(status, 200, "{second}");
    assert_eq!((site.status(&first), site.status(&text(&second["access_token"]))), (200, 200));
    assert_eq!(site.refresh(&text(&second["access_token"])).0, 400, "an access token fetches nothing");
    assert_eq!(site.status(&text(&second["refresh_token"])), 401, "a token to refresh with opens nothing");
    assert_eq!(site.refresh(&refresh).0, 400);
    for token in [&first, &text(&second["access_token"])] {
        assert_eq!(site.status(token), 401, "one that comes twice ends all of its family");
    }
    assert_eq!(site.refresh(&text(&second["refresh_token"])).0, 400);
}

#[test]
fn tokens_end_with_their_time_their_person_and_their_revocation() {
    let site = Site::new();
    let ann = site.ann();
    let (access, refresh) = site.tokens(&ann);
    assert_eq!(form(&site.served, "/oauth/revoke", &[("token", &refresh)]), (200, json!({})));
    assert_eq!(form(&site.served, "/oauth/revoke", &[("token", "nothing")]), (200, json!({})));
    assert_eq!((site.status(&access), site.refresh(&refresh).0), (401, 400));

    let (access, _) = site.tokens(&ann);
    let owner = Person::added(&site.served, "olga@acme.example", "acme", "owner");
    let demoted = owner.ask("PATCH", &format!("/api/people/{}", ann.id), Some(json!({"role": "viewer"})));
    assert_eq!(demoted.status, 200, "{demoted:?}");
    let call = site.served.post("/api/tools/read_file/calls", &json!({"input": {"path": "a.txt"}}), Some(&access));
    assert_eq!(call.status, 403, "never more than the person may now: {call:?}");
    site.served.admin(&["person", "remove", "ann@acme.example", "--tenant", "acme"]);
    assert_eq!(site.status(&access), 401);

    let bob = Person::added(&site.served, "bob@acme.example", "acme", "member");
    let code = site.code(&bob);
    let (access, refresh) = site.tokens(&bob);
    let database = rusqlite::Connection::open(site.served.data().join("haft.db")).unwrap();
    database.execute("update oauth_tokens set expires_at = 1", []).unwrap();
    assert_eq!((site.status(&access), site.refresh(&refresh).0, site.exchange(&code, &[]).0), (401, 400, 400));
}

#[test]
fn what_cannot_be_registered_is_said_in_the_words_of_oauth() {
    let site = Site::new();
    for (wrong, code) in [
        (json!({}), "invalid_client_metadata"),
        (json!({"redirect_uris": []}), "invalid_client_metadata"),
        (json!({"redirect_uris": ["javascript:alert(1)"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": ["http://app.example/back"]}), "invalid_redirect_uri"),
        (
            json!({"redirect_uris": [BACK], "token_endpoint_auth_method": "client_secret_basic"}),
            "invalid_client_metadata",
        ),
        (json!({"redirect_uris": "x"}), "invalid_client_metadata"),
        (json!([1]), "invalid_client_metadata"),
    ] {
        let answer = site.served.post("/oauth/register", &wrong, None);
        assert_eq!((answer.status, &answer.body["error"]), (400, &json!(code)), "{wrong}: {answer:?}");
    }
}

/// The official client finds its way from a refused request to a call.
#[test]
#[expect(clippy::disallowed_methods, reason = "a client is started as people start it")]
fn a_real_client_comes_in() {
    let site = Site::new();
    let ann = site.ann();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/serve_oauth.py");
    let args = [script, &site.served.url, &ann.cookie, &ann.csrf];
    let ran = Command::new(clients_python()).args(args).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "alpha\n");
}
