//! One table or one key of a TOML file.

use anyhow::{Context, Result, ensure};
use toml::{Table, Value};

/// The text with a table of these keys, in the place of one that was there; all else stays as it is written.
pub(crate) fn put_table(text: &str, path: [&str; 2], keys: &[(&str, Value)]) -> Result<String> {
    let before = parse(text)?;
    let table = Value::Table(keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect());
    if at(&before, path) == Some(&table) {
        return Ok(text.to_owned());
    }
    let mut lines: Vec<&str> = text.lines().collect();
    let name = path.join(".");
    let beneath = format!("{name}.");
    let mut place = lines.len();
    for section in sections(&lines).into_iter().rev() {
        if section.name == name {
            place = section.start;
        } else if !section.name.starts_with(&beneath) {
            continue;
        }
        lines.drain(section.start..section.end);
        // What is beneath it takes the empty line before it along.
        if section.name != name && section.start > 0 && lines[section.start - 1].trim().is_empty() {
            lines.remove(section.start - 1);
        }
    }
    let mut edited = joined(&lines[..place]);
    if place == lines.len() && !edited.trim().is_empty() && !edited.ends_with("\n\n") {
        edited.push('\n');
    }
    edited.push_str(&table_lines(path, keys));
    edited.push_str(&joined(&lines[place..]));
    checked(edited, before, path, table)
}

/// A table as it is written.
pub(crate) fn table_lines(path: [&str; 2], keys: &[(&str, Value)]) -> String {
    let line = |(key, value): &(&str, Value)| format!("{key} = {value}\n");
    format!("[{}]\n{}", path.join("."), keys.iter().map(line).collect::<String>())
}

/// The text with this value of a key in a section, in the place of one that was there.
pub(crate) fn put_key(text: &str, path: [&str; 2], value: &Value) -> Result<String> {
    let before = parse(text)?;
    if at(&before, path) == Some(value) {
        return Ok(text.to_owned());
    }
    let [table, key] = path;
    let mut lines: Vec<&str> = text.lines().collect();
    let sections = sections(&lines);
    let own = sections.iter().find(|section| section.name == table);
    let (home, name) = match own {
        Some(own) => (own, key.to_owned()),
        None => (sections.first().context("a file has a beginning")?, path.join(".")),
    };
    let written = format!("{name} = {value}");
    let is_it = |line: &&str| line.split('=').next().is_some_and(|left| left.trim() == name);
    let body = home.start + usize::from(own.is_some());
    match lines[body..home.end].iter().position(is_it) {
        Some(found) => lines[body + found] = &written,
        None => lines.insert(if own.is_some() { body } else { home.end }, &written),
    }
    checked(joined(&lines), before, path, value.clone())
}

/// All that it says.
pub(crate) fn parse(text: &str) -> Result<Table> {
    text.parse().context("it is not TOML")
}

/// What stands at a path.
pub(crate) fn at<'a>(table: &'a Table, [first, second]: [&str; 2]) -> Option<&'a Value> {
    table.get(first)?.as_table()?.get(second)
}

/// Only what says what it should, and all that it said before, is written.
fn checked(edited: String, mut before: Table, [first, second]: [&str; 2], value: Value) -> Result<String> {
    let outer = before.entry(first).or_insert_with(|| Value::Table(Table::new()));
    if let Some(outer) = outer.as_table_mut() {
        outer.insert(second.to_owned(), value);
    }
    let after = parse(&edited).ok();
    ensure!(after.as_ref() == Some(&before), "it is written in a way that haft does not change by itself");
    Ok(edited)
}

/// The lines of one table with its header, without comments that lead over to the next one.
struct Section {
    name: String,
    start: usize,
    end: usize,
}

/// The first has no header and no name.
fn sections(lines: &[&str]) -> Vec<Section> {
    let mut sections = vec![Section { name: String::new(), start: 0, end: lines.len() }];
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = header(line) else { continue };
        if let Some(last) = sections.last_mut() {
            let leads_over = |line: &&&str| line.trim().is_empty() || line.trim().starts_with('#');
            last.end = at - lines[last.start..at].iter().rev().take_while(leads_over).count();
        }
        sections.push(Section { name, start: at, end: lines.len() });
    }
    sections
}

