//! `haft admin`: tenants, people, keys, workspaces, MCP servers and tools, whether or not a server runs.

mod audit;
mod master_key;
mod mcp;
mod tool;

use std::path::PathBuf;

use anyhow::Result;
use haft_platform::{Actor, KeyScope, KeyWish, Platform, QuotaView, Role, WorkspaceSummary, acting_as, length_of_time};
use haft_runtime::{CallerId, CallerKind, CallerRef, Scope, Source, ToolError};
use haft_store::Store;
use serde_json::{Value, json};

use crate::{
    commands::{
        mistake,
        serve::{of_user, running_at},
    },
    exit::CliExit,
    house,
    master_key::master_key as key_of,
    settings::{Settings, user_name},
    show::{Out, table::table, time::count},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The PostgreSQL database to use instead of the file in the data folder
    #[arg(long, global = true, value_name = "URL")]
    database: Option<String>,
    #[command(subcommand)]
    noun: AdminNoun,
}

#[derive(clap::Subcommand)]
enum AdminNoun {
    /// Tenants, which share nothing with each other
    Tenant {
        #[command(subcommand)]
        command: TenantCommand,
    },
    /// People of a tenant
    Person {
        #[command(subcommand)]
        command: PersonCommand,
    },
    /// Keys of programs
    Key {
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Folders that a tenant works in
    Workspace {
        #[command(subcommand)]
        command: WorkspaceCommand,
    },
    /// MCP servers of a tenant that are started here
    Mcp {
        #[command(subcommand)]
        command: mcp::AdminMcpCommand,
    },
    /// The key that seals every secret
    MasterKey {
        #[command(subcommand)]
        command: master_key::MasterKeyCommand,
    },
    /// Which tools there are
    Tool {
        #[command(subcommand)]
        command: tool::ToolCommand,
    },
    /// Who did what: people, keys, roles, secrets, servers, tools, rules and settings
    ///
    /// Every administrative act is one row that nobody changes, each with the hash of the one before. With `--json` all of
    /// them are printed, one object a line.
    Audit(audit::AuditArgs),
}

#[derive(clap::Subcommand)]
enum TenantCommand {
    /// Add a tenant
    Add {
        /// What it is called in addresses: small letters, digits and -
        slug: String,
        /// The name that people read [default: the slug]
        #[arg(long)]
        name: Option<String>,
    },
    /// List all tenants
    List,
    /// Show a tenant
    Show {
        /// Its slug
        slug: String,
    },
    /// Remove a tenant with everything that it has
    Remove {
        /// Its slug
        slug: String,
    },
    /// Say what the tools and MCP servers of a tenant may reach, and how much it may have
    ///
    /// Private addresses are refused unless they are allowed: for one tenant here, for all tenants by `web.allow`. Quotas are
    /// calls_per_day, people, keys, tools, open_questions and media (a size); a tenant without one has no limit.
    Set {
        /// Its slug
        slug: String,
        /// A host, address or range that may be reached although it is not public, such as 10.1.0.5:8080
        #[arg(long, value_name = "HOST[:PORT]", required_unless_present_any = ["disallow", "quota"])]
        allow: Vec<String>,
        /// One that was allowed and is to be refused again
        #[arg(long, value_name = "HOST[:PORT]")]
        disallow: Vec<String>,
        /// The most that it may have, such as keys=20,media=2GB; keys= lifts one
        #[arg(long, value_name = "NAME=MOST", value_delimiter = ',')]
        quota: Vec<String>,
    },
}

#[derive(clap::Subcommand)]
enum PersonCommand {
    /// Add somebody, and print a link by which they sign in once
    Add {
        /// Their mail address
        email: String,
        /// The tenant
        #[arg(long)]
        tenant: String,
        /// What they are there: owner, admin, member or viewer
        #[arg(long, default_value = "member")]
        role: String,
    },
    /// List the people of a tenant
    List {
        /// The tenant
        #[arg(long)]
        tenant: String,
    },
    /// Forget with which accounts of OpenID Connect somebody signs in; their next one is linked anew
    Unlink {
        /// Their mail address
        email: String,
    },
    /// Take somebody out of a tenant
    Remove {
        /// Their mail address or id
        email: String,
        /// The tenant
        #[arg(long)]
        tenant: String,
    },
}

#[derive(clap::Subcommand)]
enum KeyCommand {
    /// Make a key, and print it once
    ///
    /// With `--workspace NAME` it works in that workspace of the tenant.
    Add {
        /// What it is called
        name: String,
        /// The tenant
        #[arg(long)]
        tenant: String,
        /// What it is for, such as tools:execute,approvals:decide
        #[arg(long, value_delimiter = ',', required = true)]
        scopes: Vec<String>,
    },
    /// List the keys of a tenant, without their secrets
    List {
        /// The tenant
        #[arg(long)]
        tenant: String,
    },
    /// Give a key another secret, and print it once; its name and scopes stay
    Rotate {
        /// Its id
        id: String,
        /// The tenant
        #[arg(long)]
        tenant: String,
        /// How long the old secret counts beside the new one, such as 24h [default: not at all]
        #[arg(long, value_name = "TIME")]
        grace: Option<String>,
    },
    /// Remove a key
    Remove {
        /// Its id
        id: String,
        /// The tenant
        #[arg(long)]
        tenant: String,
    },
}

#[derive(clap::Subcommand)]
enum WorkspaceCommand {
    /// Add a workspace: a folder that haft keeps, or one of this machine
    Add {
        /// What it is called
        name: String,
        /// The tenant
        #[arg(long)]
        tenant: String,
        /// A folder of this machine
        #[arg(long, value_name = "DIR")]
        map: Option<PathBuf>,
    },
    /// List the workspaces of a tenant
    List {
        /// The tenant
        #[arg(long)]
        tenant: String,
    },
    /// Give a workspace to another node that sees the same folder
    Move {
        /// Its name
        name: String,
        /// The tenant
        #[arg(long)]
        tenant: String,
        /// The node, as `serve.node` says there
        #[arg(long, value_name = "NODE")]
        to: String,
    },
    /// Remove a workspace from the list; its folder stays
    Remove {
        /// Its name
        name: String,
        /// The tenant
        #[arg(long)]
        tenant: String,
    },
}

/// Runs an administrator's command. `named` is what `--workspace` says, which here is a workspace's name.
pub(crate) async fn run(out: &Out, args: Args, named: Option<PathBuf>) -> Result<CliExit> {
    let settings = of_user(args.database.as_deref())?;
    if let AdminNoun::MasterKey { command } = &args.noun {
        print(out, &master_key::run(&settings, command).await?);
        return Ok(CliExit::Success);
    }
    let key = key_of(&settings)?;
    let store = Store::open(&settings.data, settings.store()).await.map_err(ToolError::from)?;
    let platform = Platform::new(store.clone(), house::whole(), key);
    platform.have_local_tenant().await?;
    let named = named.map(|named| named.to_string_lossy().into_owned());
    let url = running_at(&settings.data).unwrap_or_else(|| format!("http://{}", settings.serve.listen));
    if let AdminNoun::Audit(args) = &args.noun {
        let told = args.run(out, &platform).await;
        store.leave().await.map_err(ToolError::from)?;
        return told;
    }
    let done = act(&settings, platform, args.noun, (named, &url)).await;
    store.leave().await.map_err(ToolError::from)?;
    print(out, &done?);
    Ok(CliExit::Success)
}

/// Does something in the name of whoever has this machine, as the audit log has it.
pub(crate) async fn as_operator<W: Future>(work: W) -> W::Output {
    let id = CallerId { kind: CallerKind::Owner, id: "operator".to_owned() };
    let by = Some(CallerRef { id, name: user_name() });
    acting_as(Actor { by, source: Source::Cli, via: None, address: None }, work).await
}

async fn act(
    settings: &Settings,
    platform: Platform,
    noun: AdminNoun,
    (named, url): (Option<String>, &str),
) -> Result<Told> {
    match noun {
        AdminNoun::Tenant { command } => tenant(&platform, command).await,
        AdminNoun::Person { command } => person(&platform, command, url).await,
        AdminNoun::Key { command } => api_key(&platform, command, named).await,
        AdminNoun::Workspace { command } => workspace(&platform, command).await,
        AdminNoun::Mcp { command } => mcp::run(&platform, command).await,
        AdminNoun::Tool { command } => switch(settings, platform, &command).await,
        AdminNoun::MasterKey { command } => master_key::run(settings, &command).await,
        AdminNoun::Audit(_) => Err(mistake("the log is only read")),
    }
}

/// What a command has to tell: a list, or one thing with a sentence.
enum Told {
    List(Vec<Value>, &'static [&'static str]),
    One(Value, String),
}

