//! The creation of a project: before the planner works, the words of the user tell whether there is enough to begin with. If
//! not, the run asks one or two questions, at most twice; then the project is created by what is known.

use std::collections::BTreeSet;

use holdfast_shared::{
    agent::ModelRole,
    context::{AgentContext, PROJECT_CLARIFICATION as FIELD},
    event::{EventBody, StepCompleted, StepStarted},
    finish_reason::FinishReason,
    storage::Progress,
    trace::Node,
    usage::Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::questions::ask_after;
use crate::executor::attempt::Attempt;

/// Rounds of questions before the project is created by what is known.
const MOST_ROUNDS: u32 = 2;

/// Confidence at which there is enough to create the project.
const SUFFICIENT: f64 = 0.6;

/// The weights of indicators in the confidence.
const HIGH: f64 = 0.5;
const MEDIUM: f64 = 0.25;
const LOW: f64 = 0.1;

const TYPES: &[&str] = &[
    "app",
    "application",
    "website",
    "web site",
    "site",
    "blog",
    "shop",
    "store",
    "book",
    "novel",
    "event",
    "conference",
    "wedding",
    "research",
    "study",
    "thesis",
    "course",
    "game",
    "film",
    "podcast",
    "campaign",
    "startup",
    "product",
    "trip",
    "renovation",
    "应用",
    "网站",
    "书",
    "活动",
    "会议",
    "研究",
    "论文",
    "课程",
    "游戏",
];
const DELIVERABLES: &[&str] = &[
    "build", "create", "launch", "publish", "write", "develop", "design", "make", "organise", "organize", "ship",
    "release", "开发", "创建", "制作", "发布", "设计", "写",
];
const GOALS: &[&str] =
    &["want to", "need to", "goal is", "trying to", "would like to", "aim to", "hope to", "想", "需要", "目标"];
const TIMELINES: &[&str] = &[
    "by next",
    "this month",
    "next month",
    "next week",
    "deadline",
    "urgent",
    "by the end",
    "within",
    "as soon as",
    "截止",
    "紧急",
];
const SCALES: &[&str] = &["small", "mvp", "comprehensive", "prototype", "simple", "large", "pilot", "小型", "原型"];

/// The facts that the words of a user tell about a project.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Indicators {
    has_project_type: bool,
    has_deliverable: bool,
    confidence: f64,
}

/// The clarification of a project that is to be created, which the conversation keeps between runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Clarification {
    round_number: u32,
    accumulated_context: String,
    previous_questions: Vec<String>,
    previous_responses: Vec<String>,
}

/// The context type that this concerns.
const CREATES: &str = "project_create";

impl Indicators {
    fn of(text: &str) -> Self {
        let text = text.to_lowercase();
        let words: BTreeSet<&str> = text.split(|character: char| !character.is_alphanumeric()).collect();
        // A phrase, and a word of a script without spaces, may stand anywhere.
        let has = |indicators: &[&str]| {
            indicators.iter().any(|indicator| {
                let is_word = indicator.is_ascii() && !indicator.contains(' ');
                if is_word { words.contains(indicator) } else { text.contains(indicator) }
            })
        };
        let (has_project_type, has_deliverable) = (has(TYPES), has(DELIVERABLES));
        let weights = [
            (has_project_type, HIGH),
            (has_deliverable, MEDIUM),
            (has(GOALS), MEDIUM),
            (has(TIMELINES), LOW),
            (has(SCALES), LOW),
        ];
        let confidence =
            weights.iter().filter(|(is_there, _)| *is_there).map(|(_, weight)| weight).sum::<f64>().min(1.0);
        Self { has_project_type, has_deliverable, confidence }
    }

    fn has_sufficient_context(self) -> bool {
        self.confidence >= SUFFICIENT
    }

    /// Returns one or two questions about what is missing.
    fn questions(self) -> Vec<String> {
        let kind =
            "What kind of project is it to be: an app, a website, a book, an event, research, or something else?";
        let deliverable = "What should exist when the project is done?";
        let purpose = "What is it for, and who is it for?";
        match (self.has_project_type, self.has_deliverable) {
            (false, false) => vec![kind.to_owned(), deliverable.to_owned()],
            (false, true) => vec![kind.to_owned()],
            (true, false) => vec![deliverable.to_owned()],
            (true, true) => vec![purpose.to_owned()],
        }
    }
}

/// Asks about the project that a run is to create, if there is too little to begin with. Returns whether the run has asked.
pub fn clarify(attempt: &mut Attempt<'_>) -> bool {
    let is_planner = attempt.planner.as_ref().is_some_and(|planner| planner.role == ModelRole::Planner);
    let context = AgentContext::of(&attempt.memory.metadata);
    if !is_planner || attempt.memory.step > 0 {
        return false;
    }
    if context.is_none_or(|context| context.context_type != CREATES) {
        // The user has turned to something else.
        keep(attempt, None);
        return false;
    }
    let stored = attempt.memory.metadata.get(FIELD).cloned().unwrap_or_default();
    let mut state: Clarification = serde_json::from_value(stored).unwrap_or_default();
    let message = attempt.memory.input.content.model_text(attempt.definition.language);
    if state.round_number > 0 {
        state.previous_responses.push(message.clone());
    }
    let separator = if state.accumulated_context.is_empty() { "" } else { "\n" };
    state.accumulated_context = format!("{}{separator}{message}", state.accumulated_context);
    let indicators = Indicators::of(&state.accumulated_context);
    tracing::info!(
        strategy = "project_creation",
        confidence = indicators.confidence,
        round = state.round_number,
        "strategy chosen"
    );
    if indicators.has_sufficient_context() || state.round_number >= MOST_ROUNDS {
        keep(attempt, None);
        return false;
    }
    let questions = indicators.questions();
    state.round_number += 1;
    state.previous_questions.extend(questions.iter().cloned());
    let round = state.round_number;
    keep(attempt, Some(&state));
    attempt.memory.step = 1;
    attempt.recorder.emit(&EventBody::StepStarted(StepStarted { step: 1 }));
    let opening = match round {
        1 => "I'd be glad to set the project up with you. First:",
        _ => "Thank you, that helps. One more thing:",
    };
    ask_after(attempt, opening, &questions, round);
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
    true
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_tell_how_much_is_known_about_a_project() {
        for (text, sufficient, questions) in [
            ("I want to start a new project", false, 2),
            ("I want to start a new project\nIt's a mobile app for fitness tracking", true, 1),
            ("It's a mobile app for fitness tracking", false, 1),
            ("Build an app by next month", true, 1),
            ("build something", false, 1),
            ("我想开发一个应用", true, 1),
            ("an apple a day", false, 2),
            ("", false, 2),
        ] {
            let indicators = Indicators::of(text);
            assert_eq!(indicators.has_sufficient_context(), sufficient, "{text}: {indicators:?}");
            assert_eq!(indicators.questions().len(), questions, "{text}");
        }
    }
}
