//! Tools of third-party servers and of hostile servers.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use test_servers::{Postgres, mcp};

use crate::{
    in_both_modes, in_either_mode,
    support::{
        Client, Deployment, Embedded, EventFrame, EventStream, ScaledOut, agent, fold, frames_of, of_kind, stream_of,
        tools::ToolServer, until,
    },
};

in_both_modes!(a_step_with_tools_is_streamed_event_by_event, a_cancel_ends_a_call_under_way,);

in_either_mode!(
    without_streaming_only_the_pieces_are_missing,
    an_unknown_tool_is_an_outcome,
    arguments_that_break_the_schema_are_an_outcome_that_names_the_path,
    a_hanging_server_times_out_and_the_run_continues,
    a_server_that_is_down_costs_its_tools_and_not_the_run,
    an_error_of_a_server_is_in_the_log_once_with_the_run,
    at_most_three_tools_are_called_at_the_same_time,
    a_long_result_is_truncated_for_the_model_and_complete_in_the_trace,
    a_built_in_tool_has_a_time_limit_too,
    a_stream_of_messages_has_only_messages_and_the_end,
    a_hundred_megabytes_of_output_are_an_outcome,
    an_answer_of_many_small_values_is_an_outcome,
);

fn outputs(frames: &[EventFrame]) -> Vec<&str> {
    of_kind(frames, "tool_call.completed").iter().map(|call| call["output"].as_str().unwrap_or("")).collect()
}

/// Returns the definition of a stdio server with this command.
fn stdio(name: &str, command: Vec<String>) -> Value {
    json!({"name": name, "transport": "stdio", "command": command[0], "args": command[1..]})
}

async fn a_step_with_tools_is_streamed_event_by_event(mut deployment: Deployment) {
    let server = ToolServer::answering_at_once().await;
    let client = deployment.client();
    let agent_id = agent(&client, json!([server.describe()]), json!({})).await;
    let frames = frames_of(&client, &agent_id, "[tokens=2] [call=kb__count {\"note\":\"n\"}]").await;
    let mut kinds: Vec<&str> = frames.iter().map(|frame| frame.event.as_str()).collect();
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "run.queued",
            "attempt.started",
            "context.usage",
            "step.started",
            "message.delta",
            "tool_call.delta",
            "tool_call.started",
            "tool_call.completed",
            "step.completed",
            "step.started",
            "message.delta",
            "step.completed",
            "message.completed",
            "run.completed"
        ]
    );
    let (start_event, end_event) =
        (of_kind(&frames, "tool_call.started")[0], of_kind(&frames, "tool_call.completed")[0]);
    assert_eq!((start_event["name"].as_str(), &start_event["input"]), (Some("kb__count"), &json!({"note": "n"})));
    assert_eq!((&end_event["call_id"], end_event["output"].as_str()), (&start_event["call_id"], Some("counted")));
    let text_written: String =
        of_kind(&frames, "tool_call.delta").iter().map(|delta| delta["text"].as_str().unwrap()).collect();
    assert_eq!(serde_json::from_str::<Value>(&text_written).unwrap(), start_event["input"]);
    let run = client.run(frames[0].data["run_id"].as_str().unwrap()).await;
    assert_eq!(run["output_message"]["content"], fold(&frames));
    let steps: u64 =
        of_kind(&frames, "step.completed").iter().map(|step| step["usage"]["output_tokens"].as_u64().unwrap()).sum();
    assert_eq!(run["usage"]["output_tokens"], steps);
    assert_eq!(&run["usage"], &frames.last().unwrap().data["usage"]);
    assert_eq!(server.effects(), 1);
}

async fn without_streaming_only_the_pieces_are_missing(mut deployment: Deployment) {
    let client = deployment.client();
    let input = "[tokens=3] [think] [call=scripted__echo {\"text\":\"a\"}]";
    let all = client.stream(input).await.rest().await;
    let request = client.request(Method::POST, "/v1/runs").header("accept", "text/event-stream");
    let body = json!({"input": input, "stream": false});
    let quiet = EventStream::new(request.json(&body).send().await.unwrap()).rest().await;
    let kinds = |frames: &[EventFrame]| frames.iter().map(|frame| frame.event.clone()).collect::<Vec<_>>();
    let expected: Vec<String> = kinds(&all).into_iter().filter(|kind| !kind.ends_with(".delta")).collect();
    assert_eq!(kinds(&quiet), expected);
    let content = |frames: &[EventFrame]| of_kind(frames, "message.completed")[0]["message"]["content"].clone();
    assert_eq!(content(&quiet), content(&all));
    assert_eq!(content(&all), fold(&all));
}

