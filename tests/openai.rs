//! OpenAI's wire: its own clients, and requests one by one.

mod agents;
mod choices;
mod continuing;
mod disconnects;
mod pictures;
mod refusals;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{BlockStream, Client, ClientProgram, Deployment, StreamBlock, until},
};

in_both_modes!(
    a_response_continues_after_each_of_its_events,
    a_function_is_called_and_its_output_continues_the_run,
    an_approval_is_an_item_and_its_answer_another_response,
    a_lost_worker_leaves_no_text_of_its_own,
);
in_either_mode!(
    a_completion_has_the_history_of_its_request,
    a_completion_calls_the_functions_of_its_request,
    a_response_in_the_background_is_polled_and_cancelled,
    a_response_continues_an_earlier_one,
    a_response_repeats_the_fields_of_its_request,
    each_response_has_its_own_tokens,
    single_items_of_a_conversation_are_read,
    items_are_added_to_a_conversation,
    items_of_this_server_name_their_conversation,
    an_answer_has_the_schema_of_its_request,
    a_model_is_an_agent_or_a_profile,
    conversations_are_those_of_the_native_api,
    hidden_conversations_are_in_no_list,
    errors_have_the_form_of_the_protocol,
    responses_of_others_do_not_exist,
    a_request_has_the_results_of_all_calls,
    a_repeated_answer_gets_the_same_response,
    a_continued_conversation_takes_messages_of_the_user_only,
    a_cursor_beyond_the_end_gets_the_end,
    the_client_for_node_streams_and_answers,
    the_client_for_python_streams_and_answers,
    agent_frameworks_get_the_calls_that_they_demand,
);

const TALK: &str = r#"[think] [call=scripted__echo {"text":"hi"}] [tokens=12] hello"#;

async fn call(request: RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, response.json().await.unwrap())
}

fn create(client: &Client, body: &Value) -> RequestBuilder {
    client.request(Method::POST, "/openai/v1/responses").json(body)
}

fn completion(client: &Client, body: &Value) -> RequestBuilder {
    client.request(Method::POST, "/openai/v1/chat/completions").json(body)
}

async fn created(client: &Client, body: &Value) -> Value {
    let (status, response) = call(create(client, body)).await;
    assert_eq!(status, 200, "{response}");
    response
}

fn get(client: &Client, path: &str) -> RequestBuilder {
    client.request(Method::GET, &format!("/openai/v1{path}"))
}

async fn events(request: RequestBuilder) -> Vec<Value> {
    let frames = BlockStream::open(request).await.rest().await;
    frames.iter().map(StreamBlock::json).collect()
}

/// Returns the texts of a response's messages.
fn text(response: &Value) -> String {
    let messages = response["output"].as_array().unwrap().iter().filter(|item| item["type"] == "message");
    messages.map(|message| message["content"][0]["text"].as_str().unwrap()).collect()
}

/// Checks the rules of the client's strict accumulator: items and numbers are appended, and each item that begins ends.
fn expect_in_order(events: &[Value]) {
    let (mut next, mut open) = (0, Vec::new());
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number, "{event}");
        match event["type"].as_str().unwrap() {
            "response.output_item.added" => {
                assert_eq!(event["output_index"], next);
                next += 1;
                open.push(event["item"]["id"].clone());
            }
            "response.output_item.done" => {
                let id = &event["item"]["id"];
                open.retain(|item| item != id);
            }
            "response.completed" => assert_eq!(open, Vec::<Value>::new(), "an item has no end"),
            _ => {}
        }
    }
}

