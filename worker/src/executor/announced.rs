//! The tools that MCP servers announce while a run is at work, and the warning about those that the run does without.

use std::sync::Arc;

use futures::future::join_all;

use super::{Stop, attempt::Attempt};

/// Takes the tools that connected servers have announced since the last step. A server that does not answer keeps its old list.
pub async fn refresh_tools(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    let known = attempt.toolbox.listings();
    if known.is_empty() {
        return Ok(());
    }
    let (mcp, definition) = (Arc::clone(&attempt.shared.mcp), Arc::clone(&attempt.definition));
    let servers = definition.mcp_servers.iter().filter_map(|server| Some((server, known.get(&server.name)?)));
    let looks = servers.map(|(server, known)| {
        let mcp = Arc::clone(&mcp);
        async move { Some((server, mcp.announced(server, known).await?)) }
    });
    let announced = attempt.alongside(join_all(looks)).await?;
    for (server, listing) in announced.into_iter().flatten() {
        attempt.toolbox.replace_server(&mcp, server, &listing, &definition, &attempt.claim.owner_id);
    }
    warn_of_missing_tools(attempt);
    Ok(())
}

/// Warns the clients and the operator of tools of servers that the run does without.
pub fn warn_of_missing_tools(attempt: &mut Attempt<'_>) {
    for notice in attempt.toolbox.take_notices() {
        tracing::warn!(notice, "left out tools of an MCP server");
        attempt.warn("mcp_tools_left_out", notice);
    }
}
