//! The forms of messages in `/openapi.json`, whose protocols leave them open: as far as the routes refuse others.

use serde_json::{Value, json};

use super::{
    document_bounds::{NAME, TEXT},
    document_shapes::present,
};
use crate::auth::MAX_NAME_CHARS;

/// Names of tools that all providers take.
const TOOL_NAME: &str = "^[A-Za-z0-9_-]{1,64}$";

/// Returns the shapes, each with the pointer of its schema.
pub fn shapes_of_messages() -> Vec<(&'static str, Value)> {
    [of_completions(), of_responses(), of_ag_ui(), of_ai_sdk(), of_langgraph()].into_iter().flatten().collect()
}

fn text() -> Value {
    json!({"type": "string", "minLength": 1, "pattern": TEXT})
}

fn address() -> Value {
    json!({"type": "string", "format": "uri"})
}

/// Returns a text, or null.
fn word() -> Value {
    json!({"type": ["string", "null"]})
}

/// Returns a part of a message: an object of a type, with one field.
fn part(kind: &str, field: &str, value: Value) -> Value {
    json!({"type": "object", "required": ["type", field], "properties": {"type": {"enum": [kind]}, field: value}})
}

/// Returns a text part whose text may be blank beside others.
fn text_part(kind: &str) -> Value {
    part(kind, "text", json!({"type": "string", "pattern": r"^[^\x00]*$"}))
}

/// Returns the content of a message: a text, or parts with one text that is not blank.
fn content(text_type: &str, files: &[Value]) -> Value {
    let mut items = text_part(text_type);
    if !files.is_empty() {
        items = json!({"anyOf": files.iter().cloned().chain([items]).collect::<Vec<_>>()});
    }
    let list = json!({"type": "array", "items": items, "contains": part(text_type, "text", text())});
    json!({"oneOf": [text(), list]})
}

/// Returns the schema of messages, of which those of `author` have such a content.
fn message(roles: &[&str], author: &str, content: &Value) -> Value {
    json!({
        "type": "object",
        "required": ["role"],
        "properties": {"id": word(), "role": {"type": "string", "enum": roles}},
        "if": {"properties": {"role": {"const": author}}},
        "then": {"required": ["content"], "properties": {"content": content}},
    })
}

fn sampling() -> Value {
    let choice = json!({"type": "string", "enum": ["auto", "none", "required"]});
    let function = part("function", "name", json!({"type": "string", "pattern": TOOL_NAME}));
    let wrapped = json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "pattern": TOOL_NAME}}});
    let named = part("function", "function", wrapped);
    let allowed = part("allowed_tools", "tools", json!({"type": "array", "items": function}));
    json!({
        "temperature": {"minimum": 0, "maximum": 2},
        "top_p": {"exclusiveMinimum": 0, "maximum": 1},
        "tool_choice": {"type": null, "anyOf": [choice, function, named, allowed, {"type": "null"}]},
        "metadata": {
            "maxProperties": 16,
            "propertyNames": {"maxLength": 128},
            "additionalProperties": {"type": "string", "maxLength": 512, "pattern": r"^[^\x00]*$"},
        },
    })
}

fn of_completions() -> Vec<(&'static str, Value)> {
    let picture =
        json!({"anyOf": [address(), {"type": "object", "required": ["url"], "properties": {"url": address()}}]});
    let file = json!({"type": "object", "required": ["file_id"], "properties": {"file_id": {"type": "string"}}});
    let data = json!({"type": "object", "required": ["file_data"], "properties": {"file_data": {"type": "string", "format": "byte"}}});
    let files = [part("image_url", "image_url", picture), part("file", "file", json!({"anyOf": [file, data]}))];
    let roles = ["system", "developer", "user", "assistant", "tool"];
    let mut message = message(&roles, "user", &content("text", &files));
    message["properties"]["name"] = word();
    message["properties"]["tool_call_id"] = word();
    message["properties"]["tool_calls"] = json!({"type": ["array", "null"], "items": {"type": "object"}});
    let function = json!({
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string", "pattern": TOOL_NAME}, "parameters": {"type": ["object", "null"]}},
    });
    let of_user = json!({"required": ["role"], "properties": {"role": {"const": "user"}}});
    let fields = json!({
        "messages": {"items": message, "contains": of_user},
        "max_tokens": {"minimum": 1},
        "max_completion_tokens": {"minimum": 1},
        "n": {"minimum": 1, "maximum": 1},
        "logprobs": {"not": {"const": true}},
        "logit_bias": {"maxProperties": 0},
        "presence_penalty": {"minimum": -2, "maximum": 2},
        "frequency_penalty": {"minimum": -2, "maximum": 2},
        "stop": {"type": null},
        "tools": {"items": {"required": ["function"], "properties": {"function": function}}},
    });
    vec![("/CompletionBody/properties", sampling()), ("/CompletionBody/properties", fields)]
}

