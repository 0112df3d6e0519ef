//! The run of a document: its text is extracted, cut into passages, and put into the index; then [`super::embedding`] gets the
//! vectors. Each step is stored when it is done, so a later attempt continues after it.

use std::{error::Error, time::Duration};

use holdfast_extraction::{DocumentText, ExtractFailure, ExtractionError, passages};
use holdfast_knowledge::{Hold, Ingested, Knowledge, NewPassage, StoreOutcome};
use holdfast_shared::{
    config::counted_owner,
    event::{DocumentProgress, EventBody, IngestionStage, MessageDelta},
    file::StoredFile,
    run::RunError,
    storage::{Claim, Ingestion, Progress},
};
use tokio::task::spawn_blocking;

use super::{Stop, retry_query::retry_query};
use crate::{
    WorkerState,
    document_reader::contents_of,
    extraction_schedule::{TextReader, TryLength, TurnKind},
    extraction_turns::ExtractionTurn,
    lease::{Lease, Signal},
    recorder::Recorder,
};

/// Tries of an extraction whose child did not start, or whose file could not be read.
const TRIES: usize = 5;

/// Pause before another try.
const PAUSE: Duration = Duration::from_secs(1);

/// Pause of a document whose long try must wait, for each attempt before the next one.
const LONG_PAUSE: Duration = Duration::from_secs(15);

/// Longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// The ingestion of one document by one attempt.
pub(super) struct DocumentRun<'a> {
    pub shared: &'a WorkerState,
    pub claim: &'a Claim,
    pub lease: &'a mut Lease,
    pub recorder: &'a mut Recorder,
    pub knowledge: Knowledge,
    pub hold: Hold,
}

/// Makes a document ready for searches, from where an earlier attempt has left it.
pub async fn ingest(
    shared: &WorkerState,
    claim: &Claim,
    ingestion: Ingestion,
    lease: &mut Lease,
    recorder: &mut Recorder,
) -> Result<(), Stop> {
    let document_id = ingestion.document_id.ok_or_else(deleted)?;
    let hold = Hold { document_id, run_id: claim.run_id, attempt: claim.attempt };
    let knowledge = shared.documents.clone();
    let mut run = DocumentRun { shared, claim, lease, recorder, knowledge, hold };
    let state = run.state().await?;
    let passages = match state.extracted {
        Some((_, passages)) => {
            run.arrive();
            passages
        }
        None => run.extract(&state).await?,
    };
    // Order matters: searches find the document by its words, whatever the provider of vectors does.
    if !state.is_indexed {
        run.index(passages).await?;
    }
    let problem = run.embed(passages).await?;
    let counted = if passages == 1 { "1 passage".to_owned() } else { format!("{passages} passages") };
    let mut text = format!("{} is ready, with {counted}.", state.title);
    if let Some(problem) = problem {
        text = format!("{text} Searches do not find all of them by their meaning: {problem}.");
    }
    run.recorder
        .emit(&EventBody::MessageDelta(MessageDelta { message_id: claim.output_message_id, text: text.into() }));
    Ok(())
}

