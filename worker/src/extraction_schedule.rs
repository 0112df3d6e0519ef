//! The order of extractions: which of the waiting ones begins next, and how many run at once. It has no clock and no async.
//!
//! First tries precede long ones, and of each the texts of chats precede ingestions. Among equals, the owner with fewer turns
//! comes first, then the owner whose turns have taken less time since it has work here. `extraction_turns` lets callers wait for
//! their turn, and begins all that may begin after each change.

use std::{cmp::Reverse, collections::HashMap, time::Duration};

/// Chats that may begin one after the other before a waiting ingestion: many chats delay ingestions, and never stop them.
const CHATS_IN_A_ROW: u32 = 8;

/// Time of turns after which an owner leaves the last free turn to owners with less.
const HEAVY: Duration = Duration::from_secs(10);

/// Ingestions that wait for a long try in this process. Further ones wait in the queue.
const LONG_WAITERS: usize = 8;

/// The length of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TryLength {
    /// The first try, of a few seconds.
    Short,
    /// The try of a document whose first one ran out.
    Long,
}

/// The reader of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextReader {
    /// A model, for whose answer a user waits.
    Chat,
    /// The index of a collection.
    Ingestion,
}

/// The kind of a turn. Order matters: a smaller kind begins first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TurnKind {
    pub length: TryLength,
    pub reader: TextReader,
}

/// The extractions of a process that run or wait.
#[derive(Debug)]
pub struct ExtractionSchedule {
    /// Extractions at once, without the one more for chats.
    turns: usize,
    /// In the order of arrival.
    waiting: Vec<ScheduledExtraction>,
    held: Vec<ScheduledExtraction>,
    /// The time that ended turns of each owner have taken, while the owner has others that run or wait.
    spent: HashMap<String, Duration>,
    next_id: u64,
    chats_in_a_row: u32,
}

#[derive(Debug)]
struct ScheduledExtraction {
    id: u64,
    owner: String,
    kind: TurnKind,
}

impl TurnKind {
    fn is_short_of_chat(self) -> bool {
        self == Self { length: TryLength::Short, reader: TextReader::Chat }
    }

    fn is_short_of_ingestion(self) -> bool {
        self == Self { length: TryLength::Short, reader: TextReader::Ingestion }
    }

    fn is_long_of_ingestion(self) -> bool {
        self == Self { length: TryLength::Long, reader: TextReader::Ingestion }
    }
}

impl ExtractionSchedule {
    pub fn new(turns: usize) -> Self {
        Self { turns, waiting: Vec::new(), held: Vec::new(), spent: HashMap::new(), next_id: 0, chats_in_a_row: 0 }
    }

    /// Adds an extraction, and returns its id. `None` if it is an ingestion that must wait in the queue.
    pub fn ask(&mut self, owner: &str, kind: TurnKind) -> Option<u64> {
        if kind.reader == TextReader::Ingestion && self.waits_in_queue(owner, kind.length) {
            return None;
        }
        let id = self.next_id;
        self.next_id += 1;
        self.spent.entry(owner.to_owned()).or_default();
        self.waiting.push(ScheduledExtraction { id, owner: owner.to_owned(), kind });
        Some(id)
    }

    /// Begins one waiting extraction if it may, and returns its id.
    pub fn begin_next(&mut self) -> Option<u64> {
        let allowed = self.waiting.iter().enumerate().filter(|(_, turn)| self.may_begin(turn));
        let order = |turn: &ScheduledExtraction| {
            (self.level(turn.kind), self.held_by(&turn.owner), self.spent[&turn.owner], turn.id)
        };
        let (at, _) = allowed.min_by_key(|(_, turn)| order(turn))?;
        let turn = self.waiting.remove(at);
        let ingestion_waits = self.waiting.iter().any(|turn| turn.kind.is_short_of_ingestion());
        self.chats_in_a_row = if turn.kind.is_short_of_chat() && ingestion_waits { self.chats_in_a_row + 1 } else { 0 };
        let id = turn.id;
        self.held.push(turn);
        Some(id)
    }

