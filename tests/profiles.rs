//! Model profiles: who defines them, and which model answers.

use reqwest::Method;
use serde_json::{Value, json};

use crate::files::{PIXEL, upload};
use crate::support::{Client, Embedded, agent, answer, frames_of, of_kind, upstream::TestUpstream};

async fn put(client: &Client, document: Value) -> Result<Value, (u16, String)> {
    let request = client.request(Method::PUT, "/v1/profiles").json(&document);
    answer(request).await.map_err(|failure| (failure.status, failure.code))
}

fn profiles() -> Value {
    json!({
        "profiles": {
            "good": {"provider": "openai", "model": "large", "fallback": ["spare"]},
            "spare": {"provider": "scripted", "model": "scripted"}
        },
        "roles": {}
    })
}

#[tokio::test]
async fn the_api_keeps_profiles_and_refuses_what_names_none() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let none = client.get("/v1/profiles").await.unwrap();
    assert_eq!(none, json!({"origin": "api", "updated_at": null, "profiles": {}, "roles": {}}));
    let with_profile = json!({"name": "a", "model": {"profile": "good"}});
    let refused = client.post("/v1/agents", with_profile.clone()).await.unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (400, "invalid_agent"));
    let stored = put(&client, profiles()).await.unwrap();
    assert_eq!(stored["profiles"], profiles()["profiles"]);
    assert_eq!(client.get("/v1/profiles").await.unwrap(), stored);
    assert_eq!(client.post("/v1/agents", with_profile).await.unwrap()["model"], json!({"profile": "good"}));
    let unknown = json!({"profiles": {"a": {"provider": "openai", "model": "m", "fallback": ["b"]}}});
    assert_eq!(put(&client, unknown).await, Err((400, "invalid_profiles".into())));
    assert_eq!(put(&client, json!({"profile": {}})).await, Err((400, "invalid_body".into())));
    assert_eq!(client.get("/v1/profiles").await.unwrap(), stored);
}

#[tokio::test]
async fn profiles_of_the_file_can_be_read_only_and_go_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agents.yaml");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    let embedded = Embedded::new().with("HOLDFAST_AGENTS", file.display());
    write("profiles: {good: {provider: scripted, model: scripted}}\nagents: [{name: a, model: {profile: good}}]\n");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    assert_eq!(client.get("/v1/profiles").await.unwrap()["origin"], "file");
    assert_eq!(put(&client, profiles()).await, Err((409, "profiles_in_file".into())));
    let agents = client.get("/v1/agents").await.unwrap();
    let frames = frames_of(&client, agents["items"][0]["id"].as_str().unwrap(), "[tokens=1]").await;
    assert_eq!(frames.last().unwrap().event, "run.completed");
    holdfast.kill();
    write("agents: []\n");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    assert_eq!(client.get("/v1/profiles").await.unwrap()["profiles"], json!({}));
    put(&client, profiles()).await.unwrap();
}

#[tokio::test]
async fn a_run_names_the_model_that_has_answered_instead() {
    let embedded = Embedded::new().with("OPENAI_BASE_URL", "http://127.0.0.1:1/v1/").with("HOLDFAST_MODEL_RETRIES", 0);
    let mut holdfast = embedded.with("CHAT_MODEL_PROVIDER", "scripted").start();
    let client = holdfast.client();
    put(&client, profiles()).await.unwrap();
    let agent_id = agent(&client, json!([]), json!({"model": {"profile": "good"}})).await;
    let frames = frames_of(&client, &agent_id, "[call=scripted__echo {\"text\":\"hi\"}] [tokens=2]").await;
    assert!(of_kind(&frames, "step.completed").iter().all(|step| step["model"] == "scripted/scripted"));
    let run_id = frames[0].data["run_id"].as_str().unwrap();
    assert_eq!(client.run(run_id).await["model"], "scripted/scripted");
    let trace = client.get(&format!("/v1/runs/{run_id}/messages")).await.unwrap();
    let written = trace["items"].as_array().unwrap().iter().filter(|message| message["role"] == "assistant");
    assert!(written.into_iter().all(|message| message["model"] == "scripted/scripted"));
}

