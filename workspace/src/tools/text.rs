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

/// Characters that the line with the next cursor takes at most.
const NEXT_CHARS: usize = 100;

/// Characters of the entities of one kind in a project.
const KIND_CHARS: usize = 600;

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

/// Words a page of a list: as many lines as fit, and how to get the rest.
pub fn of_list(kind: Kind, page: &Page<Entity>) -> ToolOutput {
    if page.items.is_empty() {
        return ToolOutput { text: format!("There are no {}.", kind.plural()), entities: Vec::new() };
    }
    let (shown, mut text) = fitting(&page.items, MAX_CHARS - NEXT_CHARS);
    let next = match shown.last() {
        Some(last) if shown.len() < page.items.len() => Some(last.id.to_string()),
        _ => page.next.clone(),
    };
    if let Some(next) = next {
        text += &format!("\nThere are more: call again with \"cursor\": \"{next}\".");
    }
    ToolOutput { text, entities: shown.iter().map(reference).collect() }
}

/// Returns the first entities whose lines have at most this many characters together, with these lines; at least one.
fn fitting(entities: &[Entity], most: usize) -> (&[Entity], String) {
    let mut text = String::new();
    for (place, entity) in entities.iter().enumerate() {
        let line = line(entity);
        if place > 0 && text.chars().count() + line.chars().count() + 1 > most {
            return (&entities[..place], text);
        }
        text += &format!("{}{line}", if place > 0 { "\n" } else { "" });
    }
    (entities, text)
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
        let (shown, text) = fitting(&page.items, KIND_CHARS);
        let is_whole = shown.len() == page.items.len() && page.next.is_none();
        let more = match (is_whole, kind) {
            (true, _) => String::new(),
            (false, Kind::Output) => ", the newest".to_owned(),
            (false, kind) => format!(", the newest; list_onto_{} has the rest", kind.plural()),
        };
        lines.push(format!("{}{more}:\n{text}", kind.plural()));
        entities.extend(shown.iter().map(reference));
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn task(number: u128) -> Entity {
        let title = format!("{number} {}", "x".repeat(110));
        let state = json!({
            "id": Uuid::from_u128(number), "project_id": null, "title": title, "state": "todo", "version": 1,
            "created_at": "2026-12-01T09:00:00.000Z", "updated_at": "2026-12-01T09:00:00.000Z"
        });
        Entity::of_state(Kind::Task, &state).unwrap()
    }

    #[test]
    fn a_list_that_does_not_fit_says_how_to_get_the_rest() {
        let items: Vec<Entity> = (1..=50).map(task).collect();
        let listed = of_list(Kind::Task, &Page { items, next: None });
        let last = listed.entities.last().unwrap().1;
        assert!(listed.entities.len() > 10 && listed.text.chars().count() <= MAX_CHARS);
        assert!(listed.text.ends_with(&format!("\"cursor\": \"{last}\".")), "{}", listed.text);
        let few = of_list(Kind::Task, &Page { items: vec![task(1)], next: Some("c".into()) });
        assert!(few.text.ends_with("\"cursor\": \"c\"."));
    }

    #[test]
    fn a_project_shows_each_kind_within_its_bounds() {
        let page = || Page { items: (1..=20).map(task).collect(), next: None };
        let within = [(Kind::Task, page()), (Kind::Output, page())];
        let details = of_details(&task(1), &within);
        assert!(details.text.contains("tasks, the newest; list_onto_tasks has the rest:\n- task"));
        assert!(details.text.contains("outputs, the newest:\n") && details.text.chars().count() <= MAX_CHARS);
    }
}
