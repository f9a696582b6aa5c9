//! Answering by a link in a mail: a machine that fetches or presses one thing decides nothing, a person's two presses do.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod http_client;

use std::{collections::BTreeSet, thread};

use http_client::{
    Answer, Gateway,
    mail_server::{MailServer, links},
    person::Person,
    until,
};
use serde_json::{Value, json};

const SCOPES: &str = "tools:read,tools:execute,tools:write,approvals:decide,events:read";

/// A tenant whose questions go out by mail.
struct Office {
    served: Gateway,
    mails: MailServer,
    key: String,
}

impl Office {
    fn open() -> Self {
        Self::with("")
    }

    fn with(settings: &str) -> Self {
        let mails = MailServer::plain();
        let settings = format!(
            "{settings}\n[notify]\ngrace = \"1ms\"\nevery = \"1ms\"\nretry = \"50ms\"\n[mail]\nhost = \"127.0.0.1\"\n\
             port = {}\ntls = \"none\"\nfrom = \"haft@acme.example\"\n",
            mails.port
        );
        let served = Gateway::start_with(&settings);
        served.admin(&["tenant", "add", "acme"]);
        let key = served.key("builder", "acme", SCOPES);
        for (slug, effect) in [("deploy", "write"), ("erase", "destructive")] {
            let tool = json!({"slug": slug, "description": "For tests.", "inputSchema": {"type": "object"},
                "executionType": "internal", "effect": effect, "permissionPolicy": "always_ask"});
            assert_eq!(served.post("/api/tools", &tool, Some(&key)).status, 201);
        }
        Self { served, mails, key }
    }

    fn person(&self, name: &str, role: &str) -> Person<'_> {
        Person::added(&self.served, &format!("{name}@acme.example"), "acme", role)
    }

    fn ask_for(&self, tool: &str, input: &Value) -> String {
        let asked =
            self.served.post(&format!("/api/tools/{tool}/calls"), &json!({"input": input, "wait": 0}), Some(&self.key));
        assert_eq!(asked.status, 202, "{asked:?}");
        asked.body["tool_call_id"].as_str().unwrap().to_owned()
    }

    /// A question, and the link to it that somebody was sent.
    fn asked(&self, name: &str) -> (String, String) {
        let call = self.ask_for("deploy", &json!({}));
        (call, self.link_of(name))
    }

    fn link_of(&self, name: &str) -> String {
        links(&self.mails.next_to(&format!("{name}@acme.example"))).remove(0)
    }

    fn status(&self, call: &str) -> Value {
        self.served.get(&format!("/api/calls/{call}"), Some(&self.key)).body["status"].clone()
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.served.request("GET", path, None, headers)
    }

    /// The first press, and what only the next page holds.
    fn choose(&self, link: &str, answer: &str) -> String {
        let page = self.served.submit(link, &format!("answer={answer}"), &[]);
        assert_eq!(page.status, 200, "{page:?}");
        nonce(&page)
    }

    fn confirm(&self, link: &str, nonce: &str) -> Answer {
        self.served.submit(&format!("{link}/confirm"), &format!("nonce={nonce}"), &[])
    }
}

fn text(answer: &Answer) -> &str {
    answer.body.as_str().unwrap_or_default()
}

fn nonce(page: &Answer) -> String {
    let found = text(page).split_once("name=\"nonce\" value=\"").unwrap_or_else(|| panic!("{page:?}")).1;
    found.split('"').next().unwrap().to_owned()
}

/// Every address that a page names in an attribute.
fn addresses(page: &str, attribute: &str) -> BTreeSet<String> {
    let marker = format!("{attribute}=\"");
    let values = page.split(marker.as_str()).skip(1).map(|rest| rest.split('"').next().unwrap());
    values.map(|value| value.replace("&amp;", "&")).collect()
}

