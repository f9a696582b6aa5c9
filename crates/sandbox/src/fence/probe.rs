//! Which fences can be built here, found out by building them.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::FenceError;
use super::inside::UNUSED;
use super::job::{FenceJob, FenceLimits, Rung, WorkspaceView};
use super::process::CommandExit;
use super::start::Fence;
use crate::transfer::{self, EntryRef};

/// Which fences can be built here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The strongest, if there is any.
    pub rung: Option<Rung>,
    /// Whether one of namespaces can be built.
    pub namespaces: Result<(), Missing>,
    /// Whether one of Landlock alone can be built.
    pub landlock: Result<(), Missing>,
}

/// Why a fence cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// What was being done.
    pub step: String,
    /// What the system said to it.
    pub why: String,
    /// What to do about it.
    pub fix: String,
}

/// What a remembered probe holds for.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Circumstances {
    boot: String,
    kernel: String,
    user: u32,
    /// Device, inode, size and time of the program that builds the fence.
    program: (u64, u64, u64, i64, i64),
}

#[derive(Serialize, Deserialize)]
struct ProbeMemory {
    circumstances: Circumstances,
    probe: Probe,
}

impl Fence {
    /// Builds each fence once around `true`. Where both can be built, that is remembered in the file `cache` until the
    /// next boot; what is missing may be there the next time.
    pub fn probe(&self, cache: &Path) -> Probe {
        let circumstances = Circumstances::now(self.program()).ok();
        let remembered = fs::read(cache).ok().and_then(|bytes| serde_json::from_slice::<ProbeMemory>(&bytes).ok());
        if let Some(remembered) = remembered
            && Some(&remembered.circumstances) == circumstances.as_ref()
        {
            return remembered.probe;
        }
        let probe = self.probe_in(&cache.with_extension("try"));
        if let Some(circumstances) = circumstances
            && probe.namespaces.is_ok()
            && probe.landlock.is_ok()
        {
            // If it cannot be remembered, it is found out again.
            let _ = ProbeMemory { circumstances, probe: probe.clone() }.keep(cache);
        }
        probe
    }

    /// Forgets what was found out, when it turns out to hold no more.
    pub fn forget(cache: &Path) {
        let _ = fs::remove_file(cache);
    }

    fn probe_in(&self, folder: &Path) -> Probe {
        remove_abandoned(folder);
        // Another process may probe at the same time.
        let folder = folder.with_extension(format!("try{}", std::process::id()));
        let found = Site::make(&folder).map(|site| {
            let namespaces = self.try_once(&site.job(Rung::Namespaces));
            (namespaces, self.try_once(&site.job(Rung::Landlock)))
        });
        remove(&folder);
        let (namespaces, landlock) = found.unwrap_or_else(|error| {
            let missing = Missing {
                step: "make a folder to try it in".to_owned(),
                why: error.to_string(),
                fix: "make haft's data folder writable".to_owned(),
            };
            (Err(missing.clone()), Err(missing))
        });
        let rung = match (&namespaces, &landlock) {
            (Ok(()), _) => Some(Rung::Namespaces),
            (Err(_), Ok(())) => Some(Rung::Landlock),
            (Err(_), Err(_)) => None,
        };
        Probe { rung, namespaces, landlock }
    }

    fn try_once(&self, job: &FenceJob) -> Result<(), Missing> {
        // A fence for this alone: that both are tried does not mean that a command will be run.
        let ended = Fence::new(self.program()).start(job).and_then(|process| process.wait(&mut |_, _| {}));
        let (step, why) = match ended {
            Ok(ended) if ended.exit == CommandExit::Code(0) => return Ok(()),
            Ok(ended) => ("run `true`".to_owned(), format!("it ended with {:?}", ended.exit)),
            Err(FenceError::Unavailable { step, why }) => (step, why),
            Err(error) => ("start it".to_owned(), error.to_string()),
        };
        let fix = match job.rung {
            Rung::Namespaces => fix_namespaces(&step),
            Rung::Landlock => "run Linux 5.13 or later with `landlock` in the boot parameter `lsm=`".to_owned(),
        };
        Err(Missing { step, why, fix })
    }
}

