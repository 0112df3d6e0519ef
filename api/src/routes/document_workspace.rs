//! The entities of the workspace in `/openapi.json`. The server has one route for all kinds, and the document has a path for each,
//! because fields and filters depend on the kind in the path.

use holdfast_workspace::{Field, Form, Kind, MAX_CONTENTS, RELATIONSHIPS, filter_name};
use serde_json::{Map, Value, json};

use super::document_bounds::VISIBLE;

/// The path of all kinds, and the schemas of their entities and pages.
const PATH: &str = "/v1/workspace/{kind}";
const ENTITY: &str = "WorkspaceEntity";
const PAGE: &str = "Page_WorkspaceEntity";

/// Describes the routes of each kind instead of those of all kinds.
pub fn add_kinds(document: &mut Value) {
    let paths = document["paths"].as_object_mut().expect("a document has paths");
    for (path, mut item) in std::mem::take(paths) {
        if let Some(rest) = path.strip_prefix(PATH) {
            for kind in Kind::ALL {
                paths.insert(format!("/v1/workspace/{}{rest}", kind.plural()), item_of(&item, *kind));
            }
        } else {
            // The other routes are those of templates.
            refer_to(&mut item, Kind::Template);
            paths.insert(path, item);
        }
    }
    let schemas = document["components"]["schemas"].as_object_mut().expect("there are schemas");
    let page = schemas.remove(PAGE).expect("lists have pages");
    schemas.remove(ENTITY);
    for kind in Kind::ALL {
        let name = name(*kind);
        let mut page = page.clone();
        page["properties"]["items"]["items"] = reference(&name);
        schemas.insert(format!("Page_{name}"), page);
        schemas.insert(format!("New{name}"), new_entity(*kind));
        schemas.insert(format!("{name}Change"), change(*kind));
        schemas.insert(name, entity(*kind));
    }
    schemas.insert("TemplateContents".to_owned(), contents());
    schemas.insert("PublishedTemplate".to_owned(), published_template());
}

/// Returns the name of the schema of a kind's entities.
fn name(kind: Kind) -> String {
    let word = kind.as_str();
    format!("Workspace{}{}", word[..1].to_uppercase(), &word[1..])
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Returns the operations of a path for one kind.
fn item_of(item: &Value, kind: Kind) -> Value {
    let mut item = item.clone();
    refer_to(&mut item, kind);
    for (method, operation) in item.as_object_mut().into_iter().flatten() {
        for field in ["operationId", "summary", "description"] {
            if let Some(Value::String(text)) = operation.get_mut(field) {
                *text = in_words(text, kind);
            }
        }
        if let Some(parameters) = operation.get_mut("parameters").and_then(Value::as_array_mut) {
            parameters.retain_mut(|parameter| parameter["name"] != "kind" && shape_filter(parameter, kind));
        }
        if let Some(body) = operation.get_mut("requestBody") {
            let name = name(kind);
            let name = if method == "post" { format!("New{name}") } else { format!("{name}Change") };
            body["content"]["application/json"]["schema"] = reference(&name);
        }
        if let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) {
            responses.retain(|_, response| response["description"] != "kind_not_found");
        }
    }
    item
}

/// Replaces the words for entities of any kind.
fn in_words(text: &str, kind: Kind) -> String {
    let (one, several) = (kind.as_str(), kind.plural());
    let article = if one.starts_with(['e', 'o']) { "an" } else { "a" };
    text.replace("entities of a kind", several)
        .replace("entities", several)
        .replace("an entity", &format!("{article} {one}"))
        .replace("entity", one)
}

