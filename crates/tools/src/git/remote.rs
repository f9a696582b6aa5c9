//! Where a push goes: which addresses git may be sent to, and which settings of a repository stand in the way.

use std::path::{Path, PathBuf};

use haft_runtime::{ErrorCode, ToolError};
use haft_sandbox::Root;

/// Settings of a repository by which it would run a command, send a push elsewhere or weaken the connection: the
/// beginning and the end of their names.
const STEERING: &[(&str, &str)] = &[
    ("core.sshcommand", ""),
    ("core.gitproxy", ""),
    ("core.askpass", ""),
    ("core.alternaterefscommand", ""),
    ("credential.", ""),
    ("http.", ""),
    ("https.", ""),
    ("include.", ""),
    ("includeif.", ""),
    ("protocol.", ""),
    ("push.gpgsign", ""),
    ("remote.", ".proxy"),
    ("remote.", ".proxyauthmethod"),
    ("remote.", ".receivepack"),
    ("remote.", ".serveroption"),
    ("remote.", ".uploadpack"),
    ("remote.", ".vcs"),
    ("ssh.", ""),
    ("url.", ".insteadof"),
    ("url.", ".pushinsteadof"),
];

/// One setting: where it is set, its name, its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    scope: String,
    pub(super) name: String,
    value: String,
}

impl Setting {
    /// Reads the list that git makes with `--list --show-scope -z`.
    pub(super) fn read_all(said: &[u8]) -> Vec<Setting> {
        let text = String::from_utf8_lossy(said);
        let fields: Vec<&str> = text.split('\0').collect();
        let pairs = fields.chunks_exact(2).map(|pair| (pair[0], pair[1].split_once('\n').unwrap_or((pair[1], ""))));
        pairs
            .map(|(scope, (name, value))| Setting {
                scope: scope.to_owned(),
                name: name.to_owned(),
                value: value.to_owned(),
            })
            .collect()
    }

    /// Whether the repository itself brings it, and not the user or the system.
    fn is_the_repositorys(&self) -> bool {
        !matches!(self.scope.as_str(), "system" | "global" | "command")
    }

    fn steers(&self) -> bool {
        // The part in the middle may be anything; the others have one spelling.
        let name = self.name.to_ascii_lowercase();
        STEERING.iter().any(|(begin, end)| name.starts_with(begin) && name.ends_with(end))
    }
}

/// Refuses a repository that has a say in how or where a push goes.
pub(super) fn refuse_steering(settings: &[Setting]) -> Result<(), ToolError> {
    let found = settings.iter().find(|setting| setting.is_the_repositorys() && setting.steers());
    match found {
        None => Ok(()),
        Some(setting) => {
            let message = format!(
                "cannot push: the repository's own settings have `{}`, which can run a command or send the push elsewhere; \
                 if it is yours, move it to your own settings (`git config --global`) and remove it from the repository",
                setting.name
            );
            Err(ToolError::new(ErrorCode::PermissionDenied, message).with("setting", setting.name.as_str()))
        }
    }
}

/// The remotes that are known.
pub(super) fn remotes(settings: &[Setting]) -> Vec<&str> {
    let of = |setting: &'_ Setting| -> Option<std::ops::Range<usize>> {
        let end = setting.name.strip_suffix(".url").or_else(|| setting.name.strip_suffix(".pushurl"))?.len();
        setting.name.starts_with("remote.").then_some("remote.".len()..end)
    };
    let mut all: Vec<&str> = settings.iter().filter_map(|setting| setting.name.get(of(setting)?)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The value of a setting that the user or the system has made.
pub(super) fn users<'a>(settings: &'a [Setting], name: &str) -> Option<&'a str> {
    let own = |setting: &&Setting| !setting.is_the_repositorys() && setting.name.eq_ignore_ascii_case(name);
    settings.iter().rev().find(own).map(|setting| setting.value.as_str())
}

/// How an address is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RemoteProtocol {
    Https,
    Ssh,
    /// A repository on this machine.
    File,
}

impl RemoteProtocol {
    /// What git calls it.
    pub(super) fn protocol(&self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Ssh => "ssh",
            Self::File => "file",
        }
    }

    /// Judges an address. A repository on this machine must lie in the workspace or in a folder that may be written.
    pub(super) fn of(url: &str, root: &Root, folder: &Path, writable: &[PathBuf]) -> Result<RemoteProtocol, ToolError> {
        let refused = |why: &str| {
            let message = format!("cannot push to {}: {why}", without_secrets(url));
            Err(ToolError::new(ErrorCode::PermissionDenied, message))
        };
        let lower = url.to_ascii_lowercase();
        if url.contains("::") && !url.contains("://") || url.starts_with('-') || url.contains(char::is_control) {
            return refused("it names a program and no address");
        }
        if let Some((protocol, rest)) = lower.split_once("://") {
            let host = rest.split('/').next().unwrap_or_default().rsplit('@').next().unwrap_or_default();
            return match protocol {
                "https" | "ssh" if host.is_empty() || host.starts_with('-') => refused("it has no host"),
                "https" => Ok(RemoteProtocol::Https),
                "ssh" => Ok(RemoteProtocol::Ssh),
                "file" => local(&url["file://".len()..], (root, folder, writable)).map_or_else(refused, Ok),
                _ => refused("only https, ssh and files are pushed to"),
            };
        }
        // `host:path`, unless a slash comes first.
        match url.split_once(':') {
            Some((host, _)) if !host.contains('/') => {
                let host = host.rsplit('@').next().unwrap_or_default();
                if host.is_empty() || host.starts_with('-') {
                    refused("it has no host")
                } else {
                    Ok(RemoteProtocol::Ssh)
                }
            }
            Some(_) | None => local(url, (root, folder, writable)).map_or_else(refused, Ok),
        }
    }
}

