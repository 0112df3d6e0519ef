//! The rules of the run log.

use bytes::Bytes;
use chrono::DateTime;
use holdfast_shared::{
    event::{Event, EventBody, WarningRaised},
    event_id::EventId,
    run_log::{AppendOutcome, EventBatch, Gap},
};
use uuid::Uuid;

use crate::{backends::TestBackends, on_each_backend};

on_each_backend!(
    appends_are_stored_fenced_or_behind,
    a_repeated_append_stores_only_new_events,
    a_mark_is_valid_until_another_append,
    a_reader_gets_the_events_after_its_cursor,
    a_reader_gets_about_the_requested_bytes,
    subscribers_receive_each_append,
);

/// More bytes than any log has.
const ALL: usize = 1 << 20;

fn event(attempt: u32, n: u32) -> Event {
    let body =
        EventBody::WarningRaised(WarningRaised { code: "test".into(), message: format!("{attempt}-{n}").into() });
    Event::new(EventId::new(attempt, n), DateTime::UNIX_EPOCH, &body)
}

fn batch(attempt: u32, first: u32, last: u32) -> EventBatch {
    EventBatch::of(&(first..=last).map(|n| event(attempt, n)).collect::<Vec<_>>()).unwrap()
}

async fn appends_are_stored_fenced_or_behind(backends: TestBackends) {
    let run = Uuid::now_v7();
    let append = async |attempt, first, last, gap| {
        backends.run_log.append(run, &batch(attempt, first, last), gap).await.unwrap()
    };
    use AppendOutcome::{Behind, Fenced, Stored};
    assert_eq!(append(1, 2, 3, Gap::Refuse).await, Behind, "an empty log has lost the first event");
    assert_eq!(append(1, 1, 3, Gap::Refuse).await, Stored);
    assert_eq!(append(1, 4, 4, Gap::Refuse).await, Stored);
    assert_eq!(append(1, 6, 7, Gap::Refuse).await, Behind);
    assert_eq!(append(1, 6, 7, Gap::Archived).await, Stored);
    assert_eq!(append(1, 2, 3, Gap::Refuse).await, Stored, "the log has these events already");
    assert_eq!(append(2, 2, 2, Gap::Refuse).await, Behind);
    assert_eq!(append(2, 1, 2, Gap::Refuse).await, Stored);
    assert_eq!(append(1, 8, 8, Gap::Refuse).await, Fenced);
    assert_eq!(append(1, 8, 8, Gap::Archived).await, Fenced);
    assert_eq!(append(3, 5, 5, Gap::Archived).await, Stored);
}

async fn a_repeated_append_stores_only_new_events(backends: TestBackends) {
    let run = Uuid::now_v7();
    for (first, last) in [(1, 3), (2, 5), (1, 5), (5, 6)] {
        assert_eq!(
            backends.run_log.append(run, &batch(1, first, last), Gap::Refuse).await.unwrap(),
            AppendOutcome::Stored
        );
    }
    let events = backends.run_log.read(run, EventId::ORIGIN, ALL).await.unwrap();
    assert_eq!(events, (1..=6).map(|n| event(1, n)).collect::<Vec<_>>());
}

