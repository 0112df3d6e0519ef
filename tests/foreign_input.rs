//! Bounds on the input of callers: schemas, hosts, bodies, and page sizes.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use reqwest::Method;
use serde_json::json;

use crate::support::{Deployment, Embedded, answer};

#[tokio::test]
async fn titles_and_file_names_lose_hidden_characters_and_names_need_a_visible_one() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let (hidden, plain) =
        ("in\u{202e}voice\u{200b} 👩\u{200d}💻 می\u{200c}خواهم", "invoice 👩\u{200d}💻 می\u{200c}خواهم");
    let conversation = client.post("/v1/conversations", json!({"title": hidden})).await.unwrap();
    assert_eq!(conversation["title"], plain);
    let path = format!("/v1/conversations/{}", conversation["id"].as_str().unwrap());
    assert_eq!(
        client.patch(&path, json!({"title": format!("{hidden}!")})).await.unwrap()["title"],
        format!("{plain}!")
    );
    let started = client.start(&format!("{hidden} [tokens=1]")).await;
    assert_eq!(started["conversation"]["title"], format!("{plain} [tokens=1]"));
    let agent = client.post("/v1/agents", json!({"name": "clerk\u{200b}"})).await.unwrap();
    assert_eq!(agent["name"], "clerk\u{200b}", "a name stays as it is");
    let briefing = json!({"agent_id": agent["id"], "title": hidden, "summary": "s"});
    assert_eq!(client.post("/v1/briefings", briefing).await.unwrap()["title"], plain);
    let file = client.request(Method::POST, "/v1/files").header("content-type", "text/plain").body("tide");
    let name = "attachment; filename*=UTF-8''a%E2%80%AEfdp%E2%80%8B.txt";
    assert_eq!(answer(file.header("content-disposition", name)).await.unwrap()["name"], "afdp.txt");
    let blank = "\u{200b}\u{202e} \u{3164}";
    for (path, body, code) in [
        ("/v1/conversations", json!({"title": blank}), "invalid_title"),
        ("/v1/agents", json!({"name": blank}), "invalid_agent"),
        ("/v1/briefings", json!({"agent_id": agent["id"], "title": blank, "summary": "s"}), "invalid_briefing"),
        (
            "/v1/briefings",
            json!({"agent_id": agent["id"], "title": "t", "summary": "s", "owner_id": blank}),
            "invalid_user",
        ),
        ("/v1/collections", json!({"name": blank}), "invalid_collection"),
        ("/v1/sessions/%E2%80%8B/messages", json!({"content": "hi"}), "invalid_session"),
    ] {
        let failure = client.post(path, body).await.unwrap_err();
        assert_eq!((failure.status, failure.code.as_str()), (400, code), "{path}");
    }
    let nameless = client.request(Method::GET, "/v1/runs").header("x-user", "\u{200b}");
    assert_eq!(answer(nameless).await.unwrap_err().code, "invalid_user");
}

#[tokio::test]
async fn client_tools_are_limited_before_any_schema_is_compiled() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let tools = |count: usize, schema: fn(usize) -> serde_json::Value| {
        let tool = |n: usize| json!({"name": format!("t{n}"), "input_schema": schema(n)});
        json!({"input": "[tokens=1]", "client_tools": (0..count).map(tool).collect::<Vec<_>>()})
    };
    let refused = async |body: serde_json::Value, part: &str| {
        let failure = client.post("/v1/runs", body).await.unwrap_err();
        assert_eq!((failure.status, failure.code.as_str()), (400, "invalid_client_tool"));
        let detail = failure.body["detail"].as_str().unwrap();
        assert!(detail.contains(part), "{detail:?} lacks {part:?}");
    };
    let pattern = |n: usize| json!({"properties": {"a": {"pattern": format!("a{n}"), "type": "string"}}});
    client.post("/v1/runs", tools(128, pattern)).await.unwrap();
    refused(tools(129, pattern), "128 client tools, not 129").await;
    let three = |n: usize| json!({"allOf": [{"pattern": "x"}, {"pattern": "y"}, {"pattern": format!("z{n}")}]});
    client.post("/v1/runs", tools(85, three)).await.unwrap();
    refused(tools(86, three), "258 patterns, and the limit is 256").await;
    refused(tools(2, |_| json!({"title": "x".repeat(131_072)})), "and the limit is 262144").await;
    let bomb = |_: usize| json!({"pattern": "(((.{40}){40}){40}){40}"});
    refused(tools(128, bomb), "a pattern may take 131072 bytes").await;
    assert_eq!(client.request(Method::GET, "/healthz").send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn two_hosts_in_one_request_are_refused() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let base = holdfast.base();
    let address = base.strip_prefix("http://").unwrap();
    let status = |head: String| {
        let mut socket = std::net::TcpStream::connect(address).unwrap();
        socket.write_all(format!("{head}\r\nconnection: close\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        (answer[9..12].to_owned(), answer.contains("\"invalid_host\""))
    };
    let accepted = ("200".to_owned(), false);
    let refused = ("400".to_owned(), true);
    assert_eq!(status(format!("GET /v1/runs HTTP/1.1\r\nhost: {address}")), accepted);
    assert_eq!(status(format!("GET http://{address}/v1/runs HTTP/1.1\r\nhost: {address}")), accepted);
    assert_eq!(status(format!("GET /v1/runs HTTP/1.1\r\nhost: {address}\r\nhost: evil.example")), refused);
    assert_eq!(status(format!("GET /v1/runs HTTP/1.1\r\nhost: {address}, evil.example")), refused);
    assert_eq!(status(format!("GET http://evil.example/v1/runs HTTP/1.1\r\nhost: {address}")), refused);
}

