//! Fresh back ends of each mode, for the tests.

use std::time::Duration;

use clap::Parser;
use holdfast_shared::{
    config::StoresConfig,
    event::Event,
    event_id::EventId,
    queue::{self, Queue},
    quotas::Quotas,
    rate_limit::{self, RateLimit},
    run_log::{self, Push, RunLog},
    storage::{self, ClaimTerms, Holder, MessageInput, NewBriefing, NewRun, Storage, SubmitOutcome, Target, Window},
};
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};
use tempfile::TempDir;
use test_servers::{Postgres, Redis, TestDatabase};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::raw::Raw;

pub const LEASE: Duration = Duration::from_secs(60);
pub const MAX_CRASHES: usize = 3;

/// The places of a worker for ingestions.
const INGESTIONS: usize = 8;

/// The bytes that the rows of a run count in its owner's quota.
pub const ROWS: usize = 4_096;

pub struct TestBackends {
    pub storage: Storage,
    pub run_log: RunLog,
    pub pushes: mpsc::UnboundedReceiver<Push>,
    pub queue: Queue,
    pub rate_limit: RateLimit,
    pub holder: Holder,
    alive: (Option<TempDir>, Option<Redis>, Option<TestDatabase>),
}

#[derive(Parser)]
struct StoresArgs {
    #[command(flatten)]
    stores: StoresConfig,
}

/// Makes the schema of a database.
pub fn migrate(url: &str) {
    let config = settings(&["--database-url", url, "--redis-url", "redis://127.0.0.1:1"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(storage::migrate(&config.stores().unwrap(), &config)).unwrap();
}

impl TestBackends {
    pub async fn embedded() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = settings(&["--data-dir", folder.path().to_str().unwrap()]);
        Self::connect(config, (Some(folder), None, None)).await
    }

    pub async fn in_memory() -> Self {
        Self::connect(settings(&["--chat-memory-backend", "memory"]), (None, None, None)).await
    }

    pub async fn scaled_out() -> Self {
        let database = tokio::task::spawn_blocking(|| Postgres::migrated_database(migrate)).await.unwrap();
        let redis = Redis::start();
        let config = settings(&["--database-url", database.url(), "--redis-url", &redis.url()]);
        Self::connect(config, (None, Some(redis), Some(database))).await
    }

    async fn connect(config: StoresConfig, alive: (Option<TempDir>, Option<Redis>, Option<TestDatabase>)) -> Self {
        let stores = config.stores().unwrap();
        let storage = storage::connect(&stores, &config).await.unwrap();
        let (run_log, pushes) = run_log::connect(&stores, &config).await.unwrap();
        let queue = queue::connect(&stores).await.unwrap();
        let rate_limit = rate_limit::connect(&stores).await.unwrap();
        Self { storage, run_log, pushes, queue, rate_limit, holder: Holder::new(), alive }
    }

    /// Has the database refuse each new row of a table, as an operator's rule would.
    pub async fn refuse_rows_of(&self, table: &str) {
        if let Some(database) = &self.alive.2 {
            return database.execute(&format!(
                "create function kb.refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$; \
                 create trigger refused before insert on kb.{table} for each row execute function kb.refuse();"
            ));
        }
        let folder = self.alive.0.as_ref().expect("a database in memory has no folder");
        let mut file =
            SqliteConnection::connect(&format!("sqlite:{}/holdfast.db", folder.path().display())).await.unwrap();
        let sql = format!("create trigger refused before insert on {table} begin select raise(abort, 'refused'); end");
        sqlx::query(AssertSqlSafe(sql)).execute(&mut file).await.unwrap();
        file.close().await.unwrap();
    }

    /// Stops Redis.
    pub fn stop_redis(&mut self) {
        self.alive.1 = None;
    }

    /// Returns a direct connection to the database; `None` if it is in memory.
    pub async fn raw(&self) -> Option<Raw> {
        match &self.alive {
            (_, _, Some(database)) => Some(Raw::postgres(database.url()).await),
            (Some(folder), ..) => Some(Raw::sqlite(folder.path()).await),
            _ => None,
        }
    }

    /// Submits a message of ann, and returns its run and conversation.
    pub async fn submit(&self, target: Target, content: &str) -> (Uuid, Uuid) {
        self.submit_as("ann", target, content).await
    }

    /// Submits a message of this owner, and returns its run and conversation.
    pub async fn submit_as(&self, owner: &str, target: Target, content: &str) -> (Uuid, Uuid) {
        match self.storage.submit(owner, &NO_QUOTAS, &new_run(target, content)).await.unwrap() {
            SubmitOutcome::Accepted(accepted) => (accepted.run.id, accepted.conversation.id),
            _ => panic!("the message was not accepted"),
        }
    }

    pub async fn claim(&self, limit: usize) -> Vec<storage::Claim> {
        self.claim_with_reserve(limit, 0).await
    }

    /// Claims up to `limit` queued runs, the last `reserved` of them for owners without a run at work.
    pub async fn claim_with_reserve(&self, limit: usize, reserved: usize) -> Vec<storage::Claim> {
        let terms = ClaimTerms { reserved, ..terms(&self.holder) };
        self.storage.claim_queued(&terms, limit).await.unwrap()
    }

    /// Claims expired runs for another process.
    pub async fn take_over(&self) -> Vec<storage::Claim> {
        self.storage.claim_expired(&terms(&Holder::new()), 10).await.unwrap()
    }

    /// Returns the first event of the claim's attempt, as the archive has it.
    pub async fn archived_start(&self, claim: &storage::Claim) -> Event {
        let before = EventId::new(claim.attempt, 0);
        self.storage.read_archive(claim.run_id, before).await.unwrap().unwrap().events.remove(0)
    }

    /// Lets the run's lease expire, without a crash.
    pub async fn expire(&self, run_id: Uuid) {
        let held = self.storage.renew(&self.holder, LEASE).await.unwrap();
        let attempt = held.iter().find(|lease| lease.run_id == run_id).expect("it is held").attempt;
        self.storage.give_back(&self.holder, vec![(run_id, attempt)]).await.unwrap();
    }
}

/// Returns the usual message of a test.
pub fn new_run(target: Target, content: &str) -> NewRun {
    NewRun {
        run_id: Uuid::now_v7(),
        target,
        input: MessageInput::New(content.into()),
        given: Vec::new(),
        client_message_id: None,
        mode: Default::default(),
        key: None,
        options: Default::default(),
        max_metadata: 100,
        max_unfinished: 100,
        caller_group: None,
        traceparent: None,
    }
}

/// The quotas of an owner without limits.
pub const NO_QUOTAS: Quotas = Quotas { runs: None, bytes: None };

/// More messages than any test has.
pub const ALL: Window = Window { usual: 1000, standing: 1000, bytes: 1_000_000, result_chars: 1000 };

/// Returns the terms of a holder.
pub fn terms(holder: &Holder) -> ClaimTerms {
    ClaimTerms { holder: holder.clone(), lease: LEASE, max_crashes: MAX_CRASHES, ingestions: INGESTIONS, reserved: 0 }
}

/// Returns the settings of these arguments.
pub fn settings(args: &[&str]) -> StoresConfig {
    StoresArgs::parse_from(["conformance"].iter().chain(args)).stores
}

/// Returns a briefing for an agent.
pub fn briefing(agent_id: Uuid, title: &str) -> NewBriefing {
    let created_at = Some("2026-01-07T10:00:00.5Z".parse().unwrap());
    NewBriefing {
        agent_id,
        title: title.into(),
        summary: "s".into(),
        priority: None,
        data: None,
        created_at,
        authored: None,
    }
}
