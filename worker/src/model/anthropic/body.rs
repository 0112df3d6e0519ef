//! The body of a request.

use std::collections::BTreeSet;

use holdfast_shared::{agent::ReasoningEffort, config::ModelChoice, tool_choice::ToolMode};
use serde_json::{Value, json};

use super::{
    cache, pictures,
    rules::{self, ClaudeRules, HOTTEST, LEAST_BUDGET, Thinking},
    schema,
};
use crate::model::{
    Error, ModelFile, Request, ToolRequest, ToolSpec, Turn, UserPart,
    alternation::{AnsweredCall, SideMessage, alternating},
    subject::Subject,
};

/// Returns the body without the fields that name the model. `max_tokens` applies if the request sets no limit. Fails if the
/// provider would refuse a picture that the answer is about.
pub fn write(subject: &Subject, request: &Request, max_tokens: Option<u32>) -> Result<Value, Error> {
    let choice = &subject.choice;
    let rules = rules::of(&choice.name);
    let mut sides = alternating(&request.turns);
    pictures::fit(&mut sides, subject)?;
    let mut messages: Vec<Value> = sides.iter().map(|side| message(side, choice)).collect();
    let mut system: Vec<Value> = request.system.iter().filter(|text| !text.trim().is_empty()).map(text_block).collect();
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    cache::mark(&mut tools, &mut system, &mut messages);
    let mut body = json!({"stream": true, "messages": messages});
    if tools.is_empty() {
        // A conversation with calls is refused without declared tools, so these are declared as not to be called.
        tools = tools_of_the_past(&request.turns);
        if !tools.is_empty() {
            body["tool_choice"] = json!({"type": "none"});
        }
    } else if let Some(choice) = tool_choice(request) {
        body["tool_choice"] = choice;
    }
    for (field, blocks) in [("system", system), ("tools", tools)] {
        if !blocks.is_empty() {
            body[field] = Value::Array(blocks);
        }
    }
    add_options(&mut body, request, rules, max_tokens, || may_think_by_budget(&sides, choice));
    Ok(body)
}

/// Returns whether the model must call a tool, and whether it may make several calls.
fn tool_choice(request: &Request) -> Option<Value> {
    let is_single = request.parallel_calls == Some(false);
    let mut choice = match &request.tool_mode {
        ToolMode::Auto if !is_single => return None,
        ToolMode::Auto => json!({"type": "auto"}),
        ToolMode::None => return Some(json!({"type": "none"})),
        ToolMode::Required => json!({"type": "any"}),
        ToolMode::Named(name) => json!({"type": "tool", "name": name}),
    };
    if is_single {
        choice["disable_parallel_tool_use"] = json!(true);
    }
    Some(choice)
}

fn add_options(
    body: &mut Value,
    request: &Request,
    rules: ClaudeRules,
    max_tokens: Option<u32>,
    may_think_by_budget: impl FnOnce() -> bool,
) {
    let options = &request.options;
    let max_tokens = options.max_tokens.or(max_tokens).unwrap_or(rules.max_tokens);
    body["max_tokens"] = json!(max_tokens);
    // A sequence of white space alone is refused.
    let stop: Vec<&String> = options.stop.iter().filter(|stop| !stop.trim().is_empty()).collect();
    if !stop.is_empty() {
        body["stop_sequences"] = json!(stop);
    }
    // The provider refuses a demand of a model that thinks.
    let must_call = request.tool_mode.is_demand() && !request.tools.is_empty();
    let thinking = options.reasoning_effort.filter(|_| !must_call).and_then(|effort| match rules.thinking {
        Thinking::Never => None,
        Thinking::Adaptive => {
            body["output_config"] = json!({"effort": effort});
            Some(json!({"type": "adaptive", "display": "summarized"}))
        }
        Thinking::Budget => {
            // The budget is a part of the limit, and must leave something for the answer.
            let budget = budget_of(effort).min(max_tokens.saturating_sub(1));
            (budget >= LEAST_BUDGET && may_think_by_budget())
                .then(|| json!({"type": "enabled", "budget_tokens": budget}))
        }
    });
    match (thinking, options.temperature, options.top_p) {
        // A model that thinks takes neither.
        (Some(thinking), ..) => body["thinking"] = thinking,
        (None, ..) if !rules.takes_temperature => {}
        // Newer models refuse both at once.
        (None, Some(temperature), _) => body["temperature"] = json!(temperature.min(HOTTEST)),
        (None, None, Some(top_p)) => body["top_p"] = json!(top_p),
        (None, None, None) => {}
    }
}

