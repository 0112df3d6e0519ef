//! The workspace in the turns of a planner: shifts of the context, frames, and what the model reads.

use std::sync::{Arc, Mutex};

use axum::{Json, Router, extract::State, http::HeaderMap, routing::post};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{BlockStream, Client, Deployment, Embedded, EventStream, of_kind, until},
};

in_both_modes!(
    a_created_project_becomes_the_context_of_the_conversation,
    a_shift_survives_the_death_of_its_worker,
    a_shift_is_kept_while_another_call_waits,
    a_change_of_the_users_focus_has_an_event,
);
in_either_mode!(
    the_agent_stream_has_the_frames_of_the_workspace,
    a_plan_creates_no_task_for_what_an_agent_can_do_now,
    a_merge_shows_its_difference,
    the_web_is_searched_by_the_providers_protocol,
    results_of_other_tools_name_entities,
);

const PLANNER: &str = "01910a9e-7000-7000-8000-706c616e6e65";

async fn turn(client: &Client, context: Option<Value>, conversation: Option<&Value>, input: &str) -> EventStream {
    let mut body = json!({"agent_id": PLANNER, "input": input});
    if let Some(context) = context {
        body["context"] = context;
    }
    if let Some(conversation) = conversation {
        body["conversation_id"] = conversation.clone();
    }
    let request = client.request(Method::POST, "/v1/runs").header("accept", "text/event-stream");
    EventStream::new(request.json(&body).send().await.unwrap())
}

async fn conversation_of(client: &Client, run_id: &str) -> Value {
    client.get(&format!("/v1/runs/{run_id}")).await.unwrap()["conversation_id"].clone()
}

async fn project(client: &Client) -> Value {
    client.post("/v1/workspace/projects", json!({"name": "Harbour"})).await.unwrap()
}

async fn a_created_project_becomes_the_context_of_the_conversation(mut deployment: Deployment) {
    let client = deployment.client();
    let input = "I want to build an app [call=create_onto_project {\"name\": \"Fitness app\"}] \
                 [call=create_onto_task {\"title\": \"Find testers\"}] [tokens=1]";
    let stream = turn(&client, Some(json!({"context_type": "project_create"})), None, input).await;
    let run_id = stream.run_id.clone();
    let frames = stream.rest().await;
    assert_eq!(frames.last().unwrap().event, "run.completed");
    let shifts = of_kind(&frames, "context.shifted");
    let project = shifts[0]["entity_id"].as_str().unwrap();
    assert_eq!((shifts.len(), &shifts[0]["entity_name"]), (1, &json!("Fitness app")));
    assert_eq!(of_kind(&frames, "focus.changed")[0]["focus"]["projectId"], project);
    assert_eq!(of_kind(&frames, "ontology.loaded")[0]["project_id"], project);
    // The next step has the tools of the project, and needs no project_id.
    let calls = of_kind(&frames, "tool_call.completed");
    assert_eq!((&calls[1]["error"], &calls[1]["entities"][0]["name"]), (&Value::Null, &json!("Find testers")));
    // Later turns are about it too.
    let conversation = conversation_of(&client, &run_id).await;
    let read = client.get(&format!("/v1/conversations/{}", conversation.as_str().unwrap())).await.unwrap();
    assert_eq!((&read["context"]["context_type"], &read["context"]["entity_id"]), (&json!("project"), &json!(project)));
    let next = turn(&client, None, Some(&conversation), "[call=list_onto_tasks {}] [tokens=1]").await.rest().await;
    assert!(of_kind(&next, "context.shifted").is_empty());
    assert_eq!(of_kind(&next, "tool_call.completed")[0]["entities"][0]["name"], "Find testers");
    assert_eq!(of_kind(&next, "ontology.loaded")[0]["counts"]["tasks"], 1);
}

async fn a_shift_survives_the_death_of_its_worker(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let input = "I want to build an app [call=create_onto_project {\"name\": \"Fitness app\"}] [tokens=40] [delay=30] \
                 [call=create_onto_task {\"title\": \"Find testers\"}] [tokens=1]";
    let mut stream = turn(&client, Some(json!({"context_type": "project_create"})), None, input).await;
    let run_id = stream.run_id.clone();
    while stream.next().await.unwrap().unwrap().event != "ontology.loaded" {}
    deployment.kill_worker();
    let run = deployment.client().wait_for_run(&run_id).await;
    assert_eq!(run["status"], "completed", "{run:#}");
    let tasks = deployment.client().get("/v1/workspace/tasks").await.unwrap();
    assert_eq!(tasks["items"][0]["title"], "Find testers", "the second attempt has the tools of the project");
    assert_eq!(deployment.client().get("/v1/workspace/projects").await.unwrap()["items"].as_array().unwrap().len(), 1);
}