async fn a_response_continues_after_each_of_its_events(mut deployment: Deployment) {
    let client = deployment.client();
    let all = events(create(&client, &json!({"input": TALK, "stream": true}))).await;
    expect_in_order(&all);
    let kinds: Vec<&str> = all.iter().map(|event| event["type"].as_str().unwrap()).collect();
    for kind in ["response.reasoning_summary_text.delta", "response.mcp_call.completed", "response.output_text.delta"] {
        assert!(kinds.contains(&kind), "{kind} is missing: {kinds:?}");
    }
    let end = &all.last().unwrap()["response"];
    assert_eq!((&end["status"], text(end).is_empty()), (&json!("completed"), false), "{end}");
    let id = end["id"].as_str().unwrap();
    for n in 0..all.len() {
        let path = format!("/responses/{id}?stream=true&starting_after={n}");
        assert_eq!(events(get(&client, &path)).await, all[n + 1..], "after {n}");
    }
    let frames = BlockStream::open(get(&client, &format!("/responses/{id}?stream=true"))).await.rest().await;
    for (n, frame) in frames.iter().enumerate() {
        let request = get(&client, &format!("/responses/{id}?stream=true"));
        let request = request.header("last-event-id", frame.id.as_ref().unwrap());
        assert_eq!(events(request).await, all[n + 1..], "after the frame {:?}", frame.id);
    }
    let (_, whole) = call(get(&client, &format!("/responses/{id}"))).await;
    assert_eq!(&whole, end, "the stored response is the streamed one");
    let input = "[tokens=3] [fail] hello";
    let failed = events(create(&client, &json!({"input": input, "stream": true}))).await;
    assert_eq!(failed.last().unwrap()["type"], "response.failed");
}

const COLOUR: &str = "[clienttool=Which colour?] [tokens=3] x";

fn functions() -> Value {
    json!([{"type": "function", "name": "ask", "description": "Asks.", "parameters": {"type": "object"}}])
}

async fn a_function_is_called_and_its_output_continues_the_run(mut deployment: Deployment) {
    let client = deployment.client();
    let first = events(create(&client, &json!({"input": COLOUR, "tools": functions(), "stream": true}))).await;
    expect_in_order(&first);
    let response = &first.last().unwrap()["response"];
    let function_call = response["output"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&function_call["type"], &function_call["name"]), (&json!("function_call"), &json!("ask")));
    let output = json!({"type": "function_call_output", "call_id": function_call["call_id"], "output": "teal"});
    let body = json!({"input": [output], "previous_response_id": response["id"], "tools": functions(), "stream": true});
    let second = events(create(&client, &body)).await;
    expect_in_order(&second);
    let answer = &second.last().unwrap()["response"];
    assert_eq!((&answer["status"], &answer["previous_response_id"]), (&json!("completed"), &response["id"]));
    assert!(text(answer).contains("teal"), "{answer}");
    assert_eq!(events(create(&client, &body)).await, second, "the first output counts, and the rest comes again");
    let id = answer["id"].as_str().unwrap();
    let (_, whole) = call(get(&client, &format!("/responses/{id}"))).await;
    assert_eq!(&whole, answer);
}

async fn an_approval_is_an_item_and_its_answer_another_response(mut deployment: Deployment) {
    let client = deployment.client();
    let asks = r#"[call=scripted__echo {"text":"hi"}] [approval] [tokens=3] x"#;
    let first = created(&client, &json!({"input": asks})).await;
    let request = first["output"].as_array().unwrap().last().unwrap();
    assert_eq!((&request["type"], &first["status"]), (&json!("mcp_approval_request"), &json!("completed")), "{first}");
    let answer = json!({"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": true});
    let second = created(&client, &json!({"input": [answer], "previous_response_id": first["id"]})).await;
    let calls: Vec<&Value> =
        second["output"].as_array().unwrap().iter().filter(|item| item["type"] == "mcp_call").collect();
    assert_eq!((calls.len(), &calls[0]["status"]), (1, &json!("completed")), "{second}");
    assert_ne!(first["id"], second["id"]);
}

