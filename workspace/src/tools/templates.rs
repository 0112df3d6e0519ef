//! The tools about templates.

use holdfast_shared::page::PageSize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    Call, EntityReference, Notice, ToolFailure, ToolOutput,
    arguments::{self, MAX_ITEMS, needed_text},
    data,
    declaration::{self, Category, Declaration},
    invalid_arguments, result,
    text::{self, Lines},
};
use crate::{
    entity::{Entity, folded},
    input::NewEntity,
    kind::Kind,
};

/// Most pages of templates that one call looks through.
const MOST_PAGES: usize = 20;

pub fn declare_list() -> Declaration {
    let properties = json!({"query": declaration::text(), "kind": declaration::text(), "limit": declaration::limit()});
    let summary = "Lists templates: what a new project can begin with.";
    Declaration::new(Category::Search, "list_onto_templates", summary, properties)
}

pub async fn list(call: Call<'_>, input: &Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
    let wanted = |name: &str| input.get(name).and_then(Value::as_str).map(folded);
    let (query, kind) = (wanted("query"), wanted("kind"));
    let text_of = |template: &Entity, field: &str| folded(template.fields[field].as_str().unwrap_or_default());
    let is_wanted = |template: &Entity| {
        let words =
            format!("{} {} {}", folded(template.title()), text_of(template, "key"), text_of(template, "description"));
        let has_query = |query: &String| query.split_whitespace().any(|word| words.contains(word));
        query.as_ref().is_none_or(has_query) && kind.as_ref().is_none_or(|kind| text_of(template, "kind") == *kind)
    };
    let (limit, mut listed, mut cursor) = (arguments::limit(input), Vec::new(), None);
    // The templates that are always there come last.
    for _ in 0..MOST_PAGES {
        let size = PageSize::from(MAX_ITEMS);
        let page = call.workspace.templates(call.author.owner, None, None, cursor, size).await?;
        let is_there = |template: &Entity| template.fields["state"] != "requested" && is_wanted(template);
        listed.extend(page.items.into_iter().filter(is_there));
        cursor = page.next.and_then(|next| next.parse().ok());
        if cursor.is_none() || listed.len() >= limit {
            break;
        }
    }
    listed.truncate(limit);
    if listed.is_empty() {
        return Ok(ToolOutput::of_nothing(
            "There is no such template. request_template_creation asks the operators for one.",
        ));
    }
    let line = |template: &Entity| {
        let description = template.fields["description"].as_str().unwrap_or_default();
        let key = template.fields["key"].as_str().unwrap_or("no key");
        let state = template.fields["state"].as_str().unwrap_or_default();
        format!("- template_key {key}: {} ({state}). {description}", template.title())
    };
    let lines: Vec<String> = listed.iter().map(line).collect();
    let Lines { shown, text, .. } = text::of_lines(&lines, |_| None, None);
    let item = |template: &Entity| {
        let mut item = json!({"id": template.id, "name": template.title()});
        for (name, field) in [("template_key", "key"), ("state", "state"), ("description", "description")] {
            if let Some(value) = template.fields[field].as_str() {
                item[name] = json!(value);
            }
        }
        item
    };
    let data = Some(data::of_items(listed[..shown].iter().map(item).collect(), None, listed.len() - shown));
    Ok(ToolOutput { text, entities: listed[..shown].iter().map(EntityReference::of).collect(), notice: None, data })
}

pub fn declare_request() -> Declaration {
    let properties = json!({
        "kind": {"type": "string", "description": "sort of project"}, "reason": declaration::text(),
        "hints": declaration::text(), "project_id": declaration::text()
    });
    let summary = "Asks the operators for a template of a sort of project that has none.";
    Declaration::new(Category::Template, "request_template_creation", summary, properties).requires(&["kind", "reason"])
}

pub async fn request(call: Call<'_>, input: Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
    let kind = needed_text(&input, "kind", "garden")?.to_owned();
    let reason = needed_text(&input, "reason", "no template has seasons")?.to_owned();
    let hints = input.get("hints").and_then(Value::as_str).map(str::to_owned);
    let project = call.project_of(&input)?;
    let template = json!({
        "name": kind, "kind": kind, "description": reason, "state": "requested",
        "props": {"hints": hints, "project_id": project}
    });
    let Value::Object(template) = template else { unreachable!("the value is an object") };
    let new = NewEntity::read(Kind::Template, template).map_err(invalid_arguments)?;
    let created = result(call.workspace.create(call.author, new).await, Kind::Template, Uuid::nil())?;
    Ok(requested(&created))
}

/// Words a request.
pub fn requested(template: &Entity) -> ToolOutput {
    let text_of = |value: &Value| value.as_str().map(str::to_owned);
    let field = |name: &str| template.fields.get(name).and_then(text_of).unwrap_or_default();
    let hints = template.fields.get("props").and_then(|props| text_of(&props["hints"]));
    let notice =
        Notice::TemplateRequested { id: template.id, kind: field("kind"), reason: field("description"), hints };
    ToolOutput { notice: Some(notice), ..text::of_change("Requested", std::slice::from_ref(template)) }
}

pub fn declare_suggest() -> Declaration {
    let properties =
        json!({"kind": declaration::text(), "name": declaration::text(), "rationale": declaration::text()});
    let summary = "Suggests to the user a template that would help them.";
    let declaration = Declaration::new(Category::Template, "suggest_template", summary, properties);
    declaration.requires(&["kind", "name", "rationale"])
}

pub fn suggest(input: &Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
    let kind = needed_text(input, "kind", "garden")?.to_owned();
    let name = needed_text(input, "name", "Garden through the year")?.to_owned();
    let rationale = needed_text(input, "rationale", "the work follows the seasons")?.to_owned();
    let output = ToolOutput::of_text(format!("Suggested the template \"{name}\" to the user."));
    Ok(ToolOutput { notice: Some(Notice::TemplateSuggested { kind, name, rationale }), ..output })
}
