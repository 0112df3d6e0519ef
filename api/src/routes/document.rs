//! `/openapi.json`: merges the descriptions of the routes with their common parts, so that linters accept the document
//! and generators can build clients from it.
//!
//! A route describes its own parameters, bodies and refusals. This file adds the common refusals, the security schemes,
//! the names of the operations, and the bounds from the settings.

use holdfast_shared::{
    agent::StreamMode,
    config::ApiConfig,
    event::{EventBody, EventKind},
    snapshot::Snapshot,
};
use serde_json::{Map, Value, json};
use utoipa::{OpenApi, openapi};

use super::{
    document_bounds::{bounds_of_fields, bounds_of_parameter},
    document_shapes::add_shapes,
    document_workspace::add_kinds,
    merge_patch::merge,
};
use crate::{problem::Problem, wire::Wire};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Holdfast",
        description = "Agent runs that outlive the connection.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    components(schemas(Problem, StreamMode, Wire, Snapshot))
)]
struct ApiDocument;

/// The tags, in the order of the document.
const TAGS: [(&str, &str); 21] = [
    ("conversations", "Conversations, their checkpoints and forks."),
    ("messages", "Messages of a conversation."),
    ("sessions", "Conversations that a client finds by name."),
    ("runs", "Executions of an agent: start, follow, answer, cancel."),
    ("plans", "Steps by which planners reach a goal, and their states."),
    ("files", "Files that messages have."),
    ("knowledge", "Collections of documents that agents answer from."),
    ("workspace", "Projects, tasks, plans, goals, documents and outputs, and every change of them."),
    ("briefings", "Briefings for a user, and the conversations about them."),
    ("agents", "Definitions of agents. Only operators write them."),
    ("users", "The caller, and anonymous users."),
    ("memories", "Facts that agents remember of the caller."),
    ("ai-sdk", "The protocol of the AI SDK."),
    ("ag-ui", "The protocol AG-UI."),
    ("openai", "The protocols of OpenAI: responses and chat completions."),
    ("a2a", "The protocol A2A, by which agents call agents."),
    ("mcp", "The workspace by the Model Context Protocol; `/mcp` itself has the protocol's own description."),
    ("langgraph", "The protocol of LangGraph's server."),
    ("wires", "Other streams of a run."),
    ("server", "The server's version, model and storage."),
    ("operations", "Probes and metrics."),
];

/// Refusals that every route may return, beside its own.
const COMMON_RESPONSES: [(&str, &str); 7] = [
    ("400", "invalid_session, invalid_user, invalid_host, invalid_query; unknown_time_zone: where a run starts"),
    ("401", "unauthenticated, invalid_token, development_identity"),
    ("403", "operator_needed; foreign_origin; in development mode: foreign_peer"),
    ("421", "foreign_host: in development mode"),
    ("429", "rate_limited and other limits; `Retry-After` says when to retry"),
    ("500", "internal_error"),
    ("503", "database_away; `Retry-After` says when to retry"),
];

/// Refusals that every route with a body may return.
const BODY_RESPONSES: [(&str, &str); 4] = [
    ("400", "invalid_body, invalid_json"),
    ("408", "body_timeout"),
    ("413", "body_too_large"),
    ("415", "unsupported_media_type"),
];

/// Returns the document without routes.
pub fn base() -> openapi::OpenApi {
    ApiDocument::openapi()
}

