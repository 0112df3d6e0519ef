//! Conditions between the fields of a body in `/openapi.json`, and fields that the routes read otherwise than the types of their
//! handlers say.
//!
//! Conditions are `if`, `then` and `else`, because generators of clients make types of `anyOf` and `allOf`.

use holdfast_shared::{config::ApiConfig, time_zone::TimeZone};
use serde_json::{Map, Value, json};

use super::{
    document_agents::{mcp_server, secret},
    document_bounds::{LABEL, NAME, TEXT},
    document_messages::shapes_of_messages,
    merge_patch::merge,
};
use crate::{
    auth::MAX_NAME_CHARS,
    protocols::langgraph::{routes::MAX_OFFSET, wire::LangModes},
};

/// Most threads or runs that a request of LangGraph names.
const NAMED_THREADS: usize = 100;

/// Adds the shapes to the schemas.
pub fn add_shapes(schemas: &mut Map<String, Value>, config: &ApiConfig) {
    let mut all = Value::Object(std::mem::take(schemas));
    for (pointer, shape) in of_native_bodies().into_iter().chain(of_langgraph(config)).chain(shapes_of_messages()) {
        if let Some(schema) = all.pointer_mut(pointer) {
            merge(schema, shape);
        }
    }
    let definition = &all["AgentDefinition"];
    (all["NewAgent"], all["AgentChange"]) = (new_agent(definition), agent_change(definition));
    (all["McpServer"], all["McpSecret"]) = (mcp_server(), secret());
    if let Value::Object(shaped) = all {
        *schemas = shaped;
    }
}

/// Returns a schema of objects that have a field, and not as null.
pub fn present(field: &str) -> Value {
    json!({"required": [field], "properties": {field: {"not": {"type": "null"}}}})
}

/// Returns a schema of what counts as absent: null, and what is empty.
fn nothing() -> Value {
    json!({"type": ["array", "object", "null"], "items": {}, "maxItems": 0, "maxProperties": 0})
}

fn of_native_bodies() -> Vec<(&'static str, Value)> {
    let needs_content = json!({"if": {"not": present("content")}, "then": present("replace_from")});
    // Texts are blank together, not each by itself.
    let parts = json!({"minItems": 1, "contains": {"anyOf": [
        {"required": ["file_id"], "properties": {"file_id": {}}},
        {"required": ["text"], "properties": {"text": {"pattern": TEXT}}},
    ]}});
    let closed = json!({"additionalProperties": false});
    let name = json!({"minLength": 1, "maxLength": 200, "pattern": TEXT});
    let model = json!({"minLength": 1, "maxLength": 200, "pattern": LABEL});
    let provider = json!({"enum": ["gemini", "vertex", "anthropic", "openai", "ollama", "scripted"]});
    let owners =
        json!({"minItems": 1, "maxItems": 1000, "items": {"minLength": 1, "maxLength": 128, "pattern": LABEL}});
    let options = json!({"properties": {
        "temperature": {"minimum": 0, "maximum": 2},
        "top_p": {"exclusiveMinimum": 0, "maximum": 1},
        "max_tokens": {"minimum": 1},
    }});
    let above_0 = json!({"minimum": 1});
    let has_profiles = json!({"required": ["profiles"], "properties": {"profiles": {"minProperties": 1}}});
    vec![
        ("/NewMessageBody", needs_content),
        ("/ContentInput/oneOf/1", parts),
        ("/PartInput/oneOf/0", closed.clone()),
        ("/PartInput/oneOf/1", closed.clone()),
        ("/PartInput/oneOf/2", closed),
        ("/UiChatBody", json!({"required": null})),
        (
            "/DecisionBody",
            json!({
                "if": {"properties": {"decision": {"const": "deny"}}},
                "then": {"properties": {"edited_input": {"type": "null"}}},
            }),
        ),
        (
            "/ToolResult",
            json!({
                "if": {"required": ["output"], "properties": {"output": {}}},
                "then": {"properties": {"error": {"type": "null"}}},
                "else": {"required": ["error"], "properties": {"error": {"type": "string"}}},
            }),
        ),
        // An agent has its definition's fields and more, which a closed schema would refuse.
        ("/AgentDefinition", json!({"additionalProperties": null})),
        (
            "/AgentDefinition/properties/mcp_servers",
            json!({"items": {"type": null, "$ref": "#/components/schemas/McpServer"}}),
        ),
        ("/Access/oneOf/1", owners.clone()),
        ("/Approvers/oneOf/1", owners),
        ("/Subagent/properties/agent", name),
        ("/Subagent/properties/description", json!({"maxLength": 2000})),
        ("/ModelSettings", options.clone()),
        ("/ModelSettings/properties/provider", json!({"enum": provider_or_null(&provider)})),
        ("/ModelOptions", options),
        ("/Limits/properties/max_steps", above_0.clone()),
        ("/Limits/properties/max_duration_ms", above_0.clone()),
        ("/Limits/properties/max_output_tokens", above_0.clone()),
        ("/Limits/properties/max_total_tokens", above_0),
        // A role has one of the profiles.
        ("/Profiles", json!({"if": {"not": has_profiles}, "then": {"properties": {"roles": {"maxProperties": 0}}}})),
        (
            "/Profiles/properties/profiles",
            json!({"maxProperties": 64, "propertyNames": {"pattern": "^[A-Za-z0-9_-]{1,64}$"}}),
        ),
        ("/Profile/properties/provider", provider.clone()),
        ("/Profile/properties/model", model.clone()),
        ("/Profile/properties/fallback", json!({"maxItems": 8})),
        ("/FallbackModel/properties/provider", provider),
        ("/FallbackModel/properties/model", model),
        ("/NewUserProfile/properties/time_zone", json!({"pattern": time_zones()})),
        (
            "/MemoryPatch/properties/expires_at",
            json!({"type": null, "anyOf": [
                {"type": "string", "format": "date-time"}, {"type": "string", "format": "date"}, {"type": "null"},
            ]}),
        ),
        ("/PlanEdit/properties/steps", json!({"minItems": 1, "uniqueItems": true})),
    ]
}

