//! Folds of lines of a log.

use serde_json::{Value, json};

use super::*;

/// Folds the lines `<id> <type> <payload>` of a log, and compares the fields that `expected` has.
fn check(log: &[&str], expected: Value) {
    let mut builder = SnapshotBuilder::default();
    for line in log {
        let (id, rest) = line.split_once(' ').unwrap();
        builder.push(&Event::parse(format!("{id} 0 {rest}").into()).unwrap());
    }
    let snapshot = serde_json::to_value(builder.into_snapshot()).unwrap();
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(snapshot[field], *value, "{field} of {snapshot:#}");
    }
}

const QUEUED: &str = r#"0-1 run.queued {"base":"0-0","conversation_id":"00000000-0000-0000-0000-000000000000","input_message_id":"00000000-0000-0000-0000-000000000000","message_id":"00000000-0000-0000-0000-000000000007","agent_id":null}"#;
const CLAIMED: &str =
    r#"1-1 attempt.started {"attempt":1,"base":"0-1","reason":"claimed","crashes":0,"max_crashes":3}"#;
const REQUESTED: &str = r#"1-5 approval.requested {"approval_id":"00000000-0000-0000-0000-000000000001","call_id":"c","kind":"policy","name":"send","input":{"to":1},"expires_at":"2026-11-22T08:30:00.000Z"}"#;
const STEP: &str =
    r#"{"step":1,"tool_calls":0,"usage":{"input_tokens":2,"output_tokens":3,"cached_tokens":0,"reasoning_tokens":0}}"#;

#[test]
fn an_unclaimed_run_has_an_empty_snapshot() {
    let nothing = json!({"status": "queued", "text": "", "reasoning": "", "tool_calls": [], "approvals": [], "usage": null,
        "message_id": "00000000-0000-0000-0000-000000000007"});
    check(&[QUEUED], nothing);
}

#[test]
fn text_and_reasoning_are_kept_apart() {
    check(
        &[
            QUEUED,
            CLAIMED,
            r#"1-2 reasoning.delta {"message_id":"00000000-0000-0000-0000-000000000000","text":"Let "}"#,
            r#"1-3 message.delta {"message_id":"00000000-0000-0000-0000-000000000000","text":"an"}"#,
            r#"1-4 message.delta {"message_id":"00000000-0000-0000-0000-000000000000","text":"swer"}"#,
            r#"1-5 dream.dreamt {"text":"?"}"#,
        ],
        json!({"status": "running", "text": "answer", "reasoning": "Let "}),
    );
}

#[test]
fn a_new_attempt_supersedes_everything_after_its_base() {
    check(
        &[
            QUEUED,
            CLAIMED,
            r#"1-2 message.delta {"message_id":"00000000-0000-0000-0000-000000000000","text":"kept "}"#,
            r#"1-3 reasoning.delta {"message_id":"00000000-0000-0000-0000-000000000000","text":"lost"}"#,
            r#"1-4 message.delta {"message_id":"00000000-0000-0000-0000-000000000000","text":"lost"}"#,
            r#"1-5 tool_call.delta {"call_id":"c","name":"look","text":"{}"}"#,
            r#"1-6 step.completed {"step":1,"tool_calls":0,"usage":{"input_tokens":1,"output_tokens":1,"cached_tokens":0,"reasoning_tokens":0}}"#,
            r#"2-1 attempt.started {"attempt":1,"base":"1-2","reason":"claimed","crashes":0,"max_crashes":3}"#,
            r#"2-2 message.delta {"message_id":"00000000-0000-0000-0000-000000000000","text":"new"}"#,
        ],
        json!({"status": "running", "text": "kept new", "reasoning": "", "tool_calls": [], "usage": null}),
    );
}

