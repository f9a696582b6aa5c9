//! `haft mcp-servers`

use anyhow::Result;
use clap::Subcommand;
use haft_mcp::{NEEDS_LOGIN, PATIENCE, PinDifference, ServerPins, UpstreamServer, tool_name};
use haft_runtime::{ErrorCode, ToolError, nearest};
use serde_json::{Value, json};

use crate::{
    cli::Everywhere,
    commands::{
        add_server::{self, NewServer},
        mistake, open, remove_server,
    },
    exit::CliExit,
    house::House,
    settings::{McpServer, mcp::ServerOrigin},
    show::{
        Out,
        diff::coloured,
        safe::safe,
        style::{DIM, STRONG, WARN},
        table::{table, width, wrapped},
    },
    upstreams::told,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Add a server to your own list, start it and accept the tools that it has now
    Add(NewServer),
    /// Remove a server from your own list, and forget what was accepted of it
    Remove {
        /// The server
        name: String,
    },
    /// What a server said of its tools last, beside what was accepted; every call asks it anew
    Diff {
        /// The server; all of them without it
        name: Option<String>,
    },
    /// Accept what `diff` shows
    Accept {
        /// The server; all of them without it
        name: Option<String>,
    },
    /// Start a server anew, here and in every haft that uses it
    Restart {
        /// The server
        name: String,
    },
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: Args) -> Result<CliExit> {
    if let Some(Action::Remove { name }) = &args.action {
        remove_server::remove(name)?;
        if out.json {
            out.document(&json!({"removed": name}));
        } else {
            out.line(&format!("`{name}` is removed. Running haft processes keep it until they end."));
        }
        return Ok(CliExit::Success);
    }
    let (name, also_starts) = match &args.action {
        Some(Action::Add(new)) => {
            add_server::add(new).await?;
            (Some(new.name.clone()), true)
        }
        Some(Action::Restart { name }) => (Some(name.clone()), true),
        Some(Action::Diff { name } | Action::Accept { name }) => (name.clone(), false),
        Some(Action::Remove { .. }) | None => (None, false),
    };
    let house = open(everywhere).await?;
    let ended = match chosen(&house, name.as_deref()) {
        Err(err) => Err(err),
        Ok(servers) if also_starts => match &args.action {
            Some(Action::Add(new)) => {
                servers[0].pins.change(&mut ServerPins::begin_anew).await?;
                start(out, &house, servers[0]).await.map_err(|err| add_server::with_its_entry(&err, &new.name))
            }
            Some(Action::Restart { .. } | Action::Remove { .. } | Action::Diff { .. } | Action::Accept { .. })
            | None => {
                servers[0].pins.change(&mut ServerPins::restart).await?;
                start(out, &house, servers[0]).await
            }
        },
        Ok(servers) => match args.action {
            Some(Action::Diff { .. }) => diff(out, &servers).await,
            Some(Action::Accept { .. }) => accept(out, &servers).await,
            Some(Action::Add(_) | Action::Remove { .. } | Action::Restart { .. }) | None => Ok(list(out, &house)),
        },
    };
    house.leave().await?;
    ended
}

/// The server of a name, or all that are used.
fn chosen<'a>(house: &'a House, name: Option<&str>) -> Result<Vec<&'a UpstreamServer>> {
    let Some(name) = name else { return Ok(house.upstreams.servers().collect()) };
    if let Some(server) = house.upstreams.server(name) {
        return Ok(vec![server]);
    }
    let all = house.settings.mcp.servers();
    if all.iter().any(|server| server.name == name) {
        return Err(mistake(format!("the server `{name}` is disabled; take `disabled` out of its entry")));
    }
    let near = nearest(name, all.iter().map(|server| server.name.as_str()));
    let hint = near
        .first()
        .map_or_else(|| "`haft mcp-servers` lists them".to_owned(), |near| format!("did you mean `{near}`?"));
    Err(ToolError::new(ErrorCode::NotFound, format!("there is no server `{name}`; {hint}")).into())
}

