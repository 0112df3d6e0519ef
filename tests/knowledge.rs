//! Knowledge: documents become ready on any worker, searches find their passages, and answers cite what stands there.

use std::collections::BTreeMap;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_servers::Bucket;

use crate::{
    files::{asking, upload},
    in_both_modes, in_either_mode,
    support::{
        Client, Deployment, ErrorResponse, EventFrame, Gate, GateMode, agent, frames_of, of_kind, stream_of, until,
        upstream::TestUpstream,
    },
};

in_both_modes!(
    a_document_becomes_ready_and_a_search_finds_it,
    an_answer_cites_only_passages_before_its_model,
    a_deleted_document_is_nowhere,
    a_later_attempt_reads_no_deleted_document,
    vectors_are_paid_once_and_find_what_words_do_not,
);
in_either_mode!(
    a_failed_document_says_why_and_can_be_tried_again,
    an_agent_searches_and_reads_on,
    a_later_turn_has_no_numbers_of_an_earlier_one,
    a_result_has_the_passages_that_fit,
    a_collection_is_its_owners_alone_unless_everyone_may_read_it,
    each_limit_of_knowledge_holds_at_its_edge,
    a_repeated_request_is_one_document,
    a_document_that_waits_can_be_cancelled_and_tried_again,
    a_document_under_way_can_be_cancelled,
    documents_are_listed_page_by_page,
    a_silent_store_of_files_holds_up_no_removal_of_documents,
    a_history_has_the_sources_of_the_stream,
);

pub const HARBOUR: &str = "# Harbour\n\nThe harbour master opens the lock at dawn.\n\n## Fees\n\nA berth costs twelve crowns a night, and the lock is free.\n\n## 中文\n\n港口在日出时开放。\n";

/// Creates a collection, and returns its path.
pub async fn collection(client: &Client, name: &str) -> String {
    let created = client.post("/v1/collections", json!({ "name": name })).await.unwrap();
    format!("/v1/collections/{}", created["id"].as_str().unwrap())
}

/// Adds a file to a collection, and returns the document with its run.
pub async fn add(client: &Client, collection: &str, name: &str, bytes: impl Into<Vec<u8>>) -> Value {
    let file = upload(client, name, bytes).await;
    client.post(&format!("{collection}/documents"), json!({"file_id": file["id"]})).await.unwrap()
}

/// Adds a file, and returns the document when its run has ended.
pub async fn ingest(client: &Client, collection: &str, name: &str, bytes: impl Into<Vec<u8>>) -> Value {
    let added = add(client, collection, name, bytes).await;
    client.wait_for_run(added["run"]["id"].as_str().unwrap()).await;
    client.get(&path_of(&added["document"])).await.unwrap()
}

pub fn path_of(document: &Value) -> String {
    format!("/v1/documents/{}", document["id"].as_str().unwrap())
}

pub async fn text_of(client: &Client, document: &Value, range: &str) -> String {
    let request = client.request(Method::GET, &format!("{}/text{range}", path_of(document)));
    request.send().await.unwrap().error_for_status().unwrap().text().await.unwrap()
}

pub async fn search(client: &Client, collection: &str, query: &str) -> Vec<Value> {
    let url = reqwest::Url::parse_with_params("http://h", [("query", query)]).unwrap();
    let request = client.request(Method::GET, &format!("{collection}/search?{}", url.query().unwrap()));
    let found: Value = request.send().await.unwrap().error_for_status().unwrap().json().await.unwrap();
    found["items"].as_array().unwrap().clone()
}

pub fn code_of<T: std::fmt::Debug>(answer: Result<T, ErrorResponse>) -> (u16, String) {
    let error = answer.unwrap_err();
    (error.status, error.code)
}

/// Asks a question in a conversation with the collection, and returns the ended run.
pub async fn ask(client: &Client, collection: &str, question: &str) -> Value {
    let id = collection.rsplit('/').next().unwrap();
    let conversation = client.post("/v1/conversations", json!({"knowledge": [id]})).await.unwrap();
    assert_eq!(conversation["knowledge"], json!([id]));
    let path = format!("/v1/conversations/{}/messages", conversation["id"].as_str().unwrap());
    let posted = client.post(&path, json!({ "content": question })).await.unwrap();
    client.wait_for_run(posted["run"]["id"].as_str().unwrap()).await
}

