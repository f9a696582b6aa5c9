//! `haft mcp`

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::Arc,
};

use anyhow::{Context, Result};
use globset::{Glob, GlobSet, GlobSetBuilder};
use haft_mcp::{Asked, Ground, MayApprove, Server, stdio};
use haft_runtime::{AutoApprove, CallId, Caller, Question, Redactor, Source, ToolError};
use haft_store::Store;

use crate::{
    cli::Everywhere,
    commands::{flags::parse_mode, prompt::interrupt},
    exit::Exit,
    house::{self, House},
    settings::Settings,
    show::{card::card, changes::Depth, safe::safe, style::WARN},
    workspace,
};

/// The file with the key that seals what clients carry for us.
const KEY: &str = "mcp.key";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What may happen without asking: none, safe (what only reads) or all
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    auto_approve: Option<AutoApprove>,
    /// Offer only these tools: names or patterns such as git_*, several with commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tools: Vec<String>,
}

pub(crate) async fn run(everywhere: &Everywhere, args: Args) -> Result<Exit> {
    let wanted = patterns(&args.tools)?;
    let folder = workspace::find(everywhere.workspace.as_deref())?;
    let settings = Settings::read(&folder)?;
    for note in settings.not_trusted.iter().chain(&settings.not_obeyed) {
        anstream::eprintln!("{WARN}haft:{WARN:#} {}", safe(note));
    }
    let store = Store::open(&settings.data, settings.sync).await.map_err(ToolError::from)?;
    let asked = Arc::new(Asked::default());
    let house = house::living_and_telling(settings, store, &folder, vec![asked.clone()]).await?;
    let server = Server::new(ground(&house, asked, args.auto_approve, wanted)?);
    tokio::select! {
        () = server.speak(stdio::input()?, stdio::output()?) => {}
        () = interrupt() => {}
    }
    house.leave().await?;
    Ok(Exit::Success)
}

fn ground(
    house: &House,
    asked: Arc<Asked>,
    auto_approve: Option<AutoApprove>,
    wanted: Option<GlobSet>,
) -> Result<Ground> {
    let (store, scope) = (house.store.clone(), house.scope.clone());
    Ok(Ground {
        pipeline: house.pipeline.clone(),
        catalog: house.project.clone(),
        questions: Arc::new(house.store.clone()),
        journal: Arc::new(house.store.clone()),
        asked,
        caller: Caller { source: Source::Mcp, ..house.caller.clone() },
        auto_approve: auto_approve.unwrap_or(house.settings.mode),
        may_approve: MayApprove::default(),
        offers: Box::new(move |name| wanted.as_ref().is_none_or(|wanted| wanted.is_match(name))),
        card: Box::new(plain_card),
        stop: Box::new(move |call: CallId| {
            let (store, scope) = (store.clone(), scope.clone());
            // A call that cannot be stopped any more has ended.
            Box::pin(async move { drop(store.want_stop(&scope, &call).await) })
        }),
        key: key(&house.settings.data)?,
    })
}

/// The card as it stands in a terminal, without colours.
fn plain_card(question: &Question) -> String {
    anstream::adapter::strip_str(&card(question, Depth::Short, &Redactor::default())).to_string()
}

fn patterns(wanted: &[String]) -> Result<Option<GlobSet>> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let mut set = GlobSetBuilder::new();
    for pattern in wanted {
        set.add(Glob::new(pattern).with_context(|| format!("`--tools {pattern}` is no name and no pattern"))?);
    }
    Ok(Some(set.build()?))
}

/// Made once and kept, so that what clients carry is understood after a restart.
fn key(data: &Path) -> Result<[u8; 32]> {
    let path = data.join(KEY);
    make_key(&path).with_context(|| format!("cannot make {}", path.display()))?;
    let mut key = [0; 32];
    let read = File::open(&path).and_then(|mut file| file.read_exact(&mut key));
    read.with_context(|| format!("cannot read {}; remove it to have a new one made", path.display()))?;
    Ok(key)
}

fn make_key(path: &Path) -> io::Result<()> {
    if path.try_exists()? {
        return Ok(());
    }
    let mut key = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut key)?;
    let unfinished = path.with_extension(format!("key-{}", std::process::id()));
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?.write_all(&key)?;
    // The first one to make it wins.
    let made = fs::hard_link(&unfinished, path);
    fs::remove_file(&unfinished)?;
    match made {
        Err(err) if err.kind() != io::ErrorKind::AlreadyExists => Err(err),
        Ok(()) | Err(_) => Ok(()),
    }
}
