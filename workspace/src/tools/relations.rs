//! The tools about relations: those of an entity, and the documents of a task.

use std::collections::BTreeMap;

use holdfast_shared::page::PageSize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    Call, EntityReference, ToolFailure, ToolOutput,
    arguments::{MAX_ITEMS, optional_id},
    declaration::{self, Category, Declaration},
    invalid_arguments, not_found, refused, result, text,
};
use crate::{
    entity::Entity,
    input::NewEntity,
    kind::{Kind, RELATIONS},
    storage::Filter,
};

pub fn declare_relationships() -> Declaration {
    let properties = json!({"entity_id": declaration::text(), "direction": {"enum": ["in", "out", "both"]}});
    let summary = "Lists the relations of an entity, from it (out) and to it (in).";
    Declaration::new(Category::Search, "get_entity_relationships", summary, properties).requires(&["entity_id"])
}

pub async fn relationships(call: Call<'_>, input: &Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
    let needed = || refused("invalid_arguments", "entity_id: the id of an entity is needed");
    let id = optional_id(input, "entity_id")?.ok_or_else(needed)?;
    let (from_it, to_it) = match input.get("direction").and_then(Value::as_str).unwrap_or("both") {
        "both" => (true, true),
        "out" => (true, false),
        "in" => (false, true),
        _ => return Err(refused("invalid_arguments", "direction: in, out or both")),
    };
    let edges = call.edges_of(id).await?;
    let is_wanted =
        |edge: &&Entity| (from_it && edge.id_in("from_id") == Some(id)) || (to_it && edge.id_in("to_id") == Some(id));
    let edges: Vec<Entity> = edges.iter().filter(is_wanted).cloned().collect();
    if edges.is_empty() {
        let exists = call.workspace.find(call.author.owner, id).await?.is_some();
        if !exists {
            return Err(refused("not_found", format!("there is no entity {id}")));
        }
        return Ok(ToolOutput::of_text("It has no such relations."));
    }
    let ends = call.workspace.ends_of(call.author.owner, &edges).await?;
    let lines: Vec<String> = edges.iter().map(|edge| text::relation(edge, &ends)).collect();
    let entities = ends.values().map(EntityReference::of).collect();
    Ok(ToolOutput { text: text::bounded(lines.join("\n")), entities, notice: None })
}

pub fn declare_documents_of_task() -> Declaration {
    let summary = "Lists the documents that have a relation to a task.";
    let properties = json!({"task_id": declaration::text()});
    Declaration::new(Category::Search, "list_task_documents", summary, properties).requires(&["task_id"])
}

pub async fn documents_of_task(call: Call<'_>, input: &Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
    let id = call.id(Kind::Task, input)?;
    let owner = call.author.owner;
    call.workspace.get(owner, Kind::Task, id).await?.ok_or_else(|| not_found(Kind::Task, id))?;
    let edges = call.edges_of(id).await?;
    let ends: BTreeMap<Uuid, Entity> = call.workspace.ends_of(owner, &edges).await?;
    let documents: Vec<Entity> = ends.into_values().filter(|end| end.kind == Kind::Document).collect();
    if documents.is_empty() {
        return Ok(ToolOutput::of_text("The task has no documents."));
    }
    Ok(text::of_change("Documents", &documents))
}

pub fn declare_create_task_document() -> Declaration {
    let properties = json!({
        "task_id": declaration::text(), "document_id": declaration::text(), "title": declaration::text(),
        "body": declaration::text(), "relation": {"enum": RELATIONS}
    });
    let summary = "Relates a document to a task: that of document_id, or a new one with title and body.";
    Declaration::new(Category::Write, "create_task_document", summary, properties).requires(&["task_id"])
}

pub async fn create_task_document(call: Call<'_>, input: Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
    let task_id = call.id(Kind::Task, &input)?;
    let task = call.workspace.get(call.author.owner, Kind::Task, task_id).await?;
    let task = task.ok_or_else(|| not_found(Kind::Task, task_id))?;
    let mut new = Vec::new();
    let document_id = match optional_id(&input, "document_id")? {
        Some(id) => id,
        None => {
            let document = Map::from_iter([
                ("title".to_owned(), input.get("title").cloned().unwrap_or_default()),
                ("body".to_owned(), input.get("body").cloned().unwrap_or_default()),
                ("project_id".to_owned(), json!(task.project_id)),
            ]);
            let document = NewEntity::read(Kind::Document, document).map_err(invalid_arguments)?;
            let id = document.id;
            new.push(document);
            id
        }
    };
    let relation = input.get("relation").filter(|relation| !relation.is_null()).cloned();
    let edge = json!({
        "project_id": task.project_id, "from_kind": Kind::Document, "from_id": document_id,
        "relation": relation.unwrap_or_else(|| json!("documents")), "to_kind": Kind::Task, "to_id": task_id
    });
    let Value::Object(edge) = edge else { unreachable!("the value is an object") };
    new.push(NewEntity::read(Kind::Edge, edge).map_err(invalid_arguments)?);
    let created = result(call.workspace.create_all(call.author, new).await, Kind::Document, document_id)?;
    Ok(text::of_change("Created", &created))
}

impl Call<'_> {
    /// Returns the newest relations of an entity.
    async fn edges_of(&self, id: Uuid) -> Result<Vec<Entity>, ToolFailure> {
        let filter = Filter::of_entity(id);
        let size = PageSize::from(MAX_ITEMS);
        Ok(self.workspace.list(self.author.owner, Kind::Edge, &filter, None, size).await?.items)
    }
}
