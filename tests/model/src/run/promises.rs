//! The promises, which hold in every state.

use std::collections::BTreeSet;

use stateright::{Model, Property};

use super::{
    RunModel,
    database::Status,
    worker::{Attempt, Stage},
    world::World,
};
use crate::event::{Event, EventId, Text, clients, follows, follows_without_base, id};

/// Returns all promises.
pub fn all() -> Vec<Property<RunModel>> {
    vec![
        Property::always("an id has one content", |_, world: &World| {
            world.visible().windows(2).all(|pair| pair[0].id != pair[1].id)
        }),
        Property::always("nothing is missing in the archive", |_, world: &World| {
            world.row.archive.windows(2).all(|pair| follows(pair[0].id, &pair[1]))
        }),
        Property::always("a visible end is the only one and is committed", |_, world: &World| world.ends_once()),
        Property::always("a client's text is the stored message", |model: &RunModel, world: &World| {
            let Some((end, message)) = world.end() else { return true };
            world.clients(model).iter().all(|(cursor, text)| *cursor != end || text == message)
        }),
        Property::always("every cursor reaches the end", |model: &RunModel, world: &World| {
            let Some((end, _)) = world.end() else { return true };
            world.clients(model).iter().all(|(cursor, _)| world.newest_after(*cursor) == end)
        }),
        Property::always("an appended event reaches every cursor", |model: &RunModel, world: &World| {
            let live = world.workers.iter().flatten().find(|attempt| attempt.is_caught_up(world));
            let Some(live) = live else { return true };
            world
                .clients(model)
                .iter()
                .all(|(cursor, _)| world.newest_after(*cursor) >= id(live.number, live.logged as u8))
        }),
        Property::always("only a human repeats a call", |_, world: &World| world.calls <= 1 + world.repeats),
        Property::always("only a death is charged", |_, world: &World| world.row.crashes <= world.deaths),
        Property::always("a cancelled run does not wait", |_, world: &World| {
            !(world.row.status == Status::Waiting && world.row.is_cancel_requested)
        }),
        Property::always("no run is stranded", |model: &RunModel, world: &World| {
            let mut actions = Vec::new();
            model.actions(world, &mut actions);
            world.row.status == Status::Ended || !actions.is_empty()
        }),
        Property::always("a deadly run ends", |model: &RunModel, world: &World| {
            // Each death takes an attempt, and so do the end and a claim whose answer is lost.
            let most = model.rules.max_crashes + 1 + model.faults.lost_commits;
            world.row.attempt <= most || !world.left.is_deadly
        }),
        Property::sometimes("a run ends", |_, world: &World| world.row.status == Status::Ended),
    ]
}

impl World {
    /// Returns each event that a client can have received, in order.
    fn visible(&self) -> Vec<Event> {
        let archived = self.row.archive.iter().copied();
        self.shown.iter().copied().chain(archived).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn clients(&self, model: &RunModel) -> BTreeSet<(EventId, Text)> {
        let follows = if model.rules.clients_check_bases { follows } else { follows_without_base };
        clients(&self.visible(), follows)
    }

    /// Returns the terminal event's id and the message of an ended run.
    fn end(&self) -> Option<(EventId, &Text)> {
        self.row.message.as_ref().map(|message| (self.row.archived_to(), message))
    }

    fn ends_once(&self) -> bool {
        let visible = self.visible();
        let mut ends = visible.iter().filter(|event| event.kind.is_terminal());
        let Some(end) = ends.next() else { return true };
        self.row.status == Status::Ended && ends.next().is_none() && !visible.iter().any(|event| follows(end.id, event))
    }

    /// Returns the newest event that a client at the cursor gets from the log and the archive.
    fn newest_after(&self, mut cursor: EventId) -> EventId {
        while let Some(event) = self.next_after(cursor) {
            cursor = event.id;
        }
        cursor
    }

    fn next_after(&self, cursor: EventId) -> Option<&Event> {
        let next_in = |events: &'_ [Event]| events.iter().position(|event| event.id > cursor);
        let in_log = next_in(&self.log).map(|index| &self.log[index]).filter(|event| follows(cursor, event));
        let in_archive = || next_in(&self.row.archive).map(|index| &self.row.archive[index]);
        in_log.or_else(|| in_archive().filter(|event| follows(cursor, event)))
    }
}

impl Attempt {
    /// Returns whether the holder believes that the log has all its events. A loss of the log is found by the next append.
    fn is_caught_up(&self, world: &World) -> bool {
        let holds = self.number == world.row.attempt && world.row.status == Status::Running;
        let has_log = world.log.last().is_some_and(|newest| newest.id == id(self.number, self.logged as u8));
        holds && has_log && !self.is_frozen && self.stage != Stage::Close && self.logged == self.events.len()
    }
}
