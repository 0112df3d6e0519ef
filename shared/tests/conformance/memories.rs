//! Memories: one for each call, within their limits, for their agents and their owner, and their complete end.

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use holdfast_shared::{
    ending::Ending,
    event::{Event, EventBody, ExecutedBy, WarningRaised},
    event_id::EventId,
    memory::{MemoryReference, MemoryScope, MemoryWriter, StoredMemory},
    page::PageSize,
    quotas::{MemoryLimits, OtherQuotas, QuotaExceeded},
    storage::{
        Answer, ArchiveChunk, CallState, Claim, Erasure, Error, FlushOutcome, MemoryCall, MemoryChange, MemoryChanged,
        NewMemory, NewTraceMessage, Progress, Remembered, Target,
    },
    tool::{Effect, ToolCallStatus},
    trace::{RequestedCall, TraceRole},
};
use serde_json::json;
use uuid::Uuid;

use crate::{
    backends::{LEASE, NO_QUOTAS, TestBackends},
    on_each_backend,
};

on_each_backend!(
    a_call_writes_one_memory_also_if_it_was_deleted_meanwhile,
    an_agent_recalls_its_own_memories_and_those_for_all_agents,
    memories_of_an_owner_have_a_limit,
    a_memory_needs_an_expiry_in_the_future_and_ends_with_it,
    an_edit_is_a_version_and_a_stale_one_is_refused,
    old_versions_are_dropped,
    a_deleted_memory_leaves_no_text_after_its_run_and_its_events,
    memories_move_with_their_owner_and_are_erased_with_it,
    memories_are_listed_newest_first,
    a_fenced_attempt_remembers_nothing,
);

const LIMITS: MemoryLimits = MemoryLimits { max_memories: 3, max_anonymous: 1, max_chars: 100 };
const NEW: Target = Target::New { agent_id: None };

fn new_memory(text: &str) -> NewMemory {
    NewMemory { text: text.into(), scope: MemoryScope::Agent, expires_at: None }
}

/// Claims a new run of an owner.
async fn executing(backends: &TestBackends, owner: &str) -> Claim {
    backends.submit_as(owner, NEW, "hi").await;
    backends.claim(1).await.remove(0)
}

fn call<'a>(claim: &Claim, call_id: &'a str, agent: &'a str) -> MemoryCall<'a> {
    MemoryCall { run_id: claim.run_id, attempt: claim.attempt, call_id, agent }
}

async fn remember(backends: &TestBackends, claim: &Claim, call_id: &str, new: NewMemory) -> Remembered {
    backends.storage.remember(call(claim, call_id, "a"), &new, LIMITS).await.unwrap()
}

/// Stores a memory and returns its id.
async fn stored(backends: &TestBackends, claim: &Claim, call_id: &str, new: NewMemory) -> Uuid {
    match remember(backends, claim, call_id, new).await {
        Remembered::Stored(MemoryReference { id, version: 1 }) => id,
        other => panic!("{other:?}"),
    }
}

async fn all(backends: &TestBackends, owner: &str) -> Vec<StoredMemory> {
    backends.storage.memories(owner, None, PageSize::ALL, None).await.unwrap().unwrap().items
}

/// Returns the texts in the order of letters, because two memories may be of the same millisecond.
async fn recalled(backends: &TestBackends, owner: &str, agent: &str) -> Vec<String> {
    let found = backends.storage.recallable(owner, agent, 10).await.unwrap();
    let mut texts: Vec<String> = found.into_iter().map(|memory| memory.text).collect();
    texts.sort_unstable();
    texts
}

async fn a_call_writes_one_memory_also_if_it_was_deleted_meanwhile(backends: TestBackends) {
    let claim = executing(&backends, "ann").await;
    let id = stored(&backends, &claim, "c1", new_memory("tea")).await;
    assert_eq!(stored(&backends, &claim, "c1", new_memory("tea")).await, id);
    let other = stored(&backends, &claim, "c2", new_memory("tea")).await;
    // Both may have been stored in one millisecond, so their order is open.
    let memories = all(&backends, "ann").await;
    let [first, second] = [id, other].map(|id| memories.iter().find(|memory| memory.id == id).unwrap());
    assert_ne!(first.id, second.id);
    assert_eq!((memories.len(), second.version, first.writer), (2, 1, MemoryWriter::Agent));
    assert_eq!((first.source.run_id, first.source.conversation_id), (claim.run_id, Some(claim.conversation_id)));
    assert!(backends.storage.delete_memory("ann", id).await.unwrap());
    assert_eq!(stored(&backends, &claim, "c1", new_memory("tea")).await, id);
    assert_eq!(all(&backends, "ann").await.len(), 1, "the repeated call has not brought it back");
}

