//! Changes of plans that are executed: the scenarios of the model `plan_edits`.

use holdfast_shared::{
    event_id::EventId,
    plan::{ExecutionMode, Plan, PlanEdit, PlanInput, PlanMetadata, PlanStatus, StepStatus, check_shape, read_steps},
    run::RunStatus,
    storage::{ArchiveChunk, EditOutcome, FlushOutcome, Progress, Release, ReleaseOutcome, StepState, TakenEdit},
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    backends::{LEASE, TestBackends},
    on_each_backend,
    subagents::{Family, claims_of, family, leave},
    waiting::chunk,
};

on_each_backend!(
    a_leave_sees_a_change_that_was_accepted_before_it,
    a_change_of_a_waiting_run_comes_after_those_that_were_accepted,
    an_executor_without_a_step_is_cancelled,
    the_end_of_a_plan_drops_its_changes,
);

/// Returns a plan of the parent's run: its child takes the first step, and the second one needs it.
fn plan(family: &Family) -> Plan {
    let steps = json!({"steps": [
        {"step_number": 1, "description": "first", "executor_required": true},
        {"step_number": 2, "description": "second", "executor_required": true, "depends_on": [1]},
    ]});
    let mut plan = Plan {
        id: Uuid::now_v7(),
        run_id: family.parent.run_id,
        session_id: family.parent.conversation_id,
        call_id: "call_plan".into(),
        user_message: "hi".into(),
        strategy: "planner_stream".into(),
        execution_mode: ExecutionMode::AutoExecute,
        status: PlanStatus::Executing,
        steps: read_steps(&steps).and_then(check_shape).unwrap(),
        metadata: PlanMetadata { ..PlanInput::of(&json!({"goal": "g"})).unwrap().metadata() },
    };
    plan.steps[0].status = StepStatus::Executing;
    plan.steps[0].child_run_id = Some(family.children[0].child_run_id);
    plan
}

/// Returns progress with the plan and all of its steps.
fn progress_of(plan: &Plan) -> Progress {
    let plan_steps = plan.steps.iter().map(|step| StepState { plan_id: plan.id, step: step.clone() }).collect();
    Progress { plans: vec![plan.clone()], plan_steps, ..Progress::default() }
}

/// Starts the executor of the first step; its parent keeps the run.
async fn executed_plan(backends: &TestBackends) -> (Family, Plan) {
    let mut family = family(backends, 1).await;
    let plan = plan(&family);
    let mut progress = family.tail.progress.clone();
    progress.children[0].role = "executor";
    progress.absorb(progress_of(&plan));
    family.tail = ArchiveChunk { progress, ..family.tail };
    assert_eq!(backends.storage.flush(&family.parent, &family.tail, LEASE).await.unwrap(), FlushOutcome::Durable);
    (family, plan)
}

fn edit(steps: Value) -> PlanEdit {
    serde_json::from_value(json!({ "steps": steps })).unwrap()
}

async fn accepted(backends: &TestBackends, plan: &Plan, steps: Value) -> Plan {
    match backends.storage.edit_plan(plan.id, edit(steps)).await.unwrap() {
        EditOutcome::Accepted(plan) => *plan,
        other => panic!("it was not accepted: {other:?}"),
    }
}

async fn a_leave_sees_a_change_that_was_accepted_before_it(backends: TestBackends) {
    let (family, plan) = executed_plan(&backends).await;
    accepted(&backends, &plan, json!([{"step_number": 2, "description": "better"}])).await;
    let released = leave(&backends, &family.parent, None, family.tail.last).await;
    assert!(matches!(released, ReleaseOutcome::Released { queued: true, .. }), "{released:?}");
    // The next holder makes the change, and leaves.
    let next = backends.claim(10).await.into_iter().find(|claim| claim.run_id == family.parent.run_id).unwrap();
    let pending = backends.storage.plan_edits(plan.id).await.unwrap();
    assert_eq!(pending.len(), 1);
    let mut plan = plan;
    plan.edit(pending[0].edit.clone().unwrap()).unwrap();
    let taken_edits = vec![TakenEdit { plan_id: plan.id, number: pending[0].number }];
    let progress = Progress { taken_edits, resume_at: Some(EventId::new(2, 2)), ..progress_of(&plan) };
    let tail = chunk(&next, 2, progress);
    let released = leave(&backends, &next, Some(&tail), tail.last).await;
    assert!(matches!(released, ReleaseOutcome::Released { queued: false, .. }), "{released:?}");
    assert!(backends.storage.plan_edits(plan.id).await.unwrap().is_empty());
    assert_eq!(backends.storage.plan(plan.id).await.unwrap().unwrap(), plan);
}

