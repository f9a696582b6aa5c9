//! Finding the toolchains of a user.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::kits::{CACHES, KITS, Kit, SECRETS, SETTINGS};
use super::secrets::may_hold_a_secret;
use super::view::{HomeView, is_system};
use super::{environment, identity, path};

/// Where the user is and what the user's own session says about tools.
#[derive(Clone, Copy, Debug)]
pub struct UserEnvironment<'a> {
    /// The user's home folder.
    pub home: &'a Path,
    /// The workspace, at its real path; it is seen in any case.
    pub workspace: &'a Path,
    /// The variables of the user's session, `PATH` among them.
    pub variables: &'a BTreeMap<String, String>,
}

/// What a fenced process sees of the user's tools, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchains {
    /// The real path of the home folder, which is an empty, private one inside.
    pub home: PathBuf,
    /// What it may read beside the system.
    pub readable: Vec<PathBuf>,
    /// Secrets within what it may read.
    pub hidden: Vec<PathBuf>,
    /// Its variables; where the network is off, [`OFFLINE`](super::OFFLINE) is added.
    pub environment: Vec<(String, String)>,
    /// Folders that tools write.
    pub caches: Vec<ToolCache>,
    /// Git settings for the private home folder: who commits.
    pub gitconfig: Option<String>,
    /// The toolchains, for people.
    pub found: Vec<Toolchain>,
    /// What is not seen inside though the user's session names it.
    pub left_out: Vec<LeftOut>,
}

/// A folder of the user's that tools write: inside, it is the user's own beneath a private layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCache {
    /// A name of its own, fit for a folder.
    pub name: &'static str,
    /// Where it is.
    pub at: PathBuf,
}

/// A toolchain of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// What it is called.
    pub name: String,
    /// Where it is.
    pub at: PathBuf,
}

/// Something that is not seen inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The path as the user's session names it.
    pub at: PathBuf,
    /// Why, after "because".
    pub why: &'static str,
}

impl Toolchains {
    /// Where a program is that a fenced process would find by this name, or at this path.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let is_program = |path: &PathBuf| path.metadata().is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0);
        if name.contains('/') {
            return Some(PathBuf::from(name)).filter(is_program);
        }
        let path = self.environment.iter().find(|(variable, _)| variable == "PATH").map(|(_, path)| path)?;
        std::env::split_paths(path).map(|folder| folder.join(name)).find(is_program)
    }
}

/// Finds the user's toolchains: the known ones that are there, and whatever else lies on the `PATH`.
///
/// A known one counts on the `PATH` or not, because a virtual environment of the workspace links to its Python.
pub fn toolchains(around: &UserEnvironment<'_>) -> Toolchains {
    let home = around.home.canonicalize().unwrap_or_else(|_| around.home.to_owned());
    let view = HomeView { home, workspace: around.workspace.to_owned(), readable: Vec::new() };
    let mut search = ToolchainSearch {
        view,
        around,
        named: vec![],
        secrets: vec![],
        caches: vec![],
        found: vec![],
        left_out: vec![],
    };
    for kit in KITS {
        search.take(kit);
    }
    search.take_home();
    let folders = search.take_path();
    search.finish(&folders)
}

/// What has been found so far.
struct ToolchainSearch<'a> {
    view: HomeView,
    around: &'a UserEnvironment<'a>,
    named: Vec<(String, String)>,
    secrets: Vec<PathBuf>,
    caches: Vec<ToolCache>,
    found: Vec<Toolchain>,
    left_out: Vec<LeftOut>,
}

impl ToolchainSearch<'_> {
    fn take(&mut self, kit: &Kit) {
        let Some(root) = self.named_place(kit).or_else(|| self.usual_place(kit)) else { return };
        for part in kit.parts {
            self.view.show(&beneath(&root, part));
        }
        for name in kit.settings {
            self.take_settings(root.join(name));
        }
        self.secrets.extend(kit.secrets.iter().map(|name| root.join(name)));
        self.take_caches(&root, kit.caches);
        self.found.push(Toolchain { name: kit.name.to_owned(), at: root });
    }

    /// Where a variable says that the tool is, if it is there; the variable is then set inside too.
    fn named_place(&mut self, kit: &Kit) -> Option<PathBuf> {
        let (name, value) = self.around.variables.get_key_value(kit.variable?)?;
        let root = PathBuf::from(value);
        let real = root.canonicalize().ok().filter(|real| root.is_absolute() && real.join(kit.sign).exists())?;
        if let Some(why) = self.view.refusal(&real) {
            self.left_out.push(LeftOut { at: root, why });
            return None;
        }
        self.named.push((name.clone(), value.clone()));
        Some(root)
    }

    fn usual_place(&self, kit: &Kit) -> Option<PathBuf> {
        let places = kit.usual.iter().map(|usual| self.view.home.join(usual));
        places.into_iter().find(|root| root.join(kit.sign).exists())
    }

    fn take_home(&mut self) {
        let home = self.view.home.clone();
        for name in SETTINGS {
            self.take_settings(home.join(name));
        }
        self.secrets.extend(SECRETS.iter().map(|name| home.join(name)));
        self.take_caches(&home, CACHES);
    }

    fn take_settings(&mut self, file: PathBuf) {
        if !file.is_file() {
            return;
        }
        if may_hold_a_secret(&file) {
            self.left_out.push(LeftOut { at: file.clone(), why: "it may hold a secret" });
            return self.secrets.push(file);
        }
        self.view.show(&file);
    }

    /// A folder that the user does not have needs no layer: the tool makes its own in the private home folder.
    fn take_caches(&mut self, root: &Path, caches: &[(&'static str, &str)]) {
        let caches = caches.iter().map(|(name, at)| ToolCache { name, at: root.join(at) });
        self.caches.extend(caches.filter(|cache| cache.at.is_dir()));
    }

    fn take_path(&mut self) -> Vec<PathBuf> {
        let path = self.around.variables.get("PATH").map_or("", String::as_str);
        let (folders, left_out) = path::folders(&mut self.view, path);
        self.left_out.extend(left_out);
        for folder in &folders {
            let known = self.found.iter().any(|found| folder.starts_with(&found.at));
            if !known && !is_system(folder) && !folder.starts_with(&self.view.workspace) {
                self.found.push(Toolchain { name: "on the PATH".to_owned(), at: folder.clone() });
            }
        }
        folders
    }

    fn finish(self, folders: &[PathBuf]) -> Toolchains {
        let HomeView { home, .. } = &self.view;
        let in_cache = |path: &Path| self.caches.iter().any(|cache| path.starts_with(&cache.at));
        let is_seen = |path: &PathBuf| (self.view.shows(path) || in_cache(path)) && path.exists();
        let mut environment = environment::clean(home, folders, self.around.variables);
        environment.extend(self.named);
        Toolchains {
            hidden: self.secrets.into_iter().filter(is_seen).collect(),
            gitconfig: identity::gitconfig(home),
            environment,
            caches: self.caches,
            found: self.found,
            left_out: self.left_out,
            home: self.view.home,
            readable: self.view.readable,
        }
    }
}

/// A part of a folder, or the folder itself for `.`.
fn beneath(root: &Path, part: &str) -> PathBuf {
    root.join(part).components().collect()
}
