//! Translates a request into genai's types, so that each provider gets what its protocol requires.

use std::{collections::BTreeSet, sync::Arc};

use genai::chat::{
    ChatMessage, ChatRequest, ChatRole, ContentPart, CustomPart, MessageContent, Tool, ToolCall, ToolResponse,
};
use serde_json::{Value, json};

use super::{alternation::alternating, dialect::Dialect};
use crate::model::{Request, ToolRequest, ToolSpec, Turn, UserPart};

pub(super) fn translate(request: &Request, dialect: Dialect) -> ChatRequest {
    let chat_messages = match dialect {
        Dialect::Anthropic | Dialect::Gemini => messages(&alternating(&request.turns), dialect),
        Dialect::Ollama => messages(&request.turns, dialect),
    };
    let mut chat = ChatRequest::new(chat_messages);
    chat.system = request.system.clone();
    if !request.tools.is_empty() {
        chat.tools = Some(request.tools.iter().map(tool).collect());
    }
    chat
}

/// Returns declarations of the tools in earlier calls. Anthropic refuses a conversation with calls unless tools are
/// declared, so these are declared as not to be called.
pub(super) fn tools_of_the_past(request: &Request) -> Option<Vec<Tool>> {
    if !request.tools.is_empty() {
        return None;
    }
    let calls = request.turns.iter().flat_map(|turn| match turn {
        Turn::Assistant { calls, .. } => calls.as_slice(),
        _ => &[],
    });
    let names: BTreeSet<&str> = calls.map(|call| call.name.as_str()).collect();
    let declare = |name| Tool::new(name).with_schema(json!({"type": "object"}));
    (!names.is_empty()).then(|| names.into_iter().map(declare).collect())
}

/// Returns the conversation with its earlier calls and their outcomes as text, for a provider that can neither take calls
/// without declared tools nor forbid the model to call these.
pub(super) fn without_calls(turns: &[Turn]) -> Vec<Turn> {
    let in_words = |turn: &Turn| match turn {
        Turn::User(_) | Turn::Files(_) => turn.clone(),
        Turn::Assistant { text, calls } => {
            let calls = calls.iter().map(|call| format!("[called {} with {}]", call.name, call.arguments()));
            let texts = Some(text.clone()).into_iter().filter(|text| !text.trim().is_empty()).chain(calls);
            Turn::Assistant { text: texts.collect::<Vec<_>>().join("\n\n"), calls: Vec::new() }
        }
        Turn::Tool { name, text, is_error, .. } => {
            let verb = if *is_error { "failed with" } else { "returned" };
            Turn::user(format!("[{name} {verb}: {text}]"))
        }
    };
    turns.iter().map(in_words).collect()
}

fn tool(spec: &ToolSpec) -> Tool {
    let tool = Tool::new(spec.name.as_str()).with_schema(spec.input_schema.clone());
    if spec.description.is_empty() { tool } else { tool.with_description(spec.description.as_str()) }
}

fn messages(turns: &[Turn], dialect: Dialect) -> Vec<ChatMessage> {
    let mut messages: Vec<ChatMessage> = Vec::new();
    for turn in turns {
        match turn {
            Turn::User(parts) | Turn::Files(parts) => {
                messages.push(ChatMessage::user(MessageContent::from_parts(user_parts(parts))));
            }
            Turn::Assistant { text, calls } if calls.is_empty() => messages.push(ChatMessage::assistant(text.as_str())),
            Turn::Assistant { text, calls } => messages.push(calling(text, calls, dialect)),
            Turn::Tool { call_id, name, text, is_error } => {
                let outcome = outcome(call_id, name, text, *is_error, dialect);
                match messages.last_mut() {
                    // Anthropic and Gemini require the outcomes of one turn in one message. For Ollama, genai would
                    // send only the last of several outcomes in a message.
                    Some(last) if matches!(last.role, ChatRole::Tool) && dialect != Dialect::Ollama => {
                        last.content.push(outcome);
                    }
                    _ => messages.push(ChatMessage::tool(MessageContent::from_parts(vec![outcome]))),
                }
            }
        }
    }
    messages
}

fn user_parts(parts: &[UserPart]) -> Vec<ContentPart> {
    let part = |part: &UserPart| match part {
        UserPart::Text(text) => ContentPart::from_text(text),
        UserPart::File(file) => {
            ContentPart::from_binary_base64(file.media_type.as_str(), Arc::clone(&file.data), Some(file.name.clone()))
        }
    };
    parts.iter().map(part).collect()
}

fn calling(text: &str, calls: &[ToolRequest], dialect: Dialect) -> ChatMessage {
    let mut parts = Vec::new();
    if dialect == Dialect::Anthropic {
        let blocks = calls.iter().filter_map(|call| call.signature.as_ref()?.as_array()).flatten();
        parts.extend(blocks.map(|block| custom(block.clone())));
    }
    // Anthropic refuses a text of spaces.
    if !text.trim().is_empty() {
        parts.push(ContentPart::from_text(text));
    }
    parts.extend(calls.iter().map(|call| ContentPart::ToolCall(tool_call(call, dialect))));
    ChatMessage::assistant(MessageContent::from_parts(parts))
}

fn tool_call(call: &ToolRequest, dialect: Dialect) -> ToolCall {
    let signature = call.signature.as_ref().and_then(Value::as_str).filter(|_| dialect == Dialect::Gemini);
    ToolCall {
        call_id: call.id.clone(),
        fn_name: call.name.clone(),
        fn_arguments: call.arguments(),
        thought_signatures: signature.map(|signature| vec![signature.to_owned()]),
    }
}

fn outcome(call_id: &str, name: &str, text: &str, is_error: bool, dialect: Dialect) -> ContentPart {
    match dialect {
        // genai cannot mark a failed call. The other providers have no field for it either: the text describes the
        // error.
        Dialect::Anthropic if is_error => {
            custom(json!({"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": true}))
        }
        _ => ContentPart::ToolResponse(ToolResponse::new(call_id, text).with_fn_name(name)),
    }
}

/// Returns a part of a message in Anthropic's protocol.
fn custom(data: Value) -> ContentPart {
    ContentPart::Custom(CustomPart { model_iden: None, data })
}
