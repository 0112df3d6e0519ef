//! The reason for which a model ended its answer, on all routes that show an answer.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{BlockStream, Deployment, of_kind},
};

in_both_modes!(a_truncated_answer_says_so_everywhere);

in_either_mode!(
    a_step_of_tool_calls_and_the_answer_after_it_end_for_their_own_reasons,
    an_answer_that_broke_off_has_no_reason,
);

async fn a_truncated_answer_says_so_everywhere(mut deployment: Deployment) {
    let client = deployment.client();
    let question =
        json!({"id": "m1", "role": "user", "parts": [{"type": "text", "text": "[tokens=2] [finish=length]"}]});
    let request = client.request(Method::POST, "/api/chat").json(&json!({"id": "c", "message": question}));
    let stream = BlockStream::of(request.send().await.unwrap());
    let run_id = stream.run_id.clone();
    let blocks = stream.rest().await;
    let finish = blocks[blocks.len() - 2].json();
    assert_eq!((&finish["type"], &finish["finishReason"]), (&json!("finish"), &json!("length")));
    assert_eq!(finish["messageMetadata"]["finish_reason"], "length");

    let run = client.wait_for_run(&run_id).await;
    assert_eq!((&run["status"], &run["finish_reason"]), (&json!("completed"), &json!("length")));
    assert_eq!(run["output_message"]["finish_reason"], "length");
    let frames = client.events(&run_id, None).await.rest().await;
    assert_eq!(of_kind(&frames, "step.completed")[0]["finish_reason"], "length");
    assert_eq!(of_kind(&frames, "message.completed")[0]["message"]["finish_reason"], "length");
    assert_eq!(of_kind(&frames, "run.completed")[0]["finish_reason"], "length");
    let conversation = run["conversation_id"].as_str().unwrap();
    let messages = client.get(&format!("/v1/conversations/{conversation}/messages")).await.unwrap();
    assert_eq!(
        (&messages["items"][0]["finish_reason"], &messages["items"][1]["finish_reason"]),
        (&Value::Null, &json!("length"))
    );
    let history = client.get("/api/chat/c/messages").await.unwrap();
    assert_eq!(history[1]["metadata"]["finish_reason"], "length");
    let snapshot = client.get(&format!("/v1/runs/{run_id}/wait?timeout_ms=1")).await.unwrap();
    assert_eq!(snapshot["finish_reason"], "length");
}

async fn a_step_of_tool_calls_and_the_answer_after_it_end_for_their_own_reasons(mut deployment: Deployment) {
    let client = deployment.client();
    let input = "[call=scripted__echo {\"text\":\"hi\"}] [tokens=1] [finish=content_filter]";
    let frames = client.stream(input).await.rest().await;
    let reasons: Vec<&Value> = of_kind(&frames, "step.completed").iter().map(|step| &step["finish_reason"]).collect();
    assert_eq!(reasons, [&json!("tool_calls"), &json!("content_filter")]);
    assert_eq!(of_kind(&frames, "run.completed")[0]["finish_reason"], "content_filter");
}

async fn an_answer_that_broke_off_has_no_reason(mut deployment: Deployment) {
    let client = deployment.client();
    let input = "[call=scripted__echo {\"text\":\"hi\"}] [tokens=4] [fail]";
    let submission = client.start(input).await;
    let run = client.wait_for_run(submission["run"]["id"].as_str().unwrap()).await;
    assert_eq!((&run["status"], &run["finish_reason"]), (&json!("failed"), &Value::Null));
    assert_eq!(run["output_message"]["finish_reason"], Value::Null);
}