async fn a_shift_is_kept_while_another_call_waits(mut deployment: Deployment) {
    let client = deployment.client();
    let input = "I want to build an app [call=create_onto_project {\"name\": \"Fitness app\"}] [call=scripted__clienttool {\"question\": \"Which one?\"}] \
                 [parallel] [tokens=1]";
    let body = json!({
        "agent_id": PLANNER, "input": input, "context": {"context_type": "project_create"}
    });
    let run = client.post("/v1/runs", body).await.unwrap()["run"].clone();
    let run_id = run["id"].as_str().unwrap();
    let call = until("the run waits", || async {
        let calls = client.get(&format!("/v1/runs/{run_id}/tool_calls")).await.unwrap();
        let waiting = calls["items"]
            .as_array()
            .unwrap()
            .iter()
            .find(|call| call["name"] == "scripted__clienttool" && call["status"] != "requested")?
            .clone();
        let run = client.get(&format!("/v1/runs/{run_id}")).await.unwrap();
        (run["status"] == "waiting").then_some(waiting)
    })
    .await;
    let path = format!("/v1/conversations/{}", run["conversation_id"].as_str().unwrap());
    assert_eq!(client.get(&path).await.unwrap()["context"]["context_type"], "project");
    let result = format!("/v1/runs/{run_id}/tool_results/{}", call["call_id"].as_str().unwrap());
    client.post(&result, json!({"output": "ok"})).await.unwrap();
    assert_eq!(client.wait_for_run(run_id).await["status"], "completed");
    let next =
        turn(&client, None, Some(&run["conversation_id"]), "[call=create_onto_task {\"title\": \"t\"}] [tokens=1]");
    let next = next.await.rest().await;
    assert_eq!(of_kind(&next, "tool_call.completed")[0]["error"], Value::Null);
}

async fn a_change_of_the_users_focus_has_an_event(mut deployment: Deployment) {
    let client = deployment.client();
    let project = project(&client).await;
    let focus_on = |part: Value| {
        let mut focus = json!({"projectId": project["id"], "projectName": "Harbour"});
        focus.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        json!({"context_type": "project", "entity_id": project["id"], "projectFocus": focus})
    };
    let whole = focus_on(json!({"focusType": "project-wide"}));
    let goal = focus_on(json!({"focusType": "goal", "focusEntityName": "Open in May"}));
    let first = turn(&client, Some(whole.clone()), None, "[tokens=1]").await;
    let conversation = conversation_of(&client, &first.run_id).await;
    assert!(of_kind(&first.rest().await, "focus.changed").is_empty(), "a conversation begins with its focus");
    for (context, told) in [(Some(whole), vec![]), (Some(goal), vec![json!("goal")]), (None, vec![])] {
        let frames = turn(&client, context, Some(&conversation), "[tokens=1]").await.rest().await;
        let foci: Vec<Value> =
            of_kind(&frames, "focus.changed").iter().map(|changed| changed["focus"]["focusType"].clone()).collect();
        assert_eq!(foci, told);
    }
}

async fn the_agent_stream_has_the_frames_of_the_workspace(mut deployment: Deployment) {
    let client = deployment.client();
    let project = project(&client).await;
    let message = format!(
        "[call=get_onto_project_details {}] [call=request_template_creation {}] [call=suggest_template {}] [tokens=1]",
        json!({"project_id": project["id"]}),
        json!({"kind": "garden", "reason": "seasons"}),
        json!({"kind": "garden", "name": "Garden", "rationale": "seasons"})
    );
    let body = json!({"message": message, "context_type": "global"});
    let blocks = BlockStream::open(client.request(Method::POST, "/api/agent/stream").json(&body)).await.rest().await;
    let frames: Vec<Value> = blocks.iter().filter_map(|block| serde_json::from_str(&block.data).ok()).collect();
    let of = |kind: &str| {
        frames.iter().find(|frame| frame["type"] == kind).unwrap_or_else(|| panic!("no {kind}: {frames:#?}"))
    };
    assert_eq!(
        of("tool_result")["result"]["entitiesAccessed"][0],
        json!({"kind": "project", "id": project["id"], "name": "Harbour"})
    );
    assert_eq!(of("context_shift")["context_shift"]["new_context"], "project");
    assert_eq!(of("focus_changed")["focus"]["focusType"], "project-wide");
    assert_eq!(of("ontology_loaded")["name"], "Harbour");
    let request = &of("template_request")["request"];
    assert_eq!((&request["kind"], &request["reason"]), (&json!("garden"), &json!("seasons")));
    assert_eq!(
        *of("template_status"),
        json!({"type": "template_status", "request_id": request["id"], "status": "requested"})
    );
    assert_eq!(of("template_suggestion")["name"], "Garden");
    let path = format!("/v1/workspace/templates/{}", request["id"].as_str().unwrap());
    assert_eq!(client.get(&path).await.unwrap()["state"], "requested");
}