fn print(out: &Out, told: &Told) {
    match told {
        Told::List(items, _) if out.json => out.document(&json!({"items": items})),
        Told::One(value, _) if out.json => out.document(value),
        Told::List(items, _) if items.is_empty() => out.line("none yet"),
        Told::List(items, columns) => {
            let cell = |item: &Value, column: &&str| match &item[*column] {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                Value::Array(parts) => parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
                other @ (Value::Bool(_) | Value::Number(_) | Value::Object(_)) => other.to_string(),
            };
            let rows: Vec<Vec<String>> =
                items.iter().map(|item| columns.iter().map(|column| cell(item, column)).collect()).collect();
            out.text(&table(columns, &rows));
        }
        Told::One(_, sentence) => out.line(sentence),
    }
}

async fn tenant(platform: &Platform, command: TenantCommand) -> Result<Told> {
    Ok(match command {
        TenantCommand::Add { slug, name } => {
            let added = platform.add_tenant(&slug, name.as_deref()).await?;
            Told::One(json!(added), format!("tenant {slug} is there; add people with haft admin person add"))
        }
        TenantCommand::List => {
            let all = platform.tenants().await?;
            Told::List(all.iter().map(|tenant| json!(tenant)).collect(), &["slug", "name", "id"])
        }
        TenantCommand::Show { slug } => {
            let scope = platform.tenant(&slug).await?.scope;
            let (people, keys) = (platform.people(&scope).await?, platform.keys_of(&scope).await?);
            let workspaces = platform.workspaces(&scope).await?.len();
            let tenant = platform.tenant_of(&scope).await?;
            let servers = platform.servers(&scope).await?.len();
            let counts =
                json!({"people": people.len(), "keys": keys.len(), "workspaces": workspaces, "servers": servers});
            let (allowed, quotas) = (platform.allowed_hosts(&scope).await?, platform.quotas(&scope).await?);
            let sentence = format!(
                "{slug} ({}): {}, {}, {}, {}; may reach {}\n{}",
                tenant.name,
                if people.len() == 1 { "1 person".to_owned() } else { format!("{} people", people.len()) },
                count(keys.len(), "key"),
                count(workspaces, "workspace"),
                count(servers, "MCP server"),
                reaches(&allowed),
                limits(&quotas)
            );
            let told = json!({"tenant": tenant, "counts": counts, "allow": allowed, "quotas": quotas});
            Told::One(told, sentence)
        }
        TenantCommand::Remove { slug } => {
            platform.remove_tenant(&slug).await?;
            Told::One(json!({"removed": slug}), format!("tenant {slug} is gone with everything that it had"))
        }
        TenantCommand::Set { slug, allow, disallow, quota } => {
            let scope = scope(platform, &slug).await?;
            platform.set_quotas(&scope, &quota).await?;
            let hosts = match allow.is_empty() && disallow.is_empty() {
                true => platform.allowed_hosts(&scope).await?,
                false => platform.allow_hosts(&scope, &allow, &disallow).await?,
            };
            let quotas = platform.quotas(&scope).await?;
            let sentence = format!("{slug} may reach {}\n{}", reaches(&hosts), limits(&quotas));
            Told::One(json!({"slug": slug, "allow": hosts, "quotas": quotas}), sentence)
        }
    })
}

