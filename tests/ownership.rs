//! On every route, the id of another owner looks exactly like an unknown id.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    files::upload,
    in_both_modes,
    support::{Client, Deployment, Embedded, agent, answer, frames_of},
};

in_both_modes!(another_owners_id_looks_like_an_unknown_one);

async fn another_owners_id_looks_like_an_unknown_one(mut deployment: Deployment) {
    let client = deployment.client();
    let (ann, bob) = (client.user("ann"), client.user("bob"));
    // A client follows the run, so the API has it in memory.
    let followed = ann.stream("[tokens=400] [delay=20] hi").await;
    let run = followed.run_id.clone();
    let conversation = ann.run(&run).await["conversation_id"].as_str().unwrap().to_owned();
    let unknown = "01890000-0000-7000-8000-000000000000";
    let message = json!({"content": "[tokens=1]"});
    let calls: [(Method, String, Option<Value>); 17] = [
        (Method::GET, "/v1/conversations/{c}".into(), None),
        (Method::PATCH, "/v1/conversations/{c}".into(), Some(json!({"title": "mine"}))),
        (Method::DELETE, "/v1/conversations/{c}".into(), None),
        (Method::GET, "/v1/conversations/{c}/messages".into(), None),
        (Method::POST, "/v1/conversations/{c}/messages".into(), Some(message.clone())),
        (Method::POST, "/v1/conversations/{c}/messages/{r}/restore".into(), None),
        (Method::POST, "/api/conversations/{c}/messages".into(), Some(message)),
        (Method::POST, "/api/chat/{c}/stop".into(), None),
        (Method::GET, "/v1/runs/{r}".into(), None),
        (Method::GET, "/v1/runs/{r}/events".into(), None),
        (Method::GET, "/v1/runs/{r}/events?wire=chat".into(), None),
        (Method::GET, "/v1/runs/{r}/events?wire=agent".into(), None),
        (Method::GET, "/v1/runs/{r}/events?snapshot=true".into(), None),
        (Method::GET, "/v1/stream/runs/{r}".into(), None),
        (Method::GET, "/v1/stream/runs/{r}?offset=now&live=sse".into(), None),
        (Method::GET, "/v1/runs/{r}/wait".into(), None),
        (Method::POST, "/v1/runs/{r}/cancel".into(), None),
    ];
    for (method, path, body) in calls {
        let ask = async |conversation: &str, run: &str| {
            let mut request = bob.request(method.clone(), &path.replace("{c}", conversation).replace("{r}", run));
            if let Some(body) = &body {
                request = request.json(body);
            }
            let failure = answer(request).await.expect_err("it was accepted");
            (failure.status, failure.body.to_string().replace(conversation, "").replace(run, ""))
        };
        let (foreign, missing) = (ask(&conversation, &run).await, ask(unknown, unknown).await);
        assert_eq!(foreign, missing, "{method} {path}");
        assert_eq!(foreign.0, 404, "{method} {path}");
    }
    another_owners_memory_looks_like_an_unknown_one(&ann, &bob).await;
    another_owners_documents_look_like_unknown_ones(&ann, &bob).await;
    another_owners_task_looks_like_an_unknown_one(&bob, &conversation, &run).await;
    let continued = bob.post("/v1/runs", json!({"input": "x", "conversation_id": conversation})).await.unwrap_err();
    assert_eq!((continued.status, continued.code.as_str()), (404, "conversation_not_found"));
    let talked =
        bob.post("/api/chat/stream", json!({"message": "x", "conversationId": conversation})).await.unwrap_err();
    assert_eq!((talked.status, talked.code.as_str()), (404, "conversation_not_found"));
    assert_eq!(bob.get("/v1/runs").await.unwrap()["items"], json!([]));
    assert_eq!(bob.get(&format!("/v1/runs?conversation_id={conversation}")).await.unwrap()["items"], json!([]));
    assert_eq!(bob.get("/v1/conversations").await.unwrap()["items"], json!([]));
    assert_eq!(bob.get("/v1/conversations?q=hi").await.unwrap()["items"], json!([]));
    assert_ne!(ann.run(&run).await["status"], "cancelled");
}

async fn another_owners_memory_looks_like_an_unknown_one(ann: &Client, bob: &Client) {
    let agent_id = agent(ann, json!([]), json!({"memory": true})).await;
    frames_of(ann, &agent_id, "[call=remember {\"text\": \"x\"}] [tokens=1]").await;
    let memories = ann.get("/v1/users/me/memories").await.unwrap();
    let id = memories["items"][0]["id"].as_str().unwrap();
    for (method, body) in [(Method::GET, None), (Method::PATCH, Some(json!({"text": "y"}))), (Method::DELETE, None)] {
        let mut request = bob.request(method.clone(), &format!("/v1/users/me/memories/{id}"));
        if let Some(body) = &body {
            request = request.json(body);
        }
        let failure = answer(request).await.expect_err("it was accepted");
        assert_eq!((failure.status, failure.code.as_str()), (404, "memory_not_found"), "{method}");
    }
    assert_eq!(ann.get("/v1/users/me/memories").await.unwrap(), memories);
}

