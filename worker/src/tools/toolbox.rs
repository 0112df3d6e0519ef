//! The tools of one run, by the names that the model knows.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use holdfast_shared::{
    agent::{AgentDefinition, McpServer},
    config::{ANONYMOUS_PREFIX, begins_with},
    event::ExecutedBy,
    excerpt::READ_RESULT,
    plan,
    storable::{storable, storable_json},
    storage::FoundAgent,
    subagent,
    tool::{ApprovalPolicy, ClientTool, Effect, ToolPolicy},
};
use holdfast_workspace::{ToolScope, WorkspaceTool};
use tokio::sync::OnceCell;

use super::{
    files::{FilesOfRun, READ_FILE},
    kept_results::KeptResultsOfRun,
    knowledge::{KnowledgeOfRun, KnowledgeTool},
    mcp::{self, ConnectionHold, LeftOutTool, ServerListing},
    memory::{MemoryOfRun, MemoryTool},
    run_servers::{RunServers, ServerState},
    scripted,
    scripted::ScriptedTool,
    server_tool_name::{full_name, server_tool_name},
    tool::{PlannerTool, Tool, ToolExecutor},
    workspace::WorkspaceOfRun,
};
use crate::model::ToolSpec;

/// Most tools that one warning names.
const NAMED: usize = 10;

/// Most characters of a server's instructions that the model reads.
const INSTRUCTION_CHARS: usize = 4_000;

/// All tools that the model of one run may call.
#[derive(Default)]
pub struct Toolbox {
    tools: BTreeMap<String, Arc<Tool>>,
    /// The connections to the agent's servers.
    servers: Option<RunServers>,
    /// Keeps them connected between the calls of the run.
    holds: Vec<ConnectionHold>,
    /// Servers whose tools cannot be used now.
    unavailable: Vec<String>,
    /// Servers that are still starting.
    starting: Vec<Arc<McpServer>>,
    /// The lists of servers, as the run has last read them.
    listings: BTreeMap<String, Arc<ServerListing>>,
    /// Sentences about tools that the run lacks, until a warning has carried them.
    notices: Vec<String>,
    /// The only tools that the run may have, if its planner has chosen them.
    only: Option<Vec<String>>,
    /// The workspace that tools use.
    workspace: Option<Arc<WorkspaceOfRun>>,
}

impl Toolbox {
    pub fn use_servers(&mut self, servers: RunServers) {
        self.servers = Some(servers);
    }

    /// Keeps a server's connection until the toolbox is dropped.
    pub fn hold(&mut self, hold: Option<ConnectionHold>) {
        self.holds.extend(hold);
    }

    /// Adds the tools of a server that is ready, or notes why it has none now.
    pub fn take_server(&mut self, server: &McpServer, state: ServerState, definition: &AgentDefinition) {
        let was_starting = self.starting.iter().position(|starting| starting.name == server.name);
        let server = was_starting.map_or_else(|| Arc::new(server.clone()), |at| self.starting.remove(at));
        match (state, self.servers.clone()) {
            (ServerState::Ready(listing), Some(servers)) => self.add_server(&servers, &server, &listing, definition),
            (ServerState::Starting, Some(_)) => self.starting.push(server),
            _ => self.unavailable.push(server.name.clone()),
        }
    }

    /// Returns the servers that are still starting.
    pub fn starting(&self) -> &[Arc<McpServer>] {
        &self.starting
    }

    /// Returns those of them with such a name, and the connections to them; `None` if there is none.
    pub fn starting_servers(&self, is_named: impl Fn(&str) -> bool) -> Option<(RunServers, Vec<Arc<McpServer>>)> {
        let starting: Vec<_> = self.starting.iter().filter(|server| is_named(&server.name)).cloned().collect();
        if starting.is_empty() { None } else { Some((self.servers.clone()?, starting)) }
    }

    /// Returns the name of the server that is still starting and may have a tool of this name.
    pub fn server_starting_with(&self, tool: &str) -> Option<&str> {
        let (server, _) = tool.split_once("__").filter(|_| self.get(tool).is_none())?;
        self.starting.iter().map(|starting| starting.name.as_str()).find(|starting| *starting == server)
    }

    /// Returns the connections to the agent's servers, and their lists as the run has last read them.
    pub fn listings(&self) -> Option<(RunServers, BTreeMap<String, Arc<ServerListing>>)> {
        Some((self.servers.clone()?, self.listings.clone()))
    }

    /// Replaces the tools of a server by those of a newer list.
    pub fn replace_server(&mut self, server: &McpServer, listing: &Arc<ServerListing>, definition: &AgentDefinition) {
        let Some(servers) = self.servers.clone() else { return };
        self.tools.retain(|_, tool| tool.server() != Some(server.name.as_str()));
        self.add_server(&servers, &Arc::new(server.clone()), listing, definition);
    }

