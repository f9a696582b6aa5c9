//! `read_file`

use std::{
    fs::File,
    io::{Read, Seek},
    num::NonZeroU64,
    sync::Arc,
};

use haft_runtime::{ErrorCode, INDIVISIBLE, Image, Stamp, ToolCtx, ToolError, ToolFacts};
use haft_sandbox::{Charset, OpenFile, Root, WorkspacePath, is_text};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::amount::Amount;
use super::{
    encoding::{Encoding, base64},
    hash::sha256,
    media::{self, HEAD},
    moment,
    numbered::numbered,
    window::{self, LineRange, Window},
};
use crate::{
    blocking::StopFlag,
    refusal::{Trying, broke_off, cannot},
    shape::Reads,
    workspaces::Workspaces,
};

/// How many lines come when the caller says nothing.
const LINES: NonZeroU64 = NonZeroU64::new(2000).unwrap();
/// What is not larger is read before another thread would have woken up.
const SMALL: u64 = 128 << 10;
/// The largest file that is given as base64: it is given whole or not at all.
const LARGEST_BASE64: u64 = 256 << 10;
/// The largest file that is read in another encoding than UTF-8.
const LARGEST_DECODED: u64 = 16 << 20;
/// The largest picture that is shown.
const LARGEST_PICTURE: u64 = 5 << 20;

pub(crate) struct ReadFile(pub(crate) Arc<dyn Workspaces>);

/// Read a file: text with line numbers, or a picture. A long file is read in parts: give `offset` and `limit` when you
/// know where to look. Read a file before you edit it. To find files use `glob`, to find lines `grep`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({ "path": "README.md" }))]
pub(crate) struct Input {
    /// Path in the workspace.
    path: String,
    /// First line, from 1.
    offset: Option<NonZeroU64>,
    /// Lines at most; 2000 when left out.
    limit: Option<NonZeroU64>,
    /// `base64` gives the exact bytes, up to 256 KiB.
    #[serde(default)]
    encoding: Encoding,
    /// Show line numbers; they are not part of the file.
    #[serde(default = "yes")]
    line_numbers: bool,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    /// Path relative to the workspace folder.
    path: String,
    /// The exact lines; the whole file in base64 if that was asked for; empty for a binary file, absent for a picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// How `content` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<Encoding>,
    /// How the file itself is encoded, where that is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    charset: Option<String>,
    /// Size of the whole file in bytes.
    size: u64,
    /// When the content last changed, RFC 3339 in UTC.
    #[schemars(with = "String")]
    modified: Timestamp,
    /// The first line in `content`, from 1; absent when there are no lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_line: Option<u64>,
    /// The last line in `content`; before `startLine` when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_line: Option<u64>,
    /// How many lines the file has; absent when it is too large to be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_lines: Option<u64>,
    /// Whether the file goes on after `content`.
    truncated: bool,
    /// Whether the file is not text.
    binary: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'static str>,
    #[serde(skip)]
    view: ContentView,
    /// How many characters can be shown at once.
    #[serde(skip)]
    room: usize,
    #[serde(skip)]
    hard_links: u64,
    #[serde(skip)]
    sha256: Option<String>,
}

/// How the model gets to see the content.
#[derive(Debug)]
enum ContentView {
    Numbered,
    AsItIs,
    Picture(Option<Image>),
    Nothing,
}

impl Reads for ReadFile {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts = ToolFacts::reading("read_file", "filesystem");

    async fn stamp(&self, ctx: &ToolCtx, input: &Input) -> Option<Stamp> {
        let (workspace, path) = (self.0.of(ctx.scope()).ok()?, input.path.clone());
        let looked = workspace.files.stat_inline(ctx, move |root| {
            let place = root.place(&path).trying("read")?;
            root.settled_stamp(&place).trying("read")
        });
        // What cannot be looked at is told by `read`.
        let stamp = looked.await.ok().flatten()?;
        serde_json::to_string(&stamp).ok().map(Stamp)
    }

    async fn read(&self, ctx: &ToolCtx, input: Input) -> Result<Output, ToolError> {
        let (workspace, path) = (self.0.of(ctx.scope())?, input.path.clone());
        let (place, open) = workspace.files.stat_inline(ctx, move |root| opened(root, &path)).await?;
        let room = ctx.room();
        if open.meta.size <= SMALL {
            let unstopped = StopFlag::default();
            return workspace.files.stat_inline(ctx, move |_| read((&place, open), &input, room, &unstopped)).await;
        }
        workspace.files.look(ctx, move |_, stop| read((&place, open), &input, room, stop)).await
    }
}

