//! The workspace on both databases.
#![allow(clippy::unwrap_used)]

mod backends;
mod calls;
mod changes;
mod statements;
mod undo;
