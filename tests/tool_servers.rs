//! Connections of MCP servers: who shares one, and what a run does while a server starts.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    in_either_mode,
    support::{
        Deployment, Embedded, EventFrame, agent, frames_of, of_kind, stream_of,
        tokens::{SECRET, claims, token},
        tools::ToolServer,
        upstream::TestUpstream,
    },
};

in_either_mode!(
    the_next_run_uses_the_server_that_an_earlier_one_has_started,
    a_note_of_one_user_is_not_seen_by_another,
    a_server_that_fails_after_the_run_has_begun_is_reported_once,
    a_run_beyond_the_limit_of_servers_has_a_warning,
    anonymous_users_of_one_address_share_the_servers_of_one_owner,
    a_call_waits_for_a_server_that_is_still_starting,
);

/// Opens the way for a server's start.
struct StartGate(TempDir);

impl StartGate {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("gate")
    }

    fn open(&self) {
        fs::write(self.path(), "").unwrap();
    }

    fn starts(&self) -> usize {
        fs::read_to_string(self.0.path().join("gate.starts")).unwrap_or_default().lines().count()
    }
}

/// Returns the definition of a server that keeps notes. With a gate, it starts once that is open.
fn notes(gate: Option<&StartGate>) -> Value {
    let script = include_str!("tool_servers/notes.py").to_owned();
    let args: Vec<String> =
        ["-c".to_owned(), script].into_iter().chain(gate.map(|gate| gate.path().display().to_string())).collect();
    json!({"name": "notes", "transport": "stdio", "command": "python3", "args": args})
}

fn outputs(frames: &[EventFrame]) -> Vec<String> {
    let calls = of_kind(frames, "tool_call.completed");
    calls.iter().map(|call| call["output"].as_str().unwrap_or_else(|| panic!("{call}")).to_owned()).collect()
}

fn warnings(frames: &[EventFrame]) -> Vec<(&str, &str)> {
    let warnings = of_kind(frames, "warning.raised");
    warnings.iter().map(|warning| (warning["code"].as_str().unwrap(), warning["message"].as_str().unwrap())).collect()
}

/// A deployment with stdio servers, whose runs wait only shortly for their start.
fn impatient(deployment: Deployment) -> Deployment {
    deployment.with("HOLDFAST_MCP_STDIO", true).with("HOLDFAST_MCP_WAIT_MS", 50)
}

async fn a_call_waits_for_a_server_that_is_still_starting(deployment: Deployment) {
    let (mut deployment, gate) = (impatient(deployment), StartGate::new());
    let client = deployment.client();
    let agent_id = agent(&client, json!([notes(Some(&gate))]), json!({})).await;
    let mut stream = stream_of(&client, &agent_id, "[tokens=1] [call=notes__note {\"text\":\"a\"}]").await;
    // The model is asked, and calls the tool, before the server has started.
    let mut frames = stream.up_to("tool_call.delta").await;
    assert_eq!(frames.last().unwrap().data["by"], "worker");
    let warning = "Servers that are still starting: notes. Their tools join at the run's next step.";
    assert_eq!(warnings(&frames), [("mcp_server_starting", warning)]);
    gate.open();
    frames.extend(stream.rest().await);
    assert_eq!((outputs(&frames), warnings(&frames).len()), (vec!["a".to_owned()], 1));
    assert_eq!(frames.last().unwrap().event, "run.completed");
    assert_eq!(gate.starts(), 1);
}

