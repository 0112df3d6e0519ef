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

/// What the handles of sessions begin with.
const SESSION: &str = "session:";

impl Session {
    /// The session that a conversation is, if its handle is that of one.
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
    let words = fits.rfind(' ').filter(|_| !text[end..].starts_with(' ')).map_or(fits, |space| &fits[..space]);
    Some(format!("{words}…"))
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
    /// The conversation of that checkpoint.
    pub forked_conversation_id: Option<Uuid>,
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
    #[serde(serialize_with = "crate::timestamp::optional_milliseconds")]
    pub last_message_at: Option<DateTime<Utc>>,
    /// Of a search: the newest message that has what was searched for, where the title has not all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<SearchHit>,
}

/// The place at which a search has found a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Found)]
pub struct SearchHit {
    pub message_id: Uuid,
    /// The id that the message's client has given it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// A line around the first word that was searched for.
    pub excerpt: String,
}

/// Characters of an excerpt, and of what stands before the word.
const EXCERPT_CHARS: usize = 140;
const BEFORE_CHARS: usize = 40;

/// The line of a text around this word; the text's beginning where the word is not found.
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

/// A session, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Session {
    /// The name that the client chose.
    pub session_id: String,
    pub conversation_id: Uuid,
    /// What somebody has named it, or else the first words of what is said in it.
    pub title: Option<String>,
    pub agent_id: Option<Uuid>,
    /// The run that is at work in it, or next in its queue.
    pub live_run_id: Option<Uuid>,
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
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
        let sixty = "a".repeat(60);
        check(&sixty, Some(&sixty));
        check(&format!("{sixty} b"), Some(&format!("{sixty}…")));
        check(&format!("{}a", "潮".repeat(60)), Some(&format!("{}…", "潮".repeat(60))));
        check(&"nine char ".repeat(9), Some("nine char nine char nine char nine char nine char nine char…"));
        check(&"tencharact ".repeat(9), Some("tencharact tencharact tencharact tencharact tencharact…"));
    }
}