async fn a_document_becomes_ready_and_a_search_finds_it(mut deployment: Deployment) {
    let client = deployment.client();
    let collection = collection(&client, "Ports").await;
    let added = add(&client, &collection, "harbour.md", HARBOUR).await;
    let (document, run) = (&added["document"], added["run"]["id"].as_str().unwrap());
    assert_eq!(document["run_id"], added["run"]["id"]);
    let frames = client.events(run, None).await.rest().await;
    let stages: Vec<&str> =
        of_kind(&frames, "document.progress").iter().map(|data| data["stage"].as_str().unwrap()).collect();
    assert_eq!((stages.first(), stages.last()), (Some(&"extract"), Some(&"index")));
    let ready = client.get(&path_of(document)).await.unwrap();
    assert_eq!((&ready["status"], &ready["chars"]), (&json!("ready"), &json!(HARBOUR.chars().count())));
    assert_eq!(text_of(&client, document, "").await, HARBOUR);
    assert_eq!(text_of(&client, document, "?from=2&to=9").await, "Harbour");
    for (query, expected) in [
        ("How much does a berth cost?", "twelve crowns"),
        ("opening locks", "opens the lock"),
        ("日出开放", "港口在日出时开放"),
    ] {
        let found = search(&client, &collection, query).await;
        let first = &found[0];
        assert!(first["text"].as_str().unwrap().contains(expected), "{query}: {found:?}");
        let (start, end) = (first["start"].as_u64().unwrap(), first["end"].as_u64().unwrap());
        assert_eq!(first["text"], text_of(&client, document, &format!("?from={start}&to={end}")).await);
    }
    assert!(search(&client, &collection, "zeppelin").await.is_empty());
    assert!(search(&client, &collection, "?!").await.is_empty());
    let listed = client.get(&format!("{collection}/documents")).await.unwrap();
    assert_eq!(listed["items"], json!([ready]));
    let conversations = client.get("/v1/conversations").await.unwrap();
    assert_eq!(conversations["items"], json!([]), "the conversation of a document is hidden");
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

async fn a_deleted_document_is_nowhere(mut deployment: Deployment) {
    let client = deployment.client();
    let collection = collection(&client, "Ports").await;
    let document = ingest(&client, &collection, "harbour.md", HARBOUR).await;
    client.delete(&path_of(&document)).await.unwrap();
    assert!(search(&client, &collection, "lock").await.is_empty());
    assert_eq!(code_of(client.get(&path_of(&document)).await), (404, "document_not_found".into()));
    let run = ask(&client, &collection, "What does the harbour master open? [cite=1] [tokens=1]").await;
    let message = &run["output_message"];
    assert_eq!(message["content"], "It is so. This ");
    assert_eq!(message["retrieval_context"]["dropped"], json!([{"number": 1, "reason": "not_told"}]));
    client.delete(&collection).await.unwrap();
    assert_eq!(code_of(client.get(&collection).await), (404, "collection_not_found".into()));
    assert_eq!(client.get("/v1/collections").await.unwrap()["items"], json!([]));
}

async fn a_failed_document_says_why_and_can_be_tried_again(mut deployment: Deployment) {
    let client = deployment.client();
    let collection = collection(&client, "Broken").await;
    let broken = ingest(&client, &collection, "broken.pdf", &b"%PDF-1.4 broken"[..]).await;
    assert_eq!((&broken["status"], &broken["error"]["code"]), (&json!("failed"), &json!("malformed_document")));
    assert!(broken["error"]["message"].as_str().unwrap().contains("damaged"));
    let again = client.post(&format!("{}/retry", path_of(&broken)), json!({})).await.unwrap();
    assert_ne!(again["run"]["id"], broken["run_id"]);
    client.wait_for_run(again["run"]["id"].as_str().unwrap()).await;
    let still = client.get(&path_of(&broken)).await.unwrap();
    assert_eq!((&still["status"], &still["run_id"]), (&json!("failed"), &again["run"]["id"]));
    let ready = ingest(&client, &collection, "a.txt", "a text").await;
    let refused = client.post(&format!("{}/retry", path_of(&ready)), json!({})).await;
    assert_eq!(code_of(refused), (409, "nothing_to_retry".into()));
    let empty = ingest(&client, &collection, "b.txt", " \n ").await;
    assert_eq!(empty["error"]["code"], "no_text");
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

const SEARCH: &str = "search_knowledge {\"query\": \"berth\"}";

async fn a_later_attempt_reads_no_deleted_document(deployment: Deployment) {
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

async fn a_document_that_waits_can_be_cancelled_and_tried_again(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_WORKER_CONCURRENCY", 1);
    let client = deployment.client();
    let collection = collection(&client, "Ports").await;
    let mut busy = client.stream("[tokens=100000] [delay=50]").await;
    busy.up_to("message.delta").await;
    let added = add(&client, &collection, "harbour.md", HARBOUR).await;
    cancel(&client, added["run"]["id"].as_str().unwrap()).await;
    let path = path_of(&added["document"]);
    let document = client.get(&path).await.unwrap();
    assert_eq!((&document["status"], &document["error"]), (&json!("cancelled"), &Value::Null));
    cancel(&client, &busy.run_id).await;
    let again = client.post(&format!("{path}/retry"), json!({})).await.unwrap();
    client.wait_for_run(again["run"]["id"].as_str().unwrap()).await;
    assert_eq!(client.get(&path).await.unwrap()["status"], "ready");
}

async fn a_document_under_way_can_be_cancelled(deployment: Deployment) {
    let mut bucket = Bucket::start();
    let mut deployment =
        bucket.settings().into_iter().fold(deployment, |deployment, (name, value)| deployment.with(name, value));
    let client = deployment.client();
    let collection = collection(&client, "Ports").await;
    let file = upload(&client, "harbour.md", HARBOUR).await;
    bucket.stop();
    let added = client.post(&format!("{collection}/documents"), json!({"file_id": file["id"]})).await.unwrap();
    let run_id = added["run"]["id"].as_str().unwrap();
    client.events(run_id, None).await.up_to("document.progress").await;
    cancel(&client, run_id).await;
    assert_eq!(client.get(&path_of(&added["document"])).await.unwrap()["status"], "cancelled");
}

async fn cancel(client: &Client, run_id: &str) {
    client.post(&format!("/v1/runs/{run_id}/cancel"), json!({})).await.unwrap();
    assert_eq!(client.wait_for_run(run_id).await["status"], "cancelled");
}

async fn documents_are_listed_page_by_page(mut deployment: Deployment) {
    let client = deployment.client();
    let collection = collection(&client, "Ports").await;
    let mut added = Vec::new();
    for name in ["a.md", "b.md", "c.md"] {
        added.push(ingest(&client, &collection, name, name).await);
    }
    added.reverse();
    let path = format!("{collection}/documents?limit=2");
    let page = client.get(&path).await.unwrap();
    assert_eq!(page["items"], json!(added[..2]), "the newest comes first");
    let rest = client.get(&format!("{path}&cursor={}", page["next"].as_str().unwrap())).await.unwrap();
    assert_eq!((&rest["items"], &rest["next"]), (&json!(added[2..]), &Value::Null));
    assert_eq!(code_of(client.get(&format!("{path}&cursor=x")).await), (400, "invalid_cursor".into()));
}

async fn a_collection_is_its_owners_alone_unless_everyone_may_read_it(mut deployment: Deployment) {
    let base = deployment.client();
    let (ann, bob) = (base.user("ann"), base.user("bob"));
    let own = collection(&ann, "Ann's").await;
    let document = ingest(&ann, &own, "harbour.md", HARBOUR).await;
    let retry = format!("{}/retry", path_of(&document));
    for answer in [
        bob.get(&own).await,
        bob.get(&path_of(&document)).await,
        bob.get(&format!("{own}/documents")).await,
        bob.get(&format!("{own}/search?query=lock")).await,
        bob.get(&format!("{}/text", path_of(&document))).await,
        bob.post(&retry, json!({})).await,
        bob.delete(&own).await,
        bob.delete(&path_of(&document)).await,
        bob.post("/v1/conversations", json!({"knowledge": [own.rsplit('/').next().unwrap()]})).await,
    ] {
        assert_eq!(answer.unwrap_err().status, 404);
    }
    let file = upload(&bob, "b.txt", "bob's").await;
    let into = bob.post(&format!("{own}/documents"), json!({"file_id": file["id"]})).await;
    assert_eq!(code_of(into), (404, "collection_not_found".into()));
    let foreign = ann.post(&format!("{own}/documents"), json!({"file_id": file["id"]})).await;
    assert_eq!(code_of(foreign), (404, "file_not_found".into()));
    let shared = ann.post("/v1/collections", json!({"name": "All's", "readable_by": "everyone"})).await.unwrap();
    let shared = format!("/v1/collections/{}", shared["id"].as_str().unwrap());
    let document = ingest(&ann, &shared, "harbour.md", HARBOUR).await;
    let seen = bob.get(&path_of(&document)).await.unwrap();
    assert_eq!((&seen["status"], &seen["file_id"], &seen["run_id"]), (&json!("ready"), &Value::Null, &Value::Null));
    let run = ask(&bob, &shared, "What does the harbour master open? [cite=1] [tokens=1]").await;
    assert_eq!(run["output_message"]["retrieval_context"]["documents"][0]["id"], document["id"]);
    assert_eq!(code_of(bob.delete(&path_of(&document)).await).0, 404);
    assert_eq!(bob.get("/v1/collections").await.unwrap()["items"], json!([]));
}

async fn each_limit_of_knowledge_holds_at_its_edge(deployment: Deployment) {
    let mut deployment = deployment
        .with("HOLDFAST_OWNER_COLLECTIONS", 2)
        .with("HOLDFAST_OWNER_DOCUMENTS", 3)
        .with("HOLDFAST_OWNER_TEXT_BYTES", 990)
        .with("HOLDFAST_MAX_DOCUMENT_BYTES", 1000)
        .with("HOLDFAST_PASSAGE_CHARS", 100)
        .with("HOLDFAST_KNOWLEDGE_TOKENS", 60)
        .with("HOLDFAST_EXTRACTIONS", 1);
    let client = deployment.client();
    let collection = collection(&client, "a").await;
    client.post("/v1/collections", json!({"name": "b"})).await.unwrap();
    let third = client.post("/v1/collections", json!({"name": "c"})).await;
    assert_eq!(code_of(third), (403, "too_many_collections".into()));
    for name in ["", " ", &"x".repeat(201)] {
        let refused = client.post("/v1/collections", json!({ "name": name })).await;
        assert_eq!(code_of(refused), (400, "invalid_collection".into()));
    }
    let words = "The keel holds fast. ".repeat(47);
    let full = ingest(&client, &collection, "full.txt", words.trim_end()).await;
    assert_eq!((&full["status"], full["chars"].as_u64().unwrap() < 1000), (&json!("ready"), true));
    let longest = search(&client, &collection, "keel").await;
    assert!(longest.iter().all(|found| found["text"].as_str().unwrap().chars().count() <= 100));
    let long = ingest(&client, &collection, "long.txt", "x".repeat(1001)).await;
    assert_eq!(long["error"]["code"], "document_too_large");
    let picture = upload(&client, "a.png", &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..]).await;
    let refused = client.post(&format!("{collection}/documents"), json!({"file_id": picture["id"]})).await;
    assert_eq!(code_of(refused), (415, "document_type_refused".into()));
    // The first text has 986 bytes.
    let third = ingest(&client, &collection, "third.txt", "third").await;
    assert_eq!((&third["status"], &third["error"]["code"]), (&json!("failed"), &json!("too_much_text")));
    assert!(third["error"]["message"].as_str().unwrap().contains("990 bytes"), "{third}");
    let file = upload(&client, "fourth.txt", "fourth").await;
    let fourth = client.post(&format!("{collection}/documents"), json!({"file_id": file["id"]})).await;
    assert_eq!(code_of(fourth), (403, "too_many_documents".into()));
    let run = ask(&client, &collection, "Does the keel hold fast, friends?").await;
    let frames = client.events(run["id"].as_str().unwrap(), None).await.rest().await;
    let told = of_kind(&frames, "context.retrieved")[0]["passages"].as_array().unwrap().len();
    assert_eq!(told, 2, "two passages of 100 characters have at most 60 tokens");
    client.delete(&path_of(&full)).await.unwrap();
    until("the sweeper has made room", || async {
        let again = client.post(&format!("{}/retry", path_of(&third)), json!({})).await.unwrap();
        let run = client.wait_for_run(again["run"]["id"].as_str().unwrap()).await;
        (run["status"] == "completed").then_some(())
    })
    .await;
}

async fn a_repeated_request_is_one_document(mut deployment: Deployment) {
    let client = deployment.client();
    let collection = collection(&client, "Ports").await;
    let file = upload(&client, "a.txt", "a text").await;
    let add = |title: &'static str| {
        let body = json!({"file_id": file["id"], "title": title});
        let request = client.request(Method::POST, &format!("{collection}/documents"));
        request.header("idempotency-key", "k").json(&body).send()
    };
    let first: Value = add("A").await.unwrap().json().await.unwrap();
    let second = add("A").await.unwrap();
    assert_eq!(second.status(), StatusCode::ACCEPTED);
    let second: Value = second.json().await.unwrap();
    assert_eq!((&second["document"]["id"], &second["run"]["id"]), (&first["document"]["id"], &first["run"]["id"]));
    assert_eq!(add("B").await.unwrap().status(), StatusCode::UNPROCESSABLE_ENTITY);
    let listed = client.get(&format!("{collection}/documents")).await.unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
}

async fn a_silent_store_of_files_holds_up_no_removal_of_documents(deployment: Deployment) {
    let bucket = tokio::task::spawn_blocking(Bucket::start).await.unwrap();
    let mut deployment = deployment.with("HOLDFAST_OWNER_DOCUMENTS", 1);
    let mut gate = None;
    for (variable, value) in bucket.settings() {
        let value = match value.strip_prefix("http://") {
            // The gate knows servers by the URLs of databases.
            Some(address) => {
                let gate = gate.insert(Gate::before(&format!("s3@{address}/"), GateMode::Open));
                gate.url().replacen("s3@", "http://", 1)
            }
            None => value,
        };
        deployment = deployment.with(variable, value);
    }
    let client = deployment.client();
    let collection = collection(&client, "Ports").await;
    let document = ingest(&client, &collection, "harbour.md", HARBOUR).await;
    let (unused, next) = (upload(&client, "a.txt", "a").await, upload(&client, "b.txt", "b").await);
    gate.unwrap().set_mode(GateMode::Silent);
    client.delete(&format!("/v1/files/{}", unused["id"].as_str().unwrap())).await.unwrap();
    client.delete(&path_of(&document)).await.unwrap();
    until("the sweeper has removed the document", || async {
        client.post(&format!("{collection}/documents"), json!({"file_id": next["id"]})).await.ok()
    })
    .await;
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

async fn vectors_are_paid_once_and_find_what_words_do_not(deployment: Deployment) {
    let upstream = TestUpstream::start(&["fine"]).await;
    let mut deployment = deployment
        .with("HOLDFAST_EMBEDDING_PROVIDER", "openai")
        .with("HOLDFAST_EMBEDDING_MODEL", "meanings")
        .with("HOLDFAST_EMBEDDING_BASE_URL", &upstream.base_url)
        .with("HOLDFAST_EMBEDDING_BATCH", 1)
        .with("HOLDFAST_PASSAGE_CHARS", 60);
    let mut client = deployment.client();
    let collection = collection(&client, "Ports").await;
    let paragraph = |n: usize| format!("Paragraph p{n} says that a keel holds the ship.\n\n");
    let long: String = (0..150).map(paragraph).chain(["A berth costs twelve crowns.\n\n".into()]).collect();
    let added = add(&client, &collection, "long.md", long).await;
    for asked in [20, 60, 100] {
        until("the provider was asked", || async { (upstream.requests().len() >= asked).then_some(()) }).await;
        deployment.kill_worker();
        client = deployment.client();
    }
    let run = client.wait_for_run(added["run"]["id"].as_str().unwrap()).await;
    assert_eq!(run["status"], "completed", "{run}");
    let mut paid: BTreeMap<String, usize> = BTreeMap::new();
    for request in upstream.requests() {
        *paid.entry(request["input"][0].as_str().unwrap().to_owned()).or_default() += 1;
    }
    let passages = client.get(&path_of(&added["document"])).await.unwrap()["passages"].as_u64().unwrap();
    let again = paid.values().filter(|times| **times > 1).count();
    assert_eq!(paid.len() as u64, passages);
    assert!(again <= 3 && paid.values().all(|times| *times <= 2), "only calls in flight may be repeated: {again}");
    assert!(search(&client, &collection, "mooring price").await.is_empty());
    let run = ask(&client, &collection, "mooring price [cite=1] [tokens=1]").await;
    let cited = &run["output_message"]["retrieval_context"]["documents"][0];
    let place = format!("?from={}&to={}", cited["start"], cited["end"]);
    assert!(text_of(&client, &added["document"], &place).await.contains("A berth costs"), "{run}");
}
