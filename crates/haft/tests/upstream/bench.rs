//! Somebody whose list has made-up servers.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    fenced::Person,
    support::{ALL, Ran},
};

/// A person with a workspace, and the made-up server in it.
pub(crate) struct Bench(pub(crate) Person);

impl Bench {
    pub(crate) fn new() -> Self {
        Self::of(Person::us())
    }

    pub(crate) fn of(person: Person) -> Self {
        person.put("fake.py", include_str!("fake.py"));
        Self(person)
    }

    /// With one server, `fake`, that does as these options say.
    pub(crate) fn with(options: &Value) -> Self {
        let bench = Self::new();
        bench.list(&json!({ "fake": server(options) }));
        bench
    }

    /// Writes the user's list.
    pub(crate) fn list(&self, servers: &Value) {
        self.0.put_home(".config/haft/mcp.json", json!({ "mcpServers": servers }).to_string());
    }

    /// Writes the user's settings.
    pub(crate) fn settings(&self, text: &str) {
        self.0.put_home(".config/haft/haft.toml", text);
    }

    /// A call in mode `all`.
    pub(crate) fn call(&self, tool: &str, input: &Value) -> (i32, Value) {
        self.0.call(&format!("mcp__fake__{tool}"), input, ALL)
    }

    /// A call that must succeed; gives its result.
    pub(crate) fn does(&self, tool: &str, input: &Value) -> Value {
        let (code, outcome) = self.call(tool, input);
        assert_eq!(code, 0, "{outcome:#}");
        outcome["result"].clone()
    }

    /// A call that must fail; gives its code and what it says.
    pub(crate) fn fails(&self, tool: &str, input: &Value) -> (String, String) {
        let (code, outcome) = self.call(tool, input);
        assert_eq!(code, 1, "{outcome:#}");
        let part = |name: &str| outcome["error"][name].as_str().unwrap().to_owned();
        (part("code"), part("message"))
    }

    /// `haft mcp-servers` with more words.
    pub(crate) fn servers(&self, words: &[&str]) -> Ran {
        self.0.run(&[&["mcp-servers"], words].concat())
    }

    /// How often the server counted something in its home.
    pub(crate) fn counted(&self, what: &str) -> usize {
        let homes = find(&self.0.fixture.data.join("private"), what);
        homes.iter().map(|file| fs::read(file).unwrap().len()).sum()
    }
}

/// The made-up server.
pub(crate) fn server(options: &Value) -> Value {
    json!({ "command": "python3", "args": ["fake.py", options.to_string()] })
}

/// Every file of this name beneath a folder.
fn find(folder: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(find(&path, name));
        } else if path.file_name().is_some_and(|known| known == name) {
            found.push(path);
        }
    }
    found
}