#[tokio::test]
async fn a_fallback_that_takes_no_picture_is_asked_about_later_messages_only() {
    let upstream = TestUpstream::start(&["A ", "pixel."]).await;
    let embedded = Embedded::new().with("OLLAMA_BASE_URL", "http://127.0.0.1:1/").with("HOLDFAST_MODEL_RETRIES", 0);
    let embedded = embedded.with("OPENAI_BASE_URL", &upstream.base_url).with("CHAT_MODEL_PROVIDER", "scripted");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let blind = json!({"provider": "openai", "model": "gpt-3.5-turbo"});
    let seeing = json!({"provider": "ollama", "model": "llava", "fallback": [blind]});
    put(&client, json!({"profiles": {"seeing": seeing}})).await.unwrap();
    let agent_id = agent(&client, json!([]), json!({"model": {"profile": "seeing"}})).await;
    let picture = upload(&client, "pixel.png", PIXEL).await;
    let input = json!([{"type": "text", "text": "What is this?"}, {"type": "image", "file_id": picture["id"]}]);
    let accepted = client.post("/v1/runs", json!({"input": input, "agent_id": agent_id})).await.unwrap();
    let run = client.wait_for_run(accepted["run"]["id"].as_str().unwrap()).await;
    assert_eq!((&run["status"], &run["error"]["code"]), (&json!("failed"), &json!("model_unreachable")));
    let message = run["error"]["message"].as_str().unwrap();
    assert!(message.ends_with("because it takes no files of type image/png") && upstream.requests().is_empty());
    let path = format!("/v1/conversations/{}/messages", accepted["conversation"]["id"].as_str().unwrap());
    let accepted = client.post(&path, json!({"content": "And without it?"})).await.unwrap();
    let run = client.wait_for_run(accepted["run"]["id"].as_str().unwrap()).await;
    assert_eq!((&run["status"], &run["model"]), (&json!("completed"), &json!("openai/gpt-3.5-turbo")));
    let request = upstream.requests()[0]["messages"].to_string();
    assert!(request.contains("[The file pixel.png (image/png, 67 bytes) is not shown here]"), "{request}");
}

#[tokio::test]
async fn a_profile_that_is_gone_fails_the_run_with_a_reason() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    put(&client, json!({"profiles": {"good": {"provider": "scripted", "model": "scripted"}}})).await.unwrap();
    let agent_id = agent(&client, json!([]), json!({"model": {"profile": "good"}})).await;
    put(&client, json!({})).await.unwrap();
    let frames = frames_of(&client, &agent_id, "[tokens=1]").await;
    assert_eq!(frames.last().unwrap().data["error"]["code"], "model_not_configured");
}

#[tokio::test]
async fn the_model_of_the_role_summarises() {
    let upstream = TestUpstream::start(&["The ", "summary."]).await;
    let embedded = Embedded::new().with("OPENAI_BASE_URL", &upstream.base_url).with("HOLDFAST_CONTEXT_TOKENS", 100);
    let mut holdfast = embedded.with("CHAT_MODEL_PROVIDER", "scripted").start();
    let client = holdfast.client();
    let small =
        json!({"profiles": {"small": {"provider": "openai", "model": "small"}}, "roles": {"summarizer": "small"}});
    put(&client, small).await.unwrap();
    let conversation = client.post("/v1/conversations", json!({})).await.unwrap();
    let path = format!("/v1/conversations/{}/messages", conversation["id"].as_str().unwrap());
    for _ in 0..3 {
        let content = format!("[tokens=30] {}", "long ".repeat(40));
        let posted = client.post(&path, json!({ "content": content })).await.unwrap();
        client.wait_for_run(posted["run"]["id"].as_str().unwrap()).await;
    }
    let requests = upstream.requests();
    assert!(!requests.is_empty() && requests.iter().all(|body| body["model"] == "small"), "{requests:?}");
}
