//! A client that speaks lines to the built program, and can say anything. Every wait has a limit.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{Fixture, LIMIT, text, until};

/// What the client calls itself.
pub(crate) const NAME: &str = "raw";
/// A client that can show a form.
pub(crate) const ASKS: &str = r#"{"elicitation": {"form": {}}}"#;
/// The same in the words of before there was anything else to show.
pub(crate) const ASKS_AS_EVER: &str = r#"{"elicitation": {}}"#;
/// A client that can be sent to an address, and shows no form.
pub(crate) const ASKS_ELSEWHERE: &str = r#"{"elicitation": {"url": {}}}"#;
/// A client that can be asked nothing.
pub(crate) const MUTE: &str = "{}";
/// A client that follows tasks.
pub(crate) const TASKS: &str = r#"{"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {"form": {}}}"#;

/// How a client and a server agree on what they can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// Once, in the beginning: 2025-11-25.
    Initialize,
    /// With every request: 2026-07-28.
    Stateless,
}

impl Era {
    pub(crate) const BOTH: [Self; 2] = [Self::Initialize, Self::Stateless];

    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Initialize => "2025-11-25",
            Self::Stateless => "2026-07-28",
        }
    }
}

/// The program with this client at its standard input and output. It does not outlive the test.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// What was heard while something else was waited for.
    aside: Vec<Value>,
    era: Era,
    able: Value,
    last: u64,
}

impl Client {
    /// A client that is ready to call.
    pub(crate) fn new(fixture: &Fixture, era: Era, able: &str) -> Self {
        Self::with(fixture, era, able, &[])
    }

    /// The same, of a program with more arguments.
    pub(crate) fn with(fixture: &Fixture, era: Era, able: &str, args: &[&str]) -> Self {
        let mut client = Self::silent(fixture.haft(&[&["mcp"], args].concat()), era, able);
        client.greet();
        client
    }

    /// A client that has said nothing yet.
    pub(crate) fn silent(mut command: Command, era: Era, able: &str) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let (said, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| said.send(line)));
        let (stdin, able) = (child.stdin.take(), serde_json::from_str(able).unwrap());
        Self { child, stdin, lines, aside: Vec::new(), era, able, last: 0 }
    }

    /// What the era begins with; gives the server's words.
    pub(crate) fn greet(&mut self) -> Value {
        match self.era {
            Era::Initialize => {
                let about = json!({"name": NAME, "version": "1"});
                let version = self.era.version();
                let able = self.able.clone();
                let params = json!({"protocolVersion": version, "capabilities": able, "clientInfo": about});
                let answer = self.ask("initialize", params);
                self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
                answer
            }
            Era::Stateless => self.ask("server/discover", json!({})),
        }
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).and_then(|()| stdin.flush()).unwrap();
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    /// A request, which is not waited for; gives its id.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = json!(self.last);
        self.request_as(&id, method, params);
        id
    }

    /// The same with an id of one's own.
    pub(crate) fn request_as(&mut self, id: &Value, method: &str, params: Value) {
        let params = self.of_era(params);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        let params = self.of_era(params);
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// With what every message of the era says.
    fn of_era(&self, mut params: Value) -> Value {
        if self.era == Era::Stateless {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!(self.era.version());
            meta["io.modelcontextprotocol/clientCapabilities"] = self.able.clone();
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": NAME, "version": "1"});
        }
        params
    }

    /// The next line as it is; `None` at the end.
    pub(crate) fn line(&mut self) -> Option<String> {
        match self.lines.recv_timeout(LIMIT) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("the server has said nothing for {LIMIT:?}"),
        }
    }

    /// The next message, whatever it is.
    pub(crate) fn hear(&mut self) -> Value {
        let line = self.line().unwrap_or_else(|| panic!("the server has gone; heard: {:?}", self.aside));
        serde_json::from_str(&line).unwrap_or_else(|err| panic!("not JSON ({err}): {line}"))
    }

    /// Waits until the server has told something of its own accord.
    pub(crate) fn notified(&mut self, method: &str) {
        self.hear_first(|message| message["method"] == method);
    }

    /// The next message of its kind; others are put aside.
    fn hear_first(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(found) = self.aside.iter().position(&wanted) {
            return self.aside.remove(found);
        }
        loop {
            let message = self.hear();
            if wanted(&message) {
                return message;
            }
            self.aside.push(message);
        }
    }

    /// The answer to a request.
    pub(crate) fn answer_to(&mut self, id: &Value) -> Value {
        self.hear_first(|message| message.get("method").is_none() && message["id"] == *id)
    }

    /// An error that names no request.
    pub(crate) fn complaint(&mut self) -> Value {
        let message = self.hear_first(|message| message.get("error").is_some());
        assert!(message["id"].is_null(), "{message}");
        message["error"].clone()
    }

    /// The form that the server asks to be shown: its id, and what it says.
    pub(crate) fn form(&mut self) -> (Value, Value) {
        let asked = self.hear_first(|message| message["method"] == "elicitation/create");
        (asked["id"].clone(), asked["params"].clone())
    }

    /// What has been heard beside the answers that were waited for.
    pub(crate) fn heard(&self) -> &[Value] {
        &self.aside
    }

    /// A request and its answer, good or bad.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer_to(&id)
    }

    /// Begins a call; gives the id of the request.
    pub(crate) fn begin(&mut self, tool: &str, input: &Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": input}))
    }

    /// The result of a call that was begun.
    pub(crate) fn result_of(&mut self, id: &Value) -> Value {
        let answer = self.answer_to(id);
        assert!(answer.get("result").is_some(), "{answer:#}");
        answer["result"].clone()
    }

    /// A call and its result.
    pub(crate) fn call(&mut self, tool: &str, input: &Value) -> Value {
        let id = self.begin(tool, input);
        self.result_of(&id)
    }

    /// Says no more, and hears what is still said.
    pub(crate) fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Says no more, and waits for the program's end.
    pub(crate) fn leave(mut self) -> ExitStatus {
        self.close_input();
        self.end()
    }

    /// Waits for the program's end.
    pub(crate) fn end(&mut self) -> ExitStatus {
        until("end of the program", || self.child.try_wait().unwrap())
    }

    /// Asks the program to end.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// `kill -9`.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What haft says of a call beside its result.
pub(crate) fn facts(result: &Value) -> &Value {
    &result["_meta"]["haft/call"]
}

/// The id of the call that a result belongs to.
pub(crate) fn call_id(result: &Value) -> String {
    text(&facts(result)["callId"])
}

/// The story of the call that a result belongs to. What only reads may be recorded a moment after it was answered.
pub(crate) fn recorded(fixture: &Fixture, result: &Value) -> Value {
    let call = call_id(result);
    let told =
        until("record", || Some(fixture.run(&["log", "show", &call, "--json"])).filter(|told| told.code == Some(0)));
    told.json()
}

/// The first text of a result.
pub(crate) fn said(result: &Value) -> String {
    text(&result["content"][0]["text"])
}

/// A result that must be a success.
pub(crate) fn succeeded(result: &Value) {
    assert_eq!((&result["isError"], &facts(result)["status"]), (&json!(false), &json!("success")), "{result:#}");
}

/// A result that must be no success, with its code in the text; it has nothing that a client would check.
pub(crate) fn failed(result: &Value, status: &str, code: &str) {
    assert_eq!((&result["isError"], &facts(result)["status"]), (&json!(true), &json!(status)), "{result:#}");
    assert!(said(result).starts_with(&format!("{code}: ")), "{result:#}");
    assert!(result.get("structuredContent").is_none(), "{result:#}");
}
