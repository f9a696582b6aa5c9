//! What in a change deserves a second look, told from the path, the kind, the mode and the content.

use std::borrow::Cow;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::git_config;
use crate::sensitive::{fold, is_sensitive_path};
use crate::stamp::EntryKind;

/// The longest path that the kernel takes.
const LONGEST_PATH: usize = 4096;

/// Something about a change that people should see first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeFlag {
    /// It changes what haft itself obeys.
    HaftFiles,
    /// It makes a git hook that runs by itself.
    GitHook,
    /// It adds a git setting that names a command or sends git elsewhere.
    GitConfigCommand,
    /// It is a link that leads out of the workspace.
    LinkOutside,
    /// It is a set-uid or set-gid file.
    SetUid,
    /// Its name is one that holds secrets.
    SensitiveName,
    /// Editors, shells, CI or interpreters run it without being asked.
    RunsByItself,
    /// It changes what tools and searches leave out.
    IgnoreRules,
    /// It lies in a git folder.
    InsideGit,
}

impl ChangeFlag {
    /// Whether the change must be asked in every mode.
    pub fn forces_a_question(&self) -> bool {
        match self {
            ChangeFlag::HaftFiles
            | ChangeFlag::GitHook
            | ChangeFlag::GitConfigCommand
            | ChangeFlag::LinkOutside
            | ChangeFlag::SetUid => true,
            ChangeFlag::SensitiveName | ChangeFlag::RunsByItself | ChangeFlag::IgnoreRules | ChangeFlag::InsideGit => {
                false
            }
        }
    }
}

/// What the flags of a change are told from.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The path in the workspace.
    pub path: &'a Path,
    /// What it is afterwards; `None` when it goes.
    pub kind: Option<EntryKind>,
    /// The permission bits afterwards.
    pub mode: u32,
    /// The content before; `None` when there was none or it is not known.
    pub before: Option<&'a [u8]>,
    /// The content afterwards; `None` when there is none or it is not known.
    pub after: Option<&'a [u8]>,
    /// Whether it is a link that leads out of the workspace.
    pub leads_outside: bool,
}

/// Everything that should be seen first about a change, worst first.
pub fn flags(subject: &Subject<'_>) -> Vec<ChangeFlag> {
    let mut found = Vec::new();
    if subject.leads_outside {
        found.push(ChangeFlag::LinkOutside);
    }
    if subject.kind == Some(EntryKind::File) && subject.mode & 0o6000 != 0 {
        found.push(ChangeFlag::SetUid);
    }
    // What no program can name by its path, none obeys for its name.
    if subject.path.as_os_str().len() > LONGEST_PATH {
        return found;
    }
    let folded: Vec<Cow<'_, str>>;
    let parts: Vec<&str> = match subject.path.to_str().filter(|path| is_folded(path)) {
        Some(path) => path.split('/').collect(),
        None => {
            folded = subject.path.iter().map(fold).collect();
            folded.iter().map(AsRef::as_ref).collect()
        }
    };
    let Some((name, folders)) = parts.split_last() else { return found };
    let is_the_user_s = folders.windows(2).any(|pair| pair == [".config", "haft"]);
    if is_the_user_s || parts.contains(&".haft") || matches!(*name, "haft.toml" | ".mcp.json") {
        found.push(ChangeFlag::HaftFiles);
    }
    found.extend(git_flag(subject, &parts));
    if is_sensitive_path(&parts) {
        found.push(ChangeFlag::SensitiveName);
    }
    if runs_by_itself(name, folders) {
        found.push(ChangeFlag::RunsByItself);
    }
    if matches!(*name, ".gitignore" | ".ignore" | ".rgignore" | ".gitattributes" | ".fdignore")
        || parts.ends_with(&[".git", "info", "exclude"])
        || parts.ends_with(&[".git", "info", "attributes"])
    {
        found.push(ChangeFlag::IgnoreRules);
    }
    found.sort_unstable();
    found
}

/// Whether folding would change nothing: most paths are plain, and there may be ten thousand of them.
fn is_folded(path: &str) -> bool {
    path.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase())
}

