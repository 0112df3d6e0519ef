//! The tools, called as another program calls them.

use futures::{FutureExt, future::BoxFuture};
use holdfast_shared::{
    schema::{Schema, SchemaLimits},
    tool::ToolError,
};
use holdfast_workspace::{
    Author, Call, Kind, Merge, Merger, Notice, ToolFailure, ToolOutput, ToolScope, WorkspaceTool,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    backends::{ANN, TestWorkspace},
    on_both_databases,
};

on_both_databases!(
    a_project_is_created_out_of_a_template_with_its_relations,
    documents_of_a_task_are_related_to_it,
    results_that_do_not_fit_say_how_to_get_the_rest,
    a_text_is_merged_by_a_model_or_not_at_all,
    templates_are_requested_and_suggested,
    nothing_of_another_owner_is_found_by_any_tool,
    each_tool_refuses_a_wrong_shape_with_its_field,
);

fn tool(name: &str) -> WorkspaceTool {
    ToolScope::All.tools(false).into_iter().find(|tool| tool.name == name).unwrap()
}

fn call_of<'a>(test: &'a TestWorkspace, owner: &'a str) -> Call<'a> {
    Call { workspace: &test.workspace, author: Author::user(owner), project: None, merger: None, web_search: None }
}

async fn call(test: &TestWorkspace, owner: &str, name: &str, input: Value) -> Result<ToolOutput, String> {
    let tool = tool(name);
    match tool.call(call_of(test, owner), input).await {
        Ok(output) => {
            let limits = SchemaLimits::default();
            let schema = Schema::compile(tool.output_schema, &limits).unwrap();
            schema.validate(&output.fields()).unwrap();
            Ok(output)
        }
        Err(ToolFailure::Refused(error)) => Err(error.message),
        Err(ToolFailure::Storage(error)) => panic!("{error}"),
    }
}

async fn a_project_is_created_out_of_a_template_with_its_relations(test: TestWorkspace) {
    let listed = call(&test, ANN, "list_onto_templates", json!({"query": "app"})).await.unwrap();
    assert!(
        listed.text.starts_with("- template_key software_product: Software product (published)."),
        "{}",
        listed.text
    );
    let input = json!({
        "name": "Fitness app", "template_key": "software_product",
        "tasks": [{"title": "Ask the gym", "key": "gym", "plan_id": "discovery"}],
        "relationships": [{"from": "gym", "relation": "supports", "to": "useful"}]
    });
    let created = call(&test, ANN, "create_onto_project", input).await.unwrap();
    let project = created.entities[0].id;
    assert!(matches!(&created.notice, Some(Notice::Project(of)) if of.id == project));
    let changes = test.workspace.changes(ANN, None, None, 20.into()).await.unwrap().items;
    assert!(changes.iter().all(|change| change.change_set_id == changes[0].change_set_id), "one transaction");
    let details = call(&test, ANN, "get_onto_project_details", json!({"project_id": project})).await.unwrap().text;
    for part in [
        "type_key: software_product",
        "open tasks, the most important first",
        "goals (2)",
        "plans (3)",
        "documents (2)",
        "relations (",
    ] {
        assert!(details.contains(part), "{part} is not in {details}");
    }
    let gym = created.entities.iter().find(|entity| entity.name == "Ask the gym").unwrap().id;
    let relations =
        call(&test, ANN, "get_entity_relationships", json!({"entity_id": gym, "direction": "out"})).await.unwrap();
    assert!(relations.text.contains("Ask the gym —supports→ goal "), "{}", relations.text);
    let none =
        call(&test, ANN, "get_entity_relationships", json!({"entity_id": gym, "direction": "in"})).await.unwrap();
    assert_eq!(none.text, "It has no such relations.");
    let unknown =
        call(&test, ANN, "create_onto_project", json!({"name": "x", "template_key": "ship"})).await.unwrap_err();
    assert_eq!(unknown, "template_key: there is no template \"ship\"; list_onto_templates has them");
}

async fn documents_of_a_task_are_related_to_it(test: TestWorkspace) {
    let project = test.create(Kind::Project, json!({"name": "Harbour"})).await.id;
    let task = test.create(Kind::Task, json!({"title": "Call", "project_id": project})).await.id;
    let log = test.create(Kind::Document, json!({"title": "Log", "project_id": project})).await.id;
    assert_eq!(
        call(&test, ANN, "list_task_documents", json!({"task_id": task})).await.unwrap().text,
        "The task has no documents."
    );
    call(&test, ANN, "create_task_document", json!({"task_id": task, "title": "Notes", "body": "# Tide"}))
        .await
        .unwrap();
    call(&test, ANN, "create_task_document", json!({"task_id": task, "document_id": log, "relation": "supports"}))
        .await
        .unwrap();
    let listed = call(&test, ANN, "list_task_documents", json!({"task_id": task})).await.unwrap();
    let mut names: Vec<&str> = listed.entities.iter().map(|entity| entity.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["Log", "Notes"]);
    let refused = call(&test, ANN, "create_task_document", json!({"task_id": task})).await.unwrap_err();
    assert_eq!(refused, "title: a value is needed, such as \"Call the harbour master\"");
    let refused =
        call(&test, ANN, "create_task_document", json!({"task_id": task, "document_id": Uuid::now_v7()})).await;
    assert_eq!(refused.unwrap_err(), "from_id: the project has no such document");
}