/// `[ a . "b" ]  # why` → `a.b`.
fn header(line: &str) -> Option<String> {
    let line = line.trim().strip_prefix('[')?;
    let (name, _) = line.trim_start_matches('[').split_once(']')?;
    Some(name.split('.').map(|part| part.trim().trim_matches(['"', '\''])).collect::<Vec<_>>().join("."))
}

fn joined(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| [*line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use toml::Value;

    use super::{put_key, put_table};

    fn entry() -> [(&'static str, Value); 2] {
        [("command", Value::from("/bin/haft")), ("args", Value::from(vec!["mcp"]))]
    }

    const WRITTEN: &str = "[mcp_servers.haft]\ncommand = \"/bin/haft\"\nargs = [\"mcp\"]\n";

    fn put(text: &str) -> String {
        let once = put_table(text, ["mcp_servers", "haft"], &entry()).unwrap();
        assert_eq!(put_table(&once, ["mcp_servers", "haft"], &entry()).unwrap(), once, "twice is once");
        once
    }

    #[test]
    fn a_table_is_added_at_the_end() {
        assert_eq!(put(""), WRITTEN);
        assert_eq!(put("a = 1 # one\n"), format!("a = 1 # one\n\n{WRITTEN}"));
        assert_eq!(put("[mcp_servers.x] # x\na = 1"), format!("[mcp_servers.x] # x\na = 1\n\n{WRITTEN}"));
    }

    #[test]
    fn a_table_is_replaced_where_it_stands_with_what_is_beneath_it() {
        let old =
            "# top\n[mcp_servers.haft]\ncommand = 'old'\n\n[mcp_servers.haft.env]\nA = '1'\n\n# of x\n[x]\nb = 2\n";
        assert_eq!(put(old), format!("# top\n{WRITTEN}\n# of x\n[x]\nb = 2\n"));
        let last = "[x]\n[ mcp_servers . \"haft\" ]\ncommand = 'old'\n";
        assert_eq!(put(last), format!("[x]\n\n{WRITTEN}"));
    }

    #[test]
    fn what_cannot_be_changed_for_certain_is_left() {
        for odd in ["mcp_servers = { haft = { command = 'x' } }", "a = [", "mcp_servers = 1"] {
            assert!(put_table(odd, ["mcp_servers", "haft"], &entry()).is_err(), "{odd}");
        }
        let quoted = "a = '''\n[mcp_servers.haft]\n'''\n";
        assert!(put_table(quoted, ["mcp_servers", "haft"], &entry()).is_err());
    }

    #[test]
    fn a_key_is_set_in_its_section_or_before_all() {
        let put = |text: &str| {
            let once = put_key(text, ["mcp", "may"], &Value::from("safe")).unwrap();
            assert_eq!(put_key(&once, ["mcp", "may"], &Value::from("safe")).unwrap(), once);
            once
        };
        assert_eq!(put(""), "mcp.may = \"safe\"\n");
        assert_eq!(put("mcp.may = 'none'\nb = 1\n"), "mcp.may = \"safe\"\nb = 1\n");
        assert_eq!(put("# me\n[a]\nb = 1\n"), "mcp.may = \"safe\"\n# me\n[a]\nb = 1\n");
        assert_eq!(put("z = 1\n\n[a]\nb = 1\n"), "z = 1\nmcp.may = \"safe\"\n\n[a]\nb = 1\n");
        assert_eq!(put("[mcp]\npins = []\n"), "[mcp]\nmay = \"safe\"\npins = []\n");
        assert_eq!(put("[mcp]\n# why\nmay = 'all'\n[b]\n"), "[mcp]\n# why\nmay = \"safe\"\n[b]\n");
        assert_eq!(put("[mcp.servers.x]\na = 1\n"), "mcp.may = \"safe\"\n[mcp.servers.x]\na = 1\n");
        assert!(put_key("mcp = { may = 'all' }", ["mcp", "may"], &Value::from("safe")).is_err());
    }
}
