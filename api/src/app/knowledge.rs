//! Collections and documents: a document is committed together with the run that makes it ready.

use std::sync::Arc;

use holdfast_extraction::is_supported;
use holdfast_knowledge::{Collection, Document, FoundPassage, Knowledge, NewCollection, Readers, SearchScope};
use holdfast_shared::{
    agent::MAX_COLLECTIONS,
    file::{StoredFile, UserContent},
    run::Run,
    storage::{IngestOutcome, MessageInput, NewDocument, RunOptions, SubmitOutcome, Target},
};
use uuid::Uuid;

use super::{App, Posting, submit::Refused};
use crate::{auth::Caller, problem::Problem};

/// A document that is committed with its run.
pub struct SubmittedDocument {
    pub document: Document,
    pub run: Run,
}

impl App {
    pub const fn knowledge(&self) -> &Knowledge {
        &self.knowledge
    }

    /// Creates a collection. Fails if the caller has too many, or may not let everyone read one.
    pub async fn create_collection(&self, caller: &Caller, new: NewCollection) -> Result<Collection, Problem> {
        if new.readable_by == Readers::Everyone && !caller.is_operator {
            return Err(Problem::operator_needed_for_everyone());
        }
        self.anonymous_activity.note_write(caller).await?;
        let most = self.knowledge_limits.named.collections;
        let created = self.knowledge.create_collection(&caller.owner, new, most).await?;
        created.ok_or_else(|| Problem::too_many_collections(most.unwrap_or_default()))
    }

    /// Commits a document of a file with its run, or returns what an earlier request with this key has committed.
    pub async fn submit_document(
        self: &Arc<Self>,
        caller: &Caller,
        collection_id: Uuid,
        file_id: Uuid,
        title: Option<String>,
        posting: Posting,
    ) -> Result<SubmittedDocument, Problem> {
        let file = self.storage.file(&caller.owner, file_id).await?.filter(StoredFile::is_complete);
        let file = file.ok_or_else(|| Problem::file_not_found(file_id))?;
        if !is_supported(&file.media_type) {
            return Err(Problem::document_type_refused(&file.media_type));
        }
        self.anonymous_limits.admit(caller).await?;
        // The index has the text again.
        self.anonymous_limits.admit_bytes(caller, file.bytes as usize).await?;
        self.anonymous_activity.note_write(caller).await?;
        let title = title.unwrap_or_else(|| file.name.clone());
        let document = NewDocument {
            id: Uuid::now_v7(),
            collection_id,
            file_id,
            title: title.clone(),
            media_type: file.media_type.clone(),
            bytes: file.bytes,
        };
        let run = posting.ingesting(&file, title).into_run(caller, self.config())?;
        let (app, user, refused) = (Arc::clone(self), caller.owner.clone(), Refused::of(&run));
        let submitted = self.to_completion(async move {
            let limits = (&app.quotas, app.knowledge_limits.named.documents);
            let outcome = app.storage.submit_document(&user, limits, &document, &run).await?;
            Ok((app.ingested(outcome), document.id))
        });
        let (outcome, document_id) = submitted.await?;
        let run = outcome.map_err(|outcome| self.refused_ingestion(outcome, refused, collection_id, document_id))?;
        let document_id = self.knowledge.document_of_conversation(run.conversation_id).await?.unwrap_or(document_id);
        self.submitted(caller, document_id, run).await
    }

    /// Commits another run of a document that is not ready, or lacks vectors.
    pub async fn retry_document(self: &Arc<Self>, caller: &Caller, id: Uuid) -> Result<SubmittedDocument, Problem> {
        let not_found = || Problem::document_not_found(id);
        let (conversation, file_id, title) =
            self.knowledge.document_source(&caller.owner, id).await?.ok_or_else(not_found)?;
        let file = self.storage.file(&caller.owner, file_id).await?.ok_or_else(|| Problem::file_not_found(file_id))?;
        self.anonymous_limits.admit(caller).await?;
        let posting = Posting::new(Target::Existing(conversation), MessageInput::New(UserContent::default()));
        let run = posting.ingesting(&file, title).into_run(caller, self.config())?;
        let (app, user, refused) = (Arc::clone(self), caller.owner.clone(), Refused::of(&run));
        let submitted = self.to_completion(async move {
            let outcome = app.storage.retry_document(&user, &app.quotas, id, &run).await?;
            Ok(app.ingested(outcome))
        });
        let run = submitted.await?.map_err(|outcome| self.refused_ingestion(outcome, refused, Uuid::nil(), id))?;
        self.submitted(caller, id, run).await
    }

