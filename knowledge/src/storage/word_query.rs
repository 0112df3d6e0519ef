//! Which passages a search by words looks for: those with a rare word, or with two common ones together.

use serde_json::{Value, json};

/// Most passages that one search ranks, roughly.
pub const CANDIDATES: usize = 2000;

/// Passages with a rare word, from which a search does without words that most passages have.
const ENOUGH: usize = 50;

/// Passages that SQLite's index would rank for longer than a search may take.
pub const UNRANKED: f64 = 40_000.0;

/// A word of a query in a collection.
pub struct Term {
    pub term: String,
    pub passages: f64,
    pub weight: f64,
}

/// The condition for a passage: one of the rare words, or two common ones together.
pub struct WordQuery<'a> {
    any_of: Vec<&'a Term>,
    all_of: Vec<&'a Term>,
    /// The number of passages that fit, roughly.
    pub fits: f64,
}

impl<'a> WordQuery<'a> {
    /// Takes the rarest terms as far as few passages have them. `None` if there is no term. `all` is the number of all
    /// passages.
    pub fn of(terms: &'a [Term], all: f64) -> Option<Self> {
        let mut passages = 0.0;
        let is_rare = |term: &&Term| {
            passages += term.passages;
            passages <= CANDIDATES as f64
        };
        let any_of: Vec<&Term> = terms.iter().take_while(is_rare).collect();
        let mut all_of: Vec<&Term> = terms[any_of.len()..].iter().take(2).collect();
        let found: f64 = any_of.iter().map(|term| term.passages).sum();
        let together = all_of.iter().fold(all, |passages, term| passages * term.passages / all);
        // Passages with a rare word rank before most of the many with two of the commonest words.
        let is_enough = found >= ENOUGH as f64 && together > CANDIDATES as f64;
        if is_enough || (found > 0.0 && together > UNRANKED) {
            all_of.clear();
        }
        let fits = if all_of.is_empty() { found } else { found + together };
        (!terms.is_empty()).then_some(Self { any_of, all_of, fits })
    }

    /// Returns the condition for SQLite.
    pub fn text(&self) -> String {
        let together = (!self.all_of.is_empty()).then(|| format!("({})", joined(&self.all_of, " AND ")));
        let alternatives = self.any_of.iter().map(|term| term.term.clone()).chain(together);
        alternatives.collect::<Vec<_>>().join(" OR ")
    }

    /// Returns the alternatives of the condition for PostgreSQL, each with its weight.
    pub fn alternatives(&self) -> Value {
        let together = (!self.all_of.is_empty()).then(|| {
            let weight: f64 = self.all_of.iter().map(|term| term.weight).sum();
            json!({"query": joined(&self.all_of, " & "), "weight": weight})
        });
        let rare = self.any_of.iter().map(|term| json!({"query": term.term, "weight": term.weight}));
        rare.chain(together).collect()
    }
}

fn joined(terms: &[&Term], operator: &str) -> String {
    terms.iter().map(|term| term.term.as_str()).collect::<Vec<_>>().join(operator)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(passages: &[f64]) -> Vec<Term> {
        let term = |(n, passages): (usize, &f64)| Term { term: format!("t{n}"), passages: *passages, weight: 1.0 };
        passages.iter().enumerate().map(term).collect()
    }

    #[test]
    fn a_query_has_the_rare_words_and_two_common_ones_together() {
        let check = |passages: &[f64], any_of: &[&str], all_of: &[&str]| {
            let terms = terms(passages);
            let query = WordQuery::of(&terms, 20_000.0).unwrap();
            let found = (joined(&query.any_of, " "), joined(&query.all_of, " "));
            assert_eq!(found, (any_of.join(" "), all_of.join(" ")), "{passages:?}");
        };
        check(&[1.0, 10.0], &["t0", "t1"], &[]);
        check(&[10.0, 1900.0, 5000.0, 6000.0, 9000.0], &["t0", "t1"], &["t2", "t3"]);
        check(&[5000.0], &[], &["t0"]);
        check(&[60.0, 9000.0, 9500.0], &["t0"], &[]);
        check(&[40.0, 9000.0, 9500.0], &["t0"], &["t1", "t2"]);
        assert!(WordQuery::of(&[], 20_000.0).is_none());
    }

    #[test]
    fn words_that_almost_all_passages_have_stand_alone_only() {
        let fits = |passages: &[f64]| {
            let terms = terms(passages);
            let query = WordQuery::of(&terms, 100_000.0).unwrap();
            (query.any_of.len(), query.all_of.len(), query.fits)
        };
        assert_eq!(fits(&[88_000.0]), (0, 1, 88_000.0));
        assert_eq!(fits(&[80_000.0, 90_000.0]), (0, 2, 72_000.0));
        assert_eq!(fits(&[10.0, 80_000.0, 90_000.0]), (1, 0, 10.0));
        assert_eq!(fits(&[10.0, 20_000.0, 90_000.0]), (1, 2, 18_010.0));
    }
}
