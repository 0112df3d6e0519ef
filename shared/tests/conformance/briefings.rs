//! Briefings: how they are listed, and the card of one in a conversation.

use holdfast_shared::{
    briefing::Briefing,
    conversation::Handle,
    message::Role,
    storage::{NewBriefing, Which},
};

use crate::{
    conversations::{agent, ids, shown},
    on_each_backend,
    places::{Places, briefing},
};

on_each_backend!(
    briefings_of_the_same_time_are_all_listed_in_pages_of_any_size,
    briefings_of_unusual_times_are_listed_like_others,
    a_briefing_is_in_a_conversation_once,
);

async fn briefings_of_the_same_time_are_all_listed_in_pages_of_any_size(places: Places) {
    let agent_id = agent(&places).await;
    let mut stored: Vec<Briefing> = Vec::new();
    for index in 0..7_i64 {
        let mut new = briefing(agent_id, "为什么会这样？");
        new.created_at = new.created_at.map(|at| at + chrono::Duration::days(index / 3));
        stored.push(places.storage.create_briefing("ann", new).await.unwrap().unwrap());
    }
    stored.sort_by_key(|briefing| std::cmp::Reverse((briefing.created_at, briefing.id)));
    for limit in 1..9 {
        let (mut listed, mut cursor) = (Vec::new(), None);
        loop {
            let page = places.storage.briefings("ann", limit, cursor.as_deref()).await.unwrap().unwrap();
            listed.extend(page.items);
            match page.next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        assert_eq!(listed, stored, "in pages of {limit}");
    }
    assert!(places.storage.briefings("ann", 9, Some("x")).await.unwrap().is_none());
    assert!(places.storage.briefings("bob", 9, None).await.unwrap().unwrap().items.is_empty());
    assert!(places.storage.briefing("bob", stored[0].id).await.unwrap().is_none());
}

async fn briefings_of_unusual_times_are_listed_like_others(places: Places) {
    let agent_id = agent(&places).await;
    let times = ["0001-01-01T00:00:00Z", "2016-12-31T23:59:59Z", "2016-12-31T23:59:60Z", "9999-12-31T23:59:59.999Z"];
    for time in times {
        let new = NewBriefing { created_at: Some(time.parse().unwrap()), ..briefing(agent_id, time) };
        places.storage.create_briefing("ann", new).await.unwrap().unwrap();
    }
    let (mut titles, mut cursor) = (Vec::new(), None);
    for _ in times {
        let page = places.storage.briefings("ann", 1, cursor.as_deref()).await.unwrap().unwrap();
        titles.extend(page.items.into_iter().map(|briefing| briefing.title));
        cursor = page.next;
    }
    assert_eq!((titles.len(), cursor), (4, None));
    titles.reverse();
    assert_eq!(titles, times);
}

async fn a_briefing_is_in_a_conversation_once(places: Places) {
    let agent_id = agent(&places).await;
    let handle = Handle::Agent(agent_id);
    let standing = places.storage.conversation_by_handle("ann", &handle).await.unwrap().unwrap();
    let stored = places.storage.create_briefing("ann", briefing(agent_id, "t")).await.unwrap().unwrap();
    let add = || places.storage.add_card("ann", standing.id, stored.clone());
    let cards = futures::future::join_all((0..10).map(|_| add())).await;
    let first = *cards[0].as_ref().unwrap();
    assert!(cards.into_iter().all(|card| card.unwrap() == first));
    let listed = shown(&places, standing.id, Which::Current, 10).await;
    assert_eq!(ids(&listed), [first.unwrap()]);
    assert_eq!((listed[0].role, listed[0].content.kind(), listed[0].run_id), (Role::System, "briefing_card", None));
    assert_eq!(places.storage.add_card("bob", standing.id, stored).await.unwrap(), None);
}
