//! Pages with a limit of bytes: they omit no item, repeat none, and have at least one each.

use std::future::Future;

use holdfast_shared::{
    page::{Page, PageSize},
    storage::{Error, MessageFilter, NewBriefing, RunFilter, Target},
};

use crate::{
    backends::{TestBackends, briefing},
    conversations::agent,
    on_each_backend,
};

on_each_backend!(
    messages_are_listed_in_pages_of_any_bytes,
    runs_are_listed_without_their_answers,
    briefings_and_agents_are_listed_in_pages_of_any_bytes,
    the_newest_messages_fill_the_page,
);

/// Returns a text of three kilobytes.
fn long() -> String {
    "ü".repeat(1_500)
}

/// Returns all items of a list, and the number of items of each page.
pub async fn pages<T, F>(mut list: impl FnMut(Option<String>) -> F) -> (Vec<T>, Vec<usize>)
where
    F: Future<Output = Result<Option<Page<T>>, Error>>,
{
    let (mut all, mut sizes, mut cursor) = (Vec::new(), Vec::new(), None);
    loop {
        let page = list(cursor).await.unwrap().unwrap();
        sizes.push(page.items.len());
        all.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return (all, sizes);
        }
    }
}

async fn conversation_of(backends: &TestBackends, texts: &[String]) -> uuid::Uuid {
    let (_, conversation) = backends.submit(Target::New { agent_id: None }, &texts[0]).await;
    for text in &texts[1..] {
        backends.submit(Target::Existing(conversation), text).await;
    }
    conversation
}

async fn messages_are_listed_in_pages_of_any_bytes(backends: TestBackends) {
    let texts: Vec<String> = (0..7).map(|n| if n == 3 { long() } else { n.to_string() }).collect();
    let conversation = conversation_of(&backends, &texts).await;
    let check = async |items: usize, bytes: usize, expected: &[usize]| {
        let size = PageSize { items, bytes };
        let (listed, sizes) = pages(|cursor| {
            let storage = &backends.storage;
            async move { storage.messages("ann", conversation, MessageFilter::Current, size, cursor.as_deref()).await }
        })
        .await;
        let listed: Vec<String> = listed.iter().map(|message| message.content.to_stored()).collect();
        assert_eq!(listed, texts, "in pages of {items} and {bytes} bytes");
        assert_eq!(sizes, expected, "in pages of {items} and {bytes} bytes");
    };
    check(100, 1, &[1, 1, 1, 1, 1, 1, 1]).await;
    check(100, 1_000, &[3, 1, 3]).await;
    check(2, 1_000, &[2, 2, 2, 1]).await;
    check(100, 4_000, &[4, 3]).await;
    check(7, 1_000_000, &[7]).await;
    check(6, 1_000_000, &[6, 1]).await;
}

async fn runs_are_listed_without_their_answers(backends: TestBackends) {
    let texts: Vec<String> = (0..5).map(|n| n.to_string()).collect();
    conversation_of(&backends, &texts).await;
    let size = PageSize { items: 100, bytes: 1_000 };
    let (listed, sizes) = pages(|cursor| {
        let storage = &backends.storage;
        async move { storage.runs("ann", RunFilter::default(), size, cursor.as_deref()).await }
    })
    .await;
    assert_eq!(sizes, [2, 2, 1]);
    assert!(listed.is_sorted_by(|one, next| one.id > next.id), "the newest is the first");
    assert!(listed.iter().all(|run| run.output_message.is_none()));
}

async fn briefings_and_agents_are_listed_in_pages_of_any_bytes(backends: TestBackends) {
    let mut agent_id = agent(&backends).await;
    for n in 0..3 {
        let new = NewBriefing { summary: long(), ..briefing(agent_id, &n.to_string()) };
        backends.storage.create_briefing("ann", new).await.unwrap();
        agent_id = agent(&backends).await;
    }
    let size = PageSize { items: 100, bytes: 4_000 };
    let storage = &backends.storage;
    let (_, sizes) = pages(|cursor| async move { storage.briefings("ann", size, cursor.as_deref()).await }).await;
    assert_eq!(sizes, [2, 1]);
    let size = PageSize { items: 100, bytes: 1 };
    let (_, sizes) = pages(|cursor| async move { storage.agents(size, cursor.as_deref()).await }).await;
    assert_eq!(sizes, [1, 1, 1, 1]);
}

async fn the_newest_messages_fill_the_page(backends: TestBackends) {
    let texts: Vec<String> = (0..6).map(|n| if n == 2 { long() } else { n.to_string() }).collect();
    let conversation = conversation_of(&backends, &texts).await;
    let newest = async |items: usize, bytes: usize| {
        let size = PageSize { items, bytes };
        let messages = backends.storage.newest_messages("ann", conversation, size).await.unwrap();
        messages.iter().map(|message| message.content.to_stored().chars().next().unwrap()).collect::<String>()
    };
    assert_eq!(newest(100, 1).await, "5");
    assert_eq!(newest(100, 1_000).await, "345");
    assert_eq!(newest(100, 1_500).await, "ü345");
    assert_eq!(newest(2, 1_000_000).await, "45");
}
