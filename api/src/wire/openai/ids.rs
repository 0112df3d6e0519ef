//! The ids of this protocol. Each begins with a word for its kind and has the run's id, so a request that names one finds the run.

use std::fmt;

use holdfast_shared::event_id::EventId;
use uuid::Uuid;

use crate::extract;

/// A response: the output of a run before its first pause, between two pauses, or after the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseId {
    pub run_id: Uuid,
    pub pauses_before: usize,
}

impl ResponseId {
    pub const fn first_of(run_id: Uuid) -> Self {
        Self { run_id, pauses_before: 0 }
    }

    /// Parses an id; `None` if the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (run_id, rest) = run_and_rest(text.strip_prefix("resp_")?)?;
        let pauses_before = if rest.is_empty() { 0 } else { rest.parse().ok()? };
        Some(Self { run_id, pauses_before })
    }
}

impl fmt::Display for ResponseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "resp_{}", self.run_id.simple())?;
        if self.pauses_before > 0 {
            write!(f, "_{}", self.pauses_before)?;
        }
        Ok(())
    }
}

/// Returns the id of an item that an event of a run begins.
pub fn item_id(kind: &str, run_id: Uuid, since: EventId) -> String {
    format!("{kind}_{}_{}_{}", run_id.simple(), since.attempt, since.n)
}

/// Returns the run of an item, by the item's id.
pub fn run_of_item(id: &str) -> Option<Uuid> {
    let (kind, rest) = id.split_once('_')?;
    let is_known = ["msg", "rs", "fc", "mcp", "mcpr", "call"].contains(&kind);
    is_known.then(|| run_and_rest(rest)).flatten().map(|(run_id, _)| run_id)
}

/// Returns the event that begins an item, by the item's id. The id of an approval names none.
pub fn event_of_item(id: &str) -> Option<EventId> {
    let (_, rest) = run_and_rest(id.split_once('_')?.1)?;
    let (attempt, n) = rest.split_once('_')?;
    Some(EventId::new(attempt.parse().ok()?, n.parse().ok()?))
}

/// Returns the protocol's id of a call that the client executes.
pub fn call_id(run_id: Uuid, call_id: &str) -> String {
    format!("call_{}_{}", run_id.simple(), call_id.strip_prefix("call_").unwrap_or(call_id))
}

/// Returns the run and its own id of a call.
pub fn parse_call_id(id: &str) -> Option<(Uuid, String)> {
    let (run_id, rest) = run_and_rest(id.strip_prefix("call_")?)?;
    (!rest.is_empty()).then(|| (run_id, format!("call_{rest}")))
}

/// Returns the protocol's id of an approval.
pub fn approval_id(run_id: Uuid, approval_id: Uuid) -> String {
    format!("mcpr_{}_{}", run_id.simple(), approval_id.simple())
}

/// Returns the run and the id of an approval.
pub fn parse_approval_id(id: &str) -> Option<(Uuid, Uuid)> {
    let (run_id, rest) = run_and_rest(id.strip_prefix("mcpr_")?)?;
    Some((run_id, Uuid::try_parse(rest).ok()?))
}

/// Returns the protocol's id of a conversation.
pub fn conversation_id(id: Uuid) -> String {
    format!("conv_{}", id.simple())
}

/// Returns the conversation of an id.
pub fn parse_conversation_id(id: &str) -> Option<Uuid> {
    Uuid::try_parse(id.strip_prefix("conv_")?).ok().or_else(|| extract::id(id).ok())
}

fn run_and_rest(text: &str) -> Option<(Uuid, &str)> {
    let (run, rest) = text.split_once('_').unwrap_or((text, ""));
    (run.len() == 32).then(|| Uuid::try_parse(run).ok())?.map(|run_id| (run_id, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_parses_back_to_what_it_names() {
        let (run_id, other) = (Uuid::now_v7(), Uuid::now_v7());
        for pauses_before in [0, 1, 12] {
            let id = ResponseId { run_id, pauses_before };
            assert_eq!(ResponseId::parse(&id.to_string()), Some(id));
        }
        let call = format!("call_{}", other.simple());
        assert_eq!(parse_call_id(&call_id(run_id, &call)), Some((run_id, call)));
        assert_eq!(parse_approval_id(&approval_id(run_id, other)), Some((run_id, other)));
        assert_eq!(parse_conversation_id(&conversation_id(other)), Some(other));
        let item = item_id("msg", run_id, EventId::new(2, 17));
        assert_eq!((run_of_item(&item), event_of_item(&item)), (Some(run_id), Some(EventId::new(2, 17))));
        assert_eq!(event_of_item(&approval_id(run_id, other)), None);
        assert_eq!(["resp_1", "resp_", "call_7", ""].map(ResponseId::parse), [None; 4]);
        assert_eq!(["msg_1", "msg", "call_abc"].map(run_of_item), [None; 3]);
    }
}
