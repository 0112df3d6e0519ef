//! `list_onto_…`: the entities of a kind, newest first.

use holdfast_shared::page::PageSize;
use serde_json::{Map, Value, json};

use super::{
    Call, ToolFailure, ToolOutput, arguments,
    declaration::{self, Category, Declaration},
    invalid_arguments, text,
};
use crate::{kind::Kind, storage::Filter};

pub fn declare(kind: Kind) -> Declaration {
    let name = kind.plural();
    let mut properties = declaration::filters(kind);
    if kind.is_within_project() {
        properties.insert("project_id".to_owned(), declaration::text());
    }
    let paging = json!({"limit": declaration::limit(), "cursor": declaration::text()});
    Declaration::new(Category::Search, format!("list_onto_{name}"), format!("Lists {name}, newest first."), paging)
        .with(properties)
}

pub async fn call(call: Call<'_>, kind: Kind, mut input: Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
    let size = PageSize::from(arguments::limit(&input));
    let cursor = arguments::optional_id(&input, "cursor")?;
    let project = if kind.is_within_project() { call.project } else { None };
    input.remove("limit");
    input.remove("cursor");
    let mut filter = Filter::read(kind, input).map_err(invalid_arguments)?;
    filter.project_id = filter.project_id.or(project);
    let page = call.workspace.list(call.author.owner, kind, &filter, cursor, size).await?;
    Ok(text::of_list(kind, &page))
}
