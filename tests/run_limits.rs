//! The limits of a run. Some change the model's input, and the others end the run.

use serde_json::json;

use crate::{
    in_both_modes, in_either_mode,
    support::{Deployment, agent, fold, frames_of, of_kind, tools::ToolServer},
};

in_both_modes!(waiting_for_people_counts_for_no_limit);

in_either_mode!(
    at_the_limit_of_tool_calls_the_model_answers_with_what_it_has,
    in_the_last_step_there_are_no_tools,
    a_run_that_takes_too_long_fails_and_keeps_its_text,
    a_run_with_too_much_output_fails_and_keeps_its_text,
);

async fn at_the_limit_of_tool_calls_the_model_answers_with_what_it_has(mut deployment: Deployment) {
    let server = ToolServer::answering_at_once().await;
    let client = deployment.client();
    let more = json!({"limits": {"max_tool_calls": 2}});
    let agent_id = agent(&client, json!([server.describe()]), more).await;
    let one_by_one =
        frames_of(&client, &agent_id, "[tokens=2] [call=kb__count] [call=kb__count] [call=kb__count]").await;
    assert_eq!((server.effects(), of_kind(&one_by_one, "step.started").len()), (2, 3));
    let warning = of_kind(&one_by_one, "warning.raised")[0];
    assert_eq!(warning["code"], "limit_reached");
    assert!(warning["message"].as_str().unwrap().contains("max_tool_calls"), "{warning}");
    assert_eq!(one_by_one.last().unwrap().event, "run.completed");
    // Also within one step, the third call is not made.
    let at_once =
        frames_of(&client, &agent_id, "[tokens=2] [parallel] [call=kb__count] [call=kb__count] [call=kb__count]").await;
    assert_eq!(server.effects(), 4);
    assert_eq!(
        of_kind(&at_once, "tool_call.completed").iter().filter(|call| call["error"]["code"] == "limit_reached").count(),
        1
    );
    assert_eq!(at_once.last().unwrap().event, "run.completed");
}

async fn in_the_last_step_there_are_no_tools(mut deployment: Deployment) {
    let server = ToolServer::answering_at_once().await;
    let client = deployment.client();
    let agent_id = agent(&client, json!([server.describe()]), json!({"limits": {"max_steps": 2}})).await;
    let frames = frames_of(&client, &agent_id, "[tokens=2] [call=kb__count] [call=kb__count]").await;
    assert_eq!((server.effects(), of_kind(&frames, "step.started").len()), (1, 2));
    assert!(of_kind(&frames, "warning.raised")[0]["message"].as_str().unwrap().contains("max_steps"));
    assert_eq!(frames.last().unwrap().event, "run.completed");
}

async fn a_run_that_takes_too_long_fails_and_keeps_its_text(mut deployment: Deployment) {
    let client = deployment.client();
    let agent_id = agent(&client, json!([]), json!({"limits": {"max_duration_ms": 400}})).await;
    let frames = frames_of(&client, &agent_id, "[tokens=1000] [delay=20] hi").await;
    let last = &frames.last().unwrap().data;
    assert_eq!((last["type"].as_str(), last["error"]["code"].as_str()), (Some("run.failed"), Some("limit_exceeded")));
    assert!(last["error"]["message"].as_str().unwrap().contains("max_duration_ms"));
    let run = client.run(last["run_id"].as_str().unwrap()).await;
    assert_eq!(
        (run["output_message"]["content"].as_str(), run["output_message"]["status"].as_str()),
        (Some(fold(&frames).as_str()), Some("failed"))
    );
    assert!(!fold(&frames).is_empty());
}

async fn a_run_with_too_much_output_fails_and_keeps_its_text(mut deployment: Deployment) {
    let client = deployment.client();
    for (limit, most) in [("max_output_tokens", 9), ("max_total_tokens", 10)] {
        let mut limits = json!({});
        limits[limit] = json!(most);
        let agent_id = agent(&client, json!([]), json!({"limits": limits})).await;
        let within = frames_of(&client, &agent_id, "[tokens=9]").await;
        assert_eq!(within.last().unwrap().event, "run.completed", "{limit}: at its edge");
        let beyond = frames_of(&client, &agent_id, "[tokens=10]").await;
        let error = &beyond.last().unwrap().data["error"];
        assert_eq!(error["code"], "limit_exceeded");
        assert!(error["message"].as_str().unwrap().contains(limit), "{error}");
        let run = client.run(beyond[0].data["run_id"].as_str().unwrap()).await;
        assert_eq!(
            (&run["output_message"]["content"], &run["usage"]["output_tokens"]),
            (&json!(fold(&beyond)), &json!(10))
        );
    }
}

async fn waiting_for_people_counts_for_no_limit(deployment: Deployment) {
    // The approval stays open for longer than the run may take.
    let mut deployment = deployment.with("HOLDFAST_APPROVAL_TTL_MS", 2500);
    let client = deployment.client();
    let agent_id = agent(&client, json!([]), json!({"limits": {"max_duration_ms": 1500}})).await;
    let frames = frames_of(&client, &agent_id, "[tokens=1] [approval]").await;
    assert_eq!(of_kind(&frames, "approval.resolved")[0]["decision"], "expired");
    assert_eq!(frames.last().unwrap().event, "run.completed");
}
