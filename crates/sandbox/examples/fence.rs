//! Runs a command in the fence, and measures how long that takes beside others.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::expect_used,
    reason = "this is a program for people at a terminal"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use haft_sandbox::fence::{
    CommandExit, CommandStream, Fence, FenceError, FenceJob, FenceLimits, Process, Rung, WorkspaceView,
    become_helper_if_asked,
};

const USAGE: &str = "fence [--rung namespaces|landlock] [--network] [--read-only] [--aside LAYER] [--workspace DIR]\n      [--readable PATH]... [--writable DIR]... [--hidden PATH]...\n      [--processes N] [--memory BYTES] -- COMMAND...";

fn main() -> ExitCode {
    become_helper_if_asked();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("probe") => {
            println!(
                "{:#?}",
                own_fence().probe(Path::new(arguments.get(1).map_or("/tmp/fence-probe.json", String::as_str)))
            );
            return ExitCode::SUCCESS;
        }
        Some("bench") => return bench(),
        Some("job") => return answer(Fence::start),
        Some("reachable-job") => return answer(Fence::start_reachable),
        Some(_) | None => {}
    }
    let Some(job) = parse(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(&job) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(125)
        }
    }
}

fn run(job: &FenceJob) -> Result<ExitCode, FenceError> {
    let process = own_fence().start(job)?;
    let ended = process.wait(&mut |stream, piece| {
        use std::io::Write;
        let _ = match stream {
            CommandStream::Stdout => std::io::stdout().write_all(piece),
            CommandStream::Stderr => std::io::stderr().write_all(piece),
        };
    })?;
    eprintln!("[{:?} {:?} {:?}]", job.rung, ended.exit, ended.bound);
    Ok(match ended.exit {
        CommandExit::Code(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        CommandExit::Signal(_) | CommandExit::Stopped => ExitCode::FAILURE,
    })
}

/// Reads a job from the standard input and says in one line how it ended, so that it can be run as another user.
fn answer(start: impl Fn(&Fence, &FenceJob) -> Result<Process, FenceError>) -> ExitCode {
    let job: FenceJob = serde_json::from_reader(std::io::stdin().lock()).expect("a job");
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let ended = start(&own_fence(), &job).and_then(|process| {
        process.wait(&mut |stream, piece| match stream {
            CommandStream::Stdout => stdout.extend_from_slice(piece),
            CommandStream::Stderr => stderr.extend_from_slice(piece),
        })
    });
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let answer = match ended {
        Ok(ended) => serde_json::json!({
            "stdout": text(&stdout), "stderr": text(&stderr),
            "exit": format!("{:?}", ended.exit), "bound": ended.bound, "began": ended.began,
        }),
        Err(error) => {
            serde_json::json!({ "stdout": text(&stdout), "stderr": text(&stderr), "exit": error.to_string() })
        }
    };
    println!("{answer}");
    ExitCode::SUCCESS
}

fn own_fence() -> Fence {
    Fence::new(std::env::current_exe().unwrap_or_default())
}

/// Measures how long `true` takes: bare, in bwrap with equal flags, and fenced; and fenced from a process with 1 GiB.
fn bench() -> ExitCode {
    let folder = std::env::temp_dir().join(format!("fence-bench-{}", std::process::id()));
    for name in ["workspace", "layer/upper", "layer/work"] {
        std::fs::create_dir_all(folder.join(name)).expect("a folder to measure in");
    }
    let job = job_in(&folder.join("workspace"));
    let aside = FenceJob { view: WorkspaceView::Aside { layer: folder.join("layer") }, ..job.clone() };
    measure("bare", || spawn("true", &[]));
    let workspace = job.workspace.to_string_lossy().into_owned();
    measure("bwrap", || spawn("bwrap", &bwrap_flags(&workspace)));
    measure("fence, direct", || fenced(&job));
    measure("fence, aside", || fenced(&aside));
    let ballast = std::hint::black_box(vec![1_u8; 1 << 30]);
    measure("fence, direct, 1 GiB resident", || fenced(&job));
    drop(ballast);
    let _ = std::fs::remove_dir_all(folder);
    ExitCode::SUCCESS
}

fn measure(name: &str, mut once: impl FnMut()) {
    let mut times: Vec<_> = (0..100)
        .map(|_| {
            let began = Instant::now();
            once();
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    println!("{name:<32} median {:>9.3?}  95% {:>9.3?}", times[50], times[95]);
}

fn fenced(job: &FenceJob) {
    let ended = own_fence().start(job).and_then(|process| process.wait(&mut |_, _| {}));
    assert_eq!(ended.expect("a fence").exit, CommandExit::Code(0));
}

#[expect(clippy::disallowed_methods, reason = "this is what the fence is measured beside")]
fn spawn(program: &str, arguments: &[&str]) {
    assert!(Command::new(program).args(arguments).status().expect("a program").success());
}

/// The flags that ask bwrap for what the fence does.
fn bwrap_flags(workspace: &str) -> Vec<&str> {
    let mut flags = vec!["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL"];
    for folder in ["/usr", "/etc", "/opt"] {
        flags.extend(["--ro-bind", folder, folder]);
    }
    for (target, link) in [("usr/bin", "/bin"), ("usr/lib", "/lib"), ("usr/lib64", "/lib64"), ("usr/sbin", "/sbin")] {
        flags.extend(["--symlink", target, link]);
    }
    flags.extend(["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--tmpfs", "/home"]);
    flags.extend(["--tmpfs", "/dev/shm", "--bind", workspace, workspace, "--remount-ro", "/", "--", "true"]);
    flags
}

fn parse(arguments: &[String]) -> Option<FenceJob> {
    let mut job = job_in(&std::env::current_dir().ok()?);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut path = || arguments.next().map(PathBuf::from);
        match argument.as_str() {
            "--rung" => job.rung = serde_json::from_str(&format!("\"{}\"", path()?.display())).ok()?,
            "--network" => job.network = true,
            "--read-only" => job.view = WorkspaceView::ReadOnly,
            "--aside" => job.view = WorkspaceView::Aside { layer: path()? },
            "--workspace" => job.workspace = path()?,
            "--readable" => job.readable.push(path()?),
            "--writable" => job.writable.push(path()?),
            "--hidden" => job.hidden.push(path()?),
            "--processes" => job.limits.processes = path()?.to_str()?.parse().ok()?,
            "--memory" => job.limits.memory = path()?.to_str()?.parse().ok()?,
            "--" => break,
            _ => return None,
        }
    }
    job.folder = job.workspace.clone();
    job.command = arguments.cloned().collect();
    (!job.command.is_empty()).then_some(job)
}

fn job_in(workspace: &Path) -> FenceJob {
    FenceJob {
        command: vec!["true".to_owned()],
        folder: workspace.to_owned(),
        environment: [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/home/fenced"), ("LANG", "C.UTF-8")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        stdin: Vec::new(),
        workspace: workspace.to_owned(),
        view: WorkspaceView::Direct,
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
