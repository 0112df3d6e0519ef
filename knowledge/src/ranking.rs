//! The results of several searches, put together by their ranks.

use std::collections::HashMap;

use crate::passage::PassageId;

/// Ranks count by `1 / (SMOOTHING + rank)`, so that the first ranks of one search do not outweigh the agreement of two. The
/// value is the usual one of reciprocal rank fusion.
const SMOOTHING: f64 = 60.0;

/// Returns the results of the searches, best first. Each search has its own order, best first; scores of different searches
/// cannot be compared.
pub fn fuse(searches: &[Vec<PassageId>], limit: usize) -> Vec<(PassageId, f64)> {
    let mut scores: HashMap<PassageId, f64> = HashMap::new();
    for found in searches {
        for (rank, id) in found.iter().enumerate() {
            *scores.entry(*id).or_default() += 1.0 / (SMOOTHING + rank as f64 + 1.0);
        }
    }
    let mut ranked: Vec<(PassageId, f64)> = scores.into_iter().collect();
    ranked.sort_unstable_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    ranked.truncate(limit);
    ranked
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_passage_that_both_searches_find_comes_first() {
        let id = |number| PassageId { document_id: Uuid::nil(), number };
        let fused = fuse(&[vec![id(1), id(2), id(3)], vec![id(4), id(2)]], 3);
        assert_eq!(fused.iter().map(|(id, _)| id.number).collect::<Vec<_>>(), [2, 1, 4]);
        assert!(fuse(&[vec![], vec![]], 3).is_empty());
    }
}
