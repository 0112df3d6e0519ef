//! Answers from documents: what the model has before it, and the citations that clients see.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    files::asking,
    in_both_modes, in_either_mode,
    knowledge::{HARBOUR, ask, code_of, collection, ingest, path_of, text_of},
    support::{Client, Deployment, EventFrame, agent, frames_of, of_kind, stream_of, until, upstream::TestUpstream},
};

in_both_modes!(an_answer_cites_only_passages_before_its_model, a_later_attempt_reads_no_deleted_document,);
in_either_mode!(
    an_agent_searches_and_reads_on,
    a_later_turn_has_no_numbers_of_an_earlier_one,
    a_result_has_the_passages_that_fit,
    a_history_has_the_sources_of_the_stream,
);

const SEARCH: &str = "search_knowledge {\"query\": \"berth\"}";

/// Returns the outcomes of the calls, which are JSON.
fn results_of(frames: &[EventFrame]) -> Vec<Value> {
    let completed = of_kind(frames, "tool_call.completed");
    completed.iter().map(|call| serde_json::from_str(call["output"].as_str().unwrap()).unwrap()).collect()
}

/// Returns an agent that gets passages by its tools alone, and the document that these find.
async fn searching_agent(client: &Client) -> (String, Value) {
    let collection = collection(client, "Ports").await;
    let document = ingest(client, &collection, "harbour.md", HARBOUR).await;
    let id = collection.rsplit('/').next().unwrap();
    (agent(client, json!([]), json!({"knowledge": [id]})).await, document)
}

async fn an_answer_cites_only_passages_before_its_model(mut deployment: Deployment) {
    let client = deployment.client();
    let collection = collection(&client, "Ports").await;
    let document = ingest(&client, &collection, "harbour.md", HARBOUR).await;
    let question = "What does the harbour master open? [cite] [cite=1] [cite=7] [cite=0] [tokens=2]";
    let run = ask(&client, &collection, question).await;
    let message = &run["output_message"];
    let text = message["content"].as_str().unwrap();
    assert!(text.contains("\" [1]. It is so [1]. It is so. It is so. This is"), "{text}");
    let context = &message["retrieval_context"];
    assert_eq!(context["agent_run_id"], run["id"]);
    assert_eq!(context["dropped"], json!([{"number": 7, "reason": "not_told"}, {"number": 0, "reason": "not_told"}]));
    let [cited] = context["documents"].as_array().unwrap().as_slice() else { panic!("{context}") };
    assert_eq!((&cited["number"], &cited["id"], &cited["title"]), (&json!(1), &document["id"], &json!("harbour.md")));
    let place = format!("?from={}&to={}", cited["start"], cited["end"]);
    let quotation = text.split('"').nth(1).unwrap();
    assert!(!quotation.is_empty() && text_of(&client, &document, &place).await.contains(quotation));
    let frames = client.events(run["id"].as_str().unwrap(), None).await.rest().await;
    let told = of_kind(&frames, "context.retrieved")[0]["passages"].as_array().unwrap();
    assert_eq!((&told[0]["number"], &told[0]["document"]), (&json!(1), &document["id"]));
    assert_eq!(of_kind(&frames, "citation.added").len(), 1);
    let shown: String = of_kind(&frames, "message.delta").iter().map(|data| data["text"].as_str().unwrap()).collect();
    assert_eq!(shown, text, "no client sees a mark that is not in the stored text");
    let plain = client.post("/v1/runs", json!({"input": "[cite=1] [tokens=1]"})).await.unwrap();
    let plain = client.wait_for_run(plain["run"]["id"].as_str().unwrap()).await;
    let message = &plain["output_message"];
    assert_eq!(message["content"], "It is so [1]. This ", "without documents, brackets are text");
    assert_eq!(message["retrieval_context"], json!({"agent_run_id": plain["id"]}));
}

