//! MCP servers of an agent: where they are, how they are reached, how long they may take.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{InvalidDefinition, Secret};

/// One server whose tools the agent may use, as `<name>__<tool>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "McpServerInput")]
pub struct McpServer {
    /// 1 to 32 letters, digits, dashes and single underscores.
    pub name: String,
    #[serde(flatten)]
    pub transport: Transport,
    /// Longest time of one call, in ms; `HOLDFAST_MCP_TIMEOUT_MS` (10 s) by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Further tries of a call that could not be delivered, or whose tool is read_only or idempotent; 0 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Pause before each further try, in ms; 1,000 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_delay_ms: Option<u64>,
    /// Whether calls name the owner of the run, in `_meta`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub caller: bool,
    /// The header of http and rpc that also names the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller_header: Option<String>,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "transport", rename_all = "snake_case")]
pub enum Transport {
    /// A child process of the worker that speaks on its standard input and output.
    Stdio { command: String, args: Vec<String>, env: BTreeMap<String, Secret> },
    /// MCP's streamable HTTP.
    Http {
        url: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        auth: Option<McpAuth>,
    },
    /// JSON-RPC 2.0 as plain HTTP POSTs, each answered at once.
    Rpc {
        url: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        auth: Option<McpAuth>,
    },
}

/// A server as somebody has written it: every field that any transport knows, and no other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct McpServerInput {
    name: String,
    transport: TransportKind,
    command: Option<String>,
    args: Option<Vec<String>>,
    env: Option<BTreeMap<String, Secret>>,
    url: Option<String>,
    auth: Option<McpAuth>,
    timeout_ms: Option<u64>,
    retries: Option<u32>,
    retry_delay_ms: Option<u64>,
    #[serde(default)]
    caller: bool,
    caller_header: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum TransportKind {
    Stdio,
    Http,
    Rpc,
}

impl TryFrom<McpServerInput> for McpServer {
    type Error = String;

    fn try_from(input: McpServerInput) -> Result<Self, String> {
        let McpServerInput { name, transport, command, args, env, url, auth, caller, caller_header, .. } = input;
        let McpServerInput { timeout_ms, retries, retry_delay_ms, .. } = input;
        let is_command = command.is_some() || args.is_some() || env.is_some();
        let is_address = url.is_some() || auth.is_some() || caller_header.is_some();
        let transport = match (transport, command, url) {
            (TransportKind::Stdio, Some(command), None) if !is_address => {
                Transport::Stdio { command, args: args.unwrap_or_default(), env: env.unwrap_or_default() }
            }
            (TransportKind::Http, None, Some(url)) if !is_command => Transport::Http { url, auth },
            (TransportKind::Rpc, None, Some(url)) if !is_command => Transport::Rpc { url, auth },
            (TransportKind::Stdio, ..) => return Err(format!("mcp server {name}: stdio has command, args and env")),
            (TransportKind::Http | TransportKind::Rpc, ..) => {
                return Err(format!("mcp server {name}: http and rpc have url, auth and caller_header"));
            }
        };
        let caller = caller || caller_header.is_some();
        Ok(Self { name, transport, timeout_ms, retries, retry_delay_ms, caller, caller_header })
    }
}

/// What goes into the `Authorization` header.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpAuth {
    /// Without the word `Bearer`; for `rpc` a JWT.
    pub bearer: Secret,
}

const MAX_NAME_CHARS: usize = 32;
const MAX_RETRIES: u32 = 100;

impl McpServer {
    pub fn is_command(&self) -> bool {
        matches!(self.transport, Transport::Stdio { .. })
    }

    /// The same, as a client may see it.
    pub fn redacted(&self) -> Self {
        let mut shown = self.clone();
        shown.transport.each_secret(|secret| *secret = secret.redacted());
        shown
    }

    /// Takes over from `stored`, the same server before a change, the secrets that the change only shows as redacted. A server
    /// that is reached in another way takes over nothing, or one could have its secrets sent anywhere.
    pub(super) fn restore_secrets(&mut self, stored: &Self) {
        if !self.reaches_the_same_as(stored) {
            return;
        }
        match (&mut self.transport, &stored.transport) {
            (Transport::Stdio { env, .. }, Transport::Stdio { env: stored, .. }) => {
                for (name, secret) in env.iter_mut().filter(|(_, secret)| secret.is_redacted()) {
                    *secret = stored.get(name).cloned().unwrap_or(Secret::Redacted);
                }
            }
            (
                Transport::Http { auth: Some(auth), .. } | Transport::Rpc { auth: Some(auth), .. },
                Transport::Http { auth: Some(stored), .. } | Transport::Rpc { auth: Some(stored), .. },
            ) if auth.bearer.is_redacted() => auth.bearer = stored.bearer.clone(),
            _ => {}
        }
    }

