//! An attempt's state of its run: the trace so far, the calls of the current step, and their totals.

use std::{collections::BTreeMap, sync::Arc};

use holdfast_knowledge::FoundPassage;
use holdfast_shared::{
    file::ToolFile,
    finish_reason::FinishReason,
    message::{Content, Message},
    overrides::{GivenHistory, GivenMessage, JsonFormat, RunOverrides, Sampling},
    plan::{self, Plan, PlanStatus},
    storage::{CallState, EarlierMessage, EarlierResult, NewTraceMessage, Start, Summary},
    time_zone::RunDate,
    tool::{ToolCall, ToolCallStatus},
    tool_choice::ToolChoice,
    trace::{RequestedCall, TraceMessage, TraceRole},
    usage::Usage,
};
use serde_json::Value;
use uuid::Uuid;

use super::{
    NextNode,
    attachments::LoadedFiles,
    knowledge::{Told, is_reference},
    linked_files,
    recovery::ShortenedResults,
    results::ReferredTexts,
    step_call::{StepCall, state_of},
};
use crate::tools::{Toolbox, names_file};

/// State of the run so far. Callers that change it also record the change for the database.
pub struct Memory {
    /// The newest summary of older messages. It may cover some of `earlier` too.
    pub summary: Option<Summary>,
    /// Messages before the run's own input that the model reads word by word, oldest first.
    pub earlier: Vec<EarlierMessage>,
    /// The turn of the newest message that is older than those.
    pub older: Option<i64>,
    pub input: Message,
    pub input_turn: i64,
    /// True in the conversation with an agent to which its briefings go.
    pub is_standing: bool,
    /// True if the request has brought `earlier`.
    pub has_given_history: bool,
    /// The date that the model reads with the input; `None` if its agent has no clock.
    pub date: Option<RunDate>,
    pub trace: Vec<NewTraceMessage>,
    /// The calls of the newest step, in the order of the model's requests.
    pub calls: Vec<StepCall>,
    /// The newest plan of the run.
    pub plan: Option<Box<Plan>>,
    /// Calls that plans have made for their executors and reviewers.
    pub plan_calls: Vec<CallState>,
    /// Number of children that all steps have started.
    pub children: usize,
    /// The newest step; 0 before the first.
    pub step: u32,
    pub usage: Usage,
    /// The part of `usage` that no message of the trace has yet: that of model calls whose answers the user does not see.
    usage_aside: Usage,
    /// Why the newest step ended.
    pub finish_reason: Option<FinishReason>,
    /// Metadata that checkpoints pass on from run to run.
    pub metadata: Value,
    /// The files that the tools of all steps have returned, by their calls.
    tool_files: BTreeMap<String, Vec<ToolFile>>,
    /// The files that requests to the model have.
    pub files: LoadedFiles,
    /// True if the run answers from documents.
    pub has_knowledge: bool,
    /// Passages that the model has before the run's input, with their numbers.
    pub retrieved: Vec<(u32, FoundPassage)>,
    /// All passages that the model has.
    pub told: Told,
    /// The results that name memories and passages, as the model reads them.
    pub referred: ReferredTexts,
    /// The results that requests have the beginnings of.
    pub shortened: ShortenedResults,
    /// Instructions of the client, after those of the agent.
    pub instructions: Option<String>,
    /// The form of the answer that the client asks for.
    pub format: Option<Arc<JsonFormat>>,
    /// The name of the user who has written the input.
    pub speaker: Option<String>,
    /// How the client wants the model to choose its words.
    pub sampling: Sampling,
    /// The tools that the client lets the model call.
    pub tool_choice: Option<ToolChoice>,
    /// Results of the client's tools after the input, which another run has asked for.
    pub given_results: Vec<EarlierResult>,
    /// The beginning of the answer, which the client has.
    pub begun: Option<String>,
    /// Number of messages, calls and results of the client that the API has left out.
    pub left_out: usize,
    /// That metadata before a fresh run; `None` for the first run of a conversation.
    pub inherited: Option<Value>,
}

/// Returns messages that the client has given, as if they were earlier ones of the run's conversation. Their turns are before all
/// of those.
fn earlier_of(given: Vec<GivenMessage>, input: &Message) -> Vec<EarlierMessage> {
    let first = -(given.len() as i64);
    let messages = (first..).zip(given).map(|(turn, GivenMessage { role, content, results })| {
        let (text, attachments, speaker) = (Content::Text(content.text), content.attachments, content.speaker);
        let message = Message {
            id: Uuid::nil(),
            client_id: None,
            run_id: None,
            given: false,
            role,
            content: text,
            attachments,
            ..input.clone()
        };
        EarlierMessage { turn, message, results, date: None, speaker }
    });
    messages.collect()
}

