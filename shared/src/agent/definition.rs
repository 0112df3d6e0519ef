//! The definition document, and the agent that has it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Access, Approvers, InvalidDefinition, Limits, McpServer, ModelDialect, ModelOptions, ReasoningPlace};
use crate::{
    hidden::is_visible,
    message::Language,
    subagent::Subagent,
    tool::{ApprovalPolicy, MIN_RESULT_CHARS, ToolPolicy},
};

/// An agent, as the API shows it.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct Agent {
    /// UUIDv7; for an agent of a file, a UUIDv5 of its name.
    pub id: Uuid,
    /// Counts the changes, from 1. A run keeps the version of its submission.
    pub version: u32,
    /// `api`; `file` for an agent of the file `HOLDFAST_AGENTS`, which only that file can change; or `builtin` for an agent of
    /// the program, which no client can change.
    pub origin: Origin,
    /// Time of the database.
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
    /// Time of the database at the newest version.
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub updated_at: DateTime<Utc>,
    /// The newest version; its fields stand beside those above.
    #[serde(flatten)]
    pub definition: AgentDefinition,
}

/// The source of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Origin {
    /// A client created it through the API.
    Api,
    /// The file `HOLDFAST_AGENTS` has it.
    File,
    /// The program has it.
    Builtin,
}

crate::text_enum!(Origin);

/// The properties and rights of an agent. Only the name is required.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentDefinition {
    /// 1 to 200 characters, at least one of them visible, without control characters.
    pub name: String,
    /// Free text for the users of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the agent can make plans and ask questions.
    #[serde(default, skip_serializing_if = "AgentKind::is_default")]
    pub kind: AgentKind,
    /// Instructions for the model. The worker sends them in the provider's own field, before the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Settings that replace those of the deployment's model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelSettings>,
    /// At most 32 servers with different names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub mcp_servers: Vec<McpServer>,
    /// Tools that the model may use, as `<server>__<tool>`; all tools of the servers by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<BTreeSet<String>>,
    /// Effect, approval policy, time-out and length of results of a tool, by `<server>__<tool>`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, ToolPolicy>,
    /// Calls that a human must approve, unless the tool has a policy of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalPolicy>,
    /// The callers that may use the agent; each caller by default.
    #[serde(default, skip_serializing_if = "Access::is_default")]
    pub access: Access,
    /// The callers that decide about calls that need approval; the run's owner by default.
    #[serde(default, skip_serializing_if = "Approvers::is_default")]
    pub approvers: Approvers,
    /// Agents to which the model may delegate, each by a tool `delegate_to_<name>`; at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subagents: Vec<Subagent>,
    /// Times that the agent may appear in one chain of subagents, from 2 to 11. A cycle of agents that delegate needs an agent that
    /// says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recursive: Option<u32>,
    /// Collections whose documents the agent answers from, as far as the run's owner may read them; at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub knowledge: Vec<Uuid>,
    /// Whether the agent has the tools `remember`, `recall` and `forget`, with which it remembers users beyond a conversation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub memory: bool,
    /// Whether the model reads today's date and the user's time zone; true by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<bool>,
    /// Limits of each run; the deployment's where absent.
    #[serde(default)]
    pub limits: Limits,
    /// Newest earlier messages that the model reads word by word, from 0 to 1,000; `CHAT_HISTORY_LIMIT` (10) by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_limit: Option<usize>,
    /// Tokens that the conversation may have for the model, roughly. The worker summarizes older messages to keep to
    /// it. At least 100; by default `HOLDFAST_CONTEXT_TOKENS`, or else 5,000 for a planner and half of the model's context
    /// window for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u32>,
    /// The language of the labels that the model reads on cards.
    #[serde(default)]
    pub language: Language,
    /// The events that streams carry if their client names no mode.
    #[serde(default)]
    pub stream_mode: StreamMode,
}

/// The abilities of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// It answers, and calls tools.
    #[default]
    Agent,
    /// It can also make plans, execute them with subagents, and ask questions that end its run.
    Planner,
}

