//! The texts of documents: extracted by a child with limits, in the turns of all extractions.
//!
//! A document's first try is short, so that no other document waits long for it. If it runs out, the document gets a long try,
//! in a lower queue. Ingestions make their tries themselves (`executor/ingestion.rs`); the texts for models are kept here, once
//! per contents.

use std::{error::Error, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{Stream, stream};
use holdfast_extraction::{ExtractFailure, ExtractionError, Extractor};
use holdfast_shared::{
    config::counted_owner,
    excerpt,
    file::{StoredFile, parts_of},
    file_store::{self, FileStore},
    queue::Queue,
    storable::storable,
};
use tokio::time::Instant;

use crate::{
    document_texts::{DocumentTexts, ExtractedText},
    extraction_schedule::{TextReader, TryLength, TurnKind},
    extraction_turns::{ExtractionTurn, ExtractionTurns},
    slow_documents::SlowDocuments,
};

/// Bytes of a document for which its first try has as much time again.
const BYTES_PER_TRY: u64 = 8 * 1024 * 1024;

/// Extracts the texts of documents.
pub struct DocumentReader {
    pub file_store: FileStore,
    pub queue: Queue,
    pub extractor: Extractor,
    /// The extractions of this process at a time. Owners count as in `counted_owner`.
    pub turns: ExtractionTurns,
    pub slow: SlowDocuments,
    pub texts: DocumentTexts,
    /// Bytes of a text; the rest is cut.
    pub text_bytes: usize,
    /// Time of the first try of a small document.
    pub first_try: Duration,
    /// Time of a long try, and of all documents of a chat's attempt.
    pub limit: Duration,
}

impl DocumentReader {
    /// Returns the text of an owner's document up to the limit, or the reason why there is none. It takes at most `left`, with
    /// the wait for a turn.
    pub async fn text_of(&self, owner: &str, file: &StoredFile, left: Duration) -> Result<Arc<str>, String> {
        if let Some(known) = self.texts.get(file.content_id) {
            return known.map_err(|error| error.to_string());
        }
        let mut reading =
            ChatExtraction { reader: self, owner: counted_owner(owner), file, left, worked: Duration::ZERO };
        let text: ExtractedText = match reading.text().await? {
            Err(ExtractionError::ExtractionTimedOut(_)) => {
                Err(ExtractionError::timed_out(reading.worked.min(self.limit)))
            }
            text => text,
        };
        // A reader that had little time, or that the system has ended, says nothing about the document.
        let is_of_document = match &text {
            Ok(_) => true,
            Err(ExtractionError::ExtractionTimedOut(_)) => reading.worked >= self.limit / 2,
            Err(ExtractionError::ExtractionFailed(_) | ExtractionError::ReaderNotStarted(_)) => false,
            Err(_) => true,
        };
        if let Err(error) = &text {
            tracing::warn!(%error, file.id = %file.id, "failed to extract the text of a file");
        }
        if is_of_document {
            self.texts.keep(file.content_id, text.clone());
        }
        text.map_err(|error| error.to_string())
    }

    /// Returns the length of a document's next try. A document that is known to be slow gets no further short one.
    pub fn next_try(&self, file: &StoredFile) -> TryLength {
        let is_short = self.first_try_of(file) < self.limit && !self.slow.contains(file.content_id);
        if is_short { TryLength::Short } else { TryLength::Long }
    }

    /// Returns the extractor for one try of a document.
    pub fn extractor_for(&self, file: &StoredFile, kind: TurnKind) -> Extractor {
        let time = match kind.length {
            TryLength::Short => self.first_try_of(file),
            TryLength::Long => self.limit,
        };
        let extractor = self.extractor.within(time);
        match (kind.reader, kind.length) {
            (TextReader::Chat, _) => extractor.niced(10),
            (TextReader::Ingestion, TryLength::Short) => extractor.niced(19),
            // After this try, the document has failed. On a busy machine, a child of the highest nice value hardly gets a core.
            (TextReader::Ingestion, TryLength::Long) => extractor.niced(19).patient(),
        }
    }

    /// Ends a turn, and lets this worker claim another document.
    pub async fn end_turn(&self, turn: ExtractionTurn) {
        drop(turn);
        if self.turns.free_for_ingestions() > 0 {
            let _ = self.queue.wake().await;
        }
    }

    fn first_try_of(&self, file: &StoredFile) -> Duration {
        first_try(self.first_try, file.bytes)
    }
}

/// Returns the time of the first try of a document: more for a larger one, up to 2.5 times as much.
fn first_try(of_small: Duration, bytes: u64) -> Duration {
    let of_all = BYTES_PER_TRY * 3 / 2;
    of_small.mul_f64(1.0 + bytes.min(of_all) as f64 / BYTES_PER_TRY as f64)
}

/// The extraction of a document for a model.
struct ChatExtraction<'a> {
    reader: &'a DocumentReader,
    owner: &'a str,
    file: &'a StoredFile,
    /// Time that is left, with the waits for turns.
    left: Duration,
    /// Time of the tries.
    worked: Duration,
}

