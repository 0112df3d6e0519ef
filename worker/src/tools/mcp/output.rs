//! What a tool's result is for the model: text.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, ServerResult};

use super::{Output, failure::CallFailure};

/// The output of a call, or the failure that its result stands for.
pub fn read(result: ServerResult) -> Result<Output, CallFailure> {
    match result {
        ServerResult::CallToolResult(result) if result.is_error == Some(true) => match text(&result) {
            text if text.is_empty() => Err(CallFailure::Tool("the tool has failed, and does not say why".into())),
            text => Err(CallFailure::Tool(text)),
        },
        ServerResult::CallToolResult(result) => Ok(Output { text: text(&result) }),
        ServerResult::InputRequiredResult(_) => {
            Err(CallFailure::malformed("the tool asks for input, which it cannot get"))
        }
        ServerResult::CreateTaskResult(_) => {
            Err(CallFailure::malformed("the tool runs on as a task, which is not supported"))
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

/// One part. What is no text is described, since only the model's words about it would reach anybody.
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

/// Bytes that a base64 text stands for.
fn decoded_size(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}
