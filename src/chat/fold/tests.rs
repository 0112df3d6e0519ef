//! The items and open questions of the fold.

use super::*;

fn event(id: &str, kind: &str, rest: &str) -> ClientEvent {
    ClientEvent::parse(format!(r#"{{"id":"{id}","type":"{kind}"{rest}}}"#)).unwrap()
}

fn text(id: &str, text: &str) -> ClientEvent {
    event(id, "message.delta", &format!(r#","message_id":"{}","text":"{text}""#, Uuid::nil()))
}

fn started(id: &str, base: &str, reason: &str) -> ClientEvent {
    event(id, "attempt.started", &format!(r#","attempt":1,"base":"{base}","reason":"{reason}""#))
}

fn message(id: &str, base: &str, content: &str) -> ClientEvent {
    let (id_of, at) = (Uuid::nil(), "2026-11-22T08:30:00.000Z");
    let message = format!(
        r#"{{"id":"{id_of}","conversation_id":"{id_of}","run_id":"{id_of}","role":"assistant","content_type":"text","content":"{content}","status":"complete","retrieval_context":null,"created_at":"{at}"}}"#
    );
    event(id, "message.completed", &format!(r#","base":"{base}","message":{message}"#))
}

fn cancelled(id: &str) -> ClientEvent {
    event(id, "run.cancelled", r#","base":"1-2""#)
}

fn approval(id: &str, approval: u8) -> ClientEvent {
    let rest = format!(
        r#","approval_id":"{}","call_id":"call_{approval}","kind":"policy","name":"kb__{approval}","input":{{}},"expires_at":"2026-11-22T08:30:00.000Z""#,
        Uuid::from_u128(approval.into())
    );
    event(id, "approval.requested", &rest)
}

fn resolved(id: &str, base: &str, approval: u8, rest: &str) -> ClientEvent {
    let approval = Uuid::from_u128(approval.into());
    event(id, "approval.resolved", &format!(r#","base":"{base}","approval_id":"{approval}","call_id":"call"{rest}"#))
}

/// Checks the items of a run that has started and has written "one two".
fn check(events: Vec<ClientEvent>, expected: &[&str]) {
    check_open(events, expected, &[]);
}

/// Checks the items, and the tools of the questions that are open at the end.
fn check_open(events: Vec<ClientEvent>, expected: &[&str], open: &[&str]) {
    let mut fold = Fold::on("http://h");
    let begin = vec![
        event(
            "0-1",
            "run.queued",
            r#","base":"0-0","conversation_id":"01900000-0000-7000-8000-000000000001","input_message_id":"01900000-0000-7000-8000-000000000001","message_id":"01900000-0000-7000-8000-000000000001""#,
        ),
        started("1-1", "0-1", "claimed"),
        text("1-2", "one "),
        text("1-3", "two"),
    ];
    begin.into_iter().for_each(|event| drop(fold.apply(event)));
    let shown: Vec<String> = events
        .into_iter()
        .flat_map(|event| fold.apply(event))
        .filter(|item| *item != DisplayItem::Text(String::new()))
        .map(|item| match item {
            DisplayItem::Conversation(id) => format!("conversation {id}"),
            DisplayItem::Text(text) => format!("text {text}"),
            DisplayItem::Reasoning(text) => format!("reasoning {text}"),
            DisplayItem::Aside(text) => format!("aside {text}"),
            DisplayItem::Answer(text) => format!("answer {text}"),
            DisplayItem::Notice(text) => format!("notice {text}"),
            DisplayItem::Error(text) => format!("error {text}"),
        })
        .collect();
    assert_eq!(shown, expected);
    assert_eq!(fold.questions().iter().map(|question| question.name.as_str()).collect::<Vec<_>>(), open);
}

#[test]
fn an_answer_is_shown_as_it_arrives_and_once_completely() {
    let end = event("1-6", "run.completed", "");
    check(vec![text("1-4", " x"), message("1-5", "0-1", "one two x"), end], &["text  x", "answer one two x"]);
}

#[test]
fn text_after_a_base_is_shown_again() {
    check(
        vec![started("2-1", "0-1", "lease_expired"), text("2-2", "uno"), message("2-3", "0-1", "uno")],
        &["aside the worker was lost; starting again", "text uno", "answer uno"],
    );
    check(
        vec![started("2-1", "1-2", "drain"), text("2-2", "due"), message("2-3", "0-1", "one due")],
        &["aside the worker was shut down; starting again", "text due", "answer one due"],
    );
}

#[test]
fn a_base_that_supersedes_no_text_shows_nothing() {
    check(vec![started("2-1", "1-3", "resumed"), text("2-2", "!")], &["text !"]);
    let twice = vec![started("2-1", "0-1", "lease_expired"), started("3-1", "0-1", "lease_expired")];
    check(twice, &["aside the worker was lost; starting again"]);
}

#[test]
fn a_cancelled_run_shows_the_stored_part() {
    check(
        vec![message("1-4", "0-1", "one two"), cancelled("1-5")],
        &["answer one two", "notice cancelled; the answer so far is kept"],
    );
    check(
        vec![message("2-1", "1-2", "one "), cancelled("2-2")],
        &[
            "aside the server has kept only this:",
            "text one ",
            "answer one ",
            "notice cancelled; the answer so far is kept",
        ],
    );
    check(vec![cancelled("2-1")], &["notice cancelled; there is no answer"]);
}

#[test]
fn the_stored_message_replaces_the_deltas() {
    check(vec![message("1-4", "0-1", "one two, and more")], &["text , and more", "answer one two, and more"]);
    check(vec![message("1-4", "0-1", "else")], &["aside the server has kept only this:", "text else", "answer else"]);
}

#[test]
fn failures_and_warnings_are_shown_and_unknown_events_are_not() {
    check(
        vec![
            event("1-4", "warning.raised", r#","code":"x","message":"The database is away.""#),
            event("1-5", "dream.dreamt", r#","text":"x""#),
            event("1-6", "reasoning.delta", r#","message_id":"01900000-0000-7000-8000-000000000001","text":"hm""#),
            event("1-7", "run.failed", r#","error":{"code":"model_failed","message":"the model failed"}"#),
        ],
        &["notice The database is away.", "reasoning hm", "error run failed: the model failed (model_failed)"],
    );
}

#[test]
fn a_tool_call_is_a_line_when_it_begins_and_when_it_ends() {
    let call = r#","call_id":"c","name":"kb__add""#;
    let completed = |id, result: &str| event(id, "tool_call.completed", &format!("{call},{result}"));
    check(
        vec![
            event("1-4", "tool_call.delta", &format!(r#"{call},"text":"{{""#)),
            event("1-5", "tool_call.started", &format!(r#"{call},"step":1,"input":{{"a":2}},"by":"worker""#)),
            completed("1-6", r#""output":"the sum\nis 5","duration_ms":5"#),
            completed("1-7", r#""error":{"code":"timed_out","message":"no\nanswer"},"duration_ms":10000"#),
            completed(
                "1-8",
                r#""output":"","duration_ms":0,"files":[{"file_id":"01900000-0000-7000-8000-000000000001","name":"a\nb.png","media_type":"image/png","bytes":3}]"#,
            ),
        ],
        &[
            r#"notice calling kb__add {"a":2}"#,
            "notice kb__add answered after 5 ms: the sum is 5",
            "notice kb__add failed after 10.0 s: no answer (timed_out)",
            "notice kb__add answered after 0 ms",
            "notice a\\nb.png: http://h/v1/files/01900000-0000-7000-8000-000000000001",
        ],
    );
}

#[test]
fn questions_are_open_until_they_are_resolved() {
    check_open(vec![approval("1-4", 1), approval("1-5", 2)], &[], &["kb__1", "kb__2"]);
    check_open(
        vec![
            approval("1-4", 1),
            approval("1-5", 2),
            resolved("2-1", "1-5", 1, r#","decision":"denied","reason":"not\nnow","edited_input":null"#),
        ],
        &["notice kb__1 is denied: not now"],
        &["kb__2"],
    );
    check(
        vec![
            approval("1-4", 1),
            resolved("2-1", "1-4", 1, r#","decision":"approved","reason":null,"edited_input":{"a":1}"#),
            started("3-1", "2-1", "resumed"),
        ],
        &[r#"notice kb__1 is approved, with {"a":1}"#],
    );
}

#[test]
fn a_superseded_question_is_not_open() {
    let again = vec![approval("1-4", 1), started("2-1", "1-3", "lease_expired"), approval("2-2", 1)];
    check_open(again, &[], &["kb__1"]);
    check(vec![approval("1-4", 1), started("2-1", "1-3", "lease_expired")], &[]);
    check(vec![approval("1-4", 1), cancelled("2-1")], &["notice cancelled; there is no answer"]);
}

#[test]
fn a_call_of_the_client_is_a_question_until_it_has_a_result() {
    let asked = || {
        let rest = r#","call_id":"c","step":1,"name":"ask","input":{"question":"Which?"},"by":"client""#;
        event("1-4", "tool_call.started", rest)
    };
    check_open(vec![asked()], &[], &["ask"]);
    let answered = r#","base":"1-4","call_id":"c","name":"ask","output":"blue","duration_ms":2918"#;
    check(vec![asked(), event("2-1", "tool_call.completed", answered)], &["notice ask answered after 2.9 s: blue"]);
}

#[test]
fn the_result_of_an_ended_run_adds_the_missing_text() {
    let mut fold = Fold::default();
    fold.apply(text("1-2", "one "));
    let run = r#"{"status":"completed","output_message":{"content":"one two"},"error":null}"#;
    let items = fold.finish(serde_json::from_str(run).unwrap());
    assert_eq!(items, [DisplayItem::Text("two".to_owned()), DisplayItem::Answer("one two".to_owned())]);
    assert_eq!(fold.outcome(), Some(RunOutcome::Completed));
}

#[test]
fn a_truncated_answer_has_a_notice() {
    let ended = |reason: &str| event("1-5", "run.completed", &format!(r#","finish_reason":"{reason}""#));
    for (reason, part) in [("length", "longest"), ("content_filter", "withheld")] {
        let mut fold = Fold::default();
        fold.apply(started("1-1", "0-1", "claimed"));
        let shown = fold.apply(ended(reason));
        assert!(matches!(&shown[..], [DisplayItem::Notice(text)] if text.contains(part)), "{shown:?}");
    }
    check(vec![message("1-4", "0-0", "one two"), ended("stop")], &["answer one two"]);
}
