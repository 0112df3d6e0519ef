//! The bounds and choices of parameters and fields in `/openapi.json`, as far as the types of the handlers do not have them.

use holdfast_shared::{agent::MIN_CONTEXT_TOKENS, config::ApiConfig, context::CONTEXT_TYPES};
use serde_json::{Value, json};

use crate::auth::MAX_NAME_CHARS;

/// Patterns of a text that is not blank and has no NUL, and of a name without control characters that is not blank.
const TEXT: &str = r"^[^\x00]*[^\s\x00][^\x00]*$";
const NAME: &str = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$";

/// Returns what the schema of a parameter lacks, if there is any.
pub fn bounds_of_parameter(parameter: &Value, config: &ApiConfig) -> Option<Value> {
    let is_text = parameter["schema"]["type"] == "string";
    Some(match parameter["name"].as_str().unwrap_or_default() {
        "limit" => json!({"minimum": 1, "maximum": config.max_page}),
        "timeout_ms" => json!({"maximum": config.max_wait.as_millis() as u64}),
        "q" => json!({"minLength": 1, "maxLength": 200, "pattern": TEXT}),
        "after" => json!({"pattern": r"^\d{1,9}-\d{1,9}$"}),
        "Last-Event-ID" => json!({"pattern": r"^(\d{1,9}-\d{1,9})?$"}),
        "Idempotency-Key" => json!({"minLength": 1, "maxLength": 255, "pattern": r"^[!-~]([ -~]*[!-~])?$"}),
        "offset" => json!({"pattern": r"^(-1|now|\d{10}_\d{10})$"}),
        "session_id" => json!({"minLength": 1, "maxLength": MAX_NAME_CHARS, "pattern": NAME}),
        // Those of LangGraph; others are types of their own.
        "status" if is_text => json!({"enum": ["pending", "running", "success", "error", "timeout", "interrupted"]}),
        "types" => {
            json!({"pattern": "^(project|goal|plan|task|document|output)(,(project|goal|plan|task|document|output))*$"})
        }
        _ => return None,
    })
}

/// Returns what the schemas of fields lack: the name of the schema, its field, and the bounds.
pub fn bounds_of_fields(config: &ApiConfig) -> Vec<(&'static str, &'static str, Value)> {
    let content = json!({"minLength": 1, "maxLength": config.max_content_bytes, "pattern": TEXT});
    let title = json!({"minLength": 1, "maxLength": config.max_title_chars, "pattern": TEXT});
    let name = json!({"minLength": 1, "maxLength": MAX_NAME_CHARS, "pattern": NAME});
    vec![
        ("NewRunBody", "input", content.clone()),
        ("NewMessageBody", "content", content.clone()),
        ("TextMessageBody", "content", content.clone()),
        ("ChatBody", "message", content.clone()),
        ("AgentBody", "message", content.clone()),
        ("NewBriefingBody", "summary", content),
        ("NewBriefingBody", "title", title.clone()),
        ("NewBriefingBody", "priority", json!({"minLength": 1, "maxLength": 64})),
        ("NewConversation", "title", title.clone()),
        ("Rename", "title", title.clone()),
        ("AgentDefinition", "name", json!({"minLength": 1, "maxLength": 200, "pattern": NAME})),
        ("AgentDefinition", "context_tokens", json!({"minimum": MIN_CONTEXT_TOKENS})),
        (
            "ClientTool",
            "name",
            json!({"minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9-]*(_[A-Za-z0-9-]+)*_?$"}),
        ),
        ("ClientTool", "input_schema", json!({"type": "object"})),
        ("FrontEndTool", "name", json!({"minLength": 1, "maxLength": 64})),
        ("NewRunBody", "metadata", json!({"type": ["object", "null"]})),
        ("NewMessageBody", "metadata", json!({"type": ["object", "null"]})),
        ("ToolPolicy", "timeout_ms", json!({"minimum": 1})),
        ("UiChatBody", "id", json!({"minLength": 1, "maxLength": MAX_NAME_CHARS, "pattern": NAME})),
        ("UiChatBody", "trigger", json!({"enum": ["submit-message", "regenerate-message", null]})),
        ("AgentBody", "context_type", json!({"enum": CONTEXT_TYPES})),
        ("ChatBody", "agentDefinitionId", json!({"format": "uuid"})),
        ("ChatBody", "conversationId", json!({"format": "uuid"})),
        ("RunAgentInput", "threadId", name.clone()),
        ("RunAgentInput", "runId", name),
        ("ConversationChange", "title", title),
        ("RpcRequest", "jsonrpc", json!({"enum": ["2.0"]})),
        ("RpcRequest", "id", json!({"type": ["string", "integer", "null"]})),
        ("LangGraphThreadSearch", "status", json!({"enum": ["idle", "busy", "interrupted", "error", null]})),
    ]
}
