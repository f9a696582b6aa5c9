//! A session with an MCP server over standard input and output.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts the programs that it measures")]

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::memory;

/// A server that was greeted.
pub(super) struct Session {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    number: usize,
}

impl Session {
    /// The session, and how long it took until the first answer.
    pub(super) fn start(command: &[String]) -> Result<(Self, Duration)> {
        let begun = Instant::now();
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdin = child.stdin.take().context("no standard input")?;
        let stdout = BufReader::new(child.stdout.take().context("no standard output")?);
        let mut session = Self { child, stdin, stdout, number: 0 };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" },
        });
        session.send("initialize", &hello)?;
        session.answer()?;
        let took = begun.elapsed();
        session.stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")?;
        Ok((session, took))
    }

    fn send(&mut self, method: &str, params: &Value) -> Result<()> {
        self.number += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.number, "method": method, "params": params });
        Ok(self.stdin.write_all(format!("{request}\n").as_bytes())?)
    }

    /// The next answer; what is told meanwhile is passed over.
    fn answer(&mut self) -> Result<Value> {
        loop {
            let mut line = String::new();
            ensure!(self.stdout.read_line(&mut line)? > 0, "the server has gone");
            let answer: Value = serde_json::from_str(&line)?;
            if answer.get("id").is_some() && answer.get("method").is_none() {
                return Ok(answer);
            }
        }
    }

    pub(super) fn call(&mut self, tool: &str, input: &Value) -> Result<Duration> {
        let begun = Instant::now();
        self.send("tools/call", &json!({ "name": tool, "arguments": input }))?;
        let answer = self.answer()?;
        let took = begun.elapsed();
        ensure!(answer["result"]["isError"] != true && answer.get("error").is_none(), "{tool}: {answer}");
        Ok(took)
    }

    /// Calls a second with so many under way: whenever one is answered, the next is sent.
    pub(super) fn many(
        &mut self,
        count: usize,
        at_once: usize,
        tool: &str,
        input: &dyn Fn(usize) -> Value,
    ) -> Result<f64> {
        let begun = Instant::now();
        for lap in 0..count + at_once {
            if lap >= at_once {
                self.answer()?;
            }
            if lap < count {
                self.send("tools/call", &json!({ "name": tool, "arguments": input(lap) }))?;
            }
        }
        Ok(count as f64 / begun.elapsed().as_secs_f64())
    }

    /// How much memory it holds for itself, in MiB.
    pub(super) fn memory(&self) -> Result<f64> {
        let kib = memory::private(self.child.id()).context("the server is gone")?;
        Ok(kib as f64 / 1024.0)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // It is only in the way now.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}
