//! What every agent does with haft: it reads, and it writes after a yes that comes from elsewhere.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use serde_json::{Value, json};

use crate::{
    model::{DONE, Model, Wish},
    support::{Fixture, Running, text, until},
};

/// Where `scripts/setup` puts the programs that tests meet.
#[expect(clippy::disallowed_methods, reason = "the programs are found as the set-up puts them")]
pub(crate) fn installed(path: &str) -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").unwrap_or_else(|| variable("HOME").unwrap().join(".cache"));
    let found = cache.join("haft/tools").join(path);
    assert!(found.exists(), "{} is missing; `scripts/setup` installs it", found.display());
    found
}

/// What npm calls this machine.
pub(crate) fn machine() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" }
}

/// A workspace and a model for an agent that knows haft by what `haft mcp install` has written.
pub(crate) fn with(client: &str) -> (Fixture, Model) {
    let fixture = Fixture::new();
    fixture.install_program();
    let ran = fixture.run(&["mcp", "install", client]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    fixture.put("a.txt", "what the file says\n");
    (fixture, Model::following(script))
}

/// An agent that knows no other way out than the model, and leaves what it unpacks in the test's own folder.
pub(crate) fn agent(fixture: &Fixture, model: &Model, program: &str) -> Command {
    let mut command = fixture.program(program);
    let unpacked = fixture.home.join("tmp");
    fs::create_dir(&unpacked).unwrap();
    command.env("TMPDIR", unpacked);
    let everywhere_else = format!("http://{}", model.address);
    command.envs([("HTTP_PROXY", &everywhere_else), ("HTTPS_PROXY", &everywhere_else)]);
    command.env("NO_PROXY", "127.0.0.1");
    command
}

/// Reads a file, writes another, and where that is still pending waits for it.
fn script(answers: &[String]) -> Option<Wish> {
    match answers {
        [] => Some(Wish { tool: "read_file", input: json!({"path": "a.txt"}) }),
        [_] => Some(Wish { tool: "write_file", input: json!({"path": "made.txt", "content": "made\n"}) }),
        [_, pending] => {
            let call =
                pending.split('"').find(|word| word.starts_with("tc_")).filter(|_| pending.contains("PENDING"))?;
            Some(Wish { tool: "wait_call", input: json!({"callId": call, "timeoutMs": 60_000}) })
        }
        [_, _, _, ..] => None,
    }
}

/// Lets it work, says yes in its place, and looks at what everybody has seen.
pub(crate) fn works(fixture: &Fixture, model: &Model, command: Command, client: &str) {
    let mut agent = Running::start(command);
    until("wish to write", || {
        assert!(!agent.ends_within(Duration::ZERO), "it ended before it wrote: {:?}", model.heard());
        model.wishes.recv_timeout(Duration::from_secs(1)).ok().filter(|wish| *wish == "write_file")
    });
    let call = fixture.asked(&[]);
    assert_eq!(fixture.text("made.txt"), None, "nothing is written before the yes");
    assert_eq!(fixture.run(&["approve", &call]).code, Some(0));
    let ran = agent.finish();
    assert!(ran.code == Some(0) && ran.said().contains(DONE), "{ran:?}\n{:?}", model.heard());
    assert_eq!(fixture.text("made.txt").as_deref(), Some("made\n"));

    let answers = model.heard().answers;
    assert!(answers[0].contains("what the file says"), "{answers:?}");
    assert!(answers.len() >= 2 && answers.last().unwrap().contains("made.txt"), "{answers:?}");

    for tool in ["read_file", "write_file"] {
        let rows = fixture.json(&["log", "--tool", tool]);
        let stories = rows.as_array().unwrap().iter().map(|row| fixture.story(&text(&row["callId"])));
        let theirs: Vec<Value> = stories.filter(|story| story["source"] == "mcp").collect();
        let told: Vec<_> = theirs.iter().map(|story| (&story["caller"], &story["status"])).collect();
        assert_eq!(told, [(&json!(client), &json!("success"))], "{theirs:#?}");
    }
    assert_eq!(fixture.story(&call)["tool"], "write_file");
}