async fn an_unknown_tool_is_an_outcome(mut deployment: Deployment) {
    let client = deployment.client();
    let frames = client.stream("[tokens=1] [call=nobody__knows {}]").await.rest().await;
    let error = &of_kind(&frames, "tool_call.completed")[0]["error"];
    assert_eq!(error["code"], "unknown_tool");
    assert!(error["message"].as_str().unwrap().contains("scripted__echo"), "{error}");
    assert_eq!(frames.last().unwrap().event, "run.completed");
}

async fn arguments_that_break_the_schema_are_an_outcome_that_names_the_path(mut deployment: Deployment) {
    let client = deployment.client();
    // Every parser accepts this depth, but the wrapped value is too deep.
    let deep = format!("{{\"text\": {}1{}}}", "[".repeat(120), "]".repeat(120));
    let cases = [("{\"text\": 5}", "/text"), ("{}", "text"), ("not json", "no JSON object"), (&deep, "no JSON object")];
    for (arguments, part) in cases {
        let frames = client.stream(&format!("[tokens=1] [call=scripted__echo {arguments}]")).await.rest().await;
        let error = &of_kind(&frames, "tool_call.completed")[0]["error"];
        assert_eq!(error["code"], "invalid_arguments", "{arguments}");
        assert_eq!(frames.last().unwrap().event, "run.completed");
        assert!(error["message"].as_str().unwrap().contains(part), "{error}");
        assert!(of_kind(&frames, "tool_call.started").is_empty(), "it was called");
    }
}

async fn a_hanging_server_times_out_and_the_run_continues(mut deployment: Deployment) {
    let mut server = ToolServer::start().await;
    let client = deployment.client();
    let mut description = server.describe();
    description["timeout_ms"] = json!(200);
    let agent_id = agent(&client, json!([description]), json!({})).await;
    let mut stream = stream_of(&client, &agent_id, "[tokens=2] [call=kb__count]").await;
    let hanging = server.arrival().await;
    let frames = stream.up_to("tool_call.completed").await;
    let error = &frames.last().unwrap().data["error"];
    assert_eq!(error["code"], "timeout");
    assert!(error["message"].as_str().unwrap().contains("may"), "{error}");
    assert_eq!(stream.rest().await.last().unwrap().event, "run.completed");
    drop(hanging);
}

async fn a_server_that_is_down_costs_its_tools_and_not_the_run(deployment: Deployment) {
    let mut deployment = deployment.own();
    let server = ToolServer::answering_at_once().await;
    let client = deployment.client();
    let down = json!({"name": "down", "transport": "http", "url": format!("http://127.0.0.1:{}/mcp", test_servers::free_port())});
    let agent_id = agent(&client, json!([down, server.describe()]), json!({})).await;
    let frames = frames_of(&client, &agent_id, "[tokens=1] [call=down__tool] [call=kb__count]").await;
    let warning = of_kind(&frames, "warning.raised")[0];
    assert_eq!(warning["code"], "mcp_server_unavailable");
    assert_eq!(warning["message"], "The tools of down cannot be used now: it could not be reached.");
    let run_id = frames[0].data["run_id"].as_str().unwrap();
    let has_address = |line: &str| line.contains("http://127.0.0.1:") && line.contains(run_id);
    let look = || std::future::ready(deployment.log().lines().any(has_address).then_some(()));
    until("the log has the address", look).await;
    let calls = of_kind(&frames, "tool_call.completed");
    assert_eq!(
        (calls[0]["error"]["code"].as_str(), calls[1]["output"].as_str()),
        (Some("tool_unavailable"), Some("counted"))
    );
    assert_eq!(frames.last().unwrap().event, "run.completed");
}

