//! Writes that depend on one row: the row's own statement is the fence, and if it touches no row, no other write
//! happens. PostgreSQL receives all of them as one statement in one round trip. SQLite, in a thread of this process, executes
//! the fence, and then the writes one after the other.

use sqlx::AssertSqlSafe;

use super::{
    Database, Error,
    database::within,
    pool::PgQuery,
    statement::{Sql, statements},
    transaction::{Commit, Tx, TxConnection},
    value::{Row, Value, postgres_args, sqlite_args},
};

/// Most writes that share a prepared text. More in one step are rare, and each selection of them would be another text.
const USUAL: usize = 6;

/// A statement and its parameters.
pub struct Statement {
    sql: Sql,
    args: Vec<Value>,
    is_spare: bool,
}

statements! {
    /// Begins the attempt of a spare write.
    SAVEPOINT = "savepoint spare",
    /// Undoes a spare write that the database refused.
    ROLL_BACK_TO_SAVEPOINT = "rollback to savepoint spare",
    /// Ends the attempt.
    RELEASE_SAVEPOINT = "release savepoint spare",
}

impl Statement {
    pub const fn new(sql: Sql, args: Vec<Value>) -> Self {
        Self { sql, args, is_spare: false }
    }

    /// Returns text and parameters, to execute the statement alone.
    pub fn into_parts(self) -> (Sql, Vec<Value>) {
        (self.sql, self.args)
    }

    /// Marks a row that the other writes do not need. If the database refuses it, they still happen.
    pub fn spare(self) -> Self {
        Self { is_spare: true, ..self }
    }
}

/// The way of writing spare rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spare {
    /// In one round trip with the others. A refusal of one is a refusal of all.
    Together,
    /// After the others, each with a savepoint. The extra round trips are worth it only after a refusal.
    Apart,
}

/// The outcome of the writes.
pub struct WriteOutcome<T> {
    /// The rows that the fence returned.
    pub rows: Vec<T>,
    /// The reason why the database refused a spare row.
    pub refused: Option<Error>,
}

/// The fence, which returns the rows that it touches, and the writes after it. Each write is an insert from a `select`
/// that uses `{fenced}`, `{fence:…}` or, for PostgreSQL alone, the rows of `fence`. The writes have no order, and none sees
/// another.
pub struct FencedWrites {
    /// Statements before the fence, each with the name by which later ones read it; for PostgreSQL alone.
    before: Vec<(&'static str, Statement)>,
    fence: Statement,
    writes: Vec<Statement>,
}

impl FencedWrites {
    /// Returns whether there are spare rows.
    pub fn has_spare(&self) -> bool {
        self.writes.iter().any(|write| write.is_spare)
    }

    pub const fn new(fence: Statement, writes: Vec<Statement>) -> Self {
        Self { before: Vec::new(), fence, writes }
    }

    /// Returns the writes with one more statement before the fence.
    pub fn after(mut self, name: &'static str, statement: Statement) -> Self {
        self.before.push((name, statement));
        self
    }

    /// Returns all of it as one statement.
    fn query<T: Row>(self) -> PgQuery<'static, T> {
        let is_usual = self.writes.len() <= USUAL;
        let mut parts = Vec::with_capacity(1 + self.before.len() + self.writes.len());
        let mut args = Vec::new();
        let mut push = |name: &str, statement: Statement| {
            parts.push(part(name, statement.sql, args.len()));
            args.extend(statement.args);
        };
        for (name, statement) in self.before {
            push(name, statement);
        }
        push("fence", self.fence);
        for (index, write) in self.writes.into_iter().enumerate() {
            push(&format!("write_{index}"), write);
        }
        let text = combined(&parts, "fence");
        sqlx::query_as_with(AssertSqlSafe(text), postgres_args(args)).persistent(is_usual)
    }
}

impl Database {
    /// Makes the writes in a separate transaction. Returns the rows of the fence.
    pub async fn write_fenced<T: Row>(&self, doing: &'static str, fenced: FencedWrites) -> Result<Vec<T>, Error> {
        match self {
            Self::Postgres(pool) if !pool.is_behind_pooler() => {
                within(pool.fetch_all(fenced.query())).await.map_err(Error::doing(doing))
            }
            _ => self.transact(doing, async |tx| Ok(Commit(tx.write_fenced(fenced).await?))).await,
        }
    }

    /// Makes the writes, and omits the spare rows that the database refuses.
    pub async fn write_without_refused_spares<T: Row>(
        &self,
        doing: &'static str,
        fenced: impl Fn() -> FencedWrites,
    ) -> Result<WriteOutcome<T>, Error> {
        let refusal = match self.write_fenced(doing, fenced()).await {
            Err(error) if error.refuses_row() => error,
            rows => return Ok(WriteOutcome { rows: rows?, refused: None }),
        };
        let again = fenced();
        if !again.has_spare() {
            return Err(refusal);
        }
        self.transact(doing, async |tx| Ok(Commit(tx.write_spares(again, Spare::Apart).await?))).await
    }
}

