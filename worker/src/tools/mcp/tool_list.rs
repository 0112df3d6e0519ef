//! Reads a server's complete list of tools, which comes in pages.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rmcp::model::{ClientRequest, ErrorCode, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool};
use serde_json::Value;

use super::{ServerTool, connection::Connection, failure::CallFailure};

/// A longer list is truncated, because a faulty server could send pages for ever.
const MAX_PAGES: usize = 100;
const MAX_TOOLS: usize = 1_000;

/// Returns all tools, within `limit` for all pages together. A server without the method has none.
pub async fn read(connection: &Connection, limit: Duration) -> Result<Arc<[ServerTool]>, CallFailure> {
    let end = Instant::now() + limit;
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor.take());
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let left = end.saturating_duration_since(Instant::now());
        let page = match connection.request(request, left).await {
            Ok(ServerResult::ListToolsResult(page)) => page,
            Ok(_) => return Err(CallFailure::malformed("the answer is no list of tools")),
            Err(CallFailure::Refused(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => break,
            Err(CallFailure::Timeout(_)) => return Err(CallFailure::Timeout(limit)),
            Err(failure) => return Err(failure),
        };
        tools.extend(page.tools.into_iter().map(ServerTool::from));
        cursor = page.next_cursor;
        if cursor.is_none() || tools.len() >= MAX_TOOLS {
            break;
        }
    }
    if cursor.is_some() || tools.len() > MAX_TOOLS {
        tracing::warn!(
            tools = MAX_TOOLS,
            pages = MAX_PAGES,
            "truncated the list of tools of an MCP server, because it is too long"
        );
        tools.truncate(MAX_TOOLS);
    }
    Ok(tools.into())
}

impl From<Tool> for ServerTool {
    fn from(tool: Tool) -> Self {
        Self {
            name: tool.name.into_owned(),
            description: tool.description.unwrap_or_default().into_owned(),
            input_schema: Value::Object(Arc::unwrap_or_clone(tool.input_schema)),
        }
    }
}
