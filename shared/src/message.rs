//! Messages of a conversation.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    briefing::BriefingCard,
    file::Attachment,
    finish_reason::FinishReason,
    lenient::{self, Growing},
};

/// One message, as the API shows it and as `message.completed` carries it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Message {
    /// UUIDv7.
    pub id: Uuid,
    /// The id that the client gave its message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The conversation that the message belongs to, superseded messages included.
    pub conversation_id: Uuid,
    /// The run that the message started or that wrote it. A card and a message without a run have none.
    pub run_id: Option<Uuid>,
    /// True for a message that a client brought from elsewhere: no run wrote or answered it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given: bool,
    /// `user` for a client's message, `assistant` for an answer, `system` for a card.
    #[serde(deserialize_with = "lenient::word")]
    pub role: Role,
    /// Serialized as the two fields `content_type` and `content`.
    #[serde(flatten)]
    pub content: Content,
    /// Files of a client's message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// `complete` for every message of a client.
    #[serde(deserialize_with = "lenient::word")]
    pub status: MessageStatus,
    /// The model's reason for ending a complete answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// Sources of an answer, as `{"agent_run_id": …}`, and `documents` and `dropped` if its run had documents before it.
    pub retrieval_context: Option<Value>,
    /// Time at which an edit or a rollback removed the message from its conversation.
    #[serde(default, serialize_with = "crate::timestamp::optional_milliseconds")]
    pub superseded_at: Option<DateTime<Utc>>,
    /// Its number among several versions. Lists set it after an edit or a second answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// Time of the database.
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
}

/// The number of a message among its versions, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Version {
    /// From 1 to `count`.
    pub number: u32,
    /// At least 2.
    pub count: u32,
    /// The message of the version before this one.
    pub previous: Option<Uuid>,
    /// The message of the version after this one.
    pub next: Option<Uuid>,
}

/// The kind of a message (`content_type`), with the text or the structure of that kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(tag = "content_type", content = "content", rename_all = "snake_case")]
pub enum Content {
    /// Plain text of a client or of a model.
    Text(String),
    /// A copy of a briefing, taken when the card was added.
    BriefingCard(BriefingCard),
}

impl Content {
    /// Reads the output of `kind` and `to_stored`. A kind of a newer version becomes its stored text.
    pub fn from_stored(kind: &str, stored: String) -> Self {
        let card = match kind {
            "briefing_card" => serde_json::from_str(&stored).ok().map(Self::BriefingCard),
            _ => None,
        };
        card.unwrap_or(Self::Text(stored))
    }

    /// Returns the content as one text, for the database.
    pub fn to_stored(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::BriefingCard(card) => serde_json::json!(card).to_string(),
        }
    }

    /// Returns the content as one text, without a copy where it is a text.
    pub fn into_stored(self) -> String {
        match self {
            Self::Text(text) => text,
            card => card.to_stored(),
        }
    }

    /// Returns the kind's name, for the database.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::BriefingCard(_) => "briefing_card",
        }
    }

    /// Returns the content as a model reads it, with labels in this language.
    pub fn model_text(&self, language: Language) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::BriefingCard(card) => card.model_text(language),
        }
    }
}

/// Reads JSON of any version: a kind that this version does not know is its text.
impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Tagged {
            content_type: String,
            content: Value,
        }
        let Tagged { content_type, content } = Tagged::deserialize(deserializer)?;
        let text = match content {
            Value::String(text) => text,
            structure => structure.to_string(),
        };
        Ok(Self::from_stored(&content_type, text))
    }
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    /// A client, for its owner.
    User,
    /// The model.
    Assistant,
    /// The program, for a card.
    System,
}

/// Tells whether the message is a complete text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum MessageStatus {
    /// The message is all that its author wrote.
    Complete,
    /// The run was cancelled; the content is the text up to that moment.
    Cancelled,
    /// The run failed; the content is the text up to that moment.
    Failed,
}

/// The language of the labels that a model reads on cards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// Chinese.
    #[default]
    Zh,
    /// English.
    En,
}

crate::text_enum!(Role, MessageStatus);

impl Growing for Role {
    /// Only an event has a role to read, and that of an answer.
    const UNKNOWN: Self = Self::Assistant;
}

impl Growing for MessageStatus {
    /// The text is there.
    const UNKNOWN: Self = Self::Complete;
}

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
        let newer = serde_json::json!({"content_type": "poll", "content": {"a": 1}});
        assert_eq!(serde_json::from_value::<Content>(newer).unwrap(), Content::Text("{\"a\":1}".into()));
    }
}
