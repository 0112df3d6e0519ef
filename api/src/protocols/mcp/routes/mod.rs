//! `/mcp` and `/mcp/rpc`: the tools of the workspace for other programs, by the Model Context Protocol.
//!
//! Both have no sessions: each request has its caller, so any process answers it. `/mcp/rpc` takes a plain JSON-RPC request
//! without the other headers of the protocol. `batch` has the batches of an older revision, and `metadata` tells where tokens come
//! from.

mod batch;
pub mod metadata;

use std::sync::{Arc, LazyLock};

use axum::{
    body::Body,
    extract::{FromRequestParts, Request, State},
    http::{HeaderValue, header, request::Parts},
    response::Response,
};
use bytes::Bytes;
use holdfast_shared::tool::{Effect, ToolError};
use holdfast_workspace::{ToolOutput, ToolScope, WorkspaceTool};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientJsonRpcMessage, ContentBlock, CustomRequest,
        CustomResult, ErrorCode, Implementation, ListToolsResult, MetaObject, PaginatedRequestParams,
        ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
    },
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
    },
};
use serde_json::{Map, Value, error::Category, json};

use batch::BatchAnswers;

use crate::{
    anonymous_limits::AdmittedWriter,
    app::App,
    auth::{Caller, origin_verdict},
    cors,
    extract::{is_json, read_body},
    problem::Problem,
};

/// The tools, which are the same for each caller.
static TOOLS: LazyLock<Vec<WorkspaceTool>> = LazyLock::new(|| ToolScope::All.tools(false));

/// The words about the server for a model.
const INSTRUCTIONS: &str = "The workspace of the caller: projects, tasks, plans, goals, documents and their relations. \
                            get_buildos_usage_guide says how to work with it.";

/// `POST /mcp`: the protocol's streamable HTTP. There is no stream to `GET` and no session to `DELETE`.
pub async fn streamable(
    State(app): State<Arc<App>>,
    _: OwnPage,
    AdmittedWriter(caller): AdmittedWriter,
    request: Request,
) -> Result<Response, Problem> {
    answer(&app, caller, request).await
}

/// `POST /mcp/rpc`: one JSON-RPC request, a notification or a batch, as `application/json`. `initialize` is optional.
pub async fn rpc(
    State(app): State<Arc<App>>,
    _: OwnPage,
    AdmittedWriter(caller): AdmittedWriter,
    request: Request,
) -> Result<Response, Problem> {
    if !is_json(request.headers()) {
        return Err(Problem::unsupported_media_type());
    }
    answer(&app, caller, request).await
}

/// Extracts nothing; fails for a page of an origin that the operator has not listed. A token does not excuse it, because a name that
/// leads to this server may be another's.
pub struct OwnPage;

impl FromRequestParts<Arc<App>> for OwnPage {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let listed = cors::origins(app.config());
        let mut origins = parts.headers.get_all(header::ORIGIN).iter().peekable();
        if origins.peek().is_some() && origins.all(|origin| listed.contains(origin)) {
            return Ok(Self);
        }
        origin_verdict(parts).map(|()| Self).map_err(|_| Problem::foreign_page())
    }
}

async fn answer(app: &Arc<App>, caller: Caller, request: Request) -> Result<Response, Problem> {
    let mut head = Request::new(());
    (*head.method_mut(), *head.uri_mut()) = (request.method().clone(), request.uri().clone());
    *head.headers_mut() = request.headers().clone();
    // Each answer is JSON, whatever the client would also take.
    head.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    head.extensions_mut().insert(caller);
    let body = read_body(request, app).await?;
    if !batch::is_batch(&body) {
        return Ok(answer_message(app, head, body).await);
    }
    let messages = match batch::messages(head.headers(), &body) {
        Ok(messages) => messages,
        Err(refused) => return Ok(*refused),
    };
    let mut answers = BatchAnswers::default();
    for message in messages {
        let answer = answer_message(app, head.clone(), message.to_string().into()).await;
        if let Some(refused) = answers.add(answer).await {
            return Ok(refused);
        }
    }
    Ok(answers.into_response())
}