fn provider_or_null(provider: &Value) -> Value {
    provider["enum"].as_array().into_iter().flatten().cloned().chain([Value::Null]).collect()
}

/// Returns a pattern of the names of time zones.
fn time_zones() -> String {
    let names: Vec<String> = TimeZone::names().map(|name| name.replace('+', "\\+")).collect();
    format!("^({})$", names.join("|"))
}

fn of_langgraph(config: &ApiConfig) -> Vec<(&'static str, Value)> {
    let modes = json!({"type": "string", "enum": LangModes::known().collect::<Vec<_>>()});
    let end = json!({"type": "string", "enum": ["__end__"]});
    let continues = json!({"anyOf": [
        present("resume"),
        {"required": ["goto"], "properties": {"goto": {"type": ["string", "array"], "items": {}, "minItems": 1}}},
    ]});
    let thread_name = NAME.replace(']', "%]");
    vec![
        (
            "/LangGraphRun",
            json!({
                "properties": {
                    "after_seconds": {"minimum": 0, "maximum": config.max_delay.as_secs()},
                    "stream_mode": {"oneOf": [modes, {"type": "array", "items": modes}, {"type": "null"}]},
                    "webhook": {"type": "null"},
                    "interrupt_before": nothing(),
                    "interrupt_after": nothing(),
                },
                "if": {"required": ["command"], "properties": {"command": continues}},
                "then": {"properties": {"after_seconds": {"maximum": 0}}},
            }),
        ),
        (
            "/LangGraphCommand/properties",
            json!({
                "update": nothing(),
                "goto": {"oneOf": [end, {"type": "array", "maxItems": 1, "items": end}, {"type": "null"}]},
            }),
        ),
        (
            "/LangGraphCancel",
            json!({
                "if": {"allOf": [present("thread_id"), present("run_ids")]},
                "then": {"properties": {"run_ids": {"maxItems": 32}}},
                "else": {"required": ["status"], "properties": {"status": {"enum": ["pending", "running", "all"]}}},
            }),
        ),
        (
            "/LangGraphNewThread/properties",
            json!({
                "thread_id": {"minLength": 1, "maxLength": MAX_NAME_CHARS, "pattern": thread_name},
                "supersteps": {"type": ["array", "null"], "items": {}, "maxItems": 0},
                "ttl": {"type": "null"},
            }),
        ),
        (
            "/LangGraphThreadSearch/properties",
            json!({
                "ids": {"maxItems": NAMED_THREADS},
                "limit": {"minimum": 1},
                "offset": {"maximum": MAX_OFFSET},
                "metadata": {"maxProperties": 16, "additionalProperties": {"not": {"type": "null"}}},
                "values": {"maxProperties": 0},
                "sort_by": {"enum": ["updated_at", null]},
                "sort_order": {"enum": ["desc", null]},
                "status": {"enum": ["idle", "busy", "interrupted", "error", null]},
            }),
        ),
        ("/LangGraphAssistantSearch/properties/limit", json!({"minimum": 1})),
        ("/LangGraphHistory/properties/limit", json!({"minimum": 1})),
        ("/LangGraphPrune/properties/thread_ids", json!({"maxItems": NAMED_THREADS})),
    ]
}

