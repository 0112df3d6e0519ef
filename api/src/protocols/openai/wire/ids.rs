//! The ids of this protocol. Each begins with a word for its kind and has the run's id, so a request that names one finds the run.

use std::fmt;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use holdfast_shared::event_id::EventId;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::extract;

/// Characters of the run in the id of a call, and of the call itself.
const RUN_CHARS: usize = 22;
const CALL_CHARS: usize = 12;

/// Bytes of the digest that tell the calls of a run apart.
const DIGEST_BYTES: usize = 9;

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
    if kind == "call" {
        return run_of_call(id);
    }
    let is_known = ["msg", "rs", "fc", "mcp", "mcpr"].contains(&kind);
    // The id of a message that no run has made has nothing after its own.
    is_known.then(|| run_and_rest(rest)).flatten().filter(|(_, rest)| !rest.is_empty()).map(|(run_id, _)| run_id)
}

/// Returns the event that begins an item, by the item's id. The id of an approval names none.
pub fn event_of_item(id: &str) -> Option<EventId> {
    let (_, rest) = run_and_rest(id.split_once('_')?.1)?;
    let (attempt, n) = rest.split_once('_')?;
    Some(EventId::new(attempt.parse().ok()?, n.parse().ok()?))
}

/// Returns the protocol's id of a call that the client executes: at most 40 characters of `[A-Za-z0-9_-]`, as OpenAI demands.
pub fn call_id(run_id: Uuid, call_id: &str) -> String {
    let digest = Sha256::digest(call_id);
    let (run, call) = (BASE64_URL_SAFE_NO_PAD.encode(run_id), BASE64_URL_SAFE_NO_PAD.encode(&digest[..DIGEST_BYTES]));
    format!("call_{run}{call}")
}

/// Returns whether the protocol's id is that of a run's call.
pub fn is_id_of_call(id: &str, run_id: Uuid, call_id: &str) -> bool {
    id == self::call_id(run_id, call_id)
}

/// Returns the run of a call, by the protocol's id.
pub fn run_of_call(id: &str) -> Option<Uuid> {
    let rest = id.strip_prefix("call_").filter(|rest| rest.len() == RUN_CHARS + CALL_CHARS)?;
    let run = BASE64_URL_SAFE_NO_PAD.decode(rest.get(..RUN_CHARS)?).ok()?;
    // Ids of other servers may look like one.
    Uuid::from_slice(&run).ok().filter(|run_id| run_id.get_version_num() == 7)
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

/// Returns the name of a function of a namespace among the names of all tools.
pub fn flat_name(namespace: &str, name: &str) -> String {
    format!("{}{name}", prefix(namespace))
}

/// Returns the namespace and the own name of a function; `None` if it is in none of these.
pub fn split_name<'f, 'n>(flat: &'f str, namespaces: &'n [String]) -> Option<(&'n str, &'f str)> {
    let found =
        namespaces.iter().filter_map(|namespace| Some((namespace.as_str(), flat.strip_prefix(&prefix(namespace))?)));
    found.max_by_key(|(namespace, _)| namespace.len())
}

fn prefix(namespace: &str) -> String {
    if namespace.ends_with('_') { namespace.to_owned() } else { format!("{namespace}__") }
}

fn run_and_rest(text: &str) -> Option<(Uuid, &str)> {
    let (run, rest) = text.split_once('_').unwrap_or((text, ""));
    (run.len() == 32).then(|| Uuid::try_parse(run).ok())?.map(|run_id| (run_id, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_a_namespace_has_one_name_for_the_model_and_two_for_the_client() {
        let namespaces = ["mcp__files__".to_owned(), "mcp".to_owned(), "web".to_owned()];
        for (namespace, name, flat) in [("mcp__files__", "read", "mcp__files__read"), ("web", "get", "web__get")] {
            assert_eq!(flat_name(namespace, name), flat);
            assert_eq!(split_name(flat, &namespaces), Some((namespace, name)));
        }
        assert_eq!(split_name("ask", &namespaces), None);
    }

    #[test]
    fn each_id_parses_back_to_what_it_names() {
        let (run_id, other) = (Uuid::now_v7(), Uuid::now_v7());
        for pauses_before in [0, 1, 12] {
            let id = ResponseId { run_id, pauses_before };
            assert_eq!(ResponseId::parse(&id.to_string()), Some(id));
        }
        let call = format!("call_{}", other.simple());
        let id = call_id(run_id, &call);
        assert!(id.len() <= 40 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)), "{id}");
        assert_eq!((run_of_call(&id), run_of_item(&id)), (Some(run_id), Some(run_id)));
        assert!(is_id_of_call(&id, run_id, &call) && !is_id_of_call(&id, run_id, "call_1"));
        assert_eq!(run_of_call(&call), None, "the native id names no run");
        assert_eq!(run_of_call(&format!("call_{}", "x".repeat(34))), None);
        assert_eq!(parse_approval_id(&approval_id(run_id, other)), Some((run_id, other)));
        assert_eq!(parse_conversation_id(&conversation_id(other)), Some(other));
        let item = item_id("msg", run_id, EventId::new(2, 17));
        assert_eq!((run_of_item(&item), event_of_item(&item)), (Some(run_id), Some(EventId::new(2, 17))));
        assert_eq!(event_of_item(&approval_id(run_id, other)), None);
        assert_eq!(["resp_1", "resp_", "call_7", ""].map(ResponseId::parse), [None; 4]);
        assert_eq!(["msg_1", "msg", "call_abc"].map(run_of_item), [None; 3]);
        assert_eq!(run_of_item(&format!("msg_{}", other.simple())), None, "a message without a run");
    }
}