fn local(path: &str, (root, folder, writable): (&Root, &Path, &[PathBuf])) -> Result<RemoteProtocol, &'static str> {
    if path.is_empty() {
        return Err("it names no folder");
    }
    let real = folder.join(path).canonicalize().map_err(|_| "there is no such folder")?;
    let allowed = std::iter::once(root.path()).chain(writable.iter().map(PathBuf::as_path));
    let mut allowed = allowed.filter_map(|folder| folder.canonicalize().ok());
    match allowed.any(|folder| real.starts_with(folder)) {
        true => Ok(RemoteProtocol::File),
        false => {
            Err("it lies outside the workspace; add its folder to `sandbox.write` in your own haft.toml to allow it")
        }
    }
}

/// An address as it may be shown: without the name and password in it.
pub(super) fn without_secrets(url: &str) -> String {
    let Some((protocol, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = path.split(['?', '#']).next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((who, host)) if protocol != "ssh" || who.contains(':') => format!("{protocol}://[redacted]@{host}{path}"),
        Some(_) | None => format!("{protocol}://{authority}{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str, folder: &Path) -> Result<RemoteProtocol, ErrorCode> {
        let root = Root::open(folder, &[]).unwrap();
        RemoteProtocol::of(url, &root, folder, &[]).map_err(|error| error.code)
    }

    #[test]
    fn only_https_ssh_and_folders_inside_are_pushed_to() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().canonicalize().unwrap();
        std::fs::create_dir(here.join("bare.git")).unwrap();
        let inside = format!("file://{}/bare.git", here.display());
        let good = [
            ("https://host/x.git", RemoteProtocol::Https),
            ("ssh://git@host:22/x", RemoteProtocol::Ssh),
            ("git@host:team/x.git", RemoteProtocol::Ssh),
            ("bare.git", RemoteProtocol::File),
            ("./bare.git", RemoteProtocol::File),
            (inside.as_str(), RemoteProtocol::File),
        ];
        for (url, expected) in good {
            assert_eq!(address(url, &here), Ok(expected), "{url}");
        }
        let bad =
            ["ext::sh -c x", "http://host/x", "git://host/x", "ftp://host/x", "-oProxyCommand=x", "https:///x", "/etc"]
                .into_iter()
                .chain([
                    "ssh://-oProxyCommand=x/y",
                    "-h:x",
                    "../x",
                    "nothing",
                    "file:///etc",
                    "file://",
                    "fd::3",
                    "a\nb",
                    "",
                ]);
        for url in bad {
            assert_eq!(address(url, &here), Err(ErrorCode::PermissionDenied), "{url}");
        }
    }

    #[test]
    fn secrets_in_an_address_are_not_shown() {
        let shown = [
            ("https://anna:hunter2@host/x.git", "https://[redacted]@host/x.git"),
            ("https://ghp_token@host:8443/x?token=abc", "https://[redacted]@host:8443/x"),
            ("ssh://git@host/x", "ssh://git@host/x"),
            ("git@host:x.git", "git@host:x.git"),
            ("https://host/x@y", "https://host/x@y"),
        ];
        for (url, expected) in shown {
            assert_eq!(without_secrets(url), expected);
        }
    }

    #[test]
    fn what_steers_a_push_is_refused_only_where_the_repository_says_it() {
        let said = |scope: &str, name: &str| format!("{scope}\0{name}\nvalue\0").into_bytes();
        let names = ["core.sshcommand", "credential.helper", "credential.https://x.helper", "url.evil.insteadof"]
            .into_iter()
            .chain(["remote.origin.receivepack", "http.proxy", "http.https://x.extraheader", "protocol.ext.allow"])
            .chain([
                "include.path",
                "includeif.gitdir:x.path",
                "remote.a.b.vcs",
                "url.x.pushinsteadof",
                "core.gitproxy",
            ]);
        for name in names {
            for scope in ["local", "worktree", "submodule", "unknown"] {
                let refused = refuse_steering(&Setting::read_all(&said(scope, name)));
                assert_eq!(refused.unwrap_err().code, ErrorCode::PermissionDenied, "{scope} {name}");
            }
            assert!(refuse_steering(&Setting::read_all(&said("global", name))).is_ok(), "{name}");
        }
        for name in ["remote.origin.url", "remote.origin.fetch", "user.name", "branch.main.remote", "core.bare"] {
            assert!(refuse_steering(&Setting::read_all(&said("local", name))).is_ok(), "{name}");
        }
        let both = [said("local", "remote.origin.url"), said("local", "remote.team.fork.pushurl")].concat();
        assert_eq!(remotes(&Setting::read_all(&both)), ["origin", "team.fork"]);
    }
}
