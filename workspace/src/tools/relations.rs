//! The tools about relations: those of an entity, and the documents of a task.

use std::collections::BTreeMap;

use holdfast_shared::page::{Page, PageSize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    Call, ToolFailure, ToolOutput,
    arguments::{self, MAX_ITEMS, optional_id},
    data,
    declaration::{self, Category, Declaration},
    invalid_arguments, not_found, refused, result,
    text::{self, Lines},
};
use crate::{
    entity::Entity,
    input::NewEntity,
    kind::{Kind, RELATIONS},
    storage::Filter,
};

pub fn declare_relationships() -> Declaration {
    let properties = json!({
        "entity_id": declaration::text(), "direction": {"enum": ["in", "out", "both"]}, "limit": declaration::limit(),
        "cursor": declaration::text()
    });
    let summary = "Lists the relations of an entity, from it (out) and to it (in).";
    Declaration::new(Category::Search, "get_entity_relationships", summary, properties).requires(&["entity_id"])
}

pub async fn relationships(call: Call<'_>, input: &Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
    let needed = || refused("invalid_arguments", "entity_id: the id of an entity is needed");
    let id = optional_id(input, "entity_id")?.ok_or_else(needed)?;
    let end = match input.get("direction").and_then(Value::as_str).unwrap_or("both") {
        "both" => "entity_id",
        "out" => "from_id",
        "in" => "to_id",
        _ => return Err(refused("invalid_arguments", "direction: in, out or both")),
    };
    let cursor = optional_id(input, "cursor")?;
    let size = PageSize::from(arguments::limit(input));
    let page = call.edges(&[(end, json!(id))], cursor, size).await?;
    if page.items.is_empty() {
        if call.workspace.references(call.author.owner, &[id]).await?.is_empty() {
            return Err(refused("not_found", format!("there is no entity {id}")));
        }
        return Ok(ToolOutput::of_nothing("It has no such relations."));
    }
    let ids: Vec<Uuid> = page.items.iter().flat_map(Entity::needs).map(|(_, id)| id).collect();
    let ends = call.workspace.references(call.author.owner, &ids).await?;
    let names: BTreeMap<Uuid, String> = ends.iter().map(|end| (end.id, end.name.clone())).collect();
    let lines: Vec<String> = page.items.iter().map(|edge| text::relation(edge, &names)).collect();
    let Lines { shown, text, next } =
        text::of_lines(&lines, |last| Some(page.items[last].id.to_string()), page.next.clone());
    let item = |edge: &Entity| data::of_relation(edge, |id| names.get(&id).cloned());
    let data = Some(data::of_items(page.items[..shown].iter().map(item).collect(), next, 0));
    Ok(ToolOutput { text, entities: ends, notice: None, data })
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
    let mut ids = Vec::new();
    for (kind, document, task) in [("from_kind", "from_id", "to_id"), ("to_kind", "to_id", "from_id")] {
        let wanted = [(kind, json!(Kind::Document)), (task, json!(id))];
        let edges = call.edges(&wanted, None, PageSize::from(MAX_ITEMS)).await?;
        ids.extend(edges.items.iter().filter_map(|edge| edge.id_in(document)));
    }
    let documents = call.workspace.references(owner, &ids).await?;
    if documents.is_empty() {
        return Ok(ToolOutput::of_nothing("The task has no documents."));
    }
    let lines: Vec<String> =
        documents.iter().map(|document| format!("- document {}: {}", document.id, document.name)).collect();
    let Lines { shown, text, .. } = text::of_lines(&lines, |_| None, None);
    let items = documents[..shown].iter().map(data::of_reference).collect();
    let data = Some(data::of_items(items, None, documents.len() - shown));
    Ok(ToolOutput { text, entities: documents, notice: None, data })
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
    /// Returns relations, newest first, whose fields have these values.
    async fn edges(
        &self,
        values: &[(&str, Value)],
        cursor: Option<Uuid>,
        size: PageSize,
    ) -> Result<Page<Entity>, ToolFailure> {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let filter = Filter::read(Kind::Edge, values).map_err(invalid_arguments)?;
        Ok(self.workspace.list(self.author.owner, Kind::Edge, &filter, cursor, size).await?)
    }
}