async fn a_change_of_a_waiting_run_comes_after_those_that_were_accepted(backends: TestBackends) {
    let (family, plan) = executed_plan(&backends).await;
    // A NUL cannot be stored.
    let first = accepted(&backends, &plan, json!([{"step_number": 2, "description": "a\0"}])).await;
    assert_eq!(first.steps[1].description, "a\u{fffd}");
    let second = accepted(&backends, &plan, json!([{"step_number": 1, "executor_required": false}])).await;
    assert_eq!((second.steps[1].description.as_str(), second.metadata.edits), ("a\u{fffd}", 2));
    let numbers: Vec<i64> =
        backends.storage.plan_edits(plan.id).await.unwrap().iter().map(|edit| edit.number).collect();
    assert_eq!(numbers, [1, 2]);
    let child = claims_of(&backends, &family.children).await.remove(0);
    let released = backends.storage.release(&family.parent, None, family.tail.last, Release::Waiting).await.unwrap();
    assert!(matches!(released, ReleaseOutcome::Released { queued: false, .. }), "{released:?}");
    match backends.storage.edit_plan(plan.id, edit(json!([{"step_number": 2, "depends_on": []}]))).await.unwrap() {
        EditOutcome::Edited { plan: edited, .. } => {
            assert_eq!(edited.metadata.edits, 3);
            assert_eq!(backends.storage.plan(plan.id).await.unwrap().unwrap(), *edited);
        }
        other => panic!("it was not made: {other:?}"),
    }
    assert!(backends.storage.plan_edits(plan.id).await.unwrap().is_empty());
    assert_eq!(backends.storage.parents_of_replaced().await.unwrap(), [family.parent.run_id]);
    let (ended, requested) = backends.storage.cancel_replaced(family.parent.run_id).await.unwrap();
    assert_eq!((ended.len(), requested), (0, vec![child.run_id]));
}

async fn an_executor_without_a_step_is_cancelled(backends: TestBackends) {
    let (family, plan) = executed_plan(&backends).await;
    assert!(backends.storage.parents_of_replaced().await.unwrap().is_empty());
    let released = leave(&backends, &family.parent, None, family.tail.last).await;
    assert!(matches!(released, ReleaseOutcome::Released { queued: false, .. }), "{released:?}");
    let edited = backends.storage.edit_plan(plan.id, edit(json!([{"step_number": 1, "description": "x"}]))).await;
    assert!(matches!(edited.unwrap(), EditOutcome::Edited { .. }));
    assert_eq!(backends.storage.parents_of_replaced().await.unwrap(), [family.parent.run_id]);
    let (ended, requested) = backends.storage.cancel_replaced(family.parent.run_id).await.unwrap();
    assert_eq!((ended.len(), requested.len()), (1, 0), "no worker has claimed it");
    assert_eq!((ended[0].run_id, ended[0].status), (family.children[0].child_run_id, RunStatus::Cancelled));
    assert!(backends.storage.parents_of_replaced().await.unwrap().is_empty());
}

async fn the_end_of_a_plan_drops_its_changes(backends: TestBackends) {
    let (family, mut plan) = executed_plan(&backends).await;
    accepted(&backends, &plan, json!([{"step_number": 2, "description": "better"}])).await;
    plan.status = PlanStatus::Failed;
    let tail = chunk(&family.parent, 3, Progress { resume_at: Some(EventId::new(1, 3)), ..progress_of(&plan) });
    assert_eq!(backends.storage.flush(&family.parent, &tail, LEASE).await.unwrap(), FlushOutcome::Durable);
    assert!(backends.storage.plan_edits(plan.id).await.unwrap().is_empty());
    let refused = backends.storage.edit_plan(plan.id, edit(json!([{"step_number": 2}]))).await.unwrap();
    assert!(matches!(refused, EditOutcome::NotExecuting));
}