async fn a_plan_creates_no_task_for_what_an_agent_can_do_now(mut deployment: Deployment) {
    let client = deployment.client();
    let project = project(&client).await;
    let context = json!({"context_type": "project", "entity_id": project["id"]});
    let plan = |description: &str| json!({"goal": "g", "steps": [{"step_number": 1, "description": description, "tools": ["create_onto_task"]}]});
    let refused = format!("[plan={}] [tokens=1]", plan("Create a task to brainstorm marketing ideas"));
    let frames = turn(&client, Some(context.clone()), None, &refused).await.rest().await;
    let error = of_kind(&frames, "tool_call.completed")[0]["error"]["message"].clone();
    assert!(error.as_str().unwrap().starts_with("step 1 creates a task for work that you can do now"), "{error}");
    let accepted = format!("[plan={}] [tokens=1]", plan("[tokens=1] Create a task to call the client"));
    let frames = turn(&client, Some(context), None, &accepted).await.rest().await;
    assert_eq!(of_kind(&frames, "tool_call.completed")[0]["error"], Value::Null);
}

async fn a_merge_shows_its_difference(mut deployment: Deployment) {
    let client = deployment.client();
    let project = project(&client).await;
    let document = json!({"project_id": project["id"], "title": "Log", "body": "Low water at six."});
    let document = client.post("/v1/workspace/documents", document).await.unwrap();
    let input = format!(
        "[call=update_onto_document {}] [tokens=1]",
        json!({"document_id": document["id"], "body": "High water at noon.", "update_strategy": "merge_llm"})
    );
    let context = json!({"context_type": "project", "entity_id": project["id"]});
    let frames = turn(&client, Some(context), None, &input).await.rest().await;
    let output = of_kind(&frames, "tool_call.completed")[0]["output"].as_str().unwrap().to_owned();
    assert!(output.contains("+High water at noon."), "{output}");
    let path = format!("/v1/workspace/documents/{}", document["id"].as_str().unwrap());
    assert_eq!(client.get(&path).await.unwrap()["body"], "Low water at six.\n\nHigh water at noon.");
}

type Requests = Arc<Mutex<Vec<(Option<String>, Value)>>>;

/// Answers as Tavily does.
async fn search_web(State(requests): State<Requests>, headers: HeaderMap, Json(body): Json<Value>) -> Json<Value> {
    let key = headers.get("authorization").map(|key| key.to_str().unwrap().to_owned());
    let result = json!({"title": "Tides", "url": "https://example.org/tides", "content": "They rise and fall.", "score": 0.9, "raw_content": null});
    let answer = json!({
        "query": body["query"], "answer": null, "images": [], "results": [result], "response_time": 0.4, "request_id": "1"
    });
    requests.lock().unwrap().push((key, body));
    Json(answer)
}

async fn the_web_is_searched_by_the_providers_protocol(_: Deployment) {
    let requests = Requests::default();
    let router = Router::new().route("/search", post(search_web)).with_state(Arc::clone(&requests));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let embedded = Embedded::new().with("TAVILY_API_KEY", "tvly-key").with("HOLDFAST_WEB_SEARCH_URL", &url);
    let mut deployment = Deployment::on(embedded);
    let client = deployment.client();
    let call = json!({"query": "tides", "max_results": 3, "include_domains": ["example.org"]});
    let frames = turn(&client, None, None, &format!("[call=web_search {call}] [tokens=1]")).await.rest().await;
    let output = of_kind(&frames, "tool_call.completed")[0]["output"].as_str().unwrap().to_owned();
    assert!(output.contains("- Tides\n  https://example.org/tides\n  They rise and fall."), "{output}");
    let (key, body) = requests.lock().unwrap().pop().unwrap();
    assert_eq!(key.as_deref(), Some("Bearer tvly-key"));
    assert_eq!(
        (&body["query"], &body["max_results"], &body["include_domains"]),
        (&json!("tides"), &json!(3), &json!(["example.org"]))
    );
}

async fn results_of_other_tools_name_entities(mut deployment: Deployment) {
    let client = deployment.client();
    let project = project(&client).await;
    let echo = json!({"text": format!("about {}", project["id"].as_str().unwrap())});
    let frames = turn(&client, None, None, &format!("[call=scripted__echo {echo}] [tokens=1]")).await.rest().await;
    let entities = of_kind(&frames, "tool_call.completed")[0]["entities"].clone();
    assert_eq!(entities, json!([{"kind": "project", "id": project["id"], "name": "Harbour"}]));
}
