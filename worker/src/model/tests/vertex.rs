//! Vertex AI with tokens that end, against a server that issues them by Google's protocols.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt, future::join_all};
use tokio::time::{advance, pause, resume, timeout};

use super::{
    FakeProvider, Model, Reply, connect,
    google::{GoogleServer, TokenAnswer},
    request,
    wires::{ProviderWire, vertex_claude, vertex_gemini},
};
use crate::model::Error;

/// A model at a provider and the server that issues its tokens.
struct Vertex {
    wire: ProviderWire,
    provider: FakeProvider,
    google: GoogleServer,
    model: Arc<dyn Model>,
}

impl Vertex {
    /// Starts both servers, with a service account's key.
    async fn start(answers: &[TokenAnswer], replies: &[Reply], flags: &[&str]) -> Self {
        let google = GoogleServer::start(answers).await;
        let account = format!("--vertex-credentials={}", google.service_account());
        Self::with(google, replies, &[&[account.as_str()], flags].concat()).await
    }

    async fn with(google: GoogleServer, replies: &[Reply], flags: &[&str]) -> Self {
        let wire = vertex_gemini();
        let complete = [wire.complete_reply()];
        let provider = FakeProvider::start([replies, &complete].concat()).await;
        let without_key = flags.iter().all(|flag| !flag.starts_with("--vertex-api-key"));
        let key: &[&str] = if without_key { &["--vertex-api-key="] } else { &[] };
        let model = connect(&wire.config(&provider.url, &[key, flags].concat())).unwrap();
        Self { wire, provider, google, model }
    }

    async fn ask(&self) -> Result<(), Error> {
        let asking = async {
            let mut answer = self.model.ask(&request()).await?;
            let mut deltas = Vec::new();
            while let Some(delta) = answer.next().await {
                deltas.push(delta?);
            }
            assert_eq!(deltas, self.wire.deltas());
            Ok(())
        };
        timeout(Duration::from_secs(10), asking).await.expect("an end within 10 s")
    }

    /// Returns the tokens of the requests to Vertex AI.
    fn tokens(&self) -> Vec<String> {
        let token = |head: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix("authorization: bearer "));
            line.unwrap_or("no token").to_owned()
        };
        self.provider.requests().iter().map(|request| token(&request.head)).collect()
    }
}

/// Moves the clock forward, although no time passes.
async fn pass(seconds: u64) {
    pause();
    advance(Duration::from_secs(seconds)).await;
    resume();
}

#[tokio::test]
async fn a_service_accounts_key_becomes_a_token_for_its_project() {
    let google = GoogleServer::start(&[TokenAnswer::Grant(3600)]).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), google.service_account()).unwrap();
    let flag = format!("--google-application-credentials={}", file.path().display());
    let vertex = Vertex::with(google, &[], &[&flag, "--vertex-project-id="]).await;
    vertex.ask().await.unwrap();
    assert_eq!(vertex.tokens(), ["ya29.token-1"]);
    let head = vertex.provider.requests().remove(0).head;
    assert!(head.starts_with("POST /v1/projects/its-project/locations/global/publishers/google/"), "{head}");
    assert!(!head.contains("x-goog-user-project"), "{head}");
}

#[tokio::test]
async fn the_login_of_gcloud_becomes_a_token_and_its_project_pays() {
    let google = GoogleServer::start(&[TokenAnswer::Grant(3600)]).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("application_default_credentials.json"), google.user()).unwrap();
    let flag = format!("--cloudsdk-config={}", folder.path().display());
    let vertex = Vertex::with(google, &[], &[&flag]).await;
    vertex.ask().await.unwrap();
    assert_eq!(vertex.tokens(), ["ya29.token-1"]);
    let head = vertex.provider.requests().remove(0).head;
    assert!(head.starts_with("POST /v1/projects/a-project/"), "{head}");
    assert!(head.contains("x-goog-user-project: their-project"), "{head}");
}

