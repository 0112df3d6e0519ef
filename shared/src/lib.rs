//! Holdfast's domain and its three meeting places.
//!
//! Read in this order: the words (`event_id`, `event`, `transcript`, `snapshot`, `run`, `ending`, `message`, `briefing`, `conversation`), which are pure:
//! no async, no SQL, no clock. Then the places where API and workers meet: `storage` (the truth), `run_log` (the hot log
//! of each run) and `queue` (wake-ups, cancel signals and the claims as a stream). In `rate_limit` only APIs meet. `quotas` are what one owner may have; `turns` let callers work one at a time. `config`
//! says which back ends they get; `redis_link` is how three of them reach Redis. `telemetry` exports spans, where that is wanted.

pub mod agent;
pub mod approval;
pub mod briefing;
pub mod config;
pub mod conversation;
pub mod ending;
pub mod event;
pub mod event_id;
pub mod excerpt;
pub mod finish_reason;
pub mod hidden;
pub mod idempotency;
pub mod message;
pub mod page;
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
pub mod telemetry;
mod text_enum;
pub mod timestamp;
pub mod tokens;
pub mod tool;
pub mod trace;
pub mod transcript;
pub mod turns;
pub mod usage;
