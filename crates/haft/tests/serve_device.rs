//! Programs on devices without a browser: the code that a person types, and everything that may go wrong with it.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that cannot go on fails")]

mod http_client;
mod support;

use std::{
    io::{BufRead, BufReader, Read},
    process::Stdio,
};

use http_client::{Answer, Gateway, fetch, person::Person};
use serde_json::{Value, json};
use support::{Ran, Running, text};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// A gateway with a workspace, Ann, and a program on a device.
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
        let wish = json!({"client_name": "Probe <b>", "grant_types": [GRANT]});
        let registered = served.post("/oauth/register", &wish, None);
        assert_eq!((registered.status, &registered.body["redirect_uris"]), (201, &json!([])), "{registered:?}");
        Self { client: text(&registered.body["client_id"]), served }
    }

    fn ann(&self) -> Person<'_> {
        Person::added(&self.served, "ann@acme.example", "acme", "member")
    }

    fn form(&self, path: &str, fields: &[(&str, &str)]) -> (u16, Value) {
        let encoded = |text: &str| text.replace('%', "%25").replace(' ', "+").replace('&', "%26").replace(':', "%3A");
        let pairs: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let answer = fetch("POST", &format!("{}{path}", self.served.url), "", &pairs.join("&"));
        (answer.status, answer.body)
    }

    /// The codes: what the program holds, and what it shows.
    fn codes(&self) -> (String, String) {
        let (status, given) =
            self.form("/oauth/device", &[("client_id", &self.client), ("scope", "tools:read tools:execute")]);
        assert_eq!(status, 200, "{given}");
        assert_eq!((&given["expires_in"], &given["interval"]), (&json!(600), &json!(5)));
        let code = text(&given["user_code"]);
        assert_eq!(given["verification_uri_complete"], format!("{}/device?code={code}", self.served.url));
        (text(&given["device_code"]), code)
    }

    fn poll(&self, device: &str) -> (u16, Value) {
        self.form("/oauth/token", &[("grant_type", GRANT), ("device_code", device), ("client_id", &self.client)])
    }

    /// What a poll says when it comes at the right time.
    fn says(&self, device: &str) -> String {
        self.database().execute("update oauth_devices set polled_at = 1", []).unwrap();
        let (status, said) = self.poll(device);
        assert_eq!(status, 400, "{said}");
        text(&said["error"])
    }

    fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.served.data().join("haft.db")).unwrap()
    }

    fn status(&self, token: &Value) -> u16 {
        self.served.get("/api/me", Some(token.as_str().unwrap())).status
    }
}

fn answer(person: &Person<'_>, code: &str, otherwise: &Value) -> Answer {
    let mut body = json!({
        "code": code, "tenant": "acme", "workspace": "shop", "scopes": ["tools:read", "tools:execute"], "allow": true,
    });
    body.as_object_mut().unwrap().extend(otherwise.as_object().unwrap().clone());
    person.post("/api/oauth/devices", body)
}

fn html(answer: &Answer) -> &str {
    answer.body.as_str().unwrap()
}

#[test]
fn a_device_is_let_in_for_a_person_and_for_what_they_chose() {
    let site = Site::new();
    let about = site.served.get("/.well-known/oauth-authorization-server", None).body;
    assert_eq!(about["device_authorization_endpoint"], format!("{}/oauth/device", site.served.url));
    assert!(about["grant_types_supported"].as_array().unwrap().contains(&json!(GRANT)), "{about}");
    let (device, code) = site.codes();
    assert!(code.len() == 9 && code.bytes().all(|byte| b"BCDFGHJKLMNPQRSTVWXZ-".contains(&byte)), "{code}");
    assert_eq!(site.says(&device), "authorization_pending");
    assert_eq!(site.poll(&device).1["error"], "slow_down");
    assert_eq!(site.says(&device), "authorization_pending", "at its pace it goes on");

    let stranger = site.served.get(&format!("/device?code={code}"), None);
    assert_eq!(
        (stranger.status, stranger.header("location").unwrap()),
        (303, &*format!("/sign-in?to=%2Fdevice%3Fcode%3D{code}"))
    );
    let ann = site.ann();
    let page = ann.get("/device");
    assert!(page.status == 200 && html(&page).contains("<form action=\"/device\">"), "{page:?}");
    let page = ann.get(&format!("/device?code=+{}", code.to_lowercase().replace('-', "")));
    assert_eq!(page.status, 200, "{page:?}");
    for shown in [&code, "Let Probe &lt;b&gt; in?", "nobody vouches", "refuse it", "in the workspace shop", "use tools"]
    {
        assert!(html(&page).contains(shown), "{shown}: {}", html(&page));
    }
    assert_eq!(site.says(&device), "authorization_pending", "to look is not to answer");
    let allowed = answer(&ann, &code, &json!({"scopes": ["tools:read"]}));
    assert_eq!((allowed.status, &allowed.body["to"]), (200, &json!("/device?answered=yes")), "{allowed:?}");
    assert!(html(&ann.get("/device?answered=yes")).contains("Go back to it"));
    let again = answer(&ann, &code, &json!({"allow": false}));
    assert_eq!(again.status, 404, "it was answered: {again:?}");

    let (status, given) = site.poll(&device);
    assert_eq!((status, &given["scope"]), (200, &json!("tools:read")), "{given}");
    let me = site.served.get("/api/me", given["access_token"].as_str()).body;
    assert_eq!((&me["caller"]["id"], &me["tenant"]["slug"]), (&json!(ann.id), &json!("acme")));
    let call = json!({"input": {"path": "a.txt"}});
    assert_eq!(
        site.served.post("/api/tools/read_file/calls", &call, given["access_token"].as_str()).status,
        403,
        "not chosen"
    );
    let refresh = [
        ("grant_type", "refresh_token"),
        ("refresh_token", given["refresh_token"].as_str().unwrap()),
        ("client_id", &site.client),
    ];
    let (status, renewed) = site.form("/oauth/token", &refresh);
    assert_eq!((status, site.status(&renewed["access_token"])), (200, 200), "{renewed}");
    assert_eq!(site.served.acts("acme", "program.let_in"), 1);
    // Whoever shows the code once more has stolen it, or it was stolen from them.
    assert_eq!(site.poll(&device).1["error"], "invalid_grant");
    assert_eq!(site.status(&renewed["access_token"]), 401);
}