/// Starts a server anew; every haft that uses it does the same with its own before the next call.
async fn start(out: &Out, house: &House, server: &UpstreamServer) -> Result<CliExit> {
    server.upstream.end_soon();
    let met = told(server.name(), server.upstream.meet(PATIENCE)).await;
    let all = house.settings.mcp.servers();
    let Some(wanted) = all.iter().find(|wanted| wanted.name == server.name()) else {
        return Err(
            ToolError::new(ErrorCode::NotFound, format!("there is no server `{}` any more", server.name())).into()
        );
    };
    let state = McpServerState::of(wanted, Some(server));
    if out.json {
        out.document(&state.document());
    } else if met.is_ok() {
        out.line(&format!("`{}` runs: {}", server.name(), state.tools()));
        if !state.held.is_empty() {
            out.line(&format!(
                "{WARN}held:{WARN:#} {}; see `haft mcp-servers diff {}`",
                state.held.join(", "),
                server.name()
            ));
        }
        state.dropped.iter().for_each(|one| out.line(&format!("{WARN}left out:{WARN:#} {}", safe(one))));
    }
    met.map(|()| CliExit::Success).or_else(|err| if out.json { Ok(CliExit::Failure) } else { Err(err.into()) })
}

fn list(out: &Out, house: &House) -> CliExit {
    let all = house.settings.mcp.servers();
    let states: Vec<McpServerState> =
        all.iter().map(|wanted| McpServerState::of(wanted, house.upstreams.server(&wanted.name))).collect();
    if out.json {
        out.document(&states.iter().map(McpServerState::document).collect::<Vec<_>>());
        return CliExit::Success;
    }
    if states.is_empty() {
        out.line("no MCP servers; add one: haft mcp-servers add NAME -- COMMAND …");
        return CliExit::Success;
    }
    let row = |state: &McpServerState| {
        let what = state.last_error.clone().unwrap_or_else(|| state.wanted.reached.shown());
        vec![
            state.wanted.name.clone(),
            state.word().to_owned(),
            state.tools.len().to_string(),
            state.version.clone(),
            what,
        ]
    };
    out.text(&table(&["SERVER", "STATE", "TOOLS", "MCP", "WHAT"], &states.iter().map(row).collect::<Vec<_>>()));
    for state in states.iter().filter(|state| state.last_error.is_some()) {
        let why = state.last_error.as_deref().unwrap_or_default();
        let breaks = state.breaks_told();
        out.line(&format!("\n{STRONG}{}{STRONG:#}{breaks}\n{}", state.wanted.name, wrapped(&safe(why), width())));
    }
    states.iter().filter_map(|state| state.wanted.ignored_keys()).for_each(|sentence| Out::warning(&sentence));
    out.hint("what changed: haft mcp-servers diff    start again: haft mcp-servers restart NAME");
    CliExit::Success
}

async fn diff(out: &Out, servers: &[&UpstreamServer]) -> Result<CliExit> {
    let mut documents = Vec::new();
    let mut text = String::new();
    let mut unmet = Vec::new();
    for server in servers {
        server.pins.change(&mut ServerPins::note_shown).await?;
        let pins = server.pins.read();
        if !pins.was_met() {
            unmet.push(format!("`{}`", server.name()));
        }
        for one in pins.differences() {
            documents.push(json!({"server": server.name(), "tool": one.tool, "kind": one.kind(),
                "accepted": one.accepted, "now": one.seen}));
            text.push_str(&shown(server.name(), &one));
        }
    }
    if out.json {
        out.document(&documents);
        return Ok(CliExit::Success);
    }
    if !unmet.is_empty() {
        out.line(&format!("never met, so that what it says first is accepted: {}", unmet.join(", ")));
    }
    if documents.is_empty() && unmet.len() < servers.len() {
        out.line("every tool is what was accepted");
    } else if !documents.is_empty() {
        out.text(&text);
        out.hint("accept it: haft mcp-servers accept [NAME]");
    }
    Ok(CliExit::Success)
}

fn shown(server: &str, difference: &PinDifference<'_>) -> String {
    let path = safe(&format!("{server}/{}", difference.tool)).replace('\n', " ");
    let diff = coloured(&safe(&difference.diff(&path)), usize::MAX);
    format!("{STRONG}{path}{STRONG:#}  {DIM}{}{DIM:#}\n{diff}\n", difference.kind())
}