async fn results_that_do_not_fit_say_how_to_get_the_rest(test: TestWorkspace) {
    let project = test.create(Kind::Project, json!({"name": "Harbour"})).await.id;
    let task = test.create(Kind::Task, json!({"title": "Call", "project_id": project})).await.id;
    for n in 0..40 {
        let title = format!("{n} {}", "harbour ".repeat(20));
        let other = test.create(Kind::Goal, json!({"name": title.trim(), "project_id": project})).await.id;
        let edge = json!({
            "project_id": project, "from_kind": "task", "from_id": task, "relation": "supports", "to_kind": "goal", "to_id": other
        });
        test.create(Kind::Edge, edge).await;
    }
    let (mut seen, mut cursor) = (0, Value::Null);
    loop {
        let input = json!({"entity_id": task, "direction": "out", "limit": 50, "cursor": cursor});
        let page = call(&test, ANN, "get_entity_relationships", input).await.unwrap().text;
        assert!(page.chars().count() <= 4000);
        seen += page.lines().filter(|line| line.starts_with("- ")).count();
        match page.split_once("\"cursor\": \"") {
            Some((_, next)) => cursor = json!(next.trim_end_matches("\".")),
            None => break,
        }
    }
    assert_eq!(seen, 40);
    let found = call(&test, ANN, "search_ontology", json!({"query": "harbour", "limit": 50})).await.unwrap();
    let shown = found.text.lines().filter(|line| line.starts_with("- ")).count();
    assert!(found.text.ends_with(&format!("There are {} more: ask for less.", 41 - shown)), "{}", found.text);
    assert_eq!(found.entities.len(), shown);
}

struct Joins;

impl Merger for Joins {
    fn merge<'a>(&'a self, merge: Merge<'a>) -> BoxFuture<'a, Result<String, ToolError>> {
        let merged = match merge.instructions {
            Some("fail") => Err(ToolError::new("merge_failed", "the model is away")),
            _ => Ok(format!("{}\n{}", merge.stored, merge.new)),
        };
        async { merged }.boxed()
    }
}

async fn a_text_is_merged_by_a_model_or_not_at_all(test: TestWorkspace) {
    let project = test.create(Kind::Project, json!({"name": "Harbour"})).await.id;
    let log = test.create(Kind::Document, json!({"title": "Log", "project_id": project, "body": "one"})).await.id;
    let input = |instructions: &str| json!({"document_id": log, "body": "two", "update_strategy": "merge_llm", "merge_instructions": instructions});
    let refused = call(&test, ANN, "update_onto_document", input("")).await.unwrap_err();
    assert!(refused.contains("merge_llm needs a model"), "{refused}");
    let with_model = Call { merger: Some(&Joins), ..call_of(&test, ANN) };
    let failed = tool("update_onto_document").call(with_model, input("fail")).await;
    assert!(matches!(failed, Err(ToolFailure::Refused(error)) if error.code == "merge_failed"));
    let version = |entity: holdfast_workspace::Entity| (entity.version, entity.fields["body"].clone());
    let read = async || version(test.workspace.get(ANN, Kind::Document, log).await.unwrap().unwrap());
    assert_eq!(read().await, (1, json!("one")), "a failed merge changes nothing");
    let merged = tool("update_onto_document").call(with_model, input("")).await.unwrap();
    assert_eq!(read().await, (2, json!("one\ntwo")));
    assert!(merged.text.contains("\n+two"), "the result shows the difference: {}", merged.text);
}

async fn templates_are_requested_and_suggested(test: TestWorkspace) {
    let input = json!({"kind": "garden", "reason": "no template has seasons", "hints": "beds"});
    let requested = call(&test, ANN, "request_template_creation", input).await.unwrap();
    let id = requested.entities[0].id;
    assert!(matches!(requested.notice, Some(Notice::TemplateRequested { id: of, .. }) if of == id));
    let template = test.workspace.get(ANN, Kind::Template, id).await.unwrap().unwrap();
    assert_eq!((&template.fields["state"], &template.fields["props"]["hints"]), (&json!("requested"), &json!("beds")));
    let suggested = json!({"kind": "garden", "name": "Garden", "rationale": "seasons"});
    let suggested = call(&test, ANN, "suggest_template", suggested).await.unwrap();
    assert!(matches!(suggested.notice, Some(Notice::TemplateSuggested { .. })));
}

