//! One push: what it would send and where to, and then sending it.

use std::{ffi::OsString, fs};

use haft_runtime::{ErrorCode, ToolCtx, ToolError};
use haft_sandbox::RepositoryKind;
use haft_sandbox::changes;

use super::{
    git_push::{Force, Input},
    names,
    program::{Arguments, Git},
    refused::told,
    remote::{RemoteProtocol, Setting, refuse_steering, remotes, users, without_secrets},
    run::{LimitedOutput, run},
};
use crate::workspace::Workspace;

/// The most commits that are listed.
const MOST: usize = 1000;
/// How many of them the card shows.
const SHOWN: usize = 30;
/// The file in the folder of a call's changes that holds what its card showed.
const REMEMBERED: &str = "push";

/// What runs on the other side when that is a repository on this machine: it brings hooks and settings of its own.
const RECEIVES: &str = "git -c core.hooksPath=/dev/null -c core.alternateRefsCommand=: -c core.fsmonitor=false \
                        -c receive.denyCurrentBranch=refuse -c receive.autogc=false -c gc.auto=0 receive-pack";
/// Never ask: there is nobody at a terminal.
const SSH: &str = "core.sshCommand=ssh -oBatchMode=yes -oConnectTimeout=20";

/// What a push would send, and where to.
#[derive(Debug)]
pub(super) struct PushPlan {
    pub(super) branch: String,
    /// What would be sent.
    pub(super) commit: String,
    /// What was last seen of the remote branch.
    seen: Option<String>,
    /// The commits that the remote does not have, as far as is known here: hash and subject.
    pub(super) commits: Vec<String>,
    addresses: Vec<RemoteProtocol>,
    /// The addresses as they may be shown.
    pub(super) shown: Vec<String>,
    has_own_ssh: bool,
}

/// How a push ended.
pub(super) struct PushResult {
    /// What the remote branch was before.
    pub(super) old: Option<String>,
}

impl PushPlan {
    /// Looks at the repository; nothing leaves this machine.
    pub(super) async fn make(here: &Workspace, git: &Git, ctx: &ToolCtx, input: &Input) -> Result<PushPlan, ToolError> {
        names::remote(&input.remote)?;
        let branch = input.branch.clone().or_else(|| git.repository.branch());
        let branch = branch.ok_or_else(|| refused("no branch is checked out; name the `branch` to push"))?;
        names::branch("branch", &branch)?;
        let settings = Arguments::of(&["config", "--list", "--show-scope", "-z"]);
        let settings = Setting::read_all(&git.read(ctx, settings).await?.bytes);
        refuse_steering(&settings)?;
        let known = remotes(&settings);
        if !known.contains(&input.remote.as_str()) {
            let known =
                if known.is_empty() { "it knows none".to_owned() } else { format!("it knows {}", known.join(", ")) };
            return Err(refused(&format!("the repository has no remote `{}`; {known}", input.remote)));
        }
        let urls = Arguments::of(&["remote", "get-url", "--push", "--all", "--"]).with(&input.remote);
        let urls = String::from_utf8_lossy(&git.read(ctx, urls).await?.bytes).into_owned();
        let writable = &here.commands.fenced()?.config().writable;
        let judged = urls.lines().map(|url| RemoteProtocol::of(url, &git.root, &git.repository.folder, writable));
        let addresses = judged.collect::<Result<Vec<_>, _>>()?;
        let shown = urls.lines().map(without_secrets).collect();
        let (commit, seen) = tips(git, ctx, (&input.remote, &branch)).await?;
        if input.force == Force::WithLease && seen.is_none() {
            return Err(refused(
                "`with_lease` needs to know what the remote branch was, and nothing is known here of it",
            ));
        }
        let commits = unsent(git, ctx, (&commit, seen.as_deref(), &input.remote)).await?;
        let has_own_ssh = users(&settings, "core.sshCommand").is_some();
        Ok(PushPlan { branch, commit, seen, commits, addresses, shown, has_own_ssh })
    }

