//! A model that follows a script, in each of the languages that agents speak with models. It also stands where the
//! rest of the world would be, and turns everybody away who wants to go there.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
};

use serde_json::{Value, json};

use crate::support::LIMIT;

/// What a model wants next, from the answers that its tools have given so far; `None` when it is content.
pub(crate) type Script = fn(&[String]) -> Option<Wish>;

/// A tool of haft's, and what to call it with.
pub(crate) struct Wish {
    pub(crate) tool: &'static str,
    pub(crate) input: Value,
}

/// The model, which listens on this machine until the test ends.
pub(crate) struct Model {
    pub(crate) address: SocketAddr,
    /// The tools that it has asked for, as it does.
    pub(crate) wishes: Receiver<&'static str>,
    heard: Arc<Mutex<Heard>>,
}

/// What has been said to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    /// The answers of tools, in the latest conversation.
    pub(crate) answers: Vec<String>,
    /// Whom else somebody wanted to reach.
    pub(crate) outside: Vec<String>,
}

impl Model {
    pub(crate) fn following(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, heard) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Heard::default())));
        let (wish, wishes) = channel();
        let ears = Arc::clone(&heard);
        // It ends with the test process; there is nothing to put away.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (ears, wish) = (Arc::clone(&ears), wish.clone());
                std::thread::spawn(move || converse(stream, script, &ears, &wish));
            }
        });
        Self { address, wishes, heard }
    }

    pub(crate) fn heard(&self) -> Heard {
        self.heard.lock().unwrap().clone()
    }
}

/// One request and its answer.
fn converse(mut stream: TcpStream, script: Script, heard: &Mutex<Heard>, wishes: &Sender<&'static str>) -> Option<()> {
    stream.set_read_timeout(Some(LIMIT)).ok()?;
    let (head, body) = request(&stream)?;
    let target = head.split(' ').nth(1)?;
    let answer = match Language::of(target) {
        Some(language) => {
            let body: Value = serde_json::from_slice(&body).ok()?;
            let answers = language.answers(&body);
            // Agents also ask for a title or a summary, and show no tools then.
            let has_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
            let wish = if has_tools { script(&answers) } else { None };
            if let Some(wish) = &wish {
                let _nobody_waits = wishes.send(wish.tool);
            }
            let number = answers.len();
            if has_tools {
                heard.lock().unwrap().answers = answers;
            }
            let said = language.reply(number, wish);
            format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{said}")
        }
        None => {
            if !target.starts_with('/') {
                heard.lock().unwrap().outside.push(head);
            }
            "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned()
        }
    };
    stream.write_all(answer.as_bytes()).ok()
}

/// The first line of a request, and its body.
fn request(stream: &TcpStream) -> Option<(String, Vec<u8>)> {
    let mut lines = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    lines.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().ok()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    lines.read_exact(&mut body).ok()?;
    Some((first.trim_end().to_owned(), body))
}

/// How an agent and its model speak.
#[derive(Clone, Copy)]
enum Language {
    /// `/chat/completions`, as opencode and most others do.
    Completions,
    /// `/responses`, as Codex does.
    Responses,
    /// `/messages`, as Claude Code does.
    Messages,
}

impl Language {
    fn of(target: &str) -> Option<Self> {
        let path = target.split('?').next().filter(|path| path.starts_with('/'))?;
        match path.rsplit('/').next()? {
            "completions" => Some(Self::Completions),
            "responses" => Some(Self::Responses),
            "messages" => Some(Self::Messages),
            _ => None,
        }
    }

    /// What tools have answered in a conversation.
    fn answers(self, body: &Value) -> Vec<String> {
        let items = |key: &str| body[key].as_array().cloned().unwrap_or_default().into_iter();
        match self {
            Self::Completions => items("messages")
                .filter(|message| message["role"] == "tool")
                .map(|message| plain(&message["content"]))
                .collect(),
            Self::Responses => items("input")
                .filter(|item| item["type"] == "function_call_output")
                .map(|item| plain(&item["output"]))
                .collect(),
            Self::Messages => items("messages")
                .flat_map(|message| message["content"].as_array().cloned().unwrap_or_default())
                .filter(|block| block["type"] == "tool_result")
                .map(|block| plain(&block["content"]))
                .collect(),
        }
    }

    /// The events of one answer.
    fn reply(self, number: usize, wish: Option<Wish>) -> String {
        match self {
            Self::Completions => completion(number, wish),
            Self::Responses => response(number, wish),
            Self::Messages => message(number, wish),
        }
    }
}

/// The text of an answer, which is a string or a list of parts.
fn plain(content: &Value) -> String {
    match content.as_array() {
        Some(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        None => content.as_str().unwrap_or_default().to_owned(),
    }
}

fn completion(number: usize, wish: Option<Wish>) -> String {
    let chunk = |delta: Value, end: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": end});
        let chunk =
            json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    let (delta, end) = match wish {
        Some(Wish { tool, input }) => {
            let function = json!({"name": format!("haft_{tool}"), "arguments": input.to_string()});
            let call = json!({"index": 0, "id": format!("call_{number}"), "type": "function", "function": function});
            (json!({"role": "assistant", "tool_calls": [call]}), "tool_calls")
        }
        None => (json!({"role": "assistant", "content": DONE}), "stop"),
    };
    format!("{}{}data: [DONE]\n\n", chunk(delta, None), chunk(json!({}), Some(end)))
}

fn response(number: usize, wish: Option<Wish>) -> String {
    let id = format!("r{number}");
    let item = match wish {
        Some(Wish { tool, input }) => json!({"type": "function_call", "id": format!("fc_{number}"),
            "call_id": format!("call_{number}"), "namespace": "mcp__haft", "name": tool, "arguments": input.to_string()}),
        None => {
            json!({"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": DONE}]})
        }
    };
    let usage = json!({"input_tokens": 1, "output_tokens": 1, "total_tokens": 2});
    events(&[
        json!({"type": "response.created", "response": {"id": id}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": id, "usage": usage}}),
    ])
}

fn message(number: usize, wish: Option<Wish>) -> String {
    let (block, delta, end) = match wish {
        Some(Wish { tool, input }) => (
            json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": format!("mcp__haft__{tool}"), "input": {}}),
            json!({"type": "input_json_delta", "partial_json": input.to_string()}),
            "tool_use",
        ),
        None => (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": DONE}), "end_turn"),
    };
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    let begun = json!({"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m",
        "stop_reason": null, "stop_sequence": null, "usage": usage});
    events(&[
        json!({"type": "message_start", "message": begun}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": end, "stop_sequence": null}, "usage": usage}),
        json!({"type": "message_stop"}),
    ])
}

fn events(all: &[Value]) -> String {
    all.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())).collect()
}

/// What the model says in the end.
pub(crate) const DONE: &str = "all of it is done";
