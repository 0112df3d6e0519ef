//! Holdfast as the first process of a PID namespace, as in a container: signals have no default effect, and the process
//! inherits orphans.

use std::{
    fs,
    process::{self, Command},
};

use serde_json::json;

use crate::support::{Embedded, Holdfast, agent, frames_of, of_kind, until};

/// Starts a process in its own PID namespace, below `unshare`, which waits for it.
fn start_as_first(embedded: &Embedded) -> Holdfast {
    let plain = embedded.command();
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]).arg(plain.get_program());
    command.env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Holdfast::start(&mut command)
}

/// Returns the children of a process, including zombies.
fn children(of: u32) -> Vec<u32> {
    let parent = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may contain spaces.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| parent(*pid) == Some(of)).collect()
}

fn first_process(holdfast: &Holdfast) -> u32 {
    let child_ids = children(holdfast.id());
    assert_eq!(child_ids.len(), 1, "{child_ids:?}");
    child_ids[0]
}

#[tokio::test]
async fn sigterm_drains() {
    let embedded = Embedded::new();
    let mut holdfast = start_as_first(&embedded);
    let client = holdfast.client();
    let mut stream = client.stream("[tokens=100] [delay=20] hi").await;
    stream.up_to("message.delta").await;
    let first = first_process(&holdfast).to_string();
    assert!(process::Command::new("kill").args(["-TERM", &first]).status().unwrap().success());
    assert!(holdfast.exit().success());
    let run = embedded.start().client().run(&stream.run_id).await;
    assert_eq!((run["status"].as_str(), run["attempt"].as_u64()), (Some("completed"), Some(1)), "{run}");
}

#[tokio::test]
async fn orphans_of_a_stdio_server_are_reaped() {
    let embedded = Embedded::new().with("HOLDFAST_MCP_STDIO", true).with("HOLDFAST_MCP_CONNECT_MS", 500);
    let mut holdfast = start_as_first(&embedded);
    let client = holdfast.client();
    // One server exits and leaves a child, and the other one is killed together with its child.
    let leaving = json!({"name": "leaving", "transport": "stdio", "command": "sh", "args": ["-c", "sleep 1000 &"]});
    let silent = json!({"name": "silent", "transport": "stdio", "command": "sh", "args": ["-c", "sleep 1000; true"]});
    let agent_id = agent(&client, json!([leaving, silent]), json!({})).await;
    let frames = frames_of(&client, &agent_id, "[tokens=1] hi").await;
    assert_eq!(of_kind(&frames, "warning.raised").len(), 2, "{frames:?}");
    let first = first_process(&holdfast);
    until("no child is left", async || children(first).is_empty().then_some(())).await;
}