fn joined(texts: impl Iterator<Item = String>) -> Option<String> {
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

impl Memory {
    /// Restores the state that earlier attempts have stored, or starts a fresh run.
    pub fn of(start: Start, overrides: RunOverrides) -> Self {
        let Start { history, trace, calls, approvals, metadata, inherited, finish_reason, plan, .. } = start;
        let trace: Vec<NewTraceMessage> = trace.into_iter().map(new_trace_message).collect();
        let step = trace.iter().map(|message| message.step).max().unwrap_or(0);
        let children = calls.iter().filter(|call| call.child_run_id.is_some()).count();
        let with_files = calls.iter().filter(|call| !call.files.is_empty());
        let tool_files = with_files.map(|call| (call.call_id.clone(), call.files.clone())).collect();
        let is_of_plan = |call: &ToolCall| plan::is_own_call(&call.name) && call.child_run_id.is_some();
        let (of_plans, calls): (Vec<_>, Vec<_>) = calls.into_iter().partition(is_of_plan);
        let newest = calls.into_iter().filter(|call| call.step == step).enumerate();
        let calls = newest.map(|(position, call)| {
            let approval = approvals.iter().rev().find(|approval| approval.call_id == call.call_id).cloned();
            StepCall { state: state_of(call, position), approval }
        });
        let notices = linked_files::notices(&overrides);
        let RunOverrides {
            instructions,
            format,
            speaker,
            sampling,
            tool_choice,
            history: given,
            left_out: not_kept,
            ..
        } = overrides;
        let has_given_history = given.is_some();
        let older = history.older.filter(|_| !has_given_history);
        let (summary, mut earlier, given_results, begun, left_out) = match given {
            None => (history.summary, history.earlier, Vec::new(), None, not_kept),
            Some(GivenHistory { before, results, begun, left_out }) => {
                (None, earlier_of(before, &history.input), results, begun, left_out)
            }
        };
        earlier.iter_mut().for_each(|earlier| earlier.results.retain(|result| !is_reference(result)));
        let usage = trace.iter().filter_map(|message| message.usage).sum();
        Self {
            summary,
            earlier,
            older,
            input: history.input,
            input_turn: history.input_turn,
            is_standing: history.is_standing,
            has_given_history,
            date: None,
            calls: calls.collect(),
            plan: plan.map(Box::new),
            plan_calls: of_plans.into_iter().enumerate().map(|(position, call)| state_of(call, position)).collect(),
            trace,
            children,
            step,
            usage,
            usage_aside: Usage::default(),
            finish_reason,
            metadata,
            tool_files,
            files: LoadedFiles::default(),
            has_knowledge: false,
            retrieved: Vec::new(),
            told: Told::default(),
            referred: ReferredTexts::default(),
            shortened: ShortenedResults::default(),
            instructions: joined(instructions.into_iter().chain(notices)),
            format: format.map(Arc::new),
            speaker,
            sampling,
            tool_choice,
            given_results,
            begun,
            left_out,
            inherited,
        }
    }

    /// Puts the date before the input, if the agent has a clock; else the model reads no date at all.
    pub fn set_date(&mut self, date: Option<RunDate>) {
        if date.is_none() {
            self.earlier.iter_mut().for_each(|earlier| earlier.date = None);
        }
        self.date = date;
    }

    /// Returns the newest turn that the summary covers.
    pub fn covered(&self) -> Option<i64> {
        self.summary.as_ref().map(|summary| summary.up_to)
    }

    /// Returns the summary, if there are messages that the model does not read word by word.
    pub fn shown_summary(&self) -> Option<&Summary> {
        self.summary.as_ref().filter(|_| self.older.is_some())
    }

    /// Adds the usage of a model call whose answer the user does not see. The next message of the trace gets it, because a later
    /// attempt adds up the usage of the trace.
    pub fn add_usage_aside(&mut self, usage: Usage) {
        self.usage += usage;
        self.usage_aside += usage;
    }

    /// Notes the files of an outcome for later requests to the model.
    pub fn note_files(&mut self, call: &CallState) {
        if !call.files.is_empty() {
            self.tool_files.insert(call.call_id.clone(), call.files.clone());
        }
    }

    /// Returns whether messages of the conversation, or results of its tools, name files.
    pub fn names_files(&self) -> bool {
        let named_before = |earlier: &EarlierMessage| {
            let mut outputs = earlier.results.iter().filter_map(|result| result.output.as_deref());
            !earlier.message.attachments.is_empty() || outputs.any(names_file)
        };
        !self.input.attachments.is_empty() || !self.tool_files.is_empty() || self.earlier.iter().any(named_before)
    }

    /// Returns the files of the outcome that a message of the trace is.
    pub fn files_of(&self, message: &NewTraceMessage) -> &[ToolFile] {
        let is_outcome = message.role == TraceRole::Tool;
        let call_id = message.call_id.as_ref().filter(|_| is_outcome);
        call_id.and_then(|call_id| self.tool_files.get(call_id)).map_or(&[], Vec::as_slice)
    }

    /// Returns the node that the graph executes next.
    pub fn next(&self) -> NextNode {
        let executing = self.plan.as_ref().filter(|plan| plan.status == PlanStatus::Executing);
        let takes_step = executing.is_some_and(|plan| plan.own_step().is_some());
        match self.trace.last() {
            Some(message) if message.role == TraceRole::Assistant && message.tool_calls.is_empty() => match executing {
                Some(_) => NextNode::Plan,
                None => NextNode::Respond,
            },
            Some(message) if message.role == TraceRole::Assistant => NextNode::Tools,
            _ if executing.is_some() && !takes_step => NextNode::Plan,
            _ => NextNode::Process,
        }
    }

    /// Returns the text of all steps.
    pub fn text(&self) -> String {
        let messages = self.trace.iter().filter(|message| message.role == TraceRole::Assistant);
        messages.map(|message| message.content.as_str()).collect()
    }

    /// Appends a message to the trace and returns it, so that the caller can complete it.
    pub fn push(&mut self, role: TraceRole, content: String, step: u32) -> &mut NewTraceMessage {
        let aside = std::mem::take(&mut self.usage_aside);
        self.trace.push(NewTraceMessage {
            position: self.trace.len() as u32 + 1,
            step,
            role,
            content,
            tool_calls: Vec::new(),
            call_id: None,
            is_error: false,
            usage: (aside != Usage::default()).then_some(aside),
            model: None,
            plan_step: self.plan_step(),
        });
        self.trace.last_mut().expect("a message was just pushed")
    }

    /// Returns the step of the plan that the run takes itself now.
    pub fn plan_step(&self) -> Option<u32> {
        Some(self.plan.as_ref()?.own_step()?.step_number)
    }

    /// Returns the messages of the step of the plan that the run takes now, or else those outside of all such steps.
    fn messages_in_scope(&self) -> impl Iterator<Item = &NewTraceMessage> {
        let plan_step = self.plan_step();
        // An edited step is taken again.
        let begun = self.trace.iter().rposition(NewTraceMessage::is_task).filter(|_| plan_step.is_some()).unwrap_or(0);
        self.trace[begun..].iter().filter(move |message| message.plan_step == plan_step)
    }

    /// Returns how many calls the model has requested there.
    pub fn calls_made(&self) -> u32 {
        self.messages_in_scope().map(|message| message.tool_calls.len() as u32).sum()
    }

    /// Returns the number of the next model call there.
    pub fn next_step_in_scope(&self) -> u32 {
        self.messages_in_scope().filter(|message| message.role == TraceRole::Assistant).count() as u32 + 1
    }

    /// Returns the arguments that the model requested.
    pub fn requested_input(&self, call_id: &str) -> Option<&Value> {
        self.requested_call(call_id).map(|requested_call| &requested_call.input)
    }

    /// Returns the call as the model requested it.
    pub fn requested_call(&self, call_id: &str) -> Option<&RequestedCall> {
        self.trace
            .iter()
            .flat_map(|message| &message.tool_calls)
            .find(|requested_call| requested_call.call_id == call_id)
    }

    /// Adds the calls that the newest step requests.
    pub fn add_calls(&mut self, calls: &[RequestedCall], toolbox: &Toolbox) {
        let step_calls = calls.iter().enumerate().map(|(position, call)| StepCall {
            state: CallState {
                call_id: call.call_id.clone(),
                step: self.step,
                position,
                name: call.name.clone(),
                by: toolbox.executed_by(&call.name),
                input: call.input.clone(),
                effect: Default::default(),
                status: ToolCallStatus::Requested,
                schema: None,
                expires_at: None,
                child_run_id: None,
                output: None,
                error: None,
                files: Vec::new(),
                duration_ms: None,
            },
            approval: None,
        });
        self.calls = step_calls.collect();
    }
}

fn new_trace_message(message: TraceMessage) -> NewTraceMessage {
    let TraceMessage { position, step, role, content, tool_calls, call_id, is_error, usage, model, plan_step, .. } =
        message;
    NewTraceMessage { position, step, role, content, tool_calls, call_id, is_error, usage, model, plan_step }
}
