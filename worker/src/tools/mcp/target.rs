//! A server as the client connects to it for a run: its description with all secrets looked up, and its key in the pool.

use std::{collections::BTreeMap, env, path::PathBuf, sync::Arc, time::Duration};

use holdfast_shared::{
    agent::{McpAuth, McpServer, Secret, ServerScope, Transport},
    config::{SECRET_FILE_SUFFIX, ToolsConfig, read_secret_file},
};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::signs_of_life::SignsOfLife;

use super::{
    error::{Error, ServerProblem},
    hidden::HiddenTexts,
};

/// The run that uses a server.
#[derive(Debug, Clone)]
pub struct ServerUser {
    pub owner: Arc<str>,
    pub conversation_id: Uuid,
    /// The name under which the limit of connections counts the owner.
    pub counted_as: Arc<str>,
    /// The progress of the run's calls is noted here.
    pub signs_of_life: SignsOfLife,
}

/// One server, ready for a connection.
#[derive(Clone)]
pub struct ServerTarget {
    pub name: String,
    pub transport: TargetTransport,
    scope: TargetScope,
    /// The owner whose limit counts the connection; `None` for one that all owners share.
    pub counted_owner: Option<Arc<str>>,
}

/// The runs that share the connection.
#[derive(Clone, PartialEq, Eq, Hash)]
enum TargetScope {
    Conversation(Uuid),
    Owner(Arc<str>),
    Worker,
}

/// Key of a connection: the server's, with the runs that share it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SlotKey(Key, TargetScope);

/// The server's transport, with its address and credentials.
#[derive(Clone)]
pub enum TargetTransport {
    Stdio {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, SecretString>,
        cwd: Option<PathBuf>,
    },
    Http {
        url: String,
        bearer: Option<SecretString>,
        headers: BTreeMap<String, SecretString>,
        caller_header: Option<String>,
    },
    Rpc {
        url: String,
        bearer: Option<SecretString>,
        headers: BTreeMap<String, SecretString>,
        caller_header: Option<String>,
    },
}

/// Hash of a server's description, secrets included. Servers that are described alike have one key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

impl Key {
    /// Returns the key in words, from which no secret can be read.
    pub fn in_words(self) -> String {
        hex::encode(self.0)
    }
}

impl ServerTarget {
    /// Looks up the secrets of a server among the variables that agents may use. Fails if one is not allowed or not
    /// set.
    pub fn new(server: &McpServer, user: &ServerUser, variables: &[String]) -> Result<Self, Error> {
        let scope = match server.scope {
            ServerScope::Conversation => TargetScope::Conversation(user.conversation_id),
            ServerScope::Owner => TargetScope::Owner(Arc::clone(&user.owner)),
            ServerScope::Worker => return Self::of_worker(server, variables),
        };
        let counted_owner = Some(Arc::clone(&user.counted_as));
        Ok(Self { scope, counted_owner, ..Self::of_worker(server, variables)? })
    }

    /// Does as `new`, for the connection that all runs of this process share.
    pub fn of_worker(server: &McpServer, variables: &[String]) -> Result<Self, Error> {
        let (name, scope, counted_owner) = (server.name.clone(), TargetScope::Worker, None);
        match resolve_transport(server, variables) {
            Ok(transport) => Ok(Self { name, transport, scope, counted_owner }),
            Err(problem) => Err(Error { server: name, address: address(&server.transport), problem }),
        }
    }