    /// What a person is asked about.
    pub(super) fn preview(&self, input: &Input) -> String {
        let (branch, remote) = (&self.branch, &input.remote);
        let mut lines =
            vec![format!("pushes {branch} at {} to {remote}: {}", short(&self.commit), self.shown.join(", "))];
        match (&self.seen, input.force) {
            (Some(seen), Force::WithLease) => {
                lines.push(format!(
                    "overwrites {remote}/{branch} if that is still {}: commits on it are lost",
                    short(seen)
                ));
            }
            (Some(seen), Force::None) => {
                lines.push(format!("{remote}/{branch} was {} when it was last seen", short(seen)))
            }
            (None, _) => lines.push(format!("nothing is known here of {remote}/{branch}; it may be new")),
        }
        let many = if self.commits.len() >= MOST { "at least " } else { "" };
        lines.push(format!(
            "{many}{} commits that the remote does not have, as far as is known here:",
            self.commits.len()
        ));
        lines.extend(self.commits.iter().take(SHOWN).map(|commit| format!("  {commit}")));
        if self.commits.len() > SHOWN {
            lines.push(format!("  … and {} more", self.commits.len() - SHOWN));
        }
        lines.push(format!("then remembers {remote}/{branch} in the git folder; hooks do not run"));
        if input.set_upstream {
            lines.push(format!("then makes {remote}/{branch} the upstream of {branch}"));
        }
        lines.join("\n")
    }

    /// What was shown, in one line.
    fn fingerprint(&self) -> String {
        let seen = self.seen.as_deref().unwrap_or("-");
        format!("{} {} {seen} {}\n", self.branch, self.commit, self.shown.join(" "))
    }

    /// Keeps what is shown, so that nothing else is sent after the yes, whoever carries it out.
    pub(super) fn remember(&self, here: &Workspace, ctx: &ToolCtx) -> Result<(), ToolError> {
        let dir = here.command_context(&ctx.call_id)?.dir;
        let kept = fs::create_dir_all(&dir).and_then(|()| fs::write(dir.join(REMEMBERED), self.fingerprint()));
        kept.map_err(|err| {
            ToolError::new(ErrorCode::StoreUnavailable, format!("cannot keep what is to be pushed: {err}"))
        })
    }

    /// Refuses to send anything but what was shown.
    pub(super) fn compare(&self, here: &Workspace, ctx: &ToolCtx) -> Result<(), ToolError> {
        let dir = here.command_context(&ctx.call_id)?.dir;
        let kept = fs::read_to_string(dir.join(REMEMBERED)).unwrap_or_default();
        let _swept_later = changes::remove(&dir);
        if kept == self.fingerprint() {
            return Ok(());
        }
        let message = "the branch or the remote is not what was shown any more; nothing was pushed, look again and repeat \
                       the call";
        Err(ToolError::new(ErrorCode::Conflict, message))
    }

    /// Sends it.
    pub(super) async fn push(
        &self,
        here: &Workspace,
        git: &Git,
        ctx: &ToolCtx,
        input: &Input,
    ) -> Result<PushResult, ToolError> {
        let mut order = git.order();
        order.environment = self.environment(here, git)?;
        order.arguments = self.arguments(input).0;
        let ended = run(ctx, order, LimitedOutput::default()).await?;
        let said = String::from_utf8_lossy(&ended.heard.bytes).into_owned();
        let line = said.lines().find(|line| line.contains(&format!(":refs/heads/{}\t", self.branch)));
        match (ended.code, line) {
            (0, Some(line)) if !line.starts_with('!') => Ok(PushResult { old: self.old(line) }),
            (_, Some(line)) if line.starts_with('!') => Err(rejected(line, input)),
            (_, _) => Err(failed(&without_passwords(&ended.complaints), git)),
        }
    }

