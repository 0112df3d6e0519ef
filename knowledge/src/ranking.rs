//! The results of several searches, put together by their ranks.

use std::collections::HashMap;

use crate::passage::PassageId;

/// Ranks count by `1 / (SMOOTHING + rank)`, so that the first ranks of one search do not outweigh the agreement of two. The
/// value is the usual one of reciprocal rank fusion.
const SMOOTHING: f64 = 60.0;

/// The lowest place of the passage that is first by words. A passage that only one search finds would come after each that two
/// find, so a document without vectors would not be found by its name.
const PLACE_BY_WORDS: usize = 3;

/// Returns the results of the searches, best first. Each search has its own order, best first; scores of different searches
/// cannot be compared. The passage that is first by words has at least the third place.
pub fn fuse(by_words: &[PassageId], by_vectors: &[Vec<PassageId>], limit: usize) -> Vec<(PassageId, f64)> {
    let mut scores: HashMap<PassageId, f64> = HashMap::new();
    for found in std::iter::once(by_words).chain(by_vectors.iter().map(Vec::as_slice)) {
        for (rank, id) in found.iter().enumerate() {
            *scores.entry(*id).or_default() += 1.0 / (SMOOTHING + rank as f64 + 1.0);
        }
    }
    let mut ranked: Vec<(PassageId, f64)> = scores.into_iter().collect();
    ranked.sort_unstable_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    if let Some(at) = by_words.first().and_then(|first| ranked.iter().position(|(id, _)| id == first)) {
        raise(&mut ranked[..=at], PLACE_BY_WORDS.min(limit));
    }
    ranked.truncate(limit);
    ranked
}

/// Raises the last of the passages to a place, counted from 1, if it is lower.
fn raise(ranked: &mut [(PassageId, f64)], place: usize) {
    if place > 0 && ranked.len() > place {
        ranked[place - 1..].rotate_right(1);
        // The order of the scores is the order of the passages.
        ranked[place - 1].1 = ranked[place].1.next_up();
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn id(number: u64) -> PassageId {
        PassageId { document_id: Uuid::nil(), number }
    }

    fn numbers(fused: &[(PassageId, f64)]) -> Vec<u64> {
        assert!(fused.is_sorted_by(|one, next| one.1 >= next.1), "{fused:?}");
        fused.iter().map(|(id, _)| id.number).collect()
    }

    #[test]
    fn a_passage_that_both_searches_find_comes_first() {
        let fused = fuse(&[1, 2, 3].map(id), &[[4, 2].map(id).to_vec()], 3);
        assert_eq!(numbers(&fused), [2, 1, 4]);
        assert!(fuse(&[], &[vec![]], 3).is_empty());
    }

    #[test]
    fn the_first_by_words_is_found_whatever_the_vectors_say() {
        let both: Vec<PassageId> = (1..50).map(id).collect();
        let by_words: Vec<PassageId> = [id(99)].into_iter().chain(both.iter().copied()).collect();
        let by_vectors = [both];
        assert_eq!(numbers(&fuse(&by_words, &by_vectors, 5)), [1, 2, 99, 3, 4]);
        assert_eq!(numbers(&fuse(&by_words, &by_vectors, 2)), [1, 99]);
        assert_eq!(numbers(&fuse(&by_words, &by_vectors, 1)), [99]);
        assert!(fuse(&by_words, &by_vectors, 0).is_empty());
        assert_eq!(numbers(&fuse(&by_words, &[], 2)), [99, 1]);
    }
}
