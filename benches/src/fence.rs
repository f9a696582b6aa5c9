//! What the fence costs: its start beside bubblewrap's, runs aside beside an overlay by hand, builds and output.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts the programs that it measures")]

mod staged;
mod whole;

use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use haft_sandbox::fence::{CommandExit, Fence, FenceJob, FenceLimits, Rung, WorkspaceView};

use crate::{Measured, program::program};

const LAPS: usize = 60;
/// What a large server may hold while it starts a command.
const RESIDENT: usize = 1 << 30;
/// The same namespaces, mounts and rights as ours.
const BUBBLEWRAP: &str = "--unshare-user --unshare-ipc --unshare-pid --unshare-net --unshare-uts --unshare-cgroup \
    --ro-bind /usr /usr --ro-bind /etc /etc --symlink usr/bin /bin --symlink usr/sbin /sbin --symlink usr/lib /lib \
    --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp --tmpfs /home --tmpfs /run \
    --cap-drop ALL --die-with-parent --new-session";

/// Everything about commands.
pub(crate) async fn measure() -> Result<Vec<Measured>> {
    let mut table = starts()?;
    table.extend(staged::measure().await?);
    table.extend(whole::measure()?);
    Ok(table)
}

/// The best of many, each in turn, with little and with much memory in the process that asks.
fn starts() -> Result<Vec<Measured>> {
    let folder = tempfile::tempdir()?;
    let fence = Fence::new(program()?);
    let job = read_only(&folder.path().canonicalize()?);
    let (mut ours, mut peer, mut bare) = (Duration::MAX, Duration::MAX, Duration::MAX);
    for _ in 0..LAPS {
        ours = ours.min(fenced(&fence, &job)?);
        peer = peer.min(bubblewrap(&job.workspace)?);
        bare = bare.min(timed(&mut Command::new("/bin/true"))?);
    }
    let (mut light, mut heavy) = (Duration::MAX, Duration::MAX);
    for _ in 0..LAPS / 10 {
        let held = vec![1_u8; RESIDENT];
        for _ in 0..10 {
            heavy = heavy.min(fenced(&fence, &job)?);
        }
        drop(std::hint::black_box(held));
        for _ in 0..10 {
            light = light.min(fenced(&fence, &job)?);
        }
    }
    let (share, growth) = (ratio(ours, peer), ratio(heavy, light));
    Ok(vec![
        Measured::new(
            "starting a fenced `true`",
            format!("{ours:.1?}, bubblewrap {peer:.1?} ({share:.2} ×), bare {bare:.1?}"),
            "≤ bubblewrap",
            ours <= peer,
        ),
        Measured::new(
            "the same with 1 GiB resident",
            format!("{heavy:.1?}, without {light:.1?} ({growth:.2} ×)"),
            "within noise (1.15 ×)",
            growth <= 1.15,
        ),
    ])
}

fn read_only(workspace: &Path) -> FenceJob {
    FenceJob {
        command: vec!["/bin/true".to_owned()],
        folder: workspace.to_owned(),
        environment: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
        stdin: Vec::new(),
        workspace: workspace.to_owned(),
        view: WorkspaceView::ReadOnly,
        layered: Vec::new(),
        readable: Vec::new(),
        writable: Vec::new(),
        hidden: Vec::new(),
        masks: Vec::new(),
        network: false,
        limits: FenceLimits::default(),
        rung: Rung::Namespaces,
    }
}

fn fenced(fence: &Fence, job: &FenceJob) -> Result<Duration> {
    let begin = Instant::now();
    let ended = fence.start(job)?.wait(&mut |_, _| {})?;
    let took = begin.elapsed();
    ensure!(ended.exit == CommandExit::Code(0), "the fenced command ended with {:?}", ended.exit);
    Ok(took)
}

fn bubblewrap(workspace: &Path) -> Result<Duration> {
    let mut command = Command::new("bwrap");
    command.args(BUBBLEWRAP.split_whitespace()).arg("--ro-bind").args([workspace, workspace]);
    command.arg("--chdir").arg(workspace).arg("/bin/true");
    timed(&mut command)
}

/// Until it has ended well.
fn timed(command: &mut Command) -> Result<Duration> {
    let begin = Instant::now();
    let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    let took = begin.elapsed();
    ensure!(ended.success(), "{command:?} failed");
    Ok(took)
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}