/// Answers one message with the head of its request.
async fn answer_message(app: &Arc<App>, mut head: Request<()>, message: Bytes) -> Response {
    if let Err(error) = serde_json::from_slice::<ClientJsonRpcMessage>(&message) {
        return no_message(&error);
    }
    head.headers_mut().remove(header::CONTENT_LENGTH);
    let server = WorkspaceServer { app: Arc::clone(app) };
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(app.config().max_body_bytes)
        // `host` has checked the name of the server.
        .disable_allowed_hosts();
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    service.handle(head.map(|()| Body::from(message))).await.map(Body::new)
}

/// Returns the answer to a body that is no message of the protocol.
fn no_message(error: &serde_json::Error) -> Response {
    match error.classify() {
        Category::Data => batch::refused(ErrorCode::INVALID_REQUEST, "the body is not one request or notification"),
        _ => batch::refused(ErrorCode::PARSE_ERROR, "the body is not valid JSON"),
    }
}

/// The server of the protocol.
#[derive(Clone)]
struct WorkspaceServer {
    app: Arc<App>,
}

impl ServerHandler for WorkspaceServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("holdfast", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(declaration).collect()))
    }

    /// Refuses what is no request that the protocol knows. A known method comes here when its parameters are malformed.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, .. } = request;
        match method.as_str() {
            "tools/call" => Err(ErrorData::invalid_params(
                "params of tools/call are {\"name\": a text, \"arguments\": an object}",
                None,
            )),
            "initialize" | "tools/list" => {
                Err(ErrorData::invalid_params(format!("the params of {method} are malformed"), None))
            }
            _ => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method {method:?}"), None)),
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Caller>());
        let caller = caller.ok_or_else(|| ErrorData::internal_error("the request has no caller", None))?;
        let unknown = || ErrorData::invalid_params(format!("there is no tool {:?}", request.name), None);
        let tool = TOOLS.iter().find(|tool| tool.name == request.name).ok_or_else(unknown)?;
        let input = Value::Object(request.arguments.unwrap_or_default());
        match self.app.call_workspace_tool(caller, tool, input).await {
            Ok(Ok(output)) => Ok(result(output).into()),
            Ok(Err(error)) => Ok(CallToolResult::error(vec![ContentBlock::text(words_of(&error))]).into()),
            Err(problem) => Err(ErrorData::internal_error(problem.detail, Some(json!({"code": problem.code})))),
        }
    }
}

fn declaration(tool: &WorkspaceTool) -> Tool {
    let schema = tool.input_schema.as_object().cloned().unwrap_or_default();
    let mut declared = Tool::new(tool.name.clone(), tool.description.clone(), Arc::new(schema));
    declared.output_schema = tool.output_schema.as_object().cloned().map(Arc::new);
    let reads = tool.effect == Effect::ReadOnly;
    declared.annotations = Some(
        ToolAnnotations::new()
            .read_only(reads)
            .destructive(!reads && !tool.name.starts_with("create_"))
            .open_world(tool.name == "web_search"),
    );
    let category: &str = tool.category.into();
    let facts = json!({
        "summary": tool.summary, "category": category, "contexts": tool.contexts(), "capabilities": tool.capabilities()
    });
    let facts = Map::from_iter([("holdfast/tool".to_owned(), facts)]);
    declared.meta = Some(MetaObject(facts));
    declared
}

/// Returns a result: the text for models, all that it says as fields for programs, and beside them the entities.
fn result(output: ToolOutput) -> CallToolResult {
    let entities: Vec<Value> = output
        .entities
        .iter()
        .map(|entity| json!({"kind": entity.kind, "id": entity.id, "name": entity.name}))
        .collect();
    let fields = output.fields();
    let mut result = CallToolResult::success(vec![ContentBlock::text(output.text)]);
    result.structured_content = Some(fields);
    result.meta = Some(MetaObject(Map::from_iter([("entitiesAccessed".to_owned(), json!(entities))])));
    result
}

fn words_of(error: &ToolError) -> String {
    format!("{}: {}", error.code, error.message)
}