impl AgentKind {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A model and its parameters. The deployment's setting applies where a field is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// The name of a model profile, instead of a provider and a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// A provider's name, as in `CHAT_MODEL_PROVIDER`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The provider's name of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// From 0 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Above 0, at most 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Most tokens of the answer of one step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Texts at which the model stops.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// The effort of a reasoning model: `low`, `medium` or `high`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The rules that the address follows, for `openai`: known by the address and the model's name, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<ModelDialect>,
    /// Where the model writes its reasoning, for `openai`: known by the answer and the model's name, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<ReasoningPlace>,
}

/// The effort of a reasoning model; each provider maps it to its own parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningEffort {
    /// The least effort.
    Low,
    /// A middle effort.
    Medium,
    /// The greatest effort.
    High,
}

/// The events that streams of the agent's runs carry, unless a client asks for another mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamMode {
    /// Each event.
    #[default]
    Events,
    /// `message.completed` and the terminal event only.
    Messages,
}

/// Most collections of an agent or of a conversation.
pub const MAX_COLLECTIONS: usize = 16;

/// Most times that an agent can appear in one chain: no tree of runs is deeper.
const MAX_IN_CHAIN: u32 = 11;

const MAX_NAME_CHARS: usize = 200;
const MAX_HISTORY: usize = 1000;
/// Smallest accepted `context_tokens`. A smaller budget has no room for a summary.
pub const MIN_CONTEXT_TOKENS: u32 = 100;
const MAX_SERVERS: usize = 32;

/// Tools whose names begin with this server name are built into the program.
const BUILT_IN: &str = "scripted";

impl AgentDefinition {
    /// Refuses a definition with which no run could be executed, and variables that agents may not use.
    pub fn check(&self, variables: &[String]) -> Result<(), InvalidDefinition> {
        let is_name = is_visible(&self.name) && !self.name.chars().any(char::is_control);
        if !is_name || self.name.chars().count() > MAX_NAME_CHARS {
            let problem = format!(
                "a name of 1 to {MAX_NAME_CHARS} characters, one of them visible and none a control character, is needed"
            );
            return Err(InvalidDefinition::new("name", problem));
        }
        if let Some(model) = &self.model {
            model.check()?;
        }
        if self.mcp_servers.len() > MAX_SERVERS {
            return Err(InvalidDefinition::new("mcp_servers", format!("at most {MAX_SERVERS} servers")));
        }
        let mut names = BTreeSet::new();
        for server in &self.mcp_servers {
            server.check(variables)?;
            if server.name == BUILT_IN {
                return Err(InvalidDefinition::new(
                    "mcp_servers.name",
                    format!("{BUILT_IN} is the name of the built-in tools"),
                ));
            }
            if !names.insert(server.name.as_str()) {
                return Err(InvalidDefinition::new("mcp_servers", format!("two servers are named {}", server.name)));
            }
        }
        let is_unknown = |tool: &&String| !tool.split_once("__").is_some_and(|(server, _)| names.contains(server));
        let problem = "no server of this agent has this tool; tools are named <server>__<tool>";
        if let Some(tool) = self.tools.keys().find(is_unknown) {
            return Err(InvalidDefinition::new(format!("tools.{tool}"), problem));
        }
        if let Some(tool) = self.allowed_tools.iter().flatten().find(is_unknown) {
            return Err(InvalidDefinition::new(format!("allowed_tools.{tool}"), problem));
        }
        if let Some((tool, _)) = self.tools.iter().find(|(_, policy)| policy.timeout_ms == Some(0)) {
            return Err(InvalidDefinition::new(format!("tools.{tool}.timeout_ms"), "a time in ms above 0"));
        }
        let is_short = |policy: &ToolPolicy| policy.result_chars.is_some_and(|chars| chars < MIN_RESULT_CHARS);
        if let Some((tool, _)) = self.tools.iter().find(|(_, policy)| is_short(policy)) {
            let problem = format!("a number of characters, {MIN_RESULT_CHARS} or more");
            return Err(InvalidDefinition::new(format!("tools.{tool}.result_chars"), problem));
        }
        Subagent::check_all(&self.subagents)?;
        if self.recursive.is_some_and(|times| !(2..=MAX_IN_CHAIN).contains(&times)) {
            let problem = format!("the times that the agent may appear in one chain, from 2 to {MAX_IN_CHAIN}");
            return Err(InvalidDefinition::new("recursive", problem));
        }
        if self.knowledge.len() > MAX_COLLECTIONS {
            return Err(InvalidDefinition::new("knowledge", format!("at most {MAX_COLLECTIONS} collections")));
        }
        if self.history_limit.is_some_and(|limit| limit > MAX_HISTORY) {
            return Err(InvalidDefinition::new(
                "history_limit",
                format!("a number of messages from 0 to {MAX_HISTORY}"),
            ));
        }
        if self.context_tokens.is_some_and(|tokens| tokens < MIN_CONTEXT_TOKENS) {
            return Err(InvalidDefinition::new(
                "context_tokens",
                format!("a number of tokens from {MIN_CONTEXT_TOKENS}"),
            ));
        }
        self.access.check()?;
        self.approvers.check()?;
        self.limits.check()
    }

