//! Knowledge in fresh databases, for the tests.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use clap::Parser;
use holdfast_knowledge::{Hold, Knowledge, NewCollection, NewPassage, Readers};
use holdfast_shared::{
    config::StoresConfig,
    ending::Ending,
    quotas::{KnowledgeLimits, Quotas},
    storage::{
        self, Answer, Claim, ClaimTerms, FinishOutcome, Holder, IngestOutcome, MessageInput, NewDocument, NewRun,
        RunOptions, Storage, SubmitOutcome, Target,
    },
};
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqlSafeStr, SqliteConnection};
use tempfile::TempDir;
use test_servers::{Postgres, TestDatabase};
use uuid::Uuid;

/// The owner of most tests.
pub const ANN: &str = "ann";

pub struct TestKnowledge {
    pub storage: Storage,
    pub knowledge: Knowledge,
    /// Those of the runs that ingest documents.
    claims: Mutex<HashMap<Uuid, Claim>>,
    alive: (Option<TempDir>, Option<TestDatabase>),
}

#[derive(Parser)]
struct KnowledgeArgs {
    #[command(flatten)]
    stores: StoresConfig,
}

fn settings(args: &[&str]) -> StoresConfig {
    KnowledgeArgs::parse_from(["knowledge"].iter().chain(args)).stores
}

