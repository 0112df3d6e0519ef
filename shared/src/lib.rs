//! The domain of Holdfast, and the places where its processes meet.
//!
//! Reading order:
//! - The domain has no async, no SQL and no clock: `event_id`, `event`, `transcript`, `parts`, `snapshot`, `run`, `ending`,
//!   `message`, `briefing`, `conversation`, `context`, `plan`, `memory`, `piece`, `time_zone`.
//! - API and workers meet in `storage` (the truth), `run_log` (hot events of each run) and `queue` (wake-ups, cancel
//!   signals, claims).
//! - `file_store` has the contents of files.
//! - `database` lends the database of `storage` to another crate.
//! - API processes alone meet in `rate_limit`.
//! - `quotas` limits one owner, and `turns` gives each caller one permit at a time. `json_size` measures foreign JSON before it
//!   is parsed, and `whole_numbers` reads `83.0` as an integer. `ingestion_places` bounds the documents that a worker claims.
//! - `config` chooses the back ends, `redis_link` connects three of them to Redis, `telemetry` exports spans.

#![warn(missing_docs)]

pub mod agent;
pub mod approval;
pub mod backoff;
pub mod briefing;
pub mod citation;
pub mod config;
pub mod context;
pub mod conversation;
pub mod database;
pub mod ending;
pub mod event;
pub mod event_id;
pub mod excerpt;
pub mod file;
pub mod file_name;
pub mod file_store;
pub mod finish_reason;
pub mod given_json;
pub mod hidden;
mod hosts;
pub mod idempotency;
pub mod ingestion_places;
pub mod json_size;
mod lenient;
pub mod media_type;
pub mod memory;
pub mod message;
pub mod overrides;
pub mod page;
pub mod parts;
pub mod piece;
pub mod plan;
pub mod queue;
pub mod quotas;
pub mod rate_limit;
mod redis_link;
pub mod run;
pub mod run_log;
pub mod schema;
pub mod snapshot;
pub mod storable;
pub mod storage;
pub mod subagent;
pub mod telemetry;
mod text_enum;
pub mod time_zone;
pub mod timestamp;
pub mod tokens;
pub mod tool;
pub mod tool_choice;
pub mod trace;
pub mod transcript;
pub mod turns;
pub mod typing_error;
pub mod usage;
pub mod whole_numbers;