/// Returns the schema of a new agent: the fields of its definition, and those that answers add.
fn new_agent(definition: &Value) -> Value {
    let mut agent = definition.clone();
    for name in ["id", "version", "origin", "created_at", "updated_at"] {
        agent["properties"][name] = json!({"readOnly": true, "description": "The server ignores it."});
    }
    let has_servers = json!({"required": ["mcp_servers"], "properties": {"mcp_servers": {"minItems": 1}}});
    let no_tools = json!({"tools": {"maxProperties": 0}, "allowed_tools": {"maxItems": 0}});
    let more = json!({
        "additionalProperties": false,
        "if": {"not": has_servers},
        "then": {"properties": no_tools},
    });
    merge(&mut agent, more);
    agent
}

/// Returns the schema of a change of an agent, in which null removes a field.
fn agent_change(definition: &Value) -> Value {
    let mut change = new_agent(definition);
    let no_value = json!({"type": "null"});
    for (name, field) in change["properties"].as_object_mut().into_iter().flatten() {
        let has = |list: &str, choice: &Value| field[list].as_array().is_some_and(|choices| choices.contains(choice));
        let is_changed = name != "name" && field.get("readOnly").is_none();
        if is_changed && !has("type", &json!("null")) && !has("oneOf", &no_value) {
            *field = json!({"oneOf": [field.take(), no_value]});
        }
    }
    let description = "The fields that change; null removes one, also one that is not there.";
    merge(&mut change, json!({"description": description, "required": null, "if": null, "then": null}));
    change["additionalProperties"] = no_value;
    change
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct ShapeSettings {
        #[command(flatten)]
        api: ApiConfig,
    }

    #[test]
    fn each_shape_is_that_of_a_schema() {
        let described = super::super::routes(1).describe(super::super::document::base());
        let mut schemas = json!(described)["components"]["schemas"].take();
        let settings = ShapeSettings::try_parse_from(["test"]).unwrap();
        let all = of_native_bodies().into_iter().chain(of_langgraph(&settings.api)).chain(shapes_of_messages());
        let unknown: Vec<&str> =
            all.map(|(pointer, _)| pointer).filter(|pointer| schemas.pointer(pointer).is_none()).collect();
        assert!(unknown.is_empty(), "no schemas are there: {unknown:?}");
        add_shapes(schemas.as_object_mut().unwrap(), &settings.api);
        assert_eq!(schemas["NewAgent"]["additionalProperties"], false);
        assert_eq!(schemas["AgentDefinition"].get("additionalProperties"), None);
    }

    #[test]
    fn null_removes_each_field_of_an_agent_but_its_name() {
        let definition = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "clock": {"type": ["boolean", "null"]}, "memory": {"type": "boolean"},
            "model": {"oneOf": [{"$ref": "#/a"}, {"type": "null"}]},
        }});
        let change = agent_change(&definition);
        assert_eq!(change.get("required"), None);
        let fields = &change["properties"];
        assert_eq!(fields["name"], json!({"type": "string"}));
        assert_eq!(fields["clock"], definition["properties"]["clock"]);
        assert_eq!(fields["model"], definition["properties"]["model"]);
        assert_eq!(fields["memory"], json!({"oneOf": [{"type": "boolean"}, {"type": "null"}]}));
    }
}
