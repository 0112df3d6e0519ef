//! LangGraph's thread-centric protocol: its events one by one, and a page with LangChain's `useStream` in a real browser.

use serde_json::{Value, json};

use crate::{
    files::asking,
    in_both_modes, in_either_mode,
    langgraph::{get, json_of, post},
    support::{BlockStream, Client, ClientProgram, Deployment, SharedProgram, upstream::TestUpstream},
};

in_both_modes!(a_thread_s_stream_continues_after_every_event, a_lost_worker_leaves_no_block_twice);
in_either_mode!(
    a_stream_has_the_channels_that_the_client_wants,
    refused_commands_are_answers_in_words,
    calls_of_the_client_and_injected_messages_are_commands,
    a_repeated_command_is_the_same_run_while_it_is_live,
);

/// The program with the page and the browser of all tests.
static BROWSER: SharedProgram = SharedProgram::new("langgraph-react");

/// The words of an answer: two for each break, and two before the first.
const WORDS: &[&str] =
    &["one", " two", " three", " four", " five", " six", " seven", " eight", " nine", " ten", " eleven", " twelve"];

const ALL: &[&str] = &["lifecycle", "input", "values", "messages", "tools", "checkpoints", "custom"];

async fn scenario(deployment: &mut Deployment, name: &str, given: Value) -> ClientProgram {
    let mut parameters = json!({"base": deployment.client().base(), "scenario": name});
    parameters.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
    BROWSER.connect(parameters).await
}

/// Returns the methods of the commands that the page has sent.
fn commands(end: &Value) -> Vec<&str> {
    end["requests"].as_array().unwrap().iter().filter_map(|request| request["command"].as_str()).collect()
}

#[tokio::test]
async fn a_page_shows_an_answer_despite_reloads_and_cuts() {
    let upstream = TestUpstream::with_permits(WORDS).await;
    let mut deployment = asking(Deployment::embedded(), &upstream);
    let words: Vec<&str> = WORDS.iter().map(|word| word.trim()).collect();
    let mut program = scenario(&mut deployment, "breaks", json!({"words": words})).await;
    for _ in 0..WORDS.len() / 2 {
        program.up_to_nth(1, |got| got["at"] == "wants words").await;
        upstream.permit_words(2);
    }
    let (_, end) = program.rest().await;
    assert_eq!(end["messages"], json!([{"role": "human", "text": "Count"}, {"role": "ai", "text": WORDS.concat()}]));
    assert_eq!((commands(&end), upstream.requests().len()), (vec!["run.start"], 1));
}

#[tokio::test]
async fn a_page_answers_interrupts_also_after_a_reload() {
    let mut deployment = Deployment::embedded();
    let (_, end) = scenario(&mut deployment, "answers", json!({})).await.rest().await;
    let roles: Vec<&str> =
        end["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    let turn = ["human", "ai", "tool", "ai"];
    assert_eq!(roles, [&turn[..], &turn, &["human", "ai"]].concat(), "{end}");
    assert_eq!(end["messages"][2]["text"], "done: Sail?");
    assert!(end["messages"][6]["text"].as_str().unwrap().ends_with("not today"), "{end}");
    assert_eq!(commands(&end), ["run.start", "input.respond", "run.start", "input.respond", "run.start"]);
    assert_eq!(end["error"], 0);
}

#[tokio::test]
async fn a_page_stops_an_answer_and_gets_the_next_one() {
    let mut deployment = Deployment::embedded();
    let client = deployment.client();
    let (_, end) = scenario(&mut deployment, "stops", json!({})).await.rest().await;
    let thread = end["thread"].as_str().unwrap();
    let runs = json_of(get(&client, &format!("/threads/{thread}/runs"))).await;
    let statuses: Vec<&Value> = runs.as_array().unwrap().iter().map(|run| &run["status"]).collect();
    assert_eq!(statuses, ["success", "interrupted"]);
    let state = json_of(get(&client, &format!("/threads/{thread}/state"))).await;
    assert_eq!(state["values"]["messages"][3]["content"].as_str().unwrap().trim_end(), "This is");
    assert!(end["messages"][3]["text"].as_str().unwrap().starts_with("This is"), "{end}");
}

#[tokio::test]
async fn a_page_says_why_a_run_has_failed_and_why_one_was_refused() {
    let mut deployment = Deployment::embedded();
    let (_, end) = scenario(&mut deployment, "fails", json!({"refused": "   "})).await.rest().await;
    assert_eq!(end["failed"], "the scripted model failed, as [fail] directed");
    assert_eq!(end["refused"], "The content of a message must not be empty or only white space.");
    let statuses: Vec<&Value> = end["requests"].as_array().unwrap().iter().map(|request| &request["status"]).collect();
    assert!(statuses.iter().all(|status| **status == 200), "no client repeats a refusal: {end}");
}

async fn command(client: &Client, thread: &str, method: &str, params: Value) -> Value {
    let command = json!({"id": 7, "method": method, "params": params});
    let response = json_of(post(client, &format!("/threads/{thread}/commands"), &command)).await;
    assert_eq!(response["id"], 7);
    response
}

async fn start(client: &Client, thread: &str, text: &str) -> Value {
    let input = json!({"messages": [{"type": "human", "content": text}]});
    let started = command(client, thread, "run.start", json!({"assistant_id": "agent", "input": input})).await;
    assert_eq!(started["type"], "success", "{started}");
    started["result"]["run_id"].clone()
}

async fn follow(client: &Client, thread: &str, filter: Value) -> BlockStream {
    BlockStream::open(post(client, &format!("/threads/{thread}/stream/events"), &filter)).await
}

/// Returns the next events, up to the n-th that ends or interrupts a run.
async fn up_to_terminal(stream: &mut BlockStream, n: usize) -> Vec<Value> {
    let (mut events, mut terminal) = (Vec::new(), 0);
    while terminal < n {
        let event = stream.next().await.expect("the stream was broken off").expect("the stream stays open").json();
        let status = event["params"]["data"]["event"].as_str().unwrap_or_default();
        terminal +=
            usize::from(event["method"] == "lifecycle" && ["completed", "failed", "interrupted"].contains(&status));
        events.push(event);
    }
    events
}

fn methods<'a>(events: &'a [Value], method: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["method"] == method).map(|event| &event["params"]["data"]).collect()
}