async fn a_lost_worker_leaves_no_text_of_its_own(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let body = json!({"input": "[tokens=200] [delay=20] hello", "background": true, "stream": true});
    let mut stream = BlockStream::open(create(&client, &body)).await;
    stream.until_sent("response.output_text.delta").await;
    let before = stream.take(20).await;
    let id = before[0].json()["response"]["id"].as_str().unwrap().to_owned();
    let last = before.last().unwrap().json()["sequence_number"].clone();
    deployment.kill_worker();
    let client = deployment.client();
    let path = format!("/responses/{id}?stream=true");
    if !deployment.is_embedded() {
        let rest: Vec<Value> = stream.rest().await.iter().map(StreamBlock::json).collect();
        let end = &rest.last().unwrap()["response"];
        assert_eq!(text(end).matches("This is").count(), 1, "the output has no superseded item: {end}");
    }
    let replay = events(get(&client, &path)).await;
    expect_in_order(&replay);
    let end = &replay.last().unwrap()["response"];
    assert_eq!((&end["status"], text(end).matches("This is").count()), (&json!("completed"), 1), "{end}");
    let after_last = get(&client, &format!("{path}&starting_after={last}"));
    if deployment.is_embedded() {
        let (status, problem) = call(after_last).await;
        assert_eq!((status, &problem["error"]["code"]), (409, &json!("response_taken_over")), "{problem}");
    } else {
        // Redis has kept all events of the lost worker, so the numbers hold.
        assert_eq!(events(after_last).await, replay[last.as_u64().unwrap() as usize + 1..]);
    }
    assert_eq!(events(get(&client, &format!("{path}&starting_after=1"))).await, replay[2..]);
}

