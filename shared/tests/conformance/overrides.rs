//! Overrides of a run's client, and conversations that no list shows.

use std::time::Duration;

use holdfast_shared::{
    ending::Ending,
    message::Role,
    overrides::{GivenHistory, GivenMessage, JsonFormat, RunOverrides},
    storage::{
        Answer, BeginResult, ClientResult, EarlierResult, NewRun, Progress, Release, RunOptions, Target, Window,
    },
    tool::{ClientTool, ToolCallStatus, any_object},
    tool_choice::{ToolChoice, ToolMode},
};
use serde_json::json;

use crate::{
    backends::{LEASE, TestBackends, new_run},
    conversations::{claim_of, submitted},
    on_each_backend,
    waiting::{call, chunk},
};

on_each_backend!(
    a_run_keeps_the_overrides_of_its_client,
    only_a_waiting_run_takes_what_a_later_request_brings,
    a_hidden_conversation_is_removed_with_the_events_of_its_run,
);

const NEW: Target = Target::New { agent_id: None };
const WINDOW: Window = Window { usual: 10, standing: 10, bytes: 1000, result_chars: 10 };

fn overrides() -> RunOverrides {
    let result =
        EarlierResult { name: "look".into(), input: "{}".into(), output: Some("3".into()), error: None, call_id: None };
    let earlier = GivenMessage { role: Role::Assistant, content: "an answer".to_owned().into(), results: vec![result] };
    RunOverrides {
        instructions: Some("Be brief.".into()),
        profile: Some("quick".into()),
        format: Some(JsonFormat { name: "person".into(), schema: Some(json!({"type": "object"})), strict: true }),
        history: Some(GivenHistory { before: vec![earlier], left_out: 3, ..GivenHistory::default() }),
        ..RunOverrides::default()
    }
}

async fn a_run_keeps_the_overrides_of_its_client(backends: TestBackends) {
    let tool = ClientTool { name: "ask".into(), description: String::new(), input_schema: any_object() };
    for tools in [Vec::new(), vec![tool]] {
        let options = RunOptions { overrides: overrides(), client_tools: tools.clone(), ..RunOptions::default() };
        let new = NewRun { options, ..new_run(NEW, "hi") };
        let run_id = submitted(&backends, new).await.run.id;
        let without_history = RunOverrides { history: None, ..overrides() };
        let parts = backends.storage.client_parts(run_id).await.unwrap();
        assert_eq!(parts, (tools.clone(), without_history));
        let claim = claim_of(&backends, run_id).await;
        let BeginResult::Executing(start) = backends.storage.begin(&claim, WINDOW).await.unwrap() else {
            panic!("the claim is valid")
        };
        assert_eq!((start.overrides, start.client_tools), (overrides(), tools));
    }
    let tool = ClientTool { name: "ask".into(), description: String::new(), input_schema: any_object() };
    for tools in [Vec::new(), vec![tool]] {
        let options = RunOptions { client_tools: tools.clone(), ..RunOptions::default() };
        let plain = submitted(&backends, NewRun { options, ..new_run(NEW, "hi") }).await.run.id;
        assert_eq!(backends.storage.client_parts(plain).await.unwrap(), (tools, RunOverrides::default()));
    }
}

async fn only_a_waiting_run_takes_what_a_later_request_brings(backends: TestBackends) {
    let choice = ToolChoice { mode: ToolMode::Named("ask".into()), after_step: 2, ..ToolChoice::default() };
    let tool = |name: &str| ClientTool { name: name.into(), description: String::new(), input_schema: any_object() };
    let renewed =
        RunOverrides { instructions: Some("Be long.".into()), tool_choice: Some(choice), ..RunOverrides::default() };
    let (later, metadata) = (vec![tool("refund")], json!({"topic": "money"}));
    let renew = async |run_id| {
        let (tools, overrides, metadata) = (later.clone(), renewed.clone(), Some(metadata.clone()));
        backends.storage.renew_client_parts(run_id, tools, overrides, metadata).await.unwrap();
    };
    let running = submitted(&backends, new_run(NEW, "hi")).await.run.id;
    claim_of(&backends, running).await;
    renew(running).await;
    assert_eq!(backends.storage.client_parts(running).await.unwrap(), Default::default());

    let plain = RunOverrides::default();
    for (tools, own) in [(Vec::new(), &plain), (vec![tool("ask")], &plain), (vec![tool("ask")], &overrides())] {
        let options = RunOptions { overrides: own.clone(), client_tools: tools, ..RunOptions::default() };
        let run_id = submitted(&backends, NewRun { options, ..new_run(NEW, "hi") }).await.run.id;
        let claim = claim_of(&backends, run_id).await;
        let calls = vec![call("c1", ToolCallStatus::Client, None)];
        let tail = chunk(&claim, 2, Progress { calls, ..Progress::default() });
        backends.storage.release(&claim, Some(&tail), tail.last, Release::Waiting).await.unwrap();
        renew(run_id).await;
        assert_eq!(backends.storage.client_parts(run_id).await.unwrap(), (later.clone(), renewed.clone()));
        let run = backends.storage.run("ann", run_id).await.unwrap().unwrap();
        assert_eq!(run.metadata.as_ref(), Some(&metadata));
        let result = ClientResult::Output("found".into());
        backends.storage.complete_client_call("ann", run_id, "c1", &result).await.unwrap();
        let claim = claim_of(&backends, run_id).await;
        let BeginResult::Executing(start) = backends.storage.begin(&claim, WINDOW).await.unwrap() else {
            panic!("the claim is valid")
        };
        let history = own.history.clone();
        assert_eq!((start.overrides, start.client_tools), (RunOverrides { history, ..renewed.clone() }, later.clone()));
    }
}

async fn a_hidden_conversation_is_removed_with_the_events_of_its_run(backends: TestBackends) {
    let options = RunOptions { hides_conversation: true, ..RunOptions::default() };
    let hidden = submitted(&backends, NewRun { options, ..new_run(NEW, "hi") }).await;
    let shown = submitted(&backends, new_run(NEW, "hi")).await.conversation.id;
    let page = backends.storage.conversations("ann", 10, None, None).await.unwrap().unwrap();
    assert_eq!(page.items.iter().map(|conversation| conversation.id).collect::<Vec<_>>(), [shown]);
    let claim = claim_of(&backends, hidden.run.id).await;
    backends.storage.finish(&claim, None, claim.started.id, &Answer::default(), &Ending::Completed).await.unwrap();
    let options = RunOptions { hides_conversation: true, ..RunOptions::default() };
    let unfinished = submitted(&backends, NewRun { options, ..new_run(NEW, "hi") }).await.conversation.id;
    let day = Duration::from_secs(86_400);
    assert_eq!(backends.storage.retire(day, Duration::ZERO).await.unwrap().conversations, 0);
    // Times are in whole milliseconds.
    let mut removed = Vec::new();
    while removed.is_empty() {
        removed = backends.storage.retire(Duration::from_millis(1), LEASE).await.unwrap().removed_runs;
    }
    assert_eq!(removed, [hidden.run.id]);
    for id in [shown, unfinished] {
        assert!(backends.storage.conversation("ann", id).await.unwrap().is_some());
    }
}
