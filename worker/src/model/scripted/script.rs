//! The directives of a user turn for the scripted model.

use std::time::Duration;

use holdfast_shared::{finish_reason::FinishReason, plan, subagent};
use serde::de::IgnoredAny;
use serde_json::json;

use super::tools;
use crate::model::ToolSpec;

const USUAL_TOKENS: usize = 24;
const MAX_TOKENS: usize = 100_000;
const USUAL_DELAY: u64 = 15;
const MAX_DELAY: u64 = 60_000;

/// The directives of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Script {
    pub tokens: usize,
    pub delay: Duration,
    pub thinks: bool,
    pub fails: Option<FailPoint>,
    /// Why the answer ends.
    pub finish: FinishReason,
    /// The calls in the order of the text.
    pub calls: Vec<ScriptedCall>,
    /// Whether all calls are made in one step.
    pub parallel: bool,
    /// The passages that the answer cites, in the order of the text. `None`: the first one, with a quotation.
    pub cites: Vec<Option<u64>>,
    /// The gate at which the answer waits for a test.
    pub gate: Option<String>,
}

/// Where the model fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailPoint {
    AtTheEnd,
    /// Counted from 1.
    InStep(usize),
}

/// A tool call that the model makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScriptedCall {
    pub tool: ScriptTool,
    /// Usually JSON; other text is passed on unchanged.
    pub arguments: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ScriptTool {
    Named(String),
    /// The first tool of the client's own, whose name has no server prefix.
    OfTheClient,
}

impl Script {
    pub fn read(text: &str) -> Self {
        let mut script = Self {
            tokens: USUAL_TOKENS,
            delay: Duration::from_millis(USUAL_DELAY),
            thinks: false,
            fails: None,
            finish: FinishReason::Stop,
            calls: Vec::new(),
            parallel: false,
            cites: Vec::new(),
            gate: None,
        };
        let mut rest = text;
        while let Some((_, after)) = rest.split_once('[') {
            rest = after;
            let call = after.strip_prefix("call=").and_then(ScriptedCall::read);
            let call = call.or_else(|| after.strip_prefix("delegate=").and_then(ScriptedCall::delegation));
            let plan = |text| ScriptedCall::with_arguments(plan::TOOL, text);
            let call = call.or_else(|| after.strip_prefix("plan=").and_then(plan));
            let call = call.or_else(|| after.strip_prefix("questions=").and_then(ScriptedCall::questions));
            if let Some((call, after)) = call {
                script.calls.push(call);
                rest = after;
            } else if let Some((directive, _)) = after.split_once(']').filter(|(directive, _)| !directive.contains('['))
            {
                script.obey(directive);
            }
        }
        script
    }

    fn obey(&mut self, directive: &str) {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match (name.trim(), value.trim().parse::<u64>()) {
            ("tokens", Ok(count)) => self.tokens = usize::try_from(count).map_or(MAX_TOKENS, |c| c.min(MAX_TOKENS)),
            ("delay", Ok(ms)) => self.delay = Duration::from_millis(ms.min(MAX_DELAY)),
            ("think", _) => self.thinks = true,
            ("fail", Ok(step)) if step > 0 => {
                self.fails = Some(FailPoint::InStep(usize::try_from(step).unwrap_or(usize::MAX)));
            }
            ("fail", _) => self.fails = Some(FailPoint::AtTheEnd),
            ("finish", _) => self.finish = FinishReason::from(value.trim().to_owned()),
            ("parallel", _) => self.parallel = true,
            ("gate", _) => self.gate = Some(value.trim().to_owned()),
            ("cite", number) => self.cites.push(number.ok()),
            ("approval", _) => self.calls.push(ScriptedCall {
                tool: ScriptTool::Named(tools::APPROVAL.to_owned()),
                arguments: json!({"action": or(value, "send the report")}).to_string(),
            }),
            ("clienttool", _) => self.calls.push(ScriptedCall {
                tool: ScriptTool::OfTheClient,
                arguments: json!({"question": or(value, "Which colour?")}).to_string(),
            }),
            _ => {}
        }
    }
}

impl ScriptedCall {
    /// Parses `NAME]` or `NAME {json}]`, and returns the call with the rest of the text. The JSON may contain brackets.
    /// Text that is no JSON ends at the first bracket and is passed on unchanged.
    fn read(text: &str) -> Option<(Self, &str)> {
        let end = text.find([']', ' ', '\n', '\t'])?;
        let (name, rest) = text.split_at(end);
        if name.is_empty() {
            return None;
        }
        Self::with_arguments(name, rest)
    }

    /// Parses `{json}]`, and returns the call of this tool with the rest of the text.
    fn with_arguments<'a>(name: &str, text: &'a str) -> Option<(Self, &'a str)> {
        let text = text.trim_start();
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
        let json_end = values.next().and_then(Result::ok).map(|_| values.byte_offset());
        let closed = json_end.and_then(|end| Some((&text[..end], text[end..].trim_start().strip_prefix(']')?)));
        let (arguments, after) = closed.or_else(|| text.split_once(']'))?;
        let arguments = or(arguments, "{}").to_owned();
        Some((Self { tool: ScriptTool::Named(name.to_owned()), arguments }, after))
    }

    /// Parses `NAME task]`, and returns the call with the rest of the text. The task may contain directives, which are the
    /// subagent's.
    fn delegation(text: &str) -> Option<(Self, &str)> {
        let end = closing_bracket(text)?;
        let (name, task) = text[..end].split_once(char::is_whitespace)?;
        let arguments = json!({"task": task.trim()}).to_string();
        Some((Self { tool: ScriptTool::Named(subagent::tool_name(name)), arguments }, &text[end + 1..]))
    }

    /// Parses `a|b]`, and returns the call that asks these questions with the rest of the text.
    fn questions(text: &str) -> Option<(Self, &str)> {
        let (questions, rest) = text.split_once(']')?;
        let questions: Vec<&str> = questions.split('|').map(str::trim).collect();
        let arguments = json!({"questions": questions}).to_string();
        Some((Self { tool: ScriptTool::Named(plan::QUESTIONS_TOOL.to_owned()), arguments }, rest))
    }

    /// Returns the name of the tool, given the declared ones.
    pub fn name(&self, offered: &[ToolSpec]) -> String {
        match &self.tool {
            ScriptTool::Named(name) => name.clone(),
            ScriptTool::OfTheClient => {
                let is_own =
                    |name: &str| !(name.contains("__") || subagent::is_tool_name(name) || plan::is_planner_tool(name));
                let own = offered.iter().find(|tool| is_own(&tool.name));
                own.map_or(tools::CLIENT_TOOL, |tool| &tool.name).to_owned()
            }
        }
    }
}

/// Returns the index of the bracket that closes the text before it.
fn closing_bracket(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 0 => return Some(index),
            b']' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn or<'a>(value: &'a str, usual: &'a str) -> &'a str {
    match value.trim() {
        "" => usual,
        value => value,
    }
}
