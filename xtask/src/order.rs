//! Which functions the program uses first, so that the linker can put them side by side.
//!
//! The kernel maps a program in pieces of 64 KiB around each page that is touched. What every call uses is a fifth of the
//! code; strewn over all of it, it brings nearly everything into memory.

use std::{
    collections::{BTreeMap, HashSet},
    env, fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{self, Command, ExitCode, Stdio},
};

use anyhow::{Context, Result, ensure};

use crate::cargo;

/// What the linker reads; `crates/haft/build.rs` hands it over.
const ORDER: &str = "crates/haft/order.txt";

/// Calls by command line, the most usual first.
const CALLS: &[&[&str]] = &[
    &["call", "shell_exec", "--command", "yes 'a line of text' | head -c 200000000"],
    &["call", "shell_exec", "--command", "seq 100000; echo >&2; touch made", "--auto-approve", "all"],
    &["call", "read_file", "--path", "first.txt"],
    &["call", "edit_file", r#"{"path":"first.txt","old":"one","new":"two"}"#, "--auto-approve", "all"],
    &["log"],
    &["tools"],
];

/// Calls over the protocol: the name of a tool and its arguments.
const ASKED: &[(&str, &str)] = &[
    ("read_file", r#"{"path":"first.txt"}"#),
    ("edit_file", r#"{"path":"first.txt","old":"two","new":"three"}"#),
    ("write_file", r#"{"path":"second.txt","content":"text\n"}"#),
    ("list_directory", r#"{"path":"."}"#),
    ("glob", r#"{"pattern":"**/*.txt"}"#),
    ("grep", r#"{"pattern":"text"}"#),
    ("shell_exec", r#"{"command":"git init -q . && git add . && git commit -qm first; seq 100000"}"#),
    ("git_status", "{}"),
    ("git_diff", "{}"),
    ("git_log", "{}"),
    ("move_file", r#"{"from":"second.txt","to":"third.txt"}"#),
    ("delete_file", r#"{"path":"third.txt"}"#),
];

/// Links the program once more, watches it work, and writes down what it used.
pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    // A name that was never used: cargo links anew when it is told another place for the map.
    let folder = target.join(format!("order-{}", process::id()));
    // Where this is, a workspace begins: the folder of this project may lie above.
    fs::create_dir_all(folder.join("work/.haft"))?;
    fs::write(folder.join("work/first.txt"), "one\ntext\n")?;
    let map = folder.join("map");
    let linked = ["-C".to_owned(), format!("link-args=-Wl,--no-demangle,-Map={}", map.display())];
    succeed(cargo(root).args(["rustc", "--release", "--locked", "-p", "haft", "--bin", "haft", "--"]).args(linked))?;
    let tracer = folder.join("trace.so");
    let source = root.join("xtask/src/order/trace.c");
    succeed(Command::new("cc").args(["-O1", "-Wall", "-shared", "-fPIC", "-o"]).arg(&tracer).arg(source))?;
    let functions = functions(&fs::read_to_string(&map)?);
    let addresses: Vec<String> = functions.keys().map(|address| format!("{address:x}\n")).collect();
    fs::write(folder.join("functions"), addresses.concat())?;

    let traced = || {
        let mut haft = Command::new(target.join("release/haft"));
        haft.current_dir(folder.join("work")).env("HAFT_DATA_DIR", folder.join("data")).env("LD_PRELOAD", &tracer);
        haft.env("TRACE_FUNCTIONS", folder.join("functions")).env("TRACE_USED", folder.join("used"));
        haft
    };
    for call in CALLS {
        succeed(traced().args(*call).stdin(Stdio::null()).stdout(Stdio::null()))?;
    }
    ask(traced().args(["mcp", "--auto-approve", "all"]))?;

    let used = fs::read(folder.join("used"))?;
    let met = used.as_chunks::<8>().0.iter().map(|address| u64::from_ne_bytes(*address));
    let mut seen = HashSet::new();
    let names: Vec<&str> = met
        .filter(|address| seen.insert(*address))
        .filter_map(|address| Some(functions.get(&address)?.as_str()))
        .collect();
    fs::write(root.join(ORDER), names.join("\n") + "\n")?;
    fs::remove_dir_all(folder)?;
    println!("{} of {} functions, in {ORDER}", names.len(), functions.len());
    Ok(ExitCode::SUCCESS)
}

/// Every function of the linker's map, by its address. A line gives two addresses, a size and an alignment; the names of
/// sections of the program, of what they are made of, and of functions stand eight columns further in each.
fn functions(map: &str) -> BTreeMap<u64, String> {
    let mut functions = BTreeMap::new();
    let mut is_code = false;
    for line in map.lines() {
        let mut rest = line;
        let mut column = || {
            let (word, after) = rest.trim_start().split_once(' ')?;
            rest = after;
            Some(word)
        };
        let (Some(address), Some(_), Some(size), Some(_)) = (column(), column(), column(), column()) else { continue };
        let name = rest.trim_start();
        match rest.len() - name.len() {
            0 => is_code = name == ".text",
            16 if is_code && size != "0" => {
                if let Ok(address) = u64::from_str_radix(address, 16) {
                    functions.entry(address).or_insert_with(|| name.to_owned());
                }
            }
            _ => {}
        }
    }
    functions
}

/// Puts one question after the other to a server, and waits for each answer.
fn ask(server: &mut Command) -> Result<()> {
    let mut child = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = child.stdin.take().context("no input")?;
    let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
    let mut say = |id: usize, method: &str, parameters: &str| -> Result<String> {
        writeln!(input, r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{parameters}}}"#)?;
        loop {
            let line = lines.next().context("the server has ended")??;
            if line.contains(&format!(r#""id":{id}"#)) {
                return Ok(line);
            }
        }
    };
    let hello = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"order","version":"1"}}"#;
    say(1, "initialize", hello)?;
    say(2, "tools/list", "{}")?;
    for (number, (tool, arguments)) in ASKED.iter().enumerate() {
        let said = say(number + 3, "tools/call", &format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#))?;
        ensure!(!said.contains(r#""isError":true"#) && !said.contains(r#""error""#), "{tool}: {said}");
    }
    drop(input);
    ensure!(child.wait()?.success(), "the server failed");
    Ok(())
}

fn succeed(command: &mut Command) -> Result<()> {
    let ended = command.status().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(ended.success(), "it failed: {command:?}");
    Ok(())
}