    /// Returns the definition as a client may see it: without secrets.
    pub fn redacted(&self) -> Self {
        Self { mcp_servers: self.mcp_servers.iter().map(McpServer::redacted).collect(), ..self.clone() }
    }

    /// Returns the fields that each user of the agent may see: name, description, language and stream mode.
    pub fn public_profile(&self) -> Self {
        let Self { name, description, language, stream_mode, .. } = self.clone();
        Self { name, description, language, stream_mode, ..Self::default() }
    }

    /// Returns this definition as a change of `stored`: a redacted secret becomes the stored one.
    pub fn with_secrets_of(mut self, stored: &Self) -> Self {
        for server in &mut self.mcp_servers {
            if let Some(stored) = stored.mcp_servers.iter().find(|stored| stored.name == server.name) {
                server.restore_secrets(stored);
            }
        }
        self
    }

    /// Returns whether the model reads the date and the user's time zone.
    pub fn tells_date(&self) -> bool {
        self.clock.unwrap_or(true)
    }

    /// Returns whether the definition starts a process on the worker's host.
    pub fn runs_commands(&self) -> bool {
        self.mcp_servers.iter().any(McpServer::is_command)
    }
}

impl ModelSettings {
    fn check(&self) -> Result<(), InvalidDefinition> {
        if let Some(provider) = &self.provider {
            check_provider(provider).map_err(|problem| InvalidDefinition::new("model.provider", problem))?;
        }
        if self.profile.is_some() && (self.provider.is_some() || self.name.is_some()) {
            return Err(InvalidDefinition::new("model.profile", "a profile, or else a provider and a name"));
        }
        self.options().check("model")
    }

    /// Returns the options of the answer.
    pub fn options(&self) -> ModelOptions {
        ModelOptions {
            temperature: self.temperature,
            top_p: self.top_p,
            max_tokens: self.max_tokens,
            stop: self.stop.clone(),
            reasoning_effort: self.reasoning_effort,
            dialect: self.dialect,
            reasoning: self.reasoning,
        }
    }

    /// Returns the settings with these options.
    pub fn with_options(self, options: ModelOptions) -> Self {
        let ModelOptions { temperature, top_p, max_tokens, stop, reasoning_effort, dialect, reasoning } = options;
        Self { temperature, top_p, max_tokens, stop, reasoning_effort, dialect, reasoning, ..self }
    }
}

