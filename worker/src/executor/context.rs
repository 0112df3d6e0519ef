//! The context of a step: what the model is asked.

use super::memory::Memory;
use crate::model::{Options, Request, ToolRequest, ToolSpec, Turn};
use holdfast_shared::{
    agent::{AgentDefinition, ModelSettings},
    message::{Message, Role},
    storage::NewTraceMessage,
    trace::{RequestedCall, TraceRole},
};

/// The system prompt; earlier messages, oldest first, and the run's own input; then what the run has come to so far.
/// `limit` says why the model gets no more tools, if that is so.
pub fn request(definition: &AgentDefinition, memory: &Memory, tools: Vec<ToolSpec>, limit: Option<&str>) -> Request {
    let earlier = memory.earlier.iter().filter_map(turn_of_message);
    let input = turn_of_message(&memory.input);
    let so_far = memory.trace.iter().filter_map(|said| turn_of_trace(memory, said));
    let prompt = definition.system_prompt.clone();
    let told = limit.map(|limit| format!("{limit}. Call no more tools: answer now, with what you have."));
    let system: Vec<String> = prompt.into_iter().chain(told).collect();
    Request {
        system: (!system.is_empty()).then(|| system.join("\n\n")),
        turns: earlier.chain(input).chain(so_far).collect(),
        tools,
        options: definition.model.as_ref().map(options).unwrap_or_default(),
    }
}

fn options(settings: &ModelSettings) -> Options {
    Options {
        temperature: settings.temperature,
        top_p: settings.top_p,
        max_tokens: settings.max_tokens,
        stop: settings.stop.clone(),
        reasoning_effort: settings.reasoning_effort,
    }
}

/// Only what users and assistants said is ever sent.
fn turn_of_message(message: &Message) -> Option<Turn> {
    // An answer of no words is nothing to a model, and an error to some providers.
    if message.content.is_empty() {
        return None;
    }
    match message.role {
        Role::User => Some(Turn::User(message.content.clone())),
        Role::Assistant => Some(Turn::Assistant { text: message.content.clone(), calls: Vec::new() }),
        Role::System => None,
    }
}

/// Of the trace, only what the run itself has brought: the rest is in the conversation.
fn turn_of_trace(memory: &Memory, said: &NewTraceMessage) -> Option<Turn> {
    match said.role {
        TraceRole::System | TraceRole::User => None,
        TraceRole::Assistant => Some(Turn::Assistant {
            text: said.content.trim_start().to_owned(),
            calls: said.tool_calls.iter().map(tool_request).collect(),
        }),
        TraceRole::Tool => {
            let call_id = said.call_id.clone()?;
            let name = memory.asked(&call_id)?.name.clone();
            let (text, is_error) = (said.content.clone(), said.is_error);
            Some(Turn::Tool { call_id, name, text, is_error })
        }
    }
}

fn tool_request(call: &RequestedCall) -> ToolRequest {
    let RequestedCall { call_id, name, input, signature } = call.clone();
    ToolRequest { id: call_id, name, input, signature }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use holdfast_shared::{
        message::MessageStatus,
        storage::{History, Start},
    };
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn message(role: Role, content: &str) -> Message {
        Message {
            id: Uuid::nil(),
            conversation_id: Uuid::nil(),
            run_id: Uuid::nil(),
            role,
            content_type: "text".into(),
            content: content.into(),
            status: MessageStatus::Complete,
            retrieval_context: None,
            created_at: DateTime::UNIX_EPOCH,
        }
    }

    fn memory(earlier: Vec<Message>) -> Memory {
        Memory::of(Start {
            history: History { earlier, input: message(Role::User, "c") },
            trace: Vec::new(),
            calls: Vec::new(),
            approvals: Vec::new(),
            client_tools: Vec::new(),
            metadata: json!({}),
        })
    }

    fn said(text: &str) -> Turn {
        Turn::Assistant { text: text.into(), calls: Vec::new() }
    }

    #[test]
    fn the_model_sees_what_was_said_and_nothing_else() {
        let memory = memory(vec![
            message(Role::System, "stored"),
            message(Role::User, "a"),
            message(Role::Assistant, ""),
            message(Role::Assistant, "b"),
        ]);
        let request = request(&AgentDefinition::default(), &memory, Vec::new(), None);
        assert_eq!(request.turns, [Turn::User("a".into()), said("b"), Turn::User("c".into())]);
        assert_eq!(request.system, None);
    }

    #[test]
    fn what_a_run_has_come_to_follows_its_input() {
        let mut memory = memory(Vec::new());
        memory.push(TraceRole::User, "c".into(), 0);
        let call =
            RequestedCall { call_id: "call_1".into(), name: "a__b".into(), input: json!("bad"), signature: None };
        memory.push(TraceRole::Assistant, "\n\nLet me look.".into(), 1).tool_calls = vec![call];
        memory.push(TraceRole::Tool, "found".into(), 1).call_id = Some("call_1".into());
        let definition = AgentDefinition { system_prompt: Some("Be brief.".into()), ..AgentDefinition::default() };
        let request = request(&definition, &memory, Vec::new(), Some("It is late"));
        assert_eq!(
            request.system.as_deref(),
            Some("Be brief.\n\nIt is late. Call no more tools: answer now, with what you have.")
        );
        let [
            Turn::User(_),
            Turn::Assistant { text, calls },
            Turn::Tool { call_id, name, text: found, is_error: false },
        ] = request.turns.as_slice()
        else {
            panic!("{:?}", request.turns)
        };
        assert_eq!((text.as_str(), found.as_str(), name.as_str()), ("Let me look.", "found", "a__b"));
        assert_eq!((calls[0].id.as_str(), &calls[0].input), (call_id.as_str(), &json!("bad")));
    }
}