fn budget_of(effort: ReasoningEffort) -> u32 {
    match effort {
        ReasoningEffort::Low => LEAST_BUDGET,
        ReasoningEffort::Medium => 8_000,
        ReasoningEffort::High => 24_000,
    }
}

/// Returns whether the step that is under way has thought: outcomes after calls without thinking of this model, such as those of
/// another model, are refused beside a budget.
fn may_think_by_budget(sides: &[SideMessage<'_>], choice: &ModelChoice) -> bool {
    match sides {
        [.., SideMessage::Assistant { calls, .. }, SideMessage::User { outcomes, .. }] if !outcomes.is_empty() => {
            calls.iter().any(|call| call.signature_for(choice).is_some())
        }
        _ => true,
    }
}

fn message(side: &SideMessage<'_>, choice: &ModelChoice) -> Value {
    match side {
        SideMessage::User { outcomes, parts } => {
            let blocks = outcomes.iter().map(tool_result).chain(parts.iter().map(block));
            json!({"role": "user", "content": blocks.collect::<Vec<_>>()})
        }
        SideMessage::Assistant { text, calls } => {
            json!({"role": "assistant", "content": blocks_of_answer(text, calls, choice)})
        }
    }
}

/// Returns the blocks of an answer: the thinking that led to the first call, the text, and the calls, each after the thinking of
/// its own.
fn blocks_of_answer(text: &str, calls: &[&ToolRequest], choice: &ModelChoice) -> Vec<Value> {
    let thinking =
        |call: &ToolRequest| call.signature_for(choice).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut blocks = Vec::new();
    for (n, call) in calls.iter().enumerate() {
        blocks.extend(thinking(call));
        if n == 0 && !text.is_empty() {
            blocks.push(text_block(text));
        }
        blocks.push(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments()}));
    }
    if calls.is_empty() {
        blocks.push(text_block(text));
    }
    blocks
}

fn tool_result(outcome: &AnsweredCall<'_>) -> Value {
    let mut block = json!({"type": "tool_result", "tool_use_id": outcome.call_id});
    if !outcome.text.trim().is_empty() {
        block["content"] = json!(outcome.text);
    }
    if outcome.is_error {
        block["is_error"] = json!(true);
    }
    block
}

fn block(part: &UserPart) -> Value {
    match part {
        UserPart::Text(text) | UserPart::Speaker(text) => text_block(text),
        UserPart::File(file) => file_block(file),
    }
}

fn file_block(file: &ModelFile) -> Value {
    let (kind, media_type) = match pictures::measure(file) {
        Some(picture) => ("image", picture.media_type),
        None if file.is_picture() => ("image", file.media_type.as_str()),
        None => ("document", file.media_type.as_str()),
    };
    json!({"type": kind, "source": {"type": "base64", "media_type": media_type, "data": &*file.data}})
}

fn text_block(text: impl AsRef<str>) -> Value {
    json!({"type": "text", "text": text.as_ref()})
}

fn tool(spec: &ToolSpec) -> Value {
    let mut tool = json!({"name": spec.name, "input_schema": schema::parameters(&spec.input_schema)});
    if !spec.description.is_empty() {
        tool["description"] = json!(spec.description);
    }
    tool
}

/// Returns declarations of the tools in earlier calls.
fn tools_of_the_past(turns: &[Turn]) -> Vec<Value> {
    let calls = turns.iter().flat_map(|turn| match turn {
        Turn::Assistant { calls, .. } => calls.as_slice(),
        _ => &[],
    });
    let names: BTreeSet<&str> = calls.map(|call| call.name.as_str()).collect();
    names.into_iter().map(|name| json!({"name": name, "input_schema": {"type": "object"}})).collect()
}
