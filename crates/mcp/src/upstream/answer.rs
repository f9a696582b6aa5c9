//! What an upstream tool answered, in our own shape.

use haft_runtime::{Audio, Body, Embedded, ErrorCode, Image, ToolError, ToolOutput};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Map, Value, json};

/// The longest text that a client is handed as a file.
const LONGEST_EMBEDDED: usize = 30_000;

/// The output, or the error that the tool tells of itself.
pub(super) fn read(result: CallToolResult) -> Result<ToolOutput, ToolError> {
    let mut blocks = Blocks::default();
    result.content.into_iter().for_each(|block| blocks.take(block));
    let text = blocks.texts.join("\n");
    if result.is_error == Some(true) {
        let said = if text.is_empty() { result.structured_content.map(|value| value.to_string()) } else { Some(text) };
        let said = said.unwrap_or_else(|| "it failed and does not say why".to_owned());
        return Err(ToolError::new(ErrorCode::ExecutionError, said));
    }
    let shows_something = blocks.shows_something();
    let mut metadata = Map::new();
    if !blocks.links.is_empty() {
        metadata.insert("links".to_owned(), Value::Array(blocks.links));
    }
    let (content, structured) = match result.structured_content {
        Some(value) if text.is_empty() => (value.to_string(), value),
        Some(value) => (text, value),
        // A client that shows the value in the place of everything else would show an empty text.
        None if text.is_empty() && shows_something => (text, Value::Null),
        None => (text.clone(), json!({ "text": text })),
    };
    let Blocks { images, audio, resources, .. } = blocks;
    let structured = structured.into();
    Ok(ToolOutput { content, structured, images, audio, resources, metadata, ..ToolOutput::default() })
}

/// The parts of an answer by what they are.
#[derive(Default)]
struct Blocks {
    texts: Vec<String>,
    images: Vec<Image>,
    audio: Vec<Audio>,
    resources: Vec<Embedded>,
    /// What can be followed, as facts.
    links: Vec<Value>,
}

impl Blocks {
    /// Whether there is something to see or to hear, or a file.
    fn shows_something(&self) -> bool {
        !(self.images.is_empty() && self.audio.is_empty() && self.resources.is_empty())
    }

    fn take(&mut self, block: ContentBlock) {
        if let ContentBlock::Text(text) = block {
            self.texts.push(text.text);
        } else if let ContentBlock::Image(image) = block {
            self.images.push(Image { mime_type: image.mime_type, data: image.data });
        } else if let ContentBlock::Audio(audio) = block {
            self.audio.push(Audio { mime_type: audio.mime_type, data: audio.data });
        } else if let ContentBlock::Resource(resource) = block {
            self.embed(resource.resource);
        } else if let ContentBlock::ResourceLink(link) = &block {
            self.texts.push(format!("[{}: {}]", link.name, link.uri));
            self.links.extend(serde_json::to_value(&block).ok());
        }
    }

    fn embed(&mut self, contents: ResourceContents) {
        let (uri, mime_type, body) =
            if let ResourceContents::TextResourceContents { uri, mime_type, text, .. } = contents {
                // What is long is shortened and kept like any text.
                if text.len() > LONGEST_EMBEDDED {
                    return self.texts.push(text);
                }
                (uri, mime_type, Body::Text(text))
            } else if let ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } = contents {
                (uri, mime_type, Body::Blob(blob))
            } else {
                return;
            };
        self.resources.push(Embedded { uri, mime_type, body });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::read;

    fn answer(value: Value) -> Result<haft_runtime::ToolOutput, haft_runtime::ToolError> {
        read(serde_json::from_value(value).unwrap())
    }

    #[test]
    fn every_part_finds_its_place() {
        let output = answer(json!({"content": [
            {"type": "text", "text": "a"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "x://y", "text": "b"}},
            {"type": "resource", "resource": {"uri": "x://b", "blob": "AAAA", "mimeType": "application/zip"}},
            {"type": "audio", "data": "BBBB", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "x://z", "name": "z"},
        ], "structuredContent": {"n": 1}}))
        .unwrap();
        assert_eq!((output.content.as_str(), &*output.structured), ("a\n[z: x://z]", &json!({"n": 1})));
        assert_eq!(output.images[0].mime_type, "image/png");
        assert_eq!(output.audio[0].data, "BBBB");
        assert_eq!(output.metadata["links"].as_array().unwrap().len(), 1);
        assert_eq!(
            json!(output.resources),
            json!([
                {"uri": "x://y", "text": "b"},
                {"uri": "x://b", "mimeType": "application/zip", "blob": "AAAA"},
            ])
        );
    }

    #[test]
    fn text_alone_is_also_the_value_and_a_value_alone_also_the_text() {
        let text = answer(json!({"content": [{"type": "text", "text": "hi"}]})).unwrap();
        assert_eq!((text.content.as_str(), &*text.structured), ("hi", &json!({"text": "hi"})));
        let value = answer(json!({"content": [], "structuredContent": {"n": 1}})).unwrap();
        assert_eq!(value.content, r#"{"n":1}"#);
    }

    #[test]
    fn a_picture_alone_has_no_value_that_could_hide_it() {
        let picture = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
        let alone = answer(json!({"content": [picture]})).unwrap();
        assert!(alone.structured.is_null() && alone.content.is_empty(), "{alone:?}");
        let told = answer(json!({"content": [picture, {"type": "text", "text": "a cat"}]})).unwrap();
        assert_eq!(&*told.structured, &json!({"text": "a cat"}));
    }

    #[test]
    fn an_error_says_what_the_tool_says() {
        let error = answer(json!({"content": [{"type": "text", "text": "no such branch"}], "isError": true}));
        assert_eq!(error.unwrap_err().message, "no such branch");
        let silent = answer(json!({"content": [], "isError": true})).unwrap_err();
        assert!(silent.message.contains("does not say why"));
    }
}
