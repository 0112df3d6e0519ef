//! Conversations: durable lists of messages.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

/// The name under which its owner finds a conversation again. One owner has at most one conversation of each handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handle {
    /// What a client calls its session.
    Session(String),
    /// What a client calls its chat.
    Chat(String),
    /// The one standing conversation with an agent.
    Agent(Uuid),
}

impl Handle {
    /// The agent that such a conversation is with.
    pub const fn agent_id(&self) -> Option<Uuid> {
        match self {
            Self::Session(_) | Self::Chat(_) => None,
            Self::Agent(id) => Some(*id),
        }
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(name) => write!(f, "session:{name}"),
            Self::Chat(name) => write!(f, "chat:{name}"),
            Self::Agent(id) => write!(f, "agent:{id}"),
        }
    }
}

/// Most characters of a title that nobody has given.
const TITLE_CHARS: usize = 60;

/// What a conversation is called that nobody has named: the first whole words of what is said in it.
pub fn title_of(content: &str) -> Option<String> {
    let words: Vec<&str> = content.split_whitespace().take(TITLE_CHARS).collect();
    let text = words.join(" ");
    let Some((end, _)) = text.char_indices().nth(TITLE_CHARS) else {
        return Some(text).filter(|text| !text.is_empty());
    };
    let fits = &text[..end];
    // Whole words, where there are any: not every script has spaces.
    let whole = fits.rfind(' ').filter(|_| !text[end..].starts_with(' ')).map_or(fits, |space| &fits[..space]);
    Some(format!("{whole}…"))
}

/// A conversation, as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Conversation {
    pub id: Uuid,
    /// What somebody has named it, or else the first words of what is said in it.
    pub title: Option<String>,
    pub agent_id: Option<Uuid>,
    /// The run that is at work in it, or next in its queue.
    pub live_run_id: Option<Uuid>,
    /// The checkpoint that it was forked from.
    pub forked_from: Option<Uuid>,
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
    #[serde(serialize_with = "crate::timestamp::optional_milliseconds")]
    pub last_message_at: Option<DateTime<Utc>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_whole_words() {
        let check = |content: &str, title: Option<&str>| assert_eq!(title_of(content).as_deref(), title, "{content:?}");
        check("Hello", Some("Hello"));
        check("  What is\n\tthe tide? ", Some("What is the tide?"));
        check(" \n", None);
        let sixty = "a".repeat(60);
        check(&sixty, Some(&sixty));
        check(&format!("{sixty} b"), Some(&format!("{sixty}…")));
        check(&format!("{}a", "潮".repeat(60)), Some(&format!("{}…", "潮".repeat(60))));
        check(&"nine char ".repeat(9), Some("nine char nine char nine char nine char nine char nine char…"));
        check(&"tencharact ".repeat(9), Some("tencharact tencharact tencharact tencharact tencharact…"));
    }
}