async fn the_next_run_uses_the_server_that_an_earlier_one_has_started(deployment: Deployment) {
    let (mut deployment, gate) = (impatient(deployment), StartGate::new());
    let client = deployment.client();
    let agent_id = agent(&client, json!([notes(Some(&gate))]), json!({})).await;
    for _ in 0..2 {
        let frames = frames_of(&client, &agent_id, "[tokens=1] hi").await;
        assert_eq!(warnings(&frames)[0].0, "mcp_server_starting");
        assert_eq!(frames.last().unwrap().event, "run.completed");
    }
    gate.open();
    let frames = frames_of(&client, &agent_id, "[tokens=1] [call=notes__note {\"text\":\"a\"}]").await;
    assert_eq!((outputs(&frames), gate.starts()), (vec!["a".to_owned()], 1));
    let frames = frames_of(&client, &agent_id, "[tokens=1] [call=notes__note {\"text\":\"b\"}]").await;
    assert_eq!((outputs(&frames), warnings(&frames).len()), (vec!["a, b".to_owned()], 0));
}

async fn a_note_of_one_user_is_not_seen_by_another(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_MCP_STDIO", true);
    let client = deployment.client();
    let (ann, bob) = (client.user("ann"), client.user("bob"));
    let seen_by_bob = async |scope: &str| {
        let mut server = notes(None);
        server["scope"] = json!(scope);
        let agent_id = agent(&client, json!([server]), json!({})).await;
        let note = |text: &str| format!("[tokens=1] [call=notes__note {{\"text\":\"{text}\"}}]");
        frames_of(&ann, &agent_id, &note("page of ann")).await;
        let of_bob = outputs(&frames_of(&bob, &agent_id, &note("page of bob")).await);
        let of_ann = outputs(&frames_of(&ann, &agent_id, &note("more")).await);
        (of_bob[0].clone(), of_ann[0].clone())
    };
    let texts = |bob: &str, ann: &str| (bob.to_owned(), ann.to_owned());
    assert_eq!(seen_by_bob("owner").await, texts("page of bob", "page of ann, more"));
    // Each of these runs is in a conversation of its own.
    assert_eq!(seen_by_bob("conversation").await, texts("page of bob", "more"));
    let shared = texts("page of ann, page of bob", "page of ann, page of bob, more");
    assert_eq!(seen_by_bob("worker").await, shared);
}

async fn a_server_that_fails_after_the_run_has_begun_is_reported_once(deployment: Deployment) {
    let mut deployment = impatient(deployment).with("HOLDFAST_MCP_CONNECT_MS", 400);
    let client = deployment.client();
    let gate = StartGate::new();
    let agent_id = agent(&client, json!([notes(Some(&gate))]), json!({})).await;
    let input = "[tokens=1] [call=notes__note {\"text\":\"a\"}] [call=scripted__echo {\"text\":\"b\"}]";
    let frames = frames_of(&client, &agent_id, input).await;
    let reason = "The tools of notes cannot be used now: it did not answer in time.";
    let seen = warnings(&frames);
    assert_eq!((seen[0].0, &seen[1..]), ("mcp_server_starting", &[("mcp_server_unavailable", reason)][..]));
    let calls = of_kind(&frames, "tool_call.completed");
    assert_eq!(
        (calls[0]["error"]["code"].as_str(), calls[1]["output"].as_str()),
        (Some("tool_unavailable"), Some("b"))
    );
    assert_eq!(frames.last().unwrap().event, "run.completed");
}

async fn a_run_beyond_the_limit_of_servers_has_a_warning(deployment: Deployment) {
    let mut deployment = impatient(deployment).with("HOLDFAST_MCP_PROCESSES", 1).with("HOLDFAST_MCP_WAIT_MS", 1000);
    let client = deployment.client();
    let (ann, bob) = (client.user("ann"), client.user("bob"));
    let mut server = ToolServer::start().await;
    let agent_id = agent(&client, json!([notes(None), server.describe()]), json!({})).await;
    let call = "[tokens=1] [call=notes__note {\"text\":\"a\"}]";
    // The run of ann is between two calls of its notes.
    let of_ann = stream_of(&ann, &agent_id, &format!("{call} [call=kb__count] {call}")).await;
    let arrival = server.arrival().await;
    let frames = frames_of(&bob, &agent_id, call).await;
    let reason = "The tools of notes cannot be used now: too many servers are in use.";
    assert_eq!(warnings(&frames), [("mcp_server_unavailable", reason)]);
    assert_eq!(of_kind(&frames, "tool_call.completed")[0]["error"]["code"], "tool_unavailable");
    arrival.answer("counted");
    assert_eq!(outputs(&of_ann.rest().await), ["a", "counted", "a, a"]);
    // Its end frees the server for another one.
    assert_eq!(outputs(&frames_of(&bob, &agent_id, call).await), ["a"]);
}