async fn an_agent_recalls_its_own_memories_and_those_for_all_agents(backends: TestBackends) {
    let claim = executing(&backends, "ann").await;
    let own = stored(&backends, &claim, "c1", new_memory("own")).await;
    stored(&backends, &claim, "c2", NewMemory { scope: MemoryScope::User, ..new_memory("shared") }).await;
    assert_eq!(recalled(&backends, "ann", "a").await, ["own", "shared"]);
    assert_eq!(recalled(&backends, "ann", "b").await, ["shared"]);
    assert!(recalled(&backends, "bob", "a").await.is_empty());
    let storage = &backends.storage;
    assert!(!storage.forget_memory("ann", "b", own).await.unwrap(), "another agent's");
    assert!(!storage.forget_memory("bob", "a", own).await.unwrap(), "another owner's");
    assert!(storage.forget_memory("ann", "a", own).await.unwrap());
    assert!(!storage.forget_memory("ann", "a", own).await.unwrap());
    assert_eq!(recalled(&backends, "ann", "a").await, ["shared"]);
    assert_eq!(storage.memory("bob", all(&backends, "ann").await[0].id).await.unwrap(), None);
}

async fn memories_of_an_owner_have_a_limit(backends: TestBackends) {
    let claim = executing(&backends, "ann").await;
    for call_id in ["c1", "c2", "c3"] {
        stored(&backends, &claim, call_id, new_memory("x")).await;
    }
    assert_eq!(remember(&backends, &claim, "c4", new_memory("x")).await, Remembered::Full(3));
    stored(&backends, &claim, "c3", new_memory("x")).await;
    let id = all(&backends, "ann").await[0].id;
    assert!(backends.storage.delete_memory("ann", id).await.unwrap());
    stored(&backends, &claim, "c4", new_memory("x")).await;
    let anonymous = executing(&backends, "anonymous_1").await;
    stored(&backends, &anonymous, "c1", new_memory("x")).await;
    assert_eq!(remember(&backends, &anonymous, "c2", new_memory("x")).await, Remembered::Full(1));
}

fn from_now(milliseconds: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(Utc::now().timestamp_millis() + milliseconds)
}

async fn a_memory_needs_an_expiry_in_the_future_and_ends_with_it(backends: TestBackends) {
    let claim = executing(&backends, "ann").await;
    let expiring = |at| NewMemory { expires_at: at, ..new_memory("x") };
    assert_eq!(remember(&backends, &claim, "c1", expiring(from_now(-60_000))).await, Remembered::Past);
    let late = stored(&backends, &claim, "c2", expiring(from_now(3_600_000))).await;
    let soon = stored(&backends, &claim, "c3", expiring(from_now(3_600_000))).await;
    assert_eq!(recalled(&backends, "ann", "a").await.len(), 2);
    let past = MemoryChange { expires_at: Some(from_now(-1_000)), ..MemoryChange::default() };
    assert_eq!(backends.storage.change_memory("ann", soon, &past).await.unwrap(), MemoryChanged::Past);
    assert_eq!(backends.storage.delete_expired_memories().await.unwrap(), 0);
    let Some(mut raw) = backends.raw().await else { return };
    let id = soon.simple();
    raw.execute(
        &format!("update kb.memories set expires_at = now() where id = '{id}'"),
        &format!("update memories set expires_at = '2020-01-01T00:00:00.000+00:00' where hex(id) = upper('{id}')"),
    )
    .await;
    assert_eq!(backends.storage.memory("ann", soon).await.unwrap(), None);
    assert_eq!(all(&backends, "ann").await.iter().map(|memory| memory.id).collect::<Vec<_>>(), [late]);
    assert_eq!(recalled(&backends, "ann", "a").await.len(), 1);
    assert_eq!(backends.storage.delete_expired_memories().await.unwrap(), 1);
    assert!(!raw.tables_with(&id.to_string()).await.contains(&"memories".to_owned()));
}