async fn an_error_of_a_server_is_in_the_log_once_with_the_run(deployment: Deployment) {
    let mut deployment = deployment.own();
    let mut server = ToolServer::start().await;
    let client = deployment.client();
    let agent_id = agent(&client, json!([server.describe()]), json!({})).await;
    let stream = stream_of(&client, &agent_id, "[tokens=1] [call=kb__count]").await;
    let run_id = stream.run_id.clone();
    server.arrival().await.refuse(-32_050, "no route to 10.1.2.3");
    let frames = stream.rest().await;
    let error = &of_kind(&frames, "tool_call.completed")[0]["error"];
    let error_text = "tool count of MCP server kb: error -32050: no route to 10.1.2.3";
    assert_eq!(error, &json!({"code": "mcp_error", "message": error_text}));
    let error_text = "error -32050: no route to 10.1.2.3";
    let look = || std::future::ready(Some(deployment.log()).filter(|log| log.contains(error_text)));
    let log = until("the log has the error", look).await;
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(error_text)).collect();
    let [line] = lines[..] else { panic!("it is there {} times: {log}", lines.len()) };
    assert!(line.contains(run_id.as_str()) && line.contains("tool.name=\"count\""), "{line}");
}

async fn at_most_three_tools_are_called_at_the_same_time(mut deployment: Deployment) {
    let mut server = ToolServer::start().await;
    let client = deployment.client();
    let agent_id = agent(&client, json!([server.describe()]), json!({})).await;
    let calls: String = (0..5).map(|note| format!("[call=kb__count {{\"note\":\"{note}\"}}] ")).collect();
    let mut stream = stream_of(&client, &agent_id, &format!("[tokens=1] [parallel] {calls}")).await;
    let mut waiting = Vec::new();
    for _ in 0..3 {
        waiting.push(server.arrival().await);
    }
    let mut seen_frames = stream.up_to_nth("tool_call.started", 3).await;
    // The fourth call starts when one of the three has ended.
    assert!(!server.has_arrivals());
    waiting.remove(1).answer("first to end");
    seen_frames.extend(stream.up_to("tool_call.completed").await);
    assert_eq!(of_kind(&seen_frames, "tool_call.started").len(), 3);
    waiting.push(server.arrival().await);
    waiting.drain(..).for_each(|call| call.answer("later"));
    server.arrival().await.answer("last");
    seen_frames.extend(stream.rest().await);
    assert_eq!(outputs(&seen_frames).len(), 5);
    assert_eq!(seen_frames.last().unwrap().event, "run.completed");
}

async fn a_long_result_is_truncated_for_the_model_and_complete_in_the_trace(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_TOOL_RESULT_CHARS", 4000).with("HOLDFAST_CONTEXT_TOKENS", 90_000);
    let mut server = ToolServer::start().await;
    let client = deployment.client();
    let agent_id = agent(&client, json!([server.describe()]), json!({})).await;
    let stream = stream_of(&client, &agent_id, "[tokens=1] [parallel] [call=kb__count] [call=kb__look]").await;
    let run_id = stream.run_id.clone();
    let (one, other) = (server.arrival().await, server.arrival().await);
    one.answer(&"é".repeat(4001));
    other.answer(&"x".repeat(300_000));
    let frames = stream.rest().await;
    assert_eq!(frames.last().unwrap().event, "run.completed");
    let calls = client.get(&format!("/v1/runs/{run_id}/tool_calls")).await.unwrap();
    let mut lengths: Vec<usize> =
        calls["items"].as_array().unwrap().iter().map(|call| call["output"].as_str().unwrap().len()).collect();
    lengths.sort_unstable();
    assert_eq!(lengths[0], 8002, "the full result");
    assert!((262_144..262_244).contains(&lengths[1]), "256 KiB and a mark, not {}", lengths[1]);
    let trace = client.get(&format!("/v1/runs/{run_id}/messages")).await.unwrap();
    for message in trace["items"].as_array().unwrap().iter().filter(|message| message["role"] == "tool") {
        let text = message["content"].as_str().unwrap();
        let (head, rest) = text.split_once("\n[cut: ").unwrap();
        let (_, tail) = rest.split_once(" reads on]\n").unwrap();
        assert_eq!((head.chars().count(), tail.chars().count()), (3000, 1000), "{rest}");
    }
}

