//! The texts of results.

use std::collections::BTreeMap;

use holdfast_shared::{excerpt, page::Page};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{EntityReference, ToolOutput, data, details::ProjectContents};
use crate::{
    entity::Entity,
    kind::{Field, Kind},
    storage::Found,
};

/// Longest result, in characters.
const MAX_CHARS: usize = 4000;

/// Characters that the line with the next cursor takes at most.
const NEXT_CHARS: usize = 100;

/// Characters of the entities of one kind in a project.
const KIND_CHARS: usize = 550;

/// Characters of a long text, and of an entity's own `props`.
const LONG_CHARS: usize = 2500;
const PROPS_CHARS: usize = 300;

/// Returns a text of at most the longest length.
pub fn bounded(text: String) -> String {
    excerpt::chars(&text, MAX_CHARS)
}

/// Words a page of a list: as many lines as fit, and how to get the rest.
pub fn of_list(kind: Kind, page: &Page<Entity>) -> ToolOutput {
    if page.items.is_empty() {
        return ToolOutput::of_nothing(format!("There are no {}.", kind.plural()));
    }
    let lines: Vec<String> = page.items.iter().map(line).collect();
    let Lines { shown, text, next } = of_lines(&lines, |last| Some(page.items[last].id.to_string()), page.next.clone());
    let items = &page.items[..shown];
    let data = data::of_items(items.iter().map(data::of_entity).collect(), next, 0);
    ToolOutput { text, entities: items.iter().map(EntityReference::of).collect(), notice: None, data: Some(data) }
}

/// Says how to get the rest of a list.
fn more(next: &str) -> String {
    format!("There are more: call again with \"cursor\": \"{next}\".")
}

/// The lines of a result that have room.
pub struct Lines {
    /// How many there are.
    pub shown: usize,
    /// The lines, and how to get the rest.
    pub text: String,
    /// The cursor of the rest.
    pub next: Option<String>,
}

/// Joins as many lines as a result has room for, and says how to get the rest: by the cursor of the last one that fits, or else
/// of the page.
pub fn of_lines(lines: &[String], cursor: impl Fn(usize) -> Option<String>, next: Option<String>) -> Lines {
    let (shown, mut text) = fitting(lines, MAX_CHARS - NEXT_CHARS);
    let is_whole = shown == lines.len();
    let next = if is_whole { next } else { cursor(shown - 1) };
    match &next {
        Some(next) => text += &format!("\n{}", more(next)),
        None if !is_whole => text += &format!("\nThere are {} more: ask for less.", lines.len() - shown),
        None => {}
    }
    Lines { shown, text, next }
}

/// Returns how many of the lines have at most this many characters together, and these lines; at least one.
fn fitting(lines: &[String], most: usize) -> (usize, String) {
    let mut text = String::new();
    for (place, line) in lines.iter().enumerate() {
        if place > 0 && text.chars().count() + line.chars().count() + 1 > most {
            return (place, text);
        }
        text += &format!("{}{line}", if place > 0 { "\n" } else { "" });
    }
    (lines.len(), text)
}

/// Words an entity with all its fields. A long text begins at a character, and says how to get its rest.
pub fn of_details(entity: &Entity, offset: usize) -> ToolOutput {
    let (mut lines, long) = head(entity);
    for (field, text) in long {
        lines.push(format!("{}: {}", field.name, from_character(text, offset, LONG_CHARS)));
    }
    let data = Some(data::of_details(entity, offset, LONG_CHARS));
    ToolOutput { text: bounded(lines.join("\n")), entities: vec![EntityReference::of(entity)], notice: None, data }
}

/// Words a project with a part of what is in it: how many there are of each kind, and as many lines of each as fit.
pub fn of_project(contents: &ProjectContents) -> ToolOutput {
    let project = &contents.project;
    let (mut lines, long) = head(project);
    for (field, text) in long {
        lines.push(format!("{}: {}", field.name, from_character(text, 0, KIND_CHARS)));
    }
    let mut entities = vec![EntityReference::of(project)];
    let mut data = data::of_details(project, 0, KIND_CHARS);
    let mut groups = Vec::new();
    let names: BTreeMap<Uuid, String> = contents
        .within
        .iter()
        .flat_map(|(_, page)| &page.items)
        .chain([project])
        .map(|one| (one.id, one.title().to_owned()))
        .collect();
    for (kind, page) in contents.within.iter() {
        let count = contents.counts.iter().find(|(of, _)| of == kind).map_or(0, |(_, count)| *count);
        let word = |entity: &Entity| if *kind == Kind::Edge { relation(entity, &names) } else { line(entity) };
        let of_kind: Vec<String> = page.items.iter().map(word).collect();
        let (shown, text) = fitting(&of_kind, KIND_CHARS);
        let shown = &page.items[..shown];
        let (name, open) = match kind {
            Kind::Task => ("open tasks, the most important first".to_owned(), contents.open_tasks),
            Kind::Edge => ("relations".to_owned(), count),
            kind => (kind.plural().to_owned(), count),
        };
        let rest = match kind {
            Kind::Edge => "get_entity_relationships has those of an entity".to_owned(),
            Kind::Output => "the others are on the project's page".to_owned(),
            kind => format!("list_onto_{} has the others", kind.plural()),
        };
        let is_whole = shown.len() as i64 == count;
        let heading = if is_whole {
            format!("{name} ({count})")
        } else {
            format!("{name} ({} of {open}, of {count} in all; {rest})", shown.len())
        };
        lines.push(if text.is_empty() { heading } else { format!("{heading}:\n{text}") });
        let item = |entity: &Entity| match kind {
            Kind::Edge => data::of_relation(entity, |id| names.get(&id).cloned()),
            _ => data::of_entity(entity),
        };
        let items: Vec<Value> = shown.iter().map(item).collect();
        let mut group = json!({"kind": kind, "count": count, "items": items});
        if *kind == Kind::Task {
            group["open"] = json!(open);
        }
        groups.push(group);
        entities.extend(shown.iter().filter(|one| one.kind != Kind::Edge).map(EntityReference::of));
    }
    data["contents"] = json!(groups);
    ToolOutput { text: bounded(lines.join("\n")), entities, notice: None, data: Some(data) }
}

