//! `get_onto_…_details`: an entity with all its fields, and a project with what is in it.

use holdfast_shared::page::{Page, PageSize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    Call, EntityReference, Notice, ToolFailure, ToolOutput,
    arguments::USUAL_ITEMS,
    declaration::{self, Category, Declaration, id_field},
    not_found, text,
};
use crate::{
    entity::Entity,
    kind::Kind,
    storage::{Filter, Workspace},
};
use holdfast_shared::storage::Error;

pub fn declare(kind: Kind, has_project: bool) -> Declaration {
    let name = kind.as_str();
    let more = if kind == Kind::Project { ", with what is in it" } else { "" };
    let summary = format!("Reads a {name} with all its fields{more}.");
    let field = id_field(kind);
    let offset = json!({"type": "integer", "minimum": 0});
    let properties = Map::from_iter([(field.clone(), declaration::text()), ("offset".to_owned(), offset)]);
    let declaration = Declaration::new(Category::Read, format!("get_onto_{name}_details"), summary, json!({}));
    let declaration = declaration.with(properties);
    if kind == Kind::Project && has_project { declaration } else { declaration.requires(&[&field]) }
}

pub async fn call(call: Call<'_>, kind: Kind, input: &Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
    let id = call.id(kind, input)?;
    let owner = call.author.owner;
    let offset = input.get("offset").and_then(Value::as_u64).unwrap_or_default() as usize;
    if kind == Kind::Project && offset == 0 {
        let contents = call.workspace.contents(owner, id).await?.ok_or_else(|| not_found(kind, id))?;
        let project = EntityReference::of(&contents.project);
        let notice = (call.project != Some(id)).then_some(Notice::Project(project));
        return Ok(ToolOutput { notice, ..contents.word() });
    }
    let entity = call.workspace.get(owner, kind, id).await?.ok_or_else(|| not_found(kind, id))?;
    Ok(text::of_details(&entity, offset))
}

/// A project with a part of what is in it.
#[derive(Debug, Clone)]
pub struct ProjectContents {
    /// The project.
    pub project: Entity,
    /// The open tasks first, then the newest of each kind.
    pub within: Vec<(Kind, Page<Entity>)>,
    /// The entities of each kind, and the open tasks among them.
    pub counts: Vec<(Kind, i64)>,
    /// The tasks that are neither done nor cancelled.
    pub open_tasks: i64,
}

impl Workspace {
    /// Reads a project with a part of what is in it; `None` if there is no such project.
    pub async fn contents(&self, owner: &str, id: Uuid) -> Result<Option<ProjectContents>, Error> {
        let Some(project) = self.get(owner, Kind::Project, id).await? else { return Ok(None) };
        let (mut within, mut counts, mut open_tasks) = (Vec::new(), Vec::new(), 0);
        let filter = Filter::of_project(Some(id));
        let size = PageSize::from(USUAL_ITEMS);
        for kind in [Kind::Task, Kind::Goal, Kind::Plan, Kind::Document, Kind::Output, Kind::Edge] {
            let by_state = self.count(owner, kind, id).await?;
            let count = by_state.iter().map(|(_, count)| count).sum();
            counts.push((kind, count));
            if count == 0 {
                continue;
            }
            let page = if kind == Kind::Task {
                let is_open = |state: &str| !matches!(state, "done" | "cancelled");
                let open = by_state.iter().filter(|(state, _)| state.as_deref().is_some_and(is_open));
                open_tasks = open.map(|(_, count)| count).sum();
                self.open_tasks(owner, id, size).await?
            } else {
                self.list(owner, kind, &filter, None, size).await?
            };
            within.push((kind, page));
        }
        Ok(Some(ProjectContents { project, within, counts, open_tasks }))
    }
}

impl ProjectContents {
    /// Words the project, as much of it as fits.
    pub fn word(&self) -> ToolOutput {
        text::of_project(self)
    }
}