#[tokio::test]
async fn a_page_ends_at_its_byte_limit_and_the_next_page_continues() {
    let embedded = Embedded::new().with("HOLDFAST_MAX_PAGE_BYTES", "2000");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let first = client.start(&format!("[tokens=1] {}", "x".repeat(1_000))).await;
    let (run_id, conversation) = (first["run"]["id"].as_str().unwrap(), first["conversation"]["id"].as_str().unwrap());
    client.wait_for_run(run_id).await;
    for _ in 0..2 {
        let path = format!("/v1/conversations/{conversation}/messages");
        let response =
            client.post(&path, json!({"content": format!("[tokens=40] {}", "y".repeat(1_000))})).await.unwrap();
        client.wait_for_run(response["run"]["id"].as_str().unwrap()).await;
    }
    let all = async |list: String| {
        let separator = if list.contains('?') { '&' } else { '?' };
        let (mut items, mut pages, mut cursor) = (Vec::new(), 0, String::new());
        loop {
            let page = client.get(&format!("{list}{cursor}")).await.unwrap();
            assert!(!page["items"].as_array().unwrap().is_empty());
            items.extend(page["items"].as_array().unwrap().clone());
            pages += 1;
            match page["next"].as_str() {
                Some(next) => cursor = format!("{separator}cursor={next}"),
                None => return (items, pages),
            }
        }
    };
    let (messages, pages) = all(format!("/v1/conversations/{conversation}/messages")).await;
    assert!(messages.len() == 6 && pages > 1, "{} in {pages}", messages.len());
    let (runs, _) = all("/v1/runs".to_owned()).await;
    assert!(runs.len() == 3 && runs.iter().all(|run| run["output_message"].is_null()));
    let (trace, _) = all(format!("/v1/runs/{run_id}/messages?limit=1")).await;
    assert_eq!(trace.len(), 2);
    let history = client.get(&format!("/api/chat/{conversation}/messages")).await.unwrap();
    assert!(history.as_array().unwrap().len() < 6, "a history has the newest that fit");
    let last = runs[0]["id"].as_str().unwrap();
    let page = async |after: &str| {
        let request = client.request(Method::GET, &format!("/v1/runs/{last}/events?limit=200&after={after}"));
        answer(request.header("accept", "application/json")).await.unwrap()
    };
    let (mut events, mut after, mut pages) = (0, "0-0".to_owned(), 0);
    loop {
        let page = page(&after).await;
        events += page["events"].as_array().unwrap().len();
        after = page["last_event_id"].as_str().unwrap().to_owned();
        pages += 1;
        if page["complete"] == true {
            break;
        }
    }
    assert!(events > 40 && pages > 1, "{events} in {pages}");
}

/// Begins a request whose body has `promised` bytes, of which `sent` arrive.
fn send(host: &str, user: &str, promised: usize, sent: usize) -> TcpStream {
    let mut socket = TcpStream::connect(host).unwrap();
    let head = format!(
        "POST /v1/runs HTTP/1.1\r\nhost: {host}\r\nx-user: {user}\r\ncontent-type: application/json\r\n\
         content-length: {promised}\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).unwrap();
    // The answer may come before the whole body.
    let _ = socket.write_all(&vec![b' '; sent]);
    socket
}

fn status(mut socket: TcpStream) -> String {
    let mut line = [0; 12];
    socket.read_exact(&mut line).unwrap();
    String::from_utf8_lossy(&line[9..]).into_owned()
}

#[tokio::test]
async fn bodies_in_flight_are_limited_per_caller() {
    let embedded =
        Embedded::new().with("HOLDFAST_BODIES_PER_CALLER_BYTES", "40000").with("HOLDFAST_BODIES_BYTES", "60000");
    let mut holdfast = embedded.start();
    let base = holdfast.base();
    let host = base.strip_prefix("http://").unwrap();
    // The last byte never comes.
    let hold = |user: &str, bytes: usize| send(host, user, bytes + 1, bytes);
    let ask = |user: &str, bytes: usize| status(send(host, user, bytes, bytes));
    // A body without bytes takes no room from those that arrive.
    let until_refused = async |user: &str, code: &str| {
        crate::support::until("the bytes have arrived", || async { (ask(user, 0) == code).then_some(()) }).await;
    };
    let silent: Vec<_> = (0..16).map(|_| send(host, "sue", 900, 0)).collect();
    assert_eq!(ask("sue", 40_000), "400", "it was read; promised bytes do not count");
    let ann = hold("ann", 40_000);
    until_refused("ann", "429").await;
    let eve = hold("eve", 40_000);
    until_refused("eve", "429").await;
    // The first 16 KiB of each body count for its caller alone.
    assert_eq!(ask("dan", 30_000), "503");
    assert_eq!(ask("dan", 16_384), "400", "others' large bodies refuse no small one");
    drop((ann, eve, silent));
    crate::support::until("the bytes of broken requests no longer count", || async {
        (ask("ann", 40_000) == "400").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_body_of_many_small_values_is_refused_before_it_is_read() {
    let mut deployment = Deployment::on(Embedded::new().with("HOLDFAST_MAX_BODY_VALUES", 20));
    let client = deployment.client();
    // Three brackets, three colons, a comma, and those of the list.
    let body = |items: usize| json!({"input": "[1,2,3] \\\", {}", "metadata": {"list": vec![0; items]}});
    client.post("/v1/runs", body(14)).await.unwrap();
    let refused = client.post("/v1/runs", body(15)).await.unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (413, "body_too_large"));
}
