//! The private folders of one workspace, and the layers of one call over them.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::process::geteuid;

use super::record::{CACHES, FOLDER, PrivateLayer, PrivateRecord, SEEDS, WORKSPACE, boot, gathered};
use super::seed::Seed;
use crate::fence::inside::runs_as;
use crate::fence::job::LayeredFolder;
use crate::fence::toolchains::Toolchains;

/// After this long without a call, a workspace begins with an empty home folder and an empty `/tmp`.
const REST: Duration = Duration::from_secs(24 * 60 * 60);

/// No process that has folders of its own lives longer.
const LONGEST_LIFE: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// The folders for temporary files, with the names that their layers have.
const TEMPORARY: [(&str, &str); 2] = [("tmp", "/tmp"), ("var-tmp", "/var/tmp")];

/// What fenced processes of one workspace have to themselves: caches, a home folder, `/tmp` and `/var/tmp`.
#[derive(Clone, Debug)]
pub struct Private {
    /// `<data>/private/<workspace>`; made when there is something to keep.
    home: PathBuf,
    workspace: PathBuf,
    boot: String,
    /// Whose the folders are inside, where that is not us.
    owner: Option<(u32, u32)>,
}

impl Private {
    /// The private folders of a workspace, given by its real path, in haft's data folder. Makes nothing yet.
    pub fn open(data: &Path, workspace: &Path) -> io::Result<Private> {
        let home = data.join(FOLDER).join(key(workspace));
        // Where both are root, the fence shows root's files as those of whom it runs.
        let is_anothers = geteuid().is_root() && workspace.metadata()?.uid() != 0;
        let owner = if is_anothers { Some(runs_as(workspace)?) } else { None };
        Ok(Private { home, workspace: workspace.to_owned(), boot: boot()?, owner })
    }

    /// Makes the layers for one job in the new folder `dir`, each with an empty `upper` and `work`. They are kept by
    /// [`keep`](super::keep) or thrown away by [`throw_away`](super::throw_away), in this process or in another.
    pub fn layers(&self, dir: &Path, tools: &Toolchains) -> io::Result<Vec<LayeredFolder>> {
        let failed = |error: io::Error| io::Error::new(error.kind(), format!("make the private layers: {error}"));
        self.make_layers(dir, tools).map_err(failed)
    }

