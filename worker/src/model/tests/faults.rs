//! Answers that do not arrive, or not completely. The deltas before the fault stay; the error is the last item.

use std::time::Duration;

use futures::{StreamExt, future::join_all};

use super::{
    AnswerDelta, AskOutcome, FakeProvider, Reply, ask, connect, request, wires, wires::ProviderWire, wires::gemini,
    wires::openai,
};

/// Checks that the first deltas were returned, that the provider got one request, and that the error has this code.
#[track_caller]
fn check_broken_after_the_first_deltas(wire: &ProviderWire, outcome: &AskOutcome, code: &str) {
    assert_eq!(outcome.code(), Some(code), "{}: {outcome:?}", wire.provider);
    assert_eq!(outcome.deltas, wire.first_deltas(), "{}", wire.provider);
    assert_eq!(outcome.requests.len(), 1, "{}: no retry after the first delta", wire.provider);
}

#[tokio::test]
async fn a_clean_end_in_mid_answer_is_an_error() {
    for wire in wires() {
        let outcome = ask(&wire, &[], vec![wire.reply().chunks(&wire.begin)]).await;
        check_broken_after_the_first_deltas(&wire, &outcome, "model_broken_stream");
    }
}

#[tokio::test]
async fn a_lost_connection_in_mid_answer_is_an_error() {
    for wire in wires() {
        let outcome = ask(&wire, &[], vec![wire.reply().chunks(&wire.begin).then_cut()]).await;
        check_broken_after_the_first_deltas(&wire, &outcome, "model_broken_stream");
    }
}

#[tokio::test]
async fn a_malformed_chunk_is_an_error_although_the_stream_continues() {
    for wire in wires() {
        let broken = format!("{}{}", wire.begin.concat(), wire.malformed);
        let apart = wire.reply().chunks(&wire.begin).chunk(&wire.malformed);
        for reply in [apart, wire.reply().chunk(broken)] {
            let outcome = ask(&wire, &[], vec![reply.chunks(&wire.rest).chunks(&wire.end)]).await;
            check_broken_after_the_first_deltas(&wire, &outcome, "model_broken_stream");
        }
    }
}

#[tokio::test]
async fn a_provider_error_in_mid_answer_is_quoted() {
    for wire in wires() {
        let outcome = ask(&wire, &[], vec![wire.reply().chunks(&wire.begin).chunk(&wire.error_chunk)]).await;
        assert_eq!(outcome.deltas, wire.first_deltas(), "{}", wire.provider);
        assert!(matches!(outcome.code(), Some("model_failed" | "model_refused")), "{outcome:?}");
        assert!(outcome.message().contains("out of luck"), "{}", outcome.message());
    }
}

#[tokio::test]
async fn a_provider_error_instead_of_an_answer_is_not_retried() {
    for wire in wires() {
        let outcome = ask(&wire, &[], vec![wire.reply().chunk(&wire.error_chunk)]).await;
        assert_eq!(outcome.deltas, [], "{}", wire.provider);
        assert_eq!(outcome.requests.len(), 1, "{}", wire.provider);
        assert!(outcome.message().contains("out of luck"), "{}", outcome.message());
    }
}

#[tokio::test]
async fn a_json_error_with_status_200_is_an_error() {
    for wire in wires() {
        let body = "{\"error\": {\"message\": \"out of luck\"}}\n";
        let outcome = ask(&wire, &["--model-retries=0"], vec![Reply::json(200, body)]).await;
        assert_eq!(outcome.deltas, [], "{}", wire.provider);
        assert!(outcome.error.is_some(), "{}", wire.provider);
    }
    // A JSON error whose content type is not JSON.
    let outcome =
        ask(&openai(), &[], vec![Reply::new(200, "text/plain").chunk("{\"error\":{\"message\":\"out of luck\"}}")])
            .await;
    assert_eq!(outcome.code(), Some("model_failed"));
    assert!(outcome.message().contains("out of luck"), "{}", outcome.message());
}

#[tokio::test]
async fn garbage_instead_of_a_stream_is_retried() {
    for wire in wires() {
        for garbage in ["{\"ok\":true}", "[]", "no JSON at all", "<html>"] {
            let outcome = ask(&wire, &[], vec![Reply::json(200, garbage), wire.complete_reply()]).await;
            assert_eq!(outcome.deltas, wire.deltas(), "{} after {garbage}: {:?}", wire.provider, outcome.error);
        }
    }
}

#[tokio::test]
async fn a_page_instead_of_a_stream_is_an_error_that_quotes_it() {
    let page = Reply::new(200, "text/html").chunk("<html>\n<h1>Please log in</h1>");
    let outcome = ask(&openai(), &["--model-retries=0"], vec![page]).await;
    assert_eq!(outcome.code(), Some("model_broken_stream"));
    assert!(outcome.message().contains("<html>"), "{}", outcome.message());
}

#[tokio::test]
async fn a_prompt_that_gemini_blocks_is_an_error_that_says_so() {
    let blocked = "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"},\"usageMetadata\":{}}\r\n\r\n";
    let outcome = ask(&gemini(), &[], vec![gemini().reply().chunk(blocked)]).await;
    assert_eq!(outcome.code(), Some("model_failed"));
    assert!(outcome.message().contains("SAFETY"), "{}", outcome.message());
}

#[tokio::test]
async fn an_unknown_model_is_an_error_that_names_the_variable() {
    for wire in wires() {
        let outcome = ask(&wire, &[], vec![Reply::json(404, wire.unknown_model)]).await;
        assert_eq!(outcome.code(), Some("model_not_found"), "{}", wire.provider);
        assert_eq!(outcome.requests.len(), 1, "{}", wire.provider);
        for part in ["CHAT_MODEL_NAME", "some-model", "no such thing", wire.provider] {
            assert!(outcome.message().contains(part), "{part}: {}", outcome.message());
        }
    }
}

