//! Briefings: news for one owner, which the owner can discuss with an agent.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::message::Language;

/// A briefing, as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Briefing {
    /// UUIDv7, chosen by storage.
    pub id: Uuid,
    /// The agent that the owner can discuss the briefing with.
    pub agent_id: Uuid,
    /// Plain text of one line, as its author wrote it.
    pub title: String,
    /// Plain text, as its author wrote it.
    pub summary: String,
    /// A label that its author chose, such as `P1`.
    pub priority: Option<String>,
    /// Any JSON for the front end. No model reads it.
    pub data: Option<Value>,
    /// Time that the author gave, else the time of storage.
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
}

/// A copy of a briefing in a conversation, taken when the card was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BriefingCard {
    /// The briefing that was copied; it may be deleted since.
    pub briefing_id: Uuid,
    /// Title at the time of the copy.
    pub title: String,
    /// Summary at the time of the copy.
    pub summary: String,
    /// The author's label at the time of the copy, such as `P1`.
    pub priority: Option<String>,
    /// The author's JSON at the time of the copy.
    pub data: Option<Value>,
    /// The briefing's own time, not the time of the card's message.
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
}

impl From<Briefing> for BriefingCard {
    fn from(briefing: Briefing) -> Self {
        let Briefing { id, title, summary, priority, data, created_at, .. } = briefing;
        Self { briefing_id: id, title, summary, priority, data, created_at }
    }
}

/// The labels that a model reads on a card.
struct Labels {
    heading: &'static str,
    title: &'static str,
    summary: &'static str,
    priority: &'static str,
}

impl Labels {
    const fn of(language: Language) -> Self {
        match language {
            Language::Zh => {
                Self { heading: "简报", title: "标题：", summary: "摘要：", priority: "优先级：" }
            }
            Language::En => {
                Self { heading: "Briefing", title: "Title: ", summary: "Summary: ", priority: "Priority: " }
            }
        }
    }
}

impl BriefingCard {
    /// Returns the card as a model reads it: time in UTC, title, summary, and the priority if there is one.
    pub fn model_text(&self, language: Language) -> String {
        let Labels { heading, title, summary, priority } = Labels::of(language);
        let at = self.created_at.format("%Y-%m-%d %H:%M");
        let mut text = format!("[{heading} {at}]\n{title}{}\n{summary}{}", self.title, self.summary);
        if let Some(own) = &self.priority {
            text.push_str(&format!("\n{priority}{own}"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_has_the_labels_of_its_language() {
        let mut card = BriefingCard {
            briefing_id: Uuid::nil(),
            title: "Review耗时超标".into(),
            summary: "中位耗时30小时...".into(),
            priority: Some("P1".into()),
            data: Some(serde_json::json!({"secret": 1})),
            created_at: "2026-01-07T18:00:30+08:00".parse::<DateTime<Utc>>().unwrap(),
        };
        let expected = "[简报 2026-01-07 10:00]\n标题：Review耗时超标\n摘要：中位耗时30小时...\n优先级：P1";
        assert_eq!(card.model_text(Language::Zh), expected);
        card.priority = None;
        let expected = "[Briefing 2026-01-07 10:00]\nTitle: Review耗时超标\nSummary: 中位耗时30小时...";
        assert_eq!(card.model_text(Language::En), expected);
    }
}
