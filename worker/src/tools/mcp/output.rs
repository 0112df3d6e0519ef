//! Converts a tool's result into text for the model.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, ServerResult};

use super::{Output, failure::CallFailure};

/// Returns the output of a call. Fails if the result reports a failure, or if its kind is not supported.
pub fn read(result: ServerResult) -> Result<Output, CallFailure> {
    match result {
        ServerResult::CallToolResult(result) if result.is_error == Some(true) => match text(&result) {
            text if text.is_empty() => Err(CallFailure::Tool("the tool failed without a message".into())),
            text => Err(CallFailure::Tool(text)),
        },
        ServerResult::CallToolResult(result) => Ok(Output { text: text(&result) }),
        ServerResult::InputRequiredResult(_) => {
            Err(CallFailure::malformed("the tool asks for input, which is not supported"))
        }
        ServerResult::CreateTaskResult(_) => {
            Err(CallFailure::malformed("the tool continues as a task, which is not supported"))
        }
        _ => Err(CallFailure::malformed("it has no content, or content of an unknown kind")),
    }
}

fn text(result: &CallToolResult) -> String {
    let mut parts: Vec<String> = result.content.iter().map(part).collect();
    let has_text = result.content.iter().any(|block| block.as_text().is_some());
    if let (false, Some(structured)) = (has_text, &result.structured_content) {
        parts.insert(0, structured.to_string());
    }
    parts.join("\n")
}

/// Returns one part as text. Content that is no text is only described, because the model passes on nothing but text.
fn part(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[image {}, {} bytes]", image.mime_type, decoded_size(&image.data)),
        ContentBlock::Audio(audio) => format!("[audio {}, {} bytes]", audio.mime_type, decoded_size(&audio.data)),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("[resource {uri}]\n{text}"),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let kind = mime_type.as_deref().unwrap_or("of unknown type");
                format!("[resource {uri}, {kind}, {} bytes]", decoded_size(blob))
            }
            _ => "[resource of an unknown kind]".into(),
        },
        ContentBlock::ResourceLink(link) => format!("[resource link {}]", link.uri),
        _ => "[content of an unknown kind]".into(),
    }
}

/// Returns the number of bytes that a base64 text encodes.
fn decoded_size(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}
