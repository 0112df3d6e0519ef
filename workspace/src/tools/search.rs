//! `search_…`: entities by their names.

use serde_json::{Map, Value, json};

use super::{
    Call, EntityReference, ToolFailure, ToolOutput, arguments, data,
    declaration::{self, Category, Declaration},
    refused,
    text::{self, Lines},
};
use crate::{
    kind::{Form, Kind},
    storage::{Found, Search},
};

pub fn declare(kind: Kind) -> Declaration {
    let name = kind.plural();
    let mut properties = json!({"query": declaration::text(), "limit": declaration::limit()});
    if kind.is_within_project() {
        properties["project_id"] = declaration::text();
    }
    if let Some(field) = kind.field("state").filter(|_| kind != Kind::Document) {
        properties["state"] = declaration::of_form(field.form);
    }
    let summary = format!("Finds {name} by words of their {}s.", kind.title_field());
    Declaration::new(Category::Search, format!("search_onto_{name}"), summary, properties).requires(&["query"])
}

pub fn declare_all() -> Declaration {
    let kinds = Kind::SEARCHED.map(Kind::as_str);
    let properties = json!({
        "query": declaration::text(),
        "project_id": declaration::text(),
        "types": {"type": "array", "items": {"enum": kinds}},
        "limit": declaration::limit()
    });
    let summary = "Finds entities of all kinds by words of their names, also with typing errors, best first.";
    Declaration::new(Category::Search, "search_ontology", summary, properties).requires(&["query"])
}

pub async fn call_of_all(call: Call<'_>, input: &Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
    let Some(types) = input.get("types").filter(|types| !types.is_null()) else {
        return self::call(call, &Kind::SEARCHED, input).await;
    };
    let kind = |name: &Value| name.as_str()?.parse().ok().filter(|kind| Kind::SEARCHED.contains(kind));
    let kinds: Option<Vec<Kind>> = types.as_array().and_then(|types| types.iter().map(kind).collect());
    match kinds {
        Some(mut kinds) => {
            kinds.sort_unstable();
            kinds.dedup();
            self::call(call, &kinds, input).await
        }
        None => {
            let kinds = Kind::SEARCHED.map(Kind::as_str).join(", ");
            Err(refused("invalid_arguments", format!("types: a list of {kinds}, such as [\"task\"]")))
        }
    }
}

/// Finds entities of these kinds.
pub async fn call(call: Call<'_>, kinds: &[Kind], input: &Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
    let state = input.get("state").and_then(Value::as_str);
    if let (Some(state), [kind]) = (state, kinds)
        && let Some(Form::State(states)) = kind.field("state").map(|field| field.form)
        && !states.contains(&state)
    {
        return Err(refused("invalid_arguments", format!("state: one of {}", states.join(", "))));
    }
    let project_id = if kinds == [Kind::Project] { None } else { call.project_of(input)? };
    let query = arguments::query(input)?;
    let search = Search { query, kinds, project_id, state, limit: arguments::limit(input) };
    let found = call.workspace.search(call.author.owner, search).await?;
    if found.is_empty() {
        return Ok(ToolOutput::of_nothing(format!("Nothing has a name like \"{query}\".")));
    }
    let lines: Vec<String> = found.iter().map(text::found).collect();
    let Lines { shown, text, .. } = text::of_lines(&lines, |_| None, None);
    let item = |found: &Found| {
        let mut item = data::of_reference(&reference(found));
        if let Some(state) = &found.state {
            item["state"] = json!(state);
        }
        item
    };
    let items = found[..shown].iter().map(item).collect();
    let data = Some(data::of_items(items, None, lines.len() - shown));
    Ok(ToolOutput { text, entities: found[..shown].iter().map(reference).collect(), notice: None, data })
}

fn reference(found: &Found) -> EntityReference {
    EntityReference { kind: found.kind, id: found.id, name: found.name.clone() }
}
