//! The state of a thread as the protocol has it: its messages, and the questions that wait.

use serde::{Serialize, Serializer, ser::SerializeSeq};
use serde_json::{Value, value::RawValue};

use super::{interrupt::LangInterrupt, message::LangMessage};

/// Messages of a thread, serialised.
#[derive(Debug, Default)]
pub struct LangHistory(Vec<Box<RawValue>>);

/// The messages of a thread, and the questions of its run if it waits.
pub struct LangValues<'a> {
    pub history: &'a LangHistory,
    /// The messages of the run's answer.
    pub answer: Vec<Value>,
    pub interrupts: Option<&'a [LangInterrupt]>,
}

impl LangHistory {
    /// Serialises messages.
    pub fn of<'a>(messages: impl Iterator<Item = &'a LangMessage>) -> Self {
        let raw = |message: &LangMessage| serde_json::value::to_raw_value(&message.to_value());
        Self(messages.map(|message| raw(message).expect("a message is always valid JSON")).collect())
    }

    /// Returns the bytes of the messages.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|message| message.get().len()).sum()
    }
}

impl PartialEq for LangHistory {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().map(|message| message.get()).eq(other.0.iter().map(|message| message.get()))
    }
}

impl Serialize for LangValues<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields<'a> {
            messages: Messages<'a>,
            #[serde(rename = "__interrupt__", skip_serializing_if = "Option::is_none")]
            interrupts: Option<&'a [LangInterrupt]>,
        }
        Fields { messages: Messages(self), interrupts: self.interrupts }.serialize(serializer)
    }
}

struct Messages<'a>(&'a LangValues<'a>);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let LangValues { history, answer, .. } = self.0;
        let mut messages = serializer.serialize_seq(Some(history.0.len() + answer.len()))?;
        history.0.iter().try_for_each(|message| messages.serialize_element(message))?;
        answer.iter().try_for_each(|message| messages.serialize_element(message))?;
        messages.end()
    }
}