async fn anonymous_users_of_one_address_share_the_servers_of_one_owner(deployment: Deployment) {
    let mut deployment = impatient(deployment)
        .with("HOLDFAST_JWT_KEY", SECRET)
        .with("CHAT_RATE_LIMIT", 0)
        .with("HOLDFAST_MCP_OWNER_CONNECTIONS", 1)
        .with("HOLDFAST_MCP_WAIT_MS", 1000);
    let client = deployment.client();
    let operator = client.token(&token(&claims("olga", json!({"role": "operator"}))));
    let mut server = ToolServer::start().await;
    let mut shared = server.describe();
    shared["scope"] = json!("worker");
    // Anonymous users need no approval for such calls.
    let tools = json!({"tools": {"notes__note": {"effect": "read_only"}, "kb__count": {"effect": "read_only"}}});
    let agent_id = agent(&operator, json!([notes(None), shared]), tools).await;
    let mut users = Vec::new();
    for _ in 0..2 {
        let made = client.post("/v1/users/anonymous", json!({})).await.unwrap();
        users.push(client.token(made["token"].as_str().unwrap()));
    }
    let call = "[tokens=1] [call=notes__note {\"text\":\"a\"}]";
    let first = stream_of(&users[0], &agent_id, &format!("{call} [call=kb__count]")).await;
    let arrival = server.arrival().await;
    let frames = frames_of(&users[1], &agent_id, call).await;
    let reason = "The tools of notes cannot be used now: too many servers are in use.";
    assert_eq!(warnings(&frames), [("mcp_server_unavailable", reason)]);
    assert_eq!(outputs(&frames_of(&operator, &agent_id, call).await), ["a"], "a user has a limit of its own");
    arrival.answer("counted");
    assert_eq!(outputs(&first.rest().await), ["a", "counted"]);
    assert_eq!(outputs(&frames_of(&users[1], &agent_id, call).await), ["a"]);
}

#[tokio::test]
async fn tools_of_a_server_that_has_started_join_at_the_next_step() {
    let (mut server, gate) = (ToolServer::start().await, StartGate::new());
    let upstream = TestUpstream::calling("kb__count", &["Done."]).await;
    upstream.permit_words(1);
    let embedded = Embedded::new()
        .with("CHAT_MODEL_PROVIDER", "openai")
        .with("CHAT_MODEL_NAME", "test-model")
        .with("OPENAI_BASE_URL", &upstream.base_url)
        .with("OPENAI_API_KEY", "key")
        .with("HOLDFAST_MCP_STDIO", true)
        .with("HOLDFAST_MCP_WAIT_MS", 500);
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let agent_id = agent(&client, json!([server.describe(), notes(Some(&gate))]), json!({})).await;
    let stream = stream_of(&client, &agent_id, "count").await;
    let arrival = server.arrival().await;
    gate.open();
    holdfast.wait_for_log("connected to MCP server mcp.server=\"notes\"");
    arrival.answer("counted");
    assert_eq!(stream.rest().await.last().unwrap().event, "run.completed");
    let names = |request: &Value| {
        let tools = request["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let offered: Vec<Vec<String>> = upstream.requests().iter().map(names).collect();
    assert_eq!(offered[0], ["kb__count", "kb__look"]);
    assert_eq!(offered[1], ["kb__count", "kb__look", "notes__keep", "notes__note"]);
}
