//! The user's git, told what to obey: its own orders and the user's settings, nothing that a repository runs.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_runtime::{ErrorCode, ToolCtx, ToolError};
use haft_sandbox::{
    RepositoryKind, Root, WorkspacePath,
    limits::{ProgramSpec, Walls},
    show_name,
};

use super::{
    readable,
    refused::refused,
    repository::Repository,
    run::{GitListener, GitResult, LimitedOutput, run},
};
use crate::{refusal::Trying, workspace::Workspace};

/// Seconds of processor time for one look at a repository.
const CPU_SECONDS: u64 = 120;

/// What every run is told first.
const FIRST: &[&str] = &["--no-pager", "--no-optional-locks", "--literal-pathspecs"];
/// Settings that hold whatever a repository says. Behind the walls they only spare git the trying.
const SETTINGS: &[&str] = &["core.fsmonitor=false", "core.hooksPath=/dev/null", "core.quotePath=false"];
/// How git begins to tell of a path that is a commit of another repository.
const GITLINK: &[u8] = b"160000 ";
/// More filters than any settings name.
const MOST_FILTERS: usize = 1000;

/// Git in one repository.
#[derive(Clone, Debug)]
pub(super) struct Git {
    program: PathBuf,
    home: PathBuf,
    /// Variables of the user's that say where settings are, and the time zone.
    kept: Vec<(String, OsString)>,
    readable: Vec<PathBuf>,
    /// More settings that hold whatever the repository says.
    settings: Vec<(String, &'static str)>,
    pub(super) root: Arc<Root>,
    pub(super) repository: Repository,
}

impl Git {
    /// Git in the repository that a path belongs to, and the path's real place.
    pub(super) fn at(workspace: &Workspace, typed: &str) -> Result<(Git, WorkspacePath), ToolError> {
        let root = workspace.files.root();
        let place = root.place(typed).and_then(|place| root.resolve(&place)).trying("use git at")?;
        Ok((Git::of(workspace, Repository::around(root, &place)?)?, place))
    }

    fn of(workspace: &Workspace, repository: Repository) -> Result<Git, ToolError> {
        let root = workspace.files.root();
        let around = workspace.commands.fenced()?.config();
        let program = find(around.variables.get("PATH").map_or("", String::as_str), root.path())?;
        let mut readable = readable::settings(&around.home, &around.variables);
        readable.push(root.path().to_owned());
        readable.extend(
            [&repository.own, &repository.shared].into_iter().filter(|path| !path.starts_with(root.path())).cloned(),
        );
        readable.extend(prefix(&program, &around.home));
        if repository.kind == RepositoryKind::Around {
            let between = root.path().ancestors().skip(1).take_while(|path| path.starts_with(&repository.folder));
            readable.extend(between.flat_map(|path| [".gitignore", ".gitattributes"].map(|name| path.join(name))));
        }
        let kept = ["XDG_CONFIG_HOME", "TZ", "USER", "LOGNAME"];
        let kept = kept.iter().filter_map(|name| Some(((*name).to_owned(), around.variables.get(*name)?.into())));
        Ok(Git {
            program,
            home: around.home.clone(),
            kept: kept.collect(),
            readable,
            settings: Vec::new(),
            root: Arc::clone(root),
            repository,
        })
    }

    /// Git in the repository that a commit of a path belongs to. A submodule itself is committed in the repository that
    /// it is a part of; only what lies beneath it is its own.
    pub(super) async fn committing(
        workspace: &Workspace,
        ctx: &ToolCtx,
        typed: &str,
    ) -> Result<(Git, WorkspacePath), ToolError> {
        let (git, place) = Git::at(workspace, typed)?;
        let is_top = git.repository.place_of(&git.root, b"").is_some_and(|top| top == place);
        let Some(parent) = place.parent().filter(|_| is_top) else { return Ok((git, place)) };
        let Ok(around) = Repository::around(&git.root, &parent).and_then(|around| Git::of(workspace, around)) else {
            return Ok((git, place));
        };
        let asked = Arguments::of(&["ls-files", "--stage", "-z"]).at(&around.paths_of(&place));
        let known = around.look(ctx, asked, LimitedOutput::default()).await?;
        Ok(if known.heard.bytes.starts_with(GITLINK) { (around, place) } else { (git, place) })
    }

