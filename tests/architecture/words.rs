//! The rules for words (CONTRIBUTING.md): each sentence names its actor, and each type name is one type.

use std::collections::BTreeMap;

use crate::tracked;

/// Words that no comment, page or name of a test has: they hide the actor of a sentence, or a term of the field is meant.
const WORDS: &[&str] = &[
    "whoever",
    "nobody",
    "anew",
    "is told",
    "are told",
    "was told",
    "goes on",
    "go on",
    "went on",
    "has come to",
    "what comes",
    "of before",
    "by whom",
];

/// Beginnings of sentences that have no actor.
const BEGINNINGS: &[&str] = &["Who ", "What ", "Whatever ", "Whoever ", "Nobody ", "The same "];

/// Names that contain one of the words, each with its reason.
const NAMES: &[&str] = &[
    // The user of Unix systems.
    "`nobody`",
    "by default nobody for a worker that runs as root",
    "commands run as nobody",
    "65534 / nobody",
    // A button of the page, and a column of a benchmark.
    "Go on talking about it",
    "begun_anew",
    "a_stdio_server_of_a_root_worker_runs_as_user_nobody_and_sees_nothing_of_it",
];

/// A page that a hostile model wrote.
const HOSTILE: &str = "tests/page/hostile.md";

/// The prose of a file by line: a page without its code; comments of code, and the texts that a user or an operator reads.
fn prose(name: &str, text: &str) -> Vec<(usize, String)> {
    let mut is_code = false;
    let lines = text.lines().enumerate().filter_map(|(index, line)| {
        let trimmed = line.trim_start();
        if name.ends_with(".md") {
            let is_fence = trimmed.starts_with("```");
            is_code ^= is_fence;
            return (!is_code && !is_fence).then(|| (index + 1, line.to_owned()));
        }
        let marks: &[&str] = if name.ends_with(".py") || name.ends_with(".sh") {
            &["#"]
        } else {
            &["///", "//!", "//", "/**", "/*", "*"]
        };
        let comment = marks.iter().find_map(|mark| trimmed.strip_prefix(mark)).map(str::to_owned);
        let is_shown = name.contains("/src/i18n/") || (name.ends_with(".rs") && !name.contains("tests"));
        comment.or_else(|| is_shown.then(|| literals(line))).map(|prose| (index + 1, prose))
    });
    lines.collect()
}

/// The texts between quotation marks.
fn literals(line: &str) -> String {
    line.split('"').skip(1).step_by(2).collect::<Vec<_>>().join(" / ")
}

fn word_in(text: &str) -> Option<&'static str> {
    let plain = text.to_lowercase().replace(|c: char| !c.is_alphanumeric(), " ");
    WORDS.iter().copied().find(|word| format!(" {plain} ").contains(&format!(" {word} ")))
}

fn beginning_in(text: &str) -> Option<&'static str> {
    let sentence = text.trim_start_matches([' ', '-', '*', '|', '>']);
    let begins = |beginning: &&str| sentence.starts_with(*beginning) || text.contains(&format!(". {beginning}"));
    // A question may begin so.
    if text.trim_end().ends_with('?') {
        return None;
    }
    BEGINNINGS.iter().copied().find(begins)
}

#[test]
fn sentences_name_their_actor() {
    let mut found = Vec::new();
    for (name, text) in tracked(&["*.rs", "*.md", "*.ts", "*.tsx", "*.mjs", "*.py", "*.sh"]) {
        if name == HOSTILE {
            continue;
        }
        for (number, line) in prose(&name, &text) {
            let line = NAMES.iter().fold(line, |line, name| line.replace(name, ""));
            if let Some(fault) = word_in(&line).or_else(|| beginning_in(&line)) {
                found.push(format!("{name}:{number}: {:?} in {}", fault.trim(), line.trim()));
            }
        }
        let functions = text.lines().filter_map(|line| line.trim_start().split("fn ").nth(1)?.split('(').next());
        for function in functions.filter(|function| !NAMES.contains(function)) {
            if let Some(word) = word_in(function) {
                found.push(format!("{name}: {word:?} in the name {function}"));
            }
        }
    }
    assert!(found.is_empty(), "name the actor (CONTRIBUTING.md):\n{}", found.join("\n"));
}

#[test]
fn each_type_name_is_one_type() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    // A model names its types after those that it is a model of, and a client after those of the wire.
    let is_named_after = |name: &str| name.starts_with("tests/model/") || name.starts_with("clients/");
    for (name, text) in tracked(&["*.rs"]).into_iter().filter(|(name, _)| !is_named_after(name)) {
        for (index, line) in text.lines().enumerate() {
            if let Some(defined) = type_defined_by(line) {
                places.entry(defined.to_owned()).or_default().push(format!("{name}:{}", index + 1));
            }
        }
    }
    // Each module has an error and rows of its own.
    places.retain(|name, places| places.len() > 1 && name != "Error" && name != "Row");
    assert!(places.is_empty(), "{places:#?}");
}

/// A schema of the OpenAPI document has the name of its type, or that of its attribute, and the document keeps one of each name.
#[test]
fn each_schema_of_the_document_is_one_type() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, text) in tracked(&["*.rs"]) {
        let (mut is_schema, mut renamed) = (false, None);
        for (index, line) in text.lines().enumerate() {
            is_schema |= line.contains("derive(") && line.contains("ToSchema");
            if let Some((_, rest)) = line.split_once("#[schema(as = ") {
                renamed = rest.split([')', ',']).next();
            }
            let Some(defined) = type_defined_by(line) else { continue };
            if is_schema {
                places.entry(renamed.unwrap_or(defined).to_owned()).or_default().push(format!("{name}:{}", index + 1));
            }
            (is_schema, renamed) = (false, None);
        }
    }
    assert!(places.len() > 50, "the types derive their schemas");
    places.retain(|_, places| places.len() > 1);
    assert!(places.is_empty(), "{places:#?}");
}

/// The name of the type that a line defines, but for associated types.
fn type_defined_by(line: &str) -> Option<&str> {
    let mut text = line.trim_start();
    if let Some(public) = text.strip_prefix("pub") {
        text = public.strip_prefix('(').and_then(|inner| inner.split_once(')')).map_or(public, |(_, rest)| rest);
        text = text.trim_start();
    }
    let is_associated = line.starts_with(' ') && text.starts_with("type ");
    let rest = ["struct ", "enum ", "trait ", "union ", "type "].iter().find_map(|kind| text.strip_prefix(kind))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let name = &rest[..end];
    (!is_associated && name.starts_with(|first: char| first.is_ascii_uppercase())).then_some(name)
}
