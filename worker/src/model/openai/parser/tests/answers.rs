//! Whole answers as servers send them, with all that they send beside.

use super::*;

/// Checks the text, the reasoning and the end of an answer, all at once and byte by byte.
#[track_caller]
fn check_answer(body: &str, text: &str, reasoning: &str, usage: [u64; 2], reason: FinishReason) {
    let every: Vec<usize> = (0..body.len()).collect();
    for splits in [&[][..], &every] {
        let (mut deltas, flaw) = parse(body.as_bytes(), splits);
        assert_eq!(flaw, None, "{body}");
        let Some(AnswerDelta::End(tokens, ended)) = deltas.pop() else { panic!("no end: {body}") };
        assert_eq!(([tokens.input_tokens, tokens.output_tokens], ended), (usage, reason), "{body}");
        let mut read = (String::new(), String::new());
        for delta in deltas {
            match delta {
                AnswerDelta::Text(piece) => read.0 += &piece,
                AnswerDelta::Reasoning(piece) => read.1 += &piece,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((read.0.as_str(), read.1.as_str()), (text, reasoning), "{body}");
    }
}

fn events(chunks: &[&str]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect()
}

#[test]
fn what_servers_send_beside_an_answer_costs_no_answer() {
    let check = |chunks: &[&str], usage: [u64; 2], reason: FinishReason| {
        check_answer(&events(chunks), "Hi you", "", usage, reason);
    };
    let (hi, you) = (r#"{"choices":[{"delta":{"content":"Hi "}}]}"#, r#"{"choices":[{"delta":{"content":"you"}}]}"#);
    let stop = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    // A first chunk without choices, roles alone, null, and foreign fields of any type.
    check(
        &[
            r#"{"prompt_filter_results":[{"prompt_index":0}],"choices":[]}"#,
            r#"{"choices":null,"usage":null,"error":null,"object":7}"#,
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","annotations":[1],"server_tool_use":{"a":1}}}]}"#,
            r#"{"choices":["no choice",{"index":"x","delta":[]},{"delta":{"content":7,"tool_calls":{},"refusal":[]}}]}"#,
            hi,
            r#"{"choices":[{"index":1,"delta":{"content":"another choice"}}]}"#,
            you,
            stop,
        ],
        [0, 0],
        FinishReason::Stop,
    );
    // The end comes early, twice, empty, or only as the usage.
    check(
        &[r#"{"choices":[{"delta":{"content":"Hi "},"finish_reason":"stop"}]}"#, you, "[DONE]"],
        [0, 0],
        FinishReason::Stop,
    );
    check(
        &[hi, you, r#"{"choices":[{"finish_reason":"length"}]}"#, stop, r#"{"choices":[{"finish_reason":""}]}"#],
        [0, 0],
        FinishReason::Length,
    );
    check(
        &[hi, you, r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#],
        [3, 2],
        FinishReason::Other,
    );
    // Usage as floats, negative, in each chunk, in the choice, and of a wrong type.
    check(
        &[hi, you, stop, r#"{"choices":[],"usage":{"prompt_tokens":5.0,"completion_tokens":-1,"total_tokens":"x"}}"#],
        [5, 0],
        FinishReason::Stop,
    );
    check(
        &[
            r#"{"choices":[{"delta":{"content":"Hi "}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#,
            r#"{"choices":[{"delta":{"content":"you"},"usage":{"prompt_tokens":3,"completion_tokens":2}}],"usage":[]}"#,
            r#"{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":0,"completion_tokens":null}}"#,
        ],
        [3, 2],
        FinishReason::Stop,
    );
    // The pieces, or the whole, as a message.
    check(
        &[r#"{"choices":[{"message":{"content":"Hi "}}]}"#, r#"{"choices":[{"message":{"content":"you"}}]}"#, stop],
        [0, 0],
        FinishReason::Stop,
    );
    check(
        &[hi, you, r#"{"choices":[{"delta":{},"message":{"content":"Hi you"},"finish_reason":"stop"}]}"#],
        [0, 0],
        FinishReason::Stop,
    );
}

#[test]
fn a_plain_json_answer_is_the_answer() {
    let compact = r#"{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","reasoning_content":"hm","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#;
    let pretty = serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(compact).unwrap()).unwrap();
    for body in [compact, &format!("{compact}\n"), &pretty, &format!("\u{FEFF}\n {pretty}\n\n")] {
        check_answer(body, "Hi", "hm", [3, 2], FinishReason::Stop);
    }
    check_answer(r#"{"choices":[{"message":{"content":"Hi"}}]}"#, "Hi", "", [0, 0], FinishReason::Other);
    assert_eq!(parse(&compact.as_bytes()[..compact.len() - 1], &[]).1, Some(Flaw::Truncated));
    let error = r#"{"error":{"message":"no"}}"#;
    assert_eq!(parse(error.as_bytes(), &[]).1, Some(Flaw::NotAStream(error.to_owned())));
}

#[test]
fn a_mark_and_comments_before_the_stream_are_no_answer() {
    let chunks = events(&[r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#]);
    let body = format!("\u{FEFF}: PROCESSING\n\nevent: x\nid: 1\nretry: 5\n{chunks}");
    check_answer(&body, "Hi", "", [0, 0], FinishReason::Stop);
    check_answer(&format!("\u{FEFF}{chunks}"), "Hi", "", [0, 0], FinishReason::Stop);
}

#[test]
fn an_error_in_mid_stream_is_found_in_each_of_its_places() {
    let check = |chunk: &str, expected: &str| {
        let body = events(&[r#"{"choices":[{"delta":{"content":"Hi"}}]}"#, chunk]);
        let (deltas, flaw) = parse(body.as_bytes(), &[]);
        assert_eq!(deltas, [AnswerDelta::Text("Hi".to_owned())], "{chunk}");
        assert_eq!(flaw, Some(Flaw::ProviderError(expected.to_owned())), "{chunk}");
    };
    for chunk in [
        r#"{"error":{"code":502,"message":"no"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}"#,
        r#"{"error":"no"}"#,
        r#"{"object":"error","message":"no"}"#,
    ] {
        check(chunk, chunk);
    }
    check(
        r#"{"choices":[{"error":{"code":502,"message":"no"},"finish_reason":"error"}]}"#,
        r#"{"error":{"code":502,"message":"no"}}"#,
    );
}

#[test]
fn reasoning_is_found_in_parts_and_in_tags() {
    let body = events(&[
        r#"{"choices":[{"delta":{"content":""}}]}"#,
        r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm \ud83d"}]}]}}]}"#,
        r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":"\ude00"},{"type":"text","text":"Hi "}]}}]}"#,
        r#"{"choices":[{"delta":{"content":"you \ud83d"}}]}"#,
        r#"{"choices":[{"delta":{"content":"\ude00"},"finish_reason":"stop"}]}"#,
    ]);
    check_answer(&body, "Hi you 😀", "hm 😀", [0, 0], FinishReason::Stop);
    let body = events(&[
        r#"{"choices":[{"delta":{"content":"<thi"}}]}"#,
        r#"{"choices":[{"delta":{"content":"nk>hm</th"}}]}"#,
        r#"{"choices":[{"delta":{"content":"ink>\n\nHi"},"finish_reason":"stop"}]}"#,
    ]);
    check_answer(&body, "Hi", "hm", [0, 0], FinishReason::Stop);
}

#[test]
fn what_the_model_wrote_for_itself_goes_with_its_calls() {
    let call = |id: u8, more: &str| {
        format!(r#"{{"index":{id},"id":"c{id}","function":{{"name":"f","arguments":"{{}}"}}{more}}}"#)
    };
    let first = call(0, r#","extra_content":{"google":{"thought_signature":"c2ln"}}"#);
    let body = events(&[
        r#"{"choices":[{"delta":{"reasoning_content":"I ","reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_content":"think."}}]}"#,
        &format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{first},{}]}}}}]}}"#, call(1, "")),
        "[DONE]",
    ]);
    let (deltas, flaw) = parse(body.as_bytes(), &[]);
    assert_eq!(flaw, None);
    let signatures: Vec<_> = deltas
        .iter()
        .filter_map(|delta| match delta {
            AnswerDelta::Call(CallDelta { index, signature: Some(signature), .. }) => Some((*index, signature.clone())),
            _ => None,
        })
        .collect();
    let expected = serde_json::json!({
        "extra_content": {"google": {"thought_signature": "c2ln"}},
        "reasoning_content": "I think.",
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}],
    });
    assert_eq!(signatures, [(0, expected)]);
}
