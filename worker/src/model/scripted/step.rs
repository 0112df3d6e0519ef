//! One step of the scripted model: it calls tools as long as directives are left, and then answers.

use std::time::Duration;

use holdfast_shared::{finish_reason::FinishReason, tool_choice::ToolMode};
use serde_json::{Map, Value, json};

use super::{
    THOUGHTS, project,
    script::{FailPoint, Script, ScriptTool, ScriptedCall},
    text_of,
};
use crate::model::{AnswerDelta, CallDelta, Request, ToolSpec, Turn};

/// Characters of a passage that are quoted.
const QUOTED_WORDS: usize = 40;

/// Most characters of a tool's outcome that are quoted.
const QUOTED_CHARS: usize = 200;

/// The content of one answer: thoughts, then `lead`, then words.
#[derive(Debug)]
pub(super) struct ScriptedStep {
    pub thoughts: usize,
    pub lead: Vec<AnswerDelta>,
    pub words: usize,
    /// Whether the answer then fails.
    pub fails: bool,
    /// Why the answer ends, if it does not fail.
    pub finish: FinishReason,
    pub delay: Duration,
    /// The gate at which the answer waits for a test.
    pub gate: Option<String>,
}

impl ScriptedStep {
    /// Returns the step after these turns, which follow the script's turn.
    pub fn next(request: &Request, text: &str, since: &[Turn]) -> Self {
        let (mut script, offered) = (Script::read(text), offered_tools(request));
        if script.calls.is_empty() {
            script.calls.extend(project::creation(request.system.as_deref(), &request.turns, offered));
        }
        let outcomes: Vec<&Turn> = since.iter().filter(|turn| matches!(turn, Turn::Tool { .. })).collect();
        let (steps, calls) = match (script.parallel, outcomes.len()) {
            (true, 0) => (0, script.calls.as_slice()),
            (true, _) => (1, &[][..]),
            (false, count) => (count.min(script.calls.len()), script.calls.get(count..=count).unwrap_or_default()),
        };
        let fails_here = script.fails == Some(FailPoint::InStep(steps + 1));
        let demanded = demanded_call(&request.tool_mode, calls, offered);
        let calls = demanded.as_ref().map_or(calls, std::slice::from_ref);
        if calls.is_empty() || offered.is_empty() {
            let fails = fails_here || script.fails == Some(FailPoint::AtTheEnd);
            let mut step = Self::answering(&script, &outcomes, fails);
            step.lead.extend(script.cites.iter().flat_map(|number| citation(*number, &request.turns)));
            return step;
        }
        Self::calling(&script, calls, offered, fails_here)
    }

    /// Returns a reviewer's verdict on the plan in the text, whose steps have directives of their own.
    pub fn verdict(text: &str) -> Self {
        let verdict = if text.contains("[review=changes]") { "changes_requested" } else { "approved" };
        Self::saying(format!("{{\"verdict\": \"{verdict}\", \"notes\": \"scripted\"}}"))
    }

    /// Returns an answer of this schema.
    pub fn json(schema: Option<&Value>) -> Self {
        Self::saying(schema.map_or_else(|| json!({}), example_of).to_string())
    }

    fn saying(text: String) -> Self {
        let script = Script { tokens: 0, delay: Duration::ZERO, ..Script::read("") };
        Self { lead: vec![AnswerDelta::Text(text)], ..Self::answering(&script, &[], false) }
    }

    fn answering(script: &Script, outcomes: &[&Turn], fails: bool) -> Self {
        Self {
            thoughts: if script.thinks { THOUGHTS.len() } else { 0 },
            lead: outcomes.iter().filter_map(|turn| quote(turn)).map(AnswerDelta::Text).collect(),
            words: if fails { script.tokens / 2 } else { script.tokens },
            fails,
            finish: script.finish,
            delay: script.delay,
            gate: script.gate.clone(),
        }
    }