    /// Returns the sentences about tools that the run lacks, once.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// Returns the instructions of the servers that have tools in the run, and whose definition does not refuse them.
    pub fn instructions(&self, definition: &AgentDefinition) -> Vec<String> {
        let has_tools = |name: &str| self.tools.values().any(|tool| tool.server() == Some(name));
        let wanted = definition.mcp_servers.iter().filter(|server| server.instructions && has_tools(&server.name));
        let of_server = |server: &McpServer| {
            let text = self.listings.get(&server.name)?.instructions.as_deref()?.trim();
            let bounded: String = text.chars().take(INSTRUCTION_CHARS).collect();
            let mark = if bounded.len() < text.len() { "…" } else { "" };
            (!text.is_empty()).then(|| format!("[Instructions of the tool server {}]\n{bounded}{mark}", server.name))
        };
        wanted.filter_map(of_server).collect()
    }

    /// Adds the tools that the client executes.
    pub fn add_client_tools(&mut self, tools: Vec<ClientTool>) {
        for ClientTool { name, description, input_schema } in tools {
            self.add(Tool {
                spec: ToolSpec { name, description, input_schema },
                effect: Effect::Once,
                needs_approval: false,
                executor: ToolExecutor::Client,
                schema: OnceCell::new(),
            });
        }
    }

    /// Adds a tool that delegates to the agent. Of two tools with one name, the later one gets a number.
    pub fn add_subagent(&mut self, found: FoundAgent, description: Option<String>) {
        let base = subagent::tool_name(&found.name);
        let numbered = |n: usize| if n == 1 { base.clone() } else { format!("{base}_{n}") };
        let name = (1..).map(numbered).find(|name| !self.tools.contains_key(name)).expect("a number is free");
        let description = description.or_else(|| found.description.clone());
        let description = description.unwrap_or_else(|| format!("Gives a task to the agent {}.", found.name));
        self.add(Tool {
            spec: ToolSpec { name, description, input_schema: subagent::tool_schema() },
            effect: Effect::Once,
            needs_approval: false,
            executor: ToolExecutor::Subagent(found),
            schema: OnceCell::new(),
        });
    }

    /// Adds the tools of a planner.
    pub fn add_planner_tools(&mut self) {
        let plan = "Makes a plan of steps and executes it. Use it for work that needs several steps, or parts that can be done at the same time.";
        let questions = "Asks the user one or two questions that you need answers to, and ends your turn.";
        for (tool, name, description, input_schema) in [
            (PlannerTool::Plan, plan::TOOL, plan, plan::tool_schema()),
            (PlannerTool::Questions, plan::QUESTIONS_TOOL, questions, plan::questions_schema()),
        ] {
            self.add(Tool {
                spec: ToolSpec { name: name.to_owned(), description: description.to_owned(), input_schema },
                effect: Effect::ReadOnly,
                needs_approval: false,
                executor: ToolExecutor::Planner(tool),
                schema: OnceCell::new(),
            });
        }
    }

    /// Adds the workspace's tools of a scope. With `keeps`, those of another scope stay.
    pub fn add_workspace_tools(&mut self, scope: ToolScope, of_run: WorkspaceOfRun, keeps: bool) {
        let of_run = Arc::new(of_run);
        if !keeps {
            self.tools.retain(|_, tool| !matches!(tool.executor, ToolExecutor::Workspace(..)));
        }
        self.workspace = Some(Arc::clone(&of_run));
        for tool in scope.tools(of_run.project.is_some()) {
            // The client's own tool has the name.
            if self.get(&tool.name).is_some_and(|tool| tool.is_client_tool()) {
                continue;
            }
            let WorkspaceTool { name, description, input_schema, effect, .. } = tool.clone();
            let executor = ToolExecutor::Workspace(tool, Arc::clone(&of_run));
            self.add_unasked(ToolSpec { name, description, input_schema }, effect, executor);
        }
    }

    /// Adds the tools of the agent's memory.
    pub fn add_memory_tools(&mut self, of_run: MemoryOfRun) {
        let of_run = Arc::new(of_run);
        for tool in MemoryTool::ALL {
            let executor = ToolExecutor::Memory(tool, Arc::clone(&of_run));
            self.add_unasked(tool.spec(of_run.limits), tool.effect(), executor);
        }
    }

    /// Adds the tools that find passages of documents.
    pub fn add_knowledge_tools(&mut self, of_run: Arc<KnowledgeOfRun>) {
        for tool in KnowledgeTool::ALL {
            let spec = tool.spec(&of_run.collections);
            self.add_unasked(spec, Effect::ReadOnly, ToolExecutor::Knowledge(tool, Arc::clone(&of_run)));
        }
    }

    /// Adds the tool that reads files. A run without other tools gets none, because some models refuse every tool.
    pub fn add_file_tool(&mut self, of_run: FilesOfRun) {
        if !self.tools.is_empty() && self.get(READ_FILE).is_none() {
            self.add_unasked(of_run.spec(), Effect::ReadOnly, ToolExecutor::Files(Arc::new(of_run)));
        }
    }

    /// Adds the tool that reads on in results of earlier calls. A run without other tools gets none.
    pub fn add_result_tool(&mut self, of_run: KeptResultsOfRun) {
        if !self.tools.is_empty() && self.get(READ_RESULT).is_none() {
            self.add_unasked(of_run.spec(), Effect::ReadOnly, ToolExecutor::KeptResults(Arc::new(of_run)));
        }
    }