async fn a_later_attempt_reads_no_deleted_document(deployment: Deployment) {
    let deployment = deployment.own();
    let upstream = TestUpstream::calling(SEARCH, &["Twelve [1]. ", "Yes."]).await;
    let mut deployment = asking(deployment, &upstream).with("HOLDFAST_KNOWLEDGE_TOKENS", 1);
    let client = deployment.client();
    let (agent_id, document) = searching_agent(&client).await;
    let mut stream = stream_of(&client, &agent_id, "What does a night cost, my friend?").await;
    let run_id = stream.run_id.clone();
    let frames = stream.up_to("tool_call.completed").await;
    assert!(!frames.iter().any(|frame| frame.data.to_string().contains("berth costs")), "no event has the text");
    until("the model is asked about the passages", || async { (upstream.requests().len() == 2).then_some(()) }).await;
    let asked =
        |n: usize| upstream.requests()[n]["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(asked(1).contains("[Passage 1 of harbour.md") && asked(1).contains("A berth costs twelve"), "{}", asked(1));
    client.delete(&path_of(&document)).await.unwrap();
    deployment.kill_worker();
    let client = deployment.client();
    until("the next attempt asks the model again", || async { (upstream.requests().len() == 3).then_some(()) }).await;
    assert!(asked(2).contains("[1 of the passages can be read no more]"), "{}", asked(2));
    assert!(!asked(2).contains("berth"), "{}", asked(2));
    upstream.permit_words(4);
    let run = client.wait_for_run(&run_id).await;
    assert_eq!(run["output_message"]["content"], "Twelve. Yes.");
    let dropped = &run["output_message"]["retrieval_context"]["dropped"];
    assert_eq!(dropped, &json!([{"number": 1, "reason": "not_readable"}]));
}

async fn an_agent_searches_and_reads_on(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_PASSAGE_CHARS", 60).with("HOLDFAST_KNOWLEDGE_TOKENS", 1);
    let client = deployment.client();
    let collection = collection(&client, "Ports").await;
    let document = ingest(&client, &collection, "harbour.md", HARBOUR).await;
    let id = collection.rsplit('/').next().unwrap();
    let agent = agent(&client, json!([]), json!({"knowledge": [id]})).await;
    let read = json!({"id": document["id"], "from": 0, "to": 20});
    let input = format!(
        "Hello over there, friends. [call=search_knowledge {{\"query\": \"berth\"}}] [call=read_document {read}] [cite=1] [tokens=1]"
    );
    let frames = frames_of(&client, &agent, &input).await;
    let outputs = results_of(&frames);
    let numbers = |output: &Value| {
        let passages = output["passages"].as_array().unwrap();
        passages.iter().map(|passage| passage["number"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(outputs[0]["passages"][0]["document"], document["id"]);
    assert_eq!((numbers(&outputs[0]), numbers(&outputs[1])), (vec![1], vec![2]), "{outputs:?}");
    assert_eq!(of_kind(&frames, "citation.added")[0]["source"]["id"], document["id"]);
    let refused = client.post("/v1/agents", json!({"name": "x", "knowledge": vec![id; 17]})).await;
    assert_eq!(code_of(refused).0, 400);
}

async fn a_later_turn_has_no_numbers_of_an_earlier_one(deployment: Deployment) {
    let upstream = TestUpstream::calling(SEARCH, &["Twelve [1]. ", "Yes."]).await;
    upstream.permit_words(4);
    let mut deployment = asking(deployment, &upstream).with("HOLDFAST_KNOWLEDGE_TOKENS", 1);
    let client = deployment.client();
    let (agent_id, _) = searching_agent(&client).await;
    let first = json!({"input": "What does a night cost, my friend?", "agent_id": agent_id});
    let first = client.post("/v1/runs", first).await.unwrap();
    let run = client.wait_for_run(first["run"]["id"].as_str().unwrap()).await;
    assert_eq!(run["output_message"]["content"], "Twelve [1]. Yes.");
    let path = format!("/v1/conversations/{}/messages", run["conversation_id"].as_str().unwrap());
    let second = client.post(&path, json!({"content": "Really?"})).await.unwrap();
    client.wait_for_run(second["run"]["id"].as_str().unwrap()).await;
    let requests = upstream.requests();
    let later: Vec<&Value> = requests.iter().filter(|request| request.to_string().contains("Really?")).collect();
    assert!(later[0].to_string().contains("Twelve. Yes."), "{}", later[0]);
    assert!(!later[0].to_string().contains("passages\\\":"), "{}", later[0]);
}

async fn a_result_has_the_passages_that_fit(deployment: Deployment) {
    let upstream = TestUpstream::calling("search_knowledge {\"query\": \"keel\"}", &["Six."]).await;
    upstream.permit_words(8);
    let mut deployment = asking(deployment, &upstream)
        .with("HOLDFAST_KNOWLEDGE_TOKENS", 1)
        .with("HOLDFAST_PASSAGE_CHARS", 100)
        .with("HOLDFAST_TOOL_RESULT_CHARS", 700);
    let client = deployment.client();
    let collection = collection(&client, "Keels").await;
    ingest(&client, &collection, "keel.txt", "The keel holds fast. ".repeat(40)).await;
    let id = collection.rsplit('/').next().unwrap();
    let agent_id = agent(&client, json!([]), json!({"knowledge": [id]})).await;
    let frames = frames_of(&client, &agent_id, "What holds fast here, my friend?").await;
    let result = &results_of(&frames)[0];
    let (fitting, left_out) = (result["passages"].as_array().unwrap().len(), result["left_out"].as_u64().unwrap());
    assert_eq!((fitting, left_out), (2, 6), "{result}");
    let told = of_kind(&frames, "context.retrieved");
    assert_eq!(told.iter().map(|told| told["passages"].as_array().unwrap().len()).sum::<usize>(), fitting);
    let text = upstream.requests()[1]["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    let text = text.as_str().unwrap();
    assert!(text.ends_with("[6 more have no room here; ask for fewer, or for a shorter part]"), "{text}");
    assert!(text.split("\n[6 more").next().unwrap().chars().count() <= 700, "{text}");
}

async fn a_history_has_the_sources_of_the_stream(mut deployment: Deployment) {
    let client = deployment.client();
    let collection = collection(&client, "Ports").await;
    ingest(&client, &collection, "harbour.md", HARBOUR).await;
    let run = ask(&client, &collection, "What does the harbour master open? [cite] [tokens=1]").await;
    let (id, conversation) = (run["id"].as_str().unwrap(), run["conversation_id"].as_str().unwrap());
    let stream = client.request(Method::GET, &format!("/v1/runs/{id}/events?wire=ai-sdk")).send().await.unwrap();
    let stream = stream.text().await.unwrap();
    let chunks: Vec<Value> =
        stream.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect();
    let sources = || chunks.iter().filter(|chunk| chunk["type"] == "source-document");
    assert_eq!(sources().count(), 1);
    assert_eq!(chunks.iter().filter(|chunk| chunk["type"] == "text-start").count(), 1, "a source ends no text");
    until("the history has the answer", || async {
        let history = client.get(&format!("/v1/conversations/{conversation}/messages")).await.unwrap();
        (history["items"].as_array().unwrap().len() == 2).then_some(())
    })
    .await;
    let history = client.get(&format!("/api/chat/{conversation}/messages")).await.unwrap();
    let parts = history[1]["parts"].as_array().unwrap();
    let texts = parts.iter().filter(|part| part["type"] == "text").count();
    assert_eq!(texts, 1, "{parts:?}");
    let source = parts.iter().find(|part| part["type"] == "source-document");
    assert_eq!(source, sources().next());
}