/// What a tenant may have and has, in words.
fn limits(quotas: &[QuotaView]) -> String {
    let limited = quotas.iter().filter_map(|quota| Some((quota, quota.most?)));
    let told = limited.map(|(quota, most)| {
        let near = if quota.near { " (nearly used up)" } else { "" };
        format!("  {:<16} {} of {most}{near}", quota.name, quota.used)
    });
    match told.collect::<Vec<_>>().as_slice() {
        [] => "no quotas".to_owned(),
        told => format!("quotas\n{}", told.join("\n")),
    }
}

/// What a tenant may reach, in words.
fn reaches(allowed: &[String]) -> String {
    match allowed {
        [] => "public addresses".to_owned(),
        hosts => format!("public addresses and {}", hosts.join(", ")),
    }
}

async fn person(platform: &Platform, command: PersonCommand, url: &str) -> Result<Told> {
    Ok(match command {
        PersonCommand::Add { email, tenant, role } => {
            let role = Role::parse(&role).filter(|role| *role != Role::Agent);
            let role = role.ok_or_else(|| mistake("a role is owner, admin, member or viewer"))?;
            let added = platform.add_person(&scope(platform, &tenant).await?, &email, role).await?;
            let link = format!("{url}/sign-in#{}", added.code);
            let sentence = format!("{email} signs in once, within 15 minutes: {link}");
            Told::One(json!({"id": added.id, "signIn": link}), sentence)
        }
        PersonCommand::List { tenant } => {
            let people = platform.people(&scope(platform, &tenant).await?).await?;
            Told::List(people.iter().map(|person| json!(person)).collect(), &["email", "role", "name", "id"])
        }
        PersonCommand::Unlink { email } => {
            let unlinked = platform.unlink_accounts(&email).await?;
            let sentence = match unlinked {
                true => format!("{email} is linked with no account any more; the next one with this address is"),
                false => format!("{email} was linked with no account"),
            };
            Told::One(json!({"unlinked": unlinked}), sentence)
        }
        PersonCommand::Remove { email, tenant } => {
            let scope = scope(platform, &tenant).await?;
            let people = platform.people(&scope).await?;
            let meant = people.iter().find(|person| person.email == email.to_lowercase() || person.id == email);
            let meant = meant.ok_or_else(|| mistake(format!("{email} is nobody in {tenant}")))?;
            platform.remove_person(&scope, &meant.id).await?;
            Told::One(json!({"removed": meant.id}), format!("{email} is no longer in {tenant}"))
        }
    })
}

