//! SEARCH: entities by their names, also with a typing error or a part of a word.

use holdfast_shared::database::{Error, args};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Workspace, tables::table};
use crate::{entity::folded, kind::Kind};

/// A search for names.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// Words of names.
    pub query: &'a str,
    /// The kinds to look through.
    pub kinds: &'a [Kind],
    /// Only entities of this project.
    pub project_id: Option<Uuid>,
    /// Only entities in this state.
    pub state: Option<&'a str>,
    /// Most results.
    pub limit: usize,
}

/// An entity that a search has found.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Found {
    /// Its kind.
    pub kind: Kind,
    /// The entity.
    pub id: Uuid,
    /// Its name or title.
    pub name: String,
    /// Its project; null for a project.
    pub project_id: Option<Uuid>,
    /// Its state.
    pub state: Option<String>,
    /// How well the name has the query, from 0 to 1.
    pub score: f64,
}

/// Candidates of each kind that the database returns: those whose names have the parts with the most weight.
const CANDIDATES: usize = 50;

/// Words of a query and of a name that are compared, characters of a word, and parts of a query. They bound the work of one
/// search.
const MAX_WORDS: usize = 8;
const MAX_NAME_WORDS: usize = 20;
const MAX_WORD_CHARS: usize = 30;
const MAX_PARTS: usize = 64;

/// The least score of a result.
const LEAST: f64 = 0.4;

impl Workspace {
    /// Finds live entities by their names, best first, the shortest name first among equals.
    pub async fn search(&self, owner: &str, search: Search<'_>) -> Result<Vec<Found>, Error> {
        let words = words(&folded(search.query), MAX_WORDS);
        let parts = parts(&words);
        let mut found = Vec::new();
        for kind in search.kinds {
            let args = args![owner, search.project_id, parts.clone(), search.state.map(str::to_owned), CANDIDATES];
            let rows = self.database.fetch_all::<(Uuid, Option<Uuid>, String, Option<String>)>(
                "search the workspace",
                table(*kind).search,
                args,
            );
            for (id, project_id, name, state) in rows.await? {
                let score = score(&words, &folded(&name));
                if score >= LEAST {
                    found.push(Found { kind: *kind, id, name, project_id, state, score });
                }
            }
        }
        let order = |one: &Found, other: &Found| {
            let by_length = one.name.len().cmp(&other.name.len());
            other.score.total_cmp(&one.score).then(by_length).then(other.id.cmp(&one.id))
        };
        found.sort_by(order);
        found.truncate(search.limit);
        Ok(found)
    }
}

fn words(text: &str, most: usize) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.take(most).map(|word| word.chars().take(MAX_WORD_CHARS).collect()).collect()
}

/// Returns the parts of words that a name must have at least one of, each with its weight. A whole word weighs as much as its
/// parts, which an error may leave in a name.
fn parts(words: &[String]) -> Value {
    let of_word = |word: &String| {
        let chars: Vec<char> = word.chars().collect();
        // Two letters that changed places leave no two of a short word together.
        let size = if chars.len() < 5 {
            1
        } else if chars.len() < 7 {
            2
        } else {
            3
        };
        let windows: Vec<String> = chars.windows(size).map(|part| part.iter().collect()).collect();
        let whole = json!({"part": word, "weight": windows.len()});
        let parts = windows.into_iter().map(|part| json!({"part": part, "weight": 1}));
        std::iter::once(whole).chain(parts).collect::<Vec<_>>()
    };
    // Short words, such as "the", are in too many names, unless there are no others.
    let is_telling = |word: &&String| word.chars().count() > 3 || !word.is_ascii();
    let telling: Vec<&String> = words.iter().filter(is_telling).collect();
    let searched = if telling.is_empty() { words.iter().collect() } else { telling };
    searched.into_iter().flat_map(of_word).take(MAX_PARTS).collect()
}

/// Returns how well a name has the words of a query, from 0 to 1.
fn score(words: &[String], name: &str) -> f64 {
    if words.is_empty() {
        return 0.0;
    }
    let name = self::words(name, MAX_NAME_WORDS);
    let best = |word: &String| name.iter().map(|of_name| likeness(word, of_name)).fold(0.0, f64::max);
    words.iter().map(best).sum::<f64>() / words.len() as f64
}

/// Returns the likeness of two words, from 0 to 1.
fn likeness(word: &str, of_name: &str) -> f64 {
    if word == of_name {
        return 1.0;
    }
    if of_name.starts_with(word) {
        return 0.9;
    }
    if of_name.contains(word) {
        return 0.75;
    }
    let lengths = [word, of_name].map(|text| text.chars().count());
    let (longest, difference) = (lengths[0].max(lengths[1]), lengths[0].abs_diff(lengths[1]));
    // One error in three characters at most.
    if difference * 3 > longest {
        return 0.0;
    }
    let errors = strsim::osa_distance(word, of_name);
    if errors * 3 > longest { 0.0 } else { 0.85 * (1.0 - errors as f64 / longest as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(query: &str, name: &str) -> f64 {
        score(&words(&folded(query), MAX_WORDS), &folded(name))
    }

    #[test]
    fn a_name_is_like_a_query_by_its_words() {
        let order = [
            of("harbour", "The Harbour"),
            of("harb", "Harbour"),
            of("arbour", "Harbour"),
            of("harbuor", "Harbour"),
            of("harbour tide", "Harbour"),
        ];
        assert!(order.is_sorted_by(|one, other| one > other) && order[4] >= LEAST, "{order:?}");
        for (typed, name) in [("taks", "task"), ("gaol", "Goal"), ("tdie", "tide tables"), ("paln", "plan")] {
            let word = words(typed, MAX_WORDS);
            let shares = |part: &Value| folded(name).contains(part["part"].as_str().unwrap());
            assert!(of(typed, name) >= LEAST && parts(&word).as_array().unwrap().iter().any(shares), "{typed}");
        }
        assert!(of("harbour", "Fitness app") < LEAST && of("", "Harbour") < LEAST);
        assert!(of("健身", "健身应用") > 0.8);
    }

    #[test]
    fn parts_of_a_query_are_bounded() {
        let words = words(&"harbour ".repeat(1000), MAX_WORDS);
        assert_eq!((words.len(), parts(&words).as_array().unwrap().len()), (MAX_WORDS, MAX_WORDS * 6));
        let long: Vec<String> = (0..MAX_WORDS).map(|n| format!("{n}").repeat(MAX_WORD_CHARS)).collect();
        assert_eq!(parts(&long).as_array().unwrap().len(), MAX_PARTS);
        let expected = json!([{"part": "ab", "weight": 2}, {"part": "a", "weight": 1}, {"part": "b", "weight": 1}]);
        assert_eq!(parts(&["ab".to_owned()]), expected);
    }
}
