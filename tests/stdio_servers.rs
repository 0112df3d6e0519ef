//! Stdio servers, which are third-party programs on the worker's host: what they can read of the worker, and when they end.

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::Path,
    process::Command,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Client, Embedded, Holdfast, agent, frames_of, of_kind, own_user, until};

/// The id of the Unix user `nobody`.
const NOBODY: u32 = 65_534;

fn embedded() -> Embedded {
    Embedded::new().with("HOLDFAST_MCP_STDIO", true).with("OLLAMA_BASE_URL", "http://user:hunter2@127.0.0.1:1")
}

/// Returns the secrets and files that a stdio server can read.
async fn peek(client: &Client, data_dir: &Path) -> Value {
    let script = include_str!("stdio_servers/peek.py");
    let args = ["-c", script, data_dir.to_str().unwrap()];
    let server = json!({"name": "other", "transport": "stdio", "command": "python3", "args": args});
    let agent_id = agent(client, json!([server]), json!({})).await;
    let frames = frames_of(client, &agent_id, "[tokens=1] [call=other__peek {}]").await;
    let output = of_kind(&frames, "tool_call.completed")[0]["output"].as_str().unwrap_or_else(|| panic!("{frames:#?}"));
    serde_json::from_str(output).unwrap()
}

fn names(environment: &Value) -> Vec<&str> {
    environment.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test]
async fn a_stdio_server_of_a_root_worker_runs_as_user_nobody_and_sees_nothing_of_it() {
    let embedded = embedded();
    let (homes, mut command) = (folder_for_all(), embedded.command());
    let mut holdfast = Holdfast::start(command.env_remove("HOLDFAST_MCP_USER").env("HOLDFAST_MCP_HOME", homes.path()));
    let view = peek(&holdfast.client(), &embedded.data_dir()).await;
    let expected = if own_user() == 0 { json!([]) } else { json!(["data folder", "database"]) };
    assert_eq!(view["seen"], expected, "{view}");
    assert_eq!(view["can_write_home"], true, "{view}");
    assert!(!view["environment"].to_string().contains("hunter2"), "{view}");
    assert!(!names(&view["environment"]).iter().any(|name| name.contains("HOLDFAST")), "{view}");
    if own_user() == 0 {
        assert_eq!((&view["uid"], &view["groups"]), (&json!(NOBODY), &json!([])), "{view}");
    }
}

#[tokio::test]
async fn a_stdio_server_of_an_ordinary_worker_sees_neither_its_environment_nor_its_memory() {
    let embedded = embedded();
    let mut command = embedded.command();
    if own_user() == 0 {
        chown(embedded.folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY).env_remove("HOLDFAST_MCP_USER");
    }
    let mut holdfast = Holdfast::start(&mut command);
    let view = peek(&holdfast.client(), &embedded.data_dir()).await;
    // The server runs as the worker's user, so it can read the worker's files, as docs/agents.md says.
    assert_eq!(view["seen"], json!(["data folder", "database"]), "{view}");
}

#[tokio::test]
async fn a_stdio_server_of_another_user_starts_in_a_home_that_stays() {
    if own_user() != 0 {
        // Only root can start servers as another user.
        return;
    }
    let homes = folder_for_all();
    let keep = async |text: &str| {
        let embedded = embedded().with("HOLDFAST_MCP_HOME", homes.path().display());
        let mut command = embedded.command();
        // The user of the servers cannot read this folder.
        command.env_remove("HOLDFAST_MCP_USER").current_dir(embedded.folder.path());
        let mut holdfast = Holdfast::start(&mut command);
        let client = holdfast.client();
        let args = ["-c", include_str!("tool_servers/notes.py")];
        let server = json!({"name": "notes", "transport": "stdio", "command": "python3", "args": args});
        let agent_id = agent(&client, json!([server]), json!({})).await;
        let call = format!("[tokens=1] [call=notes__keep {{\"text\":\"{text}\"}}]");
        let frames = frames_of(&client, &agent_id, &call).await;
        let output = of_kind(&frames, "tool_call.completed")[0]["output"].as_str();
        serde_json::from_str::<Value>(output.unwrap_or_else(|| panic!("{frames:#?}"))).unwrap()
    };
    let first = keep("one").await;
    let home = Path::new(first["home"].as_str().unwrap());
    assert_eq!((home.parent(), &first["cwd"]), (Some(homes.path()), &first["home"]));
    assert_eq!(keep("two").await["lines"], json!(["one", "two"]));
}

/// Returns a folder that each user can enter.
fn folder_for_all() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

#[tokio::test]
async fn the_stdio_servers_of_a_killed_worker_end() {
    let embedded = embedded();
    let mut holdfast = embedded.start();
    let view = peek(&holdfast.client(), &embedded.data_dir()).await;
    let pids: Vec<u64> = serde_json::from_value(view["pids"].clone()).unwrap();
    assert!(pids.iter().all(|pid| is_alive(*pid)), "{view}");
    holdfast.kill();
    until("the server and its child are gone", async || (!pids.iter().any(|pid| is_alive(*pid))).then_some(())).await;
}

#[test]
fn another_user_for_stdio_servers_needs_a_root_worker() {
    let refused = |command: &mut Command| crate::support::refusal(command);
    let reason = refused(embedded().command().env("HOLDFAST_MCP_USER", "no-such-user"));
    assert!(reason.contains("HOLDFAST_MCP_USER") && reason.contains("no-such-user"), "{reason}");
    if own_user() == 0 {
        let reason = refused(embedded().command().uid(NOBODY).env("HOLDFAST_MCP_USER", "1"));
        assert!(reason.contains("HOLDFAST_MCP_USER") && reason.contains("root"), "{reason}");
    }
}

/// Returns whether a process runs. A zombie does not run.
fn is_alive(pid: u64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
