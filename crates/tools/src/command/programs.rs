//! Programs that are known by what they do with others.

use super::{
    simple::{SimpleCommand, base_name},
    word::Word,
};

/// Shells that read the language we can read.
pub(super) const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash", "rbash", "mksh"];

/// Interpreters of other languages; versions such as `python3.12` count as well.
const INTERPRETERS: &[&str] = &[
    "python", "pypy", "node", "nodejs", "deno", "bun", "perl", "ruby", "php", "lua", "luajit", "tclsh", "rscript",
    "fish", "pwsh", "awk", "gawk", "mawk", "java", "groovy", "guile",
];

/// Programs that run what their words or a file of the project say.
const RUNNERS: &[&str] = &[
    "sudo", "doas", "su", "pkexec", "chroot", "flock", "strace", "xargs", "parallel", "find", "watch", "eval", "trap",
    "source", ".", "ssh", "docker", "podman", "kubectl", "make", "gmake", "ninja", "cmake", "meson", "just", "task",
    "rake", "npm", "npx", "pnpm", "yarn", "bunx", "corepack", "cargo", "rustc", "go", "gradle", "gradlew", "mvn",
    "ant", "sbt", "bazel", "dotnet", "pip", "pip3", "pipx", "uv", "uvx", "poetry", "tox", "nox", "pytest", "bundle",
    "gem", "composer", "mix", "stack", "cabal", "tsx", "ts-node", "jest", "vitest", "script", "gdb", "tmux", "screen",
    "at", "crontab", "unshare", "nsenter",
];

/// Programs that only say how another runs.
const WAYS: &[&str] = &[
    "env", "nice", "ionice", "timeout", "time", "nohup", "setsid", "stdbuf", "exec", "command", "builtin", "coproc",
    "busybox", "toybox",
];

/// Programs that bring text from the network.
const FETCHERS: &[&str] = &["curl", "wget", "fetch", "aria2c", "http", "https", "lynx"];

/// Folders of the system, where a program is what its name says.
const SYSTEM: &[&str] = &["/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/"];

/// Whether it is an interpreter of another language than the shell's.
pub(super) fn is_interpreter(program: &str) -> bool {
    let plain = program.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.' || letter == '-');
    INTERPRETERS.contains(&plain.to_lowercase().as_str())
}

/// Whether it prints what it fetched.
pub(super) fn fetches(simple: &SimpleCommand) -> bool {
    simple.program().is_some_and(|program| FETCHERS.contains(&program.as_str()))
}

/// Programs that run the rest of their words with less priority, a time limit or the like, and do nothing else.
pub(super) fn is_only_a_way(program: &str) -> bool {
    WAYS.contains(&program)
}

/// Whether the program is what its name says: one on the path, or in a folder of the system.
pub(super) fn is_of_the_system(path: &str) -> bool {
    !path.contains('/') || SYSTEM.iter().any(|folder| path.strip_prefix(folder) == Some(base_name(path)))
}

/// Whether the word, as a program, runs other programs, or may be another program tomorrow.
pub(super) fn runs_others(word: &Word) -> bool {
    let Some(path) = word.literal() else { return true };
    let program = base_name(&path);
    let runs = |known: &[&str]| known.contains(&program);
    !is_of_the_system(&path) || runs(SHELLS) || runs(WAYS) || runs(RUNNERS) || is_interpreter(program)
}
