//! Which repository a path of the workspace belongs to, and where that keeps its things.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::Read,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_runtime::{ErrorCode, ToolError};
use haft_sandbox::{GitRepository, NoRepository, RepositoryKind, Root, WorkspacePath, fence::mounts_within};

use crate::refusal::cannot;

/// More than any file of git's that points to another place.
const LONGEST_POINTER: u64 = 64 << 10;
/// More than any list of git's that is looked into here.
const LONGEST_LIST: u64 = 16 << 20;

/// More packs than are looked at to tell how much a repository holds.
const MOST_PACKS: usize = 4096;
/// What the index of a pack takes by itself, and for each object.
const INDEX_BYTES: u64 = 1072;
const OBJECT_BYTES: u64 = 28;
/// Git never names a commit with fewer digits by itself.
const FEWEST_DIGITS: usize = 7;

/// A repository as seen from a workspace, by its paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Repository {
    /// The folder with the files; of a bare repository, the repository itself.
    pub(super) folder: PathBuf,
    /// Where it keeps what belongs to these files alone: `HEAD`, the index.
    pub(super) own: PathBuf,
    /// Where it keeps everything else.
    pub(super) shared: PathBuf,
    pub(super) kind: RepositoryKind,
}

impl Repository {
    /// The nearest repository that holds a path.
    pub(super) fn around(root: &Root, place: &WorkspacePath) -> Result<Repository, ToolError> {
        match GitRepository::around(root, place) {
            Ok(found) => Ok(Repository {
                folder: found.folder().to_owned(),
                own: found.own().to_owned(),
                shared: found.shared().to_owned(),
                kind: found.kind(),
            }),
            Err(NoRepository::Nowhere) => Err(no_repository(place)),
            Err(NoRepository::Broken { door, why }) => {
                let shown = WorkspacePath::root().join(door.strip_prefix(root.path()).unwrap_or(&door)).to_string();
                Err(cannot(ErrorCode::InvalidPath, "use the repository of", &shown, why))
            }
        }
    }

    /// Whether what commands change in a git folder outside can be held aside.
    pub(super) fn can_be_held_aside(&self, root: &Root) -> bool {
        let Repository { folder, own, shared, kind } = self;
        let apart = !shared.starts_with(root.path()) && !root.path().starts_with(shared);
        *kind == RepositoryKind::Linked
            && folder == root.path()
            && own.starts_with(shared)
            && apart
            && is_of_one_owner(folder, shared)
            && mounts_within(shared).is_ok_and(|mounts| mounts.is_empty())
    }

    /// The branch that is checked out, by its own file; `None` when a commit is, or where only git can tell.
    pub(super) fn branch(&self) -> Option<String> {
        let head = read_short(&self.own.join("HEAD"), LONGEST_POINTER)?;
        let branch = std::str::from_utf8(&head).ok()?.strip_prefix("ref: refs/heads/")?.trim_end();
        (!branch.starts_with('.')).then(|| branch.to_owned())
    }

    /// The commit that is checked out, and where its history is cut off; `None` where only git can tell.
    pub(super) fn tip(&self) -> Option<String> {
        let head = read_short(&self.own.join("HEAD"), LONGEST_POINTER)?;
        let head = String::from_utf8(head).ok()?;
        let commit = match head.strip_prefix("ref: ") {
            None => head,
            Some(branch) => self.commit_of(branch.trim_end())?,
        };
        let commit = commit.trim_end();
        let is_hash = matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        let shallow = read_short(&self.shared.join("shallow"), LONGEST_LIST).unwrap_or_default();
        is_hash.then(|| format!("{commit} {}", String::from_utf8_lossy(&shallow)))
    }

    /// The commit of a branch, by its own file or the one for many.
    fn commit_of(&self, branch: &str) -> Option<String> {
        if branch.split('/').any(|part| part == "..") {
            return None;
        }
        if let Some(commit) = read_short(&self.shared.join(branch), LONGEST_POINTER) {
            return String::from_utf8(commit).ok();
        }
        let packed = String::from_utf8(read_short(&self.shared.join("packed-refs"), LONGEST_LIST)?).ok()?;
        let own =
            |line: &str| line.split_once(' ').filter(|(_, name)| *name == branch).map(|(hash, _)| hash.to_owned());
        packed.lines().find_map(own)
    }

