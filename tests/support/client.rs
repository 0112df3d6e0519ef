//! A client of one API process, as one user.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use super::{EventFrame, EventStream, TIMEOUT};

#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    user: Option<String>,
    token: Option<String>,
    /// The story that shares the server with others.
    story: Option<String>,
}

/// A response with an error status.
#[derive(Debug, PartialEq)]
pub struct ErrorResponse {
    pub status: u16,
    pub code: String,
    pub body: Value,
}

impl Client {
    pub fn new(base: &str) -> Self {
        // The server closes a connection that was idle for 15 s. A test that blocks for so long would not see it.
        let http = reqwest::Client::builder().pool_idle_timeout(Duration::from_secs(10));
        let http = http.connect_timeout(Duration::from_secs(5)).build().unwrap();
        Self { http, base: base.to_owned(), user: None, token: None, story: None }
    }

    /// Returns a client of a server that stories share. Its user is the story.
    pub fn of_story(base: &str, story: &str) -> Self {
        Self { user: Some(story.to_owned()), story: Some(story.to_owned()), ..Self::new(base) }
    }

    /// Returns the URL at which the server listens. Panics if the server is shared, where requests without the story's user
    /// would be those of no story.
    pub fn base(&self) -> &str {
        assert!(self.story.is_none(), "a story that gives the URL away calls `Deployment::own`");
        &self.base
    }

    /// Returns the name by which the server knows the user.
    pub fn name(&self) -> &str {
        self.user.as_deref().unwrap_or("debug_user")
    }

    /// Returns a client of this server with another user, whose name is unique among the stories of the server.
    pub fn user(&self, name: &str) -> Self {
        let user = match &self.story {
            Some(story) => format!("{name}.{story}"),
            None => name.to_owned(),
        };
        Self { user: Some(user), ..self.clone() }
    }

    /// Returns a client of this server with a bearer token.
    pub fn token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// Returns the URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base())
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        let request = match &self.user {
            Some(user) => request.header("x-user", user),
            None => request,
        };
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub async fn get(&self, path: &str) -> Result<Value, ErrorResponse> {
        answer(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Result<Value, ErrorResponse> {
        answer(self.request(Method::POST, path).json(&body)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Result<Value, ErrorResponse> {
        answer(self.request(Method::PATCH, path).json(&body)).await
    }

    pub async fn delete(&self, path: &str) -> Result<Value, ErrorResponse> {
        answer(self.request(Method::DELETE, path)).await
    }

    /// Starts a run in a new conversation; returns `{conversation, message, run}`.
    pub async fn start(&self, input: &str) -> Value {
        self.post("/v1/runs", json!({ "input": input })).await.unwrap()
    }

    /// Starts a run and streams it.
    pub async fn stream(&self, input: &str) -> EventStream {
        let request = self.request(Method::POST, "/v1/runs").header("accept", "text/event-stream");
        EventStream::new(ok(request.json(&json!({ "input": input }))).await)
    }

    /// Streams a run after a cursor, or from the start.
    pub async fn events(&self, run_id: &str, after: Option<&str>) -> EventStream {
        EventStream::new(ok(self.events_request(run_id, after)).await)
    }

    pub fn events_request(&self, run_id: &str, after: Option<&str>) -> RequestBuilder {
        let request = self.request(Method::GET, &format!("/v1/runs/{run_id}/events"));
        match after {
            Some(id) => request.header("last-event-id", id),
            None => request,
        }
    }

    /// Returns all events that a client with this cursor still receives; none, if it has all.
    pub async fn rest_after(&self, run_id: &str, after: &str) -> Vec<EventFrame> {
        let response = self.events_request(run_id, Some(after)).send().await.unwrap();
        match response.status().as_u16() {
            204 => Vec::new(),
            200 => EventStream::new(response).rest().await,
            status => panic!("resuming after {after}: {status} {}", response.text().await.unwrap()),
        }
    }

    pub async fn run(&self, run_id: &str) -> Value {
        self.get(&format!("/v1/runs/{run_id}")).await.unwrap()
    }

    /// Waits for the end of the run, and returns the run.
    pub async fn wait_for_run(&self, run_id: &str) -> Value {
        let run = self.get(&format!("/v1/runs/{run_id}/wait?timeout_ms={}", TIMEOUT.as_millis())).await.unwrap();
        assert!(run["finished_at"].is_string(), "the run did not end: {run}");
        run
    }

    pub async fn cancel(&self, run_id: &str) -> Value {
        answer(self.request(Method::POST, &format!("/v1/runs/{run_id}/cancel"))).await.unwrap()
    }
}

async fn ok(request: RequestBuilder) -> Response {
    let response = request.send().await.unwrap();
    let status = response.status();
    if status != 200 {
        panic!("{status}: {}", response.text().await.unwrap());
    }
    response
}

/// Returns the JSON of a success, or the problem of an error.
pub async fn answer(request: RequestBuilder) -> Result<Value, ErrorResponse> {
    let response = request.send().await.unwrap();
    let status = response.status();
    let is_problem = response.headers().get("content-type").is_some_and(|value| value == "application/problem+json");
    let text = response.text().await.unwrap();
    if status.is_success() {
        return Ok(if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() });
    }
    assert!(is_problem, "{status} is no problem+json: {text}");
    let body: Value = serde_json::from_str(&text).unwrap();
    Err(ErrorResponse { status: status.as_u16(), code: body["code"].as_str().unwrap().to_owned(), body })
}
