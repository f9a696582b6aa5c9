//! Turns seventy paths under a tracer that may end the process after any system call.

use std::error::Error;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

use haft_sandbox::Root;
use haft_sandbox::changes::{ChangeDirection, Changes, Draft, Expected, Folders, PathOrigin, Selection, recover};
use nix::sys::signal::{Signal, raise};
use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};

/// Prepares `what`, stops for the tracer, and does it. `user` is a uid to become first, or `-`.
pub(crate) fn run(what: &str, workspace: &Path, dir: &Path, user: &str) -> Result<(), Box<dyn Error>> {
    if let Ok(user) = user.parse::<u32>() {
        setgroups(&[])?;
        setgid(Gid::from_raw(user))?;
        setuid(Uid::from_raw(user))?;
    }
    match what {
        "commit" => {
            let mut changes = plan(workspace, dir)?;
            stop_for_tracer()?;
            changes.turn(ChangeDirection::Commit, Selection::All)?;
        }
        "undo" => {
            let mut changes = plan(workspace, dir)?;
            changes.turn(ChangeDirection::Commit, Selection::All)?;
            stop_for_tracer()?;
            changes.turn(ChangeDirection::Undo, Selection::All)?;
        }
        "linked-commit" => {
            let mut changes = plan_linked(workspace, dir)?;
            stop_for_tracer()?;
            changes.turn(ChangeDirection::Commit, Selection::All)?;
        }
        "linked-undo" => {
            let mut changes = plan_linked(workspace, dir)?;
            changes.turn(ChangeDirection::Commit, Selection::All)?;
            stop_for_tracer()?;
            changes.turn(ChangeDirection::Undo, Selection::All)?;
        }
        "edit" => {
            fs::write(workspace.join("replaced"), "old\n")?;
            let root = Arc::new(Root::open(workspace, &[])?);
            stop_for_tracer()?;
            let mut draft = Draft::new(&root, dir)?;
            draft.write(&root.place("replaced")?, b"new\n", Expected::Anything)?;
            draft.seal()?.turn(ChangeDirection::Commit, Selection::All)?;
        }
        "recover" => {
            stop_for_tracer()?;
            recover(dir)?;
        }
        other => return Err(format!("nothing is called {other}").into()),
    }
    Ok(())
}

fn stop_for_tracer() -> Result<(), Box<dyn Error>> {
    nix::sys::ptrace::traceme()?;
    raise(Signal::SIGSTOP)?;
    Ok(())
}

fn plan(workspace: &Path, dir: &Path) -> Result<Changes, Box<dyn Error>> {
    make_tree(workspace)?;
    let root = Arc::new(Root::open(workspace, &[])?);
    let mut draft = Draft::new(&root, dir)?;
    plan_layer(&mut draft)?;
    for number in 0..20 {
        let place = root.place(&format!("src/replace{number}"))?;
        draft.write(&place, format!("new {number}\n").as_bytes(), Expected::Anything)?;
    }
    for number in 0..12 {
        let folder = ["src", "new", "new/deeper", "other"][number % 4];
        draft.write(&root.place(&format!("{folder}/create{number}"))?, b"created\n", Expected::Nothing)?;
    }
    for number in 0..9 {
        draft.delete(&root.place(&format!("src/delete{number}"))?, false)?;
    }
    draft.delete(&root.place("gone")?, true)?;
    draft.set_mode(&root.place("src/mode0")?, 0o755)?;
    draft.set_mode(&root.place("src/mode1")?, 0o600)?;
    draft.set_mode(&root.place("folder")?, 0o700)?;
    draft.link(&root.place("src/link")?, Path::new("replace1"))?;
    draft.link(&root.place("new/link")?, Path::new("../src/replace2"))?;
    plan_moves(&root, &mut draft)?;
    plan_copies(&root, &mut draft)?;
    Ok(draft.seal()?)
}

/// What a commit in a linked worktree could have left: in the worktree, and in a git folder that lies beside it.
fn plan_linked(folder: &Path, dir: &Path) -> Result<Changes, Box<dyn Error>> {
    let (files, git) = (folder.join("tree"), folder.join("git"));
    let own = git.join("worktrees/tree");
    for made in [&files, &git.join("objects"), &git.join("refs/heads"), &own] {
        fs::create_dir_all(made)?;
    }
    for (path, text) in
        [(files.join("a"), "old\n"), (git.join("refs/heads/side"), "old\n"), (own.join("index"), "old\n")]
    {
        fs::write(path, text)?;
    }
    fs::write(own.join("MERGE_HEAD"), "merged\n")?;
    fs::write(files.join(".git"), "gitdir: ../git/worktrees/tree\n")?;
    let root = Arc::new(Root::open(&files, &[])?.with_git_folder(&git.canonicalize()?, &own.canonicalize()?)?);
    let mut draft = Draft::new(&root, dir)?;
    let upper = draft.layer()?.join("upper");
    let git_upper = draft.git_layer()?.ok_or("there is no layer over the git folder")?.layer.join("upper");
    let own_upper = git_upper.join("worktrees/tree");
    for made in [&git_upper.join("objects/12"), &git_upper.join("refs/heads"), &own_upper.join("logs")] {
        fs::create_dir_all(made)?;
    }
    for path in [
        upper.join("a"),
        upper.join("b"),
        git_upper.join("objects/12/345"),
        git_upper.join("refs/heads/side"),
        own_upper.join("index"),
        own_upper.join("logs/HEAD"),
        own_upper.join("COMMIT_EDITMSG"),
    ] {
        fs::write(path, "new\n")?;
    }
    let gone = own_upper.join("MERGE_HEAD");
    fs::write(&gone, "")?;
    rustix::fs::setxattr(&gone, "user.overlay.whiteout", b"y", rustix::fs::XattrFlags::empty())?;
    draft.take_layer((i64::MAX, 0), &|_, _| PathOrigin::Source)?;
    Ok(draft.seal()?)
}