#[test]
fn scanners_of_mail_decide_nothing() {
    let office = Office::open();
    office.person("ann", "admin");
    let call = office.ask_for("deploy", &json!({"note": "<script>alert(1)</script>"}));
    let mail = office.mails.next();
    let link = links(&mail).remove(0);
    let agents = ["Mozilla/5.0", "Slackbot-LinkExpanding 1.0", "BarracudaCentral", "curl/8", "Outlook-SafeLinks", ""];
    for agent in agents {
        for extra in [("Purpose", "prefetch"), ("Sec-Purpose", "prefetch;prerender"), ("X-Moz", "prefetch")] {
            let page = office.get(&link, &[("User-Agent", agent), extra]);
            assert!(page.status == 200 && text(&page).contains("deploy needs a yes or a no"), "{page:?}");
        }
    }
    for method in ["HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"] {
        office.served.request(method, &link, None, &[]);
        office.served.request(method, &format!("{link}/confirm"), None, &[]);
    }
    // Everything that the mail and the page name is fetched, and fetched from there.
    let first = office.get(&link, &[]);
    assert!(!text(&first).contains("<script"), "what is shown is text: {first:?}");
    let mut seen = BTreeSet::new();
    let mut next: Vec<String> = addresses(mail["html"].as_str().unwrap(), "href").into_iter().collect();
    next.extend(["href", "src", "action"].iter().flat_map(|attribute| addresses(text(&first), attribute)));
    while let Some(address) = next.pop() {
        let path = address.strip_prefix(&office.served.url).unwrap_or(&address).to_owned();
        if !path.starts_with('/') || !seen.insert(path.clone()) {
            continue;
        }
        let page = office.get(&path, &[]);
        next.extend(["href", "src", "action"].iter().flat_map(|attribute| addresses(text(&page), attribute)));
    }
    assert!(seen.contains(&link), "{seen:?}");
    // One press of everything that can be pressed on the first page, by many at once.
    thread::scope(|scope| {
        for form in ["answer=yes", "answer=no", "answer=yes&answer=no", "answer=", "", "answer=yes&nonce=x&message=y"] {
            for path in [link.clone(), format!("{link}?answer=yes")] {
                let office = &office;
                scope.spawn(move || office.served.submit(&path, form, &[]));
            }
        }
    });
    office.served.submit(&format!("{link}/confirm"), "answer=yes", &[]);
    office.served.submit(&format!("{link}/confirm"), "nonce=", &[]);
    assert_eq!(office.status(&call), "pending");
    // A person then decides with two presses.
    let nonce = office.choose(&link, "yes");
    let done = office.confirm(&link, &nonce);
    assert!(done.status == 200 && text(&done).contains("You said yes"), "{done:?}");
    assert_eq!(office.status(&call), "success");
}