    fn calling(script: &Script, calls: &[ScriptedCall], offered: &[ToolSpec], fails: bool) -> Self {
        let names: Vec<String> = calls.iter().map(|call| call.name(offered)).collect();
        let mut lead =
            vec![AnswerDelta::Text("Calling ".to_owned()), AnswerDelta::Text(format!("{}. ", names.join(", ")))];
        let pieces = names.into_iter().zip(calls).enumerate();
        lead.extend(pieces.flat_map(|(index, (name, call))| pieces_of(index, name, &call.arguments)));
        if fails {
            // In the middle of the arguments of the first call.
            lead.truncate(3);
        }
        Self { thoughts: 0, lead, words: 0, fails, finish: FinishReason::ToolCalls, delay: script.delay, gate: None }
    }
}

fn offered_tools(request: &Request) -> &[ToolSpec] {
    match request.tool_mode {
        ToolMode::None => &[],
        _ => &request.tools,
    }
}

/// Returns the call that the request demands, unless the script makes it: of the tool that it names, or of the first one.
fn demanded_call(mode: &ToolMode, calls: &[ScriptedCall], offered: &[ToolSpec]) -> Option<ScriptedCall> {
    let tool = match mode {
        ToolMode::Named(name) if calls.iter().any(|call| call.name(offered) == *name) => return None,
        ToolMode::Named(name) => offered.iter().find(|tool| tool.name == *name)?,
        ToolMode::Required if calls.is_empty() => offered.first()?,
        ToolMode::Required | ToolMode::Auto | ToolMode::None => return None,
    };
    let arguments = example_of(&tool.input_schema).to_string();
    Some(ScriptedCall { tool: ScriptTool::Named(tool.name.clone()), arguments })
}

/// Returns a call, with its arguments split in two.
fn pieces_of(index: usize, name: String, arguments: &str) -> [AnswerDelta; 2] {
    let (begin, end) = arguments.split_at(arguments.ceil_char_boundary(arguments.len() / 2));
    let first = CallDelta { index, name: Some(name), arguments: begin.to_owned(), signature: None };
    let second = CallDelta { index, name: None, arguments: end.to_owned(), signature: None };
    [AnswerDelta::Call(first), AnswerDelta::Call(second)]
}

/// Returns a sentence with a mark, in pieces: of this passage, or of the first one with its first words.
fn citation(number: Option<u64>, turns: &[Turn]) -> Vec<AnswerDelta> {
    let texts = turns.iter().filter_map(|turn| match turn {
        Turn::User(parts) => Some(text_of(parts)),
        Turn::Tool { text, .. } => Some(text.clone()),
        Turn::Assistant { .. } | Turn::Files(_) => None,
    });
    let first = |text: String| {
        let (_, passage) = text.split_once("[Passage 1 of ")?;
        let words = passage.lines().skip(1).find(|line| !line.trim().is_empty())?;
        Some(words.chars().take(QUOTED_WORDS).collect::<String>())
    };
    let sentence = match number {
        Some(number) => ["It is so [".to_owned(), number.to_string()],
        None => [format!("\"{}\" [", texts.into_iter().find_map(first).unwrap_or_default()), "1".to_owned()],
    };
    sentence.into_iter().chain(["]. ".to_owned()]).map(AnswerDelta::Text).collect()
}

/// Returns a line with the outcome of a call.
fn quote(turn: &Turn) -> Option<String> {
    let Turn::Tool { name, text, .. } = turn else { return None };
    let text = text.chars().take(QUOTED_CHARS).map(|c| if c.is_control() { ' ' } else { c });
    Some(format!("{name}: {}\n", text.collect::<String>()))
}

/// Returns a value of a schema of objects, lists, texts, numbers and booleans.
fn example_of(schema: &Value) -> Value {
    let first = |name: &str| schema[name].as_array().and_then(|options| options.first());
    if let Some(value) = schema.get("const").or_else(|| first("enum")) {
        return value.clone();
    }
    if let Some(option) = first("anyOf") {
        return example_of(option);
    }
    match schema["type"].as_str() {
        Some("object") => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            properties.map(|(name, schema)| (name.clone(), example_of(schema))).collect::<Map<_, _>>().into()
        }
        Some("array") => json!([example_of(&schema["items"])]),
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("string") => json!("scripted"),
        _ => Value::Null,
    }
}
