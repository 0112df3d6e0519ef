//! The blocks that each statement of a database has read, by PostgreSQL's own count.

use std::collections::BTreeMap;

use holdfast_shared::storage::{BackEnd, statement_texts};
use sqlx::{Connection as _, FromRow, PgConnection};
use test_servers::TestDatabase;

/// A statement may touch this many times the blocks that it touches under good statistics.
const FACTOR: i64 = 3;

/// Blocks that each execution may touch beyond that: dead entries of ended runs in small indexes, of which up to 120 were seen,
/// and one more level of large ones. A scan of a whole table or index touches a block for each of many rows.
const SPARE: i64 = 150;

/// The executions of each statement, by the id of its parsed text, which is the same in copies of a database.
pub struct BlockCounts(BTreeMap<i64, Count>);

#[derive(Debug, Clone, FromRow)]
struct Count {
    id: i64,
    text: String,
    executions: i64,
    blocks: i64,
}

impl BlockCounts {
    /// Returns the executions of both.
    pub fn and(mut self, other: Self) -> Self {
        for (id, count) in other.0 {
            let sum = self.0.entry(id).or_insert_with(|| Count { executions: 0, blocks: 0, ..count.clone() });
            sum.executions += count.executions;
            sum.blocks += count.blocks;
        }
        self
    }

    /// Returns a line for each statement that has touched many more blocks than these.
    pub fn beyond(&self, good: &Self) -> Vec<String> {
        let line = |count: &Count| {
            let good = good.0.get(&count.id).map_or(0, Count::per_execution);
            let is_beyond = count.per_execution() > FACTOR * good + SPARE;
            is_beyond.then(|| format!("{} blocks instead of {good} by {}", count.per_execution(), name_of(&count.text)))
        };
        self.0.values().filter_map(line).collect()
    }
}

impl Count {
    fn per_execution(&self) -> i64 {
        self.blocks / self.executions
    }
}

/// A connection that reads the counts.
pub struct Counters(PgConnection);

impl Counters {
    pub async fn connect(database: &TestDatabase) -> Self {
        Self(PgConnection::connect(database.url()).await.unwrap())
    }

    /// Forgets the counts of this database.
    pub async fn reset(&mut self) {
        let reset = "
            select pg_stat_statements_reset(0, oid, 0)
            from pg_database
            where datname = current_database()
        ";
        sqlx::query(reset).execute(&mut self.0).await.unwrap();
    }

    /// Returns the counts since the last reset, and forgets them.
    pub async fn take(&mut self) -> BlockCounts {
        let counts = "
            select queryid as id, min(query) as text, cast(sum(calls) as bigint) as executions,
                cast(sum(shared_blks_hit + shared_blks_read) as bigint) as blocks
            from pg_stat_statements s
            join pg_database d on d.oid = s.dbid
            where d.datname = current_database()
            group by queryid
        ";
        let rows: Vec<Count> = sqlx::query_as(counts).fetch_all(&mut self.0).await.unwrap();
        self.reset().await;
        BlockCounts(rows.into_iter().map(|count| (count.id, count)).collect())
    }
}

/// Returns the name of a statement, or the beginning of its text if PostgreSQL itself has made it.
fn name_of(text: &str) -> String {
    let skeleton_of_text = skeleton(text);
    let names = statement_texts(BackEnd::Postgres).into_iter().filter_map(|(name, text)| {
        let skeleton = skeleton(&text);
        // A fenced write has more statements after its fence.
        let beginning = skeleton.strip_suffix("selectfromfence").unwrap_or(&skeleton);
        skeleton_of_text.starts_with(beginning).then(|| (beginning.len(), name.to_owned()))
    });
    let beginning = || text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect();
    names.max().map_or_else(beginning, |(_, name)| name)
}

/// Returns a text without its spaces and constants. PostgreSQL replaces the constants in the texts that it counts.
fn skeleton(text: &str) -> String {
    let is_code = |(index, part): (usize, &str)| (index % 2 == 0).then(|| part.to_owned());
    let code: String = text.split('\'').enumerate().filter_map(is_code).collect();
    let words = code.split(|character: char| !character.is_ascii_lowercase() && character != '_');
    let constants = ["true", "false", "null"];
    let kept = words.filter(|word| !constants.contains(word));
    kept.collect()
}
