//! The first event of an attempt, `attempt.started`. The statement that claims runs writes its line, and the worker sends the
//! same line to the run log.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{
    event::AttemptReason,
    storage::sql::{Statement, Value, args, statements},
};

/// The line of `attempt.started`: the values of a claimed run between the pieces of [`line_pieces`].
macro_rules! start_line {
    () => {
        "{bytes:
                attempt || cast($1 as text)
                || attempt || cast($2 as text)
                || (checkpoint / 4294967296) || '-' || (checkpoint % 4294967296) || cast($3 as text)
                || coalesce(attempt_reason, 'claimed') || cast($4 as text)
                || crashes || cast($5 as text)
            }"
    };
}

statements! {
    /// Archives the first event of each attempt. `$1` to `$5` are the pieces of its line.
    INSERT_STARTS {
        postgres = concat!("
            insert into run_events (run_id, last_id, body)
            select id, attempt * 4294967296 + 1, ", start_line!(), "
            from fence
        "),
        sqlite = concat!("
            insert into run_events (run_id, last_id, body)
            select id, attempt * 4294967296 + 1, ", start_line!(), "
            from agent_runs
            where id {in:$6}
        "),
    },
}

/// Returns the insert of the first events of claimed runs: in PostgreSQL of those of the fence, in SQLite of `ids`.
pub fn insert_starts(started_at: DateTime<Utc>, max_crashes: u32, ids: Option<Vec<Uuid>>) -> Statement {
    let mut args = line_pieces(started_at, max_crashes);
    args.extend(ids.map(Value::from));
    Statement::new(INSERT_STARTS, args)
}

/// Returns the pieces of the line of `attempt.started`, between which a statement puts the values of each claimed run.
fn line_pieces(started_at: DateTime<Utc>, max_crashes: u32) -> Vec<Value> {
    let head = format!("-1 {} attempt.started {{\"attempt\":", started_at.timestamp_millis());
    let end = format!(",\"max_crashes\":{max_crashes}}}\n");
    args![head, ",\"base\":\"", "\",\"reason\":\"", "\",\"crashes\":", end]
}

/// Returns the reason of an attempt, as the run's row has it.
pub fn reason(stored: Option<&str>) -> AttemptReason {
    match stored {
        Some("drain") => AttemptReason::Drain,
        Some("resumed") => AttemptReason::Resumed,
        Some("lease_expired") => AttemptReason::LeaseExpired,
        _ => AttemptReason::Claimed,
    }
}
