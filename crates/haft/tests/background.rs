//! Commands in the background: they write into the workspace itself, are asked for first, and end with their haft.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::{
    fs,
    io::Read,
    net::{TcpListener, TcpStream},
    path::Path,
    sync::Arc,
    time::Duration,
};

use haft::{
    house::{self, House},
    settings::Settings,
};
use haft_runtime::{
    AnyTool, AutoApprove, CallId, CallRequest, Caller, ErrorCode, Isolation, Prepared, Ran, Scope, Shown, Source,
    ToolCtx, ToolError,
};
use haft_sandbox::fence::FenceLimits;
use haft_store::{Durability, Store};
use haft_tools::{FenceConfig, OpenWorkspaces, Workspace, Workspaces};
use serde_json::{Value, json};
use support::{ALL, Fixture, HAFT, LIMIT, text, until};

/// The tools of a haft that lives on, used by hand.
struct Bench {
    fixture: Fixture,
    workspace: Arc<Workspace>,
    tools: Vec<Arc<dyn AnyTool>>,
}

impl Bench {
    fn new() -> Self {
        let fixture = Fixture::new();
        fs::create_dir(&fixture.data).unwrap();
        let workspace = open_workspace(&fixture, &fixture.workspace);
        let other = fixture.home.join("other");
        fs::create_dir(&other).unwrap();
        let open = OpenWorkspaces::new(&fixture.data).with(Scope::local("test"), workspace.clone());
        let workspaces: Arc<dyn Workspaces> =
            Arc::new(open.with(Scope::local("other"), open_workspace(&fixture, &other)));
        let tools = haft_tools::all(&workspaces, Shown::Never);
        Self { fixture, workspace, tools }
    }

    async fn use_in(&self, ctx: &ToolCtx, tool: &str, input: Value) -> Result<Value, ToolError> {
        let tool = self.tools.iter().find(|known| known.spec().name == tool).unwrap();
        tool.prepare(ctx, &input).await?;
        let ran = tokio::time::timeout(LIMIT, tool.run(ctx, &input)).await.unwrap();
        ran.and_then(Ran::into_output).map(|output| output.structured.into_value())
    }

    async fn try_to(&self, tool: &str, input: Value) -> Result<Value, ToolError> {
        self.use_in(&ctx(), tool, input).await
    }

    /// What a command said that ran aside.
    async fn aside(&self, ctx: &ToolCtx, tool: &str, input: Value) -> String {
        let tool = self.tools.iter().find(|known| known.spec().name == tool).unwrap();
        let prepared = tokio::time::timeout(LIMIT, tool.prepare(ctx, &input)).await.unwrap().unwrap();
        let Prepared::Staged { output, .. } = prepared else { panic!("{input} did not run aside") };
        text(&output.structured.into_value()["stdout"])
    }

    /// Starts a server in the background that says `hello`; gives its port.
    async fn serve(&self, network: bool) -> u16 {
        let input = json!({"command": format!("exec python3 -uc '{SERVER}'"), "network": network});
        let task = text(&self.try_to("shell_background", input).await.unwrap()["taskId"]);
        self.said(&task, "\n").await;
        let output = self.try_to("shell_output", json!({"taskId": task})).await.unwrap();
        text(&output["chunk"]).trim().parse().unwrap()
    }

    async fn start(&self, command: &str) -> String {
        text(&self.try_to("shell_background", json!({"command": command})).await.unwrap()["taskId"])
    }

    /// Reads until a text was said, and gives everything up to there.
    async fn said(&self, task: &str, expected: &str) -> Value {
        let (mut all, mut offset) = (String::new(), 0);
        loop {
            let input = json!({"taskId": task, "offset": offset, "waitMs": 60000});
            let output = self.try_to("shell_output", input).await.unwrap();
            all.push_str(output["chunk"].as_str().unwrap());
            if all.contains(expected) {
                return output;
            }
            assert_eq!(output["status"], json!("running"), "{expected} was not said: {all}");
            offset = output["nextOffset"].as_u64().unwrap();
        }
    }
}