    fn arguments(&self, input: &Input) -> Arguments {
        let mut first: Vec<&str> = vec!["-c", "core.abbrev=no", "-c", "gc.auto=0", "-c", "push.pushOption="];
        if !self.has_own_ssh {
            first.extend(["-c", SSH]);
        }
        first.extend([
            "push",
            "--porcelain",
            "--no-verify",
            "--no-signed",
            "--no-follow-tags",
            "--recurse-submodules=no",
        ]);
        let mut arguments = Arguments::of(&first);
        if self.addresses.contains(&RemoteProtocol::File) {
            arguments = arguments.with(format!("--receive-pack={RECEIVES}"));
        }
        if input.set_upstream {
            arguments = arguments.with("--set-upstream");
        }
        let branch = &self.branch;
        if let (Force::WithLease, Some(seen)) = (input.force, &self.seen) {
            arguments = arguments.with(format!("--force-with-lease=refs/heads/{branch}:{seen}"));
        }
        arguments.with("--").with(&input.remote).with(format!("refs/heads/{branch}:refs/heads/{branch}"))
    }

    /// The user's own session, by which credentials are found, without anything that it says to git.
    fn environment(&self, here: &Workspace, git: &Git) -> Result<Vec<(String, OsString)>, ToolError> {
        let variables = &here.commands.fenced()?.config().variables;
        let own = variables.iter().filter(|(name, _)| !name.starts_with("GIT_") && !name.starts_with("SSH_ASKPASS"));
        let mut all: Vec<(String, OsString)> = own.map(|(name, value)| (name.clone(), value.into())).collect();
        let held = git.environment().into_iter();
        all.extend(held.filter(|(name, _)| name.starts_with("GIT_") && name != "GIT_CONFIG_COUNT"));
        let mut protocols: Vec<&str> = self.addresses.iter().map(RemoteProtocol::protocol).collect();
        protocols.dedup();
        let fixed = [
            ("LC_ALL", "C.UTF-8"),
            ("GIT_ALLOW_PROTOCOL", &protocols.join(":")),
            ("SSH_ASKPASS_REQUIRE", "never"),
            ("GCM_INTERACTIVE", "never"),
        ];
        all.extend(fixed.map(|(name, value)| (name.to_owned(), value.into())));
        if git.repository.kind == RepositoryKind::Bare {
            all.retain(|(name, _)| name != "GIT_WORK_TREE");
        }
        Ok(all)
    }

    /// What the remote branch was: `<flag>\t<from>:<to>\t<old>..<new>`, or a word in brackets.
    fn old(&self, line: &str) -> Option<String> {
        let summary = line.split('\t').nth(2)?;
        if line.starts_with('=') {
            return Some(self.commit.clone());
        }
        summary.split_once("..").map(|(old, _)| old.to_owned())
    }
}

/// The commit of the branch, and what was last seen of it on the remote.
async fn tips(git: &Git, ctx: &ToolCtx, (remote, branch): (&str, &str)) -> Result<(String, Option<String>), ToolError> {
    let (own, theirs) = (format!("refs/heads/{branch}"), format!("refs/remotes/{remote}/{branch}"));
    let list = Arguments::of(&["for-each-ref", "--format=%(refname)%00%(objectname)"]).with(&own).with(&theirs);
    let said = String::from_utf8_lossy(&git.read(ctx, list).await?.bytes).into_owned();
    let of = |name: &str| said.lines().find_map(|line| line.split_once('\0').filter(|(at, _)| *at == name));
    let own = of(&own).ok_or_else(|| {
        refused(&format!("there is no branch `{branch}` with a commit; `git_branch` lists the branches"))
    })?;
    Ok((own.1.to_owned(), of(&theirs).map(|(_, hash)| hash.to_owned())))
}

/// The commits that the remote does not have, as far as is known here.
async fn unsent(
    git: &Git,
    ctx: &ToolCtx,
    (commit, seen, remote): (&str, Option<&str>, &str),
) -> Result<Vec<String>, ToolError> {
    let list = Arguments::of(&["log", "--format=%h %s", "--no-color", "--no-show-signature", "--encoding=UTF-8"]);
    let list = list.with(format!("--max-count={MOST}")).with(commit);
    let list = match seen {
        Some(seen) => list.with(format!("^{seen}")),
        None => list.with("--not").with(format!("--remotes={remote}")),
    };
    let said = git.read(ctx, list.with("--")).await?;
    Ok(String::from_utf8_lossy(&said.bytes).lines().map(str::to_owned).collect())
}