/// Whether the flags of a path depend on its content.
pub(super) fn needs_content(path: &Path) -> bool {
    let name = path.file_name().map(fold);
    matches!(name.as_deref(), Some("config" | "config.worktree" | ".gitmodules" | ".gitconfig" | ".git" | "commondir"))
}

fn git_flag(subject: &Subject<'_>, parts: &[&str]) -> Option<ChangeFlag> {
    let goes = subject.kind.is_none();
    let Some(git) = parts.iter().rposition(|part| *part == ".git") else { return settings_flag(subject, parts) };
    let inside = &parts[git + 1..];
    let Some(name) = inside.last() else { return sends_git_elsewhere(subject).then_some(ChangeFlag::GitConfigCommand) };
    // A removed hook or setting runs nothing any more.
    if goes {
        return Some(ChangeFlag::InsideGit);
    }
    let hooks = inside[..inside.len() - 1].contains(&"hooks") || inside == ["hooks"];
    if hooks && subject.kind != Some(EntryKind::Directory) && !name.ends_with(".sample") {
        return Some(ChangeFlag::GitHook);
    }
    let config = matches!(*name, "config" | "config.worktree") && subject.kind != Some(EntryKind::Directory);
    if config && (inside.len() == 1 || matches!(inside[0], "modules" | "worktrees")) {
        // A link may show any settings later.
        let unseen = subject.kind != Some(EntryKind::File) || subject.after.is_none();
        if unseen || git_config::adds_a_command(subject.before, subject.after) {
            return Some(ChangeFlag::GitConfigCommand);
        }
    }
    // Git makes none; one that leads to another folder brings the hooks and settings there along.
    if subject.kind == Some(EntryKind::Link) {
        return Some(ChangeFlag::GitConfigCommand);
    }
    // Settings are read where it says; a worktree's says so of the repository that it belongs to.
    if *name == "commondir" && (inside.len() == 1 || subject.after.map(<[u8]>::trim_ascii) != Some(b"../..")) {
        return Some(ChangeFlag::GitConfigCommand);
    }
    Some(ChangeFlag::InsideGit)
}

/// Settings outside of any `.git`: of the user, of submodules, and of a folder that is a repository without that name.
fn settings_flag(subject: &Subject<'_>, parts: &[&str]) -> Option<ChangeFlag> {
    let adds = match *parts.last()? {
        ".gitmodules" => git_config::adds_a_command(subject.before, subject.after),
        "config" | "config.worktree" | ".gitconfig" => {
            git_config::is_read_and_adds_a_command(subject.before, subject.after)
        }
        _ => false,
    };
    (adds && subject.kind == Some(EntryKind::File)).then_some(ChangeFlag::GitConfigCommand)
}

/// Whether a `.git` that is no folder leads to what is no part of a repository: its settings and hooks count.
fn sends_git_elsewhere(subject: &Subject<'_>) -> bool {
    match subject.kind {
        None | Some(EntryKind::Directory) => false,
        Some(EntryKind::File) => {
            let text = String::from_utf8_lossy(subject.after.unwrap_or_default());
            let to = text.strip_prefix("gitdir:").unwrap_or_default().trim();
            let parts: Vec<String> = Path::new(to).iter().map(|part| fold(part).into_owned()).collect();
            let is_part = |pair: &[String]| pair[0] == ".git" && matches!(pair[1].as_str(), "modules" | "worktrees");
            let part = parts.windows(2).position(is_part);
            // What goes up again from there is no part any more.
            part.is_none_or(|part| parts[part + 2..].iter().any(|step| step == ".."))
        }
        Some(EntryKind::Link | EntryKind::Fifo | EntryKind::Socket | EntryKind::Device) => true,
    }
}

/// Folders of editors, of agents and of CI: whatever lies in them is obeyed.
const OBEYED: &[&str] = &[
    ".buildkite",
    ".circleci",
    ".claude",
    ".codex",
    ".cursor",
    ".devcontainer",
    ".fleet",
    ".gemini",
    ".husky",
    ".idea",
    ".opencode",
    ".vscode",
    ".zed",
];

