//! The MCP servers of an attempt: gathered at its beginning, looked at again at each step, awaited by a call.

use std::sync::Arc;

use futures::future::join_all;
use holdfast_shared::{agent::McpServer, storage::CallState, tool::ToolCallStatus};

use super::{Stop, attempt::Attempt};
use crate::tools::{RunServers, ServerState, ServerUser};

/// Starts the agent's servers side by side, and takes the tools of those that are ready soon. A server that is down or still
/// starting costs its tools, not the run.
pub async fn gather(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    let definition = Arc::clone(&attempt.definition);
    if definition.mcp_servers.is_empty() {
        return Ok(());
    }
    let wait = attempt.shared.worker.tools.mcp_wait;
    let servers = RunServers::new(&attempt.shared.mcp, user_of(attempt), wait);
    let begun = join_all(definition.mcp_servers.iter().map(|server| servers.begin(server)));
    let begun = attempt.alongside(begun).await?;
    attempt.toolbox.use_servers(servers);
    for (server, (hold, state)) in definition.mcp_servers.iter().zip(begun) {
        attempt.toolbox.hold(hold);
        take(attempt, server, state);
    }
    let starting: Vec<&str> = attempt.toolbox.starting().iter().map(|server| server.name.as_str()).collect();
    if !starting.is_empty() {
        let names = starting.join(", ");
        tracing::info!(mcp.servers = names, "the run begins without the tools of servers that are still starting");
        let message = format!("Servers that are still starting: {names}. Their tools join at the run's next step.");
        attempt.warn("mcp_server_starting", message);
    }
    Ok(())
}

/// Takes the tools that servers have got since the last step.
pub async fn refresh(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    join_started(attempt).await?;
    take_announced(attempt).await
}

/// Takes the tools of servers that have started since the last step.
async fn join_started(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    let Some((servers, starting)) = attempt.toolbox.starting_servers(|_| true) else { return Ok(()) };
    let looks = async { join_all(starting.iter().map(|server| servers.started(server))).await };
    let states = attempt.alongside(looks).await?;
    for (server, state) in starting.iter().zip(states) {
        take(attempt, server, state.unwrap_or(ServerState::Starting));
    }
    Ok(())
}

/// Takes the tools that connected servers have announced since the last step. A server that does not answer keeps its old list.
async fn take_announced(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    let Some((run_servers, known)) = attempt.toolbox.listings() else { return Ok(()) };
    let definition = Arc::clone(&attempt.definition);
    let servers = definition.mcp_servers.iter().filter_map(|server| Some((server, known.get(&server.name)?)));
    let looks = servers.map(|(server, known)| {
        let run_servers = &run_servers;
        async move { Some((server, run_servers.announced(server, known).await?)) }
    });
    let announced = attempt.alongside(join_all(looks)).await?;
    for (server, listing) in announced.into_iter().flatten() {
        attempt.toolbox.replace_server(server, &listing, &definition);
    }
    warn_of_missing_tools(attempt);
    Ok(())
}

/// Waits for servers that are still starting and whose tools the calls of this step name.
pub async fn await_named(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    let is_open = |state: &CallState| {
        !matches!(state.status, ToolCallStatus::Completed | ToolCallStatus::Abandoned | ToolCallStatus::Client)
    };
    let open = attempt.memory.calls.iter().map(|call| &call.state).filter(|state| is_open(state));
    let named: Vec<&str> = open.filter_map(|state| attempt.toolbox.server_starting_with(&state.name)).collect();
    let Some((servers, starting)) = attempt.toolbox.starting_servers(|name| named.contains(&name)) else {
        return Ok(());
    };
    let waits = async { join_all(starting.iter().map(|server| servers.wait_for(server))).await };
    let states = attempt.alongside(waits).await?;
    for (server, state) in starting.iter().zip(states) {
        take(attempt, server, state);
    }
    Ok(())
}

/// Takes the tools of a server, or notes that it has none now. Warns once of a server that cannot be used.
fn take(attempt: &mut Attempt<'_>, server: &McpServer, state: ServerState) {
    let definition = Arc::clone(&attempt.definition);
    let name = &server.name;
    if let ServerState::Unavailable(problem) = &state {
        tracing::warn!(mcp.server = name, %problem, "failed to list the tools of a server; the run continues without them");
        let reason = problem.reason();
        attempt.warn("mcp_server_unavailable", format!("The tools of {name} cannot be used now: {reason}."));
    }
    attempt.toolbox.take_server(server, state, &definition);
    warn_of_missing_tools(attempt);
}

/// Warns the clients and the operator of tools of servers that the run does without.
fn warn_of_missing_tools(attempt: &mut Attempt<'_>) {
    for notice in attempt.toolbox.take_notices() {
        tracing::warn!(notice, "left out tools of an MCP server");
        attempt.warn("mcp_tools_left_out", notice);
    }
}

fn user_of(attempt: &Attempt<'_>) -> ServerUser {
    let claim = attempt.claim;
    ServerUser {
        owner: claim.owner_id.as_str().into(),
        conversation_id: claim.conversation_id,
        counted_as: claim.counted_as().into(),
        signs_of_life: attempt.signs_of_life.clone(),
    }
}