#[test]
fn a_device_gets_nothing_without_a_yes_in_time() {
    let site = Site::new();
    let ann = site.ann();
    let (device, code) = site.codes();
    assert_eq!(answer(&ann, &code, &json!({"allow": false, "scopes": []})).body["to"], "/device?answered=no");
    assert_eq!(site.poll(&device).1["error"], "access_denied");
    assert_eq!(answer(&ann, &code, &json!({})).status, 404, "a no stays one");

    let (device, code) = site.codes();
    let late = site.codes();
    assert_eq!(answer(&ann, &late.1, &json!({})).status, 200);
    site.database().execute("update oauth_devices set expires_at = 1", []).unwrap();
    assert_eq!(
        (site.poll(&device).1["error"].clone(), site.poll(&late.0).1["error"].clone()),
        (json!("expired_token"), json!("expired_token"))
    );
    assert_eq!(answer(&ann, &code, &json!({})).status, 404);
    assert_eq!(ann.get(&format!("/device?code={code}")).status, 404);

    // What was let in and is taken back before it is fetched, or after.
    for fetched in [false, true] {
        let (device, code) = site.codes();
        assert_eq!(answer(&ann, &code, &json!({})).status, 200);
        let given = if fetched { site.poll(&device).1 } else { Value::Null };
        let programs = ann.get("/api/me/programs").body;
        let last = programs["items"].as_array().unwrap().last().unwrap()["id"].clone();
        for program in programs["items"].as_array().unwrap() {
            ann.ask("DELETE", &format!("/api/me/programs/{}", text(&program["id"])), None);
        }
        assert!(last.is_string() && site.poll(&device).1["error"] == "invalid_grant", "{fetched}");
        assert!(!fetched || site.status(&given["access_token"]) == 401);
    }
    for wrong in [
        vec![("client_id", "client_unknown")],
        vec![],
        vec![("client_id", site.client.as_str()), ("scope", "everything")],
        vec![("client_id", site.client.as_str()), ("resource", "https://elsewhere.example/mcp")],
    ] {
        assert!(matches!(site.form("/oauth/device", &wrong).0, 400 | 401), "{wrong:?}");
    }
    let (device, _) = site.codes();
    let other = text(&site.served.post("/oauth/register", &json!({"grant_types": [GRANT]}), None).body["client_id"]);
    for (device, client) in [(device.as_str(), other.as_str()), ("unknown", &site.client), ("", ""), (&device, "")] {
        let fields = [("grant_type", GRANT), ("device_code", device), ("client_id", client)];
        assert_eq!(site.form("/oauth/token", &fields).1["error"], "invalid_grant");
    }
    let bare = site.served.post("/oauth/register", &json!({"grant_types": ["authorization_code", GRANT]}), None);
    assert_eq!(bare.status, 400, "who has people sent back says where to: {bare:?}");
}