#[test]
fn arguments_are_text_until_they_are_complete() {
    let delta = r#"1-2 tool_call.delta {"call_id":"c","name":"look","text":"{\"a\":"}"#;
    check(
        &[QUEUED, CLAIMED, delta],
        json!({"tool_calls": [{"call_id": "c", "name": "look", "input": null, "input_text": "{\"a\":", "status": "requested"}]}),
    );
    check(
        &[QUEUED, CLAIMED, delta, r#"1-3 tool_call.delta {"call_id":"c","text":"1}"}"#],
        json!({"tool_calls": [{"call_id": "c", "name": "look", "input": {"a": 1}, "status": "requested"}]}),
    );
}

#[test]
fn a_call_has_its_outcome() {
    let started = r#"1-4 tool_call.started {"call_id":"c","step":1,"name":"look","input":{"a":1},"by":"worker"}"#;
    let call = |more: Value| {
        let mut call = json!({"call_id": "c", "name": "look", "input": {"a": 1}});
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"status": "running", "tool_calls": [call]})
    };
    check(&[QUEUED, CLAIMED, started], call(json!({"status": "called"})));
    let completed = |outcome: &str| format!(r#"1-5 tool_call.completed {{"call_id":"c","name":"look",{outcome}}}"#);
    check(
        &[QUEUED, CLAIMED, started, &completed(r#""output":"seen""#)],
        call(json!({"status": "completed", "output": "seen"})),
    );
    check(
        &[QUEUED, CLAIMED, &completed(r#""input":{"a":1},"error":{"code":"unknown_tool","message":"no"}"#)],
        call(json!({"status": "completed", "error": {"code": "unknown_tool", "message": "no"}})),
    );
    check(
        &[QUEUED, CLAIMED, started, &completed(r#""error":{"code":"timeout","message":"late"}"#)],
        call(json!({"status": "completed", "error": {"code": "timeout", "message": "late"}})),
    );
}

#[test]
fn a_question_is_open_until_its_answer() {
    let call = |status: &str, to: u32| json!([{"call_id": "c", "name": "send", "input": {"to": to}, "status": status}]);
    let approval = json!({"approval_id": "00000000-0000-0000-0000-000000000001", "call_id": "c", "kind": "policy",
        "name": "send", "input": {"to": 1}, "expires_at": "2026-11-22T08:30:00.000Z"});
    check(
        &[QUEUED, CLAIMED, REQUESTED],
        json!({"status": "waiting", "approvals": [approval], "tool_calls": call("waiting", 1)}),
    );
    let answered = r#"2-1 approval.resolved {"base":"1-5","approval_id":"00000000-0000-0000-0000-000000000001","call_id":"c","decision":"approved","edited_input":{"to":2}}"#;
    check(
        &[QUEUED, CLAIMED, REQUESTED, answered],
        json!({"status": "queued", "approvals": [], "tool_calls": call("waiting", 2)}),
    );
    check(
        &[
            QUEUED,
            CLAIMED,
            REQUESTED,
            answered,
            r#"3-1 attempt.started {"attempt":1,"base":"2-1","reason":"claimed","crashes":0,"max_crashes":3}"#,
        ],
        json!({"status": "running", "approvals": [], "tool_calls": call("waiting", 2)}),
    );
}

#[test]
fn a_run_waits_for_every_answer_of_its_client() {
    let ask = |n: u32| {
        format!(
            r#"1-{n} tool_call.started {{"call_id":"c{n}","step":1,"name":"ask","input":{{}},"by":"client","expires_at":"2026-11-22T08:30:00.000Z"}}"#
        )
    };
    let (first, second) = (ask(2), ask(3));
    let answer = |id: &str, base: &str, n: u32| {
        format!(r#"{id} tool_call.completed {{"base":"{base}","call_id":"c{n}","name":"ask","output":"yes"}}"#)
    };
    let (one, two) = (answer("2-1", "1-3", 2), answer("3-1", "2-1", 3));
    check(&[QUEUED, CLAIMED, &first, &second], json!({"status": "waiting"}));
    let client = json!({"call_id": "c3", "name": "ask", "input": {}, "status": "client", "expires_at": "2026-11-22T08:30:00.000Z"});
    let done = |n: u32| json!({"call_id": format!("c{n}"), "name": "ask", "input": {}, "status": "completed", "output": "yes"});
    check(&[QUEUED, CLAIMED, &first, &second, &one], json!({"status": "waiting", "tool_calls": [done(2), client]}));
    check(
        &[QUEUED, CLAIMED, &first, &second, &one, &two],
        json!({"status": "queued", "tool_calls": [done(2), done(3)]}),
    );
}

#[test]
fn the_end_sets_the_final_state() {
    let stored = r#"1-7 message.completed {"message":{"id":"00000000-0000-0000-0000-000000000007","conversation_id":"00000000-0000-0000-0000-000000000002","run_id":null,"role":"assistant","content_type":"text","content":"whole","status":"failed","retrieval_context":null,"created_at":"2026-11-22T08:52:09.091Z"}}"#;
    let failed = r#"1-8 run.failed {"error":{"code":"model_failed","message":"no"},"usage":{"input_tokens":2,"output_tokens":3,"cached_tokens":0,"reasoning_tokens":0}}"#;
    let step = format!("1-6 step.completed {STEP}");
    let usage = json!({"input_tokens": 2, "output_tokens": 3, "cached_tokens": 0, "reasoning_tokens": 0});
    let before_the_end = [QUEUED, CLAIMED, REQUESTED, &step, stored];
    check(&before_the_end, json!({"status": "waiting", "text": "whole", "usage": usage, "error": null}));
    let log = [&before_the_end[..], &[failed]].concat();
    check(
        &log,
        json!({"status": "failed", "text": "whole", "usage": usage, "error": {"code": "model_failed", "message": "no"},
            "approvals": [], "tool_calls": [{"call_id": "c", "name": "send", "input": {"to": 1}, "status": "abandoned"}]}),
    );
}
