//! The client's choice of tools, as it holds for a step.

use holdfast_shared::{
    run::RunError,
    tool_choice::{ToolChoice, ToolMode},
    trace::TraceRole,
};

use super::{Stop, attempt::Attempt, memory::Memory, step_answer::MAX_CALLS};
use crate::model::{Request, ToolSpec};

/// Most names of tools in an error.
const NAMED: usize = 20;

/// Returns whether the model of the step may call tools.
pub fn may_call(attempt: &Attempt<'_>) -> bool {
    choice_of(&attempt.memory).is_none_or(|choice| choice.mode != ToolMode::None) && !attempt.tool_specs().is_empty()
}

/// Returns whether a call of the model of this tool is made.
pub fn allows(attempt: &Attempt<'_>, tool: &str) -> bool {
    choice_of(&attempt.memory).is_none_or(|choice| choice.mode != ToolMode::None && choice.allows(tool))
}

/// Returns the most calls that one step may make.
pub fn most_calls(attempt: &Attempt<'_>) -> usize {
    let is_single = choice_of(&attempt.memory).is_some_and(|choice| choice.parallel == Some(false));
    if is_single { 1 } else { MAX_CALLS }
}

/// Applies the choice to a request, which has all tools of the run. Fails if the run has not the tool that the client demands.
pub fn apply(attempt: &Attempt<'_>, request: &mut Request) -> Result<(), Stop> {
    let Some(choice) = choice_of(&attempt.memory) else { return Ok(()) };
    let all = std::mem::take(&mut request.tools);
    let names: Vec<String> = all.iter().map(|tool| tool.name.clone()).collect();
    request.tools = all.into_iter().filter(|tool| choice.allows(&tool.name)).collect();
    request.parallel_calls = choice.parallel;
    let is_met = choice.mode.is_demand() && has_called_after(&attempt.memory, choice.after_step);
    request.tool_mode = if is_met { ToolMode::Auto } else { choice.mode.clone() };
    match &request.tool_mode {
        ToolMode::Required if request.tools.is_empty() => Err(not_available("a tool", &names)),
        ToolMode::Named(name) if !has_tool(&request.tools, name) => Err(not_available(name, &names)),
        _ => Ok(()),
    }
}

fn choice_of(memory: &Memory) -> Option<&ToolChoice> {
    memory.tool_choice.as_ref()
}

fn has_tool(tools: &[ToolSpec], name: &str) -> bool {
    tools.iter().any(|tool| tool.name == name)
}

/// Returns whether a later step than this one has called a tool.
fn has_called_after(memory: &Memory, step: u32) -> bool {
    let mut later = memory.trace.iter().filter(|message| message.step > step);
    later.any(|message| message.role == TraceRole::Assistant && !message.tool_calls.is_empty())
}

fn not_available(demanded: &str, names: &[String]) -> Stop {
    let known = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let known = if known.is_empty() { "no tools".to_owned() } else { format!("the tools {known}") };
    let sentence = format!("tool_choice demands {demanded}, which the model does not have; it has {known}");
    Stop::Failed(RunError::new("tool_not_available", sentence))
}
