//! A new project with the entities that it begins with, as one JSON object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{
    entity::id_of,
    input::{InvalidField, NewEntity, invalid},
    kind::{Form, Kind},
};

/// Most entities of one kind, and most relations, that a project begins with.
pub const MAX_CONTENTS: usize = 100;

/// The key of the new project.
const PROJECT_KEY: &str = "project";

/// The list of relations in the object.
pub const RELATIONSHIPS: &str = "relationships";

/// Reads a project with its goals, plans, tasks, documents, outputs and relations, after those of a template. Returns the
/// project first, and relations last.
pub fn read_project(
    mut input: Map<String, Value>,
    template: Option<&Map<String, Value>>,
) -> Result<Vec<NewEntity>, InvalidField> {
    let lists: Vec<String> = list_names().collect();
    let own: Map<String, Value> = lists.iter().filter_map(|name| input.remove_entry(name)).collect();
    let project = NewEntity::read(Kind::Project, input)?;
    let mut names = Names::default();
    names.add(&project, Some(PROJECT_KEY));
    let mut contents = Contents { names, entities: vec![project], edges: Vec::new() };
    if let Some(template) = template {
        contents.add("template", template)?;
    }
    contents.add("", &own)?;
    Ok(contents.finish())
}

/// Reads the body of a template.
pub fn read_contents(place: &str, body: &Map<String, Value>) -> Result<Vec<NewEntity>, InvalidField> {
    let mut names = Names::default();
    names.by_key.insert(PROJECT_KEY.to_owned(), (Kind::Project, Uuid::now_v7()));
    let mut contents = Contents { names, entities: Vec::new(), edges: Vec::new() };
    if let Some(unknown) = body.keys().find(|name| !list_names().any(|list| list == **name)) {
        let lists: Vec<String> = list_names().collect();
        return Err(invalid(&at(place, unknown), format!("there is no such list; there are {}", lists.join(", "))));
    }
    contents.add(place, body)?;
    Ok(contents.finish())
}

fn list_names() -> impl Iterator<Item = String> {
    Kind::CONTENTS.into_iter().map(|kind| kind.plural().to_owned()).chain([RELATIONSHIPS.to_owned()])
}

/// The entities of the call, by the names that relations give them.
#[derive(Default)]
struct Names {
    by_key: BTreeMap<String, (Kind, Uuid)>,
    by_title: BTreeMap<String, Vec<(Kind, Uuid)>>,
}

impl Names {
    fn add(&mut self, new: &NewEntity, key: Option<&str>) {
        let title = new.fields.get(new.kind.title_field()).and_then(Value::as_str).unwrap_or_default();
        self.by_title.entry(title.to_owned()).or_default().push((new.kind, new.id));
        if let Some(key) = key {
            self.by_key.insert(key.to_owned(), (new.kind, new.id));
        }
    }

    /// Returns the entity with a key, an id or a title, in this order.
    fn find(&self, name: &str) -> Result<(Kind, Uuid), &'static str> {
        if let Some(found) = self.by_key.get(name) {
            return Ok(*found);
        }
        let of_id = id_of(&json!(name)).and_then(|id| self.by_title.values().flatten().find(|(_, of)| *of == id));
        match (of_id, self.by_title.get(name).map(Vec::as_slice)) {
            (Some(found), _) | (None, Some([found])) => Ok(*found),
            (None, Some(_)) => Err("several entities have this title; give them keys"),
            (None, None) => Err("no entity of this project has this key or title"),
        }
    }
}

/// An object of a list, with its place in the input.
type Item = (String, Map<String, Value>);

struct Contents {
    names: Names,
    entities: Vec<NewEntity>,
    edges: Vec<NewEntity>,
}

impl Contents {
    /// Adds the lists of an object at a place of the input.
    fn add(&mut self, place: &str, lists: &Map<String, Value>) -> Result<(), InvalidField> {
        let mut keys = BTreeSet::new();
        for kind in Kind::CONTENTS {
            for (place, mut item) in items(place, kind.plural(), lists)? {
                let key = match item.remove("key") {
                    None | Some(Value::Null) => None,
                    Some(Value::String(key)) => Some(key),
                    Some(_) => return Err(invalid(&at(&place, "key"), "a text, such as \"scope\"")),
                };
                if let Some(key) = &key
                    && (key == PROJECT_KEY || !keys.insert(key.clone()))
                {
                    return Err(invalid(&at(&place, "key"), "another entity of this call has this key"));
                }
                if item.contains_key("project_id") {
                    return Err(invalid(
                        &at(&place, "project_id"),
                        "the entity belongs to the new project; leave it out",
                    ));
                }
                self.resolve_ids(&place, kind, &mut item)?;
                let within = |invalid: InvalidField| InvalidField { field: at(&place, &invalid.field), ..invalid };
                let new = NewEntity::read_within(kind, item).map_err(within)?;
                self.names.add(&new, key.as_deref());
                self.entities.push(new);
            }
        }
        for (place, relationship) in items(place, RELATIONSHIPS, lists)? {
            let edge = self.edge(&place, &relationship)?;
            self.edges.push(edge);
        }
        Ok(())
    }

    /// Puts the ids of entities in the place of their keys and titles.
    fn resolve_ids(&self, place: &str, kind: Kind, item: &mut Map<String, Value>) -> Result<(), InvalidField> {
        for field in kind.fields() {
            let (Form::Id(wanted), Some(Value::String(name))) = (field.form, item.get(field.name)) else { continue };
            match self.names.find(name) {
                Ok((found, id)) if found == wanted => item.insert(field.name.to_owned(), json!(id)),
                Ok(_) => return Err(invalid(&at(place, field.name), format!("this is no {}", wanted.as_str()))),
                Err(problem) => return Err(invalid(&at(place, field.name), problem)),
            };
        }
        Ok(())
    }

