//! The parameters of statements, and the rows that they return.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serializer;
use sqlx::{
    FromRow,
    postgres::{PgArguments, PgRow},
    sqlite::{SqliteArguments, SqliteRow},
};
use uuid::Uuid;

/// A type that can be read from a row of either database.
pub trait Row: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow> + Send + Unpin {}

impl<T: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow> + Send + Unpin> Row for T {}

/// A parameter of a statement.
#[derive(Debug, Clone)]
pub enum Value {
    /// An id.
    Uuid(Option<Uuid>),
    /// The ids of a membership.
    Uuids(Vec<Uuid>),
    /// An array of numbers. Arrays are for PostgreSQL alone.
    Ints(Vec<i64>),
    /// An array of texts.
    Texts(Vec<Option<String>>),
    /// An array of times.
    Times(Vec<DateTime<Utc>>),
    /// An array of JSON values.
    Jsons(Vec<Option<serde_json::Value>>),
    /// An array of bytes.
    Blobs(Vec<Vec<u8>>),
    /// A text.
    Text(Option<String>),
    /// A number.
    Int(Option<i64>),
    /// A truth value.
    Bool(bool),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A point in time.
    Time(Option<DateTime<Utc>>),
    /// A JSON value.
    Json(Option<serde_json::Value>),
}

/// The parameters of a statement, in order.
#[macro_export]
macro_rules! args {
    ($($value:expr),* $(,)?) => { vec![$($crate::database::Value::from($value)),*] };
}
pub use crate::args;

macro_rules! value_from {
    ($($from:ty => $variant:ident, $convert:expr;)*) => {
        $(impl From<$from> for Value {
            fn from(value: $from) -> Self {
                Self::$variant(($convert)(value))
            }
        })*
    };
}

value_from! {
    Uuid => Uuid, Some;
    Option<Uuid> => Uuid, std::convert::identity;
    Vec<Uuid> => Uuids, std::convert::identity;
    Vec<i64> => Ints, std::convert::identity;
    Vec<Option<String>> => Texts, std::convert::identity;
    Vec<DateTime<Utc>> => Times, std::convert::identity;
    Vec<Option<serde_json::Value>> => Jsons, std::convert::identity;
    Vec<Vec<u8>> => Blobs, std::convert::identity;
    &str => Text, |text: &str| Some(text.to_owned());
    String => Text, Some;
    Option<String> => Text, std::convert::identity;
    i64 => Int, Some;
    u32 => Int, |number: u32| Some(i64::from(number));
    usize => Int, |number: usize| Some(number as i64);
    Option<i64> => Int, std::convert::identity;
    crate::event_id::EventId => Int, |id: crate::event_id::EventId| Some(id.packed());
    std::time::Duration => Int, |duration: std::time::Duration| Some(duration.as_millis() as i64);
    Vec<u8> => Bytes, std::convert::identity;
    Option<DateTime<Utc>> => Time, std::convert::identity;
    bool => Bool, std::convert::identity;
    serde_json::Value => Json, Some;
    Option<serde_json::Value> => Json, std::convert::identity;
}

/// Returns the parameters for PostgreSQL.
pub fn postgres_args(values: Vec<Value>) -> PgArguments {
    use sqlx::Arguments as _;
    let mut args = PgArguments::default();
    for value in values {
        let added = match value {
            Value::Uuid(value) => args.add(value),
            Value::Uuids(value) => args.add(value),
            Value::Ints(value) => args.add(value),
            Value::Texts(value) => args.add(value),
            Value::Times(value) => args.add(value),
            Value::Jsons(value) => args.add(value),
            Value::Blobs(value) => args.add(value),
            Value::Text(value) => args.add(value),
            Value::Int(value) => args.add(value),
            Value::Bool(value) => args.add(value),
            Value::Bytes(value) => args.add(value),
            Value::Time(value) => args.add(value),
            Value::Json(value) => args.add(value),
        };
        added.expect("every kind of value can be encoded");
    }
    args
}

/// Returns the parameters for SQLite.
pub fn sqlite_args(values: Vec<Value>) -> SqliteArguments {
    use sqlx::Arguments as _;
    let mut args = SqliteArguments::default();
    for value in values {
        let added = match value {
            Value::Uuid(value) => args.add(value),
            Value::Uuids(value) => args
                .add(serde_json::json!(value.iter().map(|id| id.simple().to_string()).collect::<Vec<_>>()).to_string()),
            Value::Ints(_) | Value::Texts(_) | Value::Times(_) | Value::Jsons(_) | Value::Blobs(_) => {
                unreachable!("only statements of PostgreSQL have arrays")
            }
            Value::Text(value) => args.add(value),
            Value::Int(value) => args.add(value),
            Value::Bool(value) => args.add(value),
            Value::Bytes(value) => args.add(value),
            Value::Time(value) => args.add(value.map(|at| at.to_rfc3339_opts(SecondsFormat::Millis, false))),
            Value::Json(value) => args.add(value.map(|json| json.to_string())),
        };
        added.expect("every kind of value can be encoded");
    }
    args
}

/// Serializes an id for `{uuid:…}` of a JSON parameter.
pub fn id_text<S: Serializer>(id: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&id.simple())
}

/// Serializes an id, if there is one, as `id_text` does.
pub fn optional_id_text<S: Serializer>(id: &Option<Uuid>, serializer: S) -> Result<S::Ok, S::Error> {
    match id {
        Some(id) => id_text(id, serializer),
        None => serializer.serialize_none(),
    }
}
