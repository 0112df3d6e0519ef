//! Servers that take long to start.

use std::path::{Path, PathBuf};

use super::*;

/// A server that starts once its test opens the gate. It notes each start.
struct SlowStart {
    folder: tempfile::TempDir,
}

impl SlowStart {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("gate")
    }

    fn server(&self) -> McpServer {
        fake_stdio(&["gated", &self.path().display().to_string()])
    }

    fn open(&self) {
        std::fs::write(self.path(), "").unwrap();
    }

    fn starts(&self) -> usize {
        std::fs::read_to_string(self.folder.path().join("gate.starts")).unwrap_or_default().lines().count()
    }
}

#[tokio::test]
async fn a_start_for_which_no_caller_waits_is_kept_for_later_ones() {
    let (gate, mcp, ann) = (SlowStart::new(), mcp(&[]), user("ann"));
    let server = gate.server();
    for _ in 0..3 {
        drop(mcp.hold(&server, &ann).await.unwrap());
        assert!(mcp.start_of(&server, &ann).is_none());
    }
    until(async || gate.starts() > 0).await;
    gate.open();
    assert_eq!(tool_names(&mcp, &server).await, ["echo"]);
    assert_eq!((mcp.start_of(&server, &ann), gate.starts()), (Some(Ok(())), 1));
    mcp.close().await;
}

#[tokio::test]
async fn a_start_that_failed_is_known_although_no_caller_waited() {
    let (mcp, server, ann) = (mcp(&[]), stdio(&["/nowhere/at-all".into()]), user("ann"));
    let _hold = mcp.hold(&server, &ann).await.unwrap();
    until(async || mcp.start_of(&server, &ann).is_some()).await;
    assert_eq!(mcp.start_of(&server, &ann).unwrap().unwrap_err().code(), "server_unavailable");
}

#[tokio::test]
async fn a_server_that_waits_for_its_turn_has_the_full_time_for_its_own_start() {
    let (mcp, ann) = (mcp(&["--mcp-starts=1", "--mcp-connect-ms=4000"]), user("ann"));
    let (silent, server) = (fake_stdio(&["silent"]), fake_stdio(&[]));
    let first = mcp.hold(&silent, &ann).await.unwrap();
    // Both begin now: the second one would have no time left, if its wait counted.
    assert_eq!(tool_names(&mcp, &server).await, ["echo"]);
    assert!(mcp.start_of(&silent, &ann).is_some_and(|start| start.is_err()));
    drop(first);
    mcp.close().await;
}

#[tokio::test]
async fn further_servers_wait_until_a_start_has_ended() {
    let (mcp, ann) = (mcp(&["--mcp-starts=1"]), user("ann"));
    let (first, second) = (SlowStart::new(), SlowStart::new());
    mcp.hold(&first.server(), &ann).await.unwrap();
    until(async || first.starts() == 1).await;
    mcp.hold(&second.server(), &ann).await.unwrap();
    second.open();
    first.open();
    assert_eq!(tool_names(&mcp, &first.server()).await, ["echo"]);
    assert_eq!(tool_names(&mcp, &second.server()).await, ["echo"]);
    let noted =
        |gate: &SlowStart| std::fs::metadata(gate.folder.path().join("gate.starts")).unwrap().modified().unwrap();
    let opened = std::fs::metadata(first.path()).unwrap().modified().unwrap();
    assert!(noted(&second) >= opened, "the second one started before the first one was ready");
    mcp.close().await;
}

#[tokio::test]
async fn a_server_of_all_runs_is_ready_before_the_first_one() {
    let (gate, mcp) = (SlowStart::new(), mcp(&[]));
    gate.open();
    let server = McpServer { scope: ServerScope::Worker, ..gate.server() };
    mcp.start_for_all(&server).await;
    assert_eq!(mcp.start_of(&server, &user("ann")), Some(Ok(())));
    assert_eq!((tool_names(&mcp, &server).await.len(), gate.starts()), (1, 1));
    mcp.close().await;
}

#[tokio::test]
async fn a_server_starts_in_the_folder_of_its_definition() {
    let folder = tempfile::tempdir().unwrap();
    let (mcp, mut server) = (mcp(&[]), fake_stdio(&[]));
    if let Transport::Stdio { cwd, .. } = &mut server.transport {
        *cwd = Some(folder.path().display().to_string());
    }
    let started_in = call(&mcp, &server, "cwd", json!({})).await.unwrap();
    assert_eq!(Path::new(&started_in).canonicalize().unwrap(), folder.path().canonicalize().unwrap());
    mcp.close().await;
}