impl Tx {
    /// Makes the writes in this transaction. Returns the rows of the fence.
    pub async fn write_fenced<T: Row>(&mut self, fenced: FencedWrites) -> Result<Vec<T>, Error> {
        if let TxConnection::Postgres(tx) = &mut self.connection {
            let rows = within(fenced.query().fetch_all(tx.connection())).await;
            return rows.map_err(Error::doing(self.doing));
        }
        let rows = self.fetch_all(fenced.fence.sql, fenced.fence.args).await?;
        if rows.is_empty() {
            return Ok(rows);
        }
        if (2..=USUAL).contains(&fenced.writes.len()) {
            self.execute_all(fenced.writes).await?;
        } else {
            for write in fenced.writes {
                self.execute(write.sql, write.args).await?;
            }
        }
        Ok(rows)
    }

    /// Executes SQLite's statements one after the other, with one message to its thread.
    async fn execute_all(&mut self, statements: Vec<Statement>) -> Result<(), Error> {
        let (mut texts, mut args) = (Vec::with_capacity(statements.len()), Vec::new());
        for Statement { sql, args: own, .. } in statements {
            texts.push(renumbered(&sql.for_sqlite(), args.len()));
            args.extend(own);
        }
        let query = sqlx::query_with(AssertSqlSafe(texts.join(";\n")), sqlite_args(args));
        let TxConnection::Sqlite(tx) = &mut self.connection else { unreachable!("PostgreSQL has combined statements") };
        let executed = within(query.execute(tx.connection())).await;
        tx.note(executed).map(drop).map_err(Error::doing(self.doing))
    }

    /// Makes the writes in this transaction, the spare ones among them as `how` says.
    pub async fn write_spares<T: Row>(
        &mut self,
        mut fenced: FencedWrites,
        how: Spare,
    ) -> Result<WriteOutcome<T>, Error> {
        let mut spare = Vec::new();
        if how == Spare::Apart {
            (spare, fenced.writes) = fenced.writes.into_iter().partition(|write| write.is_spare);
        }
        let rows = self.write_fenced(fenced).await?;
        let mut refused = None;
        if !rows.is_empty() {
            for write in spare {
                refused = self.try_write(write).await?.or(refused);
            }
        }
        Ok(WriteOutcome { rows, refused })
    }

    /// Makes one write that the database may refuse, and returns the refusal. The transaction continues after it.
    async fn try_write(&mut self, write: Statement) -> Result<Option<Error>, Error> {
        self.execute(SAVEPOINT, Vec::new()).await?;
        let written = match &mut self.connection {
            // The fence has passed, but the text still refers to it.
            TxConnection::Postgres(tx) => {
                let text = write.sql.for_postgres_unfenced();
                let query = sqlx::query_with(AssertSqlSafe(text), postgres_args(write.args));
                within(query.execute(tx.connection())).await.map(drop).map_err(Error::doing(self.doing))
            }
            TxConnection::Sqlite(_) => self.execute(write.sql, write.args).await.map(drop),
        };
        let refused = match written {
            Ok(()) => None,
            Err(error) if error.refuses_row() => {
                self.execute(ROLL_BACK_TO_SAVEPOINT, Vec::new()).await?;
                Some(error)
            }
            Err(error) => return Err(error),
        };
        self.execute(RELEASE_SAVEPOINT, Vec::new()).await?;
        Ok(refused)
    }
}

/// Returns a part of a combined statement, whose parameters follow `by` others.
pub fn part(name: &str, sql: Sql, by: usize) -> String {
    format!("{name} as ({})", renumbered(&sql.for_postgres(), by))
}

/// Returns one statement of these parts, which returns the rows of one of them.
pub fn combined(parts: &[String], rows: &str) -> String {
    format!("with {} select * from {rows}", parts.join(", "))
}

/// Returns the text with each parameter's number raised by `by`.
fn renumbered(sql: &str, by: usize) -> String {
    let mut parts = sql.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|character: char| character.is_ascii_digit()).len();
        let number: usize = part[..digits].parse().expect("a parameter in SQL is a number");
        text.push_str(&format!("${}{}", number + by, &part[digits..]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::renumbered;

    #[test]
    fn parameters_are_numbered_after_those_of_earlier_statements() {
        assert_eq!(renumbered("select $1, $12 where $1 = {x}", 3), "select $4, $15 where $4 = {x}");
        assert_eq!(renumbered("select 1", 3), "select 1");
    }
}