#[test]
fn two_presses_decide_once_and_the_record_says_how() {
    let office = Office::open();
    let ann = office.person("ann", "admin");
    let (call, link) = office.asked("ann");
    let first = office.get(&link, &[]);
    for (header, wanted) in [
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-robots-tag", "noindex, nofollow"),
        ("x-frame-options", "DENY"),
    ] {
        assert_eq!(first.header(header), Some(wanted), "{first:?}");
    }
    let policy = first.header("content-security-policy").unwrap();
    assert!(policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"), "{policy}");
    // A page without a referrer has no origin; one of another server has.
    let elsewhere = office.served.submit(&link, "answer=yes", &[("Origin", "https://evil.example")]);
    assert_eq!(elsewhere.status, 403, "{elsewhere:?}");
    let nonce = nonce(&office.served.submit(&link, "answer=no", &[("Origin", "null")]));
    let older = nonce;
    let nonce = office.choose(&link, "no");
    assert_eq!(office.confirm(&link, &older).status, 409, "only the last page counts");
    let no = office.served.submit(&format!("{link}/confirm"), &format!("nonce={nonce}&message=not+on+a+friday"), &[]);
    assert!(no.status == 200 && text(&no).contains("You said no"), "{no:?}");
    assert_eq!(office.status(&call), "rejected");
    for again in [office.confirm(&link, &nonce), office.served.submit(&link, "answer=yes", &[])] {
        assert!(again.status == 409 && text(&again).contains("It was rejected"), "{again:?}");
    }
    let after = office.get(&link, &[]);
    assert!(text(&after).contains("By ann by a link") && text(&after).contains("not on a friday"), "{after:?}");
    let record = ann.get(&format!("/api/approvals/{call}")).body;
    assert_eq!(
        (&record["source"], &record["by"]["id"], &record["message"]),
        (&json!("link"), &json!(ann.id), &json!("not on a friday"))
    );
    let token = link.trim_start_matches("/a/");
    assert!(!office.served.log().contains(token), "the link is in the log");
}

#[test]
fn forged_and_foreign_links_lead_nowhere() {
    let office = Office::open();
    let ann = office.person("ann", "admin");
    let bob = office.person("bob", "member");
    let (call, link) = office.asked("ann");
    let token = link.trim_start_matches("/a/").to_owned();
    let (bound, mac) = token.split_once('.').unwrap();
    let (other_call, other_link) = office.asked("ann");
    let other_mac = other_link.split_once('.').unwrap().1;
    let flipped = format!("{}{}", if bound.starts_with('A') { 'B' } else { 'A' }, &bound[1..]);
    let forged = [
        token[..token.len() - 1].to_owned(),
        bound.to_owned(),
        format!("{bound}."),
        format!("{bound}.{other_mac}"),
        format!("{flipped}.{mac}"),
        format!("{bound}.{}", mac.to_uppercase()),
        format!("{bound}.{}", "0".repeat(mac.len())),
        "..".to_owned(),
        "%00".to_owned(),
        "x".repeat(5000),
    ];
    for wrong in forged {
        for answer in [
            office.get(&format!("/a/{wrong}"), &[]),
            office.served.submit(&format!("/a/{wrong}"), "answer=yes", &[]),
            office.served.submit(&format!("/a/{wrong}/confirm"), "nonce=x", &[]),
        ] {
            assert!([400, 404, 414, 431].contains(&answer.status), "{wrong}: {answer:?}");
        }
    }
    // What one page holds confirms nothing on another's.
    let nonce = office.choose(&other_link, "yes");
    assert_eq!(office.confirm(&link, &nonce).status, 409);
    assert_eq!((office.status(&call), office.status(&other_call)), (json!("pending"), json!("pending")));
    // A link is its person's: with another role, or none, it is refused when it is used.
    office.person("owen", "owner");
    let nonce = office.choose(&link, "yes");
    office.served.admin(&["person", "add", "ann@acme.example", "--tenant", "acme", "--role", "viewer"]);
    let refused = office.confirm(&link, &nonce);
    assert!(refused.status == 403 && text(&refused).contains("may not answer"), "{refused:?}");
    assert_eq!(bob.get("/api/people").status, 200);
    let owner = office.person("olga", "owner");
    assert_eq!(owner.ask("DELETE", &format!("/api/people/{}", ann.id), None).status, 200);
    assert_eq!(office.get(&link, &[]).status, 404, "whoever left sees nothing");
    assert_eq!(office.status(&call), "pending");
}

#[test]
fn whoever_is_first_decides_and_the_others_read_so() {
    let office = Office::open();
    let ann = office.person("ann", "admin");
    for _ in 0..5 {
        let (call, link) = office.asked("ann");
        let nonce = office.choose(&link, "yes");
        let (by_link, by_page) = thread::scope(|scope| {
            let by_link = scope.spawn(|| office.confirm(&link, &nonce));
            let by_page = scope.spawn(|| ann.post(&format!("/api/approvals/{call}/reject"), json!({})));
            (by_link.join().unwrap(), by_page.join().unwrap())
        });
        let statuses = [by_link.status, by_page.status];
        assert!(statuses == [200, 409] || statuses == [409, 200], "{by_link:?} {by_page:?}");
        if by_link.status == 409 {
            assert!(text(&by_link).contains("It was rejected"), "{by_link:?}");
        }
    }
    // The same page confirmed many times at once.
    let (call, link) = office.asked("ann");
    let nonce = office.choose(&link, "yes");
    let counted: Vec<u16> = thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(|| office.confirm(&link, &nonce).status)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(counted.iter().filter(|status| **status == 200).count(), 1, "{counted:?}");
    assert_eq!(office.status(&call), "success");
}

#[test]
fn what_destroys_needs_somebody_who_is_signed_in() {
    let office = Office::open();
    let ann = office.person("ann", "admin");
    let bob = office.person("bob", "viewer");
    let call = office.ask_for("erase", &json!({}));
    let link = office.link_of("ann");
    let page = office.get(&link, &[]);
    assert!(text(&page).contains("Sign in to say yes") && !text(&page).contains("value=\"yes\""), "{page:?}");
    let pressed = office.served.submit(&link, "answer=yes", &[]);
    assert!(!text(&pressed).contains("nonce"), "{pressed:?}");
    let cookie = |person: &Person<'_>| person.cookie.clone();
    let other = office.served.submit(&link, "answer=yes", &[("Cookie", &cookie(&bob))]);
    assert!(!text(&other).contains("nonce"), "somebody else is signed in: {other:?}");
    let chosen = office.served.submit(&link, "answer=yes", &[("Cookie", &cookie(&ann))]);
    // Without the cookie the second press is refused where every answer is given.
    let refused = office.confirm(&link, &nonce(&chosen));
    assert!(refused.status == 403 && text(&refused).contains("signed in"), "{refused:?}");
    assert_eq!(office.status(&call), "pending");
    let chosen = office.served.submit(&link, "answer=yes", &[("Cookie", &cookie(&ann))]);
    let form = format!("nonce={}", nonce(&chosen));
    let done = office.served.submit(&format!("{link}/confirm"), &form, &[("Cookie", &cookie(&ann))]);
    assert!(done.status == 200 && office.status(&call) == "success", "{done:?}");
    assert_eq!(ann.get(&format!("/api/approvals/{call}")).body["source"], "web");
    // A no needs no more than the link.
    let call = office.ask_for("erase", &json!({}));
    let link = office.link_of("ann");
    let nonce = office.choose(&link, "no");
    assert_eq!((office.confirm(&link, &nonce).status, office.status(&call)), (200, json!("rejected")));
}

#[test]
fn rules_hold_for_links_and_an_expired_question_is_over() {
    let office = Office::with("[approvals]\nexpire = \"4s\"");
    let (ann, bob) = (office.person("ann", "owner"), office.person("bob", "admin"));
    let set = |rules: Value| {
        let version = ann.get("/api/approval-rules").body["version"].clone();
        let set = ann.ask("PUT", "/api/approval-rules", Some(json!({"rules": rules, "version": version})));
        assert_eq!(set.status, 200, "{set:?}");
    };
    set(json!([{"tool": "deploy", "signIn": true}]));
    let call = office.ask_for("deploy", &json!({}));
    let by_key = office.served.post(&format!("/api/approvals/{call}/approve"), &json!({}), Some(&office.key));
    assert!(by_key.status == 403 && by_key.body.to_string().contains("signed in"), "{by_key:?}");
    let link = office.link_of("bob");
    assert!(text(&office.get(&link, &[])).contains("Sign in to say yes"));
    assert_eq!(bob.post(&format!("/api/approvals/{call}/approve"), json!({})).status, 200);
    set(json!([{"tool": "deploy", "count": 2}]));
    let call = office.ask_for("deploy", &json!({}));
    let link = office.link_of("bob");
    let nonce = office.choose(&link, "yes");
    let half = office.confirm(&link, &nonce);
    assert!(half.status == 200 && text(&half).contains("One more person has to say the same"), "{half:?}");
    assert_eq!(office.confirm(&link, &nonce).status, 409, "used");
    let agreed = ann.get(&format!("/api/approvals/{call}/agreements")).body;
    assert_eq!(
        (&agreed["items"][0]["person"], &agreed["items"][0]["source"]),
        (&json!(bob.id), &json!("link")),
        "{agreed}"
    );
    let late = office.choose(&link, "yes");
    until(|| (office.status(&call) == "rejected").then_some(()));
    for over in [office.confirm(&link, &late), office.get(&link, &[])] {
        assert!(text(&over).contains("Nobody answered in time"), "{over:?}");
    }
}
