//! Which runs share a connection, and how many connections there are.

use super::{
    fake::{FakeServer, McpRequest},
    *,
};

fn in_conversation(owner: &str, conversation: u128) -> ServerUser {
    ServerUser { conversation_id: Uuid::from_u128(conversation), ..user(owner) }
}

/// Writes a note, and returns all notes that the server has.
async fn note(mcp: &Arc<Mcp>, server: &McpServer, user: &ServerUser, text: &str) -> Result<String, ToolError> {
    let input = serde_json::from_value(json!({"text": text})).unwrap();
    let call = McpCall { tool: "note", input: &input, key: "k", limit: None, user, caller: None, repeatable: false };
    let outcome = tokio::time::timeout(DEADLINE, mcp.call(server, &call)).await.unwrap();
    outcome.map(|output| output::in_words(output.parts))
}

fn named(name: &str, server: McpServer) -> McpServer {
    McpServer { name: name.into(), ..server }
}

/// Returns the reason why a run gets no connection.
async fn refusal(mcp: &Arc<Mcp>, server: &McpServer, user: &ServerUser) -> String {
    mcp.hold(server, user).await.err().expect("it has no connection").reason().into_owned()
}

fn handshakes(fake: &FakeServer) -> usize {
    fake.count(|request: &McpRequest| request.method() == "initialize")
}

#[tokio::test]
async fn a_note_is_seen_by_the_runs_of_its_scope_only() {
    let check = async |scope: ServerScope, reader: ServerUser, expected: &str| {
        let (mcp, server) = (mcp(&[]), McpServer { scope, ..fake_stdio(&[]) });
        let writer = in_conversation("ann", 1);
        assert_eq!(note(&mcp, &server, &writer, "first").await.unwrap(), "first");
        assert_eq!(note(&mcp, &server, &reader, "second").await.unwrap(), expected, "{scope:?} {reader:?}");
        mcp.close().await;
    };
    check(ServerScope::Conversation, in_conversation("ann", 1), "first, second").await;
    check(ServerScope::Conversation, in_conversation("ann", 2), "second").await;
    check(ServerScope::Owner, in_conversation("ann", 2), "first, second").await;
    check(ServerScope::Owner, in_conversation("bob", 2), "second").await;
    check(ServerScope::Worker, in_conversation("bob", 2), "first, second").await;
}

#[tokio::test]
async fn an_owner_has_as_many_connections_as_the_limit() {
    let (fake, mcp) = (FakeServer::start().await, mcp(&["--mcp-owner-connections=2", "--mcp-wait-ms=50"]));
    let server = |name: &str| named(name, rpc(&fake.url()));
    let (ann, bob) = (user("ann"), user("bob"));
    let holds = (mcp.hold(&server("a"), &ann).await.unwrap(), mcp.hold(&server("b"), &ann).await.unwrap());
    assert_eq!(refusal(&mcp, &server("c"), &ann).await, "too many servers are in use");
    // A connection that all owners share counts for none, and another owner has a limit of its own.
    let shared = McpServer { scope: ServerScope::Worker, ..server("c") };
    assert!(mcp.hold(&shared, &ann).await.is_ok());
    assert!(mcp.hold(&server("c"), &bob).await.is_ok());
    drop(holds);
    assert!(mcp.hold(&server("c"), &ann).await.is_ok());
}

#[tokio::test]
async fn anonymous_users_of_one_address_are_one_owner_and_share_no_connection() {
    let (server, mcp) = (fake_stdio(&[]), mcp(&["--mcp-owner-connections=1", "--mcp-wait-ms=50"]));
    let at_home = |owner: &str| ServerUser { counted_as: "home".into(), ..user(owner) };
    let hold = mcp.hold(&server, &at_home("anonymous_1")).await.unwrap();
    assert_eq!(note(&mcp, &server, &at_home("anonymous_1"), "mine").await.unwrap(), "mine");
    assert_eq!(refusal(&mcp, &server, &at_home("anonymous_2")).await, "too many servers are in use");
    drop(hold);
    assert_eq!(note(&mcp, &server, &at_home("anonymous_2"), "other").await.unwrap(), "other");
    mcp.close().await;
}

#[tokio::test]
async fn the_oldest_idle_connection_goes_first() {
    let (fake, mcp) = (FakeServer::start().await, mcp(&["--mcp-connections=2"]));
    let server = |name: &str| named(name, rpc(&fake.url()));
    let connect = async |name: &str| tool_names(&mcp, &server(name)).await.len();
    for name in ["a", "b", "a", "c"] {
        connect(name).await;
    }
    assert_eq!(handshakes(&fake), 3);
    connect("a").await;
    assert_eq!(handshakes(&fake), 3, "the connection of b was idle for longer");
    connect("b").await;
    assert_eq!(handshakes(&fake), 4);
}

#[tokio::test]
async fn a_process_over_the_limit_ends_an_idle_one_and_never_one_in_use() {
    let (fake, mcp) = (FakeServer::start().await, mcp(&["--mcp-processes=1", "--mcp-wait-ms=50"]));
    let (server, ann, bob) = (fake_stdio(&[]), user("ann"), user("bob"));
    let hold = mcp.hold(&server, &ann).await.unwrap();
    assert_eq!(note(&mcp, &server, &ann, "first").await.unwrap(), "first");
    assert_eq!(refusal(&mcp, &server, &bob).await, "too many servers are in use");
    assert_eq!(note(&mcp, &server, &bob, "x").await.unwrap_err().code, "server_unavailable");
    // A server elsewhere is no process.
    assert!(mcp.hold(&rpc(&fake.url()), &bob).await.is_ok());
    assert_eq!(note(&mcp, &server, &ann, "second").await.unwrap(), "first, second");
    drop(hold);
    assert_eq!(note(&mcp, &server, &bob, "other").await.unwrap(), "other");
    assert_eq!(note(&mcp, &server, &ann, "third").await.unwrap(), "third", "the first process has ended");
    mcp.close().await;
}

#[tokio::test]
async fn a_run_waits_for_a_connection_that_becomes_idle() {
    let (fake, mcp) = (FakeServer::start().await, mcp(&["--mcp-connections=1"]));
    let (server, ann, bob) = (rpc(&fake.url()), user("ann"), user("bob"));
    let hold = mcp.hold(&server, &ann).await.unwrap();
    let mut waiting = Box::pin(mcp.hold(&server, &bob));
    assert!(futures::poll!(&mut waiting).is_pending());
    drop(hold);
    assert!(tokio::time::timeout(DEADLINE, waiting).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_connection_that_a_run_holds_does_not_become_idle() {
    let (mcp, server, ann) = (mcp(&["--mcp-idle-ms=1"]), fake_stdio(&[]), user("ann"));
    let hold = mcp.hold(&server, &ann).await.unwrap();
    let pids = call(&mcp, &server, "pids", json!({})).await.unwrap();
    // Another connection is closed meanwhile, so this one had the time to close too.
    let other = named("other", fake_stdio(&[]));
    let other_pids = call(&mcp, &other, "pids", json!({})).await.unwrap();
    let is_gone = |pids: &str| {
        let pids: Vec<u32> = serde_json::from_str(pids).unwrap();
        !std::path::Path::new(&format!("/proc/{}", pids[0])).exists()
    };
    until(async || is_gone(&other_pids)).await;
    assert!(!is_gone(&pids));
    drop(hold);
    until(async || is_gone(&pids)).await;
    mcp.close().await;
}
