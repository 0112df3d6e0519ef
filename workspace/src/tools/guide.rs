//! Texts for agents about the workspace: its kinds, its fields, and when to create a task.

use holdfast_shared::tool::ToolError;
use serde_json::{Map, Value};

use super::ToolOutput;
use crate::kind::{Form, Kind};

/// When to create a task, as the description of `create_onto_task` has it.
pub const TASKS: &str = "A task is future work of the user, never a record of what was said or what you do now. Create one if \
                         the user must do it, or asks to track it. Do not create one for what you can help with now, for analysis, for work that you do \
                         together, or for what you are about to do yourself.";

/// The kinds, in a paragraph.
pub const OVERVIEW: &str = "The workspace has projects. Each project has tasks (future work of the user), plans (its phases), goals \
                            (what it aims at), documents (texts) and outputs (what it produces).";

/// How to work with the workspace.
pub const USAGE: &str = "Read before you change: get_onto_project_details shows a project with what is in it, and the list_ tools show more. \
                         Give version with an update if the user may be working on the same entity. Deletions can be restored for 30 days, and the user can \
                         undo all that a run has changed. Before you create a task, ask in this order: must the user do it (create it)? Can you help with it \
                         now (help instead)? Did the user ask to track it (create it)? Are you about to do it yourself (do not)? Would it only look helpful \
                         (do not)?";

/// Describes the fields of a kind, or one of them.
pub fn field_info(input: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
    let name = input.get("entity_type").and_then(Value::as_str).unwrap_or_default();
    let Ok(kind) = name.parse::<Kind>() else {
        let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
        return Err(ToolError::new("invalid_arguments", format!("entity_type: one of {}", kinds.join(", "))));
    };
    let wanted = input.get("field").and_then(Value::as_str);
    let lines: Vec<String> = kind
        .fields()
        .iter()
        .filter(|field| wanted.is_none_or(|wanted| wanted == field.name))
        .map(|field| {
            let needed = if field.is_required { ", needed" } else { "" };
            format!("{}: {}{needed}, such as {}", field.name, form(field.form), field.form.example())
        })
        .collect();
    if lines.is_empty() {
        let names: Vec<&str> = kind.fields().iter().map(|field| field.name).collect();
        return Err(ToolError::new("invalid_arguments", format!("field: a {name} has {}", names.join(", "))));
    }
    Ok(ToolOutput { text: lines.join("\n"), entities: Vec::new() })
}

fn form(form: Form) -> String {
    match form {
        Form::Text(most) => format!("a text of at most {most} characters"),
        Form::Body(most) => format!("a text of at most {most} bytes"),
        Form::Word(words) => format!("one of {}", words.join(", ")),
        Form::Number(least, most) => format!("a whole number from {least} to {most}"),
        Form::Time => "a time or a day".to_owned(),
        Form::Id(kind) => format!("the id of a {} in the same project", kind.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_described_with_an_example() {
        let input = |json: serde_json::Value| json.as_object().unwrap().clone();
        let one = field_info(&input(serde_json::json!({"entity_type": "task", "field": "priority"}))).unwrap();
        assert_eq!(one.text, "priority: a whole number from 1 to 5, such as 1");
        let all = field_info(&input(serde_json::json!({"entity_type": "task"}))).unwrap();
        assert_eq!(all.text.lines().count(), 7);
        for refused in
            [serde_json::json!({"entity_type": "ship"}), serde_json::json!({"entity_type": "task", "field": "x"})]
        {
            assert_eq!(field_info(&input(refused)).unwrap_err().code, "invalid_arguments");
        }
    }

    #[test]
    fn the_five_questions_stand_in_their_order() {
        let places =
            ["must the user do it", "help with it", "asked to track it", "do it yourself", "only look helpful"]
                .map(|question| USAGE.replace("ask to track", "asked to track").find(question));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
    }
}
