//! One tool: its declaration, the check of its arguments, and the place where its calls are executed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use holdfast_shared::{
    agent::McpServer,
    schema::{Schema, SchemaCheckError, SchemaChecks},
    storage::FoundAgent,
    tool::{Effect, ToolError},
};
use holdfast_workspace::WorkspaceTool;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::{
    files::{self, FilesOfRun},
    kept_results::KeptResultsOfRun,
    knowledge::{KnowledgeOfRun, KnowledgeTool},
    mcp::{Mcp, McpCall, Output, ServerUser},
    memory::{MemoryOfRun, MemoryTool},
    returned::FileKeeper,
    scripted::ScriptedTool,
    workspace::{CallResult, WorkspaceOfRun},
};
use crate::model::ToolSpec;

/// One tool.
pub struct Tool {
    pub spec: ToolSpec,
    pub effect: Effect,
    /// Whether a human must approve each call.
    pub needs_approval: bool,
    pub(super) executor: ToolExecutor,
    /// The compiled schema of the arguments, set by the first check; `None` inside if the schema is broken.
    pub(super) schema: OnceCell<Option<Arc<Schema>>>,
}

/// The place where a tool's calls are executed.
pub(super) enum ToolExecutor {
    Server {
        mcp: Arc<Mcp>,
        server: Arc<McpServer>,
        name: String,
        limit: Option<Duration>,
        user: Arc<ServerUser>,
    },
    Scripted(ScriptedTool, Duration),
    Client,
    /// A child run of this agent.
    Subagent(FoundAgent),
    /// The executor itself, which has the run's state.
    Planner(PlannerTool),
    /// The agent's memory of the run's owner.
    Memory(MemoryTool, Arc<MemoryOfRun>),
    /// The workspace of the run's owner.
    Workspace(WorkspaceTool, Arc<WorkspaceOfRun>),
    /// Documents that the run's owner may read.
    Knowledge(KnowledgeTool, Arc<KnowledgeOfRun>),
    /// Files of the run's owner.
    Files(Arc<FilesOfRun>),
    /// Results of the conversation's calls.
    KeptResults(Arc<KeptResultsOfRun>),
}

/// A tool that changes the course of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlannerTool {
    /// Makes a plan.
    Plan,
    /// Asks the user questions, and ends the run.
    Questions,
}

impl Tool {
    /// Returns the name of the MCP server that executes the tool.
    pub(super) fn server(&self) -> Option<&str> {
        match &self.executor {
            ToolExecutor::Server { server, .. } => Some(&server.name),
            _ => None,
        }
    }

    /// Returns whether the client executes the tool.
    pub const fn is_client_tool(&self) -> bool {
        matches!(self.executor, ToolExecutor::Client)
    }

    /// Returns whether a call changes the workspace.
    pub fn changes_workspace(&self) -> bool {
        self.is_of_workspace() && self.effect != Effect::ReadOnly
    }

    /// Returns whether the tool is the workspace's.
    pub const fn is_of_workspace(&self) -> bool {
        matches!(self.executor, ToolExecutor::Workspace(..))
    }

    /// Returns whether results of the tool name memories.
    pub const fn recalls(&self) -> bool {
        matches!(self.executor, ToolExecutor::Memory(MemoryTool::Recall, _))
    }

    /// Returns whether results of the tool name passages of documents.
    pub const fn finds_passages(&self) -> bool {
        matches!(self.executor, ToolExecutor::Knowledge(..))
    }

    /// Returns whether the tool reads what earlier calls have stored.
    pub const fn reads_results(&self) -> bool {
        matches!(self.executor, ToolExecutor::KeptResults(..))
    }

    /// Returns the agent that answers the tool's calls, if it delegates.
    pub const fn subagent(&self) -> Option<&FoundAgent> {
        match &self.executor {
            ToolExecutor::Subagent(found) => Some(found),
            _ => None,
        }
    }

    /// Returns the tool of a planner that this is, if it is one.
    pub const fn planner(&self) -> Option<PlannerTool> {
        match self.executor {
            ToolExecutor::Planner(tool) => Some(tool),
            _ => None,
        }
    }

