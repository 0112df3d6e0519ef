//! Converts a tool's result into texts and files for the model. `content` reads what rmcp cannot.

use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents, ServerResult};

use super::{Output, content, failure::CallFailure, transport_failure::TransportFailure};
use crate::tools::returned::{ResultPart, ReturnedData, ReturnedFile, within_line};

/// Returns the output of a call. Fails if the result reports a failure, if its structured content has more bytes
/// than `text_bytes`, or if its kind is not supported.
pub fn read(result: ServerResult, text_bytes: usize) -> Result<Output, CallFailure> {
    match result {
        ServerResult::CallToolResult(result) => read_content(result, text_bytes),
        ServerResult::InputRequiredResult(_) => {
            Err(CallFailure::malformed("the tool asks for input, which is not supported"))
        }
        ServerResult::CreateTaskResult(_) => {
            Err(CallFailure::malformed("the tool continues as a task, which is not supported"))
        }
        other => {
            let result = serde_json::to_value(other).ok().and_then(|result| content::read(&result));
            let no_content = || CallFailure::malformed("it has no content, or content of an unknown kind");
            read_content(result.ok_or_else(no_content)?, text_bytes)
        }
    }
}

/// Returns the content, and then what the structured content says beyond it.
fn read_content(result: CallToolResult, text_bytes: usize) -> Result<Output, CallFailure> {
    let is_error = result.is_error == Some(true);
    let beyond = result.structured_content.and_then(|structured| content::beyond(structured, &result.content));
    let beyond = beyond.map(|beyond| beyond.to_string());
    // Structured content may have had text in the place of base64.
    if beyond.as_ref().is_some_and(|beyond| beyond.len() > text_bytes) {
        return Err(CallFailure::Transport(TransportFailure::too_much_text(text_bytes)));
    }
    let parts = result.content.into_iter().map(part).chain(beyond.map(ResultPart::Text)).collect();
    match (is_error, parts) {
        (false, parts) => Ok(Output { parts, memory: None }),
        (true, parts) => Err(CallFailure::Tool(match in_words(parts) {
            text if text.is_empty() => "the tool failed without a message".into(),
            text => text,
        })),
    }
}

/// Returns the parts as one text, in which files are only described.
pub fn in_words(parts: Vec<ResultPart>) -> String {
    let words = parts.into_iter().map(|part| match part {
        ResultPart::Text(text) => text,
        ResultPart::File(file) => format!("[{}]", file.described()),
    });
    words.collect::<Vec<_>>().join("\n")
}

fn part(block: ContentBlock) -> ResultPart {
    ResultPart::Text(match block {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => return file("image", None, Some(image.mime_type), image.data),
        ContentBlock::Audio(audio) => return file("audio", None, Some(audio.mime_type), audio.data),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                format!("[resource {}]\n{text}", within_line(&uri))
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                return file("resource", Some(uri), mime_type, blob);
            }
            _ => "[resource of an unknown kind]".into(),
        },
        ContentBlock::ResourceLink(link) => link_in_words(&link),
        _ => "[content of an unknown kind]".into(),
    })
}

/// Returns all that a model needs to choose among links.
fn link_in_words(link: &Resource) -> String {
    let name = Some(&link.name).filter(|name| !name.is_empty() && **name != link.uri);
    let facts =
        [Some(&link.uri), name, link.title.as_ref().filter(|title| **title != link.name), link.mime_type.as_ref()];
    let facts: Vec<&str> = facts.into_iter().flatten().map(String::as_str).collect();
    let description = link.description.as_ref().map(|description| format!(": {description}")).unwrap_or_default();
    format!("[resource link {}]", within_line(&format!("{}{description}", facts.join(", "))))
}

fn file(kind: &'static str, uri: Option<String>, media_type: Option<String>, data: String) -> ResultPart {
    ResultPart::File(ReturnedFile { kind, uri, media_type, data: ReturnedData::Base64(data) })
}
