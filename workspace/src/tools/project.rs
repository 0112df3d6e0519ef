//! `create_onto_project`: a project with all that it begins with, in one transaction.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    Call, EntityReference, Notice, ToolFailure, ToolOutput,
    arguments::needed_text,
    declaration::{self, Category, Declaration},
    invalid_arguments, refused, result, text,
};
use crate::{
    contents::{MAX_CONTENTS, RELATIONSHIPS, read_project},
    entity::Entity,
    kind::{Kind, RELATIONS},
};

pub fn declare() -> Declaration {
    let mut properties = json!({"template_key": declaration::text()});
    for kind in Kind::CONTENTS {
        let mut fields = declaration::fields(kind);
        fields.insert("key".to_owned(), declaration::text());
        let item = json!({"type": "object", "properties": fields, "required": [kind.title_field()]});
        properties[kind.plural()] = json!({"type": "array", "maxItems": MAX_CONTENTS, "items": item});
    }
    let end = "key or title of an entity of this call, or \"project\"";
    let item = json!({
        "type": "object", "required": ["from", "relation", "to"],
        "properties": {
            "from": {"type": "string", "description": end}, "relation": {"enum": RELATIONS},
            "to": {"type": "string", "description": end}
        }
    });
    properties[RELATIONSHIPS] = json!({"type": "array", "maxItems": MAX_CONTENTS, "items": item});
    Declaration::new(Category::Write, "create_onto_project", "Creates a project with its first contents.", properties)
        .with(declaration::fields(Kind::Project))
        .requires(&["name"])
        .with_more(
            "Give its goals, plans, tasks, documents and relations in the same call, or a template_key of \
             list_onto_templates, or both. Tasks name plans and goals by key. Create tasks only for what the user must do.",
        )
}

pub async fn call(call: Call<'_>, mut input: Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
    let template = match input.remove("template_key") {
        None | Some(Value::Null) => None,
        Some(key) => {
            let named = Map::from_iter([("template_key".to_owned(), key)]);
            let key = needed_text(&named, "template_key", "software_product")?;
            let template = call.workspace.template_of_key(call.author.owner, key).await?;
            let unknown = || {
                refused(
                    "invalid_arguments",
                    format!("template_key: there is no template {key:?}; list_onto_templates has them"),
                )
            };
            let template = template.ok_or_else(unknown)?;
            input.entry("type_key").or_insert_with(|| json!(key));
            template.fields.get("body").and_then(Value::as_object).cloned()
        }
    };
    let new = read_project(input, template.as_ref()).map_err(invalid_arguments)?;
    let created = result(call.workspace.create_all(call.author, new).await, Kind::Project, Uuid::nil())?;
    Ok(self::created(&created))
}

/// Words a new project, which comes first, with its contents.
pub fn created(created: &[Entity]) -> ToolOutput {
    let notice = created.first().map(|project| Notice::Project(EntityReference::of(project)));
    ToolOutput { notice, ..text::of_change("Created", created) }
}
