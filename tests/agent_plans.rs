//! Plans and questions on the wires of front ends.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    in_both_modes,
    support::{BlockStream, Client, Deployment, StreamBlock, until},
};

in_both_modes!(
    a_plan_on_the_agent_stream,
    a_project_is_created_after_two_questions,
    a_project_with_a_known_kind_needs_no_question,
    the_ai_sdks_wire_has_a_part_for_each_plan_and_step,
    the_context_is_kept_with_the_conversation,
);

/// Posts a message of a session to the agent stream and returns the stream.
async fn stream(client: &Client, message: &str, context: &Value) -> BlockStream {
    let mut body = json!({"message": message, "session_id": "tide"});
    body.as_object_mut().unwrap().extend(context.as_object().unwrap().clone());
    BlockStream::open(client.request(Method::POST, "/api/agent/stream").json(&body)).await
}

/// Returns the stream's frames with names in place of ids, and each piece of text on its own.
fn redacted(blocks: &[StreamBlock]) -> String {
    let mut text: String = blocks.iter().map(|block| block.raw.as_str()).collect::<Vec<_>>().join("\n");
    let mut names = 0;
    while let Some(at) = text.find("\"01a").map(|at| at + 1) {
        let id = text[at..at + 36].to_owned();
        names += 1;
        text = text.replace(&id, &format!("<id {names}>")).replace(&id.replace('-', ""), &format!("<id {names}>"));
    }
    // The instructions of the planner count, too.
    while let Some(at) = text.find("\"total_tokens\":").map(|at| at + 15).filter(|at| !text[*at..].starts_with('<')) {
        let end = at + text[at..].find('}').unwrap();
        text.replace_range(at..end, "<tokens>");
    }
    while let Some(at) = text.find("call_0") {
        let id = text[at..at + 37].to_owned();
        names += 1;
        text = text.replace(&id, &format!("<call {names}>"));
    }
    text
}

/// The message that makes a plan of two steps.
fn plan() -> String {
    let plan = json!({"goal": "count", "steps": [
        {"step_number": 1, "description": "[tokens=2] first", "executor_required": true},
        {"step_number": 2, "description": "[tokens=1] second", "depends_on": [1]},
    ]});
    format!("[plan={plan}]")
}

async fn a_plan_on_the_agent_stream(mut deployment: Deployment) {
    let client = deployment.client();
    let focus = json!({"focusType": "task", "focusEntityId": "t-1", "projectId": "p-1", "projectName": "Harbour"});
    let context = json!({"context_type": "project", "entity_id": "p-1", "projectFocus": focus});
    let blocks = stream(&client, &plan(), &context).await;
    let run_id = blocks.run_id.clone();
    let blocks = blocks.rest().await;
    insta::assert_snapshot!("plan", redacted(&blocks));
    // Each frame with an id resumes.
    for (index, block) in blocks.iter().enumerate().filter(|(_, block)| block.id.is_some()) {
        let rest = match BlockStream::rejoin(&client, &run_id, "wire=agent", block.id.as_deref()).await {
            Some(rest) => rest.rest().await,
            None => Vec::new(),
        };
        let raw = |blocks: &[StreamBlock]| blocks.iter().map(|block| block.raw.clone()).collect::<Vec<_>>();
        assert_eq!(raw(&rest), raw(&blocks[index + 1..]), "after {:?}", block.id);
    }
}

async fn a_project_is_created_after_two_questions(mut deployment: Deployment) {
    let client = deployment.client();
    let context = json!({"context_type": "project_create"});
    let first = stream(&client, "I want to start a new project", &context).await.rest().await;
    insta::assert_snapshot!("project_question", redacted(&first));
    let conversations = client.get("/v1/conversations").await.unwrap();
    let path = format!("/v1/conversations/{}", conversations["items"][0]["id"].as_str().unwrap());
    let kept = client.get(&path).await.unwrap();
    let clarification = &kept["agent_metadata"]["projectClarification"];
    assert_eq!(
        (&clarification["roundNumber"], kept["context"]["context_type"].as_str()),
        (&json!(1), Some("project_create"))
    );
    let second = stream(&client, "It's a mobile app for fitness tracking [tokens=2]", &context).await.rest().await;
    insta::assert_snapshot!("project_answer", redacted(&second));
    assert_eq!(client.get(&path).await.unwrap().get("agent_metadata"), None);
}

