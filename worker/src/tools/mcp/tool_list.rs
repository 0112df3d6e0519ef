//! Reads a server's complete list of tools, which comes in pages.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use holdfast_shared::json_size::JsonSize;
use rmcp::model::{ClientRequest, ErrorCode, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool};
use serde_json::Value;

use super::{
    ServerTool,
    connection::{Connection, RequestAnswer},
    failure::CallFailure,
};

/// A longer list is truncated, because a faulty server could send pages for ever.
const MAX_PAGES: usize = 100;
const MAX_TOOLS: usize = 1_000;

/// Returns all tools, within `limit` for all pages together. A server without the method has none.
pub async fn read(connection: &Connection, limit: Duration) -> Result<Arc<[ServerTool]>, CallFailure> {
    let end = Instant::now() + limit;
    let mut is_truncated = false;
    let mut tools = Vec::new();
    let (mut cursor, mut size) = (None, JsonSize::default());
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor.take());
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let left = end.saturating_duration_since(Instant::now());
        let page = match connection.request(request, None, left).await {
            Ok(RequestAnswer { result: ServerResult::ListToolsResult(page), size: of_page, .. }) => {
                size.values += of_page.values;
                size.text_bytes += of_page.text_bytes;
                page
            }
            Ok(_) => return Err(CallFailure::malformed("the answer is no list of tools")),
            Err(CallFailure::Refused(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => break,
            Err(CallFailure::Timeout(_)) => return Err(CallFailure::Timeout(limit)),
            Err(failure) => return Err(failure),
        };
        // All pages together are as large as one answer may be.
        if size.values > connection.limits.values || size.text_bytes > connection.limits.text_bytes {
            is_truncated = true;
            break;
        }
        tools.extend(page.tools.into_iter().map(ServerTool::from));
        cursor = page.next_cursor;
        if cursor.is_none() || tools.len() >= MAX_TOOLS {
            break;
        }
    }
    if is_truncated || cursor.is_some() || tools.len() > MAX_TOOLS {
        tracing::warn!(
            tools = tools.len().min(MAX_TOOLS),
            values = size.values,
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
