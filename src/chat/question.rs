//! The questions of a run: whether a worker may make a call, or what the result of a client tool is.
//!
//! `fold` knows which questions are open, and `answer_state` asks the reader.

use holdfast_shared::{approval::ApprovalStatus, event_id::EventId, hidden::visible};
use serde_json::{Value, json};
use uuid::Uuid;

use super::call;

/// One question of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunQuestion {
    /// The event that asked. A repetition of the question after a crash has another id.
    pub id: EventId,
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments of the call.
    pub input: Value,
    pub asked: QuestionKind,
}

/// The kind of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionKind {
    /// May a worker make the call?
    Approval(Uuid),
    /// A worker died while it made the call: may another worker repeat the call?
    Repetition(Uuid),
    /// The question about the result of the call.
    Result,
}

impl QuestionKind {
    pub fn approval(self) -> Option<Uuid> {
        match self {
            Self::Approval(id) | Self::Repetition(id) => Some(id),
            Self::Result => None,
        }
    }
}

impl RunQuestion {
    /// Returns the question in words, with the exact arguments that the reader would approve.
    pub fn text(&self) -> String {
        let (name, input) = (visible(&self.name), call::exact(&self.input));
        match self.asked {
            QuestionKind::Approval(_) => format!("{name} needs approval to be called with:\n{input}"),
            QuestionKind::Repetition(_) => format!(
                "{name} was called by a worker that died meanwhile; the call may have taken effect. It needs approval \
                 to be called again with:\n{input}"
            ),
            QuestionKind::Result => match self.input["question"].as_str() {
                Some(question) => format!("{name} asks: {question}"),
                None => format!("{name} asks for the result of:\n{input}"),
            },
        }
    }

    /// Returns the prompt of the reader's answer.
    pub fn prompt(&self) -> &'static str {
        match self.asked {
            QuestionKind::Approval(_) | QuestionKind::Repetition(_) => "Approve? [y/N/reason] ",
            QuestionKind::Result => "Answer? [empty declines] ",
        }
    }

    /// Returns the path of the answer below the run's path.
    pub fn path(&self) -> String {
        match self.asked {
            QuestionKind::Approval(id) | QuestionKind::Repetition(id) => format!("approvals/{id}"),
            QuestionKind::Result => format!("tool_results/{}", self.call_id),
        }
    }

    /// Returns the request body for a line of the reader.
    pub fn answer(&self, line: &str) -> Value {
        let line = line.trim();
        match (self.asked, line.to_lowercase().as_str()) {
            (QuestionKind::Result, "") => json!({"error": "declined"}),
            (QuestionKind::Result, _) => json!({"output": line}),
            (_, "y" | "yes") => json!({"decision": "approve"}),
            (_, "" | "n" | "no") => json!({"decision": "deny"}),
            _ => json!({"decision": "deny", "reason": line}),
        }
    }

    /// Returns a sample request body for a shell command.
    pub fn example(&self) -> Value {
        match self.asked {
            QuestionKind::Approval(_) | QuestionKind::Repetition(_) => json!({"decision": "approve"}),
            QuestionKind::Result => json!({"output": "…"}),
        }
    }
}

/// Returns the outcome of an approval in words.
pub fn resolved(tool: &str, decision: ApprovalStatus, reason: Option<&str>, edited_input: Option<&Value>) -> String {
    let words = match decision {
        ApprovalStatus::Approved | ApprovalStatus::Denied => decision.as_str(),
        ApprovalStatus::Expired => "not approved in time",
        ApprovalStatus::Superseded => "not approved, a new message has come",
        ApprovalStatus::Cancelled => "not approved, the run is cancelled",
        ApprovalStatus::Pending => "not approved yet",
    };
    let edited = edited_input.map(|input| format!(", with {}", call::exact(input))).unwrap_or_default();
    let reason = reason.map(|reason| format!(": {}", call::one_line(reason))).unwrap_or_default();
    format!("{} is {words}{edited}{reason}", visible(tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(asked: QuestionKind, input: Value) -> RunQuestion {
        RunQuestion { id: EventId::new(1, 7), call_id: "call_1".to_owned(), name: "kb__count".to_owned(), input, asked }
    }

    #[test]
    fn only_a_clear_yes_approves() {
        let check = |line: &str, expected: Value| {
            assert_eq!(question(QuestionKind::Approval(Uuid::nil()), json!({})).answer(line), expected, "{line:?}");
        };
        for line in ["y", "Y", "yes", " Yes "] {
            check(line, json!({"decision": "approve"}));
        }
        for line in ["", "  ", "n", "No"] {
            check(line, json!({"decision": "deny"}));
        }
        for line in ["not today", "yes please", "yy", "j"] {
            check(line, json!({"decision": "deny", "reason": line}));
        }
    }

    #[test]
    fn a_line_is_the_result_of_the_clients_tool() {
        let check = |line: &str, expected: Value| {
            assert_eq!(question(QuestionKind::Result, json!({})).answer(line), expected, "{line:?}");
        };
        check("blue", json!({"output": "blue"}));
        check("n", json!({"output": "n"}));
        check(" ", json!({"error": "declined"}));
    }

    #[test]
    fn a_question_says_what_is_asked_and_why() {
        let check = |asked: QuestionKind, input: Value, expected: &[&str]| {
            let text = question(asked, input).text();
            assert!(expected.iter().all(|part| text.contains(part)), "{text}");
        };
        let (id, input) = (Uuid::nil(), json!({"note": "one"}));
        check(QuestionKind::Approval(id), input.clone(), &["kb__count needs approval", "{\"note\":\"one\"}"]);
        check(QuestionKind::Repetition(id), input.clone(), &["may have taken effect", "again", "{\"note\":\"one\"}"]);
        check(QuestionKind::Result, input, &["kb__count asks for the result", "{\"note\":\"one\"}"]);
        let hidden = RunQuestion {
            name: "kb\u{202e}__tnuoc".to_owned(),
            ..question(QuestionKind::Approval(id), json!("\u{200b}"))
        };
        assert_eq!(hidden.text(), "kb\\u{202e}__tnuoc needs approval to be called with:\n\"\\u200b\"");
        check(QuestionKind::Result, json!({"question": "Which colour?"}), &["kb__count asks: Which colour?"]);
    }
}
