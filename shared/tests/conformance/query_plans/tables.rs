//! Big tables, and the statistics that PostgreSQL has of them.

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use test_servers::TestDatabase;

/// Runs by which the tables grow, each with a conversation and rows in all other tables.
const RUNS: usize = 10_000;

/// The tables as they were when PostgreSQL took its statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistics {
    /// As they are.
    Good,
    /// There are none, because no table was ever analyzed.
    Missing,
    OfEmptyTables,
    /// Some runs, as after the first minute of a deployment.
    OfFewRuns,
    /// One run among the dead rows of many.
    OfDeadRows,
    /// Runs that were all queued, and have ended since.
    OfQueuedRuns,
    /// Runs of one owner, who has none of the later ones.
    OfOneOwner,
}

impl Statistics {
    pub const BAD: [Self; 6] =
        [Self::Missing, Self::OfEmptyTables, Self::OfFewRuns, Self::OfDeadRows, Self::OfQueuedRuns, Self::OfOneOwner];
}

/// A connection that fills the tables.
pub struct Tables {
    connection: PgConnection,
    growths: u32,
}

/// A table of runs.
struct GrownTable {
    name: &'static str,
    /// The column that names a run or its conversation, and the same of a copied run.
    key: (&'static str, &'static str),
    /// The columns that differ in the copy of a row. `k` has the ids of the copy.
    differs: &'static str,
}

impl GrownTable {
    const fn of_runs(name: &'static str, differs: &'static str) -> Self {
        Self { name, key: ("run_id", "run"), differs }
    }
}

const TABLES: [GrownTable; 7] = [
    GrownTable {
        name: "chat_conversations",
        key: ("id", "conversation"),
        differs: "'id', k.conversation, 'owner_id', k.owner",
    },
    GrownTable {
        name: "agent_runs",
        key: ("id", "run"),
        differs: "'id', k.run, 'conversation_id', k.conversation, 'owner_id', k.owner, 'status', k.status, \
                  'finished_at', k.finished_at",
    },
    GrownTable::of_runs(
        "chat_messages",
        "'id', case old.role when 'user' then k.run else k.conversation end, 'conversation_id', k.conversation, \
         'run_id', k.run, 'owner_id', k.owner",
    ),
    GrownTable::of_runs("run_events", "'run_id', k.run"),
    GrownTable::of_runs("agent_run_messages", "'run_id', k.run"),
    GrownTable::of_runs("agent_run_tool_calls", "'run_id', k.run"),
    GrownTable::of_runs("agent_run_checkpoints", "'id', k.run, 'conversation_id', k.conversation, 'run_id', k.run"),
];

impl Tables {
    pub async fn connect(database: &TestDatabase) -> Self {
        let connection = PgConnection::connect(database.url()).await.unwrap();
        let mut tables = Self { connection, growths: 0 };
        tables.execute("set search_path to kb; set session_replication_role to replica; set jit to off").await;
        tables
    }

    /// Brings the tables into the state of these statistics, after a first life, and takes them.
    pub async fn take(&mut self, statistics: Statistics) {
        match statistics {
            Statistics::Missing | Statistics::OfEmptyTables => {}
            Statistics::OfFewRuns => self.analyze().await,
            Statistics::Good => {
                self.grow("").await;
                self.execute("vacuum").await;
                self.analyze().await;
            }
            Statistics::OfDeadRows => {
                self.grow("").await;
                for GrownTable { name, key: (column, copied), .. } in TABLES {
                    self.execute(&format!("delete from {name} where {column} not in (select {copied} from original)"))
                        .await;
                }
                self.analyze().await;
            }
            Statistics::OfQueuedRuns => {
                self.grow("update copies set status = 'queued', finished_at = null").await;
                self.analyze().await;
                let end = "update agent_runs set status = 'completed', finished_at = now() where status = 'queued'";
                self.execute(end).await;
                // The indexes of queued runs are empty again, and the statistics of the columns stay.
                self.execute("vacuum agent_runs").await;
            }
            Statistics::OfOneOwner => {
                for table in ["chat_conversations", "agent_runs", "chat_messages"] {
                    self.execute(&format!("update {table} set owner_id = 'bob'")).await;
                }
                self.grow("update copies set owner = 'bob'").await;
                self.analyze().await;
            }
        }
    }

    /// Lets the tables grow, without new statistics.
    pub async fn grow_before_reads(&mut self, statistics: Statistics) {
        if statistics != Statistics::Good {
            self.grow("").await;
        }
    }

    pub async fn analyze(&mut self) {
        self.execute("analyze").await;
    }

    /// Copies a completed run with rows in each table, after a change of the list of copies.
    async fn grow(&mut self, change: &str) {
        self.growths += 1;
        let growth = self.growths;
        self.execute(&format!(
            "drop table if exists copies, original;
            create temporary table copies as
                select cast(time || '700{growth}8000000000000000' as uuid) as conversation,
                    cast(time || '700{growth}8000000000000001' as uuid) as run, 'owner ' || n % 1000 as owner,
                    'completed' as status, now() as finished_at
                from generate_series(1, {RUNS}) n
                cross join lateral lpad(to_hex(n + cast(extract(epoch from now()) * 1000 as bigint)), 12, '0') as time;
            {change};
            create temporary table original as
                select r.conversation_id as conversation, r.id as run
                from agent_runs r
                where r.status = 'completed' and r.id in (select run_id from agent_run_checkpoints)
                limit 1"
        ))
        .await;
        for GrownTable { name, key: (column, copied), differs } in TABLES {
            self.execute(&format!(
                "insert into {name}
                select new.*
                from copies k
                cross join (
                    select t.* from {name} t where t.{column} = (select {copied} from original)
                ) old
                cross join lateral jsonb_populate_record(old::{name}, jsonb_build_object({differs})) new"
            ))
            .await;
        }
    }

    async fn execute(&mut self, sql: &str) {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut self.connection).await.unwrap();
    }
}