#[tokio::test]
async fn a_machine_of_google_cloud_gets_its_token_and_project_from_the_metadata_server() {
    let google = GoogleServer::start(&[TokenAnswer::Grant(3600)]).await;
    let host = format!("--gce-metadata-host={}", google.host());
    let vertex = Vertex::with(google, &[], &["--vertex-project-id=", "--cloudsdk-config=/nowhere", &host]).await;
    vertex.ask().await.unwrap();
    assert_eq!(vertex.tokens(), ["ya29.token-1"]);
    let head = vertex.provider.requests().remove(0).head;
    assert!(head.starts_with("POST /v1/projects/the-machines-project/"), "{head}");
}

#[tokio::test]
async fn claude_gets_the_token_too() {
    let google = GoogleServer::start(&[TokenAnswer::Grant(3600)]).await;
    let provider = FakeProvider::start(vec![vertex_claude().complete_reply()]).await;
    let account = format!("--vertex-credentials={}", google.service_account());
    let model = connect(&vertex_claude().config(&provider.url, &["--vertex-api-key=", &account])).unwrap();
    let answer = model.ask(&request()).await.unwrap_or_else(|error| panic!("{error}"));
    let deltas: Vec<_> = answer.map(Result::unwrap).collect().await;
    assert_eq!(deltas, vertex_claude().deltas());
    assert!(provider.requests()[0].head.contains("authorization: bearer ya29.token-1"));
}

#[tokio::test]
async fn a_token_of_the_operator_wins() {
    let vertex = Vertex::start(&[], &[], &["--vertex-api-key=their-token"]).await;
    vertex.ask().await.unwrap();
    assert_eq!(vertex.tokens(), ["their-token"]);
    assert!(vertex.google.requests().is_empty());
}

#[tokio::test]
async fn a_token_serves_until_its_end_and_then_another_one_does() {
    let vertex = Vertex::start(&[TokenAnswer::Grant(60)], &[], &[]).await;
    vertex.ask().await.unwrap();
    vertex.ask().await.unwrap();
    pass(60).await;
    vertex.ask().await.unwrap();
    assert_eq!(vertex.tokens(), ["ya29.token-1", "ya29.token-1", "ya29.token-2"]);
    assert_eq!(vertex.google.requests().len(), 2);
}

#[tokio::test]
async fn a_token_is_refreshed_before_its_end_while_runs_use_it() {
    let mut vertex = Vertex::start(&[TokenAnswer::Grant(3600)], &[], &[]).await;
    vertex.ask().await.unwrap();
    pass(3400).await;
    vertex.ask().await.unwrap();
    assert_eq!(vertex.tokens(), ["ya29.token-1", "ya29.token-1"]);
    vertex.google.wait_for_answers(2).await;
    // The server has answered, and the client reads the answer meanwhile.
    let until_replaced = async {
        while vertex.tokens().last().unwrap() != "ya29.token-2" {
            vertex.ask().await.unwrap();
        }
    };
    timeout(Duration::from_secs(10), until_replaced).await.expect("the new token within 10 s");
    assert_eq!(vertex.google.requests().len(), 2);
}

#[tokio::test]
async fn a_failed_early_refresh_costs_no_run_its_answer() {
    let answers = [TokenAnswer::Grant(3600), TokenAnswer::Fail(500, "{}"), TokenAnswer::Grant(3600)];
    let mut vertex = Vertex::start(&answers, &[], &[]).await;
    vertex.ask().await.unwrap();
    pass(3400).await;
    vertex.ask().await.unwrap();
    vertex.google.wait_for_answers(2).await;
    vertex.ask().await.unwrap();
    assert_eq!(vertex.tokens(), ["ya29.token-1", "ya29.token-1", "ya29.token-1"]);
    pass(3600).await;
    vertex.ask().await.unwrap();
    assert_eq!(vertex.tokens().last().unwrap(), "ya29.token-3");
}