async fn api_key(platform: &Platform, command: KeyCommand, named: Option<String>) -> Result<Told> {
    Ok(match command {
        KeyCommand::Add { name, tenant, scopes } => {
            let tenant = scope(platform, &tenant).await?;
            let place = match named {
                Some(workspace) => platform.workspace_named(&tenant, &workspace).await?.scope,
                None => tenant,
            };
            let known = |word: &String| KeyScope::parse(word).ok_or_else(|| unknown_scope(word));
            let scopes = scopes.iter().map(known).collect::<Result<Vec<_>>>()?;
            let made = platform.add_key(&place, &KeyWish { name: &name, scopes: &scopes, expires_at: None }).await?;
            Told::One(json!(made), format!("shown this once: {}", made.key))
        }
        KeyCommand::List { tenant } => {
            let keys = platform.keys_of(&scope(platform, &tenant).await?).await?;
            Told::List(keys.iter().map(|key| json!(key)).collect(), &["id", "name", "scopes", "workspace"])
        }
        KeyCommand::Rotate { id, tenant, grace } => {
            let unread = || mistake("`--grace` is a time such as 30m, 24h or 7d");
            let grace = grace.as_deref().map(|text| length_of_time(text).ok_or_else(unread)).transpose()?;
            let made = platform.rotate_key_of(&scope(platform, &tenant).await?, &id, grace).await?;
            Told::One(json!(made), format!("shown this once: {}", made.key))
        }
        KeyCommand::Remove { id, tenant } => {
            platform.remove_key_of(&scope(platform, &tenant).await?, &id).await?;
            Told::One(json!({"removed": id}), format!("key {id} is refused from now on"))
        }
    })
}

fn unknown_scope(word: &str) -> anyhow::Error {
    let all: Vec<&str> = KeyScope::ALL.iter().map(|scope| scope.word()).collect();
    mistake(format!("there is no scope `{word}`; there are {}", all.join(", ")))
}

async fn workspace(platform: &Platform, command: WorkspaceCommand) -> Result<Told> {
    Ok(match command {
        WorkspaceCommand::Add { name, tenant, map } => {
            let folder = map.map(|map| crate::workspace::find(Some(&map))).transpose()?;
            let tenant = scope(platform, &tenant).await?;
            let added = platform.add_workspace(&tenant, &name, folder.as_deref()).await?;
            let sentence = format!("workspace {name} is there ({})", added.kind);
            Told::One(json!(added), sentence)
        }
        WorkspaceCommand::List { tenant } => {
            let all = platform.workspaces(&scope(platform, &tenant).await?).await?;
            let view = |record| json!(WorkspaceSummary::from(record));
            Told::List(all.iter().map(view).collect(), &["name", "kind", "node", "id"])
        }
        WorkspaceCommand::Move { name, tenant, to } => {
            platform.move_workspace(&scope(platform, &tenant).await?, &name, &to).await?;
            Told::One(json!({"moved": name, "node": to}), format!("workspace {name} lives on node {to} now"))
        }
        WorkspaceCommand::Remove { name, tenant } => {
            platform.remove_workspace(&scope(platform, &tenant).await?, &name).await?;
            Told::One(json!({"removed": name}), format!("workspace {name} is off the list; its folder stays"))
        }
    })
}

async fn switch(settings: &Settings, platform: Platform, command: &tool::ToolCommand) -> Result<Told> {
    let scope = match &command.args().tenant {
        Some(tenant) => scope(&platform, tenant).await?,
        None => house::whole().all_tenants(),
    };
    command.run(&house::written_tools(settings, platform)?, &scope).await
}

async fn scope(platform: &Platform, slug: &str) -> Result<Scope> {
    Ok(platform.tenant(slug).await?.scope)
}