async fn a_completion_has_the_history_of_its_request(mut deployment: Deployment) {
    let client = deployment.client();
    let messages = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "earlier"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "found it"},
        {"role": "assistant", "content": "an answer"},
        {"role": "user", "content": "[tokens=3] now"}
    ]);
    let body = json!({"model": "default", "messages": messages});
    let (status, completion) = call(client.request(Method::POST, "/openai/v1/chat/completions").json(&body)).await;
    assert_eq!((status, &completion["object"]), (200, &json!("chat.completion")), "{completion}");
    let choice = &completion["choices"][0];
    assert_eq!((&choice["finish_reason"], &choice["message"]["role"]), (&json!("stop"), &json!("assistant")));
    // The scripted model counts the words that it reads.
    let alone = json!({"messages": [{"role": "user", "content": "[tokens=3] now"}]});
    let (_, short) = call(client.request(Method::POST, "/openai/v1/chat/completions").json(&alone)).await;
    let read = |completion: &Value| completion["usage"]["prompt_tokens"].as_u64().unwrap();
    assert!(read(&completion) > read(&short) + 6, "{completion} {short}");
    let streamed = json!({"messages": [{"role": "user", "content": "[think] [tokens=3] now"}], "stream": true, "stream_options": {"include_usage": true}});
    let stream = client.request(Method::POST, "/openai/v1/chat/completions").json(&streamed);
    let frames = BlockStream::open(stream).await.rest().await;
    let (done, chunks) = frames.split_last().unwrap();
    assert_eq!(done.data, "[DONE]");
    let text: String = chunks
        .iter()
        .filter_map(|chunk| chunk.json()["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(text, short["choices"][0]["message"]["content"].as_str().unwrap());
    assert!(chunks.last().unwrap().json()["usage"]["completion_tokens"].as_u64().unwrap() > 0);
}

async fn a_completion_calls_the_functions_of_its_request(mut deployment: Deployment) {
    let client = deployment.client();
    let tools = json!([{"type": "function", "function": {"name": "ask", "parameters": {"type": "object"}}}]);
    let mut messages = vec![json!({"role": "user", "content": COLOUR})];
    let post = |messages: &[Value]| {
        let body = json!({"messages": messages, "tools": tools});
        client.request(Method::POST, "/openai/v1/chat/completions").json(&body)
    };
    let (_, first) = call(post(&messages)).await;
    let choice = &first["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{first}");
    let call_id = &choice["message"]["tool_calls"][0]["id"];
    assert!(call_id.as_str().unwrap().len() <= 40, "{call_id}");
    messages.push(choice["message"].clone());
    messages.push(json!({"role": "tool", "tool_call_id": call_id, "content": "teal"}));
    let (_, second) = call(post(&messages)).await;
    let answer = &second["choices"][0];
    assert_eq!(answer["finish_reason"], "stop", "{second}");
    assert!(answer["message"]["content"].as_str().unwrap().contains("teal"), "{second}");
}

async fn a_response_in_the_background_is_polled_and_cancelled(mut deployment: Deployment) {
    let client = deployment.client();
    let response = created(&client, &json!({"input": "[tokens=5000] [delay=20] long", "background": true})).await;
    assert!(["queued", "in_progress"].contains(&response["status"].as_str().unwrap()), "{response}");
    let id = response["id"].as_str().unwrap();
    let path = format!("/responses/{id}");
    until("the response has a text", async || {
        let (_, response) = call(get(&client, &path)).await;
        response["output"].as_array().is_some_and(|output| !output.is_empty()).then_some(())
    })
    .await;
    let cancel = || client.request(Method::POST, &format!("/openai/v1/responses/{id}/cancel"));
    let (_, cancelled) = call(cancel()).await;
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    assert_eq!(call(cancel()).await.1["status"], "cancelled", "a second cancel changes nothing");
}

async fn a_response_continues_an_earlier_one(mut deployment: Deployment) {
    let client = deployment.client();
    let first = created(&client, &json!({"input": "[tokens=2] one", "metadata": {"topic": "tide"}})).await;
    assert_eq!(first["metadata"]["topic"], "tide");
    let second = created(&client, &json!({"input": "[tokens=2] two", "previous_response_id": first["id"]})).await;
    assert_eq!(second["conversation"], first["conversation"]);
    let again = created(&client, &json!({"input": "[tokens=2] two again", "previous_response_id": first["id"]})).await;
    let conversation = first["conversation"]["id"].as_str().unwrap();
    let (_, items) = call(get(&client, &format!("/conversations/{conversation}/items?order=asc"))).await;
    let texts: Vec<&str> =
        items["data"].as_array().unwrap().iter().map(|item| item["content"][0]["text"].as_str().unwrap()).collect();
    assert_eq!((texts.len(), texts[0], texts[2]), (4, "[tokens=2] one", "[tokens=2] two again"), "{again}");
    let (status, problem) = call(create(&client, &json!({"input": "x", "previous_response_id": second["id"]}))).await;
    assert_eq!(status, 400, "a replaced response has no place in the conversation: {problem}");
    let id = again["id"].as_str().unwrap();
    let (_, input) = call(get(&client, &format!("/responses/{id}/input_items"))).await;
    assert_eq!(input["data"][0]["content"][0]["text"], "[tokens=2] two again");
    let delete = |id: &Value| client.request(Method::DELETE, &format!("/openai/v1/responses/{}", id.as_str().unwrap()));
    assert_eq!(call(delete(&again["id"])).await.0, 409);
    let alone = created(&client, &json!({"input": "[tokens=1] alone"})).await;
    assert_eq!(call(delete(&alone["id"])).await.1["deleted"], true);
    assert_eq!(call(get(&client, &format!("/responses/{}", alone["id"].as_str().unwrap()))).await.0, 404);
}

async fn a_response_repeats_the_fields_of_its_request(mut deployment: Deployment) {
    let client = deployment.client();
    let parameters = json!({"type": "object", "properties": {"question": {"type": "string"}}});
    let format =
        json!({"type": "json_schema", "name": "colour", "description": null, "schema": parameters, "strict": true});
    let given = json!({
        "instructions": "Paint.", "temperature": 0.25, "top_p": 0.5, "max_output_tokens": 400,
        "tools": [
            {"type": "function", "name": "ask", "description": "Asks.", "parameters": parameters, "strict": true},
            {"type": "function", "name": "mix", "description": null, "parameters": parameters, "strict": null}
        ],
        "tool_choice": {"type": "function", "name": "ask"}, "parallel_tool_calls": false, "truncation": "disabled",
        "reasoning": {"effort": "low", "summary": "concise"}, "text": {"format": format, "verbosity": "low"},
        "user": "ann", "safety_identifier": "a1", "prompt_cache_key": "k"
    });
    let mut body = given.clone();
    body["input"] = json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": COLOUR}]);
    body["stream"] = true.into();
    let all = events(create(&client, &body)).await;
    let first = &all[0]["response"];
    let last = &all.last().unwrap()["response"];
    let (_, read) = call(get(&client, &format!("/responses/{}", last["id"].as_str().unwrap()))).await;
    for response in [first, last, &read] {
        for (name, value) in given.as_object().unwrap() {
            assert_eq!(&response[name], value, "{name}");
        }
    }
    let plain = created(&client, &json!({"input": "[tokens=1] x", "truncation": 7})).await;
    for (name, usual) in [
        ("tool_choice", json!("auto")),
        ("truncation", json!("auto")),
        ("tools", json!([])),
        ("instructions", Value::Null),
    ] {
        assert_eq!(plain[name], usual, "a value that the protocol does not know: {name}");
    }
}

async fn each_response_has_its_own_tokens(mut deployment: Deployment) {
    let client = deployment.client();
    let first = events(create(&client, &json!({"input": COLOUR, "tools": functions(), "stream": true}))).await;
    let first = &first.last().unwrap()["response"];
    let asked = first["output"].as_array().unwrap().last().unwrap();
    let output = json!({"type": "function_call_output", "call_id": asked["call_id"], "output": "teal"});
    let second = created(&client, &json!({"input": [output]})).await;
    let tokens = |response: &Value, field: &str| response["usage"][field].as_u64().unwrap_or_default();
    let native =
        call(client.request(Method::GET, &format!("/v1/runs/{}", first["metadata"]["run_id"].as_str().unwrap())));
    let (_, run) = native.await;
    for field in ["input_tokens", "output_tokens"] {
        assert!(tokens(first, field) > 0 && tokens(&second, field) > 0, "{first} {second}");
        assert_eq!(tokens(first, field) + tokens(&second, field), run["usage"][field].as_u64().unwrap(), "{run}");
    }
    let (_, read) = call(get(&client, &format!("/responses/{}", first["id"].as_str().unwrap()))).await;
    assert_eq!(&read, first);
}

async fn single_items_of_a_conversation_are_read(mut deployment: Deployment) {
    let client = deployment.client();
    let input = r#"[call=scripted__echo {"text":"hi"}] [clienttool=Which colour?] [approval] [tokens=3] x"#;
    let first = created(&client, &json!({"input": input, "tools": functions()})).await;
    let asked = first["output"].as_array().unwrap().last().unwrap();
    let output = json!({"type": "function_call_output", "call_id": asked["call_id"], "output": "teal"});
    let second = created(&client, &json!({"input": [output]})).await;
    let conversation = first["conversation"]["id"].as_str().unwrap();
    let items = format!("/conversations/{conversation}/items");
    let (_, listed) = call(get(&client, &items)).await;
    let known = [&first["output"], &second["output"], &listed["data"]].map(|items| items.as_array().unwrap().clone());
    let kinds: Vec<&str> = known.iter().flatten().map(|item| item["type"].as_str().unwrap()).collect();
    for kind in ["mcp_call", "function_call", "mcp_approval_request", "message"] {
        assert!(kinds.contains(&kind), "{kind} is missing: {kinds:?}");
    }
    for item in known.iter().flatten() {
        let (status, read) = call(get(&client, &format!("{items}/{}", item["id"].as_str().unwrap()))).await;
        assert_eq!((status, &read), (200, item));
    }
    let other = created(&client, &json!({"input": "[tokens=1] x"})).await;
    for id in ["msg_1", "nothing", other["output"][0]["id"].as_str().unwrap()] {
        let (status, problem) = call(get(&client, &format!("{items}/{id}"))).await;
        assert_eq!((status, &problem["error"]["code"]), (404, &json!("item_not_found")), "{id}");
    }
    let item = listed["data"][0]["id"].as_str().unwrap();
    let stranger = client.user("stranger");
    assert_eq!(call(get(&stranger, &format!("{items}/{item}"))).await.0, 404);
}

async fn items_are_added_to_a_conversation(mut deployment: Deployment) {
    let client = deployment.client();
    let post = |path: &str, body: &Value| client.request(Method::POST, &format!("/openai/v1{path}")).json(body);
    let message = |role: &str, content: &str| json!({"type": "message", "role": role, "content": content});
    let dialogue = json!([message("user", "one"), message("assistant", "two")]);
    let (_, conversation) = call(post("/conversations", &json!({"items": dialogue}))).await;
    let items = format!("/conversations/{}/items", conversation["id"].as_str().unwrap());
    let (status, added) = call(post(&items, &json!({"items": [message("user", "three")]}))).await;
    assert_eq!((status, &added["data"][0]["content"][0]["text"]), (200, &json!("three")), "{added}");
    let (_, listed) = call(get(&client, &format!("{items}?order=asc"))).await;
    let texts: Vec<&Value> =
        listed["data"].as_array().unwrap().iter().map(|item| &item["content"][0]["text"]).collect();
    assert_eq!(texts, ["one", "two", "three"]);
    assert_eq!(listed["data"][2], added["data"][0]);
    let (_, read) = call(get(&client, &format!("{items}/{}", listed["data"][1]["id"].as_str().unwrap()))).await;
    assert_eq!(read, listed["data"][1]);
    let many = |count: usize| json!({"items": vec![message("user", "x"); count]});
    for (body, expected) in [
        (many(20), 200),
        (many(21), 400),
        (many(0), 400),
        (json!({"items": [{"type": "function_call", "call_id": "c", "name": "x", "arguments": "{}"}]}), 200),
        (json!({"items": [{"type": "message", "role": "system", "content": "x"}]}), 400),
        (json!({"items": [message("user", "")]}), 400),
    ] {
        assert_eq!(call(post(&items, &body)).await.0, expected, "{body}");
    }
    let before = client.get("/v1/conversations").await.unwrap()["items"].as_array().unwrap().len();
    assert_eq!(call(post("/conversations", &json!({"items": [message("user", "")]}))).await.0, 400);
    let after = client.get("/v1/conversations").await.unwrap()["items"].as_array().unwrap().len();
    assert_eq!(before, after, "a refused request leaves no conversation");
    let response = created(&client, &json!({"input": "[tokens=2] four", "conversation": conversation["id"]})).await;
    assert_eq!(response["conversation"]["id"], conversation["id"]);
}

async fn items_of_this_server_name_their_conversation(mut deployment: Deployment) {
    let client = deployment.client();
    let first = created(&client, &json!({"input": "[tokens=2] one"})).await;
    let reference = json!({"type": "item_reference", "id": first["output"][0]["id"]});
    let input = json!([{"role": "user", "content": "[tokens=2] one"}, reference, {"role": "user", "content": "[tokens=2] two"}]);
    let second = created(&client, &json!({"input": input})).await;
    assert_eq!(second["conversation"], first["conversation"]);
}

async fn an_answer_has_the_schema_of_its_request(mut deployment: Deployment) {
    let client = deployment.client();
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}});
    let format = json!({"type": "json_schema", "name": "person", "schema": schema, "strict": true});
    let response = created(&client, &json!({"input": "who?", "text": {"format": format}})).await;
    let answer: Value = serde_json::from_str(&text(&response)).unwrap();
    assert_eq!(answer, json!({"name": "scripted", "age": 1}));
}