impl DocumentRun<'_> {
    async fn state(&mut self) -> Result<Ingested, Stop> {
        let (knowledge, id) = (&self.knowledge, self.hold.document_id);
        let state = retry_query(self.lease, self.recorder, || knowledge.ingested(id)).await?;
        state.ok_or_else(deleted)
    }

    /// Extracts the text, cuts it, and stores both. Returns the number of passages.
    async fn extract(&mut self, state: &Ingested) -> Result<u64, Stop> {
        let storage = &self.shared.worker.storage;
        let read = || storage.file(&state.owner_id, state.file_id);
        let file = retry_query(self.lease, self.recorder, read).await?.filter(StoredFile::is_complete);
        let file = file.ok_or_else(|| failed("file_gone", "the file of the document was deleted; upload it again"))?;
        let (text, turn) = self.text_of(&file, counted_owner(&state.owner_id)).await?;
        self.tell(IngestionStage::Extract, file.bytes, file.bytes);
        let (media_type, most) = (state.media_type.clone(), self.shared.worker.knowledge.passage_chars);
        let cut = spawn_blocking(move || {
            let passages = passages_of(&text, &media_type, most);
            (text, passages)
        });
        let (text, passages) = self.alongside(cut).await?.expect("a text is cut without a panic");
        let (knowledge, hold) = (&self.knowledge, self.hold);
        let store = || knowledge.store_text(hold, &text.text, &passages);
        expect_stored(retry_query(self.lease, self.recorder, store).await?)?;
        self.note_progress();
        // Order matters: the text was in memory until it was stored, so the turn has lasted as long.
        self.shared.document_reader.end_turn(turn).await;
        Ok(passages.len() as u64)
    }

    /// Notes that the claim's place expects no turn for this run any more.
    fn arrive(&self) {
        if let Some(place) = &self.claim.place {
            place.arrive();
        }
    }

    /// Waits for a turn, without a place meanwhile. Puts the run off if it must wait for its long try in the queue.
    async fn turn(&mut self, owner: &str, kind: TurnKind) -> Result<ExtractionTurn, Stop> {
        let request = self.shared.document_reader.turns.ask(owner, kind);
        self.arrive();
        let request = request.ok_or_else(|| Stop::PutOff(pause_of(self.claim.attempt)))?;
        let place = self.claim.place.as_ref();
        if let Some(place) = place.filter(|_| !request.is_granted()) {
            place.give_back();
        }
        let turn = self.alongside(request.granted()).await?;
        if let Some(place) = place {
            place.take_again();
        }
        Ok(turn)
    }

    /// Extracts the text, with a long try after a short one that runs out. Returns it with its turn.
    async fn text_of(&mut self, file: &StoredFile, owner: &str) -> Result<(DocumentText, ExtractionTurn), Stop> {
        let (shared, reader) = (self.shared, &self.shared.document_reader);
        let mut kind = TurnKind { length: reader.next_try(file), reader: TextReader::Ingestion };
        let mut turn = self.turn(owner, kind).await?;
        self.tell(IngestionStage::Extract, 0, file.bytes);
        let mut tries = 0;
        loop {
            let contents = Box::pin(contents_of(shared.worker.file_store.clone(), file.clone()));
            let extractor = reader.extractor_for(file, kind);
            let failure = match self.alongside(extractor.extract(&file.media_type, contents)).await? {
                Ok(text) => return Ok((text, turn)),
                Err(failure) => failure,
            };
            if matches!(failure, ExtractFailure::Document(ExtractionError::ExtractionTimedOut(_)))
                && kind.length == TryLength::Short
            {
                reader.slow.note(file.content_id);
                reader.end_turn(turn).await;
                kind.length = TryLength::Long;
                turn = self.turn(owner, kind).await?;
                continue;
            }
            tries += 1;
            match failure {
                ExtractFailure::Document(error) if !error.is_transient() || tries == TRIES => {
                    return Err(of_document(&error));
                }
                ExtractFailure::Contents(_) if tries == TRIES => {
                    return Err(failed(
                        "file_unreadable",
                        "the file of the document cannot be read now; try again later",
                    ));
                }
                failure => tracing::warn!(%failure, "failed to extract the text of a document; trying again"),
            }
            self.alongside(tokio::time::sleep(PAUSE)).await?;
        }
    }

    /// Puts the words of all passages into the index, and lets searches find the document.
    async fn index(&mut self, passages: u64) -> Result<(), Stop> {
        let (knowledge, hold) = (self.knowledge.clone(), self.hold);
        let mut done = 0;
        self.tell(IngestionStage::Index, done, passages);
        loop {
            let indexed = retry_query(self.lease, self.recorder, || knowledge.index_some(hold)).await?;
            match indexed.ok_or_else(deleted)? {
                0 => break,
                indexed => done += indexed as u64,
            }
            self.tell(IngestionStage::Index, done.min(passages), passages);
            self.note_progress();
        }
        let stored = retry_query(self.lease, self.recorder, || knowledge.note_indexed(hold)).await?;
        expect_stored(stored)?;
        // A search works without a sample, only slower.
        if let Err(error) = self.alongside(knowledge.sample_collection_of(hold.document_id)).await? {
            tracing::warn!(error = &error as &dyn Error, "failed to sample the words of a collection");
        }
        Ok(())
    }

    pub(super) fn tell(&mut self, stage: IngestionStage, done: u64, total: u64) {
        let document_id = self.hold.document_id;
        self.recorder.emit(&EventBody::DocumentProgress(DocumentProgress { document_id, stage, done, total }));
    }

    /// Notes that the document is further than before, which forgives earlier deaths of workers.
    pub(super) fn note_progress(&mut self) {
        let resume_at = Some(self.recorder.last());
        self.recorder.note(Progress { resume_at, step_completed: true, ..Progress::default() });
    }

    /// Awaits `other` while events are written. Fails at a stop signal.
    pub(super) async fn alongside<T>(&mut self, other: impl Future<Output = T>) -> Result<T, Stop> {
        tokio::select! {
            biased;
            signal = self.lease.until(Signal::Yield) => Err(signal.into()),
            output = self.recorder.alongside_with_room(other) => Ok(output?),
        }
    }
}

/// Returns how long a document waits in the queue for its long try, after this number of attempts.
fn pause_of(attempts: u32) -> Duration {
    LONG_PAUSE.saturating_mul(attempts).min(LONGEST_PAUSE)
}

fn passages_of(text: &DocumentText, media_type: &str, most: usize) -> Vec<NewPassage> {
    let spans = passages(text, media_type, most).into_iter().zip(0..);
    spans
        .map(|(span, number)| NewPassage {
            number,
            start: span.start as u64,
            end: span.end as u64,
            page: span.page,
            heading: span.heading,
        })
        .collect()
}

pub(super) fn expect_stored(outcome: StoreOutcome) -> Result<(), Stop> {
    match outcome {
        StoreOutcome::Stored => Ok(()),
        // The end of a run that another attempt holds writes nothing either.
        StoreOutcome::Fenced => Err(deleted()),
        StoreOutcome::TooMuchText(most) => Err(failed(
            "too_much_text",
            &format!(
                "the texts of your documents would have more than {most} bytes together; delete documents, then try again"
            ),
        )),
    }
}

pub(super) fn deleted() -> Stop {
    failed("document_deleted", "the document was deleted")
}

fn of_document(error: &ExtractionError) -> Stop {
    failed(error.code(), &error.to_string())
}

fn failed(code: &str, message: &str) -> Stop {
    Stop::Failed(RunError::new(code, message))
}
