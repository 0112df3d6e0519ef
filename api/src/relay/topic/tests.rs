//! The states of a topic, and the proof that its subscribers miss no event.

use std::thread;

use chrono::DateTime;
use holdfast_shared::event::{
    AttemptReason, AttemptStarted, EventBody, MessageDelta, RunCompleted, StepStarted, following,
};
use proptest::prelude::*;

use super::*;
use crate::wire::Block;

fn event<'a>(attempt: u32, n: u32, body: impl Into<EventBody<'a>>) -> Event {
    Event::new(EventId::new(attempt, n), DateTime::UNIX_EPOCH, &body.into())
}

fn delta(n: u32) -> Event {
    event(1, n, MessageDelta { message_id: Uuid::nil(), text: "word ".into() })
}

fn end(n: u32) -> Event {
    event(1, n, RunCompleted::default())
}

fn topic() -> Topic {
    let topic = Topic::new(Uuid::nil(), usize::MAX);
    topic.set_subscribed(true);
    topic
}

fn after(n: u32) -> LogPosition {
    LogPosition { id: EventId::new(1, n), block: Block::None }
}

/// Returns the topic's continuation after 1-n: the numbers of the next events, or the reason why there are none.
fn next(topic: &Topic, n: u32) -> String {
    match topic.watch().borrow().next(EventId::new(1, n)) {
        Some(Next::Events(slice)) => slice.events().map(|event| event.id.n.to_string()).collect::<Vec<_>>().join(","),
        Some(Next::CaughtUp) => "caught up".to_owned(),
        Some(Next::Ended) => "ended".to_owned(),
        None => "read the log".to_owned(),
    }
}

#[test]
fn a_topic_serves_what_follows_its_anchor() {
    let topic = topic();
    assert_eq!(next(&topic, 1), "read the log");
    topic.anchor(after(1));
    assert_eq!(next(&topic, 1), "caught up");
    topic.extend(vec![delta(2), delta(3)]);
    assert_eq!([1, 2, 3, 4].map(|n| next(&topic, n)), ["2,3", "3", "caught up", "read the log"]);
    topic.anchor(after(9));
    assert_eq!(next(&topic, 3), "caught up", "a late anchor moved the topic");
}

#[test]
fn a_push_without_an_anchor_starts_after_its_first_event() {
    let topic = topic();
    topic.extend(vec![delta(5), delta(6)]);
    assert_eq!([4, 5, 6].map(|n| next(&topic, n)), ["read the log", "6", "caught up"]);
    assert_eq!(topic.position(EventId::new(1, 5)).unwrap().block, Block::Text);
}

#[test]
fn a_lost_push_starts_the_buffer_again() {
    let topic = topic();
    topic.anchor(after(1));
    topic.extend(vec![delta(2)]);
    topic.extend(vec![delta(4), delta(5)]);
    assert_eq!([1, 2, 4, 5].map(|n| next(&topic, n)), ["read the log", "read the log", "5", "caught up"]);
}

#[test]
fn a_repeated_push_changes_nothing() {
    let topic = topic();
    topic.anchor(after(1));
    topic.extend(vec![delta(2), delta(3)]);
    topic.extend(vec![delta(2)]);
    topic.extend(vec![delta(3), delta(4)]);
    assert_eq!([1, 4].map(|n| next(&topic, n)), ["2,3,4", "caught up"]);
}

#[test]
fn an_ended_topic_serves_the_end_and_takes_nothing_more() {
    let topic = topic();
    topic.anchor(after(1));
    topic.extend(vec![delta(2), end(3)]);
    topic.restart();
    topic.extend(vec![delta(9)]);
    assert_eq!([1, 2, 3].map(|n| next(&topic, n)), ["2,3", "3", "ended"]);
    assert_eq!((topic.live_tail(), topic.position(EventId::new(1, 2)).is_none()), (None, true));
}

#[test]
fn a_restart_sends_the_subscribers_to_the_log() {
    let topic = topic();
    topic.anchor(after(1));
    topic.extend(vec![delta(2)]);
    let mut changes = topic.watch();
    topic.restart();
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    assert_eq!(next(&topic, 1), "read the log");
    topic.restart();
    assert!(!changes.has_changed().unwrap(), "a cold topic woke its subscribers");
}

#[test]
fn the_end_is_never_read_without_the_events_before_it() {
    for _ in 0..2000 {
        let topic = topic();
        topic.anchor(after(1));
        thread::scope(|scope| {
            scope.spawn(|| topic.extend(vec![end(2)]));
            let first = loop {
                match next(&topic, 1) {
                    result if result == "caught up" => {}
                    result => break result,
                }
            };
            assert_eq!(first, "2");
        });
    }
}

/// Returns a log of two attempts. The second supersedes the end of the first.
fn log() -> Vec<Event> {
    let first = (1..40).map(delta);
    let base = EventId::new(1, 30);
    let started = AttemptStarted { attempt: 2, base, reason: AttemptReason::LeaseExpired, crashes: 1, max_crashes: 3 };
    let second = (2..40).map(|n| event(2, n, StepStarted { step: 1 }));
    first.chain([event(2, 1, started)]).chain(second).chain([event(2, 40, RunCompleted::default())]).collect()
}

/// Reads as a subscriber does, up to the newest event: from the topic, or else from the log. Returns the events.
fn read(topic: &Topic, log: &[Event], cursor: &mut EventId) -> Vec<Event> {
    let mut received = Vec::new();
    loop {
        let known = topic.watch().borrow().next(*cursor);
        let events = match known {
            Some(Next::Events(slice)) => slice.events().cloned().collect(),
            Some(Next::CaughtUp | Next::Ended) => return received,
            None => following(log.to_vec(), *cursor),
        };
        let Some(last) = events.last() else {
            topic.anchor(LogPosition { id: *cursor, block: Block::None });
            return received;
        };
        *cursor = last.id;
        received.extend(events);
    }
}

proptest! {
    /// Each step writes events to the log, and pushes them once, twice or never. A subscriber reads after some steps.
    #[test]
    fn a_subscriber_misses_no_event_and_gets_none_twice(
        steps in proptest::collection::vec((1..6_usize, 0..3_u8, any::<bool>()), 0..40),
        start in 1..79_usize,
    ) {
        let (topic, log) = (topic(), log());
        let (mut written, mut cursor, mut received) = (start, log[start - 1].id, Vec::new());
        for (count, copies, reads) in steps {
            let push = &log[written..log.len().min(written + count)];
            written += push.len();
            (0..copies).for_each(|_| topic.extend(push.to_vec()));
            if reads {
                received.extend(read(&topic, &log[..written], &mut cursor));
            }
        }
        // The look-up of followed runs finds the events that no push brought.
        topic.restart();
        received.extend(read(&topic, &log, &mut cursor));
        // An event that a later attempt supersedes may come or not.
        let valid = |events: &[Event]| -> Vec<EventId> {
            let ids = events.iter().map(|event| event.id);
            ids.filter(|id| id.attempt == 2 || *id <= EventId::new(1, 30)).collect()
        };
        prop_assert_eq!(valid(&received), valid(&log[start..]));
        prop_assert!(received.is_sorted_by_key(|event| event.id));
    }
}
