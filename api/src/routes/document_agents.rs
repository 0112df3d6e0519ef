//! The MCP servers of agents in `/openapi.json`: as far as an agent's definition refuses others.

use serde_json::{Value, json};

/// Returns the schema of a server.
pub fn mcp_server() -> Value {
    let is_command = json!({"required": ["transport"], "properties": {"transport": {"const": "stdio"}}});
    let nothing = json!({"type": "null"});
    let secrets =
        json!({"type": ["object", "null"], "additionalProperties": {"$ref": "#/components/schemas/McpSecret"}});
    let mut headers = secrets.clone();
    headers["maxProperties"] = 32.into();
    headers["propertyNames"] = json!({"pattern": "^[A-Za-z0-9_-]{1,64}$"});
    headers["description"] = "Further headers of each request, but for those that the worker itself sends.".into();
    let auth = json!({
        "type": ["object", "null"],
        "description": "The token without the word `Bearer`.",
        "required": ["bearer"],
        "properties": {"bearer": {"$ref": "#/components/schemas/McpSecret"}},
        "additionalProperties": false,
    });
    json!({
        "type": "object",
        "description": "An MCP server of an agent. Its tools are named `<name>__<tool>`.",
        "required": ["name", "transport"],
        "properties": {
            "name": {
                "type": "string", "maxLength": 32, "pattern": "^(_|_?[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*_?)$",
                "not": {"enum": ["scripted"]}, "description": "Another name than that of each other server.",
            },
            "transport": {"type": "string", "enum": ["stdio", "http", "rpc"]},
            "command": {"type": ["string", "null"], "pattern": r"\S", "description": "The program that the worker starts, for `stdio`."},
            "args": {"type": ["array", "null"], "items": {"type": "string"}},
            "env": secrets,
            "cwd": {"type": ["string", "null"], "pattern": r"^/[^\x00]*$"},
            "url": {"type": ["string", "null"], "pattern": r"^https?://[^/?#@]*([/?#][\s\S]*)?$", "description": "The address, for `http` and `rpc`."},
            "auth": auth,
            "headers": headers,
            "scope": {"type": "string", "enum": ["conversation", "owner", "worker"], "description": "The runs that share a connection."},
            "timeout_ms": {"type": ["integer", "null"], "minimum": 1},
            "retries": {"type": ["integer", "null"], "minimum": 0, "maximum": 100},
            "retry_delay_ms": {"type": ["integer", "null"], "minimum": 0},
            "caller": {"type": "boolean", "description": "Whether calls name the run's owner."},
            "caller_header": {"type": ["string", "null"], "pattern": "^[Xx]-[A-Za-z0-9-]{1,62}$"},
            "instructions": {"type": "boolean", "description": "Whether the model reads the server's own instructions."},
        },
        "additionalProperties": false,
        "if": is_command,
        "then": {
            "required": ["command"],
            "properties": {
                "command": {"type": "string"},
                "url": nothing, "auth": nothing, "headers": nothing, "caller_header": nothing,
            },
        },
        "else": {
            "required": ["url"],
            "properties": {"url": {"type": "string"}, "command": nothing, "args": nothing, "env": nothing, "cwd": nothing},
        },
    })
}

/// Returns the schema of a secret.
pub fn secret() -> Value {
    let reference = |field: &str, value: Value| json!({"type": "object", "required": [field], "properties": {field: value}, "additionalProperties": false});
    json!({
        "description": "A secret; or the name of a variable of the worker that has it; or, in place of a stored one, that it is redacted.",
        "anyOf": [
            {"type": "string"},
            reference("env", json!({"type": "string"})),
            reference("redacted", json!({"type": "boolean", "enum": [true]})),
        ],
    })
}
