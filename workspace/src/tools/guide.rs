//! Texts for agents about the workspace: its kinds, its fields, and when to create a task.

use holdfast_shared::page::PageSize;
use serde_json::{Map, Value, json};

use super::{
    Call, ToolFailure, ToolOutput,
    arguments::USUAL_ITEMS,
    declaration::{self, Category, Declaration},
    refused, text,
};
use crate::{
    kind::{Form, Kind},
    storage::Filter,
};

/// When to create a task, as the description of `create_onto_task` has it.
pub const TASKS: &str = "A task is FUTURE WORK OF THE USER, never a record of what was said or of what you do now. \
                         Ask in this order: Must the user do it? Create it. Can you help right now? Help instead. Did they \
                         ask to track it? Create it. Are you about to do it yourself? Do not. Only to appear helpful? Do not. \
                         Yes: \"add a task to call the client\", \"I need to review the contract with legal\", \"remind me to \
                         follow up with Sarah\", building a project plan. No: \"help me brainstorm marketing ideas\", \"what are \
                         my blockers?\", \"let's outline the API endpoints\".";

/// Words for work that an agent can do now, and words for a wish of the user to track it.
const HELP: [&str; 8] = ["brainstorm", "analyse", "analyze", "summarise", "summarize", "outline", "discuss", "explain"];
const TRACKED: [&str; 4] = ["track", "remind", "asked for", "user must"];

/// Returns whether the description of a step that creates a task is about work that the agent can do now instead.
pub fn is_help(description: &str) -> bool {
    let description = description.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| description.contains(word));
    has(&HELP) && !has(&TRACKED)
}

/// The kinds, in a paragraph.
const OVERVIEW: &str = "The workspace has projects. Each project has tasks (future work of the user), plans (its phases), goals \
                        (what it aims at), documents (texts), outputs (what it produces), and relations between them.";

/// How to work with the workspace, by topic.
const TOPICS: &[(&str, &str)] = &[
    (
        "reading",
        "Read before you change: get_onto_project_details shows a project with what is in it, search_ontology finds \
         entities by name, and the list_ tools show more. A long text is read in parts, by offset.",
    ),
    (
        "changing",
        "Give version with an update if the user may be working on the same entity. A long text is replaced by default; \
         append adds to it, and merge_llm lets a model merge both. Deletions can be restored for 30 days, and the user can undo \
         all that a run has changed.",
    ),
    ("tasks", TASKS),
    (
        "projects",
        "Create a project in one call, with its goals, plans, tasks, documents and relations. list_onto_templates has \
         templates to begin with; request_template_creation asks for one that is missing.",
    ),
];

pub fn declare_field_info() -> Declaration {
    let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
    let properties = json!({"entity_type": {"enum": kinds}, "field": declaration::text()});
    let summary = "Says which values a field takes.";
    Declaration::new(Category::Utility, "get_field_info", summary, properties).requires(&["entity_type"])
}

pub fn declare_overview() -> Declaration {
    let summary = "Says what the workspace has: the newest projects, and the kinds.";
    Declaration::new(Category::Utility, "get_buildos_overview", summary, json!({}))
}

pub fn declare_usage() -> Declaration {
    let topics: Vec<&str> = TOPICS.iter().map(|(topic, _)| *topic).collect();
    let properties = json!({"topic": {"enum": topics}});
    let summary = "Says how to work with the workspace.";
    Declaration::new(Category::Utility, "get_buildos_usage_guide", summary, properties)
}

pub async fn overview(call: Call<'_>) -> Result<ToolOutput, ToolFailure> {
    let size = PageSize::from(USUAL_ITEMS);
    let projects = call.workspace.list(call.author.owner, Kind::Project, &Filter::default(), None, size).await;
    let mut overview = text::of_list(Kind::Project, &projects?);
    overview.text = text::bounded(format!("{OVERVIEW}\n\n{}", overview.text));
    overview.data = None;
    Ok(overview)
}

/// Returns the guide, or its part about a topic.
pub fn usage(input: &Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
    match input.get("topic").filter(|topic| !topic.is_null()) {
        None => {
            let all: Vec<&str> = TOPICS.iter().map(|(_, text)| *text).collect();
            Ok(ToolOutput::of_text(all.join("\n\n")))
        }
        Some(topic) => match TOPICS.iter().find(|(name, _)| topic == name) {
            Some((_, text)) => Ok(ToolOutput::of_text(*text)),
            None => {
                let topics: Vec<&str> = TOPICS.iter().map(|(topic, _)| *topic).collect();
                Err(refused("invalid_arguments", format!("topic: one of {}", topics.join(", "))))
            }
        },
    }
}

/// Describes the fields of a kind, or one of them.
pub fn field_info(input: &Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
    let name = input.get("entity_type").and_then(Value::as_str).unwrap_or_default();
    let Ok(kind) = name.parse::<Kind>() else {
        let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
        return Err(refused("invalid_arguments", format!("entity_type: one of {}", kinds.join(", "))));
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
        return Err(refused("invalid_arguments", format!("field: a {name} has {}", names.join(", "))));
    }
    Ok(ToolOutput::of_text(lines.join("\n")))
}

fn form(form: Form) -> String {
    match form {
        Form::Text(most) => format!("a text of at most {most} characters"),
        Form::Body(most) => format!("a text of at most {most} bytes"),
        Form::Word(words) | Form::State(words) => format!("one of {}", words.join(", ")),
        Form::Number(least, most) => format!("a whole number from {least} to {most}"),
        Form::Time => "a time or a day".to_owned(),
        Form::Id(kind) => format!("the id of a {} in the same project", kind.as_str()),
        Form::IdOf(kind) => format!("the id of an entity in the same project, of the kind in {kind}"),
        Form::Object(most) => format!("a JSON object of at most {most} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_described_with_an_example() {
        let input = |json: Value| json.as_object().unwrap().clone();
        let one = field_info(&input(json!({"entity_type": "task", "field": "priority"}))).unwrap();
        assert_eq!(one.text, "priority: a whole number from 1 to 5, such as 1");
        let all = field_info(&input(json!({"entity_type": "task"}))).unwrap();
        assert_eq!(all.text.lines().count(), 7);
        for refused in [json!({"entity_type": "ship"}), json!({"entity_type": "task", "field": "x"})] {
            assert!(field_info(&input(refused)).is_err());
        }
    }

    #[test]
    fn the_five_questions_stand_in_their_order() {
        let questions = [
            "must the user do it",
            "can you help right now",
            "ask to track it",
            "about to do it yourself",
            "to appear helpful",
        ];
        let tasks = TASKS.to_lowercase();
        let places = questions.map(|question| tasks.find(question));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
        for example in [
            "add a task to call the client",
            "remind me to follow up with sarah",
            "help me brainstorm",
            "what are my blockers",
        ] {
            assert!(tasks.contains(example), "{example}");
        }
    }

    #[test]
    fn a_task_for_what_an_agent_can_do_now_is_noticed() {
        assert!(is_help("Create a task to brainstorm marketing ideas"));
        assert!(!is_help("Create the task to brainstorm with the team; the user asked to track it"));
        assert!(!is_help("Create a task to call the client"));
    }

    #[test]
    fn the_guide_has_topics() {
        let input = |json: Value| json.as_object().unwrap().clone();
        assert_eq!(usage(&input(json!({"topic": "tasks"}))).unwrap().text, TASKS);
        assert!(usage(&input(json!({}))).unwrap().text.contains(TASKS));
        assert!(usage(&input(json!({"topic": "ships"}))).is_err());
    }
}