async fn a_cancel_ends_a_call_under_way(mut deployment: Deployment) {
    let mut server = ToolServer::start().await;
    let client = deployment.client();
    let agent_id = agent(&client, json!([server.describe()]), json!({})).await;
    let stream = stream_of(&client, &agent_id, "[tokens=1] [call=kb__count]").await;
    let hanging = server.arrival().await;
    let since = Instant::now();
    client.cancel(&stream.run_id).await;
    let run_id = stream.run_id.clone();
    assert_eq!(stream.rest().await.last().unwrap().event, "run.cancelled");
    assert!(since.elapsed() < Duration::from_secs(2), "it took {:?}", since.elapsed());
    let calls = client.get(&format!("/v1/runs/{run_id}/tool_calls")).await.unwrap();
    assert_eq!(calls["items"][0]["status"], "abandoned");
    drop(hanging);
}

async fn a_built_in_tool_has_a_time_limit_too(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_TOOL_TIMEOUT_MS", 100);
    let client = deployment.client();
    let calls =
        "[tokens=1] [call=scripted__echo {\"text\":\"a\"}] [call=scripted__echo {\"text\":\"b\",\"delay_ms\":60000}]";
    let frames = client.stream(calls).await.rest().await;
    let end_event = of_kind(&frames, "tool_call.completed");
    assert_eq!((end_event[0]["output"].as_str(), end_event[1]["error"]["code"].as_str()), (Some("a"), Some("timeout")));
    assert_eq!(frames.last().unwrap().event, "run.completed");
}

async fn a_stream_of_messages_has_only_messages_and_the_end(mut deployment: Deployment) {
    let client = deployment.client();
    let agent_id = agent(&client, json!([]), json!({"stream_mode": "messages"})).await;
    let input = "[tokens=3] [call=scripted__echo {\"text\":\"a\"}]";
    let kinds = |frames: &[EventFrame]| frames.iter().map(|frame| frame.event.clone()).collect::<Vec<_>>();
    let by_the_agent = frames_of(&client, &agent_id, input).await;
    assert_eq!(kinds(&by_the_agent), ["message.completed", "run.completed"]);
    let run_id = by_the_agent[0].data["run_id"].as_str().unwrap();
    let get = async |query: &str| {
        let request = client.request(Method::GET, &format!("/v1/runs/{run_id}/events{query}"));
        EventStream::new(request.send().await.unwrap()).rest().await
    };
    assert_eq!(get("").await, by_the_agent, "the agent's mode also holds for later clients");
    let by_query = get("?stream_mode=events").await;
    assert_eq!(by_query[by_query.len() - 2..], by_the_agent, "the frames are the same in both");
    assert_eq!(kinds(&by_query)[..2], ["run.queued", "attempt.started"]);
    let request = client.request(Method::POST, "/v1/runs?stream_mode=messages").header("accept", "text/event-stream");
    let plain = EventStream::new(request.json(&json!({"input": "[tokens=3]"})).send().await.unwrap()).rest().await;
    assert_eq!(kinds(&plain), ["message.completed", "run.completed"]);
}

async fn a_hundred_megabytes_of_output_are_an_outcome(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_MCP_STDIO", true).with("HOLDFAST_MCP_TIMEOUT_MS", 3000);
    let client = deployment.client();
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(folder.path().join("zeros")).unwrap();
    file.set_len(100 << 20).unwrap();
    let agent_id = agent(&client, json!([stdio("files", mcp::filesystem(folder.path()))]), json!({})).await;
    let path = folder.path().join("zeros");
    let frames =
        frames_of(&client, &agent_id, &format!("[tokens=1] [call=files__read_text_file {{\"path\":{path:?}}}]")).await;
    let error = &of_kind(&frames, "tool_call.completed")[0]["error"];
    assert!(["answer_too_large", "timeout", "connection_lost"].contains(&error["code"].as_str().unwrap()), "{error}");
    assert_eq!(frames.last().unwrap().event, "run.completed");
}

async fn an_answer_of_many_small_values_is_an_outcome(mut deployment: Deployment) {
    let client = deployment.client();
    let server = ToolServer::returning(json!(vec![0; 100_000])).await;
    let agent_id = agent(&client, json!([server.describe()]), json!({})).await;
    let frames = frames_of(&client, &agent_id, "[tokens=1] [call=kb__count {}]").await;
    let error = &of_kind(&frames, "tool_call.completed")[0]["error"];
    assert_eq!(error["code"], "answer_too_large", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.ends_with("was called, but the answer has more than 100000 values"), "{message}");
    assert_eq!(frames.last().unwrap().event, "run.completed");
}

