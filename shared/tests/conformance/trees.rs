//! Trees of runs: the limits that all runs below a top run share, and the cycles of agents that delegate.

use std::collections::BTreeMap;

use holdfast_shared::{
    agent::AgentDefinition,
    ending::Ending,
    event::Event,
    plan::EXECUTE_CALL,
    run::RunError,
    storage::{
        AgentChange, Answer, ArchiveChunk, Claim, FlushOutcome, NewChild, Progress, Release, ReleaseOutcome, RunFilter,
        Tree,
    },
    subagent::{Subagent, SubagentRole},
    usage::Usage,
};
use uuid::Uuid;

use crate::{
    backends::{LEASE, TestBackends},
    on_each_backend,
    subagents::{Family, claims_of, family, finish, leave, starting, waiting_family},
    waiting::chunk,
};

on_each_backend!(
    siblings_that_start_children_at_once_keep_to_the_limit_of_their_tree,
    a_child_that_a_flush_refuses_is_logged_when_its_parent_leaves,
    a_step_that_a_flush_refuses_lets_its_plan_continue,
    a_run_that_ends_starts_no_children,
    a_tree_knows_the_runs_and_the_tokens_of_all,
    a_chain_knows_how_often_an_agent_is_in_it,
    a_cycle_of_agents_is_refused_where_it_is_written,
);

/// Returns a chunk with which the run starts children, in a tree of at most so many runs.
fn starts(parent: &Claim, agent_id: Uuid, children: usize, most_runs: usize) -> (Vec<NewChild>, ArchiveChunk) {
    let child = |n: usize| {
        NewChild::new(format!("call_{n}"), SubagentRole::Subagent, agent_id, "task".to_owned()).within(most_runs)
    };
    let children: Vec<NewChild> = (0..children).map(child).collect();
    let tail = starting(parent, &children);
    (children, tail)
}

fn released(outcome: ReleaseOutcome) -> (Vec<Event>, bool) {
    let ReleaseOutcome::Released { events, queued, .. } = outcome else { panic!("the run is fenced") };
    (events, queued)
}

fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(Event::kind_name).collect()
}

/// Returns how many of these runs exist.
async fn existing(backends: &TestBackends, children: &[NewChild]) -> usize {
    let mut existing = 0;
    for child in children {
        existing += usize::from(backends.storage.run("ann", child.child_run_id).await.unwrap().is_some());
    }
    existing
}

/// Returns the codes of the errors of a run's calls.
async fn errors(backends: &TestBackends, run_id: Uuid) -> Vec<Option<String>> {
    let calls = backends.storage.tool_calls(run_id).await.unwrap();
    calls.into_iter().map(|call| call.error.map(|error| error.code)).collect()
}

async fn siblings_that_start_children_at_once_keep_to_the_limit_of_their_tree(backends: TestBackends) {
    for _ in 0..5 {
        let (Family { parent, children, .. }, siblings) = waiting_family(&backends, 2).await;
        // The top run, its two children, and one more.
        let (first, of_first) = starts(&siblings[0], children[0].agent_id, 2, 4);
        let (second, of_second) = starts(&siblings[1], children[0].agent_id, 2, 4);
        let (left, right) = tokio::join!(
            leave(&backends, &siblings[0], Some(&of_first), of_first.last),
            leave(&backends, &siblings[1], Some(&of_second), of_second.last),
        );
        let started = [existing(&backends, &first).await, existing(&backends, &second).await];
        assert!(started == [1, 0] || started == [0, 1], "{started:?}");
        for (outcome, started) in [(left, started[0]), (right, started[1])] {
            let (events, queued) = released(outcome);
            let refused = ["subagent.completed", "tool_call.completed"];
            let expected: Vec<_> = refused.into_iter().cycle().take(2 * (2 - started)).collect();
            assert_eq!((kinds(&events), queued), (expected, started == 0));
        }
        assert_eq!(backends.storage.tree(parent.run_id).await.unwrap().runs, 4);
        backends.storage.request_cancel("ann", parent.run_id).await.unwrap();
        backends.storage.cancel_children(parent.run_id).await.unwrap();
    }
}