/// Makes the schema of a database.
pub fn migrate(url: &str) {
    let config = settings(&["--database-url", url, "--redis-url", "redis://127.0.0.1:1"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(storage::migrate(&config.stores().unwrap(), &config)).unwrap();
}

impl TestKnowledge {
    /// Returns the knowledge of this database with so many bytes of vectors in memory.
    pub fn with_vector_bytes(self, bytes: usize) -> Self {
        Self { knowledge: Knowledge::new(&self.storage, KnowledgeLimits::default(), bytes), ..self }
    }

    pub async fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = settings(&["--data-dir", folder.path().to_str().unwrap()]);
        Self::connect(&config, (Some(folder), None)).await
    }

    pub async fn postgres() -> Self {
        let database = tokio::task::spawn_blocking(|| Postgres::migrated_database(migrate)).await.unwrap();
        let config = settings(&["--database-url", database.url(), "--redis-url", "redis://127.0.0.1:1"]);
        Self::connect(&config, (None, Some(database))).await
    }

    /// Returns the knowledge on a PostgreSQL server that has the extension pgvector to create.
    pub async fn before_pgvector() -> Self {
        let migrated = || {
            let database = Postgres::database_for_pgvector();
            migrate(database.url());
            database
        };
        let database = tokio::task::spawn_blocking(migrated).await.unwrap();
        let config = settings(&["--database-url", database.url(), "--redis-url", "redis://127.0.0.1:1"]);
        Self::connect(&config, (None, Some(database))).await
    }

    /// Creates the extension as an operator does, migrates, and connects again, with so many bytes of vectors in memory.
    pub async fn with_pgvector(self, create: &str, bytes: usize) -> Self {
        self.execute(create).await;
        let url = self.urls().0.unwrap();
        tokio::task::spawn_blocking(move || migrate(&url)).await.unwrap();
        let storage = self.connected_again().await;
        Self { storage, ..self }.with_vector_bytes(bytes)
    }

    /// Returns another connection to the PostgreSQL database, as of another process.
    pub async fn connected_again(&self) -> Storage {
        let url = self.urls().0.unwrap();
        let config = settings(&["--database-url", &url, "--redis-url", "redis://127.0.0.1:1"]);
        storage::connect(&config.stores().unwrap(), &config).await.unwrap()
    }

    /// Executes SQL in the PostgreSQL database as an operator does.
    pub async fn execute(&self, sql: &str) {
        let mut connection = PgConnection::connect(&self.urls().0.unwrap()).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.unwrap();
    }

    async fn connect(config: &StoresConfig, alive: (Option<TempDir>, Option<TestDatabase>)) -> Self {
        let storage = storage::connect(&config.stores().unwrap(), config).await.unwrap();
        Self {
            knowledge: Knowledge::new(&storage, KnowledgeLimits::default(), 1 << 20),
            storage,
            claims: Mutex::default(),
            alive,
        }
    }

    /// Returns the URL of the PostgreSQL database, if it is one, and of the SQLite file.
    pub fn urls(&self) -> (Option<String>, String) {
        let (folder, database) = &self.alive;
        let file = folder.as_ref().map(|folder| format!("sqlite:{}/holdfast.db", folder.path().display()));
        (database.as_ref().map(|database| database.url().to_owned()), file.unwrap_or_default())
    }

    pub async fn collection(&self, owner: &str) -> Uuid {
        let new = NewCollection { name: "c".into(), description: None, readable_by: Readers::Owner };
        self.knowledge.create_collection(owner, new, None).await.unwrap().unwrap().id
    }

    /// Returns the number of rows of a table.
    pub async fn count(&self, table: &str) -> i64 {
        let sql = AssertSqlSafe(format!("select count(*) from {table}")).into_sql_str();
        match self.urls() {
            (Some(url), _) => {
                let mut connection = connect_postgres(&url).await;
                sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap()
            }
            (None, file) => {
                let mut connection = SqliteConnection::connect(&file).await.unwrap();
                sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap()
            }
        }
    }

    /// Changes rows of the database, past the code under test.
    pub async fn change(&self, sql: &'static str) {
        match self.urls() {
            (Some(url), _) => drop(sqlx::query(sql).execute(&mut connect_postgres(&url).await).await.unwrap()),
            (None, file) => {
                let mut connection = SqliteConnection::connect(&file).await.unwrap();
                sqlx::query(sql).execute(&mut connection).await.unwrap();
            }
        }
    }

    /// Submits a new document. Returns the outcome, with the ids of the document and of the run.
    pub async fn submit(&self, owner: &str, collection_id: Uuid) -> (IngestOutcome, Uuid, Uuid) {
        let document = NewDocument {
            id: Uuid::now_v7(),
            collection_id,
            file_id: Uuid::now_v7(),
            title: "t".into(),
            media_type: "text/plain".into(),
            bytes: 1,
        };
        let run = new_run(true);
        let limits = (&Quotas::default(), None);
        let outcome = self.storage.submit_document(owner, limits, &document, &run).await.unwrap();
        (outcome, document.id, run.run_id)
    }

    /// Returns the right to ingest a new document.
    pub async fn begin(&self, owner: &str, collection_id: Uuid) -> Hold {
        let (outcome, document_id, run_id) = self.submit(owner, collection_id).await;
        assert!(matches!(outcome, IngestOutcome::Submitted(SubmitOutcome::Accepted(_))));
        self.claim(document_id, run_id).await
    }

    /// Claims a queued run of a document.
    pub async fn claim(&self, document_id: Uuid, run_id: Uuid) -> Hold {
        let claims = self.storage.claim_queued(&terms(8), 100).await.unwrap();
        let claim = claims.iter().find(|claim| claim.run_id == run_id).unwrap();
        assert_eq!(claim.ingestion.unwrap().document_id, Some(document_id));
        self.claims.lock().unwrap().insert(run_id, claim.clone());
        Hold { document_id, run_id, attempt: claim.attempt }
    }

    /// Ends the run of an ingestion.
    pub async fn end(&self, hold: Hold) {
        let claim = self.claims.lock().unwrap().remove(&hold.run_id).unwrap();
        let ended = self.storage.finish(&claim, None, claim.started.id, &Answer::default(), &Ending::Completed).await;
        assert!(matches!(ended.unwrap(), FinishOutcome::Ended(_)));
    }

    /// Ingests a document with these vectors of a model, and returns it.
    pub async fn ingest_vectors(&self, collection: Uuid, model: &str, vectors: &[Vec<f32>]) -> Hold {
        let texts: Vec<String> = (0..vectors.len()).map(|n| format!("passage {n}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let hold = self.ingest(ANN, collection, &texts).await;
        self.store(hold, model, vectors).await;
        hold
    }

    /// Stores all vectors of a document, so that searches use them.
    pub async fn store(&self, hold: Hold, model: &str, vectors: &[Vec<f32>]) {
        let answers: Vec<(u64, Option<Vec<f32>>)> = (0..).zip(vectors.iter().cloned().map(Some)).collect();
        self.knowledge.store_vectors(hold, model, &answers).await.unwrap();
        self.knowledge.note_vectors(hold, model).await.unwrap();
    }

    /// Ingests a document whose passages are these texts.
    pub async fn ingest(&self, owner: &str, collection: Uuid, texts: &[&str]) -> Hold {
        let hold = self.begin(owner, collection).await;
        let (text, passages) = passages_of(texts);
        self.knowledge.store_text(hold, &text, &passages).await.unwrap();
        while self.knowledge.index_some(hold).await.unwrap().unwrap() > 0 {}
        self.knowledge.note_indexed(hold).await.unwrap();
        self.knowledge.sample_collection_of(hold.document_id).await.unwrap();
        hold
    }
}

/// Returns the terms of a new worker with places for so many ingestions.
pub fn terms(ingestions: usize) -> ClaimTerms {
    ClaimTerms { holder: Holder::new(), lease: Duration::from_secs(60), max_crashes: 3, ingestions, reserved: 0 }
}

/// Returns a run that ingests a document, or one that answers a message.
pub fn new_run(ingests: bool) -> NewRun {
    NewRun {
        run_id: Uuid::now_v7(),
        target: Target::New { agent_id: None },
        input: MessageInput::New("t".to_owned().into()),
        given: Vec::new(),
        client_message_id: None,
        mode: Default::default(),
        options: RunOptions { ingests, ..RunOptions::default() },
        max_metadata: 1000,
        key: None,
        max_unfinished: 10,
        caller_group: None,
        traceparent: None,
    }
}

/// Returns a connection to a PostgreSQL database.
pub async fn connect_postgres(url: &str) -> PgConnection {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::query("set search_path to kb").execute(&mut connection).await.unwrap();
    connection
}

/// Returns a text of these passages, one a line.
pub fn passages_of(texts: &[&str]) -> (String, Vec<NewPassage>) {
    let mut start = 0;
    let passage = |(number, text): (usize, &&str)| {
        let end = start + text.chars().count() as u64;
        let passage = NewPassage { number: number as u64, start, end, page: None, heading: None };
        start = end + 1;
        passage
    };
    let passages = texts.iter().enumerate().map(passage).collect();
    (texts.join("\n"), passages)
}

/// Makes a test for each database of an async function that takes a `TestKnowledge`.
#[macro_export]
macro_rules! on_both_databases {
    ($($fact:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $fact() {
                super::$fact($crate::backends::TestKnowledge::sqlite().await).await;
            })+
        }

        mod postgres {
            $(#[tokio::test]
            async fn $fact() {
                super::$fact($crate::backends::TestKnowledge::postgres().await).await;
            })+
        }
    };
}
