//! The vectors of collections in memory, within a limit of bytes.
//!
//! The comparison with a question is exact but for the rounding of each vector to one byte a dimension, so it finds what an
//! index of neighbours might miss.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::passage::PassageId;

/// A collection with the model of its vectors.
pub type VectorKey = (Uuid, String);

/// Turns of loads. Keys of one turn wait for each other.
const TURNS: usize = 32;

/// The vectors of collections that this process has in memory.
pub struct VectorMemory {
    kept: Mutex<KeptVectors>,
    turns: [tokio::sync::Mutex<()>; TURNS],
    hasher: RandomState,
    pub most_bytes: usize,
}

#[derive(Default)]
struct KeptVectors {
    collections: HashMap<VectorKey, Arc<CollectionVectors>>,
    /// Bytes that loads under way will need.
    reserved: HashMap<VectorKey, usize>,
}

/// Room in the memory for one load. Dropping it gives the room back.
pub struct VectorRoom<'a> {
    memory: &'a VectorMemory,
    key: VectorKey,
}

/// The vectors of one collection.
#[derive(Debug, Default, Clone)]
pub struct CollectionVectors {
    /// The state of the collection in which the vectors were read.
    pub state: VectorState,
    pub dimensions: usize,
    /// True if the vectors have no room, so none of them is here.
    pub is_too_large: bool,
    documents: BTreeMap<Uuid, Arc<VectorsOfDocument>>,
}

/// The state of the vectors of a collection, which each change of them changes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct VectorState {
    pub documents: u64,
    /// The vectors of these documents.
    pub vectors: u64,
    /// The time of the newest change.
    pub changed_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Default, Clone)]
struct VectorsOfDocument {
    changed_at: Option<DateTime<Utc>>,
    numbers: Vec<u32>,
    /// One byte for each dimension of each passage.
    codes: Vec<i8>,
}

/// A document, how many passages it has, and when its vectors were changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddedDocument {
    pub id: Uuid,
    pub passages: u64,
    pub changed_at: Option<DateTime<Utc>>,
}

impl VectorMemory {
    /// Returns a memory of so many bytes.
    pub fn new(most_bytes: usize) -> Self {
        let turns = std::array::from_fn(|_| tokio::sync::Mutex::default());
        Self { kept: Mutex::default(), turns, hasher: RandomState::new(), most_bytes }
    }

    pub fn get(&self, key: &VectorKey) -> Option<Arc<CollectionVectors>> {
        self.lock().collections.get(key).cloned()
    }

    /// Waits until no other load of this collection is under way.
    pub async fn turn(&self, key: &VectorKey) -> tokio::sync::MutexGuard<'_, ()> {
        self.turns[self.hasher.hash_one(key) as usize % TURNS].lock().await
    }

    /// Makes room for the vectors of a collection: the largest other collections leave. `None` if they have no room beside the
    /// loads that are under way; then no collection leaves.
    pub fn make_room(&self, key: &VectorKey, bytes: usize) -> Option<VectorRoom<'_>> {
        let mut kept = self.lock();
        if bytes + kept.reserved.values().sum::<usize>() > self.most_bytes {
            return None;
        }
        kept.reserved.insert(key.clone(), bytes);
        kept.shrink_to(self.most_bytes, key);
        Some(VectorRoom { memory: self, key: key.clone() })
    }

    /// Keeps the vectors of a collection.
    pub fn keep(&self, key: &VectorKey, vectors: Arc<CollectionVectors>) {
        let mut kept = self.lock();
        kept.collections.insert(key.clone(), vectors);
    }

    fn lock(&self) -> MutexGuard<'_, KeptVectors> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptVectors {
    /// Removes the largest collections, but not that of the key, until all fit. A collection whose room is reserved counts once.
    fn shrink_to(&mut self, most_bytes: usize, key: &VectorKey) {
        let Self { collections, reserved } = self;
        let all_reserved = reserved.values().sum::<usize>();
        let other =
            |(other, _): &(&VectorKey, &Arc<CollectionVectors>)| *other != key && !reserved.contains_key(*other);
        loop {
            let others = || collections.iter().filter(other);
            if all_reserved + others().map(|(_, kept)| kept.bytes()).sum::<usize>() <= most_bytes {
                return;
            }
            let largest = others().max_by_key(|(_, kept)| kept.bytes()).map(|(other, _)| other.clone());
            let Some(largest) = largest else { return };
            collections.remove(&largest);
        }
    }
}

