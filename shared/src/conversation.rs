//! Conversations: durable lists of messages.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{
    hidden::{is_visible, without_hidden},
    run::RunStatus,
};

/// A name under which an owner finds a conversation again. An owner has at most one conversation per handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handle {
    /// The session id that a client chose.
    Session(String),
    /// The chat id that a client chose.
    Chat(String),
    /// The one standing conversation with this agent.
    Agent(Uuid),
}

impl Handle {
    /// Returns the agent of a standing conversation.
    pub const fn agent_id(&self) -> Option<Uuid> {
        match self {
            Self::Session(_) | Self::Chat(_) => None,
            Self::Agent(id) => Some(*id),
        }
    }
}

/// Prefix of the handles of sessions.
const SESSION: &str = "session:";

/// Prefix of the handles of chats.
const CHAT: &str = "chat:";

/// Returns the client's name for a chat with this handle; `None` if the handle is no chat's.
pub fn chat_name(handle: &str) -> Option<&str> {
    handle.strip_prefix(CHAT)
}

impl Session {
    /// Returns the conversation as a session, or `None` if its handle is no session's.
    pub fn of(handle: &str, conversation: Conversation) -> Option<Self> {
        Some(Self {
            session_id: handle.strip_prefix(SESSION)?.to_owned(),
            conversation_id: conversation.id,
            title: conversation.title,
            agent_id: conversation.agent_id,
            live_run_id: conversation.live_run_id,
            created_at: conversation.created_at,
            last_message_at: conversation.last_message_at,
        })
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(name) => write!(f, "{SESSION}{name}"),
            Self::Chat(name) => write!(f, "{CHAT}{name}"),
            Self::Agent(id) => write!(f, "agent:{id}"),
        }
    }
}

/// Most characters of a generated title.
const TITLE_CHARS: usize = 60;

/// Returns a title for a conversation without one: the first words of its first message. `None` for an empty text.
pub fn title_of(content: &str) -> Option<String> {
    let words: Vec<_> = content.split_whitespace().take(TITLE_CHARS).map(without_hidden).collect();
    let text = words.iter().filter(|word| !word.is_empty()).map(AsRef::as_ref).collect::<Vec<&str>>().join(" ");
    let Some((end, _)) = text.char_indices().nth(TITLE_CHARS) else {
        return Some(text).filter(|text| is_visible(text));
    };
    let fits = &text[..end];
    // Chinese and similar scripts have no spaces, so a text without any is truncated between characters.
    let words = fits.rfind(' ').filter(|_| !text[end..].starts_with(' ')).map_or(fits, |space| &fits[..space]);
    Some(format!("{words}…"))
}

/// A conversation, as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Conversation {
    /// UUIDv7.
    pub id: Uuid,
    /// The title that a client gave, else the first words of the first message.
    pub title: Option<String>,
    /// The agent that answers in it; null for a plain conversation.
    pub agent_id: Option<Uuid>,
    /// Collections that its runs answer from, beside those of its agent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub knowledge: Vec<Uuid>,
    /// The first unfinished run of its queue: running, waiting or queued.
    pub live_run_id: Option<Uuid>,
    /// The checkpoint that the conversation was forked from.
    pub forked_from: Option<Uuid>,
    /// The conversation that owns this checkpoint.
    pub forked_conversation_id: Option<Uuid>,
    /// Time of the database.
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
    /// Time of the database at which the newest message was stored; null for an empty conversation.
    #[serde(serialize_with = "crate::timestamp::optional_milliseconds")]
    pub last_message_at: Option<DateTime<Utc>>,
    /// Only in a search: the newest matching message. Absent where the title alone has all words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<SearchHit>,
}

/// A conversation, as a front end lists it.
#[derive(Debug, Clone)]
pub struct Chat {
    /// The chat id that a client chose, if any.
    pub name: Option<String>,
    /// Fields that its client keeps with it.
    pub metadata: Map<String, Value>,
    /// The status of its live run, else of its newest one.
    pub run_status: Option<RunStatus>,
    /// The conversation.
    pub conversation: Conversation,
}

