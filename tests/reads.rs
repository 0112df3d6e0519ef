//! Reads of long threads: each caller has one turn, and all callers together have a few.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_servers::TableLock;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    task::JoinSet,
};

use crate::{
    in_either_mode,
    support::{Client, Deployment, ScaledOut, until},
};

in_either_mode!(
    a_body_that_does_not_arrive_holds_no_turn,
    reads_of_one_caller_wait_for_each_other_and_all_are_answered,
);

/// Reads of each greedy caller at once.
const AT_ONCE: usize = 8;

/// A word of the statements that read a page.
const PAGE: &str = "page_bytes";

async fn ended_run(client: &Client) -> String {
    let run = client.start("[tokens=1] hi").await["run"]["id"].as_str().unwrap().to_owned();
    client.wait_for_run(&run).await;
    run
}

#[tokio::test]
async fn only_reads_with_a_turn_hold_a_database_connection() {
    let scaled = ScaledOut::new().with("HOLDFAST_READS", 2);
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let callers = ["ann", "bob", "carl"].map(|name| client.user(name));
    let mut runs = Vec::new();
    for caller in &callers {
        runs.push(ended_run(caller).await);
    }
    let lock = TableLock::take(&scaled.database_url, "kb.agent_run_tool_calls");
    let mut reads = JoinSet::new();
    let read = |reads: &mut JoinSet<_>, of: usize| {
        let request = callers[of].request(Method::GET, &format!("/v1/runs/{}/tool_calls", runs[of]));
        reads.spawn(async move { request.send().await.unwrap().status() });
    };
    (0..AT_ONCE).for_each(|_| read(&mut reads, 0));
    until("a read of ann waits in the database", || async { (lock.waiting(PAGE) == 1).then_some(()) }).await;
    (0..AT_ONCE).for_each(|_| read(&mut reads, 1));
    (0..AT_ONCE).for_each(|_| read(&mut reads, 2));
    until("a read of another caller does", || async { (lock.waiting(PAGE) == 2).then_some(()) }).await;
    // A list needs no turn.
    for _ in 0..AT_ONCE {
        assert_eq!(callers[0].get("/v1/conversations").await.unwrap()["items"].as_array().unwrap().len(), 1);
    }
    assert_eq!(lock.waiting(PAGE), 2, "all other reads wait outside of the database");
    drop(lock);
    while let Some(status) = reads.join_next().await {
        assert_eq!(status.unwrap(), StatusCode::OK);
    }
}

async fn a_body_that_does_not_arrive_holds_no_turn(mut deployment: Deployment) {
    deployment = deployment.with("HOLDFAST_READS", 1);
    let client = deployment.client();
    let run = ended_run(&client).await;
    let conversation = client.run(&run).await["conversation_id"].as_str().unwrap().to_owned();
    let host = client.base().trim_start_matches("http://").to_owned();
    let mut silent = tokio::net::TcpStream::connect(&host).await.unwrap();
    let head = format!(
        "POST /langgraph/threads/{conversation}/history HTTP/1.1\r\nhost: {host}\r\nx-user: eve\r\n\
         content-type: application/json\r\ncontent-length: 10\r\nexpect: 100-continue\r\n\r\n"
    );
    silent.write_all(head.as_bytes()).await.unwrap();
    // The server asks for the body as soon as a handler reads it.
    let mut asked = [0; 12];
    silent.read_exact(&mut asked).await.unwrap();
    assert_eq!(&asked, b"HTTP/1.1 100");
    client.get(&format!("/v1/conversations/{conversation}/messages")).await.unwrap();
}

async fn reads_of_one_caller_wait_for_each_other_and_all_are_answered(mut deployment: Deployment) {
    deployment = deployment.with("HOLDFAST_READS", 1);
    let client = deployment.client();
    let run = ended_run(&client).await;
    let conversation = client.run(&run).await["conversation_id"].as_str().unwrap().to_owned();
    let gets = [
        format!("/v1/conversations/{conversation}/messages"),
        format!("/v1/conversations/{conversation}/checkpoints"),
        format!("/api/chat/{conversation}/messages"),
        format!("/langgraph/threads/{conversation}"),
        format!("/langgraph/threads/{conversation}/state"),
        format!("/langgraph/threads/{conversation}/runs/{run}/join"),
        format!("/langgraph/threads/{conversation}/runs/{run}"),
        format!("/langgraph/threads/{conversation}/runs/{run}/stream"),
        format!("/openai/v1/conversations/conv_{}/items", conversation.replace('-', "")),
        format!("/ag-ui/threads/{conversation}"),
        format!("/v1/runs/{run}/messages"),
        format!("/v1/runs/{run}/events?limit=5"),
        format!("/v1/stream/runs/{run}?offset=-1"),
        format!("/v1/runs/{run}/events?snapshot=true"),
    ];
    let history = format!("/langgraph/threads/{conversation}/history");
    let task = json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": run}});
    let posts: [(&str, Value); 3] =
        [(history.as_str(), json!({})), ("/langgraph/threads/search", json!({})), ("/a2a", task)];
    let mut reads = JoinSet::new();
    for path in &gets {
        let request = client.request(Method::GET, path).header("accept", "application/json");
        reads.spawn(request.send());
    }
    for (path, body) in &posts {
        reads.spawn(client.request(Method::POST, path).json(body).send());
    }
    // Ten watchers come back at once.
    for _ in 0..10 {
        let path = format!("/v1/runs/{run}/events?snapshot=true");
        reads.spawn(client.request(Method::GET, &path).header("accept", "text/event-stream").send());
    }
    while let Some(response) = reads.join_next().await {
        let response = response.unwrap().unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{}", response.url());
        response.bytes().await.unwrap();
    }
}
