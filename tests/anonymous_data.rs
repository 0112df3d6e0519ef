//! Bytes that anonymous callers store: per address and hour, and of all of them together.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::{
    in_both_modes,
    support::{
        Client, Deployment, answer,
        tokens::{SECRET, claims, token},
        until,
    },
};

in_both_modes!(
    an_address_stores_no_more_bytes_in_an_hour_than_it_may,
    a_small_change_of_a_large_document_counts_both_of_its_states,
    all_anonymous_users_together_store_no_more_than_they_may,
);

async fn stranger(client: &Client) -> Client {
    let made = client.post("/v1/users/anonymous", json!({})).await.unwrap();
    client.token(made["token"].as_str().unwrap())
}

fn upload(client: &Client, bytes: usize) -> RequestBuilder {
    let request = client.request(Method::POST, "/v1/files").header("content-disposition", "attachment; filename=a.txt");
    request.body("x".repeat(bytes))
}

/// Calls a route until it is refused, and returns the number of calls before it, with the refusal.
async fn until_refused(request: impl Fn() -> RequestBuilder) -> (usize, u16, String, Option<u64>) {
    for calls in 0..1_000 {
        let response = request().send().await.unwrap();
        if response.status().is_client_error() {
            let status = response.status().as_u16();
            let wait = response.headers().get("retry-after").map(|wait| wait.to_str().unwrap().parse().unwrap());
            let problem: Value = response.json().await.unwrap();
            return (calls, status, problem["code"].as_str().unwrap().to_owned(), wait);
        }
    }
    panic!("nothing is refused");
}

fn deployed(deployment: Deployment) -> Deployment {
    let deployment = deployment.with("HOLDFAST_JWT_KEY", SECRET);
    deployment.with("CHAT_RATE_LIMIT", 0).with("HOLDFAST_WRITE_RATE_LIMIT", 0)
}

async fn an_address_stores_no_more_bytes_in_an_hour_than_it_may(deployment: Deployment) {
    let mut deployment = deployed(deployment).with("HOLDFAST_ANONYMOUS_BYTES_PER_HOUR", 100 * 1024);
    let client = deployment.client();
    let (anna, bert) = (stranger(&client).await, stranger(&client).await);
    answer(upload(&anna, 60 * 1024)).await.unwrap();
    let (calls, status, code, wait) = until_refused(|| upload(&bert, 15 * 1024)).await;
    assert_eq!((calls, status, code.as_str()), (2, 429, "byte_rate_limited"), "another secret does not help");
    assert!(wait.is_some_and(|wait| (1..=3_600).contains(&wait)), "{wait:?}");
    assert_eq!(bert.get("/v1/files").await.unwrap()["items"].as_array().unwrap().len(), 2, "nothing of it stays");
    let run = || anna.request(Method::POST, "/v1/runs").json(&json!({"input": "[tokens=1]"}));
    // A run counts 4 KiB for its rows.
    let (runs, status, code, _) = until_refused(run).await;
    assert_eq!((runs, status, code.as_str()), (2, 429, "byte_rate_limited"));
    let title = json!({"title": "x".repeat(10)});
    anna.post("/v1/conversations", title).await.expect("a small write counts only for the rate of writes");
    let ann = client.token(&token(&claims("ann", json!({}))));
    answer(upload(&ann, 200 * 1024)).await.expect("a token identifies its user");
}

async fn a_small_change_of_a_large_document_counts_both_of_its_states(deployment: Deployment) {
    let mut deployment = deployed(deployment).with("HOLDFAST_ANONYMOUS_BYTES_PER_HOUR", 190 * 1024);
    let anna = stranger(&deployment.client()).await;
    let project = anna.post("/v1/workspace/projects", json!({"name": "p"})).await.unwrap();
    let document = json!({"title": "d", "project_id": project["id"], "body": "x".repeat(40 * 1024)});
    let document = anna.post("/v1/workspace/documents", document).await.unwrap();
    let id = document["id"].as_str().unwrap();
    // 150 KiB are left, and each change stores 80.
    let (calls, status, code, _) = until_refused(|| {
        anna.request(Method::PATCH, &format!("/v1/workspace/documents/{id}")).json(&json!({"title": "e"}))
    })
    .await;
    assert_eq!((calls, status, code.as_str()), (1, 429, "byte_rate_limited"));
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "update_onto_document",
        "arguments": {"document_id": id, "title": "f"},
    }});
    let refused = anna.post("/mcp/rpc", call).await.unwrap();
    assert_eq!(refused["error"]["data"]["code"], "byte_rate_limited", "{refused}");
}

async fn all_anonymous_users_together_store_no_more_than_they_may(deployment: Deployment) {
    let mut deployment = deployed(deployment)
        .with("HOLDFAST_ANONYMOUS_BYTES_PER_HOUR", 0)
        .with("HOLDFAST_SWEEP_MS", 50)
        .with("HOLDFAST_ALL_ANONYMOUS_BYTES", 100 * 1024);
    let client = deployment.client();
    // A first measurement after the uploads would have other numbers.
    until("a sweep has measured", || async {
        let text = client.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
        assert!(text.contains("\nholdfast_anonymous_bytes_max 102400\n"), "{text}");
        text.contains("\nholdfast_anonymous_bytes 0\n").then_some(())
    })
    .await;
    let anna = stranger(&client).await;
    let file = answer(upload(&anna, 60 * 1024)).await.unwrap();
    let bert = stranger(&client).await;
    let (calls, status, code, _) = until_refused(|| upload(&bert, 45 * 1024)).await;
    assert_eq!((calls, status, code.as_str()), (1, 403, "anonymous_data_full"));
    for refused in [
        anna.post("/v1/runs", json!({"input": "hi"})).await,
        anna.post("/v1/conversations", json!({"title": "x"})).await,
    ] {
        assert_eq!(refused.unwrap_err().code, "anonymous_data_full");
    }
    assert_eq!(anna.get("/v1/files").await.unwrap()["items"].as_array().unwrap().len(), 1, "a read passes");
    let ann = client.token(&token(&claims("ann", json!({}))));
    answer(upload(&ann, 200 * 1024)).await.expect("the cap is that of anonymous users");
    anna.delete(&format!("/v1/files/{}", file["id"].as_str().unwrap())).await.expect("a deletion passes");
}
