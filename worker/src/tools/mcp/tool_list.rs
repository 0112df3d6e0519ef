//! Reads a server's complete list of tools, which comes in pages. `tool_entry` reads each tool.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use holdfast_shared::json_size::JsonSize;
use rmcp::model::{ClientRequest, ErrorCode, ListToolsRequest, PaginatedRequestParams};
use serde_json::Value;

use super::{
    LeftOutTool, ServerListing,
    connection::{Connection, RequestAnswer},
    failure::CallFailure,
    tool_entry,
};

/// A longer list is truncated, because a faulty server could send pages for ever.
const MAX_PAGES: usize = 100;
const MAX_TOOLS: usize = 1_000;

/// Returns all tools, within `limit` for all pages together. A server without the method has none.
pub async fn read(connection: &Connection, limit: Duration) -> Result<ServerListing, CallFailure> {
    let end = Instant::now() + limit;
    let mut is_truncated = false;
    let mut entries = Vec::new();
    let (mut cursor, mut size) = (None::<String>, JsonSize::default());
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let left = end.saturating_duration_since(Instant::now());
        let answer = match connection.request(request, left).await {
            Ok(answer) => answer,
            Err(CallFailure::Refused(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => break,
            Err(CallFailure::Timeout(_)) if entries.is_empty() => return Err(CallFailure::Timeout(limit)),
            Err(CallFailure::Timeout(_)) => {
                is_truncated = true;
                break;
            }
            Err(failure) => return Err(failure),
        };
        size.values += answer.size.values;
        size.text_bytes += answer.size.text_bytes;
        let page = page(answer).ok_or_else(|| CallFailure::malformed("the answer is no list of tools"))?;
        // All pages together are as large as one answer may be.
        if size.values > connection.limits.values || size.text_bytes > connection.limits.text_bytes {
            is_truncated = true;
            break;
        }
        entries.extend(page.tools);
        // A server that does not read the cursor sends its first page for ever.
        let is_repeated = cursor.is_some() && page.next == cursor;
        cursor = page.next.filter(|_| !is_repeated);
        if cursor.is_none() || entries.len() >= MAX_TOOLS {
            break;
        }
    }
    if is_truncated || cursor.is_some() || entries.len() > MAX_TOOLS {
        tracing::warn!(
            tools = entries.len().min(MAX_TOOLS),
            values = size.values,
            "truncated the list of tools of an MCP server, because it is too long or arrives too slowly"
        );
        entries.truncate(MAX_TOOLS);
    }
    Ok(listing(entries))
}

struct ToolPage {
    tools: Vec<Value>,
    next: Option<String>,
}

/// Returns a page as JSON, because rmcp knows a list with one malformed tool only as a custom result.
fn page(answer: RequestAnswer) -> Option<ToolPage> {
    let mut result = serde_json::to_value(&answer.result).ok()?;
    let Value::Array(tools) = result.get_mut("tools")?.take() else { return None };
    let next = result["nextCursor"].as_str().filter(|cursor| !cursor.is_empty()).map(str::to_owned);
    Some(ToolPage { tools, next })
}

/// Reads each tool by itself. Of two tools with one name, the first one counts.
fn listing(entries: Vec<Value>) -> ServerListing {
    let (mut listing, mut names) = (ServerListing::default(), BTreeSet::new());
    for (index, entry) in entries.into_iter().enumerate() {
        match tool_entry::read(index, entry) {
            Ok(tool) if names.insert(tool.name.clone()) => listing.tools.push(tool),
            Ok(tool) => listing.left_out.push(LeftOutTool {
                name: tool_entry::shortened(&tool.name),
                reason: "an earlier tool of the list has its name".into(),
            }),
            Err(left_out) => listing.left_out.push(left_out),
        }
    }
    listing
}
