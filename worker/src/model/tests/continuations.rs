//! Answers that take more than one request.

use holdfast_shared::{finish_reason::FinishReason, usage::Usage};
use serde_json::json;

use super::{
    AnswerDelta, ask, wires,
    wires::{ProviderWire, anthropic, gemini, vertex_claude},
};

#[tokio::test]
async fn an_answer_that_claude_pauses_continues_with_what_came() {
    for wire in [anthropic(), vertex_claude()] {
        let pause = wire.end.iter().map(|event| event.replace("end_turn", "pause_turn"));
        let paused = wire.reply().chunks(&wire.begin).chunks(&pause.collect::<Vec<_>>());
        let outcome = ask(&wire, &["--model-retries=0"], vec![paused, wire.complete_reply()]).await;
        let mut expected = wire.first_deltas();
        expected.extend(wire.deltas());
        let usage = [wire.usage, wire.usage].into_iter().sum::<Usage>();
        *expected.last_mut().unwrap() = AnswerDelta::End(usage, FinishReason::Stop);
        assert_eq!(outcome.deltas, expected, "{:?}", outcome.error);
        let [first, second] = &outcome.requests[..] else { panic!("{:?}", outcome.requests) };
        let mut messages = first.body["messages"].as_array().unwrap().clone();
        messages.push(json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "Hello"},
        ]}));
        assert_eq!(second.body["messages"], json!(messages));
        assert_eq!(first.head.lines().next(), second.head.lines().next());
    }
}

#[tokio::test]
async fn gemini_is_asked_again_if_only_thoughts_came_before_a_malformed_call() {
    let wire = gemini();
    let malformed = "data: {\"candidates\":[{\"finishReason\":\"MALFORMED_FUNCTION_CALL\"}]}\r\n\r\n";
    let thought = wire.reply().chunk(&wire.begin[0]).chunk(malformed);
    let outcome = ask(&wire, &["--model-retries=0"], vec![thought.clone(), wire.complete_reply()]).await;
    let mut expected = vec![AnswerDelta::Reasoning("hm".to_owned())];
    expected.extend(wire.deltas());
    assert_eq!((outcome.deltas, outcome.requests.len()), (expected, 2), "{:?}", outcome.error);
    let outcome = ask(&wire, &["--model-retries=0"], vec![thought]).await;
    assert_eq!((outcome.code(), outcome.requests.len()), (Some("model_broken_stream"), 2));
}

#[tokio::test]
async fn an_overload_in_mid_answer_says_so() {
    let overloaded =
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n";
    for wire in wires().into_iter().filter(|wire| wire.format == "anthropic") {
        let outcome = ask(&wire, &[], vec![wire.reply().chunks(&wire.begin).chunk(overloaded)]).await;
        assert_eq!((outcome.code(), outcome.requests.len()), (Some("model_unavailable"), 1), "{outcome:?}");
        assert_eq!(outcome.deltas, wire.first_deltas());
    }
}

#[tokio::test]
async fn claude_continues_a_text_after_an_overload_where_it_can() {
    let overloaded =
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n";
    let text_alone = |model| {
        let wire = anthropic();
        let begin = [0, 6, 7].map(|at| wire.begin[at].clone()).to_vec();
        ProviderWire { model, begin, ..wire }
    };
    let wire = text_alone("claude-sonnet-4-5");
    let start = &wire.begin[..2];
    let rest = wire.rest[0].replace("wörld", " wörld");
    let second = wire.reply().chunks(start).chunk(&rest).chunks(&wire.end);
    let outcome = ask(&wire, &[], vec![wire.reply().chunks(&wire.begin).chunk(overloaded), second]).await;
    let texts: Vec<_> =
        outcome.deltas.iter().filter(|delta| matches!(delta, AnswerDelta::Text(text) if !text.is_empty())).collect();
    assert_eq!(texts, [&AnswerDelta::Text("Hello ".to_owned()), &AnswerDelta::Text("wörld".to_owned())], "{outcome:?}");
    let messages = outcome.requests[1].body["messages"].as_array().unwrap();
    let beginning = json!({"role": "assistant", "content": [{"type": "text", "text": "Hello"}]});
    assert_eq!(messages.last(), Some(&beginning), "white space at the end is refused");

    let wire = text_alone("claude-sonnet-4-6");
    let outcome = ask(&wire, &[], vec![wire.reply().chunks(&wire.begin).chunk(overloaded)]).await;
    assert_eq!(
        (outcome.code(), outcome.requests.len()),
        (Some("model_unavailable"), 1),
        "it refuses to continue a text"
    );
}