async fn an_edit_is_a_version_and_a_stale_one_is_refused(backends: TestBackends) {
    let claim = executing(&backends, "ann").await;
    let id = stored(&backends, &claim, "c1", new_memory("tea")).await;
    let storage = &backends.storage;
    let edit = |text: &str, version| MemoryChange { text: Some(text.into()), version, ..MemoryChange::default() };
    let changed = storage.change_memory("ann", id, &edit("coffee", Some(1))).await.unwrap();
    let MemoryChanged::Changed(memory) = changed else { panic!("{changed:?}") };
    assert_eq!((memory.text.as_str(), memory.version, memory.writer), ("coffee", 2, MemoryWriter::User));
    let stale = storage.change_memory("ann", id, &edit("milk", Some(1))).await.unwrap();
    assert_eq!(stale, MemoryChanged::Conflict(2));
    assert_eq!(storage.change_memory("bob", id, &edit("milk", None)).await.unwrap(), MemoryChanged::NotFound);
    storage.change_memory("ann", id, &edit("coffee", None)).await.unwrap();
    let later = MemoryChange { expires_at: Some(from_now(60_000)), ..MemoryChange::default() };
    assert!(matches!(storage.change_memory("ann", id, &later).await.unwrap(), MemoryChanged::Changed(_)));
    let versions = storage.memory_versions("ann", vec![id]).await.unwrap();
    let texts: Vec<_> = versions
        .iter()
        .map(|(_, version)| (version.version, version.text.as_str(), version.run_id, version.expires_at.is_some()))
        .collect();
    let expected = [(1, "tea", Some(claim.run_id), false), (2, "coffee", None, false), (3, "coffee", None, true)];
    assert_eq!(texts, expected, "an edit without a change is no version");
    assert!(storage.memory_versions("bob", vec![id]).await.unwrap().is_empty());
}

async fn old_versions_are_dropped(backends: TestBackends) {
    let claim = executing(&backends, "ann").await;
    let id = stored(&backends, &claim, "c1", new_memory("0")).await;
    for text in 1..25 {
        let change = MemoryChange { text: Some(text.to_string()), ..MemoryChange::default() };
        backends.storage.change_memory("ann", id, &change).await.unwrap();
    }
    let versions = backends.storage.memory_versions("ann", vec![id]).await.unwrap();
    let kept: Vec<u32> = versions.iter().map(|(_, version)| version.version).collect();
    assert_eq!(kept, (6..=25).collect::<Vec<_>>());
}

/// The trace and the event of a call of `remember` with this text.
fn remembering(claim: &Claim, text: &str) -> ArchiveChunk {
    let input = json!({"text": text});
    let requested = |call_id: &str, input| RequestedCall {
        call_id: call_id.into(),
        name: "remember".into(),
        input,
        signature: None,
    };
    let message = NewTraceMessage {
        position: 1,
        step: 1,
        role: TraceRole::Assistant,
        content: "Noted.".into(),
        tool_calls: vec![requested("c0", json!({"text": "other"})), requested("c1", input.clone())],
        call_id: None,
        is_error: false,
        usage: None,
        model: None,
        plan_step: None,
    };
    let state = CallState {
        call_id: "c1".into(),
        step: 1,
        position: 0,
        name: "remember".into(),
        by: Some(ExecutedBy::Worker),
        input,
        effect: Effect::Idempotent,
        status: ToolCallStatus::Completed,
        schema: None,
        expires_at: None,
        child_run_id: None,
        output: Some("{}".into()),
        error: None,
        duration_ms: None,
        files: Vec::new(),
    };
    let body = EventBody::WarningRaised(WarningRaised { code: "test".into(), message: text.into() });
    let event = Event::new(EventId::new(claim.attempt, 2), DateTime::UNIX_EPOCH, &body);
    let progress = Progress { messages: vec![message], calls: vec![state], ..Progress::default() };
    ArchiveChunk { last: event.id, body: Bytes::from([event.line(), &b"\n"[..]].concat()), progress }
}