fn of_responses() -> Vec<(&'static str, Value)> {
    let picture = part("input_image", "image_url", address());
    let file = part("input_file", "file_id", json!({"type": "string"}));
    let data = part("input_file", "file_data", json!({"type": "string", "format": "byte"}));
    let question = content("input_text", &[picture, file, data]);
    let is_message = json!({"properties": {"type": {"enum": ["message", null]}}});
    let item = json!({
        "type": "object",
        "properties": {
            "type": word(), "id": word(), "role": word(), "call_id": word(), "name": word(), "namespace": word(),
            "arguments": word(), "approval_request_id": word(), "reason": word(), "approve": {"type": ["boolean", "null"]},
        },
        "if": is_message,
        "then": message(&["user", "assistant", "system", "developer"], "user", &question),
    });
    let of_user = json!({
        "required": ["role"],
        "properties": {"type": {"enum": ["message", null]}, "role": {"const": "user"}},
    });
    let mut kept = item.clone();
    kept["then"] = json!({
        "required": ["role", "content"],
        "properties": {
            "role": {"type": "string", "enum": ["user", "assistant"]},
            "content": content("input_text", &[]),
        },
    });
    let request = json!({
        "required": ["input"],
        "properties": {
            "input": {"type": null, "oneOf": [text(), {"type": "array", "items": item}]},
            "instructions": {"pattern": r"^[^\x00]*$"},
            "max_output_tokens": {"minimum": 1},
            "conversation": {"type": null, "oneOf": [
                {"type": "string"},
                {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}},
                {"type": "null"},
            ]},
        },
        "if": {"not": {"anyOf": [present("previous_response_id"), present("conversation")]}},
        "then": {"properties": {"input": {"contains": of_user}}},
    });
    let metadata = json!({"metadata": sampling()["metadata"]});
    vec![
        ("/ResponseRequest/properties", sampling()),
        ("/ResponseRequest", request),
        ("/ConversationRequest/properties", metadata),
        ("/ConversationRequest/properties/items", json!({"maxItems": 20, "items": kept})),
        ("/NewItems/properties/items", json!({"minItems": 1, "maxItems": 20, "items": kept})),
    ]
}

fn of_ag_ui() -> Vec<(&'static str, Value)> {
    let source = json!({"anyOf": [
        part("url", "value", address()),
        part("file", "value", json!({"type": "string"})),
        {
            "type": "object",
            "required": ["type", "value", "mimeType"],
            "properties": {"type": {"enum": ["data"]}, "value": {"type": "string", "format": "byte"}, "mimeType": {"type": "string"}},
        },
    ]});
    let files = [part("image", "source", source.clone()), part("document", "source", source)];
    let roles = ["user", "assistant", "system", "developer", "tool", "activity", "reasoning"];
    let mut message = message(&roles, "user", &content("text", &files));
    message["properties"]["toolCallId"] = word();
    message["properties"]["error"] = word();
    let resolved = json!({"properties": {"payload": {"anyOf": [
        {"type": "boolean"},
        {"type": "object", "required": ["approved"], "properties": {"approved": {"type": "boolean"}}},
    ]}}});
    vec![
        ("/RunAgentInput/properties/messages", json!({"items": message})),
        ("/RunAgentInput/properties/resume", json!({"maxItems": 256})),
        ("/AgUiTool/properties/name", json!({"pattern": TOOL_NAME})),
        ("/ResumeEntry/properties", json!({"interruptId": {"format": "uuid"}, "payload": {"type": null}})),
        (
            "/ResumeEntry",
            json!({
                "if": {"properties": {"status": {"const": "resolved"}}},
                "then": {"required": ["payload"], "properties": resolved["properties"]},
            }),
        ),
    ]
}

fn of_ai_sdk() -> Vec<(&'static str, Value)> {
    let text_of_user = part("text", "text", text());
    let message = json!({
        "type": "object",
        "required": ["role"],
        "properties": {
            "id": {"type": "string", "maxLength": MAX_NAME_CHARS, "pattern": NAME},
            "role": {"type": "string", "enum": ["user", "assistant", "system"]},
            "parts": {"type": "array", "items": {"type": "object"}},
        },
        "if": {"properties": {"role": {"const": "user"}}},
        "then": {"required": ["parts"], "properties": {"parts": {"contains": text_of_user}}},
        "else": {"required": ["id"], "properties": {"id": {}}},
    });
    let repeats = json!({"required": ["trigger"], "properties": {"trigger": {"const": "regenerate-message"}}});
    let has_list =
        json!({"required": ["messages"], "properties": {"messages": {"type": "array", "items": {}, "minItems": 1}}});
    vec![
        ("/UiChatBody/properties", json!({"message": message, "messages": {"items": message}})),
        ("/UiChatBody", json!({"if": {"not": {"anyOf": [repeats, present("message")]}}, "then": has_list})),
        ("/FrontEndTool/properties/name", json!({"pattern": TOOL_NAME})),
    ]
}

fn of_langgraph() -> Vec<(&'static str, Value)> {
    let authors = json!({"enum": ["human", "user", "ai", "assistant"]});
    // A block is an object, or a text.
    let mut blocks = content("text", &[text()]);
    blocks["oneOf"][1]["contains"] = json!({"anyOf": [part("text", "text", text()), text()]});
    let message = json!({
        "type": "object",
        "required": ["content"],
        "properties": {
            "role": {"type": "string", "enum": authors["enum"]},
            "type": {},
            "content": blocks,
        },
        "if": {"not": {"required": ["role"], "properties": {"role": {}}}},
        "then": {"required": ["type"], "properties": {"type": authors}},
    });
    let messages = json!({"anyOf": [
        text(), message, {"type": "array", "maxItems": 32, "items": {"anyOf": [text(), message]}},
    ]});
    let has_messages = json!({"required": ["messages"], "properties": {"messages": {"minItems": 1}}});
    vec![(
        "/LangGraphStateUpdate",
        json!({
            "properties": {
                "values": {"properties": {"messages": messages}, "additionalProperties": false},
                // Another value than an object names no checkpoint.
                "checkpoint": {"type": null},
                "as_node": {"enum": ["agent", "tools", "__start__", "__input__", "__end__", null]},
            },
            "if": {"not": {"required": ["as_node"], "properties": {"as_node": {"const": "__end__"}}}},
            "then": {"required": ["values"], "properties": {"values": has_messages}},
        }),
    )]
}
