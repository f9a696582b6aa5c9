//! Finds settings in a git config file that make git run a command or go elsewhere.

use std::collections::HashSet;

/// Whether the new content names a command that the old one did not.
pub(super) fn adds_a_command(before: Option<&[u8]>, after: Option<&[u8]>) -> bool {
    let old = before.map(commands).unwrap_or_default();
    after.map(commands).unwrap_or_default().iter().any(|setting| !old.contains(setting))
}

/// Every setting (`section.sub.key` and value) that names a command.
fn commands(content: &[u8]) -> HashSet<(String, String)> {
    let text = String::from_utf8_lossy(content).replace("\\\n", "").replace("\\\r\n", "");
    let mut section = String::new();
    let mut found = HashSet::new();
    for line in text.lines() {
        let mut line = line.trim_start_matches('\u{feff}').trim();
        if let Some(header) = line.strip_prefix('[') {
            let (name, rest) = split_header(header);
            section = name;
            // A setting may follow its header on the same line.
            line = rest.trim();
        }
        if line.is_empty() || line.starts_with('#') || line.starts_with(';') {
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let key = format!("{section}.{}", key.trim().to_ascii_lowercase());
        if names_a_command(&key, value) {
            found.insert((key, value.trim().to_owned()));
        }
    }
    found
}

/// Splits `diff "x"] key = value` into `diff.x` and the rest; quotes may hold a bracket.
fn split_header(header: &str) -> (String, &str) {
    let mut quoted = false;
    let mut escaped = false;
    for (at, character) in header.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => return (section_name(&header[..at]), &header[at + 1..]),
            _ => {}
        }
    }
    (section_name(header), "")
}

fn section_name(header: &str) -> String {
    match header.split_once('"') {
        None => header.trim().to_ascii_lowercase(),
        Some((section, sub)) => {
            format!("{}.{}", section.trim().to_ascii_lowercase(), sub.trim_end().trim_end_matches('"'))
        }
    }
}

fn names_a_command(key: &str, value: &str) -> bool {
    let (section, rest) = key.split_once('.').unwrap_or((key, ""));
    let last = rest.rsplit('.').next().unwrap_or("");
    let value = value.trim().trim_matches('"');
    match section {
        "core" => {
            matches!(
                last,
                "sshcommand"
                    | "fsmonitor"
                    | "hookspath"
                    | "editor"
                    | "pager"
                    | "askpass"
                    | "gitproxy"
                    | "attributesfile"
                    | "excludesfile"
                    | "alternaterefscommand"
                    | "worktree"
            ) && !(last == "fsmonitor" && matches!(value.to_ascii_lowercase().as_str(), "true" | "false" | ""))
        }
        "include" | "includeif" => last == "path",
        "alias" => value.starts_with('!'),
        "credential" => last == "helper",
        "url" => matches!(last, "insteadof" | "pushinsteadof"),
        "diff" => matches!(last, "command" | "textconv" | "external"),
        "merge" => last == "driver",
        "difftool" | "mergetool" | "browser" | "man" => matches!(last, "cmd" | "path"),
        "filter" => matches!(last, "clean" | "smudge" | "process"),
        "submodule" => last == "update" && value.starts_with('!'),
        "remote" => matches!(last, "uploadpack" | "receivepack" | "vcs") || (last == "url" && value.contains("::")),
        "sequence" => last == "editor",
        "interactive" => last == "difffilter",
        "pager" | "protocol" | "trailer" => section == "pager" || matches!(last, "allow" | "command" | "cmd"),
        "sendemail" => matches!(last, "smtpserver" | "tocmd" | "cccmd" | "headercmd" | "sendmailcmd"),
        "uploadpack" => last == "packobjectshook",
        "web" | "help" => last == "browser",
        "http" => last == "proxy",
        _ => last == "program",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &[u8] =
        b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\
        [remote \"origin\"]\n\turl = https://example.org/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
        [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[user]\n\tname = A\n";

    fn adds(text: &str) -> bool {
        let mut after = PLAIN.to_vec();
        after.extend_from_slice(text.as_bytes());
        adds_a_command(Some(PLAIN), Some(&after))
    }

    #[test]
    fn plain_settings_pass() {
        assert!(!adds_a_command(None, Some(PLAIN)));
        assert!(!adds("[remote \"fork\"]\n\turl = git@example.org:x.git\n"));
        assert!(!adds("[alias]\n\tst = status\n[core]\n\tfsmonitor = true\n"));
        assert!(!adds("# [core] editor = x\n; sshCommand = y\n"));
    }

    #[test]
    fn commands_are_found_however_they_are_written() {
        for text in [
            "[core]\n\tsshCommand = evil\n",
            "[CORE] hooksPath=/tmp\n",
            "[core]\n\tfsmonitor = ./run\n",
            "[core]\n\tpag\\\ner = less\n",
            "[diff \"a]b\"]\n\ttextconv = x\n",
            "[filter \"lfs\"]\n\tsmudge = x\n",
            "[alias]\n\tx = !sh\n",
            "[alias]\n\tx = \"!sh\"\n",
            "[credential \"https://x\"]\n\thelper = y\n",
            "[gpg \"ssh\"]\n\tprogram = y\n",
            "[url \"ext::sh\"]\n\tinsteadOf = https://\n",
            "[includeIf \"gitdir:x\"]\n\tpath = y\n",
            "[remote \"o\"]\n\turl = ext::sh -c x\n",
            "[submodule \"s\"]\n\tupdate = !sh\n",
        ] {
            assert!(adds(text), "{text}");
        }
    }

    #[test]
    fn what_was_there_before_is_not_added() {
        let with = b"[core]\n\teditor = vi\n";
        assert!(!adds_a_command(Some(with), Some(b"[core]\n\teditor = vi\n\tbare = true\n")));
        assert!(adds_a_command(Some(with), Some(b"[core]\n\teditor = other\n")));
    }
}
