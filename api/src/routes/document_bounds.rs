//! The bounds and choices of parameters and fields in `/openapi.json`, as far as the types of the handlers do not have them.

use holdfast_shared::{agent::MIN_CONTEXT_TOKENS, config::ApiConfig, context::CONTEXT_TYPES};
use serde_json::{Value, json};

use crate::{
    auth::MAX_NAME_CHARS,
    protocols::langgraph::{routes::MAX_OFFSET, wire::LangModes},
};

/// Characters that show nothing, for a class of a pattern, without NUL and those beyond U+FFFF.
macro_rules! blank {
    () => {
        concat!(
            r"\s\x01-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e",
            r"\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
        )
    };
}

/// Pattern of a text with a visible character, of which the server stores a NUL as U+FFFD.
pub const VISIBLE: &str = concat!("[^", blank!(), "]");

/// Patterns of a text that is not blank and has no NUL, and of a name without control characters that is not blank.
pub const TEXT: &str = r"^[^\x00]*[^\s\x00][^\x00]*$";
pub const LABEL: &str = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$";

/// Patterns of a title and of a name, which need a visible character.
const TITLE: &str = concat!(r"^[^\x00]*[^\x00", blank!(), r"][^\x00]*$");
pub const NAME: &str = concat!(r"^[^\x00-\x1f\x7f-\x9f]*[^\x00", blank!(), r"][^\x00-\x1f\x7f-\x9f]*$");

