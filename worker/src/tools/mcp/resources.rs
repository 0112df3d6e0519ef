//! The tool that reads the resources of a server, by their URIs. The client has it beside the server's own tools.

use std::time::Duration;

use rmcp::model::{
    CallToolResult, ClientRequest, ContentBlock, ListResourceTemplatesRequest, ListResourcesRequest,
    PaginatedRequestParams, ReadResourceRequest, ReadResourceRequestParams, RequestMetaObject, ServerResult,
};
use serde_json::{Map, Value, json};

use super::{
    ServerTool,
    connection::{Connection, RequestAnswer},
};

/// The name of the tool on each server.
const READ_RESOURCE: &str = "read_resource";

const DESCRIPTION: &str =
    "Reads a resource of this server by its URI, as results of its tools and its resource links name it.";

/// Longest time that a server may take to list its resources. The tools of a slower one come without the reader.
const LIST_LIMIT: Duration = Duration::from_secs(2);

/// Returns whether the server lists a resource or a template of some. Many servers declare resources and have none.
pub async fn are_on(connection: &Connection, limit: Duration) -> bool {
    if !connection.declares_resources() {
        return false;
    }
    let limit = limit.min(LIST_LIMIT);
    let page = PaginatedRequestParams::default;
    let resources = ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(page()));
    let templates = ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest::with_param(page()));
    for request in [resources, templates] {
        let answer = connection.request(request, limit).await;
        let is_some = match answer.map(|RequestAnswer { result, .. }| result) {
            Ok(ServerResult::ListResourcesResult(list)) => !list.resources.is_empty(),
            Ok(ServerResult::ListResourceTemplatesResult(list)) => !list.resource_templates.is_empty(),
            _ => false,
        };
        if is_some {
            return true;
        }
    }
    false
}

/// Adds the tool that reads resources to those of a server. A tool of the server may have the name already.
pub fn add_reader(tools: &mut Vec<ServerTool>) {
    if tools.iter().any(|tool| tool.name == READ_RESOURCE) {
        return;
    }
    let uri = json!({"type": "string", "description": "The URI of the resource."});
    tools.push(ServerTool {
        name: READ_RESOURCE.to_owned(),
        description: DESCRIPTION.to_owned(),
        input_schema: json!({
            "type": "object", "properties": {"uri": uri}, "required": ["uri"], "additionalProperties": false
        }),
    });
}

/// Returns whether the tool is the client's own, which reads resources and changes nothing.
pub fn is_reader(tool: &ServerTool) -> bool {
    tool.name == READ_RESOURCE && tool.description == DESCRIPTION
}

/// Returns the request for the resource that the arguments of a call name.
pub fn request(input: &Map<String, Value>, meta: RequestMetaObject) -> ClientRequest {
    let mut params = ReadResourceRequestParams::new(input.get("uri").and_then(Value::as_str).unwrap_or_default());
    params.meta = Some(meta);
    ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
}

/// Returns the contents of a resource as the result of a tool that embeds them; another result as it is.
pub fn as_tool_result(result: ServerResult) -> ServerResult {
    match result {
        ServerResult::ReadResourceResult(read) => {
            let blocks = read.contents.into_iter().map(ContentBlock::resource).collect();
            ServerResult::CallToolResult(CallToolResult::success(blocks))
        }
        other => other,
    }
}