/// Removes the folder that it was tried in, also what the kernel leaves there that not even its owner may open. What
/// cannot be removed is in nobody's way.
fn remove(folder: &Path) {
    let (Some(above), Some(name)) = (folder.parent(), folder.file_name()) else { return };
    if let Ok(above) = fs::File::open(above) {
        let _ = transfer::remove(EntryRef { dir: above.as_fd(), name });
    }
}

/// Removes what processes have left that were killed while they tried.
fn remove_abandoned(folder: &Path) {
    let (Some(above), Some(stem)) = (folder.parent(), folder.file_name()) else { return };
    for entry in above.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(stem.to_str()?));
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            remove(&entry.path());
        }
    }
}

/// What lets namespaces be built, as far as the system tells what hinders them.
fn fix_namespaces(step: &str) -> String {
    let is = |name: &str, value: &str| {
        fs::read_to_string(format!("/proc/sys/{name}")).is_ok_and(|content| content.trim() == value)
    };
    let fix = if is("user/max_user_namespaces", "0") {
        "run `sudo sysctl user.max_user_namespaces=10000`"
    } else if is("kernel/unprivileged_userns_clone", "0") {
        "run `sudo sysctl kernel.unprivileged_userns_clone=1`"
    } else if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        "run `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or give haft an AppArmor profile that allows userns"
    } else if step.contains("/proc") {
        "start the container with `--security-opt systempaths=unconfined`: it hides parts of /proc"
    } else if step.contains("namespaces") {
        "start the container with a seccomp profile that allows unshare and mount, or haft outside of it"
    } else if step.contains("overlay") {
        "run Linux 5.11 or later, with haft's data folder on a filesystem that has user attributes, such as ext4 or xfs"
    } else {
        "run Linux 5.12 or later, outside of containers that forbid mounts"
    };
    fix.to_owned()
}

/// Folders to try a fence in.
struct Site {
    workspace: PathBuf,
    layer: PathBuf,
}

impl Site {
    fn make(folder: &Path) -> io::Result<Site> {
        let site = Site { workspace: folder.join("workspace"), layer: folder.join("layer") };
        fs::create_dir_all(&site.workspace)?;
        fs::create_dir_all(site.layer.join("upper"))?;
        fs::create_dir_all(site.layer.join("work"))?;
        Ok(site)
    }

    fn job(&self, rung: Rung) -> FenceJob {
        let view = match rung {
            Rung::Namespaces => WorkspaceView::Aside { layer: self.layer.clone() },
            Rung::Landlock => WorkspaceView::Direct,
        };
        if rung == Rung::Landlock && rustix::process::geteuid().is_root() {
            // Landlock alone never runs anything as root; whether it works does not depend on whom it runs as.
            let _ = std::os::unix::fs::chown(&self.workspace, Some(UNUSED), Some(UNUSED));
        }
        FenceJob {
            command: vec!["/bin/true".to_owned()],
            folder: PathBuf::from("/usr"),
            environment: Vec::new(),
            stdin: Vec::new(),
            workspace: self.workspace.clone(),
            view,
            layered: Vec::new(),
            readable: Vec::new(),
            writable: Vec::new(),
            hidden: Vec::new(),
            masks: Vec::new(),
            network: false,
            limits: FenceLimits::default(),
            rung,
        }
    }
}

impl Circumstances {
    fn now(program: &Path) -> io::Result<Circumstances> {
        let program = fs::metadata(program)?;
        Ok(Circumstances {
            boot: fs::read_to_string("/proc/sys/kernel/random/boot_id")?,
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            user: rustix::process::geteuid().as_raw(),
            program: (program.dev(), program.ino(), program.size(), program.mtime(), program.mtime_nsec()),
        })
    }
}

impl ProbeMemory {
    fn keep(&self, cache: &Path) -> io::Result<()> {
        let new = cache.with_extension(format!("new{}", std::process::id()));
        fs::write(&new, serde_json::to_vec(self)?)?;
        fs::rename(new, cache)
    }
}