/// Calls each method of A2A that names a task or a context.
async fn another_owners_task_looks_like_an_unknown_one(bob: &Client, conversation: &str, run: &str) {
    let unknown = "01890000-0000-7000-8000-000000000000";
    let message = |more: Value| {
        let mut message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "[tokens=1]"}]});
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"message": message})
    };
    let approval = json!([{"data": {"decision": "approve", "approvalId": unknown}}]);
    let calls = [
        ("GetTask", json!({"id": "{r}"}), -32001),
        ("CancelTask", json!({"id": "{r}"}), -32001),
        ("SubscribeToTask", json!({"id": "{r}"}), -32001),
        ("SendMessage", message(json!({"taskId": "{r}"})), -32001),
        ("SendMessage", message(json!({"taskId": "{r}", "contextId": "{c}"})), -32001),
        ("SendStreamingMessage", message(json!({"taskId": "{r}", "parts": approval})), -32001),
        ("tasks/get", json!({"id": "{r}"}), -32001),
        ("message/send", message(json!({"taskId": "{r}"})), -32001),
    ];
    for (method, params, code) in calls {
        let ask = async |conversation: &str, run: &str| {
            let params = params.to_string().replace("{c}", conversation).replace("{r}", run);
            let params: Value = serde_json::from_str(&params).unwrap();
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            let response = answer(bob.request(Method::POST, "/a2a").json(&body)).await.unwrap();
            (response["error"]["code"].clone(), response.to_string().replace(conversation, "").replace(run, ""))
        };
        let (foreign, missing) = (ask(conversation, run).await, ask(unknown, unknown).await);
        assert_eq!(foreign, missing, "{method} {params}");
        assert_eq!(foreign.0, code, "{method} {params}");
    }
    // A foreign conversation's id is a free name for a context of one's own.
    let listed = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"contextId": conversation}});
    let listed = answer(bob.request(Method::POST, "/a2a").json(&listed)).await.unwrap();
    assert_eq!(listed["result"]["tasks"], json!([]));
}

async fn another_owners_documents_look_like_unknown_ones(ann: &Client, bob: &Client) {
    let collection = ann.post("/v1/collections", json!({"name": "c"})).await.unwrap();
    let file = upload(ann, "a.txt", "text").await;
    let path = format!("/v1/collections/{}/documents", collection["id"].as_str().unwrap());
    let document = ann.post(&path, json!({"file_id": file["id"]})).await.unwrap()["document"].clone();
    let calls = [
        (Method::GET, "/v1/collections/{c}"),
        (Method::DELETE, "/v1/collections/{c}"),
        (Method::GET, "/v1/collections/{c}/documents"),
        (Method::GET, "/v1/collections/{c}/search?query=text"),
        (Method::GET, "/v1/documents/{d}"),
        (Method::GET, "/v1/documents/{d}/text"),
        (Method::POST, "/v1/documents/{d}/retry"),
        (Method::DELETE, "/v1/documents/{d}"),
    ];
    for (method, path) in calls {
        let ask = async |collection: &str, document: &str| {
            let path = path.replace("{c}", collection).replace("{d}", document);
            let failure = answer(bob.request(method.clone(), &path)).await.expect_err("it was accepted");
            (failure.status, failure.body.to_string().replace(collection, "").replace(document, ""))
        };
        let unknown = "01890000-0000-7000-8000-000000000000";
        let foreign = ask(collection["id"].as_str().unwrap(), document["id"].as_str().unwrap()).await;
        assert_eq!(foreign, ask(unknown, unknown).await, "{method} {path}");
        assert_eq!(foreign.0, 404, "{method} {path}");
    }
}

#[tokio::test]
async fn the_same_key_of_two_users_gives_two_runs() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let start = async |client: Client| {
        let request = client
            .request(Method::POST, "/v1/runs")
            .header("idempotency-key", "k")
            .json(&json!({"input": "[tokens=1]"}));
        answer(request).await.unwrap()["run"]["id"].clone()
    };
    let client = holdfast.client();
    assert_ne!(start(client.user("ann")).await, start(client.user("bob")).await);
}

#[tokio::test]
async fn only_loopback_host_names_are_answered() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    for host in ["example.org", "example.org:8080", "127.0.0.1.example.org", "192.168.0.1"] {
        let failure = answer(client.request(Method::GET, "/v1/runs").header("host", host)).await.unwrap_err();
        assert_eq!((failure.status, failure.code.as_str()), (421, "foreign_host"), "{host}");
    }
    for path in ["/healthz", "/readyz", "/metrics"] {
        let response = client.request(Method::GET, path).header("host", "10.0.0.7:8080").send().await.unwrap();
        assert_eq!(response.status(), 200, "machines ask for {path} by address");
    }
    for host in ["localhost", "localhost:8080", "[::1]:8080"] {
        answer(client.request(Method::GET, "/v1/runs").header("host", host)).await.unwrap();
    }
}

#[tokio::test]
async fn in_development_mode_another_origins_page_changes_nothing() {
    let embedded = Embedded::new().with("HOLDFAST_CORS_ORIGINS", "https://front.example");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let run = client.start("[tokens=20] [delay=100] hi").await["run"]["id"].as_str().unwrap().to_owned();
    let cancel = |site: &str, origin: &str| {
        let request = client.request(Method::POST, &format!("/v1/runs/{run}/cancel"));
        request.header("sec-fetch-site", site).header("origin", origin)
    };
    let own = holdfast.base();
    for (site, origin) in [
        ("cross-site", "https://evil.example"),
        ("same-site", "http://localhost:9"),
        ("same-site", own.as_str()),
        ("same-origin", "null"),
    ] {
        let failure = answer(cancel(site, origin)).await.unwrap_err();
        assert_eq!((failure.status, failure.code.as_str()), (403, "foreign_origin"), "{site} {origin}");
    }
    assert_ne!(client.run(&run).await["status"], "cancelled");
    answer(cancel("cross-site", "https://front.example")).await.unwrap();
    assert_eq!(client.wait_for_run(&run).await["status"], "cancelled");
}