impl ChatExtraction<'_> {
    /// Extracts the text, with a long try after a short one that runs out. Fails with words if nothing is known of the document.
    async fn text(&mut self) -> Result<ExtractedText, String> {
        let (reader, file) = (self.reader, self.file);
        let length = reader.next_try(file);
        let text = self.try_once(length).await?;
        let runs_out = matches!(text, Err(ExtractionError::ExtractionTimedOut(_)));
        if length == TryLength::Long || !runs_out || self.worked < reader.first_try_of(file) {
            return Ok(text);
        }
        reader.slow.note(file.content_id);
        if self.left.is_zero() { Ok(text) } else { self.try_once(TryLength::Long).await }
    }

    async fn try_once(&mut self, length: TryLength) -> Result<ExtractedText, String> {
        let (reader, file) = (self.reader, self.file);
        let kind = TurnKind { length, reader: TextReader::Chat };
        let asked = Instant::now();
        let turn = reader.turns.take(self.owner, kind, self.left).await;
        self.left = self.left.saturating_sub(asked.elapsed());
        let turn = turn.filter(|_| !self.left.is_zero());
        let turn = turn.ok_or("the documents before it took all of the time; send it again later")?;
        let began = Instant::now();
        let contents = Box::pin(contents_of(reader.file_store.clone(), file.clone()));
        let extractor = reader.extractor_for(file, kind).within(self.left);
        let extraction = extractor.extract(&file.media_type, contents).await;
        self.worked += began.elapsed();
        self.left = self.left.saturating_sub(began.elapsed());
        reader.end_turn(turn).await;
        match extraction {
            Ok(document) => Ok(Ok(excerpt::bytes(storable(document.text), reader.text_bytes).into())),
            Err(ExtractFailure::Document(error)) => Ok(Err(error)),
            Err(ExtractFailure::Contents(error)) => {
                tracing::warn!(error = &error as &dyn Error, file.id = %file.id, "failed to read a document");
                Err("the store of files does not answer".to_owned())
            }
        }
    }
}

/// Returns the contents of a file, part by part.
pub fn contents_of(store: FileStore, file: StoredFile) -> impl Stream<Item = Result<Bytes, file_store::Error>> {
    let parts = parts_of(file.bytes);
    stream::unfold((store, file, 0), move |(store, file, number)| async move {
        if number == parts {
            return None;
        }
        let part = store.get(file.content_id, number, file.bytes).await;
        Some((part, (store, file, number + 1)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_document_has_a_longer_first_try() {
        let check = |mib: u64, expected_ms| {
            let time = first_try(Duration::from_secs(2), mib * 1024 * 1024);
            assert_eq!(time, Duration::from_millis(expected_ms), "{mib} MiB");
        };
        check(0, 2000);
        check(1, 2250);
        check(8, 4000);
        check(12, 5000);
        check(500, 5000);
    }
}
