//! MCP servers of an agent: addresses, transports and time-outs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{InvalidDefinition, Secret};

/// One server. Its tools are named `<name>__<tool>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "McpServerInput")]
pub struct McpServer {
    /// 1 to 32 letters, digits, dashes and single underscores.
    pub name: String,
    /// The transport with its address; its fields stand beside the others.
    #[serde(flatten)]
    pub transport: Transport,
    /// The runs that share a connection, and a process with it; those of one owner by default.
    #[serde(default, skip_serializing_if = "ServerScope::is_default")]
    pub scope: ServerScope,
    /// Time-out of one call, in ms; `HOLDFAST_MCP_TIMEOUT_MS` (10 s) by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Retries of a call that was not delivered, or whose tool is `read_only` or `idempotent`. 0 to 100; 0 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Pause before each retry, in ms; 1,000 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_delay_ms: Option<u64>,
    /// True if calls name the run's owner, in `_meta`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub caller: bool,
    /// A header that also names the owner, for `http` and `rpc`. Its name begins with `x-`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller_header: Option<String>,
    /// False if the model does not read the server's own instructions.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub instructions: bool,
}

const fn yes() -> bool {
    true
}

const fn is_yes(value: &bool) -> bool {
    *value
}

/// The runs that share one connection to a server, and so what earlier calls have set up in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerScope {
    /// The runs of one conversation.
    Conversation,
    /// The runs of one owner.
    #[default]
    Owner,
    /// All runs of a worker, because the server keeps no state between calls.
    Worker,
}

impl ServerScope {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The protocol and the address of a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "transport", rename_all = "snake_case")]
pub enum Transport {
    /// A child process of the worker, with JSON-RPC on its standard input and output.
    Stdio {
        /// Program that the worker starts.
        command: String,
        /// Arguments, passed without a shell.
        args: Vec<String>,
        /// Environment variables of the process.
        env: BTreeMap<String, Secret>,
        /// Absolute path of the folder in which the process starts.
        #[serde(skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
    },
    /// MCP's streamable HTTP.
    Http {
        /// Begins with `http://` or `https://`, without user and password.
        url: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// Credentials of each request, if the server needs any.
        auth: Option<McpAuth>,
        /// Further headers of each request.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, Secret>,
    },
    /// JSON-RPC 2.0 as plain HTTP POSTs with one response each.
    Rpc {
        /// Begins with `http://` or `https://`, without user and password.
        url: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// Credentials of each request, if the server needs any.
        auth: Option<McpAuth>,
        /// Further headers of each request.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, Secret>,
    },
}

/// A server as a client wrote it. It accepts each field of any transport, and no other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct McpServerInput {
    name: String,
    transport: TransportKind,
    command: Option<String>,
    args: Option<Vec<String>>,
    env: Option<BTreeMap<String, Secret>>,
    cwd: Option<String>,
    url: Option<String>,
    auth: Option<McpAuth>,
    headers: Option<BTreeMap<String, Secret>>,
    #[serde(default)]
    scope: ServerScope,
    timeout_ms: Option<u64>,
    retries: Option<u32>,
    retry_delay_ms: Option<u64>,
    #[serde(default)]
    caller: bool,
    caller_header: Option<String>,
    #[serde(default = "yes")]
    instructions: bool,
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
        let McpServerInput { name, transport, command, args, env, cwd, url, auth, caller, caller_header, .. } = input;
        let McpServerInput { headers, scope, timeout_ms, retries, retry_delay_ms, instructions, .. } = input;
        let is_command = command.is_some() || args.is_some() || env.is_some() || cwd.is_some();
        let is_address = url.is_some() || auth.is_some() || headers.is_some() || caller_header.is_some();
        let headers = headers.unwrap_or_default();
        let transport = match (transport, command, url) {
            (TransportKind::Stdio, Some(command), None) if !is_address => {
                Transport::Stdio { command, args: args.unwrap_or_default(), env: env.unwrap_or_default(), cwd }
            }
            (TransportKind::Http, None, Some(url)) if !is_command => Transport::Http { url, auth, headers },
            (TransportKind::Rpc, None, Some(url)) if !is_command => Transport::Rpc { url, auth, headers },
            (TransportKind::Stdio, ..) => {
                return Err(format!("mcp server {name}: stdio has command, args, env and cwd"));
            }
            (TransportKind::Http | TransportKind::Rpc, ..) => {
                return Err(format!("mcp server {name}: http and rpc have url, auth, headers and caller_header"));
            }
        };
        let caller = caller || caller_header.is_some();
        Ok(Self { name, transport, scope, timeout_ms, retries, retry_delay_ms, caller, caller_header, instructions })
    }
}

/// The credentials of the `Authorization` header.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpAuth {
    /// The token without the word `Bearer`; a JWT for `rpc`.
    pub bearer: Secret,
}