    /// Looks at the repository: git starts nothing, changes nothing and reads nothing else, whatever it finds there.
    pub(super) async fn look<E: GitListener>(
        &self,
        ctx: &ToolCtx,
        arguments: Arguments,
        listener: E,
    ) -> Result<GitResult<E>, ToolError> {
        let order = ProgramSpec {
            arguments: arguments.0,
            environment: self.environment(),
            walls: Walls::Alone { readable: self.readable.clone() },
            ..self.order()
        };
        run(ctx, order, listener).await
    }

    /// The whole of what git says; a refusal is an error.
    pub(super) async fn read(&self, ctx: &ToolCtx, arguments: Arguments) -> Result<LimitedOutput, ToolError> {
        let ended = self.look(ctx, arguments, LimitedOutput::default()).await?;
        match ended.code {
            0 => Ok(ended.heard),
            _ => Err(refused(&ended.complaints, &self.root)),
        }
    }

    /// The same for what compares files, which git would hand to the filters that a repository names. Where it insists
    /// on one that it may not start, it is told that there is none.
    pub(super) async fn look_at_files<E: GitListener + Clone>(
        &self,
        ctx: &ToolCtx,
        what: Arguments,
        listener: E,
    ) -> Result<E, ToolError> {
        let mut ended = self.look(ctx, what.clone(), listener.clone()).await?;
        if ended.code != 0 && ended.complaints.contains(" filter '") {
            let without = Git { settings: self.no_filters(ctx).await?, ..self.clone() };
            ended = without.look(ctx, what, listener).await?;
        }
        match ended.code {
            0 => Ok(ended.heard),
            _ => Err(refused(&ended.complaints, &self.root)),
        }
    }

    /// Settings by which every filter that is known here does nothing.
    async fn no_filters(&self, ctx: &ToolCtx) -> Result<Vec<(String, &'static str)>, ToolError> {
        let names = self.read(ctx, Arguments::of(&["config", "--list", "--name-only", "-z"])).await?;
        let names = String::from_utf8_lossy(&names.bytes).into_owned();
        let filters = names.split('\0').filter_map(|name| Some(name.strip_prefix("filter.")?.rsplit_once('.')?.0));
        let filters: BTreeSet<&str> = filters.take(MOST_FILTERS).collect();
        let nothing = [("clean", ""), ("process", ""), ("required", "false")];
        let all =
            filters.iter().flat_map(|filter| nothing.map(|(key, value)| (format!("filter.{filter}.{key}"), value)));
        Ok(all.collect())
    }

    /// A path of the workspace as git is to look for it. Where nothing is there any more, git may know it by what its
    /// name stands for.
    pub(super) fn paths_of(&self, place: &WorkspacePath) -> Vec<PathBuf> {
        let meant = place.meant().filter(|_| !matches!(self.root.meta(place), Ok(Some(_))));
        let meant = meant.and_then(|meant| self.root.resolve(&meant).ok());
        let places = std::iter::once(place).chain(&meant);
        places.map(|place| self.repository.path_of(&self.root, place)).collect()
    }

    /// A path as this repository names it, as people read it: relative to the workspace where it lies there.
    pub(super) fn shown(&self, path: &[u8]) -> String {
        let place = self.repository.place_of(&self.root, path);
        place.map_or_else(|| show_name(OsStr::from_bytes(path)), |place| place.to_string())
    }

    /// An order that is still to be given its arguments, variables and walls.
    pub(super) fn order(&self) -> ProgramSpec {
        ProgramSpec {
            program: self.program.clone(),
            arguments: Vec::new(),
            environment: Vec::new(),
            folder: self.repository.folder.clone(),
            walls: Walls::Open,
            cpu_seconds: CPU_SECONDS,
        }
    }

