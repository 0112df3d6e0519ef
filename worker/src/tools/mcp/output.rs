//! Converts a tool's result into texts and files for the model.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, ServerResult};

use super::{Output, failure::CallFailure, transport_failure::TransportFailure};
use crate::tools::returned::{ResultPart, ReturnedData, ReturnedFile};

/// Returns the output of a call. Fails if the result reports a failure, if its texts have more bytes than `text_bytes`, or if
/// its kind is not supported.
pub fn read(result: ServerResult, text_bytes: usize) -> Result<Output, CallFailure> {
    match result {
        ServerResult::CallToolResult(result) => {
            let (is_error, parts) = (result.is_error == Some(true), parts(result));
            // Structured content may have had text in the place of base64.
            let texts = parts.iter().map(|part| match part {
                ResultPart::Text(text) => text.len(),
                ResultPart::File(_) => 0,
            });
            if texts.sum::<usize>() > text_bytes {
                return Err(CallFailure::Transport(TransportFailure::too_much_text(text_bytes)));
            }
            match (is_error, parts) {
                (false, parts) => Ok(Output { parts, memory: None }),
                (true, parts) => Err(CallFailure::Tool(match in_words(parts) {
                    text if text.is_empty() => "the tool failed without a message".into(),
                    text => text,
                })),
            }
        }
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
