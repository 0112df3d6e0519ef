//! A2A: the protocol by which agents call agents.
//!
//! A run is a task. `fold` turns the run's log into the task's updates, and `task` has their JSON in the forms of 1.0 and 0.3.

mod fold;
mod task;

use std::{io::Write as _, time::Duration};

use holdfast_shared::{event::Event, event_id::EventId};
use uuid::Uuid;

pub use fold::A2aFold;
pub use task::{A2aStatus, A2aTask, A2aUpdate, response};

use crate::wire::{CLIENT_PLACE, Detail, FrameId, WireFold};

/// The form of the protocol that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum A2aVersion {
    /// 1.0.
    V1,
    /// 0.3, whose objects have a `kind`.
    V03,
}

/// The part of a run that a client sees. Clients with equal views receive equal bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct A2aView {
    pub version: A2aVersion,
    pub detail: Detail,
    /// The run.
    pub task_id: Uuid,
    /// The client's name for the conversation, or its id.
    pub context_id: String,
    /// The answer.
    pub artifact_id: Uuid,
    /// The address of a file, without its id.
    pub files: String,
    /// The pause after which the client has continued the task by a message with its answer.
    pub after: Option<EventId>,
}

impl A2aView {
    /// Appends the frame of an update: a response, with a place for the id of the client's request.
    pub fn write(&self, buffer: &mut Vec<u8>, id: FrameId, update: &A2aUpdate<'_>) {
        write!(buffer, "id: {id}\ndata: ").expect("a Vec takes every write");
        buffer.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        buffer.push(CLIENT_PLACE);
        buffer.extend_from_slice(br#","result":"#);
        self.write_update(buffer, update);
        buffer.extend_from_slice(b"}\n\n");
    }
}

impl WireFold for A2aFold {
    type View = A2aView;

    const RECONNECTS: bool = false;

    /// The client for Python stops after 5 s of silence.
    const HEARTBEAT: Option<Duration> = Some(Duration::from_secs(3));

    fn frame(&mut self, view: &A2aView, buffer: &mut Vec<u8>, event: &Event) {
        let updates = self.push(view, event);
        if view.after.is_none_or(|pause| event.id > pause) {
            for (number, update) in (0..).zip(&updates) {
                view.write(buffer, FrameId { event: event.id, number }, update);
            }
        }
        // The stream before the pause has ended with one more frame.
        if view.after == Some(event.id) {
            let id = FrameId { event: event.id, number: self.frames + 1 };
            view.write(buffer, id, &A2aUpdate::Task(self.task_after_answer()));
        }
    }

    fn pause(&self, view: &A2aView, buffer: &mut Vec<u8>) {
        let id = FrameId { event: self.last, number: self.frames };
        view.write(buffer, id, &A2aUpdate::Status { status: self.question(), event: None });
    }
}