fn rejected(line: &str, input: &Input) -> ToolError {
    let why = line.split('\t').nth(2).unwrap_or(line);
    let newer = ["non-fast-forward", "fetch first", "stale info", "needs force"].iter().any(|word| why.contains(word));
    let message = match newer {
        true => format!(
            "the remote refused the push: {why}. It has commits that are not here; nothing was pushed. Fetch them with \
             `shell_exec`, `git fetch {}` and `network: true`, merge or rebase, then push again",
            input.remote
        ),
        false => format!("the remote refused the push: {why}; nothing was pushed"),
    };
    ToolError::new(if newer { ErrorCode::Conflict } else { ErrorCode::PermissionDenied }, message)
}

/// Why nothing was pushed, when git says no more than that.
fn failed(complaints: &str, git: &Git) -> ToolError {
    let why = told(complaints, &git.root);
    let (code, message) = match cause(complaints) {
        PushFailure::Denied => {
            let message =
                format!("the remote did not let haft in: {why}. Give git your credentials in a terminal first");
            (ErrorCode::PermissionDenied, message)
        }
        PushFailure::Unreached => (ErrorCode::NetworkError, format!("the remote cannot be reached: {why}")),
        PushFailure::Lost => {
            let message =
                format!("the remote was lost: {why}. The push may have arrived: compare with `git ls-remote`");
            (ErrorCode::OutcomeUnknown, message)
        }
        PushFailure::Other => (ErrorCode::ExecutionError, format!("git refused: {why}")),
    };
    ToolError::new(code, message)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PushFailure {
    Denied,
    Unreached,
    /// It may have arrived.
    Lost,
    Other,
}

/// What a complaint of git's means. Addresses stand in it too, so that no bare number tells anything.
fn cause(complaints: &str) -> PushFailure {
    let says = |words: &[&str]| words.iter().any(|word| complaints.contains(word));
    let denied = ["Authentication failed", "Permission denied", "could not read Username", "could not read Password"];
    if says(&denied) || says(&["Host key verification failed", "returned error: 403", "terminal prompts disabled"]) {
        return PushFailure::Denied;
    }
    let unreached = ["Could not resolve host", "Failed to connect", "Connection refused", "Network is unreachable"];
    if says(&unreached) || says(&["No route to host", "Connection timed out", "Could not resolve hostname"]) {
        return PushFailure::Unreached;
    }
    let lost = ["unable to access", "Could not read from remote repository", "hung up", "early EOF", "RPC failed"];
    if says(&lost) { PushFailure::Lost } else { PushFailure::Other }
}

/// What git says of addresses, without the passwords in them.
fn without_passwords(text: &str) -> String {
    let words = text.split_inclusive([' ', '\n', '\'']);
    words.map(|word| if word.contains("://") { without_secrets(word) } else { word.to_owned() }).collect()
}

fn short(hash: &str) -> &str {
    hash.get(..7).unwrap_or(hash)
}

fn refused(why: &str) -> ToolError {
    ToolError::new(ErrorCode::InvalidArgs, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_is_told_by_its_words_and_not_by_numbers_in_an_address() {
        for (complaint, meant) in [
            (
                "unable to access 'https://127.0.0.1:44035/x/': Failed to connect to 127.0.0.1 port 44035",
                PushFailure::Unreached,
            ),
            ("unable to access 'https://h/x/': The requested URL returned error: 403", PushFailure::Denied),
            (
                "ssh: connect to host h port 22: Connection refused\nCould not read from remote repository.",
                PushFailure::Unreached,
            ),
            ("git@h: Permission denied (publickey).\nCould not read from remote repository.", PushFailure::Denied),
            ("error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502", PushFailure::Lost),
            ("fatal: the remote end hung up unexpectedly", PushFailure::Lost),
            ("fatal: bad object 403403", PushFailure::Other),
        ] {
            assert_eq!(cause(complaint), meant, "{complaint}");
        }
    }
}
