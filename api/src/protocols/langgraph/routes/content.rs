//! The content of a human's message, as LangChain's clients write it.

use serde_json::Value;

use crate::{problem::Problem, thread::UiPart};

/// Returns the texts and files of a message. Fails for a block that this server does not take.
pub fn parts_of(content: Value) -> Result<Vec<UiPart>, Problem> {
    match content {
        Value::String(text) => Ok(vec![UiPart::Text { text }]),
        Value::Array(blocks) => blocks.into_iter().map(part_of).collect(),
        _ => Err(Problem::invalid_body("The content of a message is a text or a list of blocks.")),
    }
}

fn part_of(block: Value) -> Result<UiPart, Problem> {
    if let Value::String(text) = block {
        return Ok(UiPart::Text { text });
    }
    let text_of = |name: &str| block[name].as_str().map(str::to_owned);
    let unsupported = || Problem::unsupported_part("block that is no text, image or file");
    match block["type"].as_str() {
        Some("text") => text_of("text").map(|text| UiPart::Text { text }).ok_or_else(unsupported),
        Some("image_url") => {
            let url = block["image_url"].as_str().or_else(|| block["image_url"]["url"].as_str());
            let url = url.ok_or_else(unsupported)?.to_owned();
            Ok(UiPart::File { filename: None, url })
        }
        Some("image" | "file") => {
            let filename =
                ["filename", "name"].iter().find_map(|name| block["metadata"][*name].as_str()).map(str::to_owned);
            let media_type = text_of("mime_type").or_else(|| text_of("mimeType")).unwrap_or_default();
            let data = text_of("data").or_else(|| text_of("base64"));
            let url = match data {
                Some(data) => Some(format!("data:{media_type};base64,{data}")),
                None => text_of("url"),
            };
            Ok(UiPart::File { filename, url: url.ok_or_else(unsupported)? })
        }
        _ => Err(unsupported()),
    }
}
