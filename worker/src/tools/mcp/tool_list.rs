//! Reading a server's whole list of tools, which comes in pages.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rmcp::model::{ClientRequest, ErrorCode, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool};
use serde_json::Value;

use super::{ServerTool, connection::Connection, failure::CallFailure};

/// A list that goes on for longer is cut, or a faulty server could keep us for ever.
const MAX_PAGES: usize = 100;
const MAX_TOOLS: usize = 1_000;

/// All tools, within `limit` for all pages together. A server that knows no tools has none.
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
            Ok(_) => return Err(CallFailure::malformed("its list of tools is none")),
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
        tracing::warn!(tools = MAX_TOOLS, pages = MAX_PAGES, "an MCP server's list of tools is too long and was cut");
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
