#![doc = include_str!("../README.md")]

mod answer;
mod client;
mod error;
mod event;
mod follower;
mod frames;
mod pauses;
mod upload;
#[rustfmt::skip]
pub mod wire;

pub use answer::Answer;
pub use client::Client;
pub use error::{Error, Problem};
pub use event::{Event, EventId};
pub use wire::{ContentInput, DecisionBody, NewMessageBody, NewRunBody, RunEvent, Verdict};