/// Tells its port, and greets everybody who connects.
const SERVER: &str = "import socket
s = socket.create_server((\"127.0.0.1\", 0))
print(s.getsockname()[1])
while True:
    c = s.accept()[0]
    c.sendall(b\"hello\")
    c.close()";

/// A command that says what a server says, or nothing where there is none.
fn ask(port: u16) -> Value {
    json!({"command": format!("exec 2> /dev/null; cat < /dev/tcp/127.0.0.1/{port}; true")})
}

/// What a server of this machine says.
fn heard_on_this_machine(port: u16) -> String {
    let mut heard = String::new();
    // Somebody else may listen there and say nothing.
    if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let _ = stream.read_to_string(&mut heard);
    }
    heard
}

/// A folder in which commands outlive their calls.
fn open_workspace(fixture: &Fixture, folder: &Path) -> Arc<Workspace> {
    let config = FenceConfig {
        program: HAFT.into(),
        home: fixture.home.clone(),
        variables: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        limits: FenceLimits::default(),
        minimum: Isolation::Namespaces,
        readable: Vec::new(),
        writable: Vec::new(),
        hide: Vec::new(),
        timeout: Duration::from_secs(120),
        settings_file: "haft.toml".to_owned(),
    };
    let workspace = Workspace::open(folder, &fixture.data).unwrap();
    Arc::new(workspace.running_commands(config).outliving_calls())
}

fn ctx() -> ToolCtx {
    ctx_in("test")
}

/// A call in this workspace.
fn ctx_in(workspace: &str) -> ToolCtx {
    let caller = Caller::owner("test", Scope::local(workspace), Source::Cli);
    ToolCtx::detached(CallId::new(), caller)
}

/// How many processes have this word in their command line.
fn alive(word: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok());
    lines.filter(|line| line.split('\0').any(|part| part == word)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_belongs_to_its_workspace() {
    let bench = Bench::new();
    let task = bench.start("touch here; pwd; exec sleep 600").await;
    bench.said(&task, "workspace\n").await;
    assert!(bench.fixture.path("here").exists() && !bench.fixture.home.join("other/here").exists());
    let elsewhere = ctx_in("other");
    let listed = bench.use_in(&elsewhere, "shell_list", json!({})).await.unwrap();
    assert_eq!(listed["tasks"], json!([]), "{listed:#}");
    for tool in ["shell_output", "shell_kill"] {
        let refused = bench.use_in(&elsewhere, tool, json!({"taskId": task})).await.unwrap_err();
        assert!(!refused.message.contains("sleep"), "{refused:?}");
    }
    assert_eq!(bench.try_to("shell_list", json!({})).await.unwrap()["tasks"][0]["status"], json!("running"));
    bench.workspace.end_background().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_on_is_read_and_ends_as_it_is_asked_to() {
    let bench = Bench::new();
    let task =
        bench.start("trap 'echo bye; exit 5' TERM; echo ready > made; echo ready; while :; do sleep 0.05; done").await;
    let output = bench.said(&task, "ready\n").await;
    assert_eq!((&output["status"], &output["nextOffset"]), (&json!("running"), &json!(6)), "{output:#}");
    assert_eq!(bench.fixture.text("made").as_deref(), Some("ready\n"), "it writes into the workspace itself");
    let listed = bench.try_to("shell_list", json!({})).await.unwrap();
    assert_eq!((&listed["tasks"][0]["taskId"], &listed["tasks"][0]["status"]), (&json!(task), &json!("running")));
    let killed = bench.try_to("shell_kill", json!({"taskId": task})).await.unwrap();
    assert_eq!(killed, json!({"taskId": task, "status": "exited", "exitCode": 5}));
    let rest = bench.try_to("shell_output", json!({"taskId": task, "offset": 6})).await.unwrap();
    // The shell may tell first of the `sleep` that the same signal ended.
    assert!(text(&rest["chunk"]).contains("bye\n") && rest["status"] == json!("exited"), "{rest:#}");
    let again = bench.try_to("shell_kill", json!({"taskId": task, "signal": "KILL"})).await.unwrap();
    assert_eq!(again, killed, "one that has ended is left as it is");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_steers_haft_is_held_back_when_it_ends() {
    let bench = Bench::new();
    let ctx = ctx();
    let command = "echo x > haft.toml; mkdir .haft; echo plain > plain; echo said";
    let started = bench.use_in(&ctx, "shell_background", json!({"command": command})).await.unwrap();
    let output = bench.said(&text(&started["taskId"]), "held back").await;
    assert!(text(&output["chunk"]).contains(&format!("haft changes {}", ctx.call_id)), "{output:#}");
    let there = |path: &str| bench.fixture.path(path).exists();
    assert!(there("plain") && !there("haft.toml") && !there(".haft"));
    let held = haft_sandbox::changes::Changes::open(&bench.fixture.data.join("changes").join(ctx.call_id.as_str()));
    let held: Vec<String> = held.unwrap().list().into_iter().map(|change| change.path).collect();
    assert_eq!(held, [".haft", "haft.toml"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_does_not_listen_is_killed_with_all_that_it_started() {
    let bench = Bench::new();
    let marker = format!("63.{}", std::process::id());
    let command = format!("trap '' TERM; (setsid sleep {marker} &); sleep {marker} & echo ready; wait; sleep {marker}");
    let task = bench.start(&command).await;
    bench.said(&task, "ready").await;
    until("two sleepers", || (alive(&marker) == 2).then_some(()));
    let killed = bench.try_to("shell_kill", json!({"taskId": task})).await.unwrap();
    assert_eq!((&killed["status"], &killed["exitCode"]), (&json!("killed"), &json!(137)), "{killed:#}");
    assert_eq!(alive(&marker), 0);
    let task = bench.start(&format!("echo ready; sleep {marker}")).await;
    bench.said(&task, "ready").await;
    // A shell that has only just begun to start it would wait for it to its end.
    until("a sleeper", || (alive(&marker) == 1).then_some(()));
    let killed = bench.try_to("shell_kill", json!({"taskId": task, "signal": "INT"})).await.unwrap();
    assert_eq!((&killed["status"], &killed["exitCode"]), (&json!("killed"), &json!(130)), "{killed:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_flood_the_last_is_kept_by_its_offset() {
    let bench = Bench::new();
    let task = bench.start("seq -w 1 400000; echo end").await;
    let length = 400_000 * 7 + 4;
    loop {
        let input = json!({"taskId": task, "offset": length - 1, "waitMs": 60000});
        let output = bench.try_to("shell_output", input).await.unwrap();
        if output["status"] == json!("exited") {
            assert_eq!(output["nextOffset"], json!(length), "{output:#}");
            break;
        }
    }
    let first = bench.try_to("shell_output", json!({"taskId": task, "limit": 7})).await.unwrap();
    assert_eq!(first["offset"], json!(length - (1 << 20)), "{first:#}");
    let last = bench.try_to("shell_output", json!({"taskId": task, "offset": length - 11})).await.unwrap();
    assert_eq!(last["chunk"], json!("400000\nend\n"), "{last:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_is_bounded_and_ends_when_the_call_is_stopped() {
    let bench = Bench::new();
    let task = bench.start("sleep 64").await;
    let quiet = bench.try_to("shell_output", json!({"taskId": task, "waitMs": 50})).await.unwrap();
    assert_eq!((&quiet["chunk"], &quiet["status"]), (&json!(""), &json!("running")), "{quiet:#}");
    let ctx = ctx();
    ctx.cancel.cancel();
    let stopped = bench.use_in(&ctx, "shell_output", json!({"taskId": task, "waitMs": 60000})).await.unwrap_err();
    assert_eq!(stopped.code, ErrorCode::Cancelled);
    let unknown = bench.try_to("shell_output", json!({"taskId": "bg_9"})).await.unwrap_err();
    assert!(unknown.code == ErrorCode::InvalidArgs && unknown.message.contains("shell_list"), "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_at_most_32_and_those_that_have_ended_give_way() {
    let bench = Bench::new();
    let first = bench.start("true").await;
    let input = json!({"taskId": first, "waitMs": 60000});
    assert_eq!(bench.try_to("shell_output", input).await.unwrap()["status"], json!("exited"));
    for _ in 1..32 {
        bench.start("sleep 65").await;
    }
    bench.start("sleep 65").await;
    let listed = bench.try_to("shell_list", json!({})).await.unwrap();
    let tasks = listed["tasks"].as_array().unwrap();
    assert!(tasks.len() == 32 && tasks.iter().all(|task| task["taskId"] != json!(first)), "{listed:#}");
    let refused = bench.try_to("shell_background", json!({"command": "true"})).await.unwrap_err();
    assert!(refused.code == ErrorCode::ResourceLimit && refused.message.contains("shell_kill"), "{refused}");
    bench.workspace.end_background().await;
    let listed = bench.try_to("shell_list", json!({})).await.unwrap();
    assert!(listed["tasks"].as_array().unwrap().iter().all(|task| task["status"] == json!("killed")), "{listed:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_fenced_and_cannot_steer_what_runs_later() {
    let bench = Bench::new();
    bench.fixture.put(".haft/tools/x.toml", "");
    bench.fixture.put(".env", "SECRET=1\n");
    let data = bench.fixture.data.display();
    let task =
        bench.start(&format!("cat .env {data}/*; echo x > .haft/tools/x.toml; echo x > {data}/x; echo done")).await;
    let output = bench.said(&task, "done").await;
    assert!(!output["chunk"].as_str().unwrap().contains("SECRET"), "{output:#}");
    assert_eq!(bench.fixture.text(".haft/tools/x.toml").as_deref(), Some(""));
    assert!(!bench.fixture.data.join("x").exists());
    for (input, code) in [
        (json!({"command": "rm -rf /"}), ErrorCode::CommandBlocked),
        (json!({"command": "true", "cwd": "../.."}), ErrorCode::InvalidPath),
        (json!({"command": "true", "env": {"LD_PRELOAD": "x"}}), ErrorCode::InvalidArgs),
    ] {
        assert_eq!(bench.try_to("shell_background", input).await.unwrap_err().code, code);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_reached_by_later_commands_of_its_workspace_and_by_nobody_else() {
    let bench = Bench::new();
    let port = bench.serve(false).await;
    assert_eq!(bench.aside(&ctx(), "shell_exec", ask(port)).await, "hello");
    let code = format!("import socket; print(socket.create_connection(('localhost', {port}), 10).recv(9).decode())");
    assert_eq!(bench.aside(&ctx(), "run_code", json!({"language": "python", "code": code})).await, "hello\n");
    let task = bench.start(&text(&ask(port)["command"])).await;
    bench.said(&task, "hello").await;

    assert_eq!(bench.aside(&ctx_in("other"), "shell_exec", ask(port)).await, "", "another workspace");
    let other = bench.use_in(&ctx_in("other"), "shell_background", json!({"command": "sleep 67"})).await.unwrap();
    assert_eq!(bench.aside(&ctx_in("other"), "shell_exec", ask(port)).await, "", "another workspace with its own");
    bench.use_in(&ctx_in("other"), "shell_kill", json!({"taskId": other["taskId"]})).await.unwrap();
    let (code, outcome) = bench.fixture.call("shell_exec", &ask(port), ALL);
    assert_eq!((code, &outcome["result"]["structured"]["stdout"]), (0, &json!("")), "another haft: {outcome:#}");
    assert!(!heard_on_this_machine(port).contains("hello"));
    bench.workspace.end_background().await;
    assert_eq!(bench.aside(&ctx(), "shell_exec", ask(port)).await, "", "it has ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_this_machine_are_not_reached() {
    let bench = Bench::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let command = format!("exec 3<> /dev/tcp/127.0.0.1/{port} && echo reached || echo refused");
    let task = bench.start(&format!("({command}); exec sleep 68")).await;
    bench.said(&task, "refused\n").await;
    assert_eq!(bench.aside(&ctx(), "shell_exec", json!({"command": format!("({command})")})).await, "refused\n");
    assert!(listener.accept().is_err());
    bench.workspace.end_background().await;
}

/// What reaches the machine's network is in that one, and not in that of the other commands.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_the_network_is_reached_from_this_machine_only() {
    let bench = Bench::new();
    let port = bench.serve(true).await;
    assert_eq!(heard_on_this_machine(port), "hello");
    assert_eq!(bench.aside(&ctx(), "shell_exec", ask(port)).await, "");
    bench.workspace.end_background().await;
}

async fn living(fixture: &Fixture) -> House {
    let settings = Settings { program: HAFT.into(), ..Settings::defaults(fixture.data.clone()) };
    let store = Store::open(&settings.data, Durability::Normal).await.unwrap();
    house::living(settings, store, &fixture.workspace).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_asked_for_first_cannot_be_undone_and_ends_with_its_house() {
    let fixture = Fixture::new();
    let house = living(&fixture).await;
    let marker = format!("66.{}", std::process::id());
    let input = json!({"command": format!("sleep {marker}")});
    let call = async |mode| {
        let mut request = CallRequest::new(house.caller.clone(), "shell_background", input.clone());
        request.auto_approve = mode;
        serde_json::to_value(house.pipeline.call(request).await).unwrap()
    };
    let asked = call(AutoApprove::Reads).await;
    assert_eq!(asked["status"], json!("pending"), "{asked:#}");
    assert_eq!(alive(&marker), 0);
    let outcome = call(AutoApprove::Everything).await;
    assert_eq!((&outcome["status"], &outcome["undoable"]), (&json!("success"), &json!(false)), "{outcome:#}");
    assert_eq!(outcome["isolation"], json!("namespaces"));
    until("the command at work", || (alive(&marker) == 1).then_some(()));
    house.close().await.unwrap();
    assert_eq!(alive(&marker), 0);
}

/// A haft that lives takes in what another one trusts, and only then.
#[tokio::test(flavor = "multi_thread")]
async fn a_living_house_knows_of_project_tools_as_soon_as_they_are_trusted() {
    let fixture = Fixture::new();
    let house = living(&fixture).await;
    let call = async || {
        let request = CallRequest::new(house.caller.clone(), "hello", json!({}));
        serde_json::to_value(house.pipeline.call(request).await).unwrap()
    };
    let manifest = |word: &str| format!("description = 'Says hello.'\ncommand = ['echo', '{word}']\n");
    assert_eq!(call().await["error"]["code"], json!("TOOL_NOT_FOUND"));
    fixture.put(".haft/tools/hello.toml", manifest("hello"));
    assert_eq!(call().await["error"]["code"], json!("NOT_TRUSTED"));
    for word in ["hello", "goodbye"] {
        fixture.put(".haft/tools/hello.toml", manifest(word));
        assert_eq!(fixture.run(&["trust", "--yes"]).code, Some(0));
        let outcome = call().await;
        assert_eq!(outcome["result"]["structured"]["stdout"], json!(format!("{word}\n")), "{outcome:#}");
    }
    assert_eq!(fixture.run(&["trust", "--forget"]).code, Some(0));
    assert_eq!(call().await["error"]["code"], json!("NOT_TRUSTED"));
    house.close().await.unwrap();
}

#[test]
fn one_call_alone_has_no_background() {
    let fixture = Fixture::new();
    let task = json!({"taskId": "bg_1"});
    let start = json!({"command": "touch made"});
    for (tool, input) in
        [("shell_background", &start), ("shell_list", &json!({})), ("shell_output", &task), ("shell_kill", &task)]
    {
        let (code, outcome) = fixture.call(tool, input, ALL);
        assert_eq!((code, &outcome["error"]["code"]), (1, &json!("UNAVAILABLE")), "{outcome:#}");
        assert!(text(&outcome["error"]["message"]).contains("shell_exec"), "{outcome:#}");
    }
    assert_eq!(fixture.text("made"), None);
}
