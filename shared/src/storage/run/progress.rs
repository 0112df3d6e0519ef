//! The rows of a run's progress, written in one transaction with the events that report it.

use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    children::{NewChild, spawns},
    due_summary::{NewDueSummary, notes},
    elements::{CallState, NewApproval, NewCheckpoint, NewTraceMessage, ToldPassage},
    planning::{NewRole, StepState, TakenEdit, plan_row, planning_rows},
    steering::{SteeringMessage, joins},
};
use crate::storage::sql::{Statement, args, statements};
use crate::{event_id::EventId, finish_reason::FinishReason, plan::Plan, usage::Usage};

/// Rows that belong to a chunk of events. Progress merges with later progress, in order.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// New messages of the trace.
    pub messages: Vec<NewTraceMessage>,
    /// Calls with their current state. It replaces an earlier state of the call.
    pub calls: Vec<CallState>,
    /// New questions.
    pub approvals: Vec<NewApproval>,
    /// Passages that the model has before it now.
    pub passages: Vec<ToldPassage>,
    /// Children to start, with the intents of their calls.
    pub children: Vec<NewChild>,
    /// Messages that join the run.
    pub steering: Vec<SteeringMessage>,
    /// Plans with their current state, without their steps.
    pub plans: Vec<Plan>,
    /// Steps of plans with their current state. It replaces an earlier state of the step.
    pub plan_steps: Vec<StepState>,
    /// Changes of plans that the holder has made or refused.
    pub taken_edits: Vec<TakenEdit>,
    /// New roles of the run and of its children.
    pub roles: Vec<NewRole>,
    /// The summary that is to be made after the end of the run.
    pub due_summaries: Vec<NewDueSummary>,
    /// New checkpoints.
    pub checkpoints: Vec<NewCheckpoint>,
    /// The event that a later attempt may resume from.
    pub resume_at: Option<EventId>,
    /// True if a step has ended, which forgives earlier deaths of workers.
    pub step_completed: bool,
    /// Usage of all steps so far.
    pub usage: Option<Usage>,
    /// The model's reason for ending the newest step.
    pub finish_reason: Option<FinishReason>,
    /// The model that executes the run, as `provider/name`. It waits for the next flush.
    pub model: Option<String>,
}

impl Progress {
    /// Returns whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
            && self.calls.is_empty()
            && self.approvals.is_empty()
            && self.passages.is_empty()
            && self.due_summaries.is_empty()
            && self.checkpoints.is_empty()
            && self.resume_at.is_none()
            && !self.step_completed
            && self.usage.is_none()
            && self.finish_reason.is_none()
    }

    /// Returns whether there is nothing to write but the model's name.
    pub fn is_plain(&self) -> bool {
        let Self {
            messages,
            calls,
            approvals,
            passages,
            children,
            steering,
            plans,
            plan_steps,
            taken_edits,
            roles,
            due_summaries,
            checkpoints,
            resume_at,
            step_completed,
            usage,
            finish_reason,
            model: _,
        } = self;
        let has_rows = !(messages.is_empty()
            && calls.is_empty()
            && approvals.is_empty()
            && passages.is_empty()
            && children.is_empty()
            && steering.is_empty()
            && plans.is_empty()
            && plan_steps.is_empty()
            && taken_edits.is_empty()
            && roles.is_empty()
            && due_summaries.is_empty()
            && checkpoints.is_empty());
        let changes_run = *step_completed || resume_at.is_some() || usage.is_some() || finish_reason.is_some();
        !has_rows && !changes_run
    }

    /// Returns the usage as the database stores it.
    pub fn usage_json(&self) -> Option<Value> {
        self.usage.map(|usage| json!(usage))
    }

    /// Returns the newest step's finish reason as the database stores it.
    pub fn finish_text(&self) -> Option<String> {
        self.finish_reason.map(|reason| reason.as_str().to_owned())
    }

    /// Merges later progress into this one.
    pub fn absorb(&mut self, later: Self) {
        self.messages.extend(later.messages);
        for call in later.calls {
            self.calls.retain(|earlier| earlier.call_id != call.call_id);
            self.calls.push(call);
        }
        self.approvals.extend(later.approvals);
        self.passages.extend(later.passages);
        self.children.extend(later.children);
        self.steering.extend(later.steering);
        for plan in later.plans {
            self.plans.retain(|earlier| earlier.id != plan.id);
            self.plans.push(plan);
        }
        for state in later.plan_steps {
            self.plan_steps.retain(|earlier| !earlier.is_of_step(&state));
            self.plan_steps.push(state);
        }
        self.taken_edits.extend(later.taken_edits);
        self.roles.extend(later.roles);
        self.due_summaries.extend(later.due_summaries);
        self.checkpoints.extend(later.checkpoints);
        self.resume_at = later.resume_at.or(self.resume_at);
        self.step_completed |= later.step_completed;
        self.usage = later.usage.or(self.usage);
        self.finish_reason = later.finish_reason.or(self.finish_reason);
        self.model = later.model.or(self.model.take());
    }
}

