//! Pictures by address: the worker fetches each once, under the rules of egress.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use axum::{Router, extract::State, http::header::CONTENT_TYPE, response::IntoResponse, routing::get};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{call, completion, create};
use crate::{
    files::PIXEL,
    support::{
        Client, Embedded, Holdfast,
        providers::{OPENAI, RuledProvider, ScriptedReply},
        tokens::{SECRET, claims, token},
    },
    tool_files::BASE64,
};

/// A server with one picture, which counts how often it was fetched.
struct PictureServer {
    port: u16,
    fetched: Arc<AtomicUsize>,
}

impl PictureServer {
    async fn start() -> Self {
        let fetched = Arc::new(AtomicUsize::new(0));
        let picture = |State(fetched): State<Arc<AtomicUsize>>| async move {
            fetched.fetch_add(1, Relaxed);
            ([(CONTENT_TYPE, "image/png")], PIXEL.to_vec()).into_response()
        };
        let page = || async { ([(CONTENT_TYPE, "application/octet-stream")], vec![0_u8, 1, 2, 3, 255, 254]) };
        let notes = || async { "a note\n".repeat(3_000) };
        let routes =
            Router::new().route("/a.png", get(picture)).route("/other", get(page)).route("/{name}", get(notes));
        let routes = routes.with_state(Arc::clone(&fetched));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { port, fetched }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/a.png", self.port)
    }

    fn fetched(&self) -> usize {
        self.fetched.load(Relaxed)
    }
}

async fn start(
    pictures: &PictureServer,
    is_allowed: bool,
    script: Vec<ScriptedReply>,
) -> (Holdfast, Client, RuledProvider) {
    let provider = RuledProvider::start(OPENAI, script).await;
    let mut embedded = Embedded::new().with("HOLDFAST_MODEL_FILES", "image").with("HOLDFAST_MODEL_RETRIES", 0);
    if is_allowed {
        embedded = embedded.with("HOLDFAST_EGRESS_ALLOW", format!("127.0.0.1:{}", pictures.port));
    }
    embedded.settings.extend(provider.settings());
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    (holdfast, client, provider)
}

/// Returns how many pictures each request to the provider had.
fn pictures_sent(provider: &RuledProvider) -> Vec<usize> {
    assert_eq!(provider.refused().len(), 0, "{:#?}", provider.refused());
    let data_url = format!("data:image/png;base64,{BASE64}");
    provider.taken().iter().map(|request| request.messages().to_string().matches(&data_url).count()).collect()
}

async fn warnings(client: &Client, run_id: &str) -> Vec<Value> {
    let frames = client.events(run_id, None).await.rest().await;
    frames.into_iter().filter(|frame| frame.event == "warning.raised").map(|frame| frame.data).collect()
}

#[tokio::test]
async fn a_picture_by_address_is_fetched_once_and_is_a_file_then() {
    let pictures = PictureServer::start().await;
    let (_holdfast, client, provider) = start(&pictures, true, vec![ScriptedReply::text("A dot."); 2]).await;
    let parts = json!([
        {"type": "input_text", "text": "What is"},
        {"type": "input_image", "image_url": pictures.url()},
        {"type": "input_text", "text": "this?"}
    ]);
    let (status, first) = call(create(&client, &json!({"input": [{"role": "user", "content": parts}]}))).await;
    assert_eq!(status, 200, "{first}");
    let next = json!({"input": "And now?", "previous_response_id": first["id"]});
    assert_eq!(call(create(&client, &next)).await.0, 200);
    assert_eq!((pictures_sent(&provider), pictures.fetched()), (vec![1, 1], 1));
    let files = client.get("/v1/files").await.unwrap();
    assert_eq!((&files["items"][0]["name"], &files["items"][0]["media_type"]), (&json!("a.png"), &json!("image/png")));
    let conversation = first["metadata"]["conversation_id"].as_str().unwrap();
    let messages = client.get(&format!("/v1/conversations/{conversation}/messages")).await.unwrap();
    let asked = |message: &&Value| message["role"] == "user" && message["attachments"].is_array();
    let message = messages["items"].as_array().unwrap().iter().find(asked).unwrap();
    assert_eq!(message["attachments"][0]["file_id"], files["items"][0]["id"], "{message}");
    let sent = provider.taken()[0].messages().to_string();
    assert!(sent.contains(&format!("[The file at {}]", pictures.url())), "{sent}");
    assert!(warnings(&client, first["metadata"]["run_id"].as_str().unwrap()).await.is_empty());
}

#[tokio::test]
async fn a_picture_of_a_given_history_is_fetched_once_for_all_parts_of_its_run() {
    let pictures = PictureServer::start().await;
    let script = vec![ScriptedReply::call("ask", json!({})), ScriptedReply::text("Teal.")];
    let (_holdfast, client, provider) = start(&pictures, true, script).await;
    let image = json!({"type": "image_url", "image_url": {"url": pictures.url()}});
    let mut messages = vec![
        json!({"role": "user", "content": [{"type": "text", "text": "What is this?"}, image]}),
        json!({"role": "assistant", "content": "A dot."}),
        json!({"role": "user", "content": "Which colour?"}),
    ];
    let tools = json!([{"type": "function", "function": {"name": "ask", "parameters": {"type": "object"}}}]);
    let (_, first) = call(completion(&client, &json!({"messages": messages, "tools": tools}))).await;
    let message = &first["choices"][0]["message"];
    messages.push(message.clone());
    let call_id = &message["tool_calls"][0]["id"];
    messages.push(json!({"role": "tool", "tool_call_id": call_id, "content": "teal"}));
    let (status, second) = call(completion(&client, &json!({"messages": messages, "tools": tools}))).await;
    assert_eq!((status, &second["choices"][0]["message"]["content"]), (200, &json!("Teal.")), "{second}");
    assert_eq!((pictures_sent(&provider), pictures.fetched()), (vec![1, 1], 1));
}

