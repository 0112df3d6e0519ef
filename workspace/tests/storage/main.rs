//! The workspace on both databases.
#![allow(clippy::unwrap_used)]

mod backends;
mod calls;
mod changes;
mod marks;
mod search;
mod statements;
mod templates;
mod tools;
mod undo;