    fn make_layers(&self, dir: &Path, tools: &Toolchains) -> io::Result<Vec<LayeredFolder>> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let has_session = self.has_session()?;
        let mut layered = Vec::new();
        let (workspace, home, boot) = (self.workspace.clone(), self.home.clone(), self.boot.clone());
        let mut record = PrivateRecord { workspace, home, boot, layers: Vec::new() };
        for (name, at, mode) in self.session_folders(&tools.home) {
            let layer = PrivateLayer { name: name.to_owned(), over: None };
            let mut beneath: Vec<PathBuf> = if has_session { self.gathered(&layer).collect() } else { Vec::new() };
            let made = make(dir, name, mode)?;
            if let Some(seed) = Seed::of(&at, tools, &self.workspace, self.owner) {
                beneath.push(self.planted(&seed, &made)?);
            }
            layered.push(LayeredFolder { at, beneath, layer: made, own_work: None });
            record.layers.push(layer);
        }
        for cache in tools.caches.iter().filter(|cache| cache.at != self.workspace) {
            let layer = PrivateLayer { name: cache.name.to_owned(), over: Some(cache.at.clone()) };
            let beneath = self.gathered(&layer).chain([cache.at.clone()]).collect();
            let layer_of_cache = make(dir, cache.name, 0o755)?;
            layered.push(LayeredFolder { at: cache.at.clone(), beneath, layer: layer_of_cache, own_work: None });
            record.layers.push(layer);
        }
        record.write(dir)?;
        Ok(layered)
    }

    /// The same folders for a process that lives long, under a name of its own: whatever is written there is kept at
    /// once, by all processes that have the name.
    pub fn lasting_layers(&self, name: &str, tools: &Toolchains) -> io::Result<Vec<LayeredFolder>> {
        let failed = |error: io::Error| io::Error::new(error.kind(), format!("make the private folders: {error}"));
        self.make_lasting(name, tools).map_err(failed)
    }

    fn make_lasting(&self, name: &str, tools: &Toolchains) -> io::Result<Vec<LayeredFolder>> {
        let mut layered = Vec::new();
        for (folder, at, mode) in self.session_folders(&tools.home) {
            let mut made = self.lasting(&format!("{name}/{folder}"), &at)?;
            fs::set_permissions(made.layer.join("upper"), fs::Permissions::from_mode(mode))?;
            if let Some(seed) = Seed::of(&at, tools, &self.workspace, self.owner) {
                made.beneath.push(self.planted(&seed, &made.layer)?);
            }
            layered.push(made);
        }
        for cache in tools.caches.iter().filter(|cache| cache.at != self.workspace) {
            let mut made = self.lasting(&format!("{name}/{}", cache.name), &cache.at)?;
            made.beneath.push(cache.at.clone());
            layered.push(made);
        }
        // The folder says whose it is, so that it goes when the workspace is gone.
        match symlink(&self.workspace, self.home.join(WORKSPACE)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            Ok(()) | Err(_) => Ok(layered),
        }
    }

    /// A folder that lasts, seen at `at`: whatever is written there is kept at once, by all processes that have it.
    pub fn lasting(&self, name: &str, at: &Path) -> io::Result<LayeredFolder> {
        let layer = self.home.join(CACHES).join(name);
        let work = layer.join("work");
        self.remove_old_work(&work);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let own_work = format!("{}-{}", self.boot, now.as_nanos());
        for folder in [layer.join("upper"), work.join(&own_work)] {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        Ok(LayeredFolder { at: at.to_owned(), beneath: Vec::new(), layer, own_work: Some(own_work) })
    }

    /// Removes the work folders that nobody uses any more: those of an earlier boot, and very old ones. What cannot be
    /// removed now is removed the next time.
    fn remove_old_work(&self, work: &Path) {
        for entry in fs::read_dir(work).into_iter().flatten().flatten() {
            let is_of_this_boot = entry.file_name().to_string_lossy().starts_with(&self.boot);
            let age = entry.metadata().and_then(|meta| meta.modified()).ok().and_then(|made| made.elapsed().ok());
            if !is_of_this_boot || age.is_some_and(|age| age > LONGEST_LIFE) {
                let _removed_later = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// What lasts for a session: name, place and mode. What lies in the workspace is the workspace's.
    fn session_folders<'a>(&self, home: &'a Path) -> impl Iterator<Item = (&'static str, PathBuf, u32)> + use<'a, '_> {
        let temporary = TEMPORARY.map(|(name, at)| (name, PathBuf::from(at), 0o1777));
        let all = temporary.into_iter().chain([("home", home.to_owned(), 0o700)]);
        all.filter(|(_, at, _)| !at.starts_with(&self.workspace) && at.parent().is_some())
    }

    /// What the workspace has gathered, if it has.
    fn gathered(&self, layer: &PrivateLayer) -> impl Iterator<Item = PathBuf> + use<> {
        Some(gathered(&self.home, &self.boot, layer)).filter(|path| path.is_dir()).into_iter()
    }

    /// The folder of a seed, which all calls with the same tools share. It is made aside, in the call's layer.
    fn planted(&self, seed: &Seed<'_>, layer: &Path) -> io::Result<PathBuf> {
        let seeds = self.home.join(SEEDS);
        let folder = seeds.join(seed.name());
        if folder.is_dir() {
            return Ok(folder);
        }
        // Another process may make the same for the same layer.
        let made = layer.join(format!("seed-{}", std::process::id()));
        seed.make(&made)?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&seeds)?;
        match fs::rename(&made, &folder) {
            // Another call was faster.
            Err(_) if folder.is_dir() => {
                let _left = fs::remove_dir_all(&made);
                Ok(folder)
            }
            planted => planted.map(|()| folder),
        }
    }

    /// Whether there is a session of this boot that was used lately. It is marked as used now; one that has rested is
    /// put aside, and removed with the next call that keeps something.
    fn has_session(&self) -> io::Result<bool> {
        let session = self.home.join(&self.boot);
        let used = match fs::metadata(&session) {
            Ok(meta) => meta.modified()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let now = SystemTime::now();
        if now.duration_since(used).is_ok_and(|rested| rested > REST) {
            let seconds = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
            let aside = self.home.join(format!("{}-{seconds}", self.boot));
            match fs::rename(&session, aside) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => return Ok(false),
            }
        }
        fs::File::open(&session)?.set_modified(now)?;
        Ok(true)
    }
}

/// Makes a layer: a folder with `upper` and `work`.
fn make(dir: &Path, name: &str, mode: u32) -> io::Result<PathBuf> {
    let layer = dir.join(name);
    let upper = layer.join("upper");
    fs::create_dir(&layer)?;
    fs::create_dir(&upper)?;
    fs::create_dir(layer.join("work"))?;
    fs::set_permissions(upper, fs::Permissions::from_mode(mode))?;
    Ok(layer)
}

/// A name for a workspace's folder that no other workspace has.
fn key(workspace: &Path) -> String {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, workspace.as_os_str()).hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(0), half(1))
}
