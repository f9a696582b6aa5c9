//! `notify.command`: a program of the user's own that is started when a question opens.

use std::{path::PathBuf, process::Stdio, time::Duration};

use futures_util::future::BoxFuture;
use haft_runtime::{Delivery, Outcome, Question, Scope, WorkspaceId};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio_util::task::TaskTracker;

use crate::{settings::Settings, show::style::WARN};

/// How long the program may take. Whoever asked may have to wait for it, so it is short.
const LIMIT: Duration = Duration::from_secs(5);

/// Starts the user's program and waits for it, beside the call that asks. Its failure is told and fails nothing.
pub(crate) struct Notifier {
    command: Vec<String>,
    /// Where the program starts: not in a workspace, which could lay something in its way.
    folder: PathBuf,
    running: TaskTracker,
}

impl Notifier {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self { command: settings.notify.clone(), folder: settings.data.clone(), running: TaskTracker::new() }
    }

    /// Waits for what was started; each has its limit.
    pub(crate) async fn finish(&self) {
        self.running.close();
        self.running.wait().await;
    }

    fn start(&self, scope: &Scope, question: &Question) {
        let Some((program, arguments)) = self.command.split_first() else { return };
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.folder).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.env("HAFT_CALL", question.call.as_str()).env("HAFT_TOOL", &question.tool);
        command.env("HAFT_TENANT", scope.tenant().as_str());
        command.env("HAFT_WORKSPACE", question.workspace.as_ref().map_or("", WorkspaceId::as_str));
        let program = program.clone();
        self.running.spawn(async move {
            if let Err(why) = run(command).await {
                anstream::eprintln!("{WARN}haft:{WARN:#} notify.command `{program}` {why}");
            }
        });
    }
}

async fn run(mut command: Command) -> Result<(), String> {
    let mut child = command.spawn().map_err(|err| format!("cannot be started: {err}"))?;
    match tokio::time::timeout(LIMIT, child.wait()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("failed: {status}")),
        Ok(Err(err)) => Err(format!("cannot be waited for: {err}")),
        Err(_) => {
            stop(&mut child).await;
            Err(format!("was stopped after {} seconds", LIMIT.as_secs()))
        }
    }
}

/// Stops the program and what it started.
async fn stop(child: &mut Child) {
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait().await;
}

impl Delivery for Notifier {
    fn asked<'a>(&'a self, scope: &'a Scope, question: &'a Question) -> BoxFuture<'a, ()> {
        self.start(scope, question);
        Box::pin(std::future::ready(()))
    }

    fn ended<'a>(&'a self, _scope: &'a Scope, _outcome: &'a Outcome) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}