    /// Reads a relation between entities of these lists, and of those before.
    fn edge(&self, place: &str, relationship: &Map<String, Value>) -> Result<NewEntity, InvalidField> {
        let end = |name: &str| {
            let given = relationship.get(name).and_then(Value::as_str);
            let given = given.ok_or_else(|| invalid(&at(place, name), "the key or the title of an entity"))?;
            self.names.find(given).map_err(|problem| invalid(&at(place, name), problem))
        };
        if let Some(unknown) = relationship.keys().find(|name| !["from", "relation", "to"].contains(&name.as_str())) {
            return Err(invalid(&at(place, unknown), "a relation has from, relation and to"));
        }
        let ((from_kind, from_id), (to_kind, to_id)) = (end("from")?, end("to")?);
        let fields = [
            ("from_kind", json!(from_kind)),
            ("from_id", json!(from_id)),
            ("relation", relationship.get("relation").cloned().unwrap_or_default()),
            ("to_kind", json!(to_kind)),
            ("to_id", json!(to_id)),
        ];
        let edge = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let within = |invalid: InvalidField| InvalidField { field: at(place, &invalid.field), ..invalid };
        NewEntity::read_within(Kind::Edge, edge).map_err(within)
    }

    /// Returns all entities, relations last.
    fn finish(mut self) -> Vec<NewEntity> {
        self.entities.append(&mut self.edges);
        self.entities
    }
}

/// Returns the objects of a list, each with its place in the input.
fn items(place: &str, list: &str, lists: &Map<String, Value>) -> Result<Vec<Item>, InvalidField> {
    let wanted = || invalid(&at(place, list), format!("a list of at most {MAX_CONTENTS} objects"));
    let items = match lists.get(list) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) if items.len() <= MAX_CONTENTS => items,
        Some(_) => return Err(wanted()),
    };
    let item = |(index, item): (usize, &Value)| {
        let item = item.as_object().cloned().ok_or_else(wanted)?;
        Ok((format!("{}[{index}]", at(place, list)), item))
    };
    items.iter().enumerate().map(item).collect()
}

fn at(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: Value) -> Result<Vec<NewEntity>, String> {
        read_project(input.as_object().unwrap().clone(), None).map_err(|invalid| invalid.to_string())
    }

    #[test]
    fn relations_name_entities_by_key_or_title() {
        let entities = read(json!({
            "name": "Harbour", "plans": [{"name": "Spring", "key": "p"}],
            "tasks": [{"title": "Call", "plan_id": "p"}, {"title": "Measure"}],
            "relationships": [{"from": "Measure", "relation": "depends_on", "to": "Call"}, {"from": "project", "relation": "has", "to": "p"}]
        }));
        let entities = entities.unwrap();
        let kinds: Vec<Kind> = entities.iter().map(|new| new.kind).collect();
        assert_eq!(kinds, [Kind::Project, Kind::Plan, Kind::Task, Kind::Task, Kind::Edge, Kind::Edge]);
        assert_eq!(entities[2].fields["plan_id"], json!(entities[1].id));
        assert_eq!(
            (&entities[4].fields["from_id"], &entities[4].fields["to_id"]),
            (&json!(entities[3].id), &json!(entities[2].id))
        );
        assert_eq!(entities[5].fields["from_id"], json!(entities[0].id));
    }

    #[test]
    fn a_wrong_place_of_the_input_is_named() {
        let task = |title: &str| json!({"title": title});
        for (input, problem) in [
            (
                json!({"name": "h", "tasks": [{"title": "t", "priority": 9}]}),
                "tasks[0].priority: a whole number from 1 to 5, such as 1",
            ),
            (
                json!({"name": "h", "tasks": [{"title": "a", "key": "k"}, {"title": "b", "key": "k"}]}),
                "tasks[1].key: another entity of this call has this key",
            ),
            (
                json!({"name": "h", "tasks": [{"title": "a", "project_id": "x"}]}),
                "tasks[0].project_id: the entity belongs to the new project",
            ),
            (json!({"name": "h", "tasks": {}}), "tasks: a list of at most 100 objects"),
            (
                json!({"name": "h", "tasks": [{"title": "t", "plan_id": "p"}]}),
                "tasks[0].plan_id: no entity of this project has this key or title",
            ),
            (
                json!({"name": "h", "tasks": [task("t"), task("t")], "relationships": [{"from": "t", "relation": "blocks", "to": "h"}]}),
                "relationships[0].from: several entities have this title; give them keys",
            ),
            (
                json!({"name": "h", "tasks": [task("t")], "relationships": [{"from": "t", "relation": "eats", "to": "h"}]}),
                "relationships[0].relation: one of has, supports,",
            ),
            (
                json!({"name": "h", "relationships": [{"from": "h", "relation": "has", "to": "h"}]}),
                "relationships[0].to_id: an entity has no relation to itself",
            ),
            (
                json!({"name": "h", "tasks": (0..101).map(|_| task("t")).collect::<Vec<_>>()}),
                "tasks: a list of at most 100 objects",
            ),
        ] {
            let refused = read(input).unwrap_err();
            assert!(refused.starts_with(problem), "{refused}");
        }
        let unknown = json!({"ships": []});
        let refused = read_contents("body", unknown.as_object().unwrap()).unwrap_err().to_string();
        assert!(refused.starts_with("body.ships: there is no such list"), "{refused}");
    }
}