    /// Returns the values that the definition keeps secret.
    pub fn secrets(&self) -> Box<dyn Iterator<Item = &SecretString> + '_> {
        match &self.transport {
            TargetTransport::Stdio { env, .. } => Box::new(env.values()),
            TargetTransport::Http { bearer, headers, .. } | TargetTransport::Rpc { bearer, headers, .. } => {
                Box::new(bearer.iter().chain(headers.values()))
            }
        }
    }

    pub const fn is_process(&self) -> bool {
        matches!(self.transport, TargetTransport::Stdio { .. })
    }

    /// Returns the time-out of connecting and of reading the list of tools.
    pub const fn connect_limit(&self, config: &ToolsConfig) -> Duration {
        if self.is_process() { config.mcp_connect } else { config.mcp_http_connect }
    }

    pub fn slot(&self) -> SlotKey {
        SlotKey(self.key(), self.scope.clone())
    }

    pub fn transport_name(&self) -> &'static str {
        match self.transport {
            TargetTransport::Stdio { .. } => "stdio",
            TargetTransport::Http { .. } => "http",
            TargetTransport::Rpc { .. } => "rpc",
        }
    }

    /// Returns the error of this server. A server may send its secrets back, so the error's words lose them here.
    pub fn error(&self, problem: impl Into<ServerProblem>) -> Error {
        let address = match &self.transport {
            TargetTransport::Stdio { command, .. } => command.clone(),
            TargetTransport::Http { url, .. } | TargetTransport::Rpc { url, .. } => without_secrets(url),
        };
        Error { server: self.name.clone(), address, problem: problem.into().without(&HiddenTexts::of(self)) }
    }

    pub fn key(&self) -> Key {
        let mut digest = Sha256::new();
        // Lengths separate the fields, so that no two descriptions have one digest.
        let mut add = |text: &str| {
            digest.update(text.len().to_le_bytes());
            digest.update(text);
        };
        add(&self.name);
        add(self.transport_name());
        match &self.transport {
            TargetTransport::Stdio { command, args, env, cwd } => {
                add(command);
                add(&cwd.as_ref().map_or_else(String::new, |cwd| cwd.display().to_string()));
                add(&args.len().to_string());
                args.iter().for_each(|arg| add(arg));
                for (name, secret) in env {
                    add(name);
                    add(secret.expose_secret());
                }
            }
            TargetTransport::Http { url, bearer, headers, caller_header }
            | TargetTransport::Rpc { url, bearer, headers, caller_header } => {
                add(url);
                add(caller_header.as_deref().unwrap_or_default());
                add(&headers.len().to_string());
                for (name, secret) in headers {
                    add(name);
                    add(secret.expose_secret());
                }
                bearer.iter().for_each(|secret| add(secret.expose_secret()));
            }
        }
        Key(digest.finalize().into())
    }
}

fn resolve_transport(server: &McpServer, variables: &[String]) -> Result<TargetTransport, ServerProblem> {
    let reveal = |secret: &Secret| Ok::<_, ServerProblem>(secret.reveal(variables, variable)?);
    let bearer = |auth: Option<&McpAuth>| auth.map(|auth| reveal(&auth.bearer)).transpose();
    let caller_header = server.caller_header.clone();
    let reveal_all = |secrets: &BTreeMap<String, Secret>| {
        let revealed = secrets.iter().map(|(name, secret)| Ok((name.clone(), reveal(secret)?)));
        revealed.collect::<Result<BTreeMap<_, _>, ServerProblem>>()
    };
    Ok(match &server.transport {
        Transport::Stdio { command, args, env, cwd } => TargetTransport::Stdio {
            command: command.clone(),
            args: args.clone(),
            env: reveal_all(env)?,
            cwd: cwd.as_ref().map(PathBuf::from),
        },
        Transport::Http { url, auth, headers } => TargetTransport::Http {
            url: url.clone(),
            bearer: bearer(auth.as_ref())?,
            headers: reveal_all(headers)?,
            caller_header,
        },
        Transport::Rpc { url, auth, headers } => TargetTransport::Rpc {
            url: url.clone(),
            bearer: bearer(auth.as_ref())?,
            headers: reveal_all(headers)?,
            caller_header,
        },
    })
}

/// Returns a variable of this process, or the content of the file that `<name>_FILE` names.
fn variable(name: &str) -> Option<String> {
    let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    set(name).or_else(|| {
        let path = set(&format!("{name}{SECRET_FILE_SUFFIX}"))?;
        match read_secret_file(path.as_ref()) {
            Ok(secret) => Some(secret.expose_secret().to_owned()),
            Err(problem) => {
                tracing::warn!(variable = name, problem, "failed to read a secret of an agent");
                None
            }
        }
    })
}

fn address(transport: &Transport) -> String {
    match transport {
        Transport::Stdio { command, .. } => command.clone(),
        Transport::Http { url, .. } | Transport::Rpc { url, .. } => without_secrets(url),
    }
}

/// Returns a URL without user, password and query, which may contain keys.
fn without_secrets(url: &str) -> String {
    let Ok(mut url) = reqwest::Url::parse(url) else {
        return "a URL that cannot be read".into();
    };
    // Neither fails for a URL that has a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}