#[tokio::test]
async fn files_by_address_count_for_the_address_of_an_anonymous_caller() {
    let pictures = PictureServer::start().await;
    let embedded = Embedded::new()
        .with("HOLDFAST_JWT_KEY", SECRET)
        .with("HOLDFAST_ANONYMOUS_BYTES_PER_HOUR", 64 * 1024)
        .with("HOLDFAST_EGRESS_ALLOW", format!("127.0.0.1:{}", pictures.port));
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let ask = async |client: &Client, name: &str| {
        let url = format!("http://127.0.0.1:{}/{name}", pictures.port);
        let parts = json!([{"type": "input_image", "image_url": url}, {"type": "input_text", "text": "[tokens=1]"}]);
        let (status, response) = call(create(client, &json!({"input": [{"role": "user", "content": parts}]}))).await;
        assert_eq!(status, 200, "{response}");
        let warned = warnings(client, response["metadata"]["run_id"].as_str().unwrap()).await;
        warned.into_iter().map(|warning| warning["message"].to_string()).collect::<String>()
    };
    for (name, is_kept) in [("one", true), ("two", true), ("three", false)] {
        // Another secret does not help.
        let made = client.post("/v1/users/anonymous", json!({})).await.unwrap();
        let user = client.token(made["token"].as_str().unwrap());
        let warned = ask(&user, name).await;
        assert_eq!(warned.is_empty(), is_kept, "{name}: {warned}");
        assert!(is_kept || warned.contains("may store 64 KiB per hour from one address"), "{warned}");
    }
    let named = client.token(&token(&claims("ann", json!({}))));
    assert_eq!(ask(&named, "three").await, "");
}

#[tokio::test]
async fn nothing_is_fetched_for_an_owner_without_room() {
    let pictures = PictureServer::start().await;
    let mut embedded = Embedded::new()
        .with("HOLDFAST_OWNER_FILES", 1)
        .with("HOLDFAST_MODEL_FILES", "image")
        .with("HOLDFAST_EGRESS_ALLOW", format!("127.0.0.1:{}", pictures.port));
    let provider = RuledProvider::start(OPENAI, vec![ScriptedReply::text("A dot."); 2]).await;
    embedded.settings.extend(provider.settings());
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    for (refusals, url) in [(0, pictures.url()), (1, format!("{}?again", pictures.url()))] {
        let parts = json!([{"type": "input_image", "image_url": url}]);
        let (status, response) = call(create(&client, &json!({"input": [{"role": "user", "content": parts}]}))).await;
        assert_eq!(status, 200, "{response}");
        let warned = warnings(&client, response["metadata"]["run_id"].as_str().unwrap()).await;
        let about_room = |warning: &&Value| warning["message"].as_str().unwrap().contains("may keep 1 files");
        assert_eq!((warned.len(), warned.iter().filter(about_room).count()), (refusals, refusals), "{warned:?}");
    }
    assert_eq!(pictures.fetched(), 1);
}

#[tokio::test]
async fn what_cannot_be_had_is_a_line_and_a_warning_and_the_message_is_answered() {
    let pictures = PictureServer::start().await;
    let (_holdfast, client, provider) = start(&pictures, false, vec![ScriptedReply::text("I see nothing."); 4]).await;
    for (url, reason) in [
        (pictures.url(), "its address does not begin with https"),
        (format!("https://127.0.0.1:{}/a.png", pictures.port), "its address is not public"),
        (format!("https://localhost:{}/a.png", pictures.port), "its address is not public"),
        ("https://".to_owned(), "its address is invalid"),
    ] {
        let parts = json!([{"type": "input_image", "image_url": url}]);
        let (status, response) = call(create(&client, &json!({"input": [{"role": "user", "content": parts}]}))).await;
        assert_eq!((status, &response["status"]), (200, &json!("completed")), "{url}: {response}");
        let sent = provider.taken().pop().unwrap().messages().to_string();
        assert!(sent.contains(&format!("[The file at {url}]")) && sent.contains(reason), "{url}: {sent}");
        let warnings = warnings(&client, response["metadata"]["run_id"].as_str().unwrap()).await;
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!(warnings[0]["code"], "file_not_fetched");
        assert!(warnings[0]["message"].as_str().unwrap().contains(reason), "{warnings:?}");
    }
    assert_eq!(pictures.fetched(), 0);
}

#[tokio::test]
async fn an_answer_that_is_no_file_of_the_model_is_left_out() {
    let pictures = PictureServer::start().await;
    let (_holdfast, client, provider) = start(&pictures, true, vec![ScriptedReply::text("Fine.")]).await;
    let url = format!("http://127.0.0.1:{}/other", pictures.port);
    let messages = json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]);
    let (status, answer) = call(completion(&client, &json!({"messages": messages}))).await;
    assert_eq!((status, &answer["choices"][0]["message"]["content"]), (200, &json!("Fine.")), "{answer}");
    assert!(provider.taken()[0].messages().to_string().contains("the model takes no such files"));
}