#[test]
fn only_a_page_of_this_server_lets_a_device_in_and_only_where_its_person_belongs() {
    let site = Site::new();
    let ann = site.ann();
    site.served.admin(&["tenant", "add", "bolt"]);
    let (device, code) = site.codes();
    assert_eq!(answer(&ann, &code, &json!({"tenant": "bolt"})).status, 404);
    assert_eq!(answer(&ann, &code, &json!({"workspace": "not-there"})).status, 404);
    assert_eq!(
        answer(&ann, &code, &json!({"scopes": ["tools:write", "approvals:decide"]})).status,
        400,
        "nothing that it did not ask for"
    );
    let body = json!({"code": code, "tenant": "acme", "scopes": ["tools:read"], "allow": true});
    let by = |headers: &[(&str, &str)]| site.served.request("POST", "/api/oauth/devices", Some(&body), headers).status;
    assert_eq!((by(&[]), by(&[("Cookie", &ann.cookie)])), (401, 403), "a cookie alone changes nothing");
    let elsewhere = [("Cookie", ann.cookie.as_str()), ("X-CSRF-Token", &ann.csrf), ("Origin", "http://127.0.0.1:1")];
    assert_eq!(by(&elsewhere), 403);
    let key = site.served.key("builder", "acme", "tools:execute");
    assert_eq!(by(&[("Authorization", &format!("Bearer {key}"))]), 403, "a key lets nobody in");
    assert_eq!(site.says(&device), "authorization_pending");
    // The first of two answers counts.
    let (yes, no) = std::thread::scope(|both| {
        let yes = both.spawn(|| answer(&ann, &code, &json!({})).status);
        let no = both.spawn(|| answer(&ann, &code, &json!({"allow": false})).status);
        (yes.join().unwrap(), no.join().unwrap())
    });
    assert!((yes == 200) != (no == 200), "{yes} {no}");
    assert_eq!(site.poll(&device).0 == 200, yes == 200);
    let kept: Vec<String> = {
        let database = site.database();
        let mut rows = database.prepare("select id || user_code from oauth_devices").unwrap();
        rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let plain = code.replace('-', "");
    assert!(kept.iter().all(|row| !row.contains(&device) && !row.contains(&plain)), "codes are kept as hashes");
}

#[test]
fn whoever_guesses_codes_is_told_to_wait() {
    let site = Site::new();
    let (ann, bob) = (site.ann(), Person::added(&site.served, "bob@acme.example", "acme", "member"));
    let (_, code) = site.codes();
    for guess in ["BBBB-BBBB", "", "x", "CCCC-CCCC", "é", "BBBB-BBBB-BBBB"] {
        let looked = ann.get(&format!("/device?code={}z", guess.replace('é', "%C3%A9")));
        assert_eq!(looked.status, 404, "{guess}");
        assert!(html(&looked).contains("There is no device with this code"), "{looked:?}");
    }
    for _ in 0..4 {
        assert_eq!(answer(&ann, "DDDD-DDDD", &json!({})).status, 404);
    }
    let looked = ann.get(&format!("/device?code={code}"));
    assert!(looked.status == 429 && looked.header("retry-after").is_some(), "the right one, too: {looked:?}");
    assert!(html(&looked).contains("There were too many attempts"), "{looked:?}");
    assert_eq!(answer(&ann, &code, &json!({})).status, 429);
    for _ in 0..20 {
        assert_eq!(bob.get(&format!("/device?code={code}")).status, 200, "somebody else is not kept waiting");
    }
    assert_eq!(
        ann.post("/api/me/password", json!({"password": "a-long-password-1"})).status,
        200,
        "nor is Ann elsewhere"
    );
}

/// Somebody logs in by a code: what the program prints is read, and what the page would send is sent.
fn log_in(site: &Site, args: &[&str], person: &Person<'_>, allow: bool) -> (Vec<String>, Ran) {
    let mut command = site.served.haft(&[&["login", &site.served.url], args].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut shown = Vec::new();
    while shown.last().is_none_or(|line: &String| !line.starts_with("Or open")) {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).unwrap() > 0, "{shown:?}");
        shown.push(line.trim_end().to_owned());
    }
    let code = shown[2].trim().to_owned();
    let answered = answer(person, &code, &json!({"allow": allow, "scopes": ["tools:read", "tools:execute"]}));
    assert_eq!(answered.status, 200, "{answered:?}");
    let mut stdout = String::new();
    lines.read_to_string(&mut stdout).unwrap();
    let ended = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    (shown, Ran { code: ended.status.code(), signal: None, stdout, stderr })
}

#[test]
fn the_command_line_logs_in_by_a_code() {
    let site = Site::new();
    let ann = site.ann();
    let url = &site.served.url;
    let ((_, refused), (shown, ran)) = std::thread::scope(|both| {
        let refused = both.spawn(|| log_in(&site, &["--device"], &ann, false));
        // Nobody has a screen here.
        (refused.join().unwrap(), log_in(&site, &[], &ann, true))
    });
    assert!(
        refused.code == Some(1) && refused.stderr.contains("the login was refused: the person said no"),
        "{refused:?}"
    );
    assert_eq!(shown[0], format!("Open {url}/device in a browser on any device, and type this code:"));
    assert!(shown[4].starts_with(&format!("Or open {url}/device?code=")), "{shown:?}");
    assert!(ran.stderr.contains("no browser can be opened here, so log in with a code"), "{ran:?}");
    assert!(ran.code == Some(0) && ran.stdout.contains(&format!("logged in at {url} as ")), "{ran:?}");
    let read = || Running::start(site.served.haft(&["call", "read_file", "--path", "a.txt", "--server", url])).finish();
    assert!(read().stdout.contains("alpha"));
    site.database().execute("update oauth_tokens set expires_at = 1 where kind = 'access'", []).unwrap();
    assert!(read().stdout.contains("alpha"), "it is renewed as any other login");
    let ran = Running::start(site.served.haft(&["logout", url, "--json"])).finish();
    assert_eq!(ran.json()["revoked"], true, "{ran:?}");
    assert!(read().stderr.contains("run `haft login "));
}