statements! {
    /// Stores new messages of traces.
    INSERT_MESSAGES = "
        insert into agent_run_messages (
            run_id, position, step, role, content, tool_calls, call_id, is_error, usage, model,
            plan_step, created_at
        )
        select {uuid:value->>'run_id'}, cast(value->>'position' as bigint),
            cast(value->>'step' as bigint), value->>'role', value->>'content', value->'tool_calls',
            value->>'call_id', cast(value->>'is_error' as boolean), value->'usage',
            value->>'model', cast(value->>'plan_step' as bigint), {now}
        from {each:$1}
        where {fenced:cast(value->>'run_id' as uuid)}
    ",
    /// Stores calls with their current state.
    UPSERT_CALLS = "
        insert into agent_run_tool_calls (
            run_id, call_id, step, position, name, executed_by, input, effect, status, schema,
            expires_at, output, error, files, duration_ms, child_run_id, created_at, completed_at
        )
        select {uuid:value->>'run_id'}, value->>'call_id', cast(value->>'step' as bigint),
            cast(value->>'position' as bigint), value->>'name', value->>'by', value->'input',
            value->>'effect', value->>'status', value->'schema', {time:value->>'expires_at'},
            value->>'output', value->'error', value->'files',
            cast(value->>'duration_ms' as bigint),
            {uuid:value->>'child_run_id'}, {now},
            case when value->>'status' = 'completed' then {now} end
        from {each:$1}
        where {fenced:cast(value->>'run_id' as uuid)}
        on conflict (run_id, call_id) do update
        set input = excluded.input,
            effect = excluded.effect,
            status = excluded.status,
            schema = excluded.schema,
            expires_at = excluded.expires_at,
            output = excluded.output,
            error = excluded.error,
            files = excluded.files,
            duration_ms = excluded.duration_ms,
            child_run_id = excluded.child_run_id,
            completed_at = excluded.completed_at
    ",
    /// Notes that runs name the files that their tools have returned.
    USE_FILES = "
        insert into run_files (file_id, run_id)
        select {uuid:value->>'file_id'}, {uuid:value->>'run_id'}
        from {each:$1}
        where {fenced:cast(value->>'run_id' as uuid)}
        on conflict (file_id, run_id) do nothing
    ",
    /// Stores new questions.
    INSERT_APPROVALS = "
        insert into agent_run_approvals (
            id, run_id, top_run_id, call_id, kind, name, input, schema, status,
            requested_at, expires_at
        )
        select {uuid:value->>'id'}, {uuid:value->>'run_id'},
            (select top_run_id from agent_runs where id = {uuid:value->>'run_id'}),
            value->>'call_id', value->>'kind', value->>'name', value->'input', value->'schema',
            'pending', {now},
            {time:value->>'expires_at'}
        from {each:$1}
        where {fenced:cast(value->>'run_id' as uuid)}
    ",
    /// Stores the passages that models have before them.
    INSERT_PASSAGES = "
        insert into run_passages (run_id, number, document_id, passage, score, call_id)
        select {uuid:value->>'run_id'}, cast(value->>'number' as bigint),
            {uuid:value->>'document_id'}, cast(value->>'passage' as bigint),
            cast(value->>'score' as double precision), value->>'call_id'
        from {each:$1}
        where {fenced:cast(value->>'run_id' as uuid)}
        on conflict (run_id, number) do update
        set document_id = excluded.document_id,
            passage = excluded.passage,
            score = excluded.score,
            call_id = excluded.call_id
    ",
    /// Stores new checkpoints.
    INSERT_CHECKPOINTS = "
        insert into agent_run_checkpoints (
            id, conversation_id, run_id, event_id, node, step, messages, metadata, created_at
        )
        select {uuid:value->>'id'},
            (select conversation_id from agent_runs where id = {uuid:value->>'run_id'}),
            {uuid:value->>'run_id'}, cast(value->>'event_id' as bigint), value->>'node',
            cast(value->>'step' as bigint), cast(value->>'messages' as bigint), value->'metadata',
            {now}
        from {each:$1}
        where {fenced:cast(value->>'run_id' as uuid)}
    ",
}

