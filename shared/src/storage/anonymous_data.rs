//! The bytes of all anonymous users together. One sweep after another measures them, because a sum per request would read
//! all their rows.

use std::time::Duration;

use super::{
    Error, Storage,
    sql::{args, statements},
};

statements! {
    /// Begins to measure, unless another sweep has begun within `$1` milliseconds.
    BEGIN = "
        insert into anonymous_data (id, bytes, begun_at)
        values (1, 0, {now})
        on conflict (id) do update
        set begun_at = {now}
        where anonymous_data.begun_at <= {before:$1}
        returning bytes
    ",
    /// Returns the bytes of all anonymous users, roughly: what the quotas of one user count, with deleted conversations that the
    /// sweeper has not removed yet. An upload counts what has arrived.
    MEASURE = "
        select cast(
            (
                select coalesce(sum(c.bytes), 0)
                from anonymous_users u
                join chat_conversations c on c.owner_id = u.owner_id
            ) + (
                select coalesce(sum(b.bytes), 0)
                from anonymous_users u
                join briefings b on b.owner_id = u.owner_id
            ) + (
                select coalesce(sum(f.received), 0)
                from anonymous_users u
                join files f on f.owner_id = u.owner_id
            ) + (
                select coalesce(sum(d.text_bytes), 0)
                from anonymous_users u
                join documents d on d.owner_id = u.owner_id
            ) + (
                select coalesce(sum(o.bytes), 0)
                from anonymous_users u
                join onto_owners o on o.owner_id = u.owner_id
            )
            as bigint
        )
    ",
    /// Stores a measurement.
    STORE = "
        update anonymous_data
        set bytes = $1,
            number = number + 1
        where id = 1
        returning bytes
    ",
    /// Returns the last measurement.
    MEASURED = "
        select number, bytes
        from anonymous_data
        where id = 1
    ",
}

/// A measurement of the data of all anonymous users.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnonymousMeasurement {
    /// Counts the measurements; 0 before the first.
    pub number: i64,
    /// Their bytes, roughly.
    pub bytes: u64,
}

impl Storage {
    /// Measures and stores the bytes of all anonymous users, unless a process has begun to within this time. Returns the newest
    /// measurement's bytes, and whether they are new.
    pub async fn measure_anonymous_data(&self, interval: Duration) -> Result<(u64, bool), Error> {
        const DOING: &str = "measure the data of anonymous users";
        if self.database.write::<(i64,)>(DOING, BEGIN, args![interval]).await?.is_empty() {
            return Ok((self.anonymous_data().await?.bytes, false));
        }
        let (bytes,) = self.database.fetch_optional::<(i64,)>(DOING, MEASURE, args![]).await?.unwrap_or_default();
        self.database.write::<(i64,)>(DOING, STORE, args![bytes]).await?;
        Ok((bytes as u64, true))
    }

    /// Returns the last measurement of the data of all anonymous users.
    pub async fn anonymous_data(&self) -> Result<AnonymousMeasurement, Error> {
        let doing = "read the bytes of anonymous users";
        let measured = self.database.fetch_optional::<(i64, i64)>(doing, MEASURED, args![]).await?;
        let (number, bytes) = measured.unwrap_or_default();
        Ok(AnonymousMeasurement { number, bytes: bytes as u64 })
    }
}
