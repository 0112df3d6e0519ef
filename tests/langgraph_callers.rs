//! Programs of others that have this server as a part of theirs: AG-UI's agent for LangGraph's server, and graphs with a remote node.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    files::asking,
    in_either_mode,
    langgraph::{body, json_of, post},
    support::{BlockStream, ClientProgram, Deployment, StreamBlock, upstream::TestUpstream},
};

in_either_mode!(
    ag_uis_agent_streams_calls_and_answers,
    each_part_of_a_message_has_a_last_piece,
    a_remote_graph_answers_after_other_nodes,
    a_list_without_a_question_is_refused,
);

async fn ag_uis_agent_streams_calls_and_answers(deployment: Deployment) {
    let mut deployment = deployment.own();
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

async fn a_remote_graph_answers_after_other_nodes(deployment: Deployment) {
    let deployment = deployment.own();
    let upstream = TestUpstream::start(&["Aye."]).await;
    let mut deployment = asking(deployment, &upstream);
    let client = deployment.client();
    let program = ClientProgram::start("langgraph-python", client.base(), json!({"graph": true})).await;
    let (_, results) = program.rest().await;
    assert_eq!(results["node"], json!(["one", "Draft 1.", "Aye.", "two", "Draft 4.", "Aye."]));
    assert_eq!(results["handoff"], json!([["one", "Aye."], ["one", "Aye.", "two", "Aye."]]));
    let read: Vec<String> = upstream.requests().iter().map(|request| request["messages"].to_string()).collect();
    assert_eq!(read.len(), 4);
    assert!(read[0].contains("one") && read[0].contains("Draft 1."), "{}", read[0]);
    assert!(read[1].contains("one") && read[1].contains("Draft 4."), "{}", read[1]);
    for request in &read[2..] {
        assert!(request.contains(r#"transfer {\"to\":\"expert\"}: Transferred."#), "{request}");
    }
    assert!(read[3].contains("one") && read[3].contains("Aye.") && read[3].contains("two"), "{}", read[3]);
}

async fn a_list_without_a_question_is_refused(mut deployment: Deployment) {
    let client = deployment.client();
    let wait = async |thread: &str, messages: Value| {
        let input = json!({"assistant_id": "agent", "input": {"messages": messages}, "if_not_exists": "create"});
        let request = client.request(Method::POST, &format!("/langgraph/threads/{thread}/runs/wait"));
        request.json(&input).send().await.unwrap().status().as_u16()
    };
    let result = json!({"type": "tool", "tool_call_id": "c1", "content": "x"});
    assert_eq!(wait("t", json!([{"type": "ai", "content": "A draft."}])).await, 409);
    assert_eq!(wait("t", json!([result])).await, 404);
    // A late result stays one: its question is known.
    let asked = json!({"type": "human", "content": "[tokens=1] x", "id": "q"});
    json_of(post(
        &client,
        "/threads/t/runs/wait",
        &json!({"assistant_id": "agent", "input": {"messages": [asked]}, "if_not_exists": "create"}),
    ))
    .await;
    assert_eq!(wait("t", json!([asked, result])).await, 409);
}