/// Calls tools of third-party servers over both transports.
async fn real_servers(client: &Client, everything: &mcp::Everything) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "kept in a file").unwrap();
    let servers = json!([
        {"name": "all", "transport": "http", "url": everything.url()},
        stdio("every", mcp::everything()),
        stdio("files", mcp::filesystem(folder.path())),
        stdio("clock", mcp::time()),
    ]);
    let agent_id = agent(client, servers, json!({})).await;
    let path = folder.path().join("a.txt");
    let input = format!(
        "[tokens=1] [call=all__echo {{\"message\":\"one\"}}] [call=every__get-sum {{\"a\":2,\"b\":3}}] \
         [call=files__read_text_file {{\"path\":{path:?}}}] [call=clock__get_current_time {{\"timezone\":\"Europe/Berlin\"}}]"
    );
    let frames = frames_of(client, &agent_id, &input).await;
    let outputs = outputs(&frames);
    for (output, part) in outputs.iter().zip(["one", "5", "kept in a file", "Europe/Berlin"]) {
        assert!(output.contains(part), "{output:?} lacks {part:?}");
    }
    assert_eq!((outputs.len(), frames.last().unwrap().event.as_str()), (4, "run.completed"));
}

#[tokio::test]
async fn embedded_an_agent_uses_third_party_servers() {
    let everything = mcp::Everything::start();
    let embedded = Embedded::new().with("HOLDFAST_MCP_STDIO", true).with("HOLDFAST_MCP_CONNECT_MS", 60_000);
    real_servers(&embedded.start().client(), &everything).await;
}

#[tokio::test]
async fn scaled_out_an_agent_uses_third_party_servers() {
    let everything = mcp::Everything::start();
    let scaled = ScaledOut::new().with("HOLDFAST_MCP_STDIO", true).with("HOLDFAST_MCP_CONNECT_MS", 60_000);
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    real_servers(&api.client(), &everything).await;
}

#[tokio::test]
async fn tools_with_effects_wait_for_the_database_and_others_do_not() {
    let mut postgres = Postgres::start();
    let database = postgres.create_database();
    let scaled = ScaledOut::on(database.url().to_owned(), None).with("HOLDFAST_LEASE_MS", 15_000);
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let mut server = ToolServer::start().await;
    let more = json!({"tools": {"kb__look": {"effect": "read_only"}}});
    let agent_id = agent(&client, json!([server.describe()]), more).await;
    let mut stream = stream_of(&client, &agent_id, "[tokens=3] [delay=300] [call=kb__look] [call=kb__count]").await;
    let mut frames = stream.up_to("message.delta").await;
    postgres.stop();
    // A read-only call continues; its outcome is only in memory.
    server.arrival().await.answer("seen");
    let warnings = |frames: &[EventFrame]| of_kind(frames, "warning.raised").len();
    while of_kind(&frames, "tool_call.started").len() < 2 || warnings(&frames) == 0 {
        frames.push(stream.next().await.unwrap().unwrap());
    }
    assert!(!server.has_arrivals(), "a call without a committed intent was made");
    postgres.restart();
    server.arrival().await.answer("counted");
    frames.extend(stream.rest().await);
    assert_eq!((warnings(&frames), frames.last().unwrap().event.as_str()), (1, "run.completed"));
    // The database has everything after it is back.
    let run_id = frames[0].data["run_id"].as_str().unwrap();
    let calls = client.get(&format!("/v1/runs/{run_id}/tool_calls")).await.unwrap();
    assert!(calls["items"].as_array().unwrap().iter().all(|call| call["by"] == "worker"));
    let outputs: Vec<&str> =
        calls["items"].as_array().unwrap().iter().map(|call| call["output"].as_str().unwrap()).collect();
    assert_eq!(outputs, ["seen", "counted"]);
    assert_eq!(client.get(&format!("/v1/runs/{run_id}/messages")).await.unwrap()["items"].as_array().unwrap().len(), 6);
    assert_eq!(client.events(run_id, None).await.rest().await, frames);
}