#[tokio::test]
async fn a_long_error_is_truncated_and_does_not_show_the_key() {
    for wire in wires() {
        if wire.provider == "ollama" {
            continue;
        }
        let body = format!("{{\"error\":{{\"message\":\"bad key secret-key {}\"}}}}", "x".repeat(10_000));
        let outcome = ask(&wire, &[], vec![Reply::json(401, &body)]).await;
        assert_eq!(outcome.code(), Some("model_key_refused"), "{}", wire.provider);
        let message = outcome.message();
        assert!(message.contains("bad key [key]") && !message.contains("secret-key"), "{message}");
        assert!(message.chars().count() < 700, "{}", message.len());
        assert!(!format!("{:?}", outcome.error).contains("secret-key"));
    }
}

#[tokio::test]
async fn silence_before_the_first_byte_is_a_timeout() {
    for wire in wires() {
        for silence in [Reply::silence(), wire.reply().then_hang()] {
            let outcome = ask(&wire, &["--model-first-byte-ms=50", "--model-retries=0"], vec![silence]).await;
            assert_eq!(outcome.code(), Some("model_timeout"), "{}", wire.provider);
            assert!(outcome.message().contains("beginning of the answer took longer than 50 ms"));
        }
    }
}

#[tokio::test]
async fn silence_in_mid_answer_is_a_timeout() {
    for wire in wires() {
        let outcome = ask(&wire, &["--model-idle-ms=50"], vec![wire.reply().chunks(&wire.begin).then_hang()]).await;
        check_broken_after_the_first_deltas(&wire, &outcome, "model_timeout");
        assert!(outcome.message().contains("next piece of the answer took longer than 50 ms"));
    }
}

#[tokio::test]
async fn an_endless_answer_ends_at_the_total_time() {
    let check = async |wire: ProviderWire| {
        let reply = wire.reply().chunks(&wire.begin).then_repeat();
        let outcome = ask(&wire, &["--model-total-ms=2000"], vec![reply]).await;
        assert_eq!(outcome.code(), Some("model_timeout"), "{}", wire.provider);
        assert!(outcome.message().contains("whole answer took longer than 2000 ms"));
        assert!(outcome.deltas.len() > 2 && outcome.requests.len() == 1, "{}", wire.provider);
    };
    join_all(wires().into_iter().map(check)).await;
}

#[tokio::test]
async fn an_endless_line_is_an_error() {
    let begin = "data: {\"choices\":[{\"delta\":{\"content\":\"".to_owned();
    let reply = Reply::new(200, "text/event-stream").chunk(begin).chunk("x".repeat(50_000)).then_repeat();
    let outcome = ask(&openai(), &["--model-retries=0"], vec![reply]).await;
    assert_eq!(outcome.code(), Some("model_broken_stream"));
    assert!(outcome.message().contains("longer than"), "{}", outcome.message());
}

#[tokio::test]
async fn an_endless_error_body_is_truncated() {
    let reply = Reply::new(400, "text/plain").chunk("x".repeat(50_000)).then_repeat();
    let outcome = ask(&openai(), &[], vec![reply]).await;
    assert_eq!(outcome.code(), Some("model_refused"));
}

#[tokio::test]
async fn keep_alives_end_the_first_byte_limit_but_are_no_answer() {
    let reply = Reply::new(200, "text/event-stream").chunk(": still thinking\n\n").then_hang();
    let flags = ["--model-first-byte-ms=60000", "--model-idle-ms=50", "--model-retries=1"];
    let outcome = ask(&openai(), &flags, vec![reply, openai().complete_reply()]).await;
    assert_eq!(outcome.deltas, openai().deltas());
    assert_eq!(outcome.requests.len(), 2);
}

#[tokio::test]
async fn a_slow_reader_does_not_exceed_the_providers_limits() {
    for wire in wires() {
        let provider = FakeProvider::start(vec![wire.complete_reply()]).await;
        let model = connect(&wire.config(&provider.url, &["--model-idle-ms=50"])).unwrap();
        let mut answer = model.ask(&request()).await.unwrap_or_else(|error| panic!("{error}"));
        // The test measures the time itself: the reader is slower than the provider may be.
        tokio::time::sleep(Duration::from_millis(120)).await;
        let mut count = 0;
        while let Some(item) = answer.next().await {
            item.unwrap();
            count += 1;
        }
        assert_eq!(count, wire.deltas().len());
    }
}

#[tokio::test]
async fn dropping_the_answer_closes_the_connection() {
    for wire in wires() {
        let mut provider = FakeProvider::start(vec![wire.reply().chunks(&wire.begin).then_hang()]).await;
        let model = connect(&wire.config(&provider.url, &[])).unwrap();
        let mut answer = model.ask(&request()).await.unwrap_or_else(|error| panic!("{error}"));
        assert!(matches!(answer.next().await, Some(Ok(AnswerDelta::Reasoning(_)))));
        drop(answer);
        provider.wait_for_closed(1).await;
    }
}

#[tokio::test]
async fn a_provider_that_no_connection_reaches_is_unreachable() {
    for wire in wires() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://user:password@{}", listener.local_addr().unwrap());
        drop(listener);
        let model = connect(&wire.config(&url, &[])).unwrap();
        let error = model.ask(&request()).await.err().expect("no provider can answer");
        assert_eq!(error.code(), "model_unreachable", "{error}");
        assert!(error.to_string().contains("cannot connect"), "{error}");
        assert!(!error.to_string().contains("password"), "{error}");
    }
}
