//! The project that the scripted model creates where a planner is asked for one, without a directive.

use serde_json::json;

use super::{
    script::{ScriptTool, ScriptedCall},
    text_of,
};
use crate::model::{ToolSpec, Turn};

const TOOL: &str = "create_onto_project";

/// The words of a system prompt of a planner that is to create a project.
const PLACE: &str = "in the context project_create.";

/// Longest name in characters.
const LONGEST_NAME: usize = 80;

/// Words before the name of a project.
const OPENING: [&str; 30] = [
    "it's", "it", "this", "is", "i", "i'd", "we", "we'd", "want", "need", "would", "like", "to", "please", "let's",
    "let", "us", "build", "create", "start", "make", "develop", "launch", "write", "plan", "a", "an", "the", "my",
    "our",
];

/// Returns the call that creates the project, if the prompt asks for one and the tool is offered. The words that the user
/// has written most are its name.
pub(super) fn creation(system: Option<&str>, turns: &[Turn], offered: &[ToolSpec]) -> Option<ScriptedCall> {
    let is_asked = system.is_some_and(|system| system.contains(PLACE));
    if !is_asked || !offered.iter().any(|tool| tool.name == TOOL) {
        return None;
    }
    let texts = turns.iter().filter_map(|turn| match turn {
        Turn::User(parts) => Some(without_directives(&text_of(parts))),
        _ => None,
    });
    let (name, text) = texts.map(|text| (name_in(&text), text)).max_by_key(|(name, _)| name.chars().count())?;
    let name = if name.is_empty() { "New project".to_owned() } else { name };
    let arguments = json!({"name": name, "description": text}).to_string();
    Some(ScriptedCall { tool: ScriptTool::Named(TOOL.to_owned()), arguments })
}

/// Returns the first sentence without its opening words, with a capital letter.
fn name_in(text: &str) -> String {
    let sentence = text.split(['\n', '.', '!', '?', '。', '！', '？']).find(|sentence| !sentence.trim().is_empty());
    let is_opening = |word: &&str| OPENING.contains(&word.to_lowercase().replace('’', "'").as_str());
    let words: Vec<&str> = sentence.unwrap_or_default().split_whitespace().skip_while(is_opening).collect();
    let name = words.join(" ");
    let mut letters = name.chars().take(LONGEST_NAME);
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

fn without_directives(text: &str) -> String {
    let mut rest = text;
    let mut left = String::new();
    while let Some((before, after)) = rest.split_once('[') {
        left.push_str(before);
        rest = after.split_once(']').map_or("", |(_, after)| after);
    }
    left.push_str(rest);
    left.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool() -> ToolSpec {
        ToolSpec { name: TOOL.to_owned(), description: String::new(), input_schema: json!({}) }
    }

    #[test]
    fn the_words_of_the_user_name_the_project() {
        for (texts, name) in [
            (&["It's a mobile app for fitness tracking [tokens=2]"][..], "Mobile app for fitness tracking"),
            (
                &["I want to start a new project", "It’s a mobile app for fitness tracking"],
                "Mobile app for fitness tracking",
            ),
            (&["Build a website. It has ten pages about tides."], "Website"),
            (&["我想开发一个应用"], "我想开发一个应用"),
            (&["[tokens=1]"], "New project"),
        ] {
            let turns: Vec<Turn> = texts.iter().map(|text| Turn::user(*text)).collect();
            let call = creation(Some("The user is in the context project_create."), &turns, &[tool()]).unwrap();
            let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap();
            assert_eq!(arguments["name"], name);
        }
    }

    #[test]
    fn a_project_is_created_only_where_one_is_asked_for() {
        let turns = [Turn::user("It's a mobile app")];
        assert_eq!(creation(Some("The user is in the context global."), &turns, &[tool()]), None);
        assert_eq!(creation(Some("The user is in the context project_create."), &turns, &[]), None);
        assert_eq!(creation(None, &turns, &[tool()]), None);
    }
}
