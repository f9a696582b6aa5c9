//! Plays every `cases/*.md`: files, calls, and what must come out. `UPDATE_CASES=1` rewrites what came out.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use haft::{
    house::{self, House},
    settings::Settings,
};
use haft_runtime::{AutoApprove, CallRequest};
use haft_store::{Durability, Store};
use haft_tools::LanguageServer;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn every_case_comes_out_as_written() {
    let update = std::env::vars_os().any(|(name, _)| name == "UPDATE_CASES");
    let mut wrong = Vec::new();
    for file in case_files() {
        let text = fs::read_to_string(&file).unwrap();
        let played = play_file(&text).await;
        if update {
            fs::write(&file, played).unwrap();
        } else if played != text {
            wrong.push(format!("{}\n{}", file.display(), first_difference(&text, &played)));
        }
    }
    assert!(wrong.is_empty(), "{}\nread the difference, then UPDATE_CASES=1 rewrites", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_has_a_case_file_and_every_case_file_a_tool() {
    let bench = Bench::new().await;
    let registry = &bench.house.tools();
    // Listed or not.
    let tools = registry.names().into_iter().filter(|name| registry.get(name).unwrap().spec().name == *name);
    let tools: Vec<String> = tools.collect();
    let files: Vec<String> =
        case_files().iter().map(|file| file.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(files, tools);
}

fn case_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// A house in a folder of its own.
struct Bench {
    house: House,
    workspace: tempfile::TempDir,
    _data: tempfile::TempDir,
    calls: Vec<String>,
}

impl Bench {
    async fn new() -> Self {
        let (workspace, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let program = env!("CARGO_BIN_EXE_haft").into();
        let mut settings = Settings { program, ..Settings::defaults(data.path().join("data")) };
        let fake = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lsp");
        settings.lsp.servers.push(LanguageServer {
            language: "fake".to_owned(),
            command: vec!["/usr/bin/python3".to_owned(), fake.join("fake.py").display().to_string()],
            extensions: vec!["fake".to_owned()],
            init_options: Value::Null,
            settings: Value::Null,
        });
        settings.sandbox.read.push(fake);
        let store = Store::open(&settings.data, Durability::Normal).await.unwrap();
        let folder = workspace.path().canonicalize().unwrap();
        let house = house::living(settings, store, &folder).await.unwrap();
        Self { house, workspace, _data: data, calls: Vec::new() }
    }

    fn put(&self, path: &str, content: &str) {
        let path = self.workspace.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// `tool {json}`; `$1` stands for the id of the first call of the case.
    async fn call(&mut self, block: &str, mode: AutoApprove) -> String {
        let (tool, input) = block.trim().split_once(char::is_whitespace).unwrap();
        let mut input = input.to_owned();
        for (at, id) in self.calls.iter().enumerate() {
            input = input.replace(&format!("${}", at + 1), id);
        }
        let mut request = CallRequest::new(self.house.caller.clone(), tool, serde_json::from_str(&input).unwrap());
        request.auto_approve = mode;
        let outcome = self.house.pipeline.call(request).await;
        self.calls.push(outcome.tool_call_id.to_string());
        let mut value = serde_json::to_value(outcome).unwrap();
        if let Some(structured) = value.pointer("/result/structured") {
            let published = self.house.tools().get(tool).unwrap();
            assert!(published.may_give(structured), "{tool} does not publish {structured}");
        }
        self.make_steady(&mut value);
        serde_json::to_string_pretty(&value).unwrap() + "\n"
    }

    /// What differs from run to run is taken out or named.
    fn make_steady(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for name in ["started_at", "finished_at", "execution_time_ms", "durationMs", "duration"] {
                    fields.shift_remove(name);
                }
                for name in ["modified", "expiresAt", "startedAt", "startedMs"] {
                    if fields.contains_key(name) {
                        fields.insert(name.to_owned(), json!("(a time)"));
                    }
                }
                if fields.contains_key("pid") {
                    fields.insert("pid".to_owned(), json!("(a number)"));
                }
                fields.values_mut().for_each(|inner| self.make_steady(inner));
            }
            Value::Array(items) => items.iter_mut().for_each(|inner| self.make_steady(inner)),
            Value::String(text) => {
                for (at, id) in self.calls.iter().enumerate() {
                    *text = text.replace(id, &format!("${}", at + 1));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Every file of the workspace with its content.
    fn files(&self) -> String {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.workspace.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let shown = path.strip_prefix(self.workspace.path()).unwrap().display().to_string();
                if path.is_dir() && !path.is_symlink() {
                    found.insert(shown + "/", String::new());
                    folders.push(path);
                } else {
                    found.insert(shown, fs::read_to_string(&path).unwrap_or_else(|_| "(not text)".into()));
                }
            }
        }
        found.iter().fold(String::new(), |text, (path, content)| format!("{text}{path} {content:?}\n"))
    }
}

async fn play_file(text: &str) -> String {
    let mut played = String::new();
    for (at, case) in text.split("\n## ").enumerate() {
        if at > 0 {
            played.push_str("\n## ");
        }
        played.push_str(&play(case).await);
    }
    played
}

/// Plays one case: `file:` blocks are laid out, `call` blocks are called, `outcome` and `files` blocks are written anew.
async fn play(case: &str) -> String {
    let mut bench = Bench::new().await;
    let mut played = String::new();
    let mut outcome = String::new();
    let mut rest = case;
    while let Some((before, after)) = rest.split_once("```") {
        let (tag, body) = after.split_once('\n').unwrap();
        let (body, tail) = body.split_once("```").unwrap();
        let body = match tag {
            "call" => {
                outcome = bench.call(body, AutoApprove::Everything).await;
                body.to_owned()
            }
            "call, asked" => {
                outcome = bench.call(body, AutoApprove::Reads).await;
                body.to_owned()
            }
            "outcome" => outcome.clone(),
            "files" => bench.files(),
            file => {
                bench.put(file.strip_prefix("file:").unwrap_or_else(|| panic!("no such block: {file}")), body);
                body.to_owned()
            }
        };
        played.push_str(&format!("{before}```{tag}\n{body}```"));
        rest = tail;
    }
    played + rest
}

fn first_difference(expected: &str, played: &str) -> String {
    let lines = expected.lines().zip(played.lines()).enumerate();
    let different = lines.into_iter().find(|(_, (old, new))| old != new);
    different.map_or_else(
        || "one is longer than the other".to_owned(),
        |(at, (old, new))| format!("line {}\n  written: {old}\n  came out: {new}", at + 1),
    )
}
