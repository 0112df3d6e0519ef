//! The vectors of a question: one by the deployment's model, and one by another model whose vectors its collections have, so that a
//! search finds documents by their meaning while they get the vectors of a new model.

use std::{error::Error, time::Duration};

use futures::future::join_all;
use holdfast_knowledge::{Knowledge, QueryVector};
use uuid::Uuid;

use crate::model::Embedder;

/// Time for the vectors of a question.
const LIMIT: Duration = Duration::from_secs(3);

/// Most models that are asked for one question: the new one and the one before.
const MODELS: usize = 2;

/// Returns the vectors of a question; that of the deployment's model, to which documents may move meanwhile, comes last. A model that
/// is slow or away gives none, because a search by words is better than none.
pub async fn question_vectors(
    knowledge: &Knowledge,
    embedder: Option<&Embedder>,
    collections: &[Uuid],
    question: &str,
) -> Vec<QueryVector> {
    let Some(embedder) = embedder.filter(|_| !question.trim().is_empty()) else { return Vec::new() };
    let models = match knowledge.models_of(collections).await {
        Ok(models) => models,
        Err(error) => {
            tracing::warn!(error = &error as &dyn Error, "failed to find the models of vectors");
            vec![embedder.name()]
        }
    };
    let vectors = join_all(asked(models, embedder).into_iter().map(async |model| match embedder.embed_question(&model, question, LIMIT).await {
        Ok(values) => Some(QueryVector { model, values }),
        Err(error) => {
            tracing::warn!(%error, model.name = model, "failed to get the vector of a question; it is searched without");
            None
        }
    }));
    vectors.await.into_iter().flatten().collect()
}

/// Returns the models to ask, for collections with vectors of some models.
fn asked(models: Vec<String>, embedder: &Embedder) -> Vec<String> {
    if models.is_empty() {
        return models;
    }
    let current = embedder.name();
    let others = models.into_iter().filter(|model| *model != current && embedder.offers(model));
    others.take(MODELS - 1).chain([current.clone()]).collect()
}