/// Fails with the known providers if the name is none of them.
pub(super) fn check_provider(name: &str) -> Result<(), String> {
    let providers = ["gemini", "vertex", "anthropic", "openai", "ollama", "scripted"];
    if providers.contains(&name) { Ok(()) } else { Err(format!("one of {}", providers.join(", "))) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::agent::ServerScope;

    fn read(value: Value) -> Result<AgentDefinition, String> {
        let definition: AgentDefinition = serde_json::from_value(value).map_err(|error| error.to_string())?;
        definition.check(&["KB_TOKEN".to_owned()]).map_err(|invalid| invalid.to_string())?;
        Ok(definition)
    }

    fn example() -> Value {
        json!({"name": "ops", "description": "…", "system_prompt": "…",
            "model": {"provider": "gemini", "name": "gemini-1.5-flash", "temperature": 0.2},
            "mcp_servers": [
                {"name": "files", "transport": "stdio", "command": "npx", "args": ["…"], "env": {"K": "v"}},
                {"name": "search", "transport": "http", "url": "http://a/mcp", "auth": {"bearer": "s3cret"},
                    "headers": {"X-Tenant": "blue"}, "instructions": false, "timeout_ms": 10000},
                {"name": "kb", "transport": "rpc", "url": "http://a/mcp/rpc", "auth": {"bearer": {"env": "KB_TOKEN"}}}],
            "tools": {"kb__count": {"effect": "once", "approval": "always"}, "search__query": {"effect": "read_only"}},
            "limits": {"max_tool_calls": 15, "max_duration_ms": 3600000, "max_steps": 50}, "history_limit": 10, "stream_mode": "events"})
    }

    #[test]
    fn a_definition_is_read_and_shown_without_its_secrets() {
        let definition = read(example()).unwrap();
        let shown = json!(definition.redacted());
        assert_eq!(shown["mcp_servers"][0]["env"]["K"], json!({"redacted": true}));
        assert_eq!(shown["mcp_servers"][1]["auth"]["bearer"], json!({"redacted": true}));
        assert_eq!(shown["mcp_servers"][1]["headers"]["X-Tenant"], json!({"redacted": true}));
        assert_eq!(
            (&shown["mcp_servers"][1]["instructions"], &shown["mcp_servers"][2]["instructions"]),
            (&json!(false), &Value::Null)
        );
        assert_eq!(shown["mcp_servers"][2]["auth"]["bearer"], json!({"env": "KB_TOKEN"}));
        assert_eq!(read(json!(definition)).unwrap(), definition);
    }

    #[test]
    fn a_redacted_definition_keeps_its_secrets_unless_a_server_has_another_address() {
        let stored = read(example()).unwrap();
        let sent_back: AgentDefinition = serde_json::from_value(json!(stored.redacted())).unwrap();
        assert_eq!(sent_back.clone().with_secrets_of(&stored), stored);
        let mut elsewhere = json!(stored.redacted());
        elsewhere["mcp_servers"][1]["url"] = json!("http://elsewhere/mcp");
        let elsewhere: AgentDefinition = serde_json::from_value(elsewhere).unwrap();
        let problem = elsewhere.with_secrets_of(&stored).check(&[]).unwrap_err();
        assert_eq!(problem.field, "mcp_servers.search.auth");
    }

    #[test]
    fn a_server_in_another_folder_gets_no_secrets_of_the_stored_one() {
        let stored = read(example()).unwrap();
        let mut elsewhere = json!(stored.redacted());
        elsewhere["mcp_servers"][0]["cwd"] = json!("/elsewhere");
        let elsewhere: AgentDefinition = serde_json::from_value(elsewhere).unwrap();
        let problem = elsewhere.with_secrets_of(&stored).check(&["KB_TOKEN".to_owned()]).unwrap_err();
        assert_eq!(problem.field, "mcp_servers.files.auth");
    }

    #[test]
    fn a_server_belongs_to_one_owner_unless_its_definition_says_otherwise() {
        let scope_of = |scope: Value| {
            let mut server = json!({"name": "a", "transport": "rpc", "url": "http://a"});
            server.as_object_mut().unwrap().extend(scope.as_object().unwrap().clone());
            let definition = read(json!({"name": "a", "mcp_servers": [server]})).unwrap();
            assert_eq!(read(json!(definition)).unwrap(), definition);
            definition.mcp_servers[0].scope
        };
        assert_eq!(scope_of(json!({})), ServerScope::Owner);
        assert_eq!(scope_of(json!({"scope": "owner"})), ServerScope::Owner);
        assert_eq!(scope_of(json!({"scope": "conversation"})), ServerScope::Conversation);
        assert_eq!(scope_of(json!({"scope": "worker"})), ServerScope::Worker);
    }

    #[test]
    fn an_error_does_not_quote_the_text_in_a_secrets_field() {
        let server = json!([{"name": "a", "transport": "rpc", "url": "http://a", "auth": "hunter2"}]);
        let error = serde_json::from_value::<AgentDefinition>(json!({"name": "a", "mcp_servers": server})).unwrap_err();
        assert!(error.to_string().contains("hunter2"), "serde quotes it");
        let message = crate::agent::without_quoted_text(&error);
        assert!(!message.contains("hunter2") && message.contains("expected"), "{message}");
    }

    #[test]
    fn only_the_name_is_needed_and_the_rest_is_checked() {
        assert!(read(json!({"name": "a"})).is_ok());
        assert!(read(json!({"name": "a", "memory": true})).unwrap().memory);
        assert!(read(json!({"name": "a"})).unwrap().tells_date() && AgentDefinition::default().tells_date());
        assert!(!read(json!({"name": "a", "clock": false})).unwrap().tells_date());
        let refused = |change: Value, part: &str| {
            let mut definition = example();
            definition.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            let error = read(definition).expect_err("it was accepted");
            assert!(error.contains(part), "{error:?} does not name {part}");
        };
        refused(json!({"name": " "}), "name");
        refused(json!({"colour": "red"}), "colour");
        refused(json!({"name": "a\0"}), "name");
        refused(json!({"model": {"provider": "acme"}}), "model.provider");
        refused(json!({"model": {"temperature": 3}}), "model.temperature");
        refused(json!({"tools": {"query": {"effect": "read_only"}}}), "tools.query");
        refused(json!({"allowed_tools": ["zz__typo"]}), "allowed_tools.zz__typo");
        refused(json!({"mcp_servers": [{"name": "scripted", "transport": "rpc", "url": "http://a"}]}), "built-in");
        refused(json!({"limits": {"max_steps": 0}}), "limits.max_steps");
        refused(json!({"access": []}), "access");
        refused(json!({"access": "friends"}), "access is everybody");
        refused(json!({"approvers": []}), "approvers");
        refused(json!({"history_limit": 1001}), "history_limit");
        refused(json!({"mcp_servers": [{"name": "a__b", "transport": "rpc", "url": "http://a"}]}), "mcp_servers.name");
        refused(json!({"mcp_servers": [{"name": "a", "transport": "http", "url": "ftp://a"}]}), "mcp_servers.a.url");
        refused(json!({"mcp_servers": [{"name": "a", "transport": "sse", "url": "http://a"}]}), "sse");
        refused(json!({"mcp_servers": [{"name": "a", "transport": "rpc", "url": "http://a", "auht": {}}]}), "auht");
        refused(
            json!({"mcp_servers": [{"name": "a", "transport": "rpc", "url": "http://u:p@a"}]}),
            "mcp_servers.a.url",
        );
        refused(json!({"mcp_servers": [{"name": "a", "transport": "rpc", "command": "a"}]}), "url");
        refused(json!({"mcp_servers": [{"name": "a", "transport": "rpc", "url": "http://a", "cwd": "/"}]}), "url");
        refused(json!({"mcp_servers": [{"name": "a", "transport": "rpc", "url": "http://a", "scope": "run"}]}), "run");
        let relative = json!([{"name": "a", "transport": "stdio", "command": "a", "cwd": "tools"}]);
        refused(json!({"mcp_servers": relative}), "mcp_servers.a.cwd");
        refused(
            json!({"mcp_servers": [{"name": "a", "transport": "rpc", "url": "http://a", "retries": 101}]}),
            "retries",
        );
        let with_headers = |headers: Value| {
            let auth = json!({"bearer": "s3cret"});
            json!({"mcp_servers": [{"name": "a", "transport": "http", "url": "http://a", "auth": auth, "headers": headers}]})
        };
        for name in ["Content-Type", "host", "Mcp-Session-Id", "Authorization", "a b", ""] {
            refused(with_headers(json!({name: "x"})), "mcp_servers.a.headers");
        }
        let many: serde_json::Map<String, Value> = (0..33).map(|n| (format!("x-{n}"), json!("x"))).collect();
        refused(with_headers(json!(many)), "at most 32 headers");
        let stdio = json!([{"name": "a", "transport": "stdio", "command": "a", "headers": {"x-a": "x"}}]);
        refused(json!({"mcp_servers": stdio}), "stdio has command");
        let own =
            json!([{"name": "a", "transport": "rpc", "url": "http://a", "auth": {"bearer": {"env": "DATABASE_URL"}}}]);
        refused(json!({"mcp_servers": own}), "may not use the variable DATABASE_URL");
        refused(json!({"tools": {"kb__count": {"timeout_ms": 0}}}), "tools.kb__count.timeout_ms");
        refused(json!({"tools": {"kb__count": {"result_chars": 399}}}), "tools.kb__count.result_chars");
    }
}