    /// Returns the workspace that tools use.
    pub const fn workspace(&self) -> Option<&Arc<WorkspaceOfRun>> {
        self.workspace.as_ref()
    }

    /// Removes all tools but these, and takes no others of servers that start or announce a list later.
    pub fn keep_only(&mut self, names: &[String]) {
        self.tools.retain(|name, _| names.contains(name));
        self.only = Some(names.to_vec());
    }

    /// Adds the scripted model's tools; a call takes at most `limit`.
    pub fn add_scripted(&mut self, limit: Duration) {
        for (tool, spec) in scripted::tools() {
            let executor =
                if tool == ScriptedTool::Client { ToolExecutor::Client } else { ToolExecutor::Scripted(tool, limit) };
            let needs_approval = tool.approval().applies_to(tool.effect());
            self.add(Tool { spec, effect: tool.effect(), needs_approval, executor, schema: OnceCell::new() });
        }
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.get(name)
    }

    /// Returns the party that executes the calls of a tool; `None` if there is no such tool. A call of a server that is still
    /// starting waits for it.
    pub fn executed_by(&self, name: &str) -> Option<ExecutedBy> {
        let of_tool = |tool: &Arc<Tool>| if tool.is_client_tool() { ExecutedBy::Client } else { ExecutedBy::Worker };
        self.get(name).map(of_tool).or_else(|| self.server_starting_with(name).map(|_| ExecutedBy::Worker))
    }

    /// Returns whether a tool of this name may be on a server that cannot be reached.
    pub fn is_unavailable(&self, name: &str) -> bool {
        name.split_once("__")
            .is_some_and(|(server, _)| self.unavailable.iter().any(|unavailable| unavailable == server))
    }

    /// Returns the declarations for the model.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.values().map(|tool| tool.spec.clone()).collect()
    }

    fn add_server(
        &mut self,
        servers: &RunServers,
        server: &Arc<McpServer>,
        listing: &Arc<ServerListing>,
        definition: &AgentDefinition,
    ) {
        let mut left_out = listing.left_out.clone();
        for tool in &listing.tools {
            let (name, full) = (server_tool_name(&server.name, &tool.name), full_name(&server.name, &tool.name));
            let is_allowed = |allowed: &BTreeSet<String>| allowed.contains(&name) || allowed.contains(&full);
            if !definition.allowed_tools.as_ref().is_none_or(is_allowed)
                || self.only.as_ref().is_some_and(|only| !only.contains(&name))
            {
                continue;
            }
            // A server that starts or announces a list later takes no name that the run has given away.
            if self.tools.contains_key(&name) {
                let reason = "another tool of the run has its name".to_owned();
                left_out.push(LeftOutTool { name: full, reason });
                continue;
            }
            let policy = definition.tools.get(&name).or_else(|| definition.tools.get(&full));
            let policy: ToolPolicy = policy.copied().unwrap_or_default();
            let usual = if mcp::is_reader(tool) { Effect::ReadOnly } else { Effect::default() };
            let effect = policy.effect.unwrap_or(usual);
            let approval = policy.approval.or(definition.approval).unwrap_or(match policy.effect {
                // The agent does not describe the tool's effect, and the owner is an anonymous user.
                None if begins_with(&servers.user.owner, ANONYMOUS_PREFIX) => ApprovalPolicy::Always,
                _ => ApprovalPolicy::default(),
            });
            self.add(Tool {
                spec: ToolSpec {
                    name,
                    description: storable(tool.description.clone()),
                    input_schema: storable_json(tool.input_schema.clone()),
                },
                effect,
                needs_approval: approval.applies_to(effect),
                executor: ToolExecutor::Server {
                    mcp: Arc::clone(&servers.mcp),
                    server: Arc::clone(server),
                    name: tool.name.clone(),
                    limit: policy.timeout_ms.map(Duration::from_millis),
                    user: Arc::clone(&servers.user),
                },
                schema: OnceCell::new(),
            });
        }
        self.listings.insert(server.name.clone(), Arc::clone(listing));
        self.notices.extend(notice(&server.name, &left_out));
    }

    /// Adds a tool whose calls no human must approve.
    fn add_unasked(&mut self, spec: ToolSpec, effect: Effect, executor: ToolExecutor) {
        self.add(Tool { spec, effect, needs_approval: false, executor, schema: OnceCell::new() });
    }

    fn add(&mut self, tool: Tool) {
        self.tools.insert(tool.spec.name.clone(), Arc::new(tool));
    }
}

/// Returns the sentence that names the tools of a server that the run lacks.
fn notice(server: &str, left_out: &[LeftOutTool]) -> Option<String> {
    if left_out.is_empty() {
        return None;
    }
    let mut named: Vec<String> =
        left_out.iter().take(NAMED).map(|LeftOutTool { name, reason }| format!("{name} ({reason})")).collect();
    if left_out.len() > NAMED {
        named.push(format!("and {} more", left_out.len() - NAMED));
    }
    Some(format!("Tools of {server} that this run does without: {}.", named.join(", ")))
}