fn opened(root: &Root, path: &str) -> Result<(WorkspacePath, OpenFile), ToolError> {
    let place = root.place(path).trying("read")?;
    let open = root.open_file(&place).trying("read")?;
    Ok((place, open))
}

fn read(
    (place, mut open): (&WorkspacePath, OpenFile),
    input: &Input,
    room: usize,
    stop: &StopFlag,
) -> Result<Output, ToolError> {
    let head = beginning(&mut open.file, place)?;
    let output = Output::of(place, &open, media::mime_type(place.as_path(), &head), room);
    if input.encoding == Encoding::Base64 {
        return output.with_base64(head, open.file, input);
    }
    match Charset::of(&head) {
        None => output.with_picture(head, open.file),
        Some(_) if media::picture(&head).is_some() => output.with_picture(head, open.file),
        Some(charset) if charset.is_utf8() => {
            let lines = output.with_lines(&head, &open.file, input, stop)?;
            if !lines.binary {
                return Ok(lines);
            }
            // Its beginning could be UTF-8, and what follows is not.
            open.file.rewind().map_err(|err| broke_off("read", &lines.path, &err))?;
            lines.with_decoded_lines(Vec::new(), open.file, input, stop)
        }
        Some(_) => output.with_decoded_lines(head, open.file, input, stop),
    }
}

impl Output {
    fn of(place: &WorkspacePath, open: &OpenFile, mime_type: Option<&'static str>, room: usize) -> Self {
        Self {
            path: place.to_string(),
            content: Some(String::new()),
            encoding: None,
            charset: None,
            size: open.meta.size,
            modified: moment::of(open.meta.modified),
            start_line: None,
            end_line: None,
            total_lines: None,
            truncated: false,
            binary: false,
            mime_type,
            view: ContentView::Nothing,
            room,
            hard_links: open.meta.links,
            sha256: None,
        }
    }

    fn with_lines(self, head: &[u8], file: impl Read, input: &Input, stop: &StopFlag) -> Result<Self, ToolError> {
        let first = input.offset.map_or(1, NonZeroU64::get);
        let wanted = LineRange { first, most: input.limit.unwrap_or(LINES).get(), room: self.room };
        let found = window::read(head.chain(file), self.size, wanted, stop).map_err(|failed| match failed {
            window::WindowError::Io(err) => broke_off("read", &self.path, &err),
            window::WindowError::Stopped(stopped) => stopped,
        })?;
        // The beginning was text, these lines are not: the file is as binary as one that begins with such bytes.
        let Some((content, Window { lines, total, goes_on, .. })) = found.into_text(self.room) else {
            return Ok(Self { binary: true, ..self });
        };
        let whole = first == 1 && !goes_on;
        let hash = whole.then(|| sha256(content.as_bytes()));
        Ok(Self {
            content: Some(content),
            encoding: Some(Encoding::Utf8),
            start_line: Some(first),
            end_line: Some((first - 1).saturating_add(lines)),
            total_lines: total,
            truncated: goes_on,
            view: if input.line_numbers { ContentView::Numbered } else { ContentView::AsItIs },
            sha256: hash,
            ..self
        })
    }

    /// The lines of a file in another encoding, which is read whole for that.
    fn with_decoded_lines(self, head: Vec<u8>, file: File, input: &Input, stop: &StopFlag) -> Result<Self, ToolError> {
        let Some(bytes) = self.whole(head, file, LARGEST_DECODED)? else { return Ok(Self { binary: true, ..self }) };
        let charset = Charset::of(&bytes);
        let Some((charset, text)) = charset.and_then(|charset| Some((charset, charset.decode(&bytes)?))) else {
            return Ok(Self { binary: true, ..self });
        };
        let as_text = Self { binary: false, ..self };
        let lines = as_text.with_lines(text.as_bytes(), std::io::empty(), input, stop)?;
        // What tells a file from another are its own bytes.
        let hash = lines.sha256.is_some().then(|| sha256(&bytes));
        Ok(Self { charset: Some(charset.name()).filter(|_| !charset.is_utf8()), sha256: hash, ..lines })
    }

    fn with_base64(self, head: Vec<u8>, file: File, input: &Input) -> Result<Self, ToolError> {
        if input.offset.is_some() || input.limit.is_some() {
            let why = "`offset` and `limit` count lines of text; leave them out with `encoding` `base64`";
            return Err(cannot(ErrorCode::InvalidArgs, "read", &self.path, why));
        }
        let binary = !is_text(&head);
        let Some(bytes) = self.whole(head, file, LARGEST_BASE64)? else {
            let why = format!(
                "it has {} bytes, base64 is limited to {LARGEST_BASE64}; `shell_exec` can cut a part out of it",
                self.size
            );
            return Err(cannot(ErrorCode::TooLarge, "read", &self.path, &why).with("limit", LARGEST_BASE64));
        };
        let hash = sha256(&bytes);
        Ok(Self {
            content: Some(base64(&bytes)),
            encoding: Some(Encoding::Base64),
            binary,
            view: ContentView::AsItIs,
            sha256: Some(hash),
            ..self
        })
    }

