//! The suite's scenarios for authorization servers, against `haft serve`: somebody signs in, and lets the suite in when it asks.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// Runs every scenario of a revision, and says whether all passed.
pub(super) fn run(program: &Path, suite: &mut Command, revision: &str) -> Result<bool> {
    let served = SuiteGateway::start(program)?;
    let person = served.person()?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let back = format!("http://127.0.0.1:{port}/callback");
    let registered =
        served.post("/oauth/register", &json!({"client_name": "the suite", "redirect_uris": [back]}), &[])?;
    let client = registered["client_id"].as_str().context("the suite was not registered")?;
    println!("== authorization server, {revision} at {}", served.url);
    let mut suite = suite
        .args(["authorization", "--url", &served.url, "--client-id", client, "--spec-version", revision])
        .args(["--resource", &format!("{}/mcp", served.url), "--port", &port.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the suite")?;
    let lines = BufReader::new(suite.stdout.take().context("the suite says nothing")?).lines();
    let mut were_checked = true;
    for line in lines {
        let line = line?;
        println!("{line}");
        // A scenario that is passed over counts for nothing.
        were_checked &= !line.ends_with(": 0 passed, 0 failed");
        if let Some((_, asked)) = line.split_once("/oauth/authorize?") {
            served.let_in(asked, &person)?;
        }
    }
    Ok(suite.wait()?.success() && were_checked)
}

/// What the browser of somebody holds who is signed in.
struct SignedInPerson {
    cookie: String,
    csrf: String,
}

/// `haft serve` on data of its own, which go with it.
struct SuiteGateway {
    program: PathBuf,
    folder: PathBuf,
    url: String,
    child: Child,
    _lines: BufReader<ChildStdout>,
}

impl SuiteGateway {
    fn start(program: &Path) -> Result<Self> {
        let folder = env::temp_dir().join(format!("haft-conformance-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let mut command = haft(program, &folder);
        let mut child = command.args(["serve", "--listen", "127.0.0.1:0", "--json"]).stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("haft serve says nothing")?);
        let mut first = String::new();
        lines.read_line(&mut first)?;
        let first: Value = serde_json::from_str(&first).context("haft serve has not started")?;
        let url = first["url"].as_str().context("haft serve has not said where it is")?.to_owned();
        Ok(Self { program: program.to_owned(), folder, url, child, _lines: lines })
    }

    /// Somebody who is signed in.
    fn person(&self) -> Result<SignedInPerson> {
        let add = ["admin", "person", "add", "ann@example.org", "--tenant", "local", "--json"];
        let added = haft(&self.program, &self.folder).args(add).output()?;
        ensure!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
        let added: Value = serde_json::from_slice(&added.stdout)?;
        let (head, body) = self.ask("POST", "/api/sign-in", &json!({"link": added["signIn"]}).to_string(), &[])?;
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")?.split(';').next());
        let cookie = cookie.context("nobody was signed in")?.to_owned();
        let body: Value = serde_json::from_str(&body)?;
        Ok(SignedInPerson { cookie, csrf: body["csrf"].as_str().context("nobody was signed in")?.to_owned() })
    }

    /// Does what the page does when somebody presses its button, and goes back as a browser would.
    fn let_in(&self, asked: &str, person: &SignedInPerson) -> Result<()> {
        let mut answer = json!({"tenant": "local", "scopes": ["tools:read"], "allow": true});
        for pair in asked.trim().split('&') {
            let (name, value) = pair.split_once('=').context("the suite asked in an odd way")?;
            answer[name] = Value::String(value.replace("%3A", ":").replace("%2F", "/"));
        }
        let headers = [("Cookie", person.cookie.as_str()), ("X-CSRF-Token", person.csrf.as_str())];
        let answered = self.post("/api/oauth/consents", &answer, &headers)?;
        let to = answered["to"].as_str().with_context(|| format!("the suite was not let in: {answered}"))?;
        let (host, path) = to.trim_start_matches("http://").split_once('/').context("nowhere to go back to")?;
        exchange(host, &format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")).map(drop)
    }

    fn post(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> Result<Value> {
        let (_, body) = self.ask("POST", path, &body.to_string(), headers)?;
        Ok(serde_json::from_str(&body)?)
    }

    fn ask(&self, method: &str, path: &str, body: &str, headers: &[(&str, &str)]) -> Result<(String, String)> {
        let host = self.url.trim_start_matches("http://");
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n{headers}\r\n{body}",
            body.len()
        );
        let answer = exchange(host, &text)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("haft serve broke off")?;
        Ok((head.to_owned(), body.to_owned()))
    }
}

impl Drop for SuiteGateway {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
        let _gone = fs::remove_dir_all(&self.folder);
    }
}

/// One request, and everything that is answered.
fn exchange(host: &str, text: &str) -> Result<String> {
    let mut stream = TcpStream::connect(host).with_context(|| format!("cannot reach {host}"))?;
    stream.write_all(text.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The program on data of its own.
fn haft(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("HAFT_DATA_DIR", folder.join("data")).env("HOME", folder).env("XDG_CONFIG_HOME", folder.join("config"));
    command.env_remove("HAFT_STORE_URL").stdin(Stdio::null());
    command
}