async fn a_project_with_a_known_kind_needs_no_question(mut deployment: Deployment) {
    let client = deployment.client();
    let message = "I want to build a mobile app for fitness tracking [tokens=2]";
    let blocks = stream(&client, message, &json!({"context_type": "project_create"})).await.rest().await;
    insta::assert_snapshot!("project_at_once", redacted(&blocks));
}

async fn the_ai_sdks_wire_has_a_part_for_each_plan_and_step(mut deployment: Deployment) {
    let client = deployment.client();
    let run_id = stream(&client, &plan(), &json!({"context_type": "global"})).await.run_id;
    client.wait_for_run(&run_id).await;
    let blocks = BlockStream::rejoin(&client, &run_id, "wire=ai-sdk", None).await.unwrap().rest().await;
    let chunks: Vec<Value> = blocks.iter().filter(|block| block.data.starts_with('{')).map(StreamBlock::json).collect();
    let of_type = |kind: &str| chunks.iter().filter(|chunk| chunk["type"] == kind).collect::<Vec<_>>();
    let (plans, steps) = (of_type("data-plan"), of_type("data-step"));
    let statuses: Vec<&Value> = plans.iter().map(|plan| &plan["data"]["status"]).collect();
    assert_eq!(statuses, ["draft", "executing", "completed"]);
    assert!(plans.iter().all(|plan| plan["id"] == plan["data"]["id"] && plan["id"] == plans[0]["id"]));
    let of_steps: Vec<(&Value, &Value)> =
        steps.iter().map(|step| (&step["data"]["step"]["stepNumber"], &step["data"]["step"]["status"])).collect();
    let (executing, completed) = (json!("executing"), json!("completed"));
    let expected = [(&json!(1), &executing), (&json!(1), &completed), (&json!(2), &executing), (&json!(2), &completed)];
    assert_eq!(of_steps, expected);
}

async fn the_context_is_kept_with_the_conversation(mut deployment: Deployment) {
    let client = deployment.client();
    let context = json!({"context_type": "project", "entity_id": "p-1"});
    let posted = client.post("/v1/runs", json!({"input": "[tokens=1]", "context": context})).await.unwrap();
    let path = format!("/v1/conversations/{}", posted["conversation"]["id"].as_str().unwrap());
    assert_eq!(client.get(&path).await.unwrap()["context"], context);
    client.post(&format!("{path}/messages"), json!({"content": "[tokens=1]"})).await.unwrap();
    until("both runs have ended", || async { client.get(&path).await.unwrap()["live_run_id"].is_null().then_some(()) })
        .await;
    assert_eq!(client.get(&path).await.unwrap()["context"], context);
    let other = json!({"context_type": "global"});
    client.post(&format!("{path}/messages"), json!({"content": "[tokens=1]", "context": other})).await.unwrap();
    assert_eq!(client.get(&path).await.unwrap()["context"], other);
    let refused = json!({"content": "x", "context": {"context_type": "project", "projectFocus": {"focusType": "sea"}}});
    assert_eq!(client.post(&format!("{path}/messages"), refused).await.unwrap_err().status, 400);
    let misspelt = json!({"content": "x", "context": {"context_type": "project", "entity": "p-1"}});
    let refused = client.post(&format!("{path}/messages"), misspelt).await.unwrap_err();
    assert!(refused.body.to_string().contains("there is no field"), "{refused:?}");
}