/// A call of each tool that names something of the owner.
async fn nothing_of_another_owner_is_found_by_any_tool(test: TestWorkspace) {
    let project = test.create(Kind::Project, json!({"name": "Harbour"})).await.id;
    let within = json!({"name": "Harbour", "title": "Harbour", "project_id": project});
    let id_of = async |kind: Kind| {
        let field = kind.title_field();
        test.create(kind, json!({field: within[field], "project_id": project})).await.id
    };
    let ids = json!({
        "project_id": project, "task_id": id_of(Kind::Task).await, "goal_id": id_of(Kind::Goal).await,
        "plan_id": id_of(Kind::Plan).await, "document_id": id_of(Kind::Document).await
    });
    let before = test.dump(ANN).await;
    for tool in ToolScope::All.tools(false) {
        let properties = tool.input_schema["properties"].as_object().unwrap();
        let mut input = serde_json::Map::new();
        for name in properties.keys() {
            let value = match name.as_str() {
                "entity_id" => ids["task_id"].clone(),
                "query" | "name" | "title" | "kind" | "reason" | "rationale" => json!("Harbour"),
                name if ids.get(name).is_some() => ids[name].clone(),
                _ => continue,
            };
            input.insert(name.clone(), value);
        }
        if tool.name == "get_field_info" {
            input.insert("entity_type".to_owned(), json!("task"));
        }
        let names_something = input.keys().any(|name| name == "entity_id" || ids.get(name).is_some());
        let result = call(&test, "bob", &tool.name, Value::Object(input)).await;
        let is_list = matches!(tool.name.split('_').next(), Some("list" | "search"));
        match result {
            Ok(output) => {
                let is_own = tool.name.starts_with("create_onto_project")
                    || tool.name.ends_with("template_creation")
                    || tool.name.ends_with("suggest_template");
                assert!(is_list || is_own || !names_something, "{}: {}", tool.name, output.text);
                let leaked = before.iter().any(|(_, id, _)| output.text.contains(&id.to_string()));
                assert!(!leaked, "{} shows {}", tool.name, output.text);
            }
            Err(problem) => {
                let is_not_found = problem.contains("there is no") || problem.contains("no such");
                assert!(is_not_found, "{}: {problem}", tool.name);
            }
        }
    }
    assert_eq!(test.dump(ANN).await, before);
}

async fn each_tool_refuses_a_wrong_shape_with_its_field(test: TestWorkspace) {
    for (name, input, problem) in [
        ("list_onto_tasks", json!({"priority": 9}), "priority: a whole number from 1 to 5, such as 1"),
        ("search_ontology", json!({}), "query: a text is needed, such as \"harbour\""),
        ("search_ontology", json!({"query": "x".repeat(201)}), "query: a text of at most 200 characters"),
        (
            "search_ontology",
            json!({"query": "x", "types": ["ship"]}),
            "types: a list of project, goal, plan, task, document, output, such as [\"task\"]",
        ),
        (
            "search_onto_tasks",
            json!({"query": "x", "state": "sunk"}),
            "state: one of todo, in_progress, blocked, done, cancelled",
        ),
        (
            "get_entity_relationships",
            json!({"entity_id": "x"}),
            "entity_id: an id, such as \"01a20131-6243-7797-8616-20e98be7ff86\"",
        ),
        ("get_onto_task_details", json!({}), "task_id: the id of a task is needed"),
        (
            "create_onto_task",
            json!({"title": "t"}),
            "project_id: the id of a project is needed, such as \"01a20131-6243-7797-8616-20e98be7ff86\"",
        ),
        (
            "request_template_creation",
            json!({"kind": "x"}),
            "reason: a text is needed, such as \"no template has seasons\"",
        ),
        (
            "web_search",
            json!({"query": "x", "include_domains": "y"}),
            "include_domains: a list of at most 20 domains, such as [\"example.org\"]",
        ),
        ("get_buildos_usage_guide", json!({"topic": "ships"}), "topic: one of reading, changing, tasks, projects"),
    ] {
        assert_eq!(call(&test, ANN, name, input).await.unwrap_err(), problem, "{name}");
    }
    let unconfigured = call(&test, ANN, "web_search", json!({"query": "x"})).await.unwrap();
    assert!(unconfigured.text.contains("no provider"));
}
