//! What the scripted model says.

use std::time::Duration;

use futures::{FutureExt, StreamExt};
use tokio::time::Instant;

use super::{script::Failure, *};

fn request(text: &str) -> Request {
    let user = |text: &str| Turn::User(text.to_owned());
    let turns =
        vec![user("[tokens=3] [fail]"), Turn::Assistant { text: "no".to_owned(), calls: Vec::new() }, user(text)];
    Request { system: Some("two words".to_owned()), turns, ..Request::default() }
}

async fn answer(text: &str) -> Vec<Result<Delta, Error>> {
    Scripted.ask(&request(text)).await.unwrap_or_else(|error| panic!("{error}")).collect().await
}

fn texts(items: &[Result<Delta, Error>]) -> Vec<&str> {
    items.iter().filter_map(|item| if let Ok(Delta::Text(text)) = item { Some(text.as_str()) } else { None }).collect()
}

#[test]
fn directives_are_read_and_capped_and_others_ignored() {
    let check = |text: &str, tokens, delay, thinks, fails: bool| {
        let (delay, fails) = (Duration::from_millis(delay), fails.then_some(Failure::AtTheEnd));
        let expected = Script { tokens, delay, thinks, fails, calls: Vec::new(), parallel: false };
        assert_eq!(Script::read(text), expected, "{text}");
    };
    check("", 24, 15, false, false);
    check("hello [ world ]", 24, 15, false, false);
    check("[tokens=60] and [delay=20]", 60, 20, false, false);
    check("[delay=0][think][fail][tokens=0]", 0, 0, true, true);
    check("[tokens=999999999999999999999999] [tokens=x] [wave=1]", 24, 15, false, false);
    check("[tokens=9999999] [delay=9999999]", 100_000, 60_000, false, false);
    check("[[tokens=5]]", 5, 15, false, false);
    check("[tokens [think] [fail=[x] [call=] [call=x", 24, 15, true, false);
}

#[tokio::test(start_paused = true)]
async fn only_the_last_user_turn_counts_and_every_word_can_be_told_apart() {
    let items = answer("[tokens=60]").await;
    let expected: Vec<String> = (1..=60).map(word).collect();
    assert_eq!(texts(&items), expected);
    assert_eq!(expected.concat().split(' ').count(), 61, "each word is followed by one space");
    assert!(expected.concat().contains("CHAT_MODEL_PROVIDER"));
    let distinct: std::collections::HashSet<_> = expected[GREETING.len()..].iter().collect();
    assert_eq!(distinct.len(), 60 - GREETING.len());
    let usage = Usage { input_tokens: 6, output_tokens: 60, cached_tokens: 0, reasoning_tokens: 0 };
    assert!(matches!(items.last(), Some(Ok(Delta::End(found))) if *found == usage), "{:?}", items.last());
}

#[tokio::test(start_paused = true)]
async fn it_thinks_and_fails_half_way_when_told_to() {
    let items = answer("[tokens=10] [think] [fail]").await;
    assert!(items[..5].iter().all(|item| matches!(item, Ok(Delta::Reasoning(_)))));
    assert_eq!(texts(&items).len(), 5);
    assert_eq!(items.len(), 11);
    assert_eq!(items[10].as_ref().err().map(Error::code), Some("scripted_failure"));
}

#[tokio::test(start_paused = true)]
async fn each_token_waits_for_its_delay() {
    let asked_at = Instant::now();
    answer("[tokens=10] [delay=20]").await;
    assert!(asked_at.elapsed().abs_diff(Duration::from_millis(200)) <= Duration::from_millis(20));
}

#[tokio::test]
async fn without_a_delay_it_still_lets_others_run() {
    let mut rest = Scripted.ask(&request("[tokens=1000] [delay=0]")).await.unwrap_or_else(|error| panic!("{error}"));
    let mut pauses = 0;
    loop {
        match rest.next().now_or_never() {
            Some(Some(_)) => {}
            Some(None) => break,
            None => pauses += 1,
        }
    }
    assert!(pauses >= 10, "{pauses}");
}