async fn a_deleted_memory_leaves_no_text_after_its_run_and_its_events(backends: TestBackends) {
    let Some(mut raw) = backends.raw().await else { return };
    let claim = executing(&backends, "ann").await;
    let id = stored(&backends, &claim, "c1", new_memory("plum cake")).await;
    let chunk = remembering(&claim, "plum cake");
    let storage = &backends.storage;
    assert!(matches!(storage.flush(&claim, &chunk, LEASE).await.unwrap(), FlushOutcome::Durable));
    let change = MemoryChange { text: Some("pear cake".into()), ..MemoryChange::default() };
    storage.change_memory("ann", id, &change).await.unwrap();
    assert!(raw.tables_with("plum cake").await.contains(&"memory_versions".to_owned()));
    assert!(storage.delete_memory("ann", id).await.unwrap());
    let traces = ["agent_run_messages", "agent_run_tool_calls", "run_events"];
    assert_eq!(raw.tables_with("plum cake").await, traces, "no memory and no version");
    assert_eq!(storage.clear_deleted_memories().await.unwrap(), 0, "the run may still write");
    let answer = Answer::default();
    storage.finish(&claim, None, chunk.last, &answer, &Ending::Completed).await.unwrap();
    assert_eq!(storage.clear_deleted_memories().await.unwrap(), 1);
    assert_eq!(raw.tables_with("plum cake").await, ["run_events"]);
    storage.retire(Duration::ZERO, Duration::from_secs(60)).await.unwrap();
    for text in ["plum cake", "pear cake"] {
        assert_eq!(raw.tables_with(text).await, [""; 0]);
    }
    let trace = storage.trace_page(claim.run_id, PageSize::ALL, None).await.unwrap().unwrap().items;
    assert_eq!(trace[0].tool_calls[0].input, json!({"text": "other"}), "another call keeps its arguments");
    assert_eq!(trace[0].tool_calls[1].input, json!({"text": "[deleted]"}));
    assert_eq!(storage.clear_deleted_memories().await.unwrap(), 0);
}

async fn memories_move_with_their_owner_and_are_erased_with_it(backends: TestBackends) {
    let storage = &backends.storage;
    let anonymous = executing(&backends, "anonymous_1").await;
    stored(&backends, &anonymous, "c1", new_memory("tea")).await;
    let claim = executing(&backends, "ann").await;
    stored(&backends, &claim, "c1", new_memory("x")).await;
    let most = |memories| OtherQuotas { memories: Some(memories), ..OtherQuotas::default() };
    let refused = storage.move_owner("anonymous_1", "ann", &NO_QUOTAS, most(1)).await.unwrap_err();
    assert!(matches!(refused, Error::Quota { exceeded: QuotaExceeded::Memories(1), .. }), "{refused:?}");
    assert_eq!((all(&backends, "anonymous_1").await.len(), all(&backends, "ann").await.len()), (1, 1));
    storage.move_owner("anonymous_1", "ann", &NO_QUOTAS, most(2)).await.unwrap();
    assert_eq!((all(&backends, "anonymous_1").await.len(), all(&backends, "ann").await.len()), (0, 2));
    assert_eq!(
        remember(&backends, &anonymous, "c2", new_memory("milk")).await,
        Remembered::Stored(MemoryReference { id: Uuid::new_v5(&anonymous.run_id, b"c2"), version: 1 })
    );
    assert_eq!(all(&backends, "ann").await.len(), 3, "a run that has moved remembers for its new owner");
    while !storage.erase_some("ann", Erasure::Wanted).await.unwrap().is_done {}
    let Some(mut raw) = backends.raw().await else { return };
    assert!(!raw.tables_with("milk").await.contains(&"memories".to_owned()));
    assert!(!raw.tables_with("milk").await.contains(&"memory_versions".to_owned()));
}

async fn memories_are_listed_newest_first(backends: TestBackends) {
    let claim = executing(&backends, "ann").await;
    let mut ids = Vec::new();
    for call_id in ["c1", "c2", "c3"] {
        ids.insert(0, stored(&backends, &claim, call_id, new_memory("x")).await);
    }
    let storage = &backends.storage;
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = storage.memories("ann", Some("a"), 1.into(), cursor.as_deref()).await.unwrap().unwrap();
        found.extend(page.items.into_iter().map(|memory| memory.id));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    found.sort();
    ids.sort();
    assert_eq!(found, ids, "each once");
    assert!(storage.memories("ann", Some("b"), PageSize::ALL, None).await.unwrap().unwrap().items.is_empty());
    assert!(storage.memories("ann", None, PageSize::ALL, Some("x")).await.unwrap().is_none());
    storage.delete_all_memories("bob").await.unwrap();
    assert_eq!(all(&backends, "ann").await.len(), 3);
    storage.delete_all_memories("ann").await.unwrap();
    assert!(all(&backends, "ann").await.is_empty());
}

async fn a_fenced_attempt_remembers_nothing(backends: TestBackends) {
    let claim = executing(&backends, "ann").await;
    backends.expire(claim.run_id).await;
    let taken = backends.take_over().await.remove(0);
    assert_eq!(remember(&backends, &claim, "c1", new_memory("x")).await, Remembered::Fenced);
    stored(&backends, &taken, "c1", new_memory("x")).await;
}
