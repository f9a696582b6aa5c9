//! `haft tools`

mod tokens;

use std::{io::IsTerminal, sync::Arc};

use anyhow::Result;
use clap::ValueEnum;
use haft_runtime::{
    DeprecatedAlias, ErrorCode, RegisteredTool, Shown, ToolError, ToolSpec, nearest, to_anthropic, to_mcp, to_openai,
};
use serde_json::{Map, Value, json};

use crate::{
    backend::{Backend, ListedTool},
    cli::{Everywhere, ServerFlag},
    commands::open_backend,
    exit::CliExit,
    house::House,
    remote::Remote,
    show::{
        Out,
        safe::safe,
        style::{DIM, STRONG},
        table::{width, wrapped},
    },
    upstreams,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// One tool, in full
    name: Option<String>,
    /// Only tools whose name or description contains this text
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Show how many tokens each definition costs a model, and whether models see it
    #[arg(long)]
    tokens: bool,
    /// Also show tools that models do not see here, such as those for git outside a repository
    #[arg(long)]
    all: bool,
    /// Print the definitions for a model's interface
    #[arg(long, value_name = "FORM")]
    export: Option<ToolListFormat>,
    #[command(flatten)]
    pub(crate) server: ServerFlag,
}

#[derive(Clone, Copy, ValueEnum)]
enum ToolListFormat {
    Openai,
    Anthropic,
    Mcp,
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    let backend = open_backend(everywhere).await?;
    let Catalogue { named, all, mut tools, idle_pins } = match &backend {
        Backend::Here(house) => of_house(house, args).await?,
        Backend::There(remote) => of_server(remote, args).await?,
    };
    backend.leave().await?;
    match (&args.name, named) {
        (Some(name), None) => {
            let near = nearest(name, tools.iter().map(|tool| tool.spec.name.as_str()));
            let hint = near.first().map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            return Err(ToolError::new(ErrorCode::ToolNotFound, format!("there is no tool `{name}`{hint}")).into());
        }
        (Some(name), Some(tool)) if args.export.is_none() => {
            one(out, &tool, name);
            return Ok(CliExit::Success);
        }
        (_, Some(tool)) => tools = vec![tool],
        (None, None) => {}
    }
    if let Some(text) = &args.search {
        let text = text.to_lowercase();
        let has = |spec: &ToolSpec| spec.name.contains(&text) || spec.description.to_lowercase().contains(&text);
        tools.retain(|tool| has(&tool.spec));
    }
    let specs = || tools.iter().map(|tool| tool.spec.clone()).collect::<Vec<ToolSpec>>();
    match args.export {
        Some(ToolListFormat::Openai) => out.document(&to_openai(&specs())),
        Some(ToolListFormat::Anthropic) => out.document(&to_anthropic(&specs())),
        Some(ToolListFormat::Mcp) => out.document(&to_mcp(&specs())),
        None if out.json && args.tokens => out.document(&tools.iter().map(cost).collect::<Vec<_>>()),
        None if out.json => out.document(&specs()),
        None if tools.is_empty() => out.line("no such tool; `haft tools --all` lists them all"),
        None if args.tokens => tokens::list(out, &tools, &all, &idle_pins),
        None => list(out, &specs()),
    }
    Ok(CliExit::Success)
}

/// The tools that there are.
struct Catalogue {
    /// The one that was named, if there is one by that name.
    named: Option<ListedTool>,
    /// Everything that models may be shown.
    all: Vec<ListedTool>,
    /// What is listed.
    tools: Vec<ListedTool>,
    /// What `mcp.pins` names and nothing is called by.
    idle_pins: Vec<String>,
}

async fn of_house(house: &House, args: &Args) -> Result<Catalogue> {
    for error in upstreams::meet_new(&house.upstreams).await {
        Out::warning(&error.message);
    }
    let (listing, pins) = (house.tools().listing(), &house.settings.client.pins);
    let listed = |tool: &Arc<RegisteredTool>| ListedTool {
        spec: tool.spec().clone(),
        tokens: tool.tokens(),
        shown: tokens::standing(tool, &listing, pins).to_owned(),
    };
    let mut tools: Vec<Arc<RegisteredTool>> = listing.tools().to_vec();
    if args.all {
        let names = house.tools().names();
        let hidden = names.iter().filter_map(|name| house.tools().get(name).filter(|tool| tool.spec().name == *name));
        tools.extend(hidden.filter(|tool| tool.shown() == Shown::Never));
        tools.sort_by(|one, other| one.spec().name.cmp(&other.spec().name));
    }
    let faults = house
        .project
        .faults()
        .iter()
        .map(ToString::to_string)
        .chain(house.upstreams.faults())
        .chain(house.tools().faults().iter().map(ToString::to_string))
        .collect::<Vec<_>>();
    for fault in faults {
        Out::warning(&fault);
    }
    Ok(Catalogue {
        named: args.name.as_ref().and_then(|name| house.tools().get(name)).as_ref().map(listed),
        all: listing.tools().iter().map(listed).collect(),
        tools: tools.iter().map(listed).collect(),
        idle_pins: pins.idle(listing.tools()).into_iter().map(str::to_owned).collect(),
    })
}