    /// Fails if the arguments violate the tool's schema, or cannot be checked now. A broken schema accepts all
    /// arguments: the server checks its own arguments.
    pub async fn check(&self, checks: &SchemaChecks, owner: &str, input: &Value) -> Result<(), ToolError> {
        let invalid = |problem: String| match &self.executor {
            ToolExecutor::Files(_) => {
                ToolError::new("invalid_arguments", format!("{problem}, such as {}", files::EXAMPLE))
            }
            _ => ToolError::new("invalid_arguments", problem),
        };
        if !input.is_object() {
            return Err(invalid("the arguments are no JSON object".to_owned()));
        }
        let result = match self.compiled_schema(checks, owner).await {
            Ok(Some(schema)) => {
                let checkable = match &self.executor {
                    ToolExecutor::Workspace(tool, _) => tool.checkable(input),
                    _ => input.clone(),
                };
                checks.validate(owner, Arc::clone(schema), checkable).await
            }
            Ok(None) => Ok(()),
            Err(busy) => Err(busy),
        };
        result.map_err(|problem| match problem {
            SchemaCheckError::Invalid(problem) => invalid(problem),
            SchemaCheckError::Busy => {
                ToolError::new("arguments_unchecked", "this call was not made: checking its arguments took too long")
            }
        })
    }

    async fn compiled_schema(
        &self,
        checks: &SchemaChecks,
        owner: &str,
    ) -> Result<&Option<Arc<Schema>>, SchemaCheckError> {
        let compile = || async {
            match checks.compile(owner, self.spec.input_schema.clone()).await {
                Ok(schema) => Ok(Some(schema)),
                Err(SchemaCheckError::Invalid(problem)) => {
                    tracing::debug!(tool.name = self.spec.name, problem, "arguments stay unchecked");
                    Ok(None)
                }
                Err(busy) => Err(busy),
            }
        };
        self.schema.get_or_try_init(compile).await
    }

    /// Calls the tool under its idempotency key, and stores the files that it returns. Returns the output or an error for the
    /// model, and how long the call took.
    pub async fn call(
        self: Arc<Self>,
        input: Value,
        key: String,
        keeper: Arc<FileKeeper>,
    ) -> (Result<CallResult, ToolError>, Duration) {
        let started = Instant::now();
        let outcome = match &self.executor {
            ToolExecutor::Server { mcp, server, name, limit, user } => {
                let Value::Object(input) = input else {
                    return (
                        Err(ToolError::new("invalid_arguments", "the arguments are no JSON object")),
                        Duration::ZERO,
                    );
                };
                let repeatable = self.effect != Effect::Once;
                let caller = server.caller.then_some(user.owner.as_ref());
                let call = McpCall { tool: name, input: &input, key: &key, limit: *limit, user, caller, repeatable };
                match mcp.call(server, &call).await {
                    Ok(Output { parts, memory }) => {
                        let kept = keeper.keep(name, &key, parts).await;
                        // Order matters: the answer's memory is free once its files are stored.
                        drop(memory);
                        Ok(kept)
                    }
                    Err(error) => Err(error),
                }
            }
            ToolExecutor::Scripted(tool, limit) => match tokio::time::timeout(*limit, tool.call(&input)).await {
                Ok(parts) => Ok(keeper.keep(tool.name(), &key, parts).await),
                Err(_) => Err(ToolError::new("timeout", format!("the tool took longer than {} ms", limit.as_millis()))),
            },
            ToolExecutor::Knowledge(tool, of_run) => of_run.call(*tool, input).await,
            ToolExecutor::Files(of_run) => of_run.call(input).await,
            ToolExecutor::KeptResults(of_run) => of_run.call(input).await,
            ToolExecutor::Workspace(tool, of_run) => of_run.call(tool, &key, input).await,
            ToolExecutor::Memory(tool, of_run) => of_run.call(*tool, &key, input).await,
            ToolExecutor::Subagent(_) => Err(ToolError::new("subagent", "only a child run answers this call")),
            ToolExecutor::Planner(_) => Err(ToolError::new("planner", "only the executor answers this call")),
            ToolExecutor::Client => Err(ToolError::new("client_tool", "only the client can execute this tool")),
        };
        (outcome, started.elapsed())
    }
}