impl Drop for VectorRoom<'_> {
    fn drop(&mut self) {
        self.memory.lock().reserved.remove(&self.key);
    }
}

impl CollectionVectors {
    /// Returns those of these vectors that are still the ones of their documents, which shares them with this collection, and the
    /// documents whose vectors must be read.
    pub fn still_valid(&self, documents: &[EmbeddedDocument]) -> (Self, Vec<EmbeddedDocument>) {
        let mut valid = Self { dimensions: self.dimensions, ..Self::default() };
        let mut unread = Vec::new();
        for document in documents {
            match self.documents.get(&document.id).filter(|known| known.changed_at == document.changed_at) {
                Some(known) => drop(valid.documents.insert(document.id, Arc::clone(known))),
                None => unread.push(*document),
            }
        }
        (valid, unread)
    }

    /// Returns the note that the vectors have no room.
    pub fn too_large(state: VectorState, dimensions: usize) -> Self {
        Self { state, dimensions, is_too_large: true, documents: BTreeMap::new() }
    }

    /// Adds rows of documents.
    pub fn add(&mut self, documents: &[EmbeddedDocument], rows: &[(Uuid, i64, Vec<u8>)]) {
        for document in documents {
            let known = self.documents.entry(document.id).or_default();
            Arc::make_mut(known).changed_at = document.changed_at;
        }
        for (document_id, number, bytes) in rows {
            let values: Vec<f32> = bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            if self.dimensions == 0 {
                self.dimensions = values.len();
            }
            // A provider may change what a model of this name gives.
            if values.len() == self.dimensions {
                let document = Arc::make_mut(self.documents.entry(*document_id).or_default());
                document.numbers.push(*number as u32);
                document.codes.extend(code(&values));
            }
        }
    }

    /// Returns the bytes of the vectors.
    pub fn bytes(&self) -> usize {
        self.documents.values().map(|document| document.codes.len()).sum()
    }

    /// Returns the passages that are nearest to a question, best first, each with its score.
    pub fn nearest(&self, question: &[i8], limit: usize) -> Vec<(PassageId, f64)> {
        let product = |codes: &[i8]| -> i32 {
            codes.iter().zip(question).map(|(one, other)| i32::from(*one) * i32::from(*other)).sum()
        };
        let mut scored: Vec<(i32, PassageId)> = Vec::new();
        for (document_id, document) in &self.documents {
            let codes = document.codes.chunks_exact(self.dimensions.max(1));
            let scores = codes.zip(&document.numbers).map(|(codes, number)| {
                (product(codes), PassageId { document_id: *document_id, number: u64::from(*number) })
            });
            scored.extend(scores);
        }
        let limit = limit.min(scored.len());
        if limit == 0 {
            return Vec::new();
        }
        scored.select_nth_unstable_by(limit - 1, |one, other| other.cmp(one));
        scored.truncate(limit);
        scored.sort_unstable_by(|one, other| other.cmp(one));
        scored.into_iter().map(|(score, id)| (id, f64::from(score))).collect()
    }
}

/// Returns a vector of length 1 with one byte for each dimension. All vectors have one scale, so their products can be
/// compared.
pub fn code(values: &[f32]) -> Vec<i8> {
    let scale = scale(values.len());
    values.iter().map(|x| (x * scale).round().clamp(-127.0, 127.0) as i8).collect()
}

