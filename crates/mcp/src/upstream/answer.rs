//! What an upstream tool answered, in our own shape.

use haft_runtime::{ErrorCode, Image, ToolError, ToolOutput};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Map, Value, json};

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
    let mut metadata = Map::new();
    if !blocks.others.is_empty() {
        metadata.insert("resources".to_owned(), Value::Array(blocks.others));
    }
    let (content, structured) = match result.structured_content {
        Some(value) if text.is_empty() => (value.to_string(), value),
        Some(value) => (text, value),
        None => (text.clone(), json!({ "text": text })),
    };
    Ok(ToolOutput { content, display_content: None, structured, images: blocks.images, metadata })
}

/// The parts of an answer by what they are.
#[derive(Default)]
struct Blocks {
    texts: Vec<String>,
    images: Vec<Image>,
    /// What a model gets only as a fact: sounds, files, links.
    others: Vec<Value>,
}

impl Blocks {
    fn take(&mut self, block: ContentBlock) {
        if let ContentBlock::Text(text) = block {
            return self.texts.push(text.text);
        }
        if let ContentBlock::Image(image) = block {
            return self.images.push(Image { mime_type: image.mime_type, data: image.data });
        }
        if let ContentBlock::Resource(resource) = &block
            && let ResourceContents::TextResourceContents { text, .. } = &resource.resource
        {
            self.texts.push(text.clone());
        }
        if let ContentBlock::ResourceLink(link) = &block {
            self.texts.push(format!("[{}: {}]", link.name, link.uri));
        }
        self.others.extend(serde_json::to_value(&block).ok());
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
            {"type": "resource_link", "uri": "x://z", "name": "z"},
        ], "structuredContent": {"n": 1}}))
        .unwrap();
        assert_eq!((output.content.as_str(), &output.structured), ("a\nb\n[z: x://z]", &json!({"n": 1})));
        assert_eq!(output.images[0].mime_type, "image/png");
        assert_eq!(output.metadata["resources"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn text_alone_is_also_the_value_and_a_value_alone_also_the_text() {
        let text = answer(json!({"content": [{"type": "text", "text": "hi"}]})).unwrap();
        assert_eq!((text.content.as_str(), text.structured), ("hi", json!({"text": "hi"})));
        let value = answer(json!({"content": [], "structuredContent": {"n": 1}})).unwrap();
        assert_eq!(value.content, r#"{"n":1}"#);
    }

    #[test]
    fn an_error_says_what_the_tool_says() {
        let error = answer(json!({"content": [{"type": "text", "text": "no such branch"}], "isError": true}));
        assert_eq!(error.unwrap_err().message, "no such branch");
        let silent = answer(json!({"content": [], "isError": true})).unwrap_err();
        assert!(silent.message.contains("does not say why"));
    }
}
