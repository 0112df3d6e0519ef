//! Secrets reach the server and nothing else.

use std::{
    io,
    sync::{Arc, Mutex, OnceLock},
};

use holdfast_shared::agent::McpAuth;
use tracing_subscriber::fmt::MakeWriter;

use super::{
    fake::{Behaviour, FakeServer},
    *,
};

const SECRET: &str = "hunter2-and-more";

/// Everything that this process logs, at every level. All tests share one log, because a subscriber of one thread
/// misses call sites that another thread has registered.
#[derive(Clone, Default)]
struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl CapturedLog {
    fn start() -> Self {
        static LOG: OnceLock<CapturedLog> = OnceLock::new();
        let start = || {
            let log = Self::default();
            let subscriber = tracing_subscriber::fmt()
                .with_max_level(tracing::Level::TRACE)
                .with_writer(log.clone())
                .with_ansi(false);
            subscriber.init();
            log
        };
        LOG.get_or_init(start).clone()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl io::Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for CapturedLog {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn with_bearer(mut server: McpServer) -> McpServer {
    if let Transport::Http { auth, .. } | Transport::Rpc { auth, .. } = &mut server.transport {
        *auth = Some(McpAuth { bearer: secret(SECRET) });
    }
    server
}

#[tokio::test]
async fn a_bearer_token_is_sent_and_not_logged() {
    let log = CapturedLog::start();
    let mut fake = FakeServer::start().await;
    let mcp = mcp(&[]);
    for server in [with_bearer(http(&fake.url())), with_bearer(rpc(&fake.url()))] {
        let arguments = json!({"text": "some-argument"});
        assert_eq!(call(&mcp, &server, "echo", arguments).await.unwrap(), "some-argument");
        let request = fake.wait_for(|request| request.tool() == "echo").await;
        assert_eq!(request.headers["authorization"], format!("Bearer {SECRET}"));
        for tool in ["http_401", "rpc_error", "die"] {
            let error = call(&mcp, &server, tool, json!({})).await.unwrap_err();
            assert!(!error.message.contains(SECRET), "{}", error.message);
        }
    }
    fake.kill().await;
    let error = call(&mcp, &with_bearer(rpc(&fake.url())), "echo", json!({})).await.unwrap_err();
    assert!(!error.message.contains(SECRET), "{}", error.message);
    let text = log.text();
    assert!(text.contains("connected to MCP server"), "{text}");
    assert!(!text.contains(SECRET));
}

#[tokio::test]
async fn a_server_that_sends_its_token_back_in_an_error_shows_it_to_no_reader() {
    let log = CapturedLog::start();
    let fake = FakeServer::with_behaviour(Behaviour::EchoesCredentials).await;
    let mcp = mcp(&[]);
    for server in [with_bearer(http(&fake.url())), with_bearer(rpc(&fake.url()))] {
        for error in [mcp.tools(&server, &user("ann")).await.map(drop), mcp.try_out(&server, DEADLINE).await] {
            let text = error.unwrap_err().to_string();
            assert!(text.contains("it failed while connecting: error -32000: who is Bearer …?"), "{text}");
        }
        let error = call(&mcp, &server, "echo", json!({})).await.unwrap_err();
        assert!(!error.message.contains(SECRET), "{}", error.message);
    }
    let text = log.text();
    assert!(text.contains("who is Bearer …?"), "{text}");
    let quiet = [" TRACE ", " DEBUG "];
    let leaks: Vec<&str> = text.lines().filter(|line| line.contains(SECRET)).collect();
    assert!(leaks.iter().all(|line| quiet.iter().any(|level| line.contains(level))), "{leaks:?}");
}

#[tokio::test]
async fn arguments_are_not_logged_above_debug() {
    let log = CapturedLog::start();
    let fake = FakeServer::start().await;
    let mcp = mcp(&[]);
    for tool in ["echo", "is_error", "rpc_error", "malformed"] {
        let _ = call(&mcp, &rpc(&fake.url()), tool, json!({"text": "some-argument"})).await;
    }
    let quiet = [" TRACE ", " DEBUG "];
    let text = log.text();
    let loud = text.lines().filter(|line| !quiet.iter().any(|level| line.contains(level)));
    assert!(loud.clone().count() >= 4);
    let errors = loud.clone().filter(|line| line.contains("error -32603: out of order") && line.contains("rpc_error"));
    assert!(errors.count() >= 1, "a server's own error is logged with its number: {text}");
    let leaks: Vec<&str> = loud.into_iter().filter(|line| line.contains("some-argument")).collect();
    assert!(leaks.is_empty(), "{leaks:?}");
}

#[tokio::test]
async fn a_child_sees_its_secret_and_little_else() {
    let log = CapturedLog::start();
    let (mcp, mut server) = (mcp(&[]), fake_stdio(&[]));
    if let Transport::Stdio { env, .. } = &mut server.transport {
        env.insert("SECRET".into(), secret(SECRET));
    }
    let names = call(&mcp, &server, "env", json!({})).await.unwrap();
    let names: Vec<String> = serde_json::from_str(&names).unwrap();
    assert!(names.contains(&"SECRET".to_owned()) && names.contains(&"PATH".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
    // The child prints the secret to standard error, which is logged.
    call(&mcp, &server, "change", json!({})).await.unwrap();
    until(async || log.text().contains("the secret is …")).await;
    assert!(!log.text().contains(SECRET));
    mcp.close().await;
}

#[tokio::test]
async fn a_secret_that_is_not_set_or_not_allowed_is_named() {
    let mut server = rpc("http://user:password@127.0.0.1:1/mcp?key=hunter2");
    if let Transport::Rpc { auth, .. } = &mut server.transport {
        *auth = Some(McpAuth { bearer: serde_json::from_value(json!({"env": "NOT_SET_ANYWHERE"})).unwrap() });
    }
    for (allowed, problem) in [("NOT_SET_ANYWHERE", "is not set"), ("OTHER", "HOLDFAST_AGENT_SECRETS")] {
        let settings = format!("--agent-secrets={allowed}");
        let error = mcp(&[&settings]).tools(&server, &user("ann")).await.unwrap_err().to_string();
        assert!(error.contains("NOT_SET_ANYWHERE") && error.contains(problem), "{error}");
        assert!(!error.contains("hunter2") && !error.contains("password"), "{error}");
    }
}

#[tokio::test]
async fn another_secret_is_another_connection() {
    let fake = FakeServer::start().await;
    let mcp = mcp(&[]);
    call(&mcp, &rpc(&fake.url()), "echo", json!({})).await.unwrap();
    call(&mcp, &with_bearer(rpc(&fake.url())), "echo", json!({})).await.unwrap();
    assert_eq!(fake.count(|request| request.method() == "initialize"), 2);
}