const MAX_NAME_CHARS: usize = 32;
const MAX_RETRIES: u32 = 100;
const MAX_HEADERS: usize = 32;

/// Headers with which the worker frames its requests, or that belong to one connection.
const OWN_HEADERS: [&str; 11] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "idempotency-key",
    "last-event-id",
    "te",
    "transfer-encoding",
    "upgrade",
];

impl McpServer {
    /// Returns whether the server is a process on the worker's host.
    pub fn is_command(&self) -> bool {
        matches!(self.transport, Transport::Stdio { .. })
    }

    /// Returns the server as a client may see it.
    pub fn redacted(&self) -> Self {
        let mut shown = self.clone();
        shown.transport.each_secret(|secret| *secret = secret.redacted());
        shown
    }

    /// Copies the redacted secrets from `stored`, the server before the change. A server at another address copies
    /// none, because the secrets would go there.
    pub(super) fn restore_secrets(&mut self, stored: &Self) {
        if !self.reaches_the_same_as(stored) {
            return;
        }
        match (&mut self.transport, &stored.transport) {
            (Transport::Stdio { env, .. }, Transport::Stdio { env: stored, .. }) => restore_all(env, stored),
            (
                Transport::Http { auth, headers, .. } | Transport::Rpc { auth, headers, .. },
                Transport::Http { auth: stored_auth, headers: stored, .. }
                | Transport::Rpc { auth: stored_auth, headers: stored, .. },
            ) => {
                restore_all(headers, stored);
                if let (Some(auth), Some(stored)) = (auth, stored_auth)
                    && auth.bearer.is_redacted()
                {
                    auth.bearer = stored.bearer.clone();
                }
            }
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
            Transport::Stdio { cwd: Some(cwd), .. } if !is_folder(cwd) => {
                return Err(InvalidDefinition::new(at("cwd"), "expected the absolute path of a folder"));
            }
            Transport::Http { url, .. } | Transport::Rpc { url, .. } if !is_http(url) => {
                return Err(InvalidDefinition::new(at("url"), "expected a URL that begins with http:// or https://"));
            }
            // Each reader of the agent sees the URL.
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
        if let Some(problem) = self.transport.problem_of_headers() {
            return Err(InvalidDefinition::new(at("headers"), problem));
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
                Transport::Stdio { command, args, cwd, .. },
                Transport::Stdio { command: other_command, args: other_args, cwd: other_cwd, .. },
            ) => (command, args, cwd) == (other_command, other_args, other_cwd),
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
            Self::Http { auth, headers, .. } | Self::Rpc { auth, headers, .. } => {
                headers.values_mut().for_each(&mut change);
                if let Some(auth) = auth {
                    change(&mut auth.bearer);
                }
            }
        }
    }

    /// Returns why the headers cannot be sent.
    fn problem_of_headers(&self) -> Option<String> {
        let (Self::Http { auth, headers, .. } | Self::Rpc { auth, headers, .. }) = self else { return None };
        if headers.len() > MAX_HEADERS {
            return Some(format!("at most {MAX_HEADERS} headers"));
        }
        let is_taken = |name: &str| match name.to_ascii_lowercase() {
            name if name == "authorization" => auth.is_some(),
            name => OWN_HEADERS.contains(&name.as_str()) || name.starts_with("mcp-"),
        };
        headers.keys().find_map(|name| {
            if !is_header_name(name) {
                Some(format!("a header's name has at most 64 letters, digits, dashes and underscores, not {name:?}"))
            } else if is_taken(name) {
                Some(format!("the worker itself sends the header {name}"))
            } else {
                None
            }
        })
    }
}

fn restore_all(secrets: &mut BTreeMap<String, Secret>, stored: &BTreeMap<String, Secret>) {
    for (name, secret) in secrets.iter_mut().filter(|(_, secret)| secret.is_redacted()) {
        *secret = stored.get(name).cloned().unwrap_or(Secret::Redacted);
    }
}

fn is_header_name(name: &str) -> bool {
    let fits = name.chars().all(|char| char.is_ascii_alphanumeric() || char == '-' || char == '_');
    fits && !name.is_empty() && name.len() <= 64
}

/// Returns whether a header has no meaning in HTTP or MCP, so that it may name a caller.
fn is_own_header(name: &str) -> bool {
    let fits = name.chars().all(|char| char.is_ascii_alphanumeric() || char == '-');
    fits && name.len() <= 64 && name.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("x-")) && name.len() > 2
}

/// Returns whether a text can be the path of a folder, wherever the worker itself runs.
fn is_folder(path: &str) -> bool {
    path.starts_with('/') && !path.contains('\0')
}

fn is_http(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}

fn has_password(url: &str) -> bool {
    let authority = url.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or(""));
    authority.contains('@')
}