/// Returns the writes for the rows of these runs. A checkpoint is spare, because a run resumes from its trace; a refused
/// one costs a point to fork from. The caller's statement updates the run's own row. A second update of it in one
/// transaction would make PostgreSQL check foreign keys, and lock the conversation after the run.
pub fn rows_of(progress: &[(Uuid, &Progress)]) -> Vec<Statement> {
    let mut rows = Vec::new();
    let mut push = |sql, elements: Vec<Value>| {
        if !elements.is_empty() {
            rows.push(Statement::new(sql, args![Value::from(elements)]));
        }
    };
    push(INSERT_MESSAGES, elements(progress, |progress| &progress.messages));
    push(UPSERT_CALLS, elements(progress, |progress| &progress.calls));
    push(USE_FILES, used_files(progress));
    push(INSERT_APPROVALS, elements(progress, |progress| &progress.approvals));
    push(INSERT_PASSAGES, elements(progress, |progress| &progress.passages));
    rows.extend(spawns(elements(progress, |progress| &progress.children)));
    rows.extend(joins(elements(progress, |progress| &progress.steering)));
    let plans = elements_as(progress, |progress| &progress.plans, plan_row);
    let steps = elements(progress, |progress| &progress.plan_steps);
    let roles = elements(progress, |progress| &progress.roles);
    rows.extend(planning_rows(plans, steps, roles, elements(progress, |progress| &progress.taken_edits)));
    rows.extend(notes(elements(progress, |progress| &progress.due_summaries)));
    let checkpoints = elements(progress, |progress| &progress.checkpoints);
    if !checkpoints.is_empty() {
        rows.push(Statement::new(INSERT_CHECKPOINTS, args![Value::from(checkpoints)]).spare());
    }
    rows
}

/// Returns the files that the calls of these runs have returned.
fn used_files(progress: &[(Uuid, &Progress)]) -> Vec<Value> {
    let of_run = |(run_id, progress): &(Uuid, &Progress)| {
        let run_id = run_id.simple().to_string();
        let files = progress.calls.iter().flat_map(|call| &call.files);
        files.map(|file| json!({"file_id": file.file_id.simple().to_string(), "run_id": run_id})).collect::<Vec<_>>()
    };
    progress.iter().flat_map(of_run).collect()
}

/// Returns the elements as JSON, each with the id of its run.
fn elements<T: Serialize>(progress: &[(Uuid, &Progress)], of: impl Fn(&Progress) -> &Vec<T>) -> Vec<Value> {
    elements_as(progress, of, |element| json!(element))
}

/// Returns the elements as their JSON, each with the id of its run.
fn elements_as<T>(
    progress: &[(Uuid, &Progress)],
    of: impl Fn(&Progress) -> &Vec<T>,
    json: impl Fn(&T) -> Value,
) -> Vec<Value> {
    let with_run = |run_id: &Uuid, element: &T| {
        let mut json = json(element);
        json["run_id"] = run_id.simple().to_string().into();
        json
    };
    let mut elements = Vec::new();
    for (run_id, progress) in progress {
        elements.extend(of(progress).iter().map(|element| with_run(run_id, element)));
    }
    elements
}