    /// Removes an extraction that has ended after this time, or that waits no longer.
    pub fn end(&mut self, id: u64, worked: Duration) {
        let is_of_turn = |turn: &&ScheduledExtraction| turn.id == id;
        let owner = self.held.iter().find(is_of_turn).map(|turn| &turn.owner);
        if let Some(spent) = owner.and_then(|owner| self.spent.get_mut(owner)) {
            *spent += worked;
        }
        self.waiting.retain(|turn| turn.id != id);
        self.held.retain(|turn| turn.id != id);
        let (waiting, held) = (&self.waiting, &self.held);
        self.spent.retain(|owner, _| waiting.iter().chain(held).any(|turn| turn.owner == *owner));
    }

    /// Returns whether an extraction runs.
    pub fn is_held(&self, id: u64) -> bool {
        self.held.iter().any(|turn| turn.id == id)
    }

    /// Returns how many first tries of ingestions could begin now, after all that may begin have begun. A chat that still
    /// waits does so for its own owner's turns.
    pub fn free_for_ingestions(&self) -> usize {
        let free = (self.all() - self.held.len()).min(self.turns.saturating_sub(self.held_by_others()));
        free.saturating_sub(self.waiting.iter().filter(|turn| turn.kind.is_short_of_ingestion()).count())
    }

    /// Returns whether an ingestion would take room from others here: its owner has all of its turns, or waits for a long try
    /// already, or too many others wait for theirs.
    fn waits_in_queue(&self, owner: &str, length: TryLength) -> bool {
        let mut long = self.waiting.iter().filter(|turn| turn.kind.is_long_of_ingestion());
        let mut is_crowded = || long.clone().count() >= LONG_WAITERS || long.any(|turn| turn.owner == owner);
        self.held_by(owner) >= self.turns || (length == TryLength::Long && is_crowded())
    }

    fn may_begin(&self, turn: &ScheduledExtraction) -> bool {
        let is_free = self.held.len() < self.all()
            && (turn.kind.is_short_of_chat() || self.held_by_others() < self.turns)
            // An owner leaves one turn to the others, and all heavy owners together do so too.
            && self.held_by(&turn.owner) < self.turns
            && (self.held.len() < self.turns || self.spent[&turn.owner] < HEAVY);
        is_free && (turn.kind.length == TryLength::Short || self.may_begin_long(&turn.owner))
    }

    /// Long tries have half of the turns, and an owner leaves one of them to the others.
    fn may_begin_long(&self, owner: &str) -> bool {
        let most = (self.turns / 2).max(1);
        let long = || self.held.iter().filter(|turn| turn.kind.length == TryLength::Long);
        long().count() < most && long().filter(|turn| turn.owner == owner).count() < (most - 1).max(1)
    }

    /// The kinds in their order. An ingestion that too many chats have passed precedes them once.
    fn level(&self, kind: TurnKind) -> (Reverse<bool>, TurnKind) {
        (Reverse(self.chats_in_a_row >= CHATS_IN_A_ROW && kind.is_short_of_ingestion()), kind)
    }

    fn all(&self) -> usize {
        self.turns + 1
    }

    /// Returns how many turns others than first tries of chats hold. They never hold the last one.
    fn held_by_others(&self) -> usize {
        self.held.iter().filter(|turn| !turn.kind.is_short_of_chat()).count()
    }

    fn held_by(&self, owner: &str) -> usize {
        self.held.iter().filter(|turn| turn.owner == owner).count()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        TextReader::{Chat, Ingestion},
        TryLength::{Long, Short},
        *,
    };