async fn a_mark_is_valid_until_another_append(backends: TestBackends) {
    use AppendOutcome::{Behind, Fenced, Stored};
    let run = Uuid::now_v7();
    let append = async |attempt, first, last, mark: &mut _| {
        backends.run_log.append_next(run, &batch(attempt, first, last), Gap::Refuse, mark).await.unwrap()
    };
    let mut mark = None;
    assert_eq!(append(1, 1, 2, &mut mark).await, Stored);
    let mut stale = mark;
    assert_eq!(append(1, 3, 4, &mut mark).await, Stored);
    assert_eq!(append(1, 5, 5, &mut mark).await, Stored);
    // A retry after a lost answer.
    assert_eq!(append(1, 3, 6, &mut stale).await, Stored);
    assert_eq!(append(1, 7, 7, &mut mark).await, Stored, "the log notices another writer's entry");
    let mut others = None;
    assert_eq!(append(2, 1, 1, &mut others).await, Stored);
    assert_eq!(append(1, 8, 8, &mut mark).await, Fenced);
    assert_eq!(append(2, 2, 3, &mut others).await, Stored);
    let events = backends.run_log.read(run, EventId::ORIGIN, ALL).await.unwrap();
    let ids: Vec<String> = events.iter().map(|event| event.id.to_string()).collect();
    assert_eq!(ids.join(" "), "1-1 1-2 1-3 1-4 1-5 1-6 1-7 2-1 2-2 2-3");
    // Another log with as many entries.
    let other = Uuid::now_v7();
    let of_another = async |attempt, n, mark: &mut _| {
        backends.run_log.append_next(other, &batch(attempt, n, n), Gap::Refuse, mark).await.unwrap()
    };
    let mut first = None;
    assert_eq!(of_another(2, 1, &mut first).await, Stored);
    assert_eq!(of_another(1, 2, &mut first).await, Fenced);
    assert_eq!(of_another(3, 2, &mut None).await, Behind);
}

async fn a_reader_gets_the_events_after_its_cursor(backends: TestBackends) {
    let run = Uuid::now_v7();
    for (attempt, first, last) in [(1, 1, 4), (1, 5, 6), (2, 1, 2)] {
        backends.run_log.append(run, &batch(attempt, first, last), Gap::Refuse).await.unwrap();
    }
    let ids = async |attempt, n| {
        let events = backends.run_log.read(run, EventId::new(attempt, n), ALL).await.unwrap();
        events.iter().map(|event| event.id.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ids(1, 4).await, "1-5 1-6 2-1 2-2");
    // The log returns the whole entry of the cursor.
    assert_eq!(ids(1, 2).await, "1-1 1-2 1-3 1-4 1-5 1-6 2-1 2-2");
    assert_eq!(ids(2, 2).await, "");
    assert!(backends.run_log.read(Uuid::now_v7(), EventId::ORIGIN, ALL).await.unwrap().is_empty());
}

async fn a_reader_gets_about_the_requested_bytes(backends: TestBackends) {
    let run = Uuid::now_v7();
    for n in 1..=100 {
        backends.run_log.append(run, &batch(1, n, n), Gap::Refuse).await.unwrap();
    }
    let read = async |bytes| backends.run_log.read(run, EventId::new(1, 10), bytes).await.unwrap();
    let all = read(ALL).await;
    assert_eq!(all, (11..=100).map(|n| event(1, n)).collect::<Vec<_>>());
    let size: usize = all.iter().map(|event| event.line().len() + 1).sum();
    let half = read(size / 2).await;
    assert!((40..60).contains(&half.len()), "{} events", half.len());
    assert_eq!(half, all[..half.len()]);
    assert!((1..=2).contains(&read(1).await.len()));
}

async fn subscribers_receive_each_append(mut backends: TestBackends) {
    let (run, other) = (Uuid::now_v7(), Uuid::now_v7());
    backends.run_log.subscribe(run).await.unwrap();
    backends.run_log.append(other, &batch(1, 1, 1), Gap::Refuse).await.unwrap();
    backends.run_log.append(run, &batch(1, 1, 2), Gap::Refuse).await.unwrap();
    let push = backends.pushes.recv().await.unwrap();
    assert_eq!((push.run_id, push.lines.clone()), (run, batch(1, 1, 2).lines));
    // The push has only new events.
    backends.run_log.append(run, &batch(1, 2, 3), Gap::Refuse).await.unwrap();
    assert_eq!(backends.pushes.recv().await.unwrap().lines, Bytes::from([event(1, 3).line(), &b"\n"[..]].concat()));
    backends.run_log.unsubscribe(run).await.unwrap();
    backends.run_log.append(run, &batch(1, 4, 4), Gap::Refuse).await.unwrap();
    backends.run_log.subscribe(other).await.unwrap();
    backends.run_log.append(other, &batch(1, 2, 2), Gap::Refuse).await.unwrap();
    assert_eq!(backends.pushes.recv().await.unwrap().run_id, other);
}