    /// With how many digits git would name a commit here, unless two of them begin alike: more where it holds more.
    pub(super) fn digits(&self) -> usize {
        let packs = fs::read_dir(self.shared.join("objects/pack")).into_iter().flatten().flatten();
        let indexes = packs.take(MOST_PACKS).filter(|file| file.path().extension() == Some(OsStr::new("idx")));
        let bytes = indexes.filter_map(|index| Some(index.metadata().ok()?.len()));
        let objects: u64 = bytes.map(|bytes| bytes.saturating_sub(INDEX_BYTES) / OBJECT_BYTES).sum();
        let bits = u64::BITS - objects.leading_zeros();
        usize::try_from(bits.div_ceil(2)).unwrap_or(FEWEST_DIGITS).max(FEWEST_DIGITS)
    }

    /// Whether a submodule lies at one of these paths or beneath it; an empty one is the whole repository.
    pub(super) fn has_submodules(&self, at: &[PathBuf]) -> bool {
        let index = self.own.join("index");
        // A FIFO would never end.
        let plain = fs::metadata(&index).is_ok_and(|meta| meta.is_file());
        let index = if plain { File::open(index).ok() } else { None };
        match index.and_then(haft_sandbox::submodules) {
            Some(found) => {
                found.iter().any(|sub| at.iter().any(|path| Path::new(OsStr::from_bytes(sub)).starts_with(path)))
            }
            // Where the index cannot be read, its settings tell.
            None => self.folder.join(".gitmodules").exists(),
        }
    }

    /// A path of the workspace as this repository names it; empty for all of its files.
    pub(super) fn path_of(&self, root: &Root, place: &WorkspacePath) -> PathBuf {
        let path = root.path().join(place.as_path());
        path.strip_prefix(&self.folder).map(Path::to_owned).unwrap_or_default()
    }

    /// A path as this repository names it, as a place of the workspace; `None` when it lies outside.
    pub(super) fn place_of(&self, root: &Root, path: &[u8]) -> Option<WorkspacePath> {
        let path = self.folder.join(OsStr::from_bytes(path));
        Some(WorkspacePath::root().join(path.strip_prefix(root.path()).ok()?))
    }
}

/// What commands need to see a repository that is kept outside the workspace: that of a linked worktree, or of a
/// submodule of something larger.
#[derive(Debug, Default)]
pub(crate) struct OutsideRepository {
    /// Its folders, which are only read where nothing can be held aside.
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) environment: Vec<(String, String)>,
}

/// The same workspace with the git folder of its repository, if that lies outside and what commands change in it can be
/// held aside like what they change in the workspace.
pub(crate) fn with_outside_repository(root: &Arc<Root>) -> Arc<Root> {
    let repository = Repository::around(root, &WorkspacePath::root());
    let with = repository.ok().filter(|repository| repository.can_be_held_aside(root));
    let with = with.and_then(|Repository { own, shared, .. }| root.with_git_folder(&shared, &own).ok());
    with.map_or_else(|| Arc::clone(root), Arc::new)
}

impl OutsideRepository {
    /// The one of a workspace; empty where there is none.
    pub(crate) fn of(root: &Root) -> Self {
        let Ok(repository) = Repository::around(root, &WorkspacePath::root()) else { return Self::default() };
        let Repository { folder, own, shared, kind: RepositoryKind::Linked } = repository else {
            return Self::default();
        };
        // Inside, the owner of what is outside looks like a stranger to git. Out here it can be told.
        let trusted = folder == root.path() && is_of_one_owner(&folder, &shared);
        let trust =
            [("COUNT", "1"), ("KEY_0", "safe.directory"), ("VALUE_0", root.path().to_str().unwrap_or_default())];
        let variable = |(name, value): (&str, &str)| (format!("GIT_CONFIG_{name}"), value.to_owned());
        let environment = if trusted { trust.into_iter().map(variable).collect() } else { Vec::new() };
        let apart = !own.starts_with(&shared);
        Self { folders: std::iter::once(shared).chain(apart.then_some(own)).collect(), environment }
    }
}

fn is_of_one_owner(one: &Path, other: &Path) -> bool {
    let owner = |path: &Path| fs::metadata(path).map(|meta| meta.uid()).ok();
    owner(one).is_some() && owner(one) == owner(other)
}

/// Whether a workspace lies in a repository, or is one.
pub(crate) fn has_repository(root: &Root) -> bool {
    Repository::around(root, &WorkspacePath::root()).is_ok()
}

fn read_short(file: &Path, longest: u64) -> Option<Vec<u8>> {
    // A FIFO would never end.
    if !fs::metadata(file).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(file).ok()?.take(longest).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// There is no repository here.
pub(super) fn no_repository(place: &WorkspacePath) -> ToolError {
    let why = "it is in no git repository; make one with `shell_exec` and `git init`, or name a path inside one";
    cannot(ErrorCode::InvalidPath, "use git at", &place.to_string(), why)
}
