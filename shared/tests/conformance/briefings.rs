//! Briefings: their lists, and the card of one in a conversation.

use holdfast_shared::{
    briefing::Briefing,
    conversation::Handle,
    idempotency::IdempotencyKey,
    message::Role,
    storage::{MessageFilter, NewBriefing, StoredBriefing},
};

use crate::{
    backends::{TestBackends, briefing},
    conversations::{agent, ids, shown},
    on_each_backend,
};

on_each_backend!(
    briefings_of_the_same_time_are_all_listed_in_pages_of_any_size,
    briefings_of_unusual_times_are_listed_like_others,
    a_conversation_has_a_briefing_once,
    a_briefing_is_stored_once_per_key_of_its_author,
    a_deleted_briefing_leaves_its_card,
    a_deleted_briefing_frees_its_key,
);

/// Stores a briefing of ann.
pub async fn stored(backends: &TestBackends, new: NewBriefing) -> Briefing {
    match backends.storage.create_briefing("ann", new).await.unwrap() {
        StoredBriefing::Stored(briefing) => briefing,
        other => panic!("{other:?}"),
    }
}

async fn briefings_of_the_same_time_are_all_listed_in_pages_of_any_size(backends: TestBackends) {
    let agent_id = agent(&backends).await;
    let mut all: Vec<Briefing> = Vec::new();
    for index in 0..7_i64 {
        let mut new = briefing(agent_id, "为什么会这样？");
        new.created_at = new.created_at.map(|at| at + chrono::Duration::days(index / 3));
        all.push(stored(&backends, new).await);
    }
    all.sort_by_key(|briefing| std::cmp::Reverse((briefing.created_at, briefing.id)));
    for limit in 1..9 {
        let (mut listed, mut cursor) = (Vec::new(), None);
        loop {
            let page = backends.storage.briefings("ann", limit, cursor.as_deref()).await.unwrap().unwrap();
            listed.extend(page.items);
            match page.next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        assert_eq!(listed, all, "in pages of {limit}");
    }
    assert!(backends.storage.briefings("ann", 9, Some("x")).await.unwrap().is_none());
    assert!(backends.storage.briefings("bob", 9, None).await.unwrap().unwrap().items.is_empty());
    assert!(backends.storage.briefing("bob", all[0].id).await.unwrap().is_none());
}

async fn briefings_of_unusual_times_are_listed_like_others(backends: TestBackends) {
    let agent_id = agent(&backends).await;
    let times = ["0001-01-01T00:00:00Z", "2016-12-31T23:59:59Z", "2016-12-31T23:59:60Z", "9999-12-31T23:59:59.999Z"];
    for time in times {
        let new = NewBriefing { created_at: Some(time.parse().unwrap()), ..briefing(agent_id, time) };
        stored(&backends, new).await;
    }
    let (mut titles, mut cursor) = (Vec::new(), None);
    for _ in times {
        let page = backends.storage.briefings("ann", 1, cursor.as_deref()).await.unwrap().unwrap();
        titles.extend(page.items.into_iter().map(|briefing| briefing.title));
        cursor = page.next;
    }
    assert_eq!((titles.len(), cursor), (4, None));
    titles.reverse();
    assert_eq!(titles, times);
}

async fn a_conversation_has_a_briefing_once(backends: TestBackends) {
    let agent_id = agent(&backends).await;
    let handle = Handle::Agent(agent_id);
    let standing = backends.storage.conversation_by_handle("ann", &handle).await.unwrap().unwrap();
    let new_briefing = stored(&backends, briefing(agent_id, "t")).await;
    let add = || backends.storage.add_card("ann", standing.id, new_briefing.clone());
    let cards = futures::future::join_all((0..10).map(|_| add())).await;
    let first = *cards[0].as_ref().unwrap();
    assert!(cards.into_iter().all(|card| card.unwrap() == first));
    let listed = shown(&backends, standing.id, MessageFilter::Current, 10).await;
    assert_eq!(ids(&listed), [first.unwrap()]);
    assert_eq!((listed[0].role, listed[0].content.kind(), listed[0].run_id), (Role::System, "briefing_card", None));
    assert_eq!(backends.storage.add_card("bob", standing.id, new_briefing).await.unwrap(), None);
}

async fn a_briefing_is_stored_once_per_key_of_its_author(backends: TestBackends) {
    let agent_id = agent(&backends).await;
    let authored = |author: &str, body: &str| Some((author.to_owned(), IdempotencyKey::new("k".into(), &[body])));
    let keyed = |author: &str, body: &str| NewBriefing { authored: authored(author, body), ..briefing(agent_id, body) };
    let create = async |owner: &str, new: NewBriefing| backends.storage.create_briefing(owner, new).await.unwrap();
    let at_once = futures::future::join_all((0..8).map(|_| create("ann", keyed("service", "t")))).await;
    let firsts: Vec<_> = at_once.iter().filter(|one| matches!(one, StoredBriefing::Stored(_))).collect();
    let [StoredBriefing::Stored(first)] = firsts[..] else { panic!("{at_once:?}") };
    assert!(at_once.iter().filter(|one| **one == StoredBriefing::Repeated(first.clone())).count() == 7, "{at_once:?}");
    assert_eq!(create("ann", keyed("service", "another")).await, StoredBriefing::KeyReused);
    assert!(
        matches!(create("bob", keyed("bob", "another")).await, StoredBriefing::Stored(_)),
        "each author has its own keys"
    );
    assert_eq!(backends.storage.briefings("ann", 9, None).await.unwrap().unwrap().items, std::slice::from_ref(first));
}

async fn a_deleted_briefing_frees_its_key(backends: TestBackends) {
    let agent_id = agent(&backends).await;
    let authored = || Some(("ann".to_owned(), IdempotencyKey::new("k".into(), &["t"])));
    let keyed = || NewBriefing { authored: authored(), ..briefing(agent_id, "t") };
    let first = stored(&backends, keyed()).await;
    assert!(backends.storage.delete_briefing("ann", first.id).await.unwrap());
    assert_eq!(backends.storage.repeated_briefing(authored().as_ref()).await.unwrap(), None);
    assert_ne!(stored(&backends, keyed()).await.id, first.id);
}

async fn a_deleted_briefing_leaves_its_card(backends: TestBackends) {
    let agent_id = agent(&backends).await;
    let standing = backends.storage.conversation_by_handle("ann", &Handle::Agent(agent_id)).await.unwrap().unwrap();
    let new_briefing = stored(&backends, briefing(agent_id, "t")).await;
    backends.storage.add_card("ann", standing.id, new_briefing.clone()).await.unwrap();
    let kept = backends.storage.kept_bytes("ann").await.unwrap();
    assert!(!backends.storage.delete_briefing("bob", new_briefing.id).await.unwrap());
    assert!(backends.storage.delete_briefing("ann", new_briefing.id).await.unwrap());
    assert!(!backends.storage.delete_briefing("ann", new_briefing.id).await.unwrap());
    assert_eq!(backends.storage.briefing("ann", new_briefing.id).await.unwrap(), None);
    assert_eq!(shown(&backends, standing.id, MessageFilter::Current, 10).await.len(), 1);
    assert_eq!(kept - backends.storage.kept_bytes("ann").await.unwrap(), "ts".len());
}
