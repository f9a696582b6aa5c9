//! The variables of a fenced process: a clean set, and the names that nobody may add.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What makes tools work from what they have, or fail at once, when there is no network. Add them where it is off.
///
/// Nothing here refuses what needs no network: `PIP_NO_INDEX` is missing because an index may be a folder.
pub const OFFLINE: &[(&str, &str)] = &[
    ("CARGO_NET_OFFLINE", "true"),
    ("npm_config_offline", "true"),
    ("YARN_ENABLE_NETWORK", "false"),
    ("COREPACK_ENABLE_NETWORK", "0"),
    ("PIP_RETRIES", "0"),
    ("UV_OFFLINE", "1"),
    ("CONDA_OFFLINE", "true"),
    ("GOPROXY", "off"),
    ("MAVEN_ARGS", "--offline"),
    ("COMPOSER_DISABLE_NETWORK", "1"),
    ("HEX_OFFLINE", "1"),
];

/// Variables that choose among versions of a tool, or say who commits.
const CHOICES: [&str; 9] = [
    "TZ",
    "RUSTUP_TOOLCHAIN",
    "PYENV_VERSION",
    "RBENV_VERSION",
    "GOTOOLCHAIN",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
];

/// Variables that make a loader, an interpreter, a compiler or git run what the command does not name.
const REFUSED: &[&str] = &[
    "BASH_ENV",
    "BASHOPTS",
    "ENV",
    "IFS",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
    "ZDOTDIR",
    "GCONV_PATH",
    "GETCONF_DIR",
    "HOSTALIASES",
    "LOCPATH",
    "NLSPATH",
    "RESOLV_HOST_CONF",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONEXECUTABLE",
    "PYTHONINSPECT",
    "PYTHONBREAKPOINT",
    "PYTHONWARNINGS",
    "NODE_OPTIONS",
    "NODE_REPL_EXTERNAL_MODULE",
    "DENO_DIR",
    "BUN_OPTIONS",
    "PERL5OPT",
    "PERL5DB",
    "PERLLIB",
    "PERL5LIB",
    "RUBYOPT",
    "RUBYLIB",
    "LUA_INIT",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "CLASSPATH",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_TEMPLATE_DIR",
    "SSH_ASKPASS",
    "LESSOPEN",
];
const REFUSED_BEGINNINGS: &[&str] = &["LD_", "DYLD_", "GLIBC_", "BASH_FUNC_", "GIT_CONFIG"];

/// What every fenced process has, beside the variables that name toolchains.
pub(super) fn clean(home: &Path, path: &[PathBuf], variables: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let folders: Vec<&str> = path.iter().filter_map(|folder| folder.to_str()).collect();
    let user = variables.get("USER").or_else(|| variables.get("LOGNAME")).map(String::as_str);
    let user = user.or_else(|| home.file_name().and_then(|name| name.to_str())).unwrap_or("user");
    let fixed = [
        ("PATH", folders.join(":")),
        ("HOME", home.to_string_lossy().into_owned()),
        ("USER", user.to_owned()),
        ("LOGNAME", user.to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("TERM", "dumb".to_owned()),
        ("TMPDIR", "/tmp".to_owned()),
        ("GIT_TERMINAL_PROMPT", "0".to_owned()),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1".to_owned()),
    ];
    let chosen = CHOICES.iter().filter_map(|name| Some((*name, variables.get(*name)?.clone())));
    fixed.into_iter().chain(chosen).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Whether a variable makes programs load or run something that the command does not name, so that no caller may set
/// it; or is no name at all.
pub fn refused_variable(name: &str) -> bool {
    let is_a_name = !name.is_empty() && !name.contains(['=', '\0']);
    !is_a_name || REFUSED.contains(&name) || REFUSED_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}
