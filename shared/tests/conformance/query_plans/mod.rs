//! PostgreSQL's plans under bad statistics: each statement in the life of runs touches as few blocks as under good ones.
//!
//! PostgreSQL plans by statistics, which lag behind a table that grows, and it keeps a plan for the life of a connection. So
//! no statement may depend on them. The test counts blocks, because a time says little on a busy machine.

mod counters;
mod life;
mod tables;

use futures::future::join_all;
use holdfast_shared::storage::{self, Storage};
use test_servers::{Postgres, TestDatabase};

use self::{
    counters::{BlockCounts, Counters},
    life::live,
    tables::{Statistics, Tables},
};
use crate::backends::{migrate, settings};

/// Lives on each connection. PostgreSQL plans a statement of an API five times before it may keep a plan.
const LIVES: usize = 7;

/// The connections of an API and those of a worker.
struct PlannedConnections {
    api: Storage,
    worker: Storage,
}

impl PlannedConnections {
    async fn open(database: &TestDatabase) -> Self {
        let config = settings(&["--database-url", database.url(), "--redis-url", "redis://127.0.0.1:1"]);
        let stores = config.stores().unwrap();
        Self {
            api: storage::connect(&stores, &config).await.unwrap(),
            worker: storage::connect_worker(&stores, &config).await.unwrap(),
        }
    }

    async fn live(&self, lives: usize) {
        for _ in 0..lives {
            live(&self.api, &self.worker).await;
        }
    }
}

/// The blocks that the statements read from grown tables.
struct Reads {
    /// With plans that the connections made before the tables grew.
    by_earlier_plans: BlockCounts,
    /// With plans that new connections have made.
    by_new_plans: BlockCounts,
}

/// Returns what the statements read in a copy of the database, whose tables grow after PostgreSQL has taken `statistics`.
async fn reads(database: TestDatabase, statistics: Statistics) -> Reads {
    let mut tables = Tables::connect(&database).await;
    let mut counters = Counters::connect(&database).await;
    if statistics == Statistics::OfEmptyTables {
        tables.analyze().await;
    }
    let earlier = PlannedConnections::open(&database).await;
    earlier.live(1).await;
    tables.take(statistics).await;
    earlier.live(LIVES).await;
    tables.grow_before_reads(statistics).await;
    counters.reset().await;
    earlier.live(1).await;
    let by_earlier_plans = counters.take().await;
    PlannedConnections::open(&database).await.live(LIVES).await;
    Reads { by_earlier_plans, by_new_plans: counters.take().await }
}

#[tokio::test]
async fn no_statement_depends_on_the_statistics_of_its_tables() {
    let (server, template) = tokio::task::spawn_blocking(|| {
        let server = Postgres::start_counting();
        let template = server.create_database();
        migrate(template.url());
        template.execute("create extension pg_stat_statements schema public");
        (server, template)
    })
    .await
    .unwrap();
    let good = reads(server.copy_database(&template), Statistics::Good).await;
    // In one life alone, a busy machine may leave out a statement: the members of a late group write alone.
    let good = good.by_earlier_plans.and(good.by_new_plans);
    let bad = Statistics::BAD.map(async |statistics| reads(server.copy_database(&template), statistics).await);
    let mut faults = Vec::new();
    for (statistics, bad) in Statistics::BAD.into_iter().zip(join_all(bad).await) {
        for fault in bad.by_earlier_plans.beyond(&good) {
            faults.push(format!("{statistics:?}, planned before the tables grew: {fault}"));
        }
        for fault in bad.by_new_plans.beyond(&good) {
            faults.push(format!("{statistics:?}, planned after the tables grew: {fault}"));
        }
    }
    assert!(faults.is_empty(), "{} statements read too much:\n{}", faults.len(), faults.join("\n"));
}