    /// Deletes a document, and cancels its run.
    pub async fn delete_document(self: &Arc<Self>, caller: &Caller, id: Uuid) -> Result<(), Problem> {
        let conversation = self.knowledge.delete_document(&caller.owner, id).await?;
        let conversation = conversation.ok_or_else(|| Problem::document_not_found(id))?;
        self.delete_conversation(&caller.owner, conversation).await.or_else(unless_gone)
    }

    /// Deletes a collection with its documents, and cancels their runs.
    pub async fn delete_collection(self: &Arc<Self>, caller: &Caller, id: Uuid) -> Result<(), Problem> {
        let conversations = self.knowledge.delete_collection(&caller.owner, id).await?;
        for conversation in conversations.ok_or_else(|| Problem::collection_not_found(id))? {
            self.delete_conversation(&caller.owner, conversation).await.or_else(unless_gone)?;
        }
        Ok(())
    }

    /// Returns the passages of a collection that fit a question. Fails if no search turn becomes free in time.
    pub async fn search_collection(
        self: &Arc<Self>,
        caller: &Caller,
        id: Uuid,
        question: &str,
        limit: usize,
    ) -> Result<Vec<FoundPassage>, Problem> {
        let collection = self.knowledge.collection(&caller.owner, id).await?;
        collection.ok_or_else(|| Problem::collection_not_found(id))?;
        let turn = self.search_limit.begin(caller).await?;
        let (app, owner, question) = (Arc::clone(self), caller.owner.clone(), question.to_owned());
        // A client that hangs up does not end the statement, so the statement's task owns the turn.
        self.to_completion(async move {
            let scope = SearchScope { owner: &owner, collections: &[id] };
            let found = app.knowledge.search(scope, &question, &[], limit).await;
            drop(turn);
            Ok(found?)
        })
        .await
    }

    /// Fails if a list of collections is too long, or has one that the caller may not read.
    pub async fn check_knowledge(&self, caller: &Caller, collections: &[Uuid]) -> Result<(), Problem> {
        if collections.len() > MAX_COLLECTIONS {
            return Err(Problem::invalid_knowledge(MAX_COLLECTIONS));
        }
        for id in collections {
            let collection = self.knowledge.collection(&caller.owner, *id).await?;
            collection.ok_or_else(|| Problem::collection_not_found(id))?;
        }
        Ok(())
    }

    /// Returns the run of a submission, after the steps that follow its commit.
    fn ingested(self: &Arc<Self>, outcome: IngestOutcome) -> Result<Run, IngestOutcome> {
        match outcome {
            IngestOutcome::Submitted(SubmitOutcome::Accepted(accepted)) => {
                self.wake();
                self.follow_up(accepted.ended, accepted.cancel_requested);
                Ok(accepted.run)
            }
            IngestOutcome::Submitted(SubmitOutcome::Repeated(repeated)) => Ok(repeated.2),
            refused => Err(refused),
        }
    }

    fn refused_ingestion(
        &self,
        outcome: IngestOutcome,
        refused: Refused,
        collection_id: Uuid,
        document_id: Uuid,
    ) -> Problem {
        match outcome {
            IngestOutcome::Submitted(outcome) => refused.problem(&outcome, self.config.max_metadata_bytes),
            IngestOutcome::CollectionNotFound => Problem::collection_not_found(collection_id),
            IngestOutcome::TooManyDocuments(most) => Problem::too_many_documents(most),
            IngestOutcome::NothingToRetry => Problem::nothing_to_retry(document_id),
        }
    }

    async fn submitted(&self, caller: &Caller, id: Uuid, run: Run) -> Result<SubmittedDocument, Problem> {
        let document = self.knowledge.document(&caller.owner, id).await?;
        let document = document.ok_or_else(|| Problem::document_not_found(id))?;
        Ok(SubmittedDocument { document, run })
    }
}

impl Posting {
    /// Makes the message that of a document, whose run asks no model.
    fn ingesting(self, file: &StoredFile, title: String) -> Self {
        let mut content = UserContent::from(title);
        content.push_file(file);
        let options = RunOptions { ingests: true, stream: false, ..RunOptions::default() };
        Self { input: MessageInput::New(content), options, ..self }
    }
}

/// Accepts that a hidden conversation is gone, because its owner can delete it.
fn unless_gone(problem: Problem) -> Result<(), Problem> {
    if problem.code == "conversation_not_found" { Ok(()) } else { Err(problem) }
}
