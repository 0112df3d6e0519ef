//! The thread-centric protocol of LangGraph's newer clients: one stream for all runs of a thread, as events of channels.
//!
//! `fold` turns a run's log into events, `message` the output of the model into blocks, and `writer` writes them for the channels
//! that a client wants (`channels`).

mod channels;
mod fold;
mod message;
mod writer;

pub use channels::{Channel, Channels};
pub use fold::{RunCheckpoints, ThreadFold, ThreadView};
pub use writer::position_of;
