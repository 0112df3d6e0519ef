//! Knowledge on both databases.
#![allow(clippy::unwrap_used)]

mod backends;
mod limits;
mod pgvector;
mod places;
mod queue;
mod removal;
mod search;
mod statements;
mod vectors;
