//! Landlock: which paths the command may read and write, whatever else lets it.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use rustix::fs::FileType;

use super::masks::SECRETS;
use crate::fence::job::{FenceJob, Mask, MaskContent, Rung, STEERING, SYSTEM, WorkspaceView};
use crate::fence::wire::StepFailure;

/// The newest rights that we know; an older kernel keeps those that it knows.
const KNOWN: ABI = ABI::V6;

/// What a process may use of `/dev` where that is not its own.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Restricts this process and all that it will start.
///
/// Landlock only allows. Where it is alone, what a job hides or may not write is closed by allowing everything beside
/// it, so nothing new can be made in a folder that holds such a thing.
pub(super) fn restrict(job: &FenceJob) -> Result<(), StepFailure> {
    let enforced = match job.rung {
        Rung::Namespaces => rules_inside(job).and_then(|rules| Ok(rules.restrict_self()?.ruleset)),
        Rung::Landlock => rules_alone(job).and_then(|rules| Ok(rules.restrict_self()?.ruleset)),
    };
    match (enforced, job.rung) {
        (Ok(RulesetStatus::NotEnforced), Rung::Landlock) => {
            Err(StepFailure::refused("restrict paths by Landlock", "this kernel has no Landlock"))
        }
        (Ok(_), _) => Ok(()),
        (Err(error), _) => Err(StepFailure::refused("restrict paths by Landlock", &error.to_string())),
    }
}

/// Inside namespaces everything that is there may be read; only what is meant for it may be written.
fn rules_inside(job: &FenceJob) -> Result<LandlockRules, RulesetError> {
    let mut rules = LandlockRules::new(ruleset()?)?;
    rules.allow(Path::new("/"), reading())?;
    let private = ["/dev", "/tmp", "/var/tmp"].map(Path::new);
    let home = job.environment.iter().find(|(name, _)| name == "HOME").map(|(_, home)| Path::new(home));
    let layers = job.layered.iter().map(|layered| layered.at.as_path());
    for path in private.into_iter().chain(home).chain(layers).chain(job.writable.iter().map(PathBuf::as_path)) {
        rules.allow(path, everything())?;
    }
    if job.view != WorkspaceView::ReadOnly {
        rules.allow(&job.workspace, everything())?;
    }
    Ok(rules)
}

/// Without namespaces the rules are all that there is.
fn rules_alone(job: &FenceJob) -> Result<LandlockRules, RulesetError> {
    let mut ruleset = ruleset()?;
    if !job.network {
        ruleset = ruleset.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?;
    }
    let mut rules = LandlockRules::new(ruleset)?;
    let mut hidden: Vec<_> = SECRETS.iter().map(PathBuf::from).filter(|path| can_be_read(path)).collect();
    hidden.extend(job.hidden.iter().cloned());
    hidden.extend(job.hidden.iter().filter_map(|path| path.canonicalize().ok()));
    // Nothing can be shown in the place of something else here; what a commit has is seen as it lies there.
    let is_secret = |mask: &&Mask| !matches!(mask.content, MaskContent::Head { is_same: true, .. });
    hidden.extend(job.masks.iter().filter(is_secret).map(|mask| job.workspace.join(mask.place.as_path())));
    let read = SYSTEM.iter().map(Path::new).chain([Path::new("/proc"), Path::new("/etc/resolv.conf")]);
    for path in read.chain(job.readable.iter().map(PathBuf::as_path)) {
        rules.allow_around(path, &hidden, reading())?;
    }
    for path in DEVICES.map(Path::new) {
        rules.allow(path, everything())?;
    }
    rules.allow_around(&job.workspace, &hidden, reading())?;
    for path in &job.writable {
        rules.allow_around(path, &hidden, everything())?;
    }
    if job.view == WorkspaceView::Direct {
        hidden.extend(STEERING.iter().filter(|path| **path != ".git").map(|path| job.workspace.join(path)));
        rules.allow_around(&job.workspace, &hidden, everything())?;
    }
    Ok(rules)
}

fn ruleset() -> Result<Ruleset, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(everything())?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)
}

fn reading() -> BitFlags<AccessFs> {
    AccessFs::from_read(KNOWN)
}

fn everything() -> BitFlags<AccessFs> {
    AccessFs::from_all(KNOWN)
}

fn can_be_read(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::READ_OK).is_ok()
}

/// Rules that are being made.
struct LandlockRules(RulesetCreated);

impl LandlockRules {
    fn new(ruleset: Ruleset) -> Result<LandlockRules, RulesetError> {
        Ok(LandlockRules(ruleset.create()?))
    }

    /// Allows something for a path, if it exists, and for all beneath it.
    fn allow(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), RulesetError> {
        let Ok(file) = PathFd::new(path) else { return Ok(()) };
        let is_folder = rustix::fs::fstat(&file).is_ok_and(|kind| FileType::from_raw_mode(kind.st_mode).is_dir());
        let access = if is_folder { access } else { access & AccessFs::from_file(KNOWN) };
        (&mut self.0).add_rule(PathBeneath::new(file, access))?;
        Ok(())
    }

    /// Allows something for a path and all beneath it but what is closed. A folder on the way to something closed can
    /// only be listed itself.
    fn allow_around(
        &mut self,
        path: &Path,
        closed: &[PathBuf],
        access: BitFlags<AccessFs>,
    ) -> Result<(), RulesetError> {
        if closed.iter().any(|one| path.starts_with(one)) {
            return Ok(());
        }
        if !closed.iter().any(|one| one.starts_with(path) && one.symlink_metadata().is_ok()) {
            return self.allow(path, access);
        }
        self.allow(path, AccessFs::ReadDir.into())?;
        let Ok(entries) = path.read_dir() else { return Ok(()) };
        for entry in entries.flatten() {
            // What a link leads to has, or has not, a rule of its own.
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                self.allow_around(&entry.path(), closed, access)?;
            }
        }
        Ok(())
    }

    fn restrict_self(self) -> Result<landlock::RestrictionStatus, RulesetError> {
        self.0.restrict_self()
    }
}