/// What a command could have left: folders that take the place of folders and files, read-only ones, a file with two
/// names of which one lies in a new folder.
fn plan_layer(draft: &mut Draft) -> Result<(), Box<dyn Error>> {
    let upper = draft.layer()?.join("upper");
    for folder in ["anew", "opened", "whole/beneath", "fixed"] {
        fs::create_dir_all(upper.join(folder))?;
    }
    for folder in ["anew", "fixed"] {
        rustix::fs::setxattr(upper.join(folder), "user.overlay.opaque", b"y", rustix::fs::XattrFlags::empty())?;
    }
    for name in ["anew/both", "anew/new", "opened/in", "shut", "again"] {
        fs::write(upper.join(name), "from a command\n")?;
    }
    fs::hard_link(upper.join("again"), upper.join("whole/beneath/again"))?;
    fs::set_permissions(upper.join("fixed"), fs::Permissions::from_mode(0o555))?;
    fs::set_permissions(upper.join("whole"), fs::Permissions::from_mode(0o555))?;
    draft.take_layer((i64::MAX, 0), &|_, _| PathOrigin::Source)?;
    Ok(())
}

/// Files and folders, to where nothing is, into a new folder, and onto a file, a link and an empty folder.
fn plan_moves(root: &Root, draft: &mut Draft) -> Result<(), Box<dyn Error>> {
    for (from, to) in [("move0", "moved0"), ("move1", "new/moved1"), ("away", "src/away"), ("tip", "other/tip")] {
        draft.rename(&root.place(from)?, &root.place(to)?, Expected::Nothing)?;
    }
    for (from, to) in [("over0", "under0"), ("over1", "under1"), ("filled", "hollow")] {
        draft.rename(&root.place(from)?, &root.place(to)?, Expected::Anything)?;
    }
    Ok(())
}

fn plan_copies(root: &Root, draft: &mut Draft) -> Result<(), Box<dyn Error>> {
    for (from, to) in [("tree", "twin"), ("tree/a", "new/twin"), ("tree/deep", "new/deeper/tree")] {
        draft.copy(&root.place(from)?, &root.place(to)?, Folders::Whole, Expected::Nothing)?;
    }
    draft.copy(&root.place("tree/a")?, &root.place("replaced")?, Folders::Whole, Expected::Anything)?;
    Ok(())
}

fn make_tree(workspace: &Path) -> Result<(), Box<dyn Error>> {
    for folder in ["src", "folder", "gone/deep", "away/deep", "filled", "hollow", "tree/deep/empty"] {
        fs::create_dir_all(workspace.join(folder))?;
    }
    for folder in ["anew", "shut/deep", "fixed"] {
        fs::create_dir_all(workspace.join(folder))?;
    }
    for name in ["anew/both", "anew/old", "shut/deep/a", "fixed/a", "opened"] {
        fs::write(workspace.join(name), "before the command\n")?;
    }
    fs::set_permissions(workspace.join("fixed"), fs::Permissions::from_mode(0o555))?;
    for number in 0..20 {
        fs::write(workspace.join(format!("src/replace{number}")), format!("old {number}\n"))?;
    }
    for number in 0..9 {
        fs::write(workspace.join(format!("src/delete{number}")), "to be deleted\n")?;
    }
    for name in ["gone/a", "gone/b", "gone/deep/c", "src/mode0", "src/mode1", "folder/kept"] {
        fs::write(workspace.join(name), "as it is\n")?;
        fs::set_permissions(workspace.join(name), fs::Permissions::from_mode(0o644))?;
    }
    for name in
        ["move0", "move1", "away/x", "away/deep/y", "over0", "over1", "under0", "filled/z", "tree/a", "tree/deep/b"]
    {
        fs::write(workspace.join(name), format!("{name}\n"))?;
    }
    fs::write(workspace.join("replaced"), "replaced\n")?;
    for (target, link) in [("nowhere", "under1"), ("away", "tip"), ("a", "tree/link")] {
        symlink(target, workspace.join(link))?;
    }
    symlink("replace0", workspace.join("src/link"))?;
    symlink("a", workspace.join("gone/link"))?;
    Ok(())
}
