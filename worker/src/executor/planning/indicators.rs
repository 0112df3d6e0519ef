//! The facts that the words of a user tell about a project that is to be created.

use std::collections::BTreeSet;

/// Confidence at which there is enough to create the project.
pub const SUFFICIENT: f64 = 0.6;

/// The weights of indicators in the confidence.
const HIGH: f64 = 0.5;
const MEDIUM: f64 = 0.25;
const LOW: f64 = 0.1;

const TYPES: &[&str] = &[
    "app",
    "application",
    "website",
    "web site",
    "site",
    "blog",
    "shop",
    "store",
    "book",
    "novel",
    "event",
    "conference",
    "wedding",
    "research",
    "study",
    "thesis",
    "course",
    "game",
    "film",
    "podcast",
    "campaign",
    "startup",
    "product",
    "trip",
    "renovation",
    "应用",
    "网站",
    "书",
    "活动",
    "会议",
    "研究",
    "论文",
    "课程",
    "游戏",
];
const DELIVERABLES: &[&str] = &[
    "build", "create", "launch", "publish", "write", "develop", "design", "make", "organise", "organize", "ship",
    "release", "开发", "创建", "制作", "发布", "设计", "写",
];
const GOALS: &[&str] =
    &["want to", "need to", "goal is", "trying to", "would like to", "aim to", "hope to", "想", "需要", "目标"];
/// After a kind of project, these say what it is for.
const PURPOSES: &[&str] = &[" for ", " about ", " to help ", " that ", " which ", "用于", "关于", "用来"];
const TIMELINES: &[&str] = &[
    "by next",
    "this month",
    "next month",
    "next week",
    "deadline",
    "urgent",
    "by the end",
    "within",
    "as soon as",
    "截止",
    "紧急",
];
const SCALES: &[&str] = &["small", "mvp", "comprehensive", "prototype", "simple", "large", "pilot", "小型", "原型"];

/// The facts that the words of a user tell about a project.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Indicators {
    has_project_type: bool,
    has_deliverable: bool,
    /// How much is known, from 0 to 1.
    pub confidence: f64,
}

impl Indicators {
    pub fn of(text: &str) -> Self {
        let text = text.to_lowercase();
        let words: BTreeSet<&str> = text.split(|character: char| !character.is_alphanumeric()).collect();
        // A phrase, and a word of a script without spaces, may stand anywhere.
        let has = |indicators: &[&str]| {
            indicators.iter().any(|indicator| {
                let is_word = indicator.is_ascii() && !indicator.contains(' ');
                if is_word { words.contains(indicator) } else { text.contains(indicator) }
            })
        };
        let (has_project_type, has_deliverable) = (has(TYPES), has(DELIVERABLES));
        let weights = [
            (has_project_type, HIGH),
            (has_deliverable, MEDIUM),
            (has(GOALS) || (has_project_type && has(PURPOSES)), MEDIUM),
            (has(TIMELINES), LOW),
            (has(SCALES), LOW),
        ];
        let confidence =
            weights.iter().filter(|(is_there, _)| *is_there).map(|(_, weight)| weight).sum::<f64>().min(1.0);
        Self { has_project_type, has_deliverable, confidence }
    }

    /// Returns whether the words neither suffice nor tell that nothing is known.
    pub fn are_inconclusive(self) -> bool {
        self.confidence > 0.0 && self.confidence < SUFFICIENT
    }

    /// Returns one or two questions about what is missing.
    pub fn questions(self) -> Vec<String> {
        let kind =
            "What kind of project is it to be: an app, a website, a book, an event, research, or something else?";
        let deliverable = "What should exist when the project is done?";
        let purpose = "What is it for, and who is it for?";
        match (self.has_project_type, self.has_deliverable) {
            (false, false) => vec![kind.to_owned(), deliverable.to_owned()],
            (false, true) => vec![kind.to_owned()],
            (true, false) => vec![deliverable.to_owned()],
            (true, true) => vec![purpose.to_owned()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_tell_how_much_is_known_about_a_project() {
        for (text, sufficient, questions) in [
            ("I want to start a new project", false, 2),
            ("I want to start a new project\nIt's a mobile app for fitness tracking", true, 1),
            ("It's a mobile app for fitness tracking", true, 1),
            ("a fitness app", false, 1),
            ("something for my garden", false, 2),
            ("Build an app by next month", true, 1),
            ("build something", false, 1),
            ("我想开发一个应用", true, 1),
            ("an apple a day", false, 2),
            ("", false, 2),
        ] {
            let indicators = Indicators::of(text);
            assert_eq!(indicators.confidence >= SUFFICIENT, sufficient, "{text}: {indicators:?}");
            assert_eq!(indicators.questions().len(), questions, "{text}");
        }
    }
}