/// Returns the complete document of all routes.
pub fn complete(document: &openapi::OpenApi, config: &ApiConfig) -> Value {
    let mut document = json!(document);
    document["servers"] = json!([{"url": "/"}]);
    document["tags"] =
        TAGS.iter().map(|(name, description)| json!({"name": name, "description": description})).collect();
    document["security"] = json!([{}, {"bearer": []}, {"api_key": []}, {"cookie": []}, {"developer": []}]);
    document["components"]["securitySchemes"] = json!({
        "bearer": {"type": "http", "scheme": "bearer", "description": "A JWT, or the secret of an anonymous user."},
        "api_key": {"type": "apiKey", "in": "header", "name": "x-api-key", "description": "A JWT, or the secret of an anonymous user, as some SDKs send it."},
        "cookie": {"type": "apiKey", "in": "cookie", "name": "__Host-holdfast_user", "description": "The secret of an anonymous user."},
        "developer": {"type": "apiKey", "in": "header", "name": "X-User", "description": "A user's name, in development mode only."},
    });
    add_kinds(&mut document);
    let paths = document["paths"].as_object_mut().expect("a document has paths");
    let operations = paths.iter_mut().flat_map(|(path, methods)| {
        methods.as_object_mut().into_iter().flatten().map(move |(method, operation)| (path, method, operation))
    });
    for (path, method, operation) in operations {
        complete_operation(operation);
        if method == "head" {
            each(operation.get_mut("responses"), |response| drop(remove(response, "content")));
        }
        each(operation.get_mut("parameters"), |parameter| complete_parameter(parameter, path, config));
    }
    // A route of JSON-RPC answers other JSON with an error of the protocol, and the status of a success.
    for path in ["/a2a", "/a2a/agents/{name}"] {
        let schema = &mut document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"];
        *schema = json!({"anyOf": [schema.take(), {"description": "Other JSON, which gets an error of JSON-RPC."}]});
    }
    // The handler writes the page of events by hand, so no type describes it.
    let events = &mut document["paths"]["/v1/runs/{id}/events"]["get"]["responses"]["200"]["content"];
    events["application/json"]["schema"] = json!({"oneOf": [
        {"type": "object", "required": ["events", "last_event_id", "complete"], "properties": {
            "events": {"type": "array", "items": {"$ref": "#/components/schemas/RunEvent"}},
            "last_event_id": {"$ref": "#/components/schemas/EventId"},
            "complete": {"type": "boolean", "description": "Whether these are the last events of an ended run."}}},
        {"type": "object", "required": ["snapshot", "last_event_id"], "properties": {
            "snapshot": {"$ref": "#/components/schemas/Snapshot"},
            "last_event_id": {"$ref": "#/components/schemas/EventId"}}},
    ]});
    add_events(document["components"]["schemas"].as_object_mut().expect("there are schemas"));
    complete_schemas(document["components"]["schemas"].as_object_mut().expect("there are schemas"), config);
    widen(&mut document);
    document
}

/// Adds a schema for each kind of event, and `RunEvent` for all of them. The native wire has such an object for each event.
fn add_events(schemas: &mut Map<String, Value>) {
    let mut referred = Vec::new();
    let (mut choices, mut mapping) = (Vec::new(), Map::new());
    for (kind, payload) in EventBody::schemas(&mut referred) {
        let mut event = json!(payload);
        let fields = json!({
            "id": {"$ref": "#/components/schemas/EventId"},
            "run_id": {"type": "string", "format": "uuid"},
            "type": {"type": "string", "enum": [kind.name()]},
            "at": {"type": "string", "format": "date-time"},
        });
        let required = event["required"].as_array().into_iter().flatten().cloned();
        event["required"] = ["id", "run_id", "type", "at"].map(Value::from).into_iter().chain(required).collect();
        merge(&mut event["properties"], fields);
        let name = schema_name(kind);
        let reference = format!("#/components/schemas/{name}");
        choices.push(json!({"$ref": reference}));
        mapping.insert(kind.name().to_owned(), reference.into());
        schemas.insert(name, event);
    }
    for (name, schema) in referred {
        schemas.entry(name).or_insert_with(|| json!(schema));
    }
    let event = json!({"oneOf": choices, "discriminator": {"propertyName": "type", "mapping": mapping}});
    schemas.insert("RunEvent".to_owned(), event);
}

/// Returns the kind's name as generators write types: `RunQueuedEvent` of `run.queued`.
fn schema_name(kind: EventKind) -> String {
    let words = kind.name().split(['.', '_']).map(|word| format!("{}{}", word[..1].to_uppercase(), &word[1..]));
    words.chain(["Event".to_owned()]).collect()
}