async fn a_child_that_a_flush_refuses_is_logged_when_its_parent_leaves(backends: TestBackends) {
    let Family { parent, children, .. } = family(&backends, 1).await;
    let (children, tail) = starts(&parent, children[0].agent_id, 2, 2);
    for _ in 0..2 {
        assert_eq!(backends.storage.flush(&parent, &tail, LEASE).await.unwrap(), FlushOutcome::Durable);
    }
    assert_eq!(existing(&backends, &children).await, 1);
    let claims = claims_of(&backends, &children[..1]).await;
    let (events, queued) = released(leave(&backends, &parent, None, tail.last).await);
    assert_eq!((kinds(&events), queued), (vec!["subagent.completed", "tool_call.completed"], false));
    assert_eq!(events[1].line().windows(13).filter(|part| part == b"limit_reached").count(), 1);
    assert!(finish(&backends, &claims[0], "a").await.answered.remove(0).queued, "it waits for the other one alone");
    assert_eq!(errors(&backends, parent.run_id).await, [None, Some("limit_reached".to_owned())]);
    // A worker that hands its run over leaves the outcome to the next one.
    let Family { parent, children, .. } = family(&backends, 1).await;
    let (_, tail) = starts(&parent, children[0].agent_id, 1, 1);
    let handed_over = backends.storage.release(&parent, Some(&tail), tail.last, Release::Queued).await.unwrap();
    assert!(released(handed_over).0.is_empty());
    let mut claims = backends.claim(10).await;
    claims.retain(|claim| claim.run_id == parent.run_id);
    let (events, queued) = released(leave(&backends, &claims[0], None, claims[0].started.id).await);
    assert_eq!((kinds(&events), queued), (vec!["subagent.completed", "tool_call.completed"], true));
}

async fn a_step_that_a_flush_refuses_lets_its_plan_continue(backends: TestBackends) {
    let Family { parent, children, .. } = family(&backends, 1).await;
    let (_, mut tail) = starts(&parent, children[0].agent_id, 1, 1);
    tail.progress.children[0].role = SubagentRole::Executor.as_str();
    tail.progress.calls[0].name = EXECUTE_CALL.into();
    assert_eq!(backends.storage.flush(&parent, &tail, LEASE).await.unwrap(), FlushOutcome::Durable);
    let (events, queued) = released(leave(&backends, &parent, None, tail.last).await);
    assert_eq!((kinds(&events), queued), (vec!["subagent.completed"], true));
}

async fn a_run_that_ends_starts_no_children(backends: TestBackends) {
    let Family { parent, children, tail } = family(&backends, 2).await;
    let answer = Answer { text: "so far".into(), ..Answer::default() };
    let failed = Ending::Failed(RunError::new("timeout", "too slow"));
    for ending in [Ending::Cancelled, failed] {
        backends.storage.finish(&parent, Some(&tail), tail.last, &answer, &ending).await.unwrap();
        assert_eq!(existing(&backends, &children).await, 0);
    }
    assert_eq!(backends.storage.runs("ann", RunFilter::default(), 10, None).await.unwrap().unwrap().items.len(), 1);
    assert!(backends.claim(10).await.is_empty());
}

async fn a_tree_knows_the_runs_and_the_tokens_of_all(backends: TestBackends) {
    let (Family { parent, .. }, claims) = waiting_family(&backends, 2).await;
    let of = async |run_id: Uuid| backends.storage.tree(run_id).await.unwrap();
    assert_eq!(of(parent.run_id).await, Tree { runs: 3, tokens: 0 });
    // A run at work counts as much as one that has ended.
    let usage = Some(Usage { input_tokens: 70, output_tokens: 30, ..Usage::default() });
    let step = chunk(&claims[0], 2, Progress { usage, ..Progress::default() });
    backends.storage.flush(&claims[0], &step, LEASE).await.unwrap();
    finish(&backends, &claims[1], "b").await;
    assert_eq!(of(parent.run_id).await, Tree { runs: 3, tokens: 108 });
    assert_eq!(of(claims[0].run_id).await, Tree { runs: 3, tokens: 8 }, "without its own");
    assert_eq!(of(claims[1].run_id).await, Tree { runs: 3, tokens: 100 });
}