    /// The variables that hold git to this repository; nothing that the user's session says of git is among them.
    pub(super) fn environment(&self) -> Vec<(String, OsString)> {
        let ceiling = self.repository.folder.parent().unwrap_or(Path::new("/"));
        let mut all = self.kept.clone();
        let mut set = |name: &str, value: OsString| all.push((name.to_owned(), value));
        set("HOME", self.home.clone().into());
        set("GIT_CEILING_DIRECTORIES", ceiling.into());
        if self.repository.kind != RepositoryKind::Bare {
            set("GIT_WORK_TREE", self.repository.folder.clone().into());
        }
        let fixed = [
            ("PATH", "/usr/bin:/bin"),
            // What git says is bytes to us, and this one locale needs no files.
            ("LC_ALL", "C"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_ALLOW_PROTOCOL", "none"),
            ("GIT_PAGER", "cat"),
            // Into a pipe it would write each commit by itself.
            ("GIT_FLUSH", "0"),
        ];
        for (name, value) in fixed {
            set(name, value.into());
        }
        set("GIT_CONFIG_COUNT", self.settings.len().to_string().into());
        for (at, (key, value)) in self.settings.iter().enumerate() {
            set(&format!("GIT_CONFIG_KEY_{at}"), key.into());
            set(&format!("GIT_CONFIG_VALUE_{at}"), (*value).into());
        }
        all
    }

    /// Refuses what needs files in a repository that has none.
    pub(super) fn with_files(self) -> Result<Git, ToolError> {
        if self.repository.kind == RepositoryKind::Bare {
            let message =
                "this repository is bare: it has no files to compare or commit; use `git_log` or `git_branch`";
            return Err(ToolError::new(ErrorCode::InvalidPath, message));
        }
        Ok(self)
    }
}

/// The arguments of one run.
#[derive(Clone, Debug)]
pub(super) struct Arguments(pub(super) Vec<OsString>);

impl Arguments {
    /// A command of git's with its options.
    pub(super) fn of(command: &[&str]) -> Arguments {
        let settings = SETTINGS.iter().flat_map(|setting| ["-c", setting]);
        Arguments(FIRST.iter().copied().chain(settings).chain(command.iter().copied()).map(OsString::from).collect())
    }

    /// Adds an option.
    pub(super) fn with(mut self, option: impl Into<OsString>) -> Arguments {
        self.0.push(option.into());
        self
    }

    /// Ends with paths, unless one of them is all there is.
    pub(super) fn at(self, paths: &[PathBuf]) -> Arguments {
        let ended = self.with("--");
        let some = if paths.iter().any(|path| path.as_os_str().is_empty()) { &[] } else { paths };
        some.iter().fold(ended, |arguments, path| arguments.with(path))
    }
}

/// The first git on the user's `PATH` that does not lie in the workspace.
fn find(path: &str, workspace: &Path) -> Result<PathBuf, ToolError> {
    let folders = path.split(':').map(Path::new).filter(|folder| folder.is_absolute());
    let found = folders.map(|folder| folder.join("git")).find(|program| {
        let real = program.canonicalize().ok().filter(|real| real.is_file());
        real.is_some_and(|real| !real.starts_with(workspace) && !program.starts_with(workspace))
    });
    let missing = "there is no git on your `PATH`; install it, for example with `apt install git`";
    found.ok_or_else(|| ToolError::new(ErrorCode::Unavailable, missing))
}

/// What belongs to a git that is not the system's.
fn prefix(program: &Path, home: &Path) -> Vec<PathBuf> {
    let real = program.canonicalize().unwrap_or_default();
    let of = |program: &Path| program.ancestors().nth(2).map(Path::to_owned);
    let prefixes = [of(program), of(&real)].into_iter().flatten();
    prefixes.filter(|prefix| !home.starts_with(prefix)).collect()
}