fn complete_operation(operation: &mut Value) {
    let tag = operation["tags"][0].as_str().unwrap_or_default().to_owned();
    let name = operation["operationId"].as_str().unwrap_or_default();
    // The name of a handler is only a verb, which handlers of several nouns share.
    operation["operationId"] = format!("{}_{name}", tag.replace('-', "_")).into();
    if tag == "operations" {
        operation["security"] = json!([{}]);
        return each(operation.get_mut("responses"), describe);
    }
    let has_body = operation.get("requestBody").is_some();
    let responses = operation["responses"].as_object_mut().expect("an operation has responses");
    for (status, codes) in COMMON_RESPONSES.iter().chain(BODY_RESPONSES.iter().filter(|_| has_body)) {
        let response = responses.entry(*status).or_insert_with(|| json!({"description": ""}));
        let own = response["description"].as_str().unwrap_or_default();
        response["description"] = if own.is_empty() { (*codes).into() } else { format!("{own}; {codes}").into() };
    }
    for (status, response) in responses {
        if status.starts_with(['4', '5']) {
            response["content"] = problem_content(&tag);
        }
        // No version of OpenAPI before 3.2 describes the frames of a stream.
        if let Some(stream) = response.pointer_mut("/content/text~1event-stream") {
            *stream = json!({});
        }
        describe_bytes(response);
        describe(response);
    }
    if let Some(body) = operation.get_mut("requestBody") {
        body["required"] = true.into();
        describe_bytes(body);
    }
}

/// Describes bytes as generators expect them. The types of the handlers would be lists of numbers.
fn describe_bytes(content: &mut Value) {
    for pointer in ["/content/application~1octet-stream", "/content/*~1*"] {
        if let Some(bytes) = content.pointer_mut(pointer) {
            *bytes = json!({"schema": {"type": "string", "format": "binary"}});
        }
    }
}

