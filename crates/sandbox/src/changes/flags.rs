//! What in a change deserves a second look, told from the path, the kind, the mode and the content.

use std::borrow::Cow;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::git_config;
use crate::sensitive::{fold, is_sensitive_folded};
use crate::stamp::EntryKind;

/// The longest path that the kernel takes.
const LONGEST_PATH: usize = 4096;

/// Something about a change that people should see first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flag {
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

impl Flag {
    /// Whether the change must be asked in every mode.
    pub fn forces_a_question(&self) -> bool {
        match self {
            Flag::HaftFiles | Flag::GitHook | Flag::GitConfigCommand | Flag::LinkOutside | Flag::SetUid => true,
            Flag::SensitiveName | Flag::RunsByItself | Flag::IgnoreRules | Flag::InsideGit => false,
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
pub fn flags(subject: &Subject<'_>) -> Vec<Flag> {
    let mut found = Vec::new();
    if subject.leads_outside {
        found.push(Flag::LinkOutside);
    }
    if subject.kind == Some(EntryKind::File) && subject.mode & 0o6000 != 0 {
        found.push(Flag::SetUid);
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
        found.push(Flag::HaftFiles);
    }
    found.extend(git_flag(subject, &parts));
    if parts.iter().any(|part| is_sensitive_folded(part)) {
        found.push(Flag::SensitiveName);
    }
    if runs_by_itself(name, folders) {
        found.push(Flag::RunsByItself);
    }
    if matches!(*name, ".gitignore" | ".ignore" | ".rgignore" | ".gitattributes" | ".fdignore")
        || parts.ends_with(&[".git", "info", "exclude"])
        || parts.ends_with(&[".git", "info", "attributes"])
    {
        found.push(Flag::IgnoreRules);
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

fn git_flag(subject: &Subject<'_>, parts: &[&str]) -> Option<Flag> {
    let goes = subject.kind.is_none();
    let Some(git) = parts.iter().rposition(|part| *part == ".git") else { return settings_flag(subject, parts) };
    let inside = &parts[git + 1..];
    let Some(name) = inside.last() else { return sends_git_elsewhere(subject).then_some(Flag::GitConfigCommand) };
    // A removed hook or setting runs nothing any more.
    if goes {
        return Some(Flag::InsideGit);
    }
    let hooks = inside[..inside.len() - 1].contains(&"hooks") || inside == ["hooks"];
    if hooks && subject.kind != Some(EntryKind::Directory) && !name.ends_with(".sample") {
        return Some(Flag::GitHook);
    }
    let config = matches!(*name, "config" | "config.worktree") && subject.kind != Some(EntryKind::Directory);
    if config && (inside.len() == 1 || matches!(inside[0], "modules" | "worktrees")) {
        // A link may show any settings later.
        let unseen = subject.kind != Some(EntryKind::File) || subject.after.is_none();
        if unseen || git_config::adds_a_command(subject.before, subject.after) {
            return Some(Flag::GitConfigCommand);
        }
    }
    // Git makes none; one that leads to another folder brings the hooks and settings there along.
    if subject.kind == Some(EntryKind::Link) {
        return Some(Flag::GitConfigCommand);
    }
    // Settings are read where it says; a worktree's says so of the repository that it belongs to.
    if *name == "commondir" && (inside.len() == 1 || subject.after.map(<[u8]>::trim_ascii) != Some(b"../..")) {
        return Some(Flag::GitConfigCommand);
    }
    Some(Flag::InsideGit)
}

/// Settings outside of any `.git`: of the user, of submodules, and of a folder that is a repository without that name.
fn settings_flag(subject: &Subject<'_>, parts: &[&str]) -> Option<Flag> {
    let adds = match *parts.last()? {
        ".gitmodules" => git_config::adds_a_command(subject.before, subject.after),
        "config" | "config.worktree" | ".gitconfig" => {
            git_config::is_read_and_adds_a_command(subject.before, subject.after)
        }
        _ => false,
    };
    (adds && subject.kind == Some(EntryKind::File)).then_some(Flag::GitConfigCommand)
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

    fn of(path: &str) -> Vec<Flag> {
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
        let cases: &[(&str, &[Flag])] = &[
            ("src/main.rs", &[]),
            ("haft.toml", &[Flag::HaftFiles]),
            ("sub/.mcp.json", &[Flag::HaftFiles]),
            (".HAFT/tools/x.toml", &[Flag::HaftFiles]),
            (".config/haft/mcp.json", &[Flag::HaftFiles]),
            (".git/hooks/pre-commit", &[Flag::GitHook]),
            ("sub/.git/modules/x/hooks/post-checkout", &[Flag::GitHook]),
            (".git/hooks/pre-commit.sample", &[Flag::InsideGit]),
            (".git/config", &[Flag::InsideGit]),
            (".git/objects/ab/cdef", &[Flag::InsideGit]),
            (".git/refs/heads/config", &[Flag::InsideGit]),
            (".git/info/exclude", &[Flag::IgnoreRules, Flag::InsideGit]),
            (".gitignore", &[Flag::IgnoreRules]),
            (".gitmodules", &[]),
            (".env", &[Flag::SensitiveName]),
            (".github/workflows/ci.yml", &[Flag::RunsByItself]),
            (".github/CODEOWNERS", &[]),
            ("Jenkinsfile", &[Flag::RunsByItself]),
            (".vscode/tasks.json", &[Flag::RunsByItself]),
            ("venv/bin/activate.fish", &[Flag::RunsByItself]),
            ("src/activate.rs", &[]),
            ("lib/site-packages/a.pth", &[Flag::RunsByItself]),
            (".cargo/config.toml", &[Flag::RunsByItself]),
            ("tests/conftest.py", &[]),
            (".claude/settings.json", &[Flag::RunsByItself]),
            (".forgejo/workflows/ci.yml", &[Flag::RunsByItself]),
            (".config/autostart/x.desktop", &[Flag::RunsByItself]),
            ("x.code-workspace", &[Flag::RunsByItself]),
            (".git/commondir", &[Flag::GitConfigCommand]),
            (".git/worktrees/x/commondir", &[Flag::GitConfigCommand]),
            ("sub/.git", &[Flag::GitConfigCommand]),
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
        assert_eq!(of("sub/.git", "gitdir: ../evil\n"), [Flag::GitConfigCommand]);
        assert_eq!(of("sub/.git", "gitdir: ../.git/modules/sub\n"), []);
        assert_eq!(of("sub/.git", "gitdir: ../.git/modules/../../e\n"), [Flag::GitConfigCommand]);
        assert_eq!(of("tree/.git", "gitdir: /repo/.git/worktrees/tree\n"), []);
        assert_eq!(of(".git/worktrees/tree/commondir", "../..\n"), [Flag::InsideGit]);
        // A folder with the right names in it is a repository, whatever it is called.
        let settings = "[core]\n\tbare = true\n\tfsmonitor = ./run\n";
        assert_eq!(of("bare/config", settings), [Flag::GitConfigCommand]);
        assert_eq!(of(".gitconfig", settings), [Flag::GitConfigCommand]);
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
        assert_eq!(flags(&plain), [Flag::SetUid]);
        let link = Subject { kind: Some(EntryKind::Link), mode: 0o777, leads_outside: true, ..plain };
        assert_eq!(flags(&link), [Flag::LinkOutside]);
        let hook_goes = Subject { path: Path::new(".git/hooks/pre-push"), kind: None, mode: 0, ..plain };
        assert_eq!(flags(&hook_goes), [Flag::InsideGit]);
        let hooks_link = Subject { path: Path::new(".git/hooks"), kind: Some(EntryKind::Link), ..plain };
        assert_eq!(flags(&hooks_link), [Flag::GitHook]);
        let config_link = Subject { path: Path::new(".git/config"), kind: Some(EntryKind::Link), ..plain };
        assert_eq!(flags(&config_link), [Flag::GitConfigCommand]);
        let module_link = Subject { path: Path::new(".git/modules/s"), kind: Some(EntryKind::Link), ..plain };
        assert_eq!(flags(&module_link), [Flag::GitConfigCommand]);
        let deep = "d/".repeat(2100) + "tool";
        assert_eq!(flags(&Subject { path: Path::new(&deep), ..plain }), [Flag::SetUid]);
        assert_eq!(flags(&Subject { path: Path::new(&deep), ..link }), [Flag::LinkOutside]);
        let git_link = Subject { path: Path::new("sub/.git"), kind: Some(EntryKind::Link), ..plain };
        assert_eq!(flags(&git_link), [Flag::GitConfigCommand]);
        assert!(Flag::SetUid.forces_a_question() && !Flag::InsideGit.forces_a_question());
    }
}
