//! The names and descriptions of the tools, and the texts of their results.

use holdfast_shared::{excerpt, page::Page};
use serde_json::Value;

use super::{Operation, ToolOutput, guide, reference};
use crate::{
    entity::Entity,
    kind::{Form, Kind},
};

/// Longest result, in characters.
const MAX_CHARS: usize = 4000;

/// Returns the name of a tool, and its description for the model.
pub fn of_tool(operation: Operation) -> (String, String) {
    match operation {
        Operation::List(kind) => {
            let name = kind.plural();
            (format!("list_onto_{name}"), format!("Lists {name}, newest first."))
        }
        Operation::Details(kind) => {
            let name = kind.as_str();
            let more = if kind == Kind::Project { ", with what is in it" } else { "" };
            (format!("get_onto_{name}_details"), format!("Reads a {name} with all its fields{more}."))
        }
        Operation::Create(kind) => {
            let name = kind.as_str();
            let more = match kind {
                Kind::Task => guide::TASKS,
                Kind::Project => "Give its goals, plans, tasks and documents in the same call.",
                _ => "",
            };
            (format!("create_onto_{name}"), format!("Creates a {name}. {more}").trim().to_owned())
        }
        Operation::Update(kind) => {
            let name = kind.as_str();
            (format!("update_onto_{name}"), format!("Changes the fields of a {name} that you give; null clears one."))
        }
        Operation::Delete(kind) => {
            let name = kind.as_str();
            (format!("delete_onto_{name}"), format!("Deletes a {name}; it can be restored for 30 days."))
        }
        Operation::FieldInfo => ("get_field_info".to_owned(), "Says which values a field takes.".to_owned()),
        Operation::Overview => (
            "get_buildos_overview".to_owned(),
            "Says what the workspace has: the newest projects, and the kinds.".to_owned(),
        ),
        Operation::UsageGuide => {
            ("get_buildos_usage_guide".to_owned(), "Says how to work with the workspace.".to_owned())
        }
    }
}

/// Returns a text of at most the longest length.
pub fn bounded(text: String) -> String {
    excerpt::chars(&text, MAX_CHARS)
}

/// Words a page of a list.
pub fn of_list(kind: Kind, page: &Page<Entity>) -> ToolOutput {
    let entities = page.items.iter().map(reference).collect();
    if page.items.is_empty() {
        return ToolOutput { text: format!("There are no {}.", kind.plural()), entities };
    }
    let mut lines: Vec<String> = page.items.iter().map(line).collect();
    lines.extend(page.next.as_ref().map(|next| format!("There are more: call again with \"cursor\": \"{next}\".")));
    ToolOutput { text: bounded(lines.join("\n")), entities }
}

/// Words an entity with all its fields, and what is in a project.
pub fn of_details(entity: &Entity, within: &[(Kind, Page<Entity>)]) -> ToolOutput {
    let mut lines = vec![format!("{} {} (version {})", entity.kind.as_str(), entity.id, entity.version)];
    let fields = entity.kind.fields().iter().filter_map(|field| Some((field, entity.fields.get(field.name)?)));
    let has_value = fields.filter(|(_, value)| !value.is_null());
    // A long text comes last, so that its end is what does not fit.
    let (long, short): (Vec<_>, Vec<_>) = has_value.partition(|(field, _)| matches!(field.form, Form::Body(_)));
    let word = |(field, value): (&crate::kind::Field, &Value)| format!("{}: {}", field.name, plain(value));
    lines.extend(short.into_iter().map(word));
    let mut entities = vec![reference(entity)];
    for (kind, page) in within.iter().filter(|(_, page)| !page.items.is_empty()) {
        let more = if page.next.is_some() {
            format!(", the newest; list_onto_{} has the rest", kind.plural())
        } else {
            String::new()
        };
        lines.push(format!("{}{more}:", kind.plural()));
        lines.extend(page.items.iter().map(line));
        entities.extend(page.items.iter().map(reference));
    }
    lines.extend(long.into_iter().map(word));
    ToolOutput { text: bounded(lines.join("\n")), entities }
}

/// Words the entities of a change.
pub fn of_change(done: &str, entities: &[Entity]) -> ToolOutput {
    let lines: Vec<String> = entities.iter().map(line).collect();
    ToolOutput {
        text: bounded(format!("{done}:\n{}", lines.join("\n"))),
        entities: entities.iter().map(reference).collect(),
    }
}

/// Words an entity in a line: its id, its title and the fields that tell its state.
fn line(entity: &Entity) -> String {
    let shown = ["state", "priority", "due_at", "target_date", "end_at"];
    let facts = shown.iter().filter_map(|name| {
        let value = entity.fields.get(*name).filter(|value| !value.is_null())?;
        Some(if *name == "state" { plain(value) } else { format!("{name} {}", plain(value)) })
    });
    let facts: Vec<String> = facts.collect();
    format!("- {} {}: {} ({})", entity.kind.as_str(), entity.id, excerpt::chars(entity.title(), 120), facts.join(", "))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
