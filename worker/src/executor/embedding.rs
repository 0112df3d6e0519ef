//! The vectors of a document's passages. The document is ready without them: a passage that the provider refuses stays without a
//! vector, and while the provider is away, the document waits for a later run ([`crate::missing_vectors`]).

use std::error::Error as StdError;

use holdfast_knowledge::{DocumentError, UnembeddedPassage};
use holdfast_shared::event::{EventBody, IngestionStage, WarningRaised};

use super::{
    Stop,
    ingestion::{DocumentRun, deleted, expect_stored},
    retry_query::retry_query,
};
use crate::{
    missing_vectors::is_model_of_deployment,
    model::{Embedder, Error},
};

/// The answers of the provider in this run so far.
#[derive(Default)]
struct Accepted {
    /// Refused passages.
    refused: u64,
    /// True if the provider takes texts at all, so that a refusal is one of its passage.
    any: bool,
}

impl DocumentRun<'_> {
    /// Gets the vectors that passages still lack. Each answer of the provider is stored at once, so it is paid for once. Returns
    /// why some passages get no vector, for people.
    pub async fn embed(&mut self, passages: u64) -> Result<Option<String>, Stop> {
        let Some(embedder) = self.shared.worker.embedder.clone() else { return Ok(None) };
        let (knowledge, hold, model) = (self.knowledge.clone(), self.hold, embedder.name());
        // A worker of earlier settings leaves the document to others.
        let shared = self.shared;
        if !retry_query(self.lease, self.recorder, || is_model_of_deployment(shared, &model)).await? {
            return Ok(None);
        }
        let mut accepted = Accepted::default();
        loop {
            let read = || knowledge.unembedded(hold, &model, embedder.batch());
            let batch = retry_query(self.lease, self.recorder, read).await?;
            if batch.is_empty() {
                break;
            }
            self.tell(IngestionStage::Embed, batch.first().map_or(0, |first| first.number), passages);
            if let Some(error) = self.embed_batch(&embedder, batch, &mut accepted).await? {
                return self.note_missing(&model, &error).await.map(Some);
            }
        }
        let note = || knowledge.note_vectors(hold, &model);
        expect_stored(retry_query(self.lease, self.recorder, note).await?)?;
        self.copy_vectors().await?;
        loop {
            let removed =
                retry_query(self.lease, self.recorder, || knowledge.remove_other_vectors(hold, &model)).await?;
            if !removed.ok_or_else(deleted)? {
                break;
            }
        }
        let refused = accepted.refused;
        Ok((refused > 0).then(|| format!("the provider of vectors refused {refused} of them")))
    }

    /// Gets the vectors of some passages. If the provider refuses them together, it gets fewer at once, until one is left.
    /// Returns the error that no refusal of a passage explains.
    async fn embed_batch(
        &mut self,
        embedder: &Embedder,
        batch: Vec<UnembeddedPassage>,
        accepted: &mut Accepted,
    ) -> Result<Option<Error>, Stop> {
        let mut parts = vec![batch];
        while let Some(mut part) = parts.pop() {
            let texts: Vec<String> = part.iter().map(|passage| passage.text.clone()).collect();
            let answers = match self.alongside(embedder.embed(&texts)).await? {
                Ok(vectors) => {
                    accepted.any = true;
                    vectors.into_iter().map(Some).collect()
                }
                Err(error) if error.is_of_input() && part.len() > 1 => {
                    let second = part.split_off(part.len() / 2);
                    parts.extend([second, part]);
                    continue;
                }
                Err(error) if error.is_of_input() && self.takes_other_texts(embedder, accepted).await? => {
                    tracing::warn!(%error, "the provider of vectors refused a passage; searches find it by its words alone");
                    accepted.refused += 1;
                    vec![None]
                }
                Err(error) => return Ok(Some(error)),
            };
            let answers: Vec<(u64, Option<Vec<f32>>)> =
                part.iter().map(|passage| passage.number).zip(answers).collect();
            let (knowledge, hold, model) = (self.knowledge.clone(), self.hold, embedder.name());
            let store = || knowledge.store_vectors(hold, &model, &answers);
            expect_stored(retry_query(self.lease, self.recorder, store).await?)?;
            self.note_progress();
        }
        Ok(None)
    }

    /// Copies the document's vectors for pgvector, where it is there. The sweep repeats a copy that fails.
    async fn copy_vectors(&mut self) -> Result<(), Stop> {
        let (knowledge, document_id) = (self.knowledge.clone(), self.hold.document_id);
        if let Err(error) = self.alongside(knowledge.copy_vectors(document_id)).await? {
            tracing::warn!(error = &error as &dyn StdError, "failed to copy vectors for pgvector");
        }
        Ok(())
    }

    /// Returns whether the provider takes texts, so that its refusal is one of the passage and not of all requests.
    async fn takes_other_texts(&mut self, embedder: &Embedder, accepted: &mut Accepted) -> Result<bool, Stop> {
        if !accepted.any {
            accepted.any = self.alongside(embedder.takes_a_text()).await?;
        }
        Ok(accepted.any)
    }

    /// Notes that the provider gives no more vectors now. Returns the reason, for people.
    async fn note_missing(&mut self, model: &str, error: &Error) -> Result<String, Stop> {
        tracing::warn!(%error, "failed to get the vectors of a document; searches find it by its words alone");
        let message = format!("the passages got no vectors: {}", error.reason());
        let reason = DocumentError { code: error.code().to_owned(), message };
        let (knowledge, hold, pause) = (self.knowledge.clone(), self.hold, self.shared.worker.embedding_pause);
        let note = || knowledge.note_missing_vectors(hold, model, &reason, pause);
        expect_stored(retry_query(self.lease, self.recorder, note).await?)?;
        self.copy_vectors().await?;
        let DocumentError { message, .. } = reason;
        let warning = WarningRaised { code: "vectors_missing".into(), message: message.as_str().into() };
        self.recorder.emit(&EventBody::WarningRaised(warning));
        Ok(message)
    }
}
