//! End to end: the real executable, private servers, a file per story.
#![allow(clippy::unwrap_used)]

mod support;

mod api;
mod cancel;
mod chat;
mod drain;
mod limits;
mod model;
mod ownership;
mod postgres;
mod queueing;
mod redis;
mod resume;
mod start;
mod takeover;
mod watchers;
