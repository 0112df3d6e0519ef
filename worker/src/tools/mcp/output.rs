//! Converts a tool's result into texts and files for the model.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, ServerResult};

use super::{Output, failure::CallFailure};
use crate::tools::returned::{ResultPart, ReturnedData, ReturnedFile};

/// Returns the output of a call. Fails if the result reports a failure, or if its kind is not supported.
pub fn read(result: ServerResult) -> Result<Output, CallFailure> {
    match result {
        ServerResult::CallToolResult(result) if result.is_error == Some(true) => match in_words(parts(result)) {
            text if text.is_empty() => Err(CallFailure::Tool("the tool failed without a message".into())),
            text => Err(CallFailure::Tool(text)),
        },
        ServerResult::CallToolResult(result) => Ok(Output { parts: parts(result) }),
        ServerResult::InputRequiredResult(_) => {
            Err(CallFailure::malformed("the tool asks for input, which is not supported"))
        }
        ServerResult::CreateTaskResult(_) => {
            Err(CallFailure::malformed("the tool continues as a task, which is not supported"))
        }
        _ => Err(CallFailure::malformed("it has no content, or content of an unknown kind")),
    }
}

fn parts(result: CallToolResult) -> Vec<ResultPart> {
    let has_text = result.content.iter().any(|block| block.as_text().is_some());
    let structured = result.structured_content.filter(|_| !has_text);
    let structured = structured.map(|content| ResultPart::Text(content.to_string()));
    structured.into_iter().chain(result.content.into_iter().map(part)).collect()
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
            ResourceContents::TextResourceContents { uri, text, .. } => format!("[resource {uri}]\n{text}"),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                return file("resource", Some(uri), mime_type, blob);
            }
            _ => "[resource of an unknown kind]".into(),
        },
        ContentBlock::ResourceLink(link) => format!("[resource link {}]", link.uri),
        _ => "[content of an unknown kind]".into(),
    })
}

fn file(kind: &'static str, uri: Option<String>, media_type: Option<String>, data: String) -> ResultPart {
    ResultPart::File(ReturnedFile { kind, uri, media_type, data: ReturnedData::Base64(data) })
}