/// A gateway lists what its caller can use; what it shows to nobody is not there either.
async fn of_server(remote: &Remote, args: &Args) -> Result<Catalogue> {
    let named = match &args.name {
        Some(name) => remote.tool(name).await?,
        None => None,
    };
    let all = remote.tools().await?;
    Ok(Catalogue { named, tools: all.clone(), all, idle_pins: Vec::new() })
}

fn cost(tool: &ListedTool) -> Value {
    let mut value = entry(tool);
    value["shown"] = json!(tool.shown);
    value
}

fn entry(tool: &ListedTool) -> Value {
    let mut value = serde_json::to_value(&tool.spec).unwrap_or_default();
    value["tokens"] = json!(tool.tokens);
    value
}

/// A text in the room that is left beside a column; what does not fit goes on beneath.
fn beside(text: &str, column: usize) -> String {
    wrapped(text, width().saturating_sub(column).max(20)).replace('\n', &format!("\n{:column$}", ""))
}

/// The first sentence about it.
fn first(spec: &ToolSpec) -> String {
    let sentence = spec.description.split(". ").next().unwrap_or_default();
    sentence.strip_suffix('.').unwrap_or(sentence).to_owned()
}

fn effect(spec: &ToolSpec) -> String {
    json!(spec.effect).as_str().unwrap_or_default().to_owned()
}

fn list(out: &Out, specs: &[ToolSpec]) {
    let named = |spec: &ToolSpec| safe(&format!("{} ({})", spec.name, effect(spec)));
    let widest = specs.iter().map(|spec| named(spec).chars().count()).max().unwrap_or(0);
    let in_columns = std::io::stdout().is_terminal();
    for spec in specs {
        let (name, about) = (named(spec), safe(&first(spec)));
        let about = if in_columns { beside(&about, widest + 2) } else { about.replace('\n', " ") };
        let effect_at = spec.name.chars().count().min(name.len());
        let (head, tail) = name.split_at(name.char_indices().nth(effect_at).map_or(name.len(), |(at, _)| at));
        let gap = " ".repeat(widest + 2 - name.chars().count());
        out.line(&format!("{STRONG}{head}{STRONG:#}{DIM}{tail}{DIM:#}{gap}{about}"));
    }
    out.hint("one in full: haft tools NAME    its flags: haft call NAME --help");
}

/// An old name, until when it is understood, and what its parameters were called.
fn old_name(alias: &DeprecatedAlias) -> String {
    let renamed: Vec<String> = alias.parameters.iter().map(|(old, now)| format!("{old} → {now}")).collect();
    let renamed = if renamed.is_empty() { String::new() } else { format!(" ({})", renamed.join(", ")) };
    format!("{}, understood until {}{renamed}", alias.name, alias.remove_by)
}

fn one(out: &Out, tool: &ListedTool, asked_for: &str) {
    let spec = &tool.spec;
    let example = spec.example.clone().unwrap_or_else(|| example(&spec.input_schema));
    if out.json {
        let mut value = entry(tool);
        value["example"] = example;
        if asked_for != spec.name {
            value["calledAs"] = json!(asked_for);
        }
        if let Some(alias) = spec.deprecated_alias(asked_for) {
            value["deprecatedAlias"] = json!(alias);
        }
        return out.document(&value);
    }
    // A server or a workspace has written it, as it likes.
    let pretty = |value: &Value| safe(&serde_json::to_string_pretty(value).unwrap_or_default());
    out.line(&format!("{STRONG}{}{STRONG:#}  {DIM}{}, {}{DIM:#}", spec.name, safe(&spec.category), effect(spec)));
    out.line(&format!("{}\n", wrapped(&safe(&spec.description), width().min(100))));
    if !spec.aliases.is_empty() {
        out.line(&format!("{STRONG}also called{STRONG:#} {}\n", safe(&spec.aliases.join(", "))));
    }
    for alias in &spec.deprecated_aliases {
        out.line(&format!("{STRONG}once called{STRONG:#} {}\n", safe(&old_name(alias))));
    }
    let example = safe(&example.to_string());
    out.line(&format!("{STRONG}example{STRONG:#}\n  haft call {} '{example}'\n", spec.name));
    out.line(&format!("{STRONG}input{STRONG:#}\n{}\n", pretty(&spec.input_schema)));
    out.line(&format!("{STRONG}output{STRONG:#}\n{}", pretty(&spec.output_schema)));
}

/// The smallest input that fits: every required field with a plausible value.
fn example(schema: &Value) -> Value {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let mut input = Map::new();
    for name in required {
        let field = schema.pointer(&format!("/properties/{name}")).unwrap_or(&Value::Null);
        input.insert(name.to_owned(), example_value(name, field));
    }
    Value::Object(input)
}

fn example_value(name: &str, field: &Value) -> Value {
    if let Some(first) = field.pointer("/enum/0") {
        return first.clone();
    }
    match (name, field.get("type").and_then(Value::as_str)) {
        ("path", _) => json!("README.md"),
        ("callId", _) => json!("tc_0190163d8d0c7a2e9d4f3b6a1c5e7f80"),
        (_, Some("integer" | "number")) => json!(1),
        (_, Some("boolean")) => json!(true),
        (_, Some("array")) => json!([]),
        (_, Some("object")) => example(field),
        _ => json!("some text"),
    }
}
