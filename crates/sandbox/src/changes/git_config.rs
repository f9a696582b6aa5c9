//! Finds settings in a git config file that make git run a command or go elsewhere.

use std::{collections::HashSet, iter::Peekable};

/// Whether the new content names a command that the old one did not. What cannot be read may.
pub(super) fn adds_a_command(before: Option<&[u8]>, after: Option<&[u8]>) -> bool {
    after.is_some_and(|after| adds_one(before, after).unwrap_or(true))
}

/// Whether the new content can be read as git settings and names a command that the old one did not.
pub(super) fn is_read_and_adds_a_command(before: Option<&[u8]>, after: Option<&[u8]>) -> bool {
    after.and_then(|after| adds_one(before, after)).unwrap_or(false)
}

fn adds_one(before: Option<&[u8]>, after: &[u8]) -> Option<bool> {
    let old = before.and_then(commands).unwrap_or_default();
    Some(commands(after)?.iter().any(|setting| !old.contains(setting)))
}

/// Every setting (`section.sub.key` and value) that names a command; `None` when git itself would not read on.
fn commands(content: &[u8]) -> Option<HashSet<(String, String)>> {
    let text = String::from_utf8_lossy(content).replace("\r\n", "\n");
    // A last line without its end is read like any other.
    let mut text = text.trim_start_matches('\u{feff}').chars().chain(['\n']).peekable();
    let mut section = String::new();
    let mut found = HashSet::new();
    while let Some(character) = text.next() {
        match character {
            '#' | ';' => skip_line(&mut text),
            '[' => section = header(&mut text)?,
            ' ' | '\t' | '\r' | '\n' => {}
            first if first.is_ascii_alphabetic() => {
                let (key, value) = setting(first, &mut text)?;
                let key = format!("{section}.{key}");
                if names_a_command(&key, &value) {
                    found.insert((key, value));
                }
            }
            _ => return None,
        }
    }
    Some(found)
}

fn skip_line(text: &mut impl Iterator<Item = char>) {
    text.find(|character| *character == '\n');
}

/// Reads `diff "x"]` as `diff.x`. Anything may follow on the same line, even another header.
fn header(text: &mut impl Iterator<Item = char>) -> Option<String> {
    let mut name = String::new();
    loop {
        match text.next()? {
            ']' => return Some(name),
            ' ' | '\t' => break,
            character if character.is_ascii_alphanumeric() || matches!(character, '-' | '.') => {
                name.push(character.to_ascii_lowercase());
            }
            _ => return None,
        }
    }
    name.push('.');
    text.find(|character| !matches!(character, ' ' | '\t')).filter(|quote| *quote == '"')?;
    loop {
        match text.next()? {
            '"' => return text.next().filter(|end| *end == ']').map(|_| name),
            '\n' => return None,
            '\\' => name.push(text.next().filter(|escaped| *escaped != '\n')?),
            character => name.push(character),
        }
    }
}

/// Reads the rest of a key, and its value if it has one.
fn setting<I: Iterator<Item = char>>(first: char, text: &mut Peekable<I>) -> Option<(String, String)> {
    let mut key = String::from(first.to_ascii_lowercase());
    while let Some(character) = text.next_if(|next| next.is_ascii_alphanumeric() || *next == '-') {
        key.push(character.to_ascii_lowercase());
    }
    match text.find(|character| !matches!(character, ' ' | '\t'))? {
        '\n' => Some((key, String::new())),
        '=' => Some((key, value(text)?)),
        _ => None,
    }
}

/// Reads a value without its quotes: a comment or the line ends it, unless it goes on after a backslash.
fn value(text: &mut impl Iterator<Item = char>) -> Option<String> {
    let mut value = String::new();
    let mut quoted = false;
    loop {
        match text.next()? {
            '\n' if quoted => return None,
            '\n' => break,
            '#' | ';' if !quoted => {
                skip_line(text);
                break;
            }
            '"' => quoted = !quoted,
            '\\' => match text.next()? {
                '\n' => {}
                't' | 'n' | 'b' => value.push(' '),
                escaped @ ('\\' | '"') => value.push(escaped),
                _ => return None,
            },
            character => value.push(character),
        }
    }
    Some(value.trim().to_owned())
}