/// Replaces references to the schemas of any entity by those of a kind.
fn refer_to(value: &mut Value, kind: Kind) {
    match value {
        Value::String(text) => {
            let replaced =
                |whole: &str| text.strip_suffix(whole).filter(|start| start.ends_with('/')).map(str::to_owned);
            if let Some(start) = replaced(ENTITY) {
                *text = format!("{start}{}", name(kind));
            } else if let Some(start) = replaced(PAGE) {
                *text = format!("{start}Page_{}", name(kind));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| refer_to(item, kind)),
        Value::Object(fields) => fields.values_mut().for_each(|field| refer_to(field, kind)),
        _ => {}
    }
}

/// Gives a parameter of a list the values that it has for a kind. Returns whether the kind has it.
fn shape_filter(parameter: &mut Value, kind: Kind) -> bool {
    let schema = match parameter["name"].as_str().unwrap_or_default() {
        "id" | "limit" | "cursor" => return true,
        "project_id" => return kind.is_within_project(),
        "entity_id" if kind == Kind::Edge => None,
        "order" if kind == Kind::Task => Some(json!({"type": "string", "enum": ["newest", "priority", "due"]})),
        "order" => Some(json!({"type": "string", "enum": ["newest"]})),
        name => match kind.fields().iter().find(|field| filter_name(field).as_deref() == Some(name)) {
            Some(field) => Some(filter(field)),
            None => return false,
        },
    };
    if let Some(schema) = schema {
        parameter["schema"] = schema;
    }
    if let Some(Value::String(text)) = parameter.get_mut("description")
        && let Some((_, rest)) = text.strip_prefix("Of ").and_then(|text| text.split_once(": "))
    {
        *text = format!("{}{}", rest[..1].to_uppercase(), &rest[1..]);
    }
    true
}

/// Returns the schema of a filter's values.
fn filter(field: &Field) -> Value {
    match field.form {
        Form::State(words) => {
            let words = words.join("|");
            json!({"type": "string", "pattern": format!("^(({words})| *({words}) *(, *({words}) *)+)$")})
        }
        _ => value_of(field),
    }
}

/// Returns the schema of the values that a client writes into a field, without null.
fn value_of(field: &Field) -> Value {
    match field.form {
        Form::Text(most) if field.is_required => {
            json!({"type": "string", "minLength": 1, "maxLength": most, "pattern": VISIBLE})
        }
        Form::Text(most) | Form::Body(most) => json!({"type": "string", "maxLength": most}),
        Form::Word(words) | Form::State(words) => json!({"type": "string", "enum": words}),
        Form::Number(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
        Form::Time => {
            json!({"anyOf": [{"type": "string", "format": "date-time"}, {"type": "string", "format": "date"}]})
        }
        Form::Id(_) | Form::IdOf(_) => json!({"type": "string", "format": "uuid"}),
        Form::Object(_) => reference("TemplateContents"),
    }
}

fn or_null(mut schema: Value) -> Value {
    if let Some(choices) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        choices.push(json!({"type": "null"}));
        return schema;
    }
    match schema.get("type").cloned() {
        Some(kind) if schema.get("enum").is_none() => schema["type"] = json!([kind, "null"]),
        _ => return json!({"oneOf": [schema, {"type": "null"}]}),
    }
    schema
}

/// Returns whether a new entity needs the field.
fn is_needed(field: &Field) -> bool {
    field.is_required && field.form.default().is_none()
}

fn props() -> Value {
    json!({"type": ["object", "null"], "description": "For the client's own use, up to 16 KiB of JSON."})
}

/// Returns the fields that a client writes, and the names of those that it must write.
fn written(kind: Kind) -> (Map<String, Value>, Vec<&'static str>) {
    let schema = |field: &Field| if is_needed(field) { value_of(field) } else { or_null(value_of(field)) };
    let mut fields: Map<String, Value> =
        kind.fields().iter().map(|field| (field.name.to_owned(), schema(field))).collect();
    fields.insert("props".to_owned(), props());
    (fields, kind.fields().iter().filter(|field| is_needed(field)).map(|field| field.name).collect())
}

fn new_entity(kind: Kind) -> Value {
    let (mut fields, mut needed) = written(kind);
    let project = if kind.is_within_project() {
        needed.push("project_id");
        json!({"type": "string", "format": "uuid", "description": "The project that it belongs to."})
    } else {
        json!({"type": "null", "description": "It belongs to no project."})
    };
    fields.insert("project_id".to_owned(), project);
    json!({
        "type": "object", "description": in_words("The fields of a new entity.", kind), "required": needed, "properties": fields,
        "additionalProperties": false,
    })
}

fn version() -> Value {
    let description = "The version that the client has read; the change fails if there is another one.";
    json!({"type": ["integer", "null"], "format": "int64", "description": description})
}

fn change(kind: Kind) -> Value {
    let mut fields = Map::new();
    // An edge stays as it is.
    for field in kind.fields().iter().filter(|_| kind != Kind::Edge) {
        let schema = if field.is_required { value_of(field) } else { or_null(value_of(field)) };
        fields.insert(field.name.to_owned(), schema);
    }
    fields.insert("props".to_owned(), props());
    fields.insert("version".to_owned(), version());
    let description = "The fields that change; null takes a value away.";
    json!({"type": "object", "description": description, "properties": fields, "additionalProperties": false})
}

/// Returns the schema of an entity as the server returns it.
fn entity(kind: Kind) -> Value {
    let time = |is_nullable: bool| {
        let schema = json!({"type": "string", "format": "date-time"});
        if is_nullable { or_null(schema) } else { schema }
    };
    let schema = |field: &Field| match field.form {
        Form::Time => time(!field.is_required),
        Form::Text(_) | Form::Body(_) if field.is_required => json!({"type": "string"}),
        Form::Text(_) | Form::Body(_) => json!({"type": ["string", "null"]}),
        Form::Object(_) => json!({"type": ["object", "null"]}),
        _ if field.is_required => value_of(field),
        _ => or_null(value_of(field)),
    };
    let mut fields: Map<String, Value> =
        kind.fields().iter().map(|field| (field.name.to_owned(), schema(field))).collect();
    // A list leaves out bodies.
    let is_always_there = |field: &&Field| !matches!(field.form, Form::Body(_));
    let mut needed: Vec<&str> = kind.fields().iter().filter(is_always_there).map(|field| field.name).collect();
    needed.extend(["id", "props", "version", "created_at", "updated_at", "deleted_at"]);
    let id = json!({"type": "string", "format": "uuid"});
    if kind.is_within_project() {
        needed.push("project_id");
        fields.insert("project_id".to_owned(), id.clone());
    }
    fields.insert("id".to_owned(), id);
    fields.insert("props".to_owned(), json!({"type": "object"}));
    fields.insert("version".to_owned(), json!({"type": "integer", "format": "int64", "minimum": 1}));
    fields.insert("created_at".to_owned(), time(false));
    fields.insert("updated_at".to_owned(), time(false));
    fields.insert("deleted_at".to_owned(), time(true));
    let description = in_words("The fields of an entity.", kind);
    json!({"type": "object", "description": description, "required": needed, "properties": fields})
}

/// Returns the schema of the body of a template.
fn contents() -> Value {
    let list = |item: Value| json!({"type": ["array", "null"], "maxItems": MAX_CONTENTS, "items": item});
    let mut lists = Map::new();
    for kind in Kind::CONTENTS {
        let (mut fields, needed) = written(kind);
        for field in kind.fields() {
            if let Form::Id(named) = field.form {
                let description = format!("The key, or the title, of a {} of these lists.", named.as_str());
                fields.insert(field.name.to_owned(), json!({"type": ["string", "null"], "description": description}));
            }
        }
        let description = "Another name than `project`, by which the lists refer to it.";
        fields.insert("key".to_owned(), json!({"type": ["string", "null"], "description": description}));
        let item = json!({"type": "object", "required": needed, "properties": fields, "additionalProperties": false});
        lists.insert(kind.plural().to_owned(), list(item));
    }
    let end = json!({"type": "string", "description": "A key, a title, or `project`."});
    let relation = Kind::Edge.field("relation").map(value_of);
    let relationship = json!({
        "type": "object", "required": ["from", "relation", "to"], "additionalProperties": false,
        "properties": {"from": end, "relation": relation, "to": end},
    });
    lists.insert(RELATIONSHIPS.to_owned(), list(relationship));
    let description = "The contents of new projects: lists of entities, which refer to each other by keys and titles.";
    json!({"type": "object", "description": description, "properties": lists, "additionalProperties": false})
}

/// Returns the schema of a template that an operator publishes: a change of it, with a state and props that are ignored.
fn published_template() -> Value {
    let mut published = change(Kind::Template);
    published["description"] = "The fields that change before all users read the template.".into();
    for name in ["state", "props"] {
        published["properties"][name] = json!({"description": "The server ignores it."});
    }
    published
}

#[cfg(test)]
mod tests {
    use holdfast_workspace::{Filter, NewEntity, Patch};

    use super::*;

    fn described() -> (Value, Vec<String>) {
        let mut document = json!(super::super::routes(1).describe(super::super::document::base()));
        let of_all = names(&document["paths"][PATH]["get"]["parameters"]);
        add_kinds(&mut document);
        (document, of_all)
    }

    fn names(parameters: &Value) -> Vec<String> {
        parameters.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    }

    fn example(name: &str, kind: Kind) -> Value {
        let example = match name {
            "project_id" | "entity_id" => Form::Id(Kind::Project).example(),
            // An entity has no relation to itself.
            "to_id" => "\"01a20131-6243-7797-8616-20e98be7ff87\"".to_owned(),
            "props" => "{}".to_owned(),
            "version" => "1".to_owned(),
            _ => {
                let is_named = |field: &&Field| field.name == name || filter_name(field).as_deref() == Some(name);
                kind.fields().iter().find(is_named).unwrap().form.example()
            }
        };
        serde_json::from_str(&example).unwrap()
    }

    #[test]
    fn a_list_of_a_kind_has_the_filters_that_the_server_takes() {
        let (document, of_all) = described();
        for kind in Kind::ALL {
            let parameters = &document["paths"][format!("/v1/workspace/{}", kind.plural())]["get"]["parameters"];
            let described = names(parameters);
            for name in of_all.iter().filter(|name| !["kind", "limit", "cursor", "order"].contains(&name.as_str())) {
                let is_described = described.contains(name);
                let value = if is_described { example(name, *kind) } else { json!("x") };
                let taken = Filter::read(*kind, Map::from_iter([(name.clone(), value)]));
                assert_eq!(taken.is_ok(), is_described, "{name} of {}: {taken:?}", kind.plural());
            }
        }
        let order = |plural: &str| {
            let parameters = &document["paths"][format!("/v1/workspace/{plural}")]["get"]["parameters"];
            let of = parameters.as_array().unwrap().iter().find(|one| one["name"] == "order").unwrap();
            of["schema"]["enum"].as_array().unwrap().len()
        };
        assert_eq!((order("tasks"), order("plans")), (3, 1));
    }

    /// Checks that the server reads the fields of a schema, and no others.
    fn check_fields(schema: &Value, kind: Kind, read: impl Fn(Map<String, Value>) -> bool) {
        let fields = schema["properties"].as_object().unwrap();
        let needed = schema["required"].as_array().cloned().unwrap_or_default();
        let input: Map<String, Value> = needed
            .iter()
            .map(|name| name.as_str().unwrap())
            .map(|name| (name.to_owned(), example(name, kind)))
            .collect();
        let with = |name: &str, value: Value| {
            let mut input = input.clone();
            input.insert(name.to_owned(), value);
            read(input)
        };
        assert!(read(input.clone()), "{schema}");
        for (name, field) in fields {
            let is_nullable = field["type"] == "null"
                || field["type"].as_array().is_some_and(|types| types.contains(&json!("null")))
                || ["anyOf", "oneOf"]
                    .iter()
                    .any(|list| field[list].as_array().is_some_and(|all| all.contains(&json!({"type": "null"}))));
            assert_eq!(with(name, Value::Null), is_nullable, "null as {name} of a {}", kind.as_str());
            assert_eq!(with(name, example(name, kind)), field["type"] != "null", "{name} of a {}", kind.as_str());
            let mut without = input.clone();
            without.remove(name);
            assert_eq!(read(without), !needed.contains(&json!(name)), "a {} without {name}", kind.as_str());
        }
        assert!(!with("colour", json!("red")));
    }

    #[test]
    fn a_body_of_a_kind_has_the_fields_that_the_server_takes() {
        let (document, _) = described();
        for kind in Kind::ALL {
            let body = |path: &str, method: &str| {
                let path = format!("/v1/workspace/{}{path}", kind.plural());
                let body = &document["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"];
                let reference = body["$ref"].as_str().unwrap().trim_start_matches('#');
                document.pointer(reference).unwrap()
            };
            check_fields(body("", "post"), *kind, |input| NewEntity::read(*kind, input).is_ok());
            check_fields(body("/{id}", "patch"), *kind, |input| Patch::read(*kind, input).is_ok());
        }
    }

    #[test]
    fn the_words_of_a_kind_replace_those_of_any_entity() {
        let (document, _) = described();
        let operation = &document["paths"]["/v1/workspace/outputs/{id}/restore"]["post"];
        assert_eq!(operation["operationId"], "restore_output");
        assert_eq!(operation["summary"], "Restore a deleted output with all that was deleted with it.");
        let listed = &document["paths"]["/v1/workspace/tasks"]["get"];
        assert_eq!(listed["operationId"], "list_tasks");
        let page = &listed["responses"]["200"]["content"]["application/json"]["schema"]["$ref"];
        assert_eq!(*page, "#/components/schemas/Page_WorkspaceTask");
        let text = document.to_string();
        assert!(!text.contains(&format!("{ENTITY}\"")) && !text.contains(PATH), "the kinds replace them");
    }
}