/// Returns the lines of an entity's short fields, and its long ones.
fn head(entity: &Entity) -> (Vec<String>, Vec<(&'static Field, &str)>) {
    let mut lines = vec![format!("{} {} (version {})", entity.kind.as_str(), entity.id, entity.version)];
    let mut long = Vec::new();
    for field in entity.kind.fields() {
        match entity.fields.get(field.name) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if field.is_long() => long.push((field, text.as_str())),
            Some(value) => lines.push(format!("{}: {}", field.name, plain(value))),
        }
    }
    if let Some(props) =
        entity.fields.get("props").filter(|props| props.as_object().is_some_and(|props| !props.is_empty()))
    {
        lines.push(format!("props: {}", excerpt::chars(&props.to_string(), PROPS_CHARS)));
    }
    (lines, long)
}

/// Returns at most `most` characters of a text from a place on, and how to get the rest.
fn from_character(text: &str, offset: usize, most: usize) -> String {
    let count = text.chars().count();
    let part: String = text.chars().skip(offset).take(most).collect();
    let end = offset + part.chars().count();
    match (offset, end < count) {
        (0, false) => part,
        (_, false) => format!("(from character {offset}) {part}"),
        (_, true) => format!(
            "{part}\n(Characters {offset} to {end} of {count}. For more, call get_onto_…_details with \"offset\": {end}.)"
        ),
    }
}

/// Words a relation: the other ends by name, where they are known.
pub fn relation(edge: &Entity, names: &BTreeMap<Uuid, String>) -> String {
    let end = |kind: &str, id: &str| {
        let (kind, id) = (edge.kind_in(kind).map_or("entity", Kind::as_str), edge.id_in(id).unwrap_or_default());
        let name = names.get(&id).map(|name| format!(": {}", excerpt::chars(name, 80))).unwrap_or_default();
        format!("{kind} {id}{name}")
    };
    format!("- {} —{}→ {}", end("from_kind", "from_id"), edge.title(), end("to_kind", "to_id"))
}

/// Words a result of a search.
pub fn found(found: &Found) -> String {
    let state = found.state.as_deref().map(|state| format!(" ({state})")).unwrap_or_default();
    format!("- {} {}: {}{state}", found.kind.as_str(), found.id, excerpt::chars(&found.name, 120))
}

/// Words the entities of a change.
pub fn of_change(done: &str, entities: &[Entity]) -> ToolOutput {
    let (relations, named): (Vec<&Entity>, Vec<&Entity>) =
        entities.iter().partition(|entity| entity.kind == Kind::Edge);
    let mut lines: Vec<String> = named.iter().map(|entity| line(entity)).collect();
    match (named.is_empty(), relations.as_slice()) {
        (_, []) => {}
        (true, relations) => lines.extend(relations.iter().map(|edge| relation(edge, &BTreeMap::new()))),
        (false, relations) => lines.push(format!("- relations: {}", relations.len())),
    }
    ToolOutput {
        text: bounded(format!("{done}:\n{}", lines.join("\n"))),
        entities: named.into_iter().map(EntityReference::of).collect(),
        notice: None,
        data: Some(data::of_change(done, entities)),
    }
}

/// Words an entity in a line: its id, its title and the fields that tell its state.
fn line(entity: &Entity) -> String {
    let facts = data::STATE_FIELDS.iter().filter_map(|name| {
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
        let last = listed.entities.last().unwrap().id;
        assert!(listed.entities.len() > 10 && listed.text.chars().count() <= MAX_CHARS);
        assert!(listed.text.ends_with(&format!("\"cursor\": \"{last}\".")), "{}", listed.text);
        let few = of_list(Kind::Task, &Page { items: vec![task(1)], next: Some("c".into()) });
        assert!(few.text.ends_with("\"cursor\": \"c\"."));
    }

    #[test]
    fn a_project_shows_each_kind_within_its_bounds() {
        let page = || Page { items: (1..=20).map(task).collect(), next: None };
        let within = vec![(Kind::Task, page()), (Kind::Output, page())];
        let counts = vec![(Kind::Task, 30), (Kind::Output, 20)];
        let project = ProjectContents { project: task(1), within, counts, open_tasks: 25 };
        let details = of_project(&project);
        let heading =
            "open tasks, the most important first (3 of 25, of 30 in all; list_onto_tasks has the others):\n- task";
        assert!(details.text.contains(heading), "{}", details.text);
        assert!(details.text.contains("outputs (3 of 20, of 20 in all; ") && details.text.chars().count() <= MAX_CHARS);
    }

    #[test]
    fn the_rest_of_a_long_text_is_named() {
        let mut document = task(1);
        document.kind = Kind::Document;
        document.fields.insert("body".to_owned(), json!("é".repeat(3000)));
        let first = of_details(&document, 0);
        assert!(
            first.text.ends_with("with \"offset\": 2500.)") && first.text.chars().count() <= MAX_CHARS,
            "{}",
            first.text
        );
        assert!(of_details(&document, 2500).text.ends_with(&format!("(from character 2500) {}", "é".repeat(500))));
    }
}
