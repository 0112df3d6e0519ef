//! The part of the model's answer that a step of a run has read.

use holdfast_shared::{
    event::{EventBody, ToolCallDelta},
    finish_reason::FinishReason,
    storable::{is_too_deep, storable, storable_json},
    trace::RequestedCall,
    usage::Usage,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{model::CallDelta, tools::Toolbox};

/// Most calls that one step may request.
pub const MAX_CALLS: usize = 128;

/// A call whose arguments are still arriving.
pub struct StepCallDraft {
    index: usize,
    call_id: String,
    name: String,
    arguments: String,
    signature: Option<Value>,
}

/// The model's answer in one step.
#[derive(Default)]
pub struct StepAnswer {
    /// The model that answers, as `<provider>/<name>`.
    pub model: String,
    pub text: String,
    /// Whether calls of the model count.
    pub takes_calls: bool,
    /// Most calls that count.
    pub most_calls: usize,
    pub calls: Vec<StepCallDraft>,
    pub has_picture: bool,
    /// The tokens of all answers in this step.
    pub usage: Usage,
    /// Why the provider ended the answer.
    pub finish_reason: Option<FinishReason>,
}

impl StepAnswer {
    /// Returns whether the answer has neither a text nor a call that counts.
    pub fn says_nothing(&self) -> bool {
        self.text.trim().is_empty() && (self.calls.is_empty() || !self.takes_calls)
    }

    /// Returns whether clients have seen nothing of the answer that another one would not continue.
    pub fn is_unseen(&self) -> bool {
        self.text.is_empty() && self.calls.is_empty()
    }

    /// Returns why the step ended. Some providers report `stop` although the model requests calls.
    pub fn finish_reason(&self) -> FinishReason {
        match self.finish_reason.unwrap_or(FinishReason::Other) {
            FinishReason::Stop if !self.calls.is_empty() => FinishReason::ToolCalls,
            reason => reason,
        }
    }

    /// Adds a piece of a call. Returns the event that reports it, or `None` if the piece adds nothing visible.
    pub fn take(&mut self, delta: CallDelta, toolbox: &Toolbox) -> Option<EventBody<'static>> {
        let CallDelta { index, name, arguments, signature } = delta;
        let arguments = storable(arguments);
        let existing = self.calls.iter().position(|call| call.index == index);
        let (position, is_new) = match existing {
            Some(position) => (position, false),
            // One more than those that are taken, so that the step knows of the others.
            None if self.calls.len() > self.most_calls => return None,
            None => {
                let call_id = format!("call_{}", Uuid::now_v7().simple());
                let name = storable(name.unwrap_or_default());
                self.calls.push(StepCallDraft { index, call_id, name, arguments: String::new(), signature: None });
                (self.calls.len() - 1, true)
            }
        };
        let call = &mut self.calls[position];
        call.arguments.push_str(&arguments);
        call.signature = signature.map(storable_json).or(call.signature.take());
        let name = is_new.then(|| call.name.clone());
        let by = name.as_deref().and_then(|name| toolbox.executed_by(name));
        let visible = (is_new || !arguments.is_empty()) && position < self.most_calls;
        visible.then(|| {
            EventBody::ToolCallDelta(ToolCallDelta {
                call_id: call.call_id.clone().into(),
                name: name.map(Into::into),
                by,
                text: arguments.into(),
            })
        })
    }
}

impl StepCallDraft {
    /// Returns the requested call. Arguments that are no JSON, or too deep to be stored, stay text; the tools node
    /// refuses them.
    pub fn finish(self) -> RequestedCall {
        let Self { call_id, name, arguments, signature, .. } = self;
        let input = match arguments.trim() {
            "" => json!({}),
            text => match serde_json::from_str(text) {
                Ok(input) if !is_too_deep(&input) => storable_json(input),
                _ => Value::String(arguments),
            },
        };
        RequestedCall { call_id, name, input, signature }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(index: usize, arguments: &str) -> CallDelta {
        CallDelta { index, name: Some("echo".to_owned()), arguments: arguments.to_owned(), signature: None }
    }

    #[test]
    fn a_step_takes_in_one_call_more_than_it_makes_and_no_further_one() {
        let (mut answer, toolbox) = (StepAnswer { most_calls: MAX_CALLS, ..StepAnswer::default() }, Toolbox::default());
        let mut take = |index: usize, arguments: &str| answer.take(piece(index, arguments), &toolbox).is_some();
        assert!((0..MAX_CALLS).all(|index| take(index, "{")));
        assert!((MAX_CALLS..1_000).all(|index| !take(index, "{")));
        assert!(take(3, "}") && !take(500, "}"));
        assert_eq!((answer.calls.len(), answer.calls[3].arguments.as_str()), (MAX_CALLS + 1, "{}"));
    }
}
