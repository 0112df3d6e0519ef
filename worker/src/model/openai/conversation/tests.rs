//! The order of messages alone.

use serde_json::json;

use super::*;

fn assistant(text: &str) -> Turn {
    Turn::Assistant { text: text.into(), calls: Vec::new() }
}

fn call(id: &str, signature: Option<Value>) -> ToolRequest {
    ToolRequest { id: id.into(), name: "f".into(), input: json!({}), signature, signed_by: None }
}

fn calling(text: &str, ids: &[&str]) -> Turn {
    Turn::Assistant { text: text.into(), calls: ids.iter().map(|id| call(id, None)).collect() }
}

fn outcome(id: &str, text: &str) -> Turn {
    Turn::Tool { call_id: id.into(), name: "f".into(), text: text.into(), is_error: false }
}

fn written(system: Option<&str>, turns: Vec<Turn>, refused: &[Parameter]) -> Value {
    let request = Request { system: system.map(str::to_owned), turns, ..Request::default() };
    let rules = LearnedRules { refused: refused.iter().copied().collect(), ..LearnedRules::default() };
    serde_json::to_value(messages(&request, &rules)).unwrap()
}

/// Checks the messages as `role: content`, and calls as their number after a `+`.
#[track_caller]
fn check(turns: Vec<Turn>, expected: &[&str]) {
    let messages = written(Some("s"), turns, &[]);
    let brief = |message: &Value| {
        let calls = message["tool_calls"].as_array().map_or(String::new(), |calls| format!(" +{}", calls.len()));
        let content = message["content"].as_str().map_or(message["content"].to_string(), str::to_owned);
        format!("{}: {content}{calls}", message["role"].as_str().unwrap())
    };
    let brief: Vec<String> = messages.as_array().unwrap().iter().skip(1).map(brief).collect();
    assert_eq!(brief, expected);
}

#[test]
fn roles_alternate_and_the_user_is_first_and_last() {
    let user = |text: &str| Turn::user(text);
    check(vec![user("a"), assistant("b"), user("c")], &["user: a", "assistant: b", "user: c"]);
    check(vec![user("failed"), user("a")], &["user: failed\n\na"]);
    check(vec![user("stopped"), assistant(" \n"), user("a")], &["user: stopped\n\na"]);
    check(vec![user("a"), assistant("b"), assistant("c"), user("d")], &["user: a", "assistant: b\n\nc", "user: d"]);
    check(vec![user("a"), user(" "), assistant("b")], &["user: a", "assistant: b", &format!("user: {CONTINUE}")]);
    check(vec![assistant("old"), user("a")], &[&format!("user: {EARLIER}"), "assistant: old", "user: a"]);
    check(Vec::new(), &[&format!("user: {CONTINUE}")]);
}

#[test]
fn a_line_stands_between_the_results_of_tools_and_the_user() {
    let line = format!("assistant: {RESULTS_READ}");
    check(
        vec![Turn::user("a"), calling("", &["1", "2"]), outcome("1", ""), outcome("2", "x"), Turn::user("shorter")],
        &["user: a", "assistant: null +2", &format!("tool: {NO_OUTPUT}"), "tool: x", &line, "user: shorter"],
    );
    check(
        vec![Turn::user("a"), assistant("Well."), calling("Look", &["1"]), outcome("1", "x")],
        &["user: a", "assistant: Well.\n\nLook +1", "tool: x"],
    );
}

#[test]
fn a_result_has_the_id_of_its_call() {
    let messages =
        written(None, vec![Turn::user("a"), calling("", &["call_1", "call_2"]), outcome("call_2", "x")], &[]);
    let ids = [0, 1].map(|n| messages[1]["tool_calls"][n]["id"].as_str().unwrap());
    assert_eq!(messages[2]["tool_call_id"], ids[1]);
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn what_the_model_wrote_for_itself_goes_back_unless_it_is_refused() {
    let extra = json!({"google": {"thought_signature": "c2ln"}});
    let details = json!([{"type": "reasoning.text", "text": "hm"}]);
    let signature = json!({"extra_content": extra, "reasoning_content": "hm", "reasoning_details": details});
    let turns = || {
        let calls = vec![call("1", Some(signature.clone())), call("2", None)];
        vec![Turn::user("a"), Turn::Assistant { text: String::new(), calls }, outcome("1", "x"), outcome("2", "y")]
    };
    let message = &written(None, turns(), &[])[1];
    assert_eq!((&message["reasoning_content"], &message["reasoning_details"]), (&json!("hm"), &details));
    assert_eq!(message["tool_calls"][0]["extra_content"], extra);
    assert_eq!(message["tool_calls"][1].get("extra_content"), None);
    let all = [Parameter::ReasoningContent, Parameter::ReasoningDetails, Parameter::ExtraContent];
    let mut fields: Vec<String> = written(None, turns(), &all)[1].as_object().unwrap().keys().cloned().collect();
    fields.sort();
    assert_eq!(fields, ["content", "role", "tool_calls"]);
}

#[test]
fn a_speaker_is_named_in_the_field_or_where_several_share_a_message_in_its_text() {
    let said = |name: &str, text: &str| Turn::user(text).spoken_by(Some(name));
    let alone = written(None, vec![said("ann", "a"), assistant("b"), said("bob", "c")], &[]);
    assert_eq!((&alone[0]["name"], &alone[0]["content"]), (&json!("ann"), &json!("a")));
    assert_eq!((&alone[2]["name"], &alone[2]["content"]), (&json!("bob"), &json!("c")));
    let together = written(None, vec![said("ann", "a"), said("bob", "c"), Turn::user("d"), said("bob", "e")], &[]);
    assert_eq!(
        (&together[0]["name"], &together[0]["content"]),
        (&Value::Null, &json!("ann: a\n\nbob: c\n\nd\n\nbob: e"))
    );
    let one = written(None, vec![said("ann", "a"), said("ann", "b")], &[]);
    assert_eq!((&one[0]["name"], &one[0]["content"]), (&json!("ann"), &json!("a\n\nb")));
    let refused = written(None, vec![said("ann", "a")], &[Parameter::Name]);
    assert_eq!((&refused[0]["name"], &refused[0]["content"]), (&Value::Null, &json!("ann: a")));
}