    /// Asks for turns, in this order, and begins all that may. Returns the owners of those that have begun, in their order.
    fn begun(schedule: &mut ExtractionSchedule, asked: &[(&'static str, TryLength, TextReader)]) -> Vec<String> {
        for (owner, length, reader) in asked {
            schedule.ask(owner, TurnKind { length: *length, reader: *reader }).unwrap();
        }
        begin_all(schedule)
    }

    fn begin_all(schedule: &mut ExtractionSchedule) -> Vec<String> {
        let ids = std::iter::from_fn(|| schedule.begin_next()).collect::<Vec<_>>();
        let owner = |id: &u64| schedule.held.iter().find(|turn| turn.id == *id).unwrap().owner.clone();
        ids.iter().map(owner).collect()
    }

    /// Ends the extraction of an owner that began first, after some seconds, and begins those that may now.
    fn end_of(schedule: &mut ExtractionSchedule, owner: &str) -> Vec<String> {
        end_after(schedule, owner, Duration::from_secs(2))
    }

    fn end_after(schedule: &mut ExtractionSchedule, owner: &str, worked: Duration) -> Vec<String> {
        let id = schedule.held.iter().find(|turn| turn.owner == owner).unwrap().id;
        schedule.end(id, worked);
        begin_all(schedule)
    }

    #[test]
    fn the_turns_begin_by_their_kinds_and_owners() {
        let check = |turns, asked: &[_], expected: &[&str]| {
            assert_eq!(begun(&mut ExtractionSchedule::new(turns), asked), expected, "{turns}: {asked:?}");
        };
        // Chats precede ingestions, and first tries precede long ones.
        check(1, &[("ann", Short, Ingestion), ("bob", Short, Chat)], &["bob", "ann"]);
        check(1, &[("ann", Long, Chat), ("bob", Short, Ingestion)], &["bob"]);
        check(2, &[("ann", Long, Ingestion), ("bob", Long, Chat)], &["bob"]);
        // One turn more is for the first tries of chats alone.
        let three = &[("ann", Short, Ingestion), ("bob", Short, Ingestion), ("eve", Short, Ingestion)];
        check(2, three, &["ann", "bob"]);
        check(2, &[("ann", Short, Chat), ("bob", Short, Chat), ("eve", Short, Chat)], &["ann", "bob", "eve"]);
        // An owner leaves one turn to the others.
        check(2, &[("ann", Short, Chat); 3], &["ann", "ann"]);
        check(1, &[("ann", Short, Chat); 2], &["ann"]);
        // Long tries have half of the turns, and an owner leaves one of these.
        check(2, &[("ann", Long, Chat), ("bob", Long, Chat)], &["ann"]);
        check(6, &[("ann", Long, Chat), ("ann", Long, Chat), ("ann", Long, Chat)], &["ann", "ann"]);
        check(6, &[("a", Long, Chat), ("b", Long, Chat), ("c", Long, Chat), ("d", Long, Chat)], &["a", "b", "c"]);
        // The owner with fewer turns comes first.
        check(3, &[("ann", Short, Chat), ("ann", Short, Chat), ("bob", Short, Chat)], &["ann", "bob", "ann"]);
    }

    #[test]
    fn an_owner_whose_turns_have_taken_less_time_comes_first() {
        let mut schedule = ExtractionSchedule::new(1);
        assert_eq!(begun(&mut schedule, &[("ann", Short, Chat), ("eve", Short, Chat)]), ["ann", "eve"]);
        assert!(begun(&mut schedule, &[("ann", Short, Chat), ("eve", Short, Chat), ("bob", Short, Chat)]).is_empty());
        assert_eq!(end_of(&mut schedule, "ann"), ["bob"]);
        assert_eq!(end_of(&mut schedule, "eve"), ["ann"]);
        assert_eq!(end_of(&mut schedule, "bob"), ["eve"]);
        for owner in ["ann", "eve"] {
            end_of(&mut schedule, owner);
        }
        assert!(schedule.spent.is_empty(), "owners without work take no memory");
    }

    #[test]
    fn a_short_document_does_not_wait_for_long_ones() {
        let mut schedule = ExtractionSchedule::new(2);
        assert_eq!(begun(&mut schedule, &[("ann", Long, Ingestion), ("eve", Long, Ingestion)]), ["ann"]);
        assert_eq!(schedule.free_for_ingestions(), 1, "a waiting long try takes no turn");
        assert_eq!(begun(&mut schedule, &[("bob", Short, Ingestion)]), ["bob"]);
        assert_eq!(begun(&mut schedule, &[("bob", Short, Chat)]), ["bob"]);
        assert_eq!(end_of(&mut schedule, "ann"), ["eve"]);
    }

    #[test]
    fn many_chats_do_not_stop_an_ingestion() {
        let mut schedule = ExtractionSchedule::new(1);
        assert_eq!(begun(&mut schedule, &[("a", Short, Chat), ("b", Short, Chat)]), ["a", "b"]);
        assert!(begun(&mut schedule, &[("bob", Short, Ingestion)]).is_empty());
        let passed = (1..)
            .take_while(|_| {
                schedule.ask("a", TurnKind { length: Short, reader: Chat }).unwrap();
                end_after(&mut schedule, "a", Duration::ZERO) == ["a"]
            })
            .count();
        assert_eq!(passed, CHATS_IN_A_ROW as usize);
        assert_eq!(schedule.held_by("bob"), 1);
    }

    #[test]
    fn heavy_owners_together_leave_one_turn_to_the_others() {
        let mut schedule = ExtractionSchedule::new(2);
        begun(&mut schedule, &[("ann", Short, Chat), ("eve", Short, Chat), ("joe", Short, Chat)]);
        for _ in 0..5 {
            for owner in ["ann", "eve", "joe"] {
                schedule.ask(owner, TurnKind { length: Short, reader: Chat }).unwrap();
                end_of(&mut schedule, owner);
            }
        }
        assert_eq!(schedule.held.len(), 2);
        assert_eq!(begun(&mut schedule, &[("bob", Short, Chat)]), ["bob"]);
        assert!(end_of(&mut schedule, "bob").is_empty());
    }

    #[test]
    fn a_further_long_ingestion_waits_in_the_queue() {
        let long = TurnKind { length: Long, reader: Ingestion };
        let mut schedule = ExtractionSchedule::new(2);
        assert_eq!(begun(&mut schedule, &[("ann", Long, Ingestion)]), ["ann"]);
        assert!(begun(&mut schedule, &[("ann", Long, Ingestion)]).is_empty());
        assert_eq!(schedule.ask("ann", long), None, "another one of its owner waits");
        for owner in 1..LONG_WAITERS {
            assert!(schedule.ask(&owner.to_string(), long).is_some());
        }
        assert_eq!(schedule.ask("eve", long), None, "too many of others wait");
        assert!(schedule.ask("eve", TurnKind { length: Long, reader: Chat }).is_some());
    }

    #[test]
    fn an_owner_with_all_of_its_turns_holds_up_no_ingestion_of_others() {
        let mut schedule = ExtractionSchedule::new(2);
        assert_eq!(begun(&mut schedule, &[("eve", Short, Chat); 50]), ["eve", "eve"]);
        let short = TurnKind { length: Short, reader: Ingestion };
        assert_eq!(schedule.ask("eve", short), None, "it waits in the queue");
        assert_eq!(schedule.free_for_ingestions(), 1);
        assert_eq!(begun(&mut schedule, &[("bob", Short, Ingestion)]), ["bob"]);
    }

    #[test]
    fn the_free_turns_for_ingestions_are_those_that_could_begin() {
        let mut schedule = ExtractionSchedule::new(2);
        assert_eq!(schedule.free_for_ingestions(), 2);
        begun(&mut schedule, &[("ann", Short, Chat)]);
        assert_eq!(schedule.free_for_ingestions(), 2);
        begun(&mut schedule, &[("bob", Short, Ingestion)]);
        assert_eq!(schedule.free_for_ingestions(), 1);
        begun(&mut schedule, &[("eve", Short, Ingestion)]);
        assert_eq!(schedule.free_for_ingestions(), 0);
        assert!(begun(&mut schedule, &[("joe", Short, Ingestion)]).is_empty());
        let id = schedule.held.iter().find(|turn| turn.owner == "eve").unwrap().id;
        schedule.end(id, Duration::from_secs(2));
        begin_all(&mut schedule);
        assert_eq!(schedule.free_for_ingestions(), 0, "the one that waited has the turn");
    }
}
