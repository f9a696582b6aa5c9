//! Links on the way to a file that the command of a server names, such as `.venv/bin/python`.

use std::path::Path;

/// More links on one way lead in a circle.
const MOST_LINKS: usize = 40;

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FollowedPath {
    /// Every link on the way, and what is written in it.
    pub(super) links: Vec<(String, String)>,
    /// The file in the workspace that it ends at; `None` for what lies elsewhere.
    pub(super) end: Option<String>,
}

/// Follows a path of a workspace, given what each link on its way says. `None` when it leads in a circle.
pub(super) fn follow(named: &str, workspace: &Path, link_at: impl Fn(&str) -> Option<String>) -> Option<FollowedPath> {
    let mut links = Vec::new();
    let mut at: Vec<String> = Vec::new();
    let mut left = parts(named);
    while let Some(part) = left.pop() {
        if part == ".." {
            if at.pop().is_none() {
                return Some(FollowedPath { links, end: None });
            }
            continue;
        }
        at.push(part);
        let path = at.join("/");
        let Some(text) = link_at(&path) else { continue };
        at.pop();
        links.push((path, text.clone()));
        if links.len() > MOST_LINKS {
            return None;
        }
        if !text.starts_with('/') {
            left.extend(parts(&text));
            continue;
        }
        match Path::new(&text).strip_prefix(workspace).ok().and_then(Path::to_str) {
            Some(inside) => {
                at.clear();
                left.extend(parts(inside));
            }
            None => return Some(FollowedPath { links, end: None }),
        }
    }
    Some(FollowedPath { links, end: Some(at.join("/")) })
}

/// The parts of a path, the first one last.
fn parts(path: &str) -> Vec<String> {
    path.split('/').rev().filter(|part| !matches!(*part, "" | ".")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leads(named: &str, links: &[(&str, &str)]) -> Option<FollowedPath> {
        let at = |path: &str| links.iter().find(|(link, _)| *link == path).map(|(_, text)| (*text).to_owned());
        follow(named, Path::new("/w"), at)
    }

    #[test]
    fn every_link_on_the_way_is_known_and_so_is_the_end() {
        let links = [("v", "venv"), ("venv/bin/python", "python3"), ("venv/bin/python3", "/usr/bin/python3")];
        let found = leads("v/bin/python", &links).unwrap();
        let names: Vec<&str> = found.links.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!((names, found.end), (vec!["v", "venv/bin/python", "venv/bin/python3"], None));
        for (text, end) in [("../x/cli.js", Some("n/x/cli.js")), ("/w/n/x", Some("n/x")), ("../../../x", None)] {
            assert_eq!(leads("n/.bin/x", &[("n/.bin/x", text)]).unwrap().end.as_deref(), end, "{text}");
        }
        assert_eq!(leads("a/./b", &[]).unwrap(), FollowedPath { links: Vec::new(), end: Some("a/b".to_owned()) });
        assert_eq!(leads("a", &[("a", "b"), ("b", "a")]), None);
    }
}