#[tokio::test]
async fn a_hundred_runs_at_the_end_of_a_token_make_one_request_for_another() {
    let vertex = Vertex::start(&[TokenAnswer::Grant(60)], &[], &[]).await;
    vertex.ask().await.unwrap();
    pass(60).await;
    let outcomes = join_all((0..100).map(|_| vertex.ask())).await;
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(vertex.google.requests().len(), 2);
    assert!(vertex.tokens()[1..].iter().all(|token| token == "ya29.token-2"));
}

#[tokio::test]
async fn a_run_that_is_cancelled_takes_no_token_from_another() {
    let vertex = Vertex::start(&[TokenAnswer::Grant(3600)], &[], &[]).await;
    let request = request();
    let mut cancelled = vertex.model.ask(&request);
    assert!(futures::poll!(&mut cancelled).is_pending());
    let other = vertex.ask();
    drop(cancelled);
    other.await.unwrap();
    assert_eq!(vertex.google.requests().len(), 1);
}

#[tokio::test]
async fn a_refused_token_is_replaced_once() {
    let refused =
        Reply::json(401, r#"{"error":{"code":401,"message":"ya29.token-1 ended","status":"UNAUTHENTICATED"}}"#);
    let vertex = Vertex::start(&[], std::slice::from_ref(&refused), &["--model-retries=0"]).await;
    vertex.ask().await.unwrap();
    assert_eq!(vertex.tokens(), ["ya29.token-1", "ya29.token-2"]);

    let vertex = Vertex::start(&[], &[refused.clone(), refused.clone()], &[]).await;
    let error = vertex.ask().await.unwrap_err();
    assert_eq!(error.code(), "model_key_refused");
    assert_eq!(vertex.tokens(), ["ya29.token-1", "ya29.token-2"]);

    // The operator's own token cannot be replaced.
    let vertex = Vertex::start(&[], &[refused], &["--vertex-api-key=ya29.token-1"]).await;
    let error = vertex.ask().await.unwrap_err();
    assert!(error.to_string().contains("[key] ended (status 401)"), "{error}");
    assert_eq!(vertex.tokens().len(), 1);
}

#[tokio::test]
async fn no_error_shows_a_token() {
    let refused = Reply::json(400, r#"{"error":{"code":400,"message":"not with ya29.token-1"}}"#);
    let error = Vertex::start(&[], &[refused], &[]).await.ask().await.unwrap_err();
    assert!(error.to_string().contains("not with [key] (status 400)"), "{error}");
}

#[tokio::test]
async fn a_key_that_google_refuses_is_an_error_that_says_so() {
    let google = GoogleServer::start(&[TokenAnswer::Grant(3600)]).await;
    let account = format!("--vertex-credentials={}", google.unknown_service_account());
    let vertex = Vertex::with(google, &[], &[&account]).await;
    let error = vertex.ask().await.unwrap_err();
    assert_eq!(error.code(), "model_key_refused");
    assert_eq!(error.reason(), "Vertex AI refused the server's key");
    for part in ["credentials", "gemini-some-model", "invalid_grant: Invalid JWT Signature.", "400"] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
    assert_eq!(vertex.google.requests().len(), 1, "a refusal is not retried");
    assert!(vertex.tokens().is_empty());
}

#[tokio::test]
async fn a_token_server_that_is_away_for_a_moment_fails_no_run() {
    for status in [500, 503, 429, 408] {
        let vertex = Vertex::start(&[TokenAnswer::Fail(status, "{}"), TokenAnswer::Grant(3600)], &[], &[]).await;
        vertex.ask().await.unwrap();
        assert_eq!(vertex.google.requests().len(), 2, "{status}");
    }
    let vertex = Vertex::start(&[TokenAnswer::Fail(503, "later")], &[], &[]).await;
    let error = vertex.ask().await.unwrap_err();
    assert_eq!(error.code(), "model_unavailable");
    assert!(error.to_string().contains("later (status 503)"), "{error}");
    assert_eq!(vertex.google.requests().len(), 3);
}

#[tokio::test]
async fn garbage_in_place_of_a_token_is_an_error() {
    for garbage in ["<html>", "{}", r#"{"access_token": 5}"#] {
        let answers = [TokenAnswer::Fail(200, garbage), TokenAnswer::Grant(3600)];
        Vertex::start(&answers, &[], &[]).await.ask().await.unwrap();
    }
}

#[tokio::test]
async fn a_silent_token_server_ends_at_the_limit_of_the_connection() {
    let flags = ["--model-connect-ms=100", "--model-retries=0"];
    let vertex = Vertex::start(&[TokenAnswer::Hang], &[], &flags).await;
    let asked_at = Instant::now();
    let outcomes = join_all((0..20).map(|_| vertex.ask())).await;
    assert!(asked_at.elapsed() < Duration::from_secs(5), "{:?}", asked_at.elapsed());
    for error in outcomes.into_iter().map(Result::unwrap_err) {
        assert_eq!(error.code(), "model_timeout");
        assert!(error.to_string().contains("the request for an access token took longer than 100 ms"), "{error}");
    }
    assert_eq!(vertex.google.requests().len(), 1);
}

#[tokio::test]
async fn without_a_metadata_server_the_error_says_that_there_are_no_credentials() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = format!("--gce-metadata-host={}", listener.local_addr().unwrap());
    drop(listener);
    let google = GoogleServer::start(&[]).await;
    let flags = [host.as_str(), "--cloudsdk-config=/nowhere", "--model-retries=0"];
    let error = Vertex::with(google, &[], &flags).await.ask().await.unwrap_err();
    assert_eq!(error.code(), "model_unavailable");
    assert!(error.to_string().contains("there are no credentials in the settings"), "{error}");
    assert!(error.to_string().contains("cannot connect"), "{error}");
}

#[tokio::test]
async fn another_server_at_the_metadata_host_is_not_believed() {
    let other = FakeProvider::start(vec![Reply::json(200, r#"{"access_token":"forged-token","expires_in":60}"#)]).await;
    let host = format!("--gce-metadata-host={}", other.url.strip_prefix("http://").unwrap());
    let google = GoogleServer::start(&[]).await;
    let vertex = Vertex::with(google, &[], &["--cloudsdk-config=/nowhere", &host]).await;
    let error = vertex.ask().await.unwrap_err();
    assert!(error.to_string().contains("not one of the metadata server"), "{error}");
    assert!(vertex.tokens().is_empty());
}

#[tokio::test]
async fn unusable_credentials_are_named_at_the_start_and_never_quoted() {
    let google = GoogleServer::start(&[]).await;
    let check = |flags: &[&str], parts: &[&str]| {
        let config = vertex_gemini().config("http://127.0.0.1:1", &[&["--vertex-api-key="], flags].concat());
        let error = connect(&config).err().unwrap_or_else(|| panic!("{flags:?} are usable")).to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        assert!(!error.contains("secret-"), "{error}");
    };
    check(&["--vertex-credentials=secret-text"], &["VERTEX_CREDENTIALS", "service_account", "authorized_user"]);
    check(&[r#"--vertex-credentials={"type":"external_account","x":"secret-x"}"#], &["VERTEX_CREDENTIALS"]);
    check(&["--google-application-credentials=/nowhere.json"], &["GOOGLE_APPLICATION_CREDENTIALS", "/nowhere.json"]);
    let key = google.service_account().replace("BEGIN PRIVATE", "BEGIN secret-PRIVATE");
    check(&[&format!("--vertex-credentials={key}")], &["VERTEX_CREDENTIALS", "private_key", "PEM"]);
    let without_project = google.service_account().replace("project_id", "project");
    let flag = format!("--vertex-credentials={without_project}");
    check(&[&flag, "--vertex-project-id="], &["VERTEX_PROJECT_ID", "credentials"]);
}