async fn a_thread_s_stream_continues_after_every_event(mut deployment: Deployment) {
    let client = deployment.client();
    start(&client, "t", r#"[think] [call=scripted__echo {"text":"hi"}] [approval] [tokens=6] x"#).await;
    let filter = |since: Value| json!({"channels": ALL, "since": since});
    let mut stream = follow(&client, "t", filter(Value::Null)).await;
    let mut all = up_to_terminal(&mut stream, 1).await;
    let interrupt = methods(&all, "input.requested")[0]["interrupt_id"].clone();
    let response =
        json!({"namespace": [], "interrupt_id": interrupt, "response": {"decisions": [{"type": "approve"}]}});
    assert_eq!(command(&client, "t", "input.respond", response).await["type"], "success");
    all.extend(up_to_terminal(&mut stream, 1).await);
    start(&client, "t", "[tokens=3] again").await;
    all.extend(up_to_terminal(&mut stream, 1).await);
    let numbers: Vec<u64> = all.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    let ends: Vec<&Value> = methods(&all, "lifecycle").into_iter().map(|data| &data["event"]).collect();
    assert_eq!(ends.iter().filter(|end| **end != "running").count(), 3, "{ends:?}");
    let values = methods(&all, "values").last().copied().unwrap().clone();
    assert_eq!(values, json_of(get(&client, "/threads/t/state")).await["values"], "the last values are the thread's");
    // The events of the pause that is over are only for those who were there.
    let paused = all.iter().position(|event| event["method"] == "input.requested").unwrap();
    let passed = |place: usize| (paused - 1..=paused + 1).contains(&place);
    for (place, event) in all.iter().enumerate().step_by(3) {
        let rest: Vec<&Value> =
            (place + 1..all.len()).filter(|place| !passed(*place)).map(|place| &all[place]).collect();
        if rest.is_empty() {
            continue;
        }
        let mut again = follow(&client, "t", filter(event["seq"].clone())).await;
        let found = again.take(rest.len()).await;
        assert_eq!(
            found.iter().map(|block| block.json()).collect::<Vec<_>>(),
            rest.into_iter().cloned().collect::<Vec<_>>()
        );
    }
    let mut newest = follow(&client, "t", filter(Value::Null)).await;
    let replayed = up_to_terminal(&mut newest, 1).await;
    assert_eq!(replayed, all[all.len() - replayed.len()..], "without a cursor, the newest run comes again");
}

async fn a_lost_worker_leaves_no_block_twice(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    start(&client, "t", "[tokens=150] [delay=20] hello").await;
    let mut stream = follow(&client, "t", json!({"channels": ["messages", "values", "lifecycle"]})).await;
    stream.until_sent("text-delta").await;
    deployment.kill_worker();
    let client = deployment.client();
    let mut stream = follow(&client, "t", json!({"channels": ["messages", "values", "lifecycle"]})).await;
    let events = up_to_terminal(&mut stream, 1).await;
    let messages = methods(&events, "messages");
    let begun = messages.iter().rposition(|data| data["event"] == "message-start").unwrap();
    let written: String = messages[begun..].iter().filter_map(|data| data["delta"]["text"].as_str()).collect();
    let finished = messages.iter().rfind(|data| data["event"] == "content-block-finish").unwrap();
    let values = methods(&events, "values").last().copied().unwrap().clone();
    assert_eq!((&finished["content"]["text"], &values["messages"][1]["content"]), (&json!(written), &json!(written)));
    assert_eq!(messages[begun]["id"], values["messages"][1]["id"]);
}

async fn a_stream_has_the_channels_that_the_client_wants(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_HEARTBEAT_MS", 500);
    let client = deployment.client();
    let run_id = start(&client, "t", r#"[call=scripted__echo {"text":"hi"}] [tokens=2] x"#).await;
    let all = up_to_terminal(&mut follow(&client, "t", json!({"channels": ALL})).await, 1).await;
    let checkpoints = methods(&all, "checkpoints");
    let steps: Vec<&Value> = checkpoints.iter().map(|checkpoint| &checkpoint["step"]).collect();
    let state = json_of(get(&client, "/threads/t/state")).await;
    assert_eq!(steps, [&json!(0), &state["metadata"]["step"]]);
    assert_eq!(checkpoints[1]["id"], state["checkpoint"]["checkpoint_id"]);
    assert_eq!(checkpoints[1]["parent_id"], state["parent_checkpoint"]["checkpoint_id"]);
    let tools: Vec<&Value> = methods(&all, "tools").into_iter().map(|data| &data["event"]).collect();
    assert_eq!(tools, ["tool-started", "tool-finished"]);
    let call = methods(&all, "messages").into_iter().find(|data| data["content"]["type"] == "tool_call").unwrap();
    assert_eq!((&call["content"]["args"], &call["event"]), (&json!({"text": "hi"}), &json!("content-block-finish")));
    for event in &all {
        assert!(event["event_id"].as_str().unwrap().starts_with(run_id.as_str().unwrap()), "{event}");
    }
    let mut few = follow(
        &client,
        "t",
        json!({"channels": ["lifecycle", "custom:context.usage", "updates"], "namespaces": [[]], "depth": 1}),
    )
    .await;
    let few = up_to_terminal(&mut few, 1).await;
    let wanted: Vec<&Value> = all
        .iter()
        .filter(|event| event["method"] == "lifecycle" || event["params"]["data"]["name"] == "context.usage")
        .collect();
    assert_eq!(few.iter().collect::<Vec<_>>(), wanted, "an event has one id on all streams");
    let elsewhere = json!({"channels": ALL, "namespaces": [["tools:x"]]});
    let mut elsewhere = post(&client, "/threads/t/stream/events", &elsewhere).send().await.unwrap();
    assert_eq!(elsewhere.chunk().await.unwrap().unwrap(), ": hb\n", "no event is below this path");
}

async fn refused_commands_are_answers_in_words(mut deployment: Deployment) {
    let client = deployment.client();
    let refused = async |thread: &str, method: &str, params: Value| {
        let response = command(&client, thread, method, params).await;
        assert_eq!(response["type"], "error", "{response}");
        (response["error"].as_str().unwrap().to_owned(), response["message"].as_str().unwrap().to_owned())
    };
    let input = json!({"messages": [{"type": "human", "content": "[tokens=1] x"}]});
    let (code, text) = refused("t", "run.start", json!({"assistant_id": "Nemo", "input": input})).await;
    assert_eq!((code.as_str(), text.as_str()), ("invalid_argument", "There is no assistant Nemo."));
    let (code, text) = refused("t", "input.respond", json!({"interrupt_id": "x", "response": true})).await;
    assert_eq!((code.as_str(), text.as_str()), ("no_such_run", "There is no thread t."));
    start(&client, "t", "[tokens=1] x").await;
    up_to_terminal(&mut follow(&client, "t", json!({"channels": ALL})).await, 1).await;
    let (code, _) = refused("t", "input.respond", json!({"interrupt_id": "x", "response": true})).await;
    assert_eq!(code, "no_such_interrupt");
    let (code, _) = refused("t", "input.respond", json!({"responses": []})).await;
    assert_eq!(code, "invalid_argument");
    let (code, _) = refused("t", "agent.getTree", json!({})).await;
    assert_eq!(code, "unknown_command");
    let state = command(&client, "t", "state.get", json!({"namespace": []})).await;
    assert_eq!(state["result"]["values"]["messages"].as_array().unwrap().len(), 2);
    let tools = json!([{"name": "ask", "description": "Asks.", "parameters": {"type": "object"}}]);
    let asking = json!({"messages": [{"type": "human", "content": "[clienttool=Which?] x"}], "tools": tools});
    command(&client, "t", "run.start", json!({"assistant_id": "agent", "input": asking})).await;
    up_to_terminal(&mut follow(&client, "t", json!({"channels": ALL})).await, 1).await;
    let (code, _) = refused("t", "input.respond", json!({"interrupt_id": "of another run", "response": 1})).await;
    assert_eq!(code, "no_such_interrupt", "the only question of the thread is another one");
    let nowhere = post(&client, "/threads/nowhere/stream/events", &json!({"channels": ALL})).send().await.unwrap();
    assert_eq!(nowhere.status(), 404);
    let many = vec!["custom"; 65];
    let many = post(&client, "/threads/t/stream/events", &json!({"channels": many})).send().await.unwrap();
    assert_eq!(many.status(), 400);
}

async fn calls_of_the_client_and_injected_messages_are_commands(mut deployment: Deployment) {
    let client = deployment.client();
    let tools = json!([{"name": "ask", "description": "Asks.", "parameters": {"type": "object"}}]);
    let input =
        json!({"messages": [{"type": "human", "content": "[clienttool=Which colour?] [tokens=3] x"}], "tools": tools});
    command(&client, "t", "run.start", json!({"assistant_id": "agent", "input": input})).await;
    let mut stream = follow(&client, "t", json!({"channels": ALL})).await;
    let asked = up_to_terminal(&mut stream, 1).await;
    let question = methods(&asked, "input.requested")[0];
    assert_eq!(question["payload"]["tool_call"]["name"], "ask");
    let responses = json!([{"namespace": [], "interrupt_id": question["interrupt_id"], "response": "teal"}]);
    command(&client, "t", "input.respond", json!({"responses": responses})).await;
    let answered = up_to_terminal(&mut stream, 1).await;
    let finished = methods(&answered, "tools").into_iter().find(|data| data["event"] == "tool-finished").unwrap();
    assert_eq!(finished["output"], "teal");
    let message = json!({"role": "user", "content": "[tokens=2] more"});
    let injected = command(&client, "t", "input.inject", json!({"namespace": [], "message": message})).await;
    assert_eq!(injected["type"], "success", "{injected}");
    let more = up_to_terminal(&mut stream, 1).await;
    assert_eq!(methods(&more, "values").last().unwrap()["messages"].as_array().unwrap().len(), 6);
}

async fn a_repeated_command_is_the_same_run_while_it_is_live(mut deployment: Deployment) {
    let client = deployment.client();
    let start = async |text: &str| {
        let input = json!({"messages": [{"type": "human", "content": text, "id": "m"}]});
        let started = command(&client, "t", "run.start", json!({"assistant_id": "agent", "input": input})).await;
        started["result"]["run_id"].as_str().unwrap().to_owned()
    };
    let first = start("[approval] [tokens=2] x").await;
    up_to_terminal(&mut follow(&client, "t", json!({"channels": ALL})).await, 1).await;
    assert_eq!(start("[approval] [tokens=2] x").await, first);
    let other = start("[tokens=2] y").await;
    assert_ne!(other, first, "another text replaces the message");
    assert_eq!(client.wait_for_run(&first).await["status"], "cancelled");
    client.wait_for_run(&other).await;
    assert_ne!(start("[tokens=2] y").await, other, "an ended run is answered again");
    let blocks = async || {
        let content = json!([{"type": "text", "text": "[approval] z"}]);
        let input = json!({"messages": [{"type": "human", "content": content, "id": "blocks"}]});
        let started = command(&client, "b", "run.start", json!({"assistant_id": "agent", "input": input})).await;
        assert_eq!(started["type"], "success", "{started}");
        started["result"]["run_id"].as_str().unwrap().to_owned()
    };
    assert_eq!(blocks().await, blocks().await, "a text in blocks is the same text");
}
