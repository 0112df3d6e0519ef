//! The creation of a project: before the planner works, the words of the user tell whether there is enough to begin with. A
//! model judges where they decide nothing. If there is too little, the run asks one or two questions, at most twice; then
//! the project is created by what is known.

use std::error::Error;

use holdfast_shared::{
    agent::ModelRole,
    config::Provider,
    context::{AgentContext, PROJECT_CLARIFICATION as FIELD},
    event::{EventBody, StepCompleted, StepStarted},
    finish_reason::FinishReason,
    storage::Progress,
    trace::Node,
    usage::Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    draft::{add_usage, json_in},
    indicators::{Indicators, SUFFICIENT},
    prompts,
    questions::{ask_after, read_questions},
};
use crate::{
    executor::{Stop, attempt::Attempt, side_call::ask_aside},
    model::{Request, Turn},
};

/// Rounds of questions before the project is created by what is known.
const MOST_ROUNDS: u32 = 2;

/// The clarification of a project that is to be created, which the conversation keeps between runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Clarification {
    round_number: u32,
    accumulated_context: String,
    previous_questions: Vec<String>,
    previous_responses: Vec<String>,
}

/// How much is known, from 0 to 1, and the questions about the rest.
#[derive(Debug, PartialEq)]
struct Analysis {
    confidence: f64,
    questions: Vec<String>,
}

/// The context type that this concerns.
const CREATES: &str = "project_create";

impl Analysis {
    /// Reads a model's answer; `None` if it says neither that enough is known nor what to ask.
    fn of(answer: &Value) -> Option<Self> {
        let confidence = answer["confidence"].as_f64().filter(|confidence| (0.0..=1.0).contains(confidence))?;
        let questions = read_questions(answer);
        (confidence >= SUFFICIENT || !questions.is_empty()).then_some(Self { confidence, questions })
    }
}

/// Asks about the project that a run is to create, if there is too little to begin with. Returns whether the run has asked.
pub async fn clarify(attempt: &mut Attempt<'_>) -> Result<bool, Stop> {
    let is_planner = attempt.planner.as_ref().is_some_and(|planner| planner.role == ModelRole::Planner);
    let context = AgentContext::of(&attempt.memory.metadata);
    if !is_planner || attempt.memory.step > 0 {
        return Ok(false);
    }
    if context.is_none_or(|context| context.context_type != CREATES) {
        // The user has turned to something else.
        keep(attempt, None);
        attempt.spans.strategy("planner_stream", None);
        return Ok(false);
    }
    let stored = attempt.memory.metadata.get(FIELD).cloned().unwrap_or_default();
    let mut state: Clarification = serde_json::from_value(stored).unwrap_or_default();
    let message = attempt.memory.input.content.model_text(attempt.definition.language);
    if state.round_number > 0 {
        state.previous_responses.push(message.clone());
    }
    let separator = if state.accumulated_context.is_empty() { "" } else { "\n" };
    state.accumulated_context = format!("{}{separator}{message}", state.accumulated_context);
    let is_last_round = state.round_number >= MOST_ROUNDS;
    let analysis = analyse(attempt, &state.accumulated_context, is_last_round).await?;
    tracing::info!(confidence = analysis.confidence, round = state.round_number, "analysed a project to create");
    attempt.spans.strategy("project_creation", Some(analysis.confidence));
    if analysis.confidence >= SUFFICIENT || is_last_round {
        keep(attempt, None);
        return Ok(false);
    }
    state.round_number += 1;
    state.previous_questions.extend(analysis.questions.iter().cloned());
    let round = state.round_number;
    keep(attempt, Some(&state));
    ask_in_own_step(attempt, &analysis.questions, round);
    Ok(true)
}

/// Judges what is known by its words. If these decide nothing, the model judges it, unless it fails.
async fn analyse(attempt: &mut Attempt<'_>, known: &str, is_last_round: bool) -> Result<Analysis, Stop> {
    let indicators = Indicators::of(known);
    let by_words = Analysis { confidence: indicators.confidence, questions: indicators.questions() };
    let is_scripted = attempt.chosen_model.choice().provider == Provider::Scripted;
    if is_scripted || is_last_round || !indicators.are_inconclusive() {
        return Ok(by_words);
    }
    let turn = Turn::user(prompts::project_analysis(known));
    let model = attempt.chosen_model.without_options();
    let (answer, usage) = match ask_aside(attempt, &model, Request { turns: vec![turn], ..Request::default() }).await? {
        Ok(answer) => answer,
        Err(error) => {
            tracing::warn!(error = &error as &dyn Error, "failed to analyse a project by its model; its words decide");
            return Ok(by_words);
        }
    };
    add_usage(attempt, usage);
    Ok(json_in(&answer).and_then(|answer| Analysis::of(&answer)).unwrap_or(by_words))
}

/// Asks the questions in a step without a model call, which ends the run.
fn ask_in_own_step(attempt: &mut Attempt<'_>, questions: &[String], round: u32) {
    attempt.memory.step = 1;
    attempt.recorder.emit(&EventBody::StepStarted(StepStarted { step: 1 }));
    let opening = match round {
        1 => "I'd be glad to set the project up with you. First:",
        _ => "Thank you, that helps. One more thing:",
    };
    ask_after(attempt, opening, questions, round);
    let body = StepCompleted {
        step: 1,
        tool_calls: 0,
        usage: Usage::default(),
        finish_reason: FinishReason::Stop,
        model: None,
    };
    attempt.recorder.emit(&EventBody::StepCompleted(body));
    attempt.memory.finish_reason = Some(FinishReason::Stop);
    let progress = Progress { step_completed: true, finish_reason: Some(FinishReason::Stop), ..Progress::default() };
    attempt.checkpoint(Node::Process, progress);
}

/// Keeps the state of the clarification with the conversation: the next checkpoint has it, and the next run inherits it.
fn keep(attempt: &mut Attempt<'_>, state: Option<&Clarification>) {
    if let Some(fields) = attempt.memory.metadata.as_object_mut() {
        match state {
            Some(state) => fields.insert(FIELD.to_owned(), json!(state)),
            None => fields.remove(FIELD),
        };
    }
}