async fn accept(out: &Out, servers: &[&UpstreamServer]) -> Result<CliExit> {
    let (mut accepted, mut changed) = (Vec::new(), Vec::new());
    for server in servers {
        let name = server.name();
        let mut taken = None;
        let accept = &mut |pins: &mut ServerPins| {
            let held: Vec<_> = pins.differences().iter().map(|one| json!({"server": name, "tool": one.tool})).collect();
            taken = pins.accept().then_some(held);
        };
        server.pins.change(accept).await?;
        match taken {
            Some(held) => accepted.extend(held),
            None => changed.push(name),
        }
    }
    if out.json {
        out.document(&accepted);
    } else if !accepted.is_empty() {
        let one = |value: &Value| safe(&format!("{}/{}", text(&value["server"]), text(&value["tool"])));
        out.line(&format!("accepted: {}", accepted.iter().map(one).collect::<Vec<_>>().join(", ")));
    } else if changed.is_empty() {
        out.line("there was nothing to accept: every tool is what was accepted");
    }
    if let Some(name) = changed.first() {
        let message = format!("`{name}` changed its tools since you looked; look again: haft mcp-servers diff {name}");
        return Err(ToolError::new(ErrorCode::Conflict, message).into());
    }
    Ok(CliExit::Success)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Where a server stands.
struct McpServerState<'a> {
    wanted: &'a McpServer,
    tools: Vec<String>,
    held: Vec<String>,
    dropped: Vec<String>,
    version: String,
    last_error: Option<String>,
    breaks: u64,
    was_met: bool,
}

impl<'a> McpServerState<'a> {
    fn of(wanted: &'a McpServer, server: Option<&UpstreamServer>) -> Self {
        let pins = server.map(|server| server.pins.read()).unwrap_or_default();
        let used = |tool: &str| server.is_some_and(|server| server.upstream.spec().uses(tool));
        let names = pins.tools().filter(|tool| used(&tool.name)).map(|tool| tool_name(&wanted.name, &tool.name));
        Self {
            wanted,
            tools: names.collect(),
            held: pins.differences().iter().map(|one| one.tool.to_owned()).filter(|tool| used(tool)).collect(),
            dropped: pins.dropped.iter().map(|one| format!("{}: {}", one.name, one.why)).collect(),
            version: pins.version.clone().unwrap_or_default(),
            was_met: pins.was_met(),
            breaks: pins.breaks,
            last_error: pins.last_error,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self { wanted: McpServer { enabled: false, .. }, .. } => "disabled",
            Self { last_error: Some(why), .. } if why.contains(NEEDS_LOGIN) => "needs login",
            Self { last_error: Some(_), .. } => "failed",
            Self { was_met: false, .. } => "not met",
            Self { held, .. } if !held.is_empty() => "held",
            Self { .. } => "ready",
        }
    }

    /// How often it broke in the middle of its work since it was last started by hand.
    fn breaks_told(&self) -> String {
        match self.breaks {
            0 => String::new(),
            1 => format!("  {DIM}broke once{DIM:#}"),
            times => format!("  {DIM}broke {times} times{DIM:#}"),
        }
    }

    fn tools(&self) -> String {
        match self.tools.as_slice() {
            [] => "it has no tools".to_owned(),
            tools => format!("{} tools: {}", tools.len(), tools.join(", ")),
        }
    }

    fn document(&self) -> Value {
        let from = match self.wanted.from {
            ServerOrigin::ByTheUser => "user",
            ServerOrigin::ByTheWorkspace => "workspace",
        };
        json!({"name": self.wanted.name, "state": self.word(), "command": self.wanted.reached.shown(), "from": from,
            "version": self.version, "tools": self.tools, "held": self.held, "dropped": self.dropped,
            "lastError": self.last_error, "breaks": self.breaks, "network": self.wanted.network,
            "writes": self.wanted.writes, "trusted": self.wanted.trusted, "ignored": self.wanted.ignored})
    }
}