fn names_a_command(key: &str, value: &str) -> bool {
    let (section, rest) = key.split_once('.').unwrap_or((key, ""));
    let last = rest.rsplit('.').next().unwrap_or("");
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
        "alias" => is_more_than_a_subcommand(value),
        "credential" => last == "helper",
        "url" => matches!(last, "insteadof" | "pushinsteadof"),
        "diff" => matches!(last, "command" | "textconv" | "external"),
        "merge" => last == "driver",
        "difftool" | "mergetool" | "browser" | "man" => matches!(last, "cmd" | "path"),
        "filter" => matches!(last, "clean" | "smudge" | "process"),
        "submodule" => (last == "update" && value.starts_with('!')) || (last == "url" && goes_by_a_command(value)),
        "remote" => matches!(last, "uploadpack" | "receivepack" | "vcs" | "proxy") || goes_by_a_command(value),
        "branch" => matches!(last, "remote" | "pushremote") && goes_by_a_command(value),
        "sequence" => last == "editor",
        "interactive" => last == "difffilter",
        "pager" | "protocol" | "trailer" => section == "pager" || matches!(last, "allow" | "command" | "cmd"),
        "sendemail" => matches!(last, "smtpserver" | "tocmd" | "cccmd" | "headercmd" | "sendmailcmd"),
        "uploadpack" => last == "packobjectshook",
        "init" => last == "templatedir",
        "gc" => last == "recentobjectshook",
        "imap" => last == "tunnel",
        "web" | "help" => last == "browser",
        "instaweb" => matches!(last, "httpd" | "browser" | "modulepath"),
        "lfs" => matches!(last, "path" | "args" | "standalonetransferagent" | "clean" | "smudge"),
        "svn" => last == "authorsprog",
        "http" => last == "proxy",
        _ => matches!(last, "program" | "command" | "cmd" | "defaultkeycommand"),
    }
}

/// Whether an address names what speaks for it, as `ext::` does.
fn goes_by_a_command(address: &str) -> bool {
    address.contains("::")
}

/// Options and subcommands of git that name a command or settings.
const NAME_A_COMMAND: &[&str] = &[
    "-c",
    "-C",
    "-x",
    "bisect",
    "daemon",
    "difftool",
    "filter-branch",
    "foreach",
    "instaweb",
    "mergetool",
    "send-email",
    "web--browse",
];
/// Long options that do. Git takes the beginning of one for the whole.
const LONG: &[&str] = &[
    "--config-env",
    "--exec",
    "--exec-path",
    "--ext-diff",
    "--extcmd",
    "--git-dir",
    "--open-files-in-pager",
    "--receive-pack",
    "--textconv",
    "--upload-pack",
    "--work-tree",
];

/// Whether an alias can do more than the subcommand of git that it begins with.
fn is_more_than_a_subcommand(alias: &str) -> bool {
    let names = |word: &str| {
        let option = word.split('=').next().unwrap_or(word);
        let is_long = option.len() > 2 && LONG.iter().any(|long| long.starts_with(option));
        is_long || word.starts_with("-O") || NAME_A_COMMAND.contains(&word)
    };
    // Quotes and backslashes may hide a word.
    alias.starts_with(['!', '-']) || alias.contains(['\'', '"', '\\']) || alias.split_whitespace().any(names)
}

/// The folders of hooks that the settings name.
pub(super) fn hook_folders(content: &[u8]) -> Vec<String> {
    let named = commands(content).unwrap_or_default().into_iter();
    named.filter(|(key, value)| key == "core.hookspath" && !value.is_empty()).map(|(_, value)| value).collect()
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
        assert!(!adds("[alias]\n\tst = status -sb\n\tlg = log --oneline --graph --all\n[core]\n\tfsmonitor = true\n"));
        assert!(!adds("# [core] editor = x\n; sshCommand = y\n"));
        assert!(!adds("[user]\n\tname = \"[core] editor = x\" # [core]\n\temail = a\\\n[core]editor=x\n"));
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
            "# a comment ends with its line \\\n[core] fsmonitor = ./run\n",
            "[user]\n\tname = a\\\\\n[core]\n\tfsmonitor = ./run\n",
            "[user][core]fsmonitor = ./run\n",
            "[user] name = a ; b \\\n[core] fsmonitor = ./run",
            "[remote \"o\"]\n\turl = ext:\":\"sh -c x\n",
            "[alias] x = \"\"\\\n!sh\n",
            "[gpg \"ssh\"]\n\tdefaultKeyCommand = y\n",
            "[hook \"x\"]\n\tcommand = y\n",
            "[alias]\n\tst = -c core.fsmonitor=./x status\n",
            "[alias]\n\tx = rebase --exec=./x\n",
            "[alias]\n\tx = rebase -x ./x\n",
            "[alias]\n\tx = rebase --ex ./x\n",
            "[alias]\n\tx = submodule foreach ./x\n",
            "[alias]\n\tx = grep -O./x a\n",
            "[alias]\n\tx = difftool\n",
            "[lfs \"customtransfer.x\"]\n\tpath = ./x\n",
            "[svn]\n\tauthorsProg = ./x\n",
            "[instaweb]\n\thttpd = ./x\n",
            "[lfs \"extension.x\"]\n\tclean = ./x\n",
            "[branch \"main\"]\n\tremote = ext::sh\n",
            "[submodule \"s\"]\n\turl = ext::sh\n",
            "[remote \"o\"]\n\tpushurl = ext::sh -c x\n",
            "[init]\n\ttemplateDir = y\n",
            "[core\n\tnothing that git reads",
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