/// Returns the scale of vectors with so many dimensions, which keeps the usual sizes of hundreds of dimensions apart.
pub fn scale(dimensions: usize) -> f32 {
    127.0 / (4.0 / (dimensions.max(1) as f32).sqrt()).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(document: u128, number: i64, values: &[f32]) -> (Uuid, i64, Vec<u8>) {
        let length = values.iter().map(|x| x * x).sum::<f32>().sqrt();
        let bytes = values.iter().flat_map(|x| (x / length).to_le_bytes()).collect();
        (Uuid::from_u128(document), number, bytes)
    }

    fn document(id: u128, changed_ms: i64) -> EmbeddedDocument {
        let changed_at = DateTime::from_timestamp_millis(changed_ms);
        EmbeddedDocument { id: Uuid::from_u128(id), passages: 9, changed_at }
    }

    fn key(id: u128) -> VectorKey {
        (Uuid::from_u128(id), "m".into())
    }

    /// Keeps a collection of one document with so many bytes; returns whether it had room.
    fn keep(memory: &VectorMemory, id: u128, bytes: usize) -> bool {
        let Some(_room) = memory.make_room(&key(id), bytes) else { return false };
        let mut vectors = CollectionVectors::default();
        vectors.add(&[document(id, 1)], &[row(id, 0, &vec![1.0; bytes])]);
        memory.keep(&key(id), Arc::new(vectors));
        true
    }

    fn kept(memory: &VectorMemory) -> Vec<bool> {
        (1..=3).map(|id| memory.get(&key(id)).is_some()).collect()
    }

    #[test]
    fn the_nearest_vectors_come_first() {
        let mut vectors = CollectionVectors::default();
        let rows = [
            row(1, 0, &[1.0, 0.0, 0.1]),
            row(1, 1, &[0.0, 1.0, 0.0]),
            row(2, 0, &[0.9, 0.3, 0.0]),
            row(3, 0, &[1.0, 0.0]),
        ];
        vectors.add(&[document(1, 1), document(2, 1), document(3, 1)], &rows);
        let nearest = vectors.nearest(&code(&[1.0, 0.0, 0.0]), 2);
        let ids: Vec<(u128, u64)> = nearest.iter().map(|(id, _)| (id.document_id.as_u128(), id.number)).collect();
        assert_eq!(ids, [(1, 0), (2, 0)], "a vector of other dimensions is left out");
        assert!(CollectionVectors::default().nearest(&[1], 5).is_empty());
    }

    #[test]
    fn only_vectors_of_unchanged_documents_stay_valid() {
        let mut vectors = CollectionVectors::default();
        vectors.add(&[document(1, 1), document(2, 1)], &[row(1, 0, &[1.0, 0.0]), row(2, 0, &[1.0, 0.0])]);
        let (valid, unread) = vectors.still_valid(&[document(2, 1), document(1, 7), document(3, 1)]);
        assert_eq!((valid.bytes(), unread), (2, vec![document(1, 7), document(3, 1)]));
    }

    #[test]
    fn the_largest_other_collection_leaves_a_full_memory() {
        let memory = VectorMemory::new(10);
        assert!(keep(&memory, 1, 4) && keep(&memory, 2, 5) && keep(&memory, 3, 3));
        assert_eq!(kept(&memory), [true, false, true]);
    }

    #[test]
    fn a_collection_without_room_lets_no_other_leave() {
        let memory = VectorMemory::new(10);
        assert!(keep(&memory, 1, 4) && keep(&memory, 2, 6));
        assert!(!keep(&memory, 3, 11));
        assert_eq!(kept(&memory), [true, true, false]);
        let loading = memory.make_room(&key(1), 4);
        assert!(memory.make_room(&key(3), 7).is_none(), "the load under way has its room");
        drop(loading);
        assert!(keep(&memory, 3, 7));
    }
}