async fn a_model_is_an_agent_or_a_profile(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let profiles = json!({"profiles": {"quick": {"provider": "scripted", "model": "small"}}});
    client.request(Method::PUT, "/v1/profiles").json(&profiles).send().await.unwrap().error_for_status().unwrap();
    let agent = json!({"name": "keeper", "system_prompt": "You keep."});
    client.request(Method::POST, "/v1/agents").json(&agent).send().await.unwrap().error_for_status().unwrap();
    let (_, models) = call(get(&client, "/models")).await;
    let names: Vec<&str> =
        models["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["default", "keeper", "planner", "quick"]);
    for name in names.into_iter().filter(|name| *name != "planner") {
        let response = created(&client, &json!({"model": name, "input": "[tokens=1] hi"})).await;
        assert_eq!((&response["model"], &response["status"]), (&json!(name), &json!("completed")), "{response}");
    }
    let (status, problem) = call(create(&client, &json!({"model": "gpt-0", "input": "hi"}))).await;
    assert_eq!((status, &problem["error"]["code"]), (404, &json!("model_not_found")));
}

async fn conversations_are_those_of_the_native_api(mut deployment: Deployment) {
    let client = deployment.client();
    let post = client.request(Method::POST, "/openai/v1/conversations").json(&json!({"metadata": {"title": "Tide"}}));
    let (status, conversation) = call(post).await;
    assert_eq!((status, &conversation["object"]), (200, &json!("conversation")));
    let id = conversation["id"].as_str().unwrap();
    let response = created(&client, &json!({"input": "[tokens=1] hi", "conversation": id})).await;
    assert_eq!(response["conversation"]["id"], id);
    let native = response["metadata"]["conversation_id"].as_str().unwrap();
    let (_, native) = call(client.request(Method::GET, &format!("/v1/conversations/{native}"))).await;
    assert_eq!(native["title"], "Tide");
    let change = client.request(Method::POST, &format!("/openai/v1/conversations/{id}"));
    call(change.json(&json!({"metadata": {"topic": "moon"}}))).await;
    let (_, changed) = call(get(&client, &format!("/conversations/{id}"))).await;
    assert_eq!(changed["metadata"], json!({"topic": "moon"}));
    let (_, deleted) = call(client.request(Method::DELETE, &format!("/openai/v1/conversations/{id}"))).await;
    assert_eq!(deleted["deleted"], true);
    assert_eq!(call(get(&client, &format!("/conversations/{id}"))).await.0, 404);
}

async fn hidden_conversations_are_in_no_list(mut deployment: Deployment) {
    let client = deployment.client();
    created(&client, &json!({"input": "[tokens=1] hi", "store": false})).await;
    let body = json!({"messages": [{"role": "user", "content": "[tokens=1] hi"}]});
    call(client.request(Method::POST, "/openai/v1/chat/completions").json(&body)).await;
    let (_, list) = call(client.request(Method::GET, "/v1/conversations")).await;
    assert_eq!(list["items"], json!([]));
    let (_, runs) = call(client.request(Method::GET, "/v1/runs")).await;
    assert_eq!(runs["items"].as_array().unwrap().len(), 2);
}

async fn errors_have_the_form_of_the_protocol(mut deployment: Deployment) {
    let client = deployment.client();
    let check = async |request: RequestBuilder, status: u16, code: &str| {
        let (found, body) = call(request).await;
        assert_eq!((found, &body["error"]["code"]), (status, &json!(code)), "{body}");
        assert!(body["error"]["message"].is_string() && body["error"]["type"].is_string(), "{body}");
    };
    check(create(&client, &json!({"input": []})), 400, "invalid_body").await;
    check(create(&client, &json!({"input": [{"role": "assistant", "content": "x"}]})), 400, "invalid_body").await;
    check(create(&client, &json!({"input": ""})), 400, "empty_content").await;
    check(create(&client, &json!({"input": "x", "temperature": 9})), 400, "invalid_body").await;
    check(create(&client, &json!({"input": "x", "previous_response_id": "resp_1"})), 404, "response_not_found").await;
    check(get(&client, "/responses/resp_1"), 404, "response_not_found").await;
    check(get(&client, "/nothing"), 404, "not_found").await;
    let completions = client.request(Method::POST, "/openai/v1/chat/completions");
    check(completions.json(&json!({"messages": [{"role": "system", "content": "x"}]})), 400, "invalid_body").await;
    let output = json!({"type": "function_call_output", "call_id": "call_1", "output": "x"});
    check(create(&client, &json!({"input": [output]})), 400, "invalid_body").await;
}

async fn responses_of_others_do_not_exist(mut deployment: Deployment) {
    let client = deployment.client();
    let response = created(&client, &json!({"input": COLOUR, "tools": functions()})).await;
    let id = response["id"].as_str().unwrap();
    let stranger = client.user("stranger");
    assert_eq!(call(get(&stranger, &format!("/responses/{id}"))).await.0, 404);
    assert_eq!(call(create(&stranger, &json!({"input": "x", "previous_response_id": id}))).await.0, 404);
    let call_id = &response["output"].as_array().unwrap().last().unwrap()["call_id"];
    let output = json!({"type": "function_call_output", "call_id": call_id, "output": "x"});
    assert_eq!(call(create(&stranger, &json!({"input": [output]}))).await.0, 404);
}

async fn a_request_has_the_results_of_all_calls(mut deployment: Deployment) {
    let client = deployment.client();
    let asks = "[parallel] [clienttool=One?] [clienttool=Two?] [tokens=2] x";
    let first = created(&client, &json!({"input": asks, "tools": functions()})).await;
    let calls: Vec<&Value> =
        first["output"].as_array().unwrap().iter().filter(|item| item["type"] == "function_call").collect();
    assert_eq!(calls.len(), 2, "{first}");
    let output = |at: usize| json!({"type": "function_call_output", "call_id": calls[at]["call_id"], "output": "teal"});
    let (status, problem) = call(create(&client, &json!({"input": [output(0)]}))).await;
    let message = problem["error"]["message"].as_str().unwrap();
    assert!(status == 400 && message.contains(calls[1]["call_id"].as_str().unwrap()), "{problem}");
    let second = created(&client, &json!({"input": [output(0), output(1)]})).await;
    assert_eq!(second["status"], "completed");
}

async fn a_repeated_answer_gets_the_same_response(mut deployment: Deployment) {
    let client = deployment.client();
    let asks = "[clienttool=One?] [clienttool=Two?] [tokens=2] x";
    let first = created(&client, &json!({"input": asks, "tools": functions()})).await;
    let output_for = |response: &Value| {
        let asked = response["output"].as_array().unwrap().last().unwrap();
        assert_eq!(asked["type"], "function_call", "{response}");
        json!({"input": [{"type": "function_call_output", "call_id": asked["call_id"], "output": "teal"}]})
    };
    let answer = output_for(&first);
    let second = created(&client, &answer).await;
    assert_eq!(created(&client, &answer).await, second, "while the run waits for the next result");
    let third = created(&client, &output_for(&second)).await;
    assert_eq!((created(&client, &answer).await, &third["status"]), (second, &json!("completed")));
}

async fn a_continued_conversation_takes_messages_of_the_user_only(mut deployment: Deployment) {
    let client = deployment.client();
    let first = created(&client, &json!({"input": "[tokens=2] a question of several words"})).await;
    let user = |text: &str| json!({"role": "user", "content": text});
    let continued = |input: Value| json!({"input": input, "previous_response_id": first["id"]});
    let second = created(&client, &continued(json!([user("[tokens=1] one"), user("two")]))).await;
    let read = second["usage"]["input_tokens"].as_u64().unwrap();
    assert!(read > 8, "the model reads the conversation before both texts: {second}");
    let result = json!({"type": "function_call_output", "call_id": "call_1", "output": "x"});
    for input in [json!([result, user("x")]), json!([{"role": "assistant", "content": "x"}, user("x")])] {
        let (status, problem) = call(create(&client, &continued(input))).await;
        assert_eq!((status, &problem["error"]["code"]), (400, &json!("invalid_body")), "{problem}");
    }
}

async fn a_cursor_beyond_the_end_gets_the_end(mut deployment: Deployment) {
    let client = deployment.client();
    let response = created(&client, &json!({"input": "[tokens=2] x"})).await;
    let path = format!("/responses/{}?stream=true", response["id"].as_str().unwrap());
    let rest = events(get(&client, &path).header("last-event-id", "77-3.0")).await;
    assert_eq!(rest.last().unwrap()["type"], "response.completed");
}

async fn the_client_for_node_streams_and_answers(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let (reports, end) = ClientProgram::start("openai", client.base(), json!({})).await.rest().await;
    expect_reports(&reports, &end);
}

async fn the_client_for_python_streams_and_answers(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let (reports, end) = ClientProgram::start("openai-python", client.base(), json!({})).await.rest().await;
    expect_reports(&reports, &end);
}

async fn agent_frameworks_get_the_calls_that_they_demand(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let (reports, end) = ClientProgram::start("openai-frameworks", client.base(), json!({})).await.rest().await;
    expect_reports(&reports, &end);
}

/// Checks the reports of a client's program: each step has found what it expected.
fn expect_reports(reports: &[Value], end: &Value) {
    let names: Vec<&str> = reports.iter().filter_map(|report| report["step"].as_str()).collect();
    assert_eq!(json!(names), *end, "each step of the program has ended");
    for report in reports {
        assert_eq!(report["ok"], true, "{report}");
    }
}
