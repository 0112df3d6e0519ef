//! `create_onto_task`, `…_goal`, `…_plan`, `…_document`.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    Call, ToolFailure, ToolOutput,
    declaration::{self, Category, Declaration},
    guide, invalid_arguments, result, text,
};
use crate::{input::NewEntity, kind::Kind};

pub fn declare(kind: Kind, has_project: bool) -> Declaration {
    let name = kind.as_str();
    let properties = json!({"project_id": declaration::text()});
    let declaration =
        Declaration::new(Category::Write, format!("create_onto_{name}"), format!("Creates a {name}."), properties)
            .with(declaration::fields(kind))
            .requires(&[kind.title_field()])
            .with_more(if kind == Kind::Task { guide::TASKS } else { "" });
    if has_project { declaration } else { declaration.requires(&["project_id"]) }
}

pub async fn call(call: Call<'_>, kind: Kind, mut input: Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
    if let (Some(project), None) = (call.project, input.get("project_id")) {
        input.insert("project_id".to_owned(), json!(project));
    }
    let new = NewEntity::read(kind, input).map_err(invalid_arguments)?;
    let created = result(call.workspace.create(call.author, new).await, kind, Uuid::nil())?;
    Ok(text::of_change("Created", &[created]))
}
