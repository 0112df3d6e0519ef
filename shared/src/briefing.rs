//! Briefings: what somebody is to be text, and may talk about with an agent.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::message::Language;

/// A briefing, as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Briefing {
    pub id: Uuid,
    /// The agent to talk to about it.
    pub agent_id: Uuid,
    pub title: String,
    pub summary: String,
    /// In the words of whoever wrote it, such as `P1`.
    pub priority: Option<String>,
    /// For the front end; no model sees it.
    pub data: Option<Value>,
    /// As its author says, else when it was stored.
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
}

/// A briefing in a conversation, as it was when it was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BriefingCard {
    pub briefing_id: Uuid,
    pub title: String,
    pub summary: String,
    pub priority: Option<String>,
    pub data: Option<Value>,
    /// The briefing's own time, not the message's.
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
}

impl From<Briefing> for BriefingCard {
    fn from(briefing: Briefing) -> Self {
        let Briefing { id, title, summary, priority, data, created_at, .. } = briefing;
        Self { briefing_id: id, title, summary, priority, data, created_at }
    }
}

/// The words on a card.
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
    /// The card as a model reads it: the time in UTC, the summary as it was written, no line for a priority that it has not.
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
    fn a_card_is_told_with_the_labels_of_its_language() {
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
