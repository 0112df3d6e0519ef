//! Messages of a conversation.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{briefing::BriefingCard, finish_reason::FinishReason};

/// One message, as the API shows it and as `message.completed` carries it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Message {
    pub id: Uuid,
    /// What the client calls it, where it has given a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    pub conversation_id: Uuid,
    /// The run that the message started, or that wrote it; a card has none.
    pub run_id: Option<Uuid>,
    pub role: Role,
    #[serde(flatten)]
    pub content: Content,
    pub status: MessageStatus,
    /// Why the model ended it, if it is a complete answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// Where an answer came from, as `{"agent_run_id": …}`.
    pub retrieval_context: Option<Value>,
    /// Since when it is no longer part of the conversation: replaced by an edit, or rolled back.
    #[serde(default, serialize_with = "crate::timestamp::optional_milliseconds")]
    pub superseded_at: Option<DateTime<Utc>>,
    /// Which of several versions it is. Lists have it, where a message was edited or an answer was made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
}

/// The place of a message among the versions of it, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Version {
    /// From 1 to `count`.
    pub number: u32,
    /// At least 2.
    pub count: u32,
    /// The message of the version before.
    pub previous: Option<Uuid>,
    /// The message of the version after.
    pub next: Option<Uuid>,
}

/// What a message is: its kind (`content_type`), and the text or the structure that this kind has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "content_type", content = "content", rename_all = "snake_case")]
pub enum Content {
    /// What somebody said.
    Text(String),
    /// A briefing, as it was when the card was added.
    BriefingCard(BriefingCard),
}

impl Content {
    /// Reads what `kind` and `to_stored` have made. A kind that this version does not know is shown as the text that it is.
    pub fn from_stored(kind: &str, stored: String) -> Self {
        let card = match kind {
            "briefing_card" => serde_json::from_str(&stored).ok().map(Self::BriefingCard),
            _ => None,
        };
        card.unwrap_or(Self::Text(stored))
    }

    /// The content as one text.
    pub fn to_stored(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::BriefingCard(card) => serde_json::json!(card).to_string(),
        }
    }

    /// The kind's name.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::BriefingCard(_) => "briefing_card",
        }
    }

    /// The content as a model reads it, with labels in this language.
    pub fn model_text(&self, language: Language) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::BriefingCard(card) => card.model_text(language),
        }
    }
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
    System,
}

/// Whether the message is all that was to be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageStatus {
    Complete,
    /// The run was cancelled; the content is what it had said by then.
    Cancelled,
    /// The run failed; the content is what it had said by then.
    Failed,
}

/// The language of the labels on cards, as a model reads them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    #[default]
    Zh,
    En,
}

crate::text_enum!(Role { User = "user", Assistant = "assistant", System = "system" });
crate::text_enum!(MessageStatus { Complete = "complete", Cancelled = "cancelled", Failed = "failed" });

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> Content {
        Content::BriefingCard(BriefingCard {
            briefing_id: Uuid::nil(),
            title: "为什么会这样？".into(),
            summary: "a\nb".into(),
            priority: None,
            data: None,
            created_at: DateTime::UNIX_EPOCH,
        })
    }

    #[test]
    fn every_kind_survives_the_database_and_the_wire() {
        for content in [Content::Text("为什么会这样？".into()), card()] {
            assert_eq!(Content::from_stored(content.kind(), content.to_stored()), content);
            let shown = serde_json::to_value(&content).unwrap();
            assert_eq!(shown["content_type"], content.kind());
            assert_eq!(serde_json::from_value::<Content>(shown).unwrap(), content);
        }
    }

    #[test]
    fn an_unknown_kind_is_shown_as_its_text() {
        assert_eq!(Content::from_stored("poll", "{}".into()), Content::Text("{}".into()));
    }
}
