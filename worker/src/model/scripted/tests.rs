//! Tests of the scripted model's answers.

use std::time::Duration;

use futures::{FutureExt, StreamExt};
use holdfast_shared::{finish_reason::FinishReason, tool_choice::ToolMode};
use tokio::time::Instant;

use super::{
    script::{FailPoint, Script},
    *,
};
use crate::model::{CallDelta, ToolSpec};

fn request(text: &str) -> Request {
    let user = |text: &str| Turn::user(text);
    let turns =
        vec![user("[tokens=3] [fail]"), Turn::Assistant { text: "no".to_owned(), calls: Vec::new() }, user(text)];
    Request { system: Some("two words".to_owned()), turns, ..Request::default() }
}

async fn answer(text: &str) -> Vec<Result<AnswerDelta, Error>> {
    ScriptedModel.ask(&request(text)).await.unwrap_or_else(|error| panic!("{error}")).collect().await
}

fn texts(items: &[Result<AnswerDelta, Error>]) -> Vec<&str> {
    items
        .iter()
        .filter_map(|item| if let Ok(AnswerDelta::Text(text)) = item { Some(text.as_str()) } else { None })
        .collect()
}

#[test]
fn directives_are_read_and_capped_and_others_ignored() {
    let check = |text: &str, tokens, delay, thinks, fails: bool| {
        let (delay, fails) = (Duration::from_millis(delay), fails.then_some(FailPoint::AtTheEnd));
        let expected = Script {
            tokens,
            delay,
            thinks,
            fails,
            calls: Vec::new(),
            parallel: false,
            finish: FinishReason::Stop,
            cites: Vec::new(),
            gate: None,
        };
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
    assert!(
        matches!(items.last(), Some(Ok(AnswerDelta::End(found, FinishReason::Stop))) if *found == usage),
        "{:?}",
        items.last()
    );
}

#[tokio::test(start_paused = true)]
async fn directives_make_it_think_and_fail_half_way() {
    let items = answer("[tokens=10] [think] [fail]").await;
    assert!(items[..5].iter().all(|item| matches!(item, Ok(AnswerDelta::Reasoning(_)))));
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

#[test]
fn a_gate_is_a_file_in_the_folder_of_the_gates() {
    assert_eq!(Script::read("[gate=a-1]").gate.as_deref(), Some("a-1"));
    assert_eq!(gate::file(Some("/gates".into()), "a-1_b"), Some("/gates/a-1_b".into()));
    assert_eq!(gate::file(None, "a"), None, "without a folder there are no gates");
    for outside in ["", "..", "../a", "/etc/passwd", "a/b", "a.b"] {
        assert_eq!(gate::file(Some("/gates".into()), outside), None, "{outside}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_waits_at_its_gate_after_the_first_part() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("a");
    let mut waiting = std::pin::pin!(gate::wait(&gate));
    assert!(waiting.as_mut().now_or_never().is_none(), "the gate is closed");
    std::fs::write(&gate, "").unwrap();
    waiting.await;
    let items = answer("[tokens=2] [gate=a]").await;
    assert_eq!(texts(&items).len(), 2, "without a folder no answer waits");
}

#[tokio::test]
async fn without_a_delay_it_still_yields_to_other_tasks() {
    let mut rest =
        ScriptedModel.ask(&request("[tokens=1000] [delay=0]")).await.unwrap_or_else(|error| panic!("{error}"));
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

fn tool_specs(names: &[&str]) -> Vec<ToolSpec> {
    let tool = |name: &&str| ToolSpec {
        name: (*name).to_owned(),
        description: String::new(),
        input_schema: serde_json::json!({"type": "object"}),
    };
    names.iter().map(tool).collect()
}

/// Returns the step after these outcomes: words as they are, calls as `name(arguments)`, a failure as `!`.
async fn step(text: &str, outcomes: &[(&str, &str)]) -> String {
    step_with(text, outcomes, tool_specs(&["kb__count", "ask_me"])).await
}

async fn step_with(text: &str, outcomes: &[(&str, &str)], tools: Vec<ToolSpec>) -> String {
    let mut request = Request { tools, ..request(text) };
    request.turns.extend(outcomes.iter().flat_map(|(name, text)| {
        let calls = Turn::Assistant { text: "Calling".to_owned(), calls: Vec::new() };
        let text = (*text).to_owned();
        [calls, Turn::Tool { call_id: "c".to_owned(), name: (*name).to_owned(), text, is_error: false }]
    }));
    let items: Vec<_> = ScriptedModel.ask(&request).await.unwrap_or_else(|error| panic!("{error}")).collect().await;
    let mut text_of_step = String::new();
    for (index, item) in items.iter().enumerate() {
        match item {
            Ok(AnswerDelta::Text(text)) => text_of_step += text,
            Ok(AnswerDelta::Reasoning(_) | AnswerDelta::Picture) => text_of_step += "~",
            Ok(AnswerDelta::Call(CallDelta { name: Some(name), arguments, .. })) => {
                text_of_step += &format!("<{name} {arguments}")
            }
            Ok(AnswerDelta::Call(CallDelta { arguments, .. })) => text_of_step += &format!("|{arguments}>"),
            Ok(AnswerDelta::End(..)) => assert_eq!(index, items.len() - 1),
            Err(error) => text_of_step += if error.code() == "scripted_failure" { "!" } else { "?" },
        }
    }
    text_of_step
}

#[tokio::test(start_paused = true)]
async fn calls_are_made_one_a_step_and_then_their_outcomes_are_quoted() {
    const TEXT: &str = r#"[call=kb__count {"of": ["a]", "[fail]"]}] then [call=kb__count] [tokens=2]"#;
    let first = r#"Calling kb__count. <kb__count {"of": ["a]"|, "[fail]"]}>"#;
    assert_eq!(step(TEXT, &[]).await, first);
    assert_eq!(step(TEXT, &[("kb__count", "3")]).await, "Calling kb__count. <kb__count {|}>");
    let outcomes = [("kb__count", "3"), ("kb__count", "4\n5")];
    assert_eq!(step(TEXT, &outcomes).await, "kb__count: 3\nkb__count: 4 5\nThis is ");
    let long = "é".repeat(300);
    let quoted = step("[call=kb__count] [tokens=0]", &[("kb__count", &long)]).await;
    assert_eq!(quoted, format!("kb__count: {}\n", "é".repeat(200)));
}

#[tokio::test(start_paused = true)]
async fn parallel_calls_are_made_in_one_step() {
    const TEXT: &str = "[call=a__b] [call=c__d {}] [parallel] [tokens=1]";
    assert_eq!(step(TEXT, &[]).await, "Calling a__b, c__d. <a__b {|}><c__d {|}>");
    assert_eq!(step(TEXT, &[("a__b", "1"), ("c__d", "2")]).await, "a__b: 1\nc__d: 2\nThis ");
    let request = Request { tools: tool_specs(&["a__b"]), ..request(TEXT) };
    let items: Vec<_> = ScriptedModel.ask(&request).await.unwrap_or_else(|error| panic!("{error}")).collect().await;
    let index = |item: &Result<AnswerDelta, Error>| {
        if let Ok(AnswerDelta::Call(call)) = item { Some(call.index) } else { None }
    };
    assert_eq!(items.iter().filter_map(index).collect::<Vec<_>>(), [0, 0, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn an_approval_and_a_tool_of_the_client_can_be_tried_without_a_server() {
    const TEXT: &str = "[approval] [clienttool=Who?] [tokens=1]";
    let first = r#"Calling scripted__approval. <scripted__approval {"action":"sen|d the report"}>"#;
    assert_eq!(step(TEXT, &[]).await, first);
    let done = [("scripted__approval", "ok")];
    assert_eq!(step(TEXT, &done).await, r#"Calling ask_me. <ask_me {"questio|n":"Who?"}>"#);
    let with_own = step_with(TEXT, &done, tools()).await;
    assert!(with_own.contains("<scripted__clienttool "), "{with_own}");
    let names: Vec<String> = tools().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["scripted__approval", "scripted__clienttool", "scripted__echo", "scripted__draw"]);
}

#[tokio::test(start_paused = true)]
async fn without_tools_it_answers_at_once() {
    assert_eq!(step_with("[call=kb__count] [tokens=2]", &[], Vec::new()).await, "This is ");
    let outcomes = [("kb__count", "3")];
    assert_eq!(step_with("[call=a] [call=b] [tokens=1]", &outcomes, Vec::new()).await, "kb__count: 3\nThis ");
}

#[tokio::test(start_paused = true)]
async fn it_fails_in_the_named_step_or_else_in_the_last_one() {
    const ONE: &[(&str, &str)] = &[("a__b", "1")];
    assert_eq!(step("[call=a__b] [fail=1]", &[]).await, "Calling a__b. <a__b {!");
    assert_eq!(step("[call=a__b] [fail=1] [tokens=2]", ONE).await, "a__b: 1\nThis is ");
    assert_eq!(step("[call=a__b] [fail=2] [tokens=2]", &[]).await, "Calling a__b. <a__b {|}>");
    assert_eq!(step("[call=a__b] [fail=2] [tokens=2]", ONE).await, "a__b: 1\nThis !");
    assert_eq!(step("[call=a__b] [fail] [think] [tokens=2]", &[]).await, "Calling a__b. <a__b {|}>");
    assert_eq!(step("[call=a__b] [fail] [think] [tokens=2]", ONE).await, "~~~~~a__b: 1\nThis !");
    assert_eq!(step("[fail=1] [tokens=2]", &[]).await, "This !");
    assert_eq!(step("[fail=2] [tokens=2]", &[]).await, "This is ");
}

#[tokio::test(start_paused = true)]
async fn arguments_that_are_no_json_are_passed_on_as_written() {
    assert_eq!(step("[call=a__b {oops]", &[]).await, "Calling a__b. <a__b {o|ops>");
    assert_eq!(step("[call=a__b {} extra] [call=]", &[]).await, "Calling a__b. <a__b {} e|xtra>");
    assert_eq!(step("[call=a__b [1, [2]]]", &[]).await, "Calling a__b. <a__b [1, |[2]]>");
}

#[tokio::test(start_paused = true)]
async fn the_words_of_a_step_wait_for_their_delay_and_its_calls_do_not() {
    let asked_at = Instant::now();
    step("[call=a__b] [delay=20]", &[]).await;
    assert!(asked_at.elapsed().abs_diff(Duration::from_millis(40)) <= Duration::from_millis(5));
}

#[tokio::test(start_paused = true)]
async fn it_ends_for_the_named_reason() {
    for (text, expected) in [
        ("[finish=length]", FinishReason::Length),
        ("[finish=content_filter]", FinishReason::ContentFilter),
        ("[finish=boredom]", FinishReason::Other),
    ] {
        assert!(
            matches!(answer(text).await.last(), Some(Ok(AnswerDelta::End(_, found))) if *found == expected),
            "{text}"
        );
    }
}

#[test]
fn it_calls_the_tool_that_a_request_demands() {
    let demanding = |tool_mode: ToolMode, text: &str| Request {
        tools: tool_specs(&["kb__count", "ask_me"]),
        tool_mode,
        ..request(text)
    };
    let check = |tool_mode: ToolMode, text: &str, expected: &str| {
        let demand = demanding(tool_mode, text);
        let step = ScriptedStep::next(&demand, text, &[]);
        let names = step.lead.iter().filter_map(|delta| match delta {
            AnswerDelta::Call(call) => call.name.clone(),
            _ => None,
        });
        assert_eq!(names.collect::<Vec<_>>().join(","), expected, "{text}");
    };
    let named = || ToolMode::Named("ask_me".into());
    check(ToolMode::Required, "hi", "kb__count");
    check(ToolMode::Required, "[call=ask_me]", "ask_me");
    check(named(), "hi", "ask_me");
    check(named(), "[call=kb__count]", "ask_me");
    check(ToolMode::None, "[call=kb__count]", "");
    check(ToolMode::Auto, "hi", "");
}