    /// A picture is shown; of any other binary file only the name is told.
    fn with_picture(self, head: Vec<u8>, file: File) -> Result<Self, ToolError> {
        let Some(mime_type) = media::picture(&head) else {
            return Ok(Self { binary: true, ..self });
        };
        let bytes = self.whole(head, file, LARGEST_PICTURE)?;
        let image = bytes.map(|bytes| Image { mime_type: mime_type.to_owned(), data: base64(&bytes) });
        // Clients that show only the value would show an empty text in the place of the picture.
        let content = if image.is_some() { None } else { self.content.clone() };
        let view = image.map_or(ContentView::Nothing, |image| ContentView::Picture(Some(image)));
        Ok(Self { binary: true, content, view, ..self })
    }

    /// The whole file, or nothing when it is larger than `limit`.
    fn whole(&self, mut head: Vec<u8>, file: File, limit: u64) -> Result<Option<Vec<u8>>, ToolError> {
        if self.size > limit {
            return Ok(None);
        }
        let left = limit + 1 - head.len() as u64;
        file.take(left).read_to_end(&mut head).map_err(|err| broke_off("read", &self.path, &err))?;
        Ok(Some(head).filter(|bytes| bytes.len() as u64 <= limit))
    }

    fn text(&self) -> &str {
        self.content.as_deref().unwrap_or_default()
    }

    fn lines(&self, first: u64) -> String {
        if !self.text().is_empty() {
            let text = numbered(self.text().split_inclusive('\n'), first);
            return format!("{text}{}", self.continuation());
        }
        match self.total_lines {
            Some(total) if total > 0 => {
                format!(
                    "{} has {total} lines, so there is nothing at offset {first}. Use an offset up to {total}.",
                    self.path
                )
            }
            Some(_) | None => format!("{} is empty.", self.path),
        }
    }

    fn continuation(&self) -> String {
        let Some(last) = self.end_line.filter(|_| self.truncated) else { return String::new() };
        let total = self.total_lines.map_or_else(String::new, |total| format!(" of {total}"));
        if !self.text().ends_with('\n') {
            return format!(
                "\n(line {last}{total} is too long to be shown whole; `shell_exec` with `cut -c` reads on)"
            );
        }
        format!("\n(line {last}{total}; read on with offset={})", last + 1)
    }

    fn only_told(&self) -> String {
        let mime_type = self.mime_type.unwrap_or("application/octet-stream");
        let size = Amount(self.size, "byte");
        format!("Binary file {} ({mime_type}, {size}). Use encoding=base64.", self.path)
    }
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        match &self.view {
            ContentView::Numbered => self.lines(self.start_line.unwrap_or(1)),
            ContentView::AsItIs => format!("{}{}", self.text(), self.continuation()),
            ContentView::Picture(_) => {
                let size = Amount(self.size, "byte");
                format!("Picture {} ({}, {size}).", self.path, self.mime_type.unwrap_or_default())
            }
            ContentView::Nothing => self.only_told(),
        }
    }

    fn metadata(&self) -> Map<String, Value> {
        let mut facts = Map::new();
        facts.insert("path".to_owned(), json!(self.path));
        if self.hard_links > 1 {
            facts.insert("hard_links".to_owned(), json!(self.hard_links));
        }
        if let Some(sha256) = &self.sha256 {
            facts.insert("sha256".to_owned(), json!(sha256));
        }
        if self.encoding == Some(Encoding::Base64) {
            // Half of it would be worth nothing.
            facts.insert(INDIVISIBLE.to_owned(), json!(true));
        }
        facts
    }

    fn images(&mut self) -> Vec<Image> {
        match &mut self.view {
            ContentView::Picture(image) => image.take().into_iter().collect(),
            ContentView::Numbered | ContentView::AsItIs | ContentView::Nothing => Vec::new(),
        }
    }
}

fn beginning(file: &mut File, place: &WorkspacePath) -> Result<Vec<u8>, ToolError> {
    let mut head = Vec::with_capacity(HEAD);
    file.take(HEAD as u64).read_to_end(&mut head).map_err(|err| broke_off("read", &place.to_string(), &err))?;
    Ok(head)
}