/// The message in which a search found its words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Found)]
pub struct SearchHit {
    /// The matching message.
    pub message_id: Uuid,
    /// The id that the client gave this message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// One line of at most 142 characters around the first word.
    pub excerpt: String,
}

/// Most characters of an excerpt, and most characters before the word.
const EXCERPT_CHARS: usize = 140;
const BEFORE_CHARS: usize = 40;

/// Returns the text around a word as one line, or the beginning of the text if it lacks the word.
pub fn excerpt_of(content: &str, word: &str) -> String {
    let line: Vec<char> = content.split_whitespace().collect::<Vec<_>>().join(" ").chars().collect();
    let word: Vec<char> = word.chars().collect();
    let is_same = |one: &char, other: &char| one.to_lowercase().eq(other.to_lowercase());
    let at = line
        .windows(word.len().max(1))
        .position(|window| window.iter().zip(&word).all(|(one, other)| is_same(one, other)));
    let start = at.unwrap_or_default().saturating_sub(BEFORE_CHARS);
    let end = line.len().min(start + EXCERPT_CHARS);
    let before = if start > 0 { "…" } else { "" };
    let after = if end < line.len() { "…" } else { "" };
    format!("{before}{}{after}", line[start..end].iter().collect::<String>())
}

/// A session, as a list shows it: a conversation with a client's own name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Session {
    /// The name that the client chose.
    pub session_id: String,
    /// The conversation of this session.
    pub conversation_id: Uuid,
    /// The title that a client gave, else the first words of the first message.
    pub title: Option<String>,
    /// The agent that answers in it; null for a plain conversation.
    pub agent_id: Option<Uuid>,
    /// The first unfinished run of its queue: running, waiting or queued.
    pub live_run_id: Option<Uuid>,
    /// Time of the database.
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
    /// Time of the database at which the newest message was stored; null for an empty session.
    #[serde(serialize_with = "crate::timestamp::optional_milliseconds")]
    pub last_message_at: Option<DateTime<Utc>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_the_line_around_the_word() {
        let check =
            |content: &str, word: &str, expected: &str| assert_eq!(excerpt_of(content, word), expected, "{word:?}");
        check("The tide\n\n turns  at six.", "SIX", "The tide turns at six.");
        check("", "six", "");
        check("潮汐是怎么形成的", "形成", "潮汐是怎么形成的");
        check("Straße", "ß", "Straße");
        let long = format!("{} tide {}", "a ".repeat(60).trim(), "b ".repeat(90).trim());
        let excerpt = excerpt_of(&long, "tide");
        assert!(excerpt.starts_with("…a ") && excerpt.contains(" tide b ") && excerpt.ends_with('…'), "{excerpt}");
        assert_eq!(excerpt.chars().count(), EXCERPT_CHARS + 2);
        check(&"x".repeat(200), "tide", &format!("{}…", "x".repeat(140)));
    }

    #[test]
    fn a_title_is_the_first_whole_words() {
        let check = |content: &str, title: Option<&str>| assert_eq!(title_of(content).as_deref(), title, "{content:?}");
        check("Hello", Some("Hello"));
        check("  What is\n\tthe tide? ", Some("What is the tide?"));
        check(" \n", None);
        check("The \u{202e}tide\u{200b} \u{2066} 👩\u{200d}💻", Some("The tide 👩\u{200d}💻"));
        check("\u{200b} \u{202e}", None);
        let sixty = "a".repeat(60);
        check(&sixty, Some(&sixty));
        check(&format!("{sixty} b"), Some(&format!("{sixty}…")));
        check(&format!("{}a", "潮".repeat(60)), Some(&format!("{}…", "潮".repeat(60))));
        check(&"nine char ".repeat(9), Some("nine char nine char nine char nine char nine char nine char…"));
        check(&"tencharact ".repeat(9), Some("tencharact tencharact tencharact tencharact tencharact…"));
    }
}
