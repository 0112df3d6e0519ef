//! The forms of HTTP that clients use beside the routes' own: compression, byte order marks, slashes and tags.

use reqwest::{Method, RequestBuilder, Response, redirect::Policy};
use serde_json::{Value, json};

use crate::{
    in_either_mode,
    support::{Client, Deployment, agent, frames_of, of_kind},
};

in_either_mode!(
    json_is_compressed_for_clients_that_ask,
    streams_files_and_secrets_are_not_compressed,
    a_compressed_request_is_refused,
    a_mark_before_a_body_is_skipped,
    a_slash_at_the_end_of_a_path_leads_to_the_path_without_it,
    the_openapi_document_has_a_tag_and_binary_files,
    a_run_names_the_run_that_has_started_it,
);

/// Asks with a client that does not decode the answer.
async fn asked(request: RequestBuilder, accepted: &str) -> Response {
    let plain = reqwest::Client::builder().no_gzip().build().unwrap();
    let request = request.header("accept-encoding", accepted).build().unwrap();
    plain.execute(request).await.unwrap()
}

fn encoding(response: &Response) -> Option<&str> {
    response.headers().get("content-encoding").map(|value| value.to_str().unwrap())
}

async fn json_is_compressed_for_clients_that_ask(mut deployment: Deployment) {
    let client = deployment.client();
    for n in 0..20 {
        client.post("/v1/conversations", json!({"title": format!("Conversation {n}")})).await.unwrap();
    }
    for path in ["/v1/conversations", "/openapi.json", "/langgraph/assistants/search"] {
        let method = if path.ends_with("search") { Method::POST } else { Method::GET };
        let request = || {
            let request = client.request(method.clone(), path);
            if method == Method::POST { request.json(&json!({})) } else { request }
        };
        let plain = asked(request(), "identity").await;
        assert_eq!(encoding(&plain), None);
        let is_long = plain.content_length().unwrap() > 1024;
        let plain_bytes = plain.bytes().await.unwrap();
        let packed = asked(request(), "br, gzip;q=0.5").await;
        assert_eq!(encoding(&packed), is_long.then_some("gzip"), "{path}");
        let varies: Vec<&str> = packed.headers().get_all("vary").iter().map(|value| value.to_str().unwrap()).collect();
        assert_eq!(varies.contains(&"accept-encoding"), is_long, "{varies:?}");
        if is_long {
            assert!(packed.content_length().unwrap() < plain_bytes.len() as u64 / 2);
            let unpacked: Value = request().send().await.unwrap().json().await.unwrap();
            assert_eq!(unpacked, serde_json::from_slice::<Value>(&plain_bytes).unwrap());
        }
        assert_eq!(encoding(&asked(request(), "gzip;q=0").await), None);
    }
}

async fn streams_files_and_secrets_are_not_compressed(mut deployment: Deployment) {
    let client = deployment.client();
    let stream = client.request(Method::POST, "/api/chat/stream").json(&json!({"message": "[tokens=300]"}));
    assert_eq!(encoding(&asked(stream, "gzip").await), None);
    let contents = json!({"text": "x".repeat(5000)}).to_string();
    let upload = client.request(Method::POST, "/v1/files").header("content-type", "application/octet-stream");
    let upload = upload.header("content-disposition", "attachment; filename=\"a.json\"").body(contents.clone());
    let stored: Value = upload.send().await.unwrap().json().await.unwrap();
    let path = format!("/v1/files/{}", stored["id"].as_str().unwrap());
    let file = asked(client.request(Method::GET, &path), "gzip").await;
    assert_eq!(encoding(&file), None);
    assert_eq!(file.text().await.unwrap(), contents);
    let short = asked(client.request(Method::GET, "/v1/server"), "gzip").await;
    assert_eq!(encoding(&short), None, "up to 1 KiB stays as it is");
}

async fn a_compressed_request_is_refused(mut deployment: Deployment) {
    let client = deployment.client();
    for path in ["/v1/runs", "/v1/files", "/openai/v1/responses", "/api/chat"] {
        let request = client.request(Method::POST, path).header("content-type", "application/json");
        let refused = request.header("content-encoding", "gzip").body(vec![31, 139, 8, 0]).send().await.unwrap();
        assert_eq!(refused.status(), 415, "{path}");
        assert!(refused.text().await.unwrap().contains("unsupported_encoding"), "{path}");
    }
    let request = client.request(Method::POST, "/v1/runs").header("content-encoding", "identity");
    assert_eq!(request.json(&json!({"input": "[tokens=1]"})).send().await.unwrap().status(), 202);
}

async fn a_mark_before_a_body_is_skipped(mut deployment: Deployment) {
    let client = deployment.client();
    let body = format!("\u{feff}{}", json!({"input": "[tokens=1] x"}));
    let request = client.request(Method::POST, "/v1/runs").header("content-type", "application/json").body(body);
    assert_eq!(request.send().await.unwrap().status(), 202);
}

async fn a_slash_at_the_end_of_a_path_leads_to_the_path_without_it(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let followed = client.request(Method::POST, "/v1/runs/").json(&json!({"input": "[tokens=1] x"}));
    assert_eq!(followed.send().await.unwrap().status(), 202, "a redirection keeps method and body");
    let alone = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
    let location = async |path: &str| {
        let response = alone.get(client.url(path)).send().await.unwrap();
        let location = response.headers().get("location").map(|value| value.to_str().unwrap().to_owned());
        (response.status().as_u16(), location)
    };
    assert_eq!(location("/v1/runs/?limit=1").await, (308, Some("/v1/runs?limit=1".to_owned())));
    assert_eq!(location("//elsewhere.example/").await, (404, None));
}

async fn the_openapi_document_has_a_tag_and_binary_files(mut deployment: Deployment) {
    let client: Client = deployment.client();
    let response = client.request(Method::GET, "/openapi.json").send().await.unwrap();
    let tag = response.headers()["etag"].to_str().unwrap().to_owned();
    let document: Value = response.json().await.unwrap();
    let bytes = json!({"schema": {"type": "string", "format": "binary"}});
    let upload = &document["paths"]["/v1/files"]["post"]["requestBody"]["content"];
    assert_eq!(upload["application/octet-stream"], bytes);
    let file = &document["paths"]["/v1/files/{id}"]["get"]["responses"]["200"]["content"];
    assert_eq!([&file["application/octet-stream"], &file["*/*"]], [&bytes, &bytes], "a file has its own media type");
    let known = client.request(Method::GET, "/openapi.json").header("if-none-match", &tag).send().await.unwrap();
    assert_eq!((known.status().as_u16(), known.headers()["etag"].to_str().unwrap()), (304, tag.as_str()));
}

async fn a_run_names_the_run_that_has_started_it(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    agent(&client, json!([]), json!({"name": "helper"})).await;
    let lead = agent(&client, json!([]), json!({"name": "lead", "subagents": [{"agent": "helper"}]})).await;
    let frames = frames_of(&client, &lead, "[delegate=helper [tokens=1] x] [tokens=1]").await;
    let started = of_kind(&frames, "subagent.started").remove(0).clone();
    let child = client.run(started["child_run_id"].as_str().unwrap()).await;
    assert_eq!(child["parent_run_id"], started["run_id"]);
    assert_eq!(client.run(started["run_id"].as_str().unwrap()).await["parent_run_id"], Value::Null);
}