/// Returns the content of an error, in the form of the protocol that the tag names (`problem/form.rs`).
fn problem_content(tag: &str) -> Value {
    let (required, fields) = match tag {
        "langgraph" => ("detail", json!({"detail": {"type": "string"}, "code": {"type": "string"}})),
        "openai" | "a2a" => ("error", json!({"error": {"type": "object"}})),
        _ => return json!({"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}),
    };
    json!({"application/json": {"schema": {"type": "object", "required": [required], "properties": fields}}})
}

/// Adds a description to a response that has none, because linters require one.
fn describe(response: &mut Value) {
    if response["description"].as_str().unwrap_or_default().is_empty() {
        response["description"] = "The request succeeded.".into();
    }
}

fn complete_parameter(parameter: &mut Value, path: &str, config: &ApiConfig) {
    let schema = &mut parameter["schema"];
    // A parameter is absent or a text; only a body can have null.
    for (list, is_null) in [("oneOf", json!({"type": "null"})), ("type", json!("null"))] {
        let Some(choices) = schema.get_mut(list).and_then(Value::as_array_mut) else { continue };
        choices.retain(|choice| *choice != is_null);
        if let [only] = &choices[..] {
            let only = only.clone();
            if list == "type" { schema["type"] = only } else { *schema = only }
        }
    }
    if let Some(bounds) = bounds_of_parameter(parameter, path, config) {
        merge(&mut parameter["schema"], bounds);
    }
}

fn complete_schemas(schemas: &mut Map<String, Value>, config: &ApiConfig) {
    for (schema, field, bounds) in bounds_of_fields(config) {
        if let Some(field) = schemas.get_mut(schema).and_then(|schema| schema.get_mut("properties")?.get_mut(field)) {
            merge(field, bounds);
        }
    }
    add_shapes(schemas, config);
    // Generators can compose objects with objects, but not with choices.
    if let Some(content) = schemas.get_mut("Content") {
        let kinds: Vec<Value> =
            content["oneOf"].as_array().into_iter().flatten().map(|kind| kind["properties"].clone()).collect();
        let names: Vec<&Value> = kinds.iter().map(|kind| &kind["content_type"]["enum"][0]).collect();
        let contents: Vec<&Value> = kinds.iter().map(|kind| &kind["content"]).collect();
        *content = json!({
            "type": "object",
            "description": content["description"],
            "required": ["content", "content_type"],
            "properties": {"content_type": {"type": "string", "enum": names}, "content": {"oneOf": contents}},
        });
    }
    // A page repeats the schema of its items, for which generators would make a second type.
    let pages: Vec<String> = schemas.keys().filter(|name| name.starts_with("Page_")).cloned().collect();
    for page in pages {
        let item = page.trim_start_matches("Page_");
        if schemas.contains_key(item) {
            schemas[&page]["properties"]["items"]["items"] = json!({"$ref": format!("#/components/schemas/{item}")});
        }
    }
}

/// Replaces `int32` by `int64` for unsigned numbers, because `int32` lacks their upper half. A number without a format is a `usize`.
fn widen(value: &mut Value) {
    if value["format"] == "int32" && value["minimum"].is_number() {
        value["format"] = "int64".into();
        if value.get("maximum").is_none() {
            value["maximum"] = u32::MAX.into();
        }
    }
    let is_integer =
        value["type"] == "integer" || value["type"].as_array().is_some_and(|all| all.contains(&json!("integer")));
    if is_integer && ["format", "maximum"].iter().all(|field| value.get(*field).is_none()) {
        value["maximum"] = u64::MAX.into();
    }
    each(Some(value), widen);
}

/// Applies `with` to each item or field.
fn each(value: Option<&mut Value>, with: impl FnMut(&mut Value)) {
    match value {
        Some(Value::Array(items)) => items.iter_mut().for_each(with),
        Some(Value::Object(fields)) => fields.values_mut().for_each(with),
        _ => {}
    }
}

fn remove(value: &mut Value, field: &str) -> Option<Value> {
    value.as_object_mut()?.remove(field)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct DocumentSettings {
        #[command(flatten)]
        api: ApiConfig,
    }

    fn document(args: &[&str]) -> Value {
        let settings = DocumentSettings::try_parse_from(["test"].iter().chain(args)).unwrap();
        let routes = super::super::routes(1).describe(super::base());
        complete(&routes, &settings.api)
    }

    fn operations(document: &Value) -> Vec<(String, &Value)> {
        let paths = document["paths"].as_object().unwrap().iter();
        paths
            .flat_map(|(path, methods)| {
                methods
                    .as_object()
                    .unwrap()
                    .iter()
                    .map(move |(method, operation)| (format!("{method} {path}"), operation))
            })
            .collect()
    }

    #[test]
    fn every_operation_has_its_own_name_and_a_described_tag() {
        let document = document(&[]);
        let mut names = std::collections::BTreeSet::new();
        for (route, operation) in operations(&document) {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name), "{route}: another operation has the name {name}, too");
            let tag = &operation["tags"][0];
            assert!(TAGS.iter().any(|(name, _)| tag == name), "{route}: the list of tags lacks {tag}");
        }
    }

    #[test]
    fn every_refusal_has_the_form_of_its_protocol_and_every_response_a_description() {
        let document = document(&[]);
        for (route, operation) in operations(&document) {
            for (status, response) in operation["responses"].as_object().unwrap() {
                assert!(response["description"].as_str().is_some_and(|text| !text.is_empty()), "{status} of {route}");
                let is_refusal = status.starts_with(['4', '5']) && operation["tags"][0] != "operations";
                let types: Vec<&String> =
                    response["content"].as_object().into_iter().flatten().map(|(name, _)| name).collect();
                let form = match operation["tags"][0].as_str() {
                    Some("openai" | "langgraph" | "a2a") => "application/json",
                    _ => "application/problem+json",
                };
                assert!(!is_refusal || route.starts_with("head") || types == [form], "{status} of {route}");
            }
        }
    }

    #[test]
    fn every_parameter_in_a_path_is_a_path_parameter() {
        let document = document(&[]);
        for (route, operation) in operations(&document) {
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = parameter["name"].as_str().unwrap();
                assert_eq!(parameter["in"] == "path", route.contains(&format!("{{{name}}}")), "{name} of {route}");
            }
        }
    }

    #[test]
    fn the_settings_give_the_bounds() {
        let document = document(&["--max-page", "7", "--max-content-bytes", "70"]);
        let parameters = document["paths"]["/v1/runs"]["get"]["parameters"].as_array().unwrap();
        let limit = parameters.iter().find(|parameter| parameter["name"] == "limit").unwrap();
        assert_eq!(limit["schema"], json!({"type": "integer", "minimum": 1, "maximum": 7}));
        let schemas = &document["components"]["schemas"];
        assert_eq!(schemas["NewRunBody"]["properties"]["input"]["maxLength"], 70);
        assert_eq!(schemas["AgentDefinition"]["properties"]["context_tokens"]["format"], "int64");
        assert_eq!(schemas["AgentDefinition"]["properties"]["context_tokens"]["maximum"], u32::MAX);
        assert_eq!(schemas["AgentDefinition"]["properties"]["recursive"]["maximum"], 11);
    }
}
