//! PgBouncer between Holdfast and PostgreSQL.

use futures::future::join_all;
use test_servers::{PgBouncer, PgBouncerVersion, Postgres, TestDatabase};

use crate::support::{Holdfast, ScaledOut, fold, refusal};

/// Makes an empty database whose settings are those that the documentation gives to the role.
fn database() -> TestDatabase {
    let database = Postgres::database();
    let name = database.url().rsplit('/').next().unwrap();
    for setting in [
        "search_path = kb",
        "statement_timeout = '10s'",
        "lock_timeout = '5s'",
        "idle_in_transaction_session_timeout = '10s'",
    ] {
        database.execute(&format!("alter database {name} set {setting}"));
    }
    database
}

/// Streams forty runs at a time, and expects each of them whole.
async fn streams_forty_runs(scaled: &ScaledOut) {
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let streams = (0..40).map(async |_| {
        let stream = client.stream("[tokens=20] [delay=10] hi").await;
        let run_id = stream.run_id.clone();
        let frames = stream.rest().await;
        assert_eq!(frames.last().unwrap().event, "run.completed");
        assert_eq!(client.run(&run_id).await["output_message"]["content"], fold(&frames));
    });
    join_all(streams).await;
}

#[tokio::test]
async fn runs_stream_through_pgbouncer_in_transaction_mode() {
    let database = database();
    let pooler = PgBouncer::before(database.url(), PgBouncerVersion::New, "transaction");
    let scaled = ScaledOut::as_it_is(pooler.url().to_owned(), None);
    let migrations = ["one", "another"].map(|_| Holdfast::start(&mut scaled.command("migrate")));
    for mut migration in migrations {
        assert!(migration.exit().success());
    }
    streams_forty_runs(&scaled).await;
}

#[tokio::test]
async fn a_pgbouncer_that_confuses_prepared_statements_is_refused_with_a_reason() {
    let database = database();
    let pooler = PgBouncer::before(database.url(), PgBouncerVersion::Old, "transaction");
    let scaled = ScaledOut::as_it_is(pooler.url().to_owned(), None);
    // Also while other clients use the server's connections.
    for role in ["migrate", "api", "worker", "api", "worker"] {
        let reason = refusal(&mut scaled.command(role));
        assert!(reason.contains("PgBouncer 1.21") && reason.contains("pool_mode = session"), "{role}: {reason}");
    }
}

#[tokio::test]
async fn an_old_pgbouncer_works_in_session_mode() {
    let database = database();
    let pooler = PgBouncer::before(database.url(), PgBouncerVersion::Old, "session");
    // Two processes with a pool of two and two connections for groups each.
    let scaled = ScaledOut::on(pooler.url().to_owned(), None).with("HOLDFAST_DATABASE_POOL", 2);
    streams_forty_runs(&scaled).await;
}