/// Patterns of a priority and of a title in one line.
const LINE: &str = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f\u2028\u2029]*$";
const VISIBLE_LINE: &str =
    concat!(r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*[^\x00", blank!(), r"][^\x00-\x1f\x7f-\x9f\u2028\u2029]*$");

/// Pattern of a name without spaces around it.
const OWNER: &str = r"^[^\s\x00-\x1f\x7f-\x9f]([^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f])?$";

/// Pattern of an event's id.
const EVENT_ID: &str = r"(0|[1-9]\d{0,8})-(0|[1-9]\d{0,8})";

/// Returns a pattern of modes in a query: one, a JSON list of them, or none.
fn stream_modes() -> String {
    let modes = LangModes::known().collect::<Vec<_>>().join("|");
    format!(r#"^(({modes})?|\["({modes})"(, ?"({modes})")*\])$"#)
}

/// Returns what the schema of a parameter lacks, if there is any.
pub fn bounds_of_parameter(parameter: &Value, path: &str, config: &ApiConfig) -> Option<Value> {
    let is_text = parameter["schema"]["type"] == "string";
    Some(match parameter["name"].as_str().unwrap_or_default() {
        "Idempotency-Key" => json!({"minLength": 1, "maxLength": 255, "pattern": r"^[!-~]([ -~]*[!-~])?$"}),
        // Others of OpenAI have names of ours and other values.
        _ if path.starts_with("/openai/") => return None,
        // Its routes give fewer than a client asks for.
        "limit" if path.starts_with("/langgraph/") => json!({"minimum": 1}),
        "limit" if path == "/api/chat/{id}/messages" => json!({"minimum": 1, "maximum": config.max_history}),
        "limit" => {
            let own = parameter["schema"]["maximum"].as_u64();
            json!({"minimum": 1, "maximum": own.unwrap_or(config.max_page as u64)})
        }
        "timeout_ms" => json!({"maximum": config.max_wait.as_millis() as u64}),
        "q" => json!({"minLength": 1, "maxLength": 200, "pattern": TEXT}),
        "after" => json!({"pattern": format!("^{EVENT_ID}$")}),
        // It has no effect on methods that stream nothing.
        "Last-Event-ID" if path.starts_with("/a2a") => return None,
        "Last-Event-ID" if path.starts_with("/langgraph/") => json!({"pattern": format!("^(-1|{EVENT_ID})?$")}),
        "Last-Event-ID" => json!({"pattern": format!("^({EVENT_ID})?$")}),
        "content-range" => json!({"pattern": r"^bytes \d{1,18}-\d{1,18}/\d{1,18}$"}),
        "stream_mode" if path.starts_with("/langgraph/") => json!({"pattern": stream_modes()}),
        "action" if path.starts_with("/langgraph/") => json!({"enum": ["interrupt", "rollback"]}),
        "offset" if !is_text => json!({"maximum": MAX_OFFSET}),
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
    let title = json!({"minLength": 1, "maxLength": config.max_title_chars, "pattern": TITLE});
    let without_nul = json!({"pattern": r"^[^\x00]*$"});
    let name = json!({"minLength": 1, "maxLength": MAX_NAME_CHARS, "pattern": NAME});
    // Other routes ignore unknown fields of a context.
    let focus = json!({"oneOf": [{"$ref": "#/components/schemas/ProjectFocus"}, {"type": "null"}]});
    let mut closed_context = json!({"properties": {"projectFocus": focus}, "unevaluatedProperties": false});
    closed_context["properties"]["projectFocus"]["unevaluatedProperties"] = false.into();
    vec![
        ("NewRunBody", "input", content.clone()),
        ("NewMessageBody", "content", content.clone()),
        ("TextMessageBody", "content", content.clone()),
        ("ChatBody", "message", content.clone()),
        ("AgentBody", "message", content.clone()),
        ("NewBriefingBody", "summary", content),
        (
            "NewBriefingBody",
            "title",
            json!({"minLength": 1, "maxLength": config.max_title_chars, "pattern": VISIBLE_LINE}),
        ),
        ("NewBriefingBody", "priority", json!({"minLength": 1, "maxLength": 64, "pattern": LINE})),
        ("NewConversation", "title", title.clone()),
        ("AgentDefinition", "name", json!({"minLength": 1, "maxLength": 200, "pattern": NAME})),
        ("AgentDefinition", "history_limit", json!({"maximum": 1000})),
        ("AgentDefinition", "recursive", json!({"minimum": 2, "maximum": 11})),
        ("AgentDefinition", "knowledge", json!({"maxItems": 16})),
        ("AgentDefinition", "subagents", json!({"maxItems": 32, "uniqueItems": true})),
        ("AgentDefinition", "mcp_servers", json!({"maxItems": 32})),
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
        ("ToolPolicy", "result_chars", json!({"minimum": 400})),
        ("MemoryPatch", "text", json!({"minLength": 1, "pattern": TEXT})),
        ("AgentBody", "session_id", name.clone()),
        ("NewRunBody", "context", closed_context.clone()),
        ("NewMessageBody", "context", closed_context),
        ("NewBriefingBody", "owner_id", json!({"minLength": 1, "maxLength": MAX_NAME_CHARS, "pattern": OWNER})),
        ("NewCollectionBody", "name", json!({"pattern": VISIBLE})),
        ("NewDocumentBody", "title", json!({"pattern": VISIBLE})),
        ("DecisionBody", "reason", without_nul.clone()),
        // Other outputs than texts have no pattern.
        ("ToolResult", "output", without_nul.clone()),
        ("ToolResult", "error", without_nul),
        ("OpenAiUpload", "file", json!({"minLength": 1})),
        ("NewConversation", "knowledge", json!({"maxItems": 16})),
        ("ConversationChange", "knowledge", json!({"maxItems": 16})),
        ("NewRunBody", "client_tools", json!({"uniqueItems": true})),
        ("NewMessageBody", "client_tools", json!({"uniqueItems": true})),
        ("RunAgentInput", "tools", json!({"uniqueItems": true})),
        ("UiChatBody", "clientTools", json!({"uniqueItems": true})),
        ("UiChatBody", "id", json!({"minLength": 1, "maxLength": MAX_NAME_CHARS, "pattern": NAME})),
        ("UiChatBody", "trigger", json!({"enum": ["submit-message", "regenerate-message", null]})),
        ("AgentBody", "context_type", json!({"enum": CONTEXT_TYPES})),
        ("ChatBody", "agentDefinitionId", json!({"format": "uuid", "minLength": 36})),
        ("ChatBody", "conversationId", json!({"format": "uuid"})),
        ("RunAgentInput", "threadId", name.clone()),
        ("RunAgentInput", "runId", name),
        ("ConversationChange", "title", title),
        ("RpcRequest", "jsonrpc", json!({"enum": ["2.0"]})),
        ("RpcRequest", "id", json!({"type": ["string", "integer", "null"]})),
    ]
}