    pub(super) fn check(&self, allowed: &[String]) -> Result<(), InvalidDefinition> {
        let at = |field: &str| format!("mcp_servers.{}.{field}", self.name);
        let is_name = self.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if !is_name || self.name.is_empty() || self.name.len() > MAX_NAME_CHARS || self.name.contains("__") {
            let expected = format!("1 to {MAX_NAME_CHARS} letters, digits, dashes and single underscores");
            return Err(InvalidDefinition::new("mcp_servers.name", format!("{expected}, not {:?}", self.name)));
        }
        match &self.transport {
            Transport::Stdio { command, .. } if command.trim().is_empty() => {
                return Err(InvalidDefinition::new(at("command"), "a command is needed"));
            }
            Transport::Http { url, .. } | Transport::Rpc { url, .. } if !is_http(url) => {
                return Err(InvalidDefinition::new(at("url"), "expected a URL that begins with http:// or https://"));
            }
            // A URL is shown to whoever reads the agent.
            Transport::Http { url, .. } | Transport::Rpc { url, .. } if has_password(url) => {
                return Err(InvalidDefinition::new(
                    at("url"),
                    "a URL takes no name and password; put the secret into auth",
                ));
            }
            _ => {}
        }
        if self.caller_header.as_deref().is_some_and(|header| !is_own_header(header)) {
            let expected = "a header's name that begins with x-, of at most 64 letters, digits and dashes";
            return Err(InvalidDefinition::new(at("caller_header"), expected));
        }
        if self.timeout_ms == Some(0) {
            return Err(InvalidDefinition::new(at("timeout_ms"), "a time in ms above 0"));
        }
        if self.retries.is_some_and(|retries| retries > MAX_RETRIES) {
            return Err(InvalidDefinition::new(at("retries"), format!("a number of tries from 0 to {MAX_RETRIES}")));
        }
        let (mut missing, mut forbidden) = (false, None);
        self.transport.clone().each_secret(|secret| {
            missing |= secret.is_redacted();
            forbidden = forbidden.take().or_else(|| secret.forbidden_variable(allowed).map(str::to_owned));
        });
        match (missing, forbidden) {
            (true, _) => Err(InvalidDefinition::new(
                at("auth"),
                "this secret is not known here; send it, or {\"env\": \"NAME\"}",
            )),
            (_, Some(name)) => {
                let problem =
                    format!("agents may not use the variable {name}; HOLDFAST_AGENT_SECRETS lists those that they may");
                Err(InvalidDefinition::new(at("auth"), problem))
            }
            _ => Ok(()),
        }
    }

    fn reaches_the_same_as(&self, other: &Self) -> bool {
        match (&self.transport, &other.transport) {
            (
                Transport::Stdio { command, args, .. },
                Transport::Stdio { command: other_command, args: other_args, .. },
            ) => (command, args) == (other_command, other_args),
            (Transport::Http { url, .. }, Transport::Http { url: other, .. })
            | (Transport::Rpc { url, .. }, Transport::Rpc { url: other, .. }) => url == other,
            _ => false,
        }
    }
}

impl Transport {
    fn each_secret(&mut self, mut change: impl FnMut(&mut Secret)) {
        match self {
            Self::Stdio { env, .. } => env.values_mut().for_each(change),
            Self::Http { auth, .. } | Self::Rpc { auth, .. } => {
                if let Some(auth) = auth {
                    change(&mut auth.bearer);
                }
            }
        }
    }
}

/// Whether a header means nothing to HTTP or MCP, and so may name a caller.
fn is_own_header(name: &str) -> bool {
    let fits = name.chars().all(|char| char.is_ascii_alphanumeric() || char == '-');
    fits && name.len() <= 64 && name.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("x-")) && name.len() > 2
}

fn is_http(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}

fn has_password(url: &str) -> bool {
    let authority = url.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or(""));
    authority.contains('@')
}
