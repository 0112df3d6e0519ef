//! The protocol's own clients, for Node and for Python, unmodified.

use serde_json::{Value, json};

use super::{TALK, text};
use crate::support::{ClientProgram, Deployment};

/// Runs the steps of a client's program, and returns its reports by step with the updates before each.
async fn steps(name: &str, deployment: &mut Deployment, legacy: bool, steps: Value) -> Vec<(Vec<Value>, Value)> {
    let parameters = json!({"path": "/a2a", "legacy": legacy, "steps": steps});
    let program = ClientProgram::start(name, deployment.client().base(), parameters).await;
    let (reports, _) = program.rest().await;
    let (mut steps, mut updates) = (Vec::new(), Vec::new());
    for report in reports {
        if report["step"].is_u64() {
            assert_eq!(report["error"], Value::Null, "{report} after {updates:?}");
            steps.push((std::mem::take(&mut updates), report));
        } else {
            updates.push(report);
        }
    }
    steps
}

/// The numbers of states in the protocol's definition.
const COMPLETED: u64 = 3;
const CANCELED: u64 = 5;
const INPUT_REQUIRED: u64 = 6;

/// Checks a client: it sends, streams, approves, subscribes after a cut, reads, lists and cancels.
async fn has_the_whole_task(name: &str, legacy: bool) {
    let mut deployment = Deployment::embedded();
    let mut script = vec![
        json!({"send": "[tokens=3] hello"}),
        json!({"stream": TALK}),
        json!({"decide": {"decision": "approve"}}),
        json!({"get": true}),
        json!({"stream": "[tokens=150] [delay=100] hello", "cut": 5}),
        json!({"subscribe": true}),
        json!({"stream": "[tokens=900] [delay=50] hello", "cut": 2}),
        json!({"cancel": true}),
    ];
    // 0.3 has no list.
    if !legacy {
        script.push(json!({"list": true}));
    }
    let steps = steps(name, &mut deployment, legacy, script.into()).await;
    let states: Vec<u64> = steps.iter().map(|(_, step)| step["state"].as_u64().unwrap()).collect();
    let expected = [COMPLETED, INPUT_REQUIRED, COMPLETED, COMPLETED, 2, COMPLETED, 2, CANCELED];
    assert_eq!(states[..8], expected);
    let client = deployment.client();
    for at in [0, 2, 3, 5] {
        let step = &steps[at].1;
        let run = client.run(&text(&step["id"])).await;
        assert_eq!(run["output_message"]["content"], step["text"], "step {at}");
    }
    assert_eq!(steps[1].1["asks"][0]["type"], "approval");
    assert_eq!(steps[5].0[0]["kind"], "task", "a subscription begins with the task");
    let has_event = |step: usize, event: &str| steps[step].0.iter().any(|update| update["event"] == event);
    assert!(has_event(1, "tool_call.completed") && has_event(2, "reasoning.delta"), "{steps:?}");
    if !legacy {
        let (listed, step) = &steps[8];
        assert_eq!(listed[0]["listed"], json!([step["id"]]), "the context has the last task");
    }
}

#[tokio::test]
async fn the_client_for_node_has_the_whole_task() {
    has_the_whole_task("a2a-node", false).await;
}

#[tokio::test]
async fn the_client_for_node_has_the_whole_task_by_the_older_version() {
    has_the_whole_task("a2a-node", true).await;
}

#[tokio::test]
async fn the_client_for_python_has_the_whole_task() {
    has_the_whole_task("a2a-python", false).await;
}

#[tokio::test]
async fn the_client_for_python_has_the_whole_task_by_the_older_version() {
    has_the_whole_task("a2a-python", true).await;
}

#[tokio::test]
async fn the_client_for_python_waits_for_a_slow_answer() {
    let mut deployment = Deployment::embedded();
    // Its time-out is 5 s.
    let script = json!([{"send": "[tokens=2] [delay=7000] hello"}, {"stream": "[tokens=2] [delay=7000] hello"}]);
    for (_, step) in steps("a2a-python", &mut deployment, false, script).await {
        assert_eq!((&step["state"], &step["text"]), (&json!(COMPLETED), &json!("This is ")));
    }
}