async fn a_chain_knows_how_often_an_agent_is_in_it(backends: TestBackends) {
    let (Family { children, .. }, claims) = waiting_family(&backends, 1).await;
    let agent_id = children[0].agent_id;
    let times = async |run_id: Uuid| backends.storage.times_in_chain(run_id, agent_id).await.unwrap();
    assert_eq!(times(claims[0].run_id).await, 1);
    let (grandchildren, tail) = starts(&claims[0], agent_id, 1, 9);
    leave(&backends, &claims[0], Some(&tail), tail.last).await;
    assert_eq!(times(grandchildren[0].child_run_id).await, 2);
    assert_eq!(backends.storage.times_in_chain(claims[0].run_id, Uuid::now_v7()).await.unwrap(), 0);
}

fn agent(name: &str, subagents: &[&str], recursive: Option<u32>) -> AgentDefinition {
    let subagent = |agent: &&str| Subagent { agent: (*agent).to_owned(), description: None };
    AgentDefinition {
        name: name.to_owned(),
        subagents: subagents.iter().map(subagent).collect(),
        recursive,
        ..AgentDefinition::default()
    }
}

async fn a_cycle_of_agents_is_refused_where_it_is_written(backends: TestBackends) {
    let storage = &backends.storage;
    let create = async |name: &str, subagents: &[&str], recursive: Option<u32>| {
        let created = storage.create_agent(&agent(name, subagents, recursive)).await.unwrap();
        created.map(|agent| agent.id).map_err(|cycle| cycle.to_string())
    };
    let cycle = |created: Result<Uuid, String>| created.unwrap_err().split(" is a cycle").next().unwrap().to_owned();
    assert_eq!(cycle(create("one", &["one"], None).await), "one → one");
    let one = create("one", &["two"], None).await.unwrap();
    create("two", &["none", "three"], None).await.unwrap();
    // The name finds the new agent, also where it was written before.
    assert_eq!(cycle(create("three", &["one"], None).await), "three → one → two → three");
    assert_eq!(cycle(create("three", &[&one.to_string()], None).await), "three → one → two → three");
    assert!(storage.agents_named(&["three".to_owned()]).await.unwrap().is_empty(), "nothing is stored");
    let three = create("three", &["one"], Some(2)).await.unwrap();
    let found = storage.agents_named(&["three".to_owned()]).await.unwrap();
    assert_eq!((found["three"].id, found["three"].recursive), (three, Some(2)));
    assert_eq!(storage.agent(three).await.unwrap().unwrap().definition.recursive, Some(2));
    // Without the bound of one of them, the cycle is none that ends.
    let change =
        async |id: Uuid, to: AgentDefinition| storage.change_agent(id, |_| Ok::<_, ()>(to)).await.unwrap().unwrap();
    let AgentChange::Cyclic(found) = change(three, agent("three", &["one"], None)).await else {
        panic!("it is stored")
    };
    assert!(found.to_string().starts_with("three → one → two → three is"), "{found}");
    assert_eq!(storage.agent(three).await.unwrap().unwrap().version, 1);
    assert!(matches!(change(one, agent("one", &["two"], Some(3))).await, AgentChange::Changed(_)));
    assert!(matches!(change(three, agent("three", &["one"], None)).await, AgentChange::Changed(_)));
    // The agents of a file delegate to each other, and to those of the API.
    let file = |agents: Vec<AgentDefinition>| {
        agents.into_iter().map(|agent| (Uuid::now_v7(), agent)).collect::<BTreeMap<_, _>>()
    };
    let cyclic = file(vec![agent("five", &["four"], None), agent("four", &["five", "two"], None)]);
    assert!(storage.load_agents(&cyclic).await.unwrap().is_err());
    assert!(storage.agents_named(&["five".to_owned()]).await.unwrap().is_empty(), "nothing of the file is stored");
    let bounded = file(vec![agent("five", &["four"], Some(2)), agent("four", &["five", "two"], None)]);
    assert_eq!(storage.load_agents(&bounded).await.unwrap().unwrap(), (2, 0));
}
