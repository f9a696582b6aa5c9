//! The least programs: one that says its lines back, and one that writes files as durably as haft does, with nothing else.

use std::{
    fs,
    io::{BufRead, Read, Write},
    path::Path,
};

use anyhow::{Context, Result};
use rusqlite::{Connection, params};
use serde_json::{Value, json};

/// Says every line back.
pub(crate) fn echo() -> Result<()> {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        output.write_all(line?.as_bytes())?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    Ok(())
}

/// Writes the file that each line asks for. What lies in the pipe at once shares two transactions, as it may in haft: one
/// before the files are touched, one after. What a file was before is kept in a folder of the call.
pub(crate) fn writes(folder: &str) -> Result<()> {
    let folder = Path::new(folder);
    let mut conn = Connection::open(folder.join("least.db"))?;
    conn.pragma_update(None, "journal_mode", "wal")?;
    conn.pragma_update(None, "synchronous", "normal")?;
    conn.execute_batch("create table if not exists calls (id integer primary key, input text, outcome text)")?;
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let (mut pending, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    let mut next: i64 = 0;
    loop {
        let length = input.read(&mut piece)?;
        if length == 0 {
            return Ok(());
        }
        pending.extend_from_slice(&piece[..length]);
        let Some(end) = pending.iter().rposition(|byte| *byte == b'\n') else { continue };
        let lines: Vec<u8> = pending.drain(..=end).collect();
        let requests: Vec<Value> =
            lines[..end].split(|byte| *byte == b'\n').map(serde_json::from_slice).collect::<Result<_, _>>()?;
        let calls: Vec<&Value> = requests.iter().filter(|request| request["method"] == "tools/call").collect();
        let begin = conn.transaction()?;
        for (id, call) in (next..).zip(&calls) {
            begin.prepare_cached("insert into calls values (?, ?, null)")?.execute(params![id, call.to_string()])?;
        }
        begin.commit()?;
        for (id, call) in (next..).zip(&calls) {
            write(&folder.join(id.to_string()), &call["params"]["arguments"])?;
        }
        let end = conn.transaction()?;
        for (id, _) in (next..).zip(&calls) {
            end.prepare_cached("update calls set outcome = 'done' where id = ?")?.execute([id])?;
        }
        end.commit()?;
        next += i64::try_from(calls.len())?;
        for request in requests.iter().filter(|request| request.get("id").is_some()) {
            let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": { "content": [] } });
            writeln!(output, "{answer}")?;
        }
        output.flush()?;
    }
}

/// Lays the new content aside, and exchanges it with what is there.
fn write(aside: &Path, input: &Value) -> Result<()> {
    let path = Path::new(input["path"].as_str().context("a path")?);
    fs::create_dir(aside)?;
    fs::write(aside.join("log"), "begun\n")?;
    fs::write(aside.join("new"), input["content"].as_str().context("a content")?)?;
    if path.exists() {
        fs::rename(path, aside.join("old"))?;
    }
    Ok(fs::rename(aside.join("new"), path)?)
}
