//! LangGraph: the protocol of the clients of LangGraph's server.
//!
//! It is a fold with a state (`fold`), because its `values` frames have all messages. `journal` has the changes of the run's
//! messages, which a later attempt may supersede. `message` has the messages as LangChain serialises them, `interrupt` the
//! questions, `modes` the filter of frames, and `values` the state of a thread. `takeover` finds frames of a lost worker,
//! `writer` writes frames, `written` the pieces of the model's message, and `piece` their frames. `thread` has the protocol with one stream for all runs of a
//! thread.

mod fold;
mod interrupt;
mod journal;
mod message;
mod modes;
mod piece;
mod takeover;
mod thread;
mod values;
mod writer;
mod written;

use std::sync::Arc;

use holdfast_shared::{event::Event, event_id::EventId};
use uuid::Uuid;

pub use fold::LangFold;
pub use interrupt::LangInterrupt;
pub use message::{AnswerMessages, LangMessage, of_stored};
pub use modes::{LangMode, LangModes};
pub use thread::{Channel, Channels, RunCheckpoints, ThreadFold, ThreadView, position_of};
pub use values::LangHistory;

use crate::wire::{FrameId, WireFold};
use writer::FrameWriter;

/// The part of a run that a client sees. Clients with equal views receive equal bytes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LangView {
    pub modes: LangModes,
    /// The client's name for its thread.
    pub thread_id: String,
    /// The id by which the client knows the run, or a part of it.
    pub run_id: Uuid,
    /// The messages of the thread before the run's answer.
    pub history: Arc<LangHistory>,
    /// The pause after which the client has continued the thread by a request with its answers.
    pub after: Option<EventId>,
}

impl WireFold for LangFold {
    type View = LangView;

    const RECONNECTS: bool = true;

    fn frame(&mut self, view: &LangView, buffer: &mut Vec<u8>, event: &Event) {
        let is_before = view.after.is_some_and(|pause| event.id <= pause);
        let mut writer = FrameWriter::new(view, buffer, FrameId { event: event.id, number: 0 }, !is_before);
        self.push(&mut writer, event);
        if view.after == Some(event.id) {
            self.begin_after_pause(view, buffer);
        }
    }

    fn pause(&self, view: &LangView, buffer: &mut Vec<u8>) {
        self.end_at_pause(&mut FrameWriter::new(view, buffer, self.next_frame(), true));
    }
}
