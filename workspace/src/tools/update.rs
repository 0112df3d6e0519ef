//! `update_onto_…`: other values of fields; a long text may be replaced, appended to, or merged by a model.

use futures::future::BoxFuture;
use holdfast_shared::tool::ToolError;
use serde_json::{Map, Value, json};
use similar::TextDiff;
use uuid::Uuid;

use super::{
    Call, ToolFailure, ToolOutput, conflict,
    declaration::{self, Category, Declaration, id_field},
    invalid_arguments, not_found, refused, result, text,
};
use crate::{
    entity::Entity,
    input::{Patch, read_value},
    kind::Kind,
};

/// Two texts of a field that a model makes one.
#[derive(Debug, Clone, Copy)]
pub struct Merge<'a> {
    /// The name of the field.
    pub field: &'a str,
    /// The text that the entity has.
    pub stored: &'a str,
    /// The text of the call.
    pub new: &'a str,
    /// The caller's wishes.
    pub instructions: Option<&'a str>,
}

/// A model that merges texts.
pub trait Merger: Send + Sync {
    /// Returns the merged text, or the reason why there is none.
    fn merge<'a>(&'a self, merge: Merge<'a>) -> BoxFuture<'a, Result<String, ToolError>>;
}

/// Longest diff of a merge in a result, in characters.
const DIFF_CHARS: usize = 2000;

pub fn declare(kind: Kind, has_project: bool) -> Declaration {
    let (name, field) = (kind.as_str(), id_field(kind));
    let mut properties = Map::from_iter([(field.clone(), declaration::text())]);
    properties.extend(declaration::fields(kind));
    properties.insert("version".to_owned(), json!({"type": "integer"}));
    properties.insert("update_strategy".to_owned(), json!({"enum": ["replace", "append", "merge_llm"]}));
    properties.insert("merge_instructions".to_owned(), declaration::text());
    let summary = format!("Changes the fields of a {name} that you give; null clears one.");
    let declaration = Declaration::new(Category::Write, format!("update_onto_{name}"), summary, json!({}));
    let declaration = declaration.with(properties);
    if kind == Kind::Project && has_project { declaration } else { declaration.requires(&[&field]) }
}

pub async fn call(call: Call<'_>, kind: Kind, mut input: Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
    let id = call.id(kind, &input)?;
    input.remove(&id_field(kind));
    let instructions = input.remove("merge_instructions");
    let strategy = input.remove("update_strategy").unwrap_or_default();
    let patch = Patch::read(kind, input).map_err(invalid_arguments)?;
    let (patch, diff) = match strategy.as_str() {
        None if strategy.is_null() => (patch, None),
        Some("replace") => (patch, None),
        Some("append") => (Patch { appends: true, ..patch }, None),
        Some("merge_llm") => merged(call, id, patch, instructions.as_ref().and_then(Value::as_str)).await?,
        _ => return Err(refused("invalid_arguments", "update_strategy: replace, append or merge_llm")),
    };
    let updated = result(call.workspace.update(call.author, id, patch).await, kind, id)?;
    let mut output = text::of_change("Updated", &[updated]);
    if let Some(diff) = diff {
        output.text = text::bounded(format!("{}\n{diff}", output.text));
        output.data = output.data.map(|mut data| {
            data["note"] = json!(diff);
            data
        });
    }
    Ok(output)
}

/// Returns the change with each long text merged into the one that is there, and the difference. It holds for the version that
/// was read.
async fn merged(
    call: Call<'_>,
    id: Uuid,
    mut patch: Patch,
    instructions: Option<&str>,
) -> Result<(Patch, Option<String>), ToolFailure> {
    let Some(merger) = call.merger else {
        let problem =
            "update_strategy: merge_llm needs a model, and there is none outside of a run; use replace or append";
        return Err(refused("invalid_arguments", problem));
    };
    let stored = call.workspace.get(call.author.owner, patch.kind, id).await?;
    let stored = stored.ok_or_else(|| not_found(patch.kind, id))?;
    if patch.version.is_some_and(|version| version != stored.version) {
        return Err(conflict(patch.kind, stored.version));
    }
    let mut diff = String::new();
    for (name, value) in &mut patch.fields {
        let Some(field) = stored.kind.field(name).filter(|field| field.is_long()) else { continue };
        let Some((before, new)) = stored_and_new(&stored, name, value) else { continue };
        let merge = Merge { field: name, stored: &before, new: &new, instructions };
        let merged = merger.merge(merge).await?;
        if merged.trim().is_empty() {
            return Err(refused(
                "merge_failed",
                format!("{name}: the model's merged text was empty; nothing has changed"),
            ));
        }
        diff += &TextDiff::from_lines(&before, &merged).unified_diff().context_radius(1).to_string();
        *value = read_value(field, Value::String(merged)).map_err(invalid_arguments)?;
    }
    let version = patch.version.or(Some(stored.version));
    Ok((Patch { version, ..patch }, Some(holdfast_shared::excerpt::chars(&diff, DIFF_CHARS))))
}

/// Returns the two texts of a field, if there is something to merge.
fn stored_and_new(stored: &Entity, name: &str, new: &Value) -> Option<(String, String)> {
    let before = stored.fields.get(name)?.as_str().filter(|text| !text.trim().is_empty())?;
    Some((before.to_owned(), new.as_str()?.to_owned()))
}