/// Files that are obeyed wherever they lie.
const OBEYED_FILES: &[&str] = &[
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".devcontainer.json",
    ".dir-locals.el",
    ".drone.yml",
    ".emacs",
    ".envrc",
    ".exrc",
    ".gdbinit",
    ".gitlab-ci.yml",
    ".inputrc",
    ".lldbinit",
    ".mise.toml",
    ".npmrc",
    ".nvim.lua",
    ".nvimrc",
    ".pre-commit-config.yaml",
    ".profile",
    ".tmux.conf",
    ".travis.yml",
    ".vimrc",
    ".woodpecker.yml",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".yarnrc",
    ".yarnrc.yml",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "appveyor.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "config.fish",
    "jenkinsfile",
    "lefthook.yml",
    "mise.toml",
    "sitecustomize.py",
    "usercustomize.py",
];

fn runs_by_itself(name: &str, folders: &[&str]) -> bool {
    let within = |folder: &str| folders.contains(&folder);
    let within_two =
        |outer: &str, inner: &[&str]| folders.windows(2).any(|pair| pair[0] == outer && inner.contains(&pair[1]));
    if OBEYED.iter().any(|folder| within(folder)) || OBEYED_FILES.contains(&name) {
        return true;
    }
    if [".github", ".gitea", ".forgejo"].iter().any(|forge| within_two(forge, &["workflows", "actions"]))
        || within_two(".config", &["autostart", "systemd", "fish", "nvim", "environment.d"])
    {
        return true;
    }
    if name.ends_with(".pth") || name.ends_with(".code-workspace") {
        return true;
    }
    if name.starts_with("activate") && (within("bin") || within("scripts")) {
        return true;
    }
    folders.last() == Some(&".cargo") && matches!(name, "config.toml" | "config")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Vec<ChangeFlag> {
        flags(&Subject {
            path: Path::new(path),
            kind: Some(EntryKind::File),
            mode: 0o644,
            before: None,
            after: Some(b"[core]\n\tbare = false\n"),
            leads_outside: false,
        })
    }

    #[test]
    fn paths_get_their_flags() {
        let cases: &[(&str, &[ChangeFlag])] = &[
            ("src/main.rs", &[]),
            ("haft.toml", &[ChangeFlag::HaftFiles]),
            ("sub/.mcp.json", &[ChangeFlag::HaftFiles]),
            (".HAFT/tools/x.toml", &[ChangeFlag::HaftFiles]),
            (".config/haft/mcp.json", &[ChangeFlag::HaftFiles]),
            (".git/hooks/pre-commit", &[ChangeFlag::GitHook]),
            ("sub/.git/modules/x/hooks/post-checkout", &[ChangeFlag::GitHook]),
            (".git/hooks/pre-commit.sample", &[ChangeFlag::InsideGit]),
            (".git/config", &[ChangeFlag::InsideGit]),
            (".git/objects/ab/cdef", &[ChangeFlag::InsideGit]),
            (".git/refs/heads/config", &[ChangeFlag::InsideGit]),
            (".git/info/exclude", &[ChangeFlag::IgnoreRules, ChangeFlag::InsideGit]),
            (".gitignore", &[ChangeFlag::IgnoreRules]),
            (".gitmodules", &[]),
            (".env", &[ChangeFlag::SensitiveName]),
            (".github/workflows/ci.yml", &[ChangeFlag::RunsByItself]),
            (".github/CODEOWNERS", &[]),
            ("Jenkinsfile", &[ChangeFlag::RunsByItself]),
            (".vscode/tasks.json", &[ChangeFlag::RunsByItself]),
            ("venv/bin/activate.fish", &[ChangeFlag::RunsByItself]),
            ("src/activate.rs", &[]),
            ("lib/site-packages/a.pth", &[ChangeFlag::RunsByItself]),
            (".cargo/config.toml", &[ChangeFlag::RunsByItself]),
            ("tests/conftest.py", &[]),
            (".claude/settings.json", &[ChangeFlag::RunsByItself]),
            (".forgejo/workflows/ci.yml", &[ChangeFlag::RunsByItself]),
            (".config/autostart/x.desktop", &[ChangeFlag::RunsByItself]),
            ("x.code-workspace", &[ChangeFlag::RunsByItself]),
            (".git/commondir", &[ChangeFlag::GitConfigCommand]),
            (".git/worktrees/x/commondir", &[ChangeFlag::GitConfigCommand]),
            ("sub/.git", &[ChangeFlag::GitConfigCommand]),
            (".config/app/config", &[]),
        ];
        for (path, expected) in cases {
            assert_eq!(of(path), *expected, "{path}");
        }
    }

    #[test]
    fn git_is_sent_nowhere_else_unseen() {
        let of = |path: &str, after: &str| {
            let (path, after) = (Path::new(path), Some(after.as_bytes()));
            flags(&Subject {
                path,
                kind: Some(EntryKind::File),
                mode: 0o644,
                before: None,
                after,
                leads_outside: false,
            })
        };
        assert_eq!(of("sub/.git", "gitdir: ../evil\n"), [ChangeFlag::GitConfigCommand]);
        assert_eq!(of("sub/.git", "gitdir: ../.git/modules/sub\n"), []);
        assert_eq!(of("sub/.git", "gitdir: ../.git/modules/../../e\n"), [ChangeFlag::GitConfigCommand]);
        assert_eq!(of("tree/.git", "gitdir: /repo/.git/worktrees/tree\n"), []);
        assert_eq!(of(".git/worktrees/tree/commondir", "../..\n"), [ChangeFlag::InsideGit]);
        // A folder with the right names in it is a repository, whatever it is called.
        let settings = "[core]\n\tbare = true\n\tfsmonitor = ./run\n";
        assert_eq!(of("bare/config", settings), [ChangeFlag::GitConfigCommand]);
        assert_eq!(of(".gitconfig", settings), [ChangeFlag::GitConfigCommand]);
        assert_eq!(of("app/config", "Host *\n  ProxyCommand run\n"), []);
    }

    #[test]
    fn modes_links_and_removals_count() {
        let plain = Subject {
            path: Path::new("tool"),
            kind: Some(EntryKind::File),
            mode: 0o4755,
            before: None,
            after: None,
            leads_outside: false,
        };
        assert_eq!(flags(&plain), [ChangeFlag::SetUid]);
        let link = Subject { kind: Some(EntryKind::Link), mode: 0o777, leads_outside: true, ..plain };
        assert_eq!(flags(&link), [ChangeFlag::LinkOutside]);
        let hook_goes = Subject { path: Path::new(".git/hooks/pre-push"), kind: None, mode: 0, ..plain };
        assert_eq!(flags(&hook_goes), [ChangeFlag::InsideGit]);
        let hooks_link = Subject { path: Path::new(".git/hooks"), kind: Some(EntryKind::Link), ..plain };
        assert_eq!(flags(&hooks_link), [ChangeFlag::GitHook]);
        let config_link = Subject { path: Path::new(".git/config"), kind: Some(EntryKind::Link), ..plain };
        assert_eq!(flags(&config_link), [ChangeFlag::GitConfigCommand]);
        let module_link = Subject { path: Path::new(".git/modules/s"), kind: Some(EntryKind::Link), ..plain };
        assert_eq!(flags(&module_link), [ChangeFlag::GitConfigCommand]);
        let deep = "d/".repeat(2100) + "tool";
        assert_eq!(flags(&Subject { path: Path::new(&deep), ..plain }), [ChangeFlag::SetUid]);
        assert_eq!(flags(&Subject { path: Path::new(&deep), ..link }), [ChangeFlag::LinkOutside]);
        let git_link = Subject { path: Path::new("sub/.git"), kind: Some(EntryKind::Link), ..plain };
        assert_eq!(flags(&git_link), [ChangeFlag::GitConfigCommand]);
        assert!(ChangeFlag::SetUid.forces_a_question() && !ChangeFlag::InsideGit.forces_a_question());
    }
}
