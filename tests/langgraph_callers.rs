//! Programs of others that have this server as a part of theirs: AG-UI's agent for LangGraph's server.

use serde_json::{Value, json};

use crate::{
    in_either_mode,
    langgraph::{body, post},
    support::{BlockStream, ClientProgram, Deployment, StreamBlock},
};

in_either_mode!(
    ag_uis_agent_streams_calls_and_answers,
    each_part_of_a_message_has_a_last_piece,
);

async fn ag_uis_agent_streams_calls_and_answers(mut deployment: Deployment) {
    let client = deployment.client();
    let steps = json!([
        {"say": "[tokens=5] hello"}, {"say": r#"[call=scripted__echo {"text":"hi"}] [tokens=3] call"#},
        {"say": "[approval] [tokens=3] do it"}, {"resume": {"approved": true}},
    ]);
    let program = ClientProgram::start("ag-ui-langgraph", client.base(), json!({"steps": steps})).await;
    let (reports, messages) = program.rest().await;
    assert!(reports.iter().all(|report| report["failed"].is_null()), "{reports:?}");
    let count = |kind: &str| reports.iter().filter(|report| report["type"] == kind).count();
    assert!(count("TEXT_MESSAGE_CONTENT") > count("TEXT_MESSAGE_START"), "the texts stream");
    for part in ["TEXT_MESSAGE", "TOOL_CALL"] {
        let begun = count(&format!("{part}_START"));
        assert!(begun > 1 && begun == count(&format!("{part}_END")), "{part}: {begun}");
    }
    let arguments = reports.iter().filter(|report| report["type"] == "TOOL_CALL_ARGS");
    let arguments: String = arguments.map(|report| report["delta"].as_str().unwrap()).collect();
    assert!(arguments.starts_with(r#"{"text":"hi"}"#), "{arguments}");
    let asked = |report: &&Value| report["type"] == "CUSTOM" && report["name"] == "on_interrupt";
    assert_eq!(reports.iter().filter(asked).count(), 1);
    let all = messages.as_array().unwrap();
    let questions = all.iter().filter(|message| message["role"] == "user").count();
    assert_eq!(questions, 3);
    let answers = all.iter().filter(|message| message["role"] == "assistant");
    let texts: String = answers.filter_map(|message| message["content"].as_str()).collect();
    assert!(texts.contains("done: send the report"), "{texts}");
}

async fn each_part_of_a_message_has_a_last_piece(mut deployment: Deployment) {
    let client = deployment.client();
    let request = post(&client, "/threads/t/runs/stream", &body(r#"[call=scripted__echo {"text":"hi"}] [tokens=3] x"#));
    let frames = BlockStream::open(request).await.rest().await;
    let pieces = frames.iter().filter(|frame| frame.event.as_deref() == Some("messages")).map(StreamBlock::json);
    let pieces: Vec<Value> = pieces.map(|data| data[0].clone()).filter(|piece| piece["type"] != "tool").collect();
    let calls: Vec<&Value> = pieces.iter().map(|piece| &piece["tool_call_chunks"][0]).collect();
    let named: Vec<&&Value> = calls.iter().filter(|call| call["name"].is_string()).collect();
    assert_eq!((named.len(), &named[0]["args"]), (1, &json!("")), "the piece with a name has no arguments");
    let arguments: String = calls.iter().filter_map(|call| call["args"].as_str()).collect();
    assert_eq!(arguments, r#"{"text":"hi"}"#);
    let is_last = |piece: &Value| piece["response_metadata"]["finish_reason"] == "stop";
    for piece in pieces.iter().filter(|piece| is_last(piece)) {
        assert_eq!((&piece["content"], &piece["tool_call_chunks"]), (&json!(""), &json!([])));
    }
    let mut ids: Vec<&Value> = pieces.iter().map(|piece| &piece["id"]).collect();
    ids.dedup();
    for id in ids {
        let last = pieces.iter().rfind(|piece| piece["id"] == *id).unwrap();
        assert!(is_last(last), "{last}");
    }
}
