//! Tools and limits of a run, where an agent sets none.

use std::{num::NonZero, path::PathBuf, thread::available_parallelism, time::Duration};

use super::{bytes, count, milliseconds, retries};
use crate::{agent::Limits, schema, tool::MIN_RESULT_CHARS};

/// Settings of agents and their tools.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Agents and tools")]
pub struct ToolsConfig {
    /// File with agent definitions, TOML or YAML, that the program loads at start.
    #[arg(long = "agents", env = "HOLDFAST_AGENTS")]
    pub agents_file: Option<PathBuf>,

    /// Whether the API accepts agents with stdio servers, which start commands on the worker's host.
    #[arg(long = "mcp-stdio", env = "HOLDFAST_MCP_STDIO", default_value = "false", action = clap::ArgAction::Set)]
    pub mcp_stdio: bool,

    /// Environment variables that agents may send to their MCP servers by {"env": …}, as NAME,NAME; none unless set.
    #[arg(long, env = "HOLDFAST_AGENT_SECRETS", value_delimiter = ',', value_parser = variable)]
    pub agent_secrets: Vec<String>,

    /// User that stdio servers run as, by name or number; by default nobody for a worker that runs as root, else the
    /// worker's own.
    #[arg(long, env = "HOLDFAST_MCP_USER")]
    pub mcp_user: Option<String>,

    /// Home folder of stdio servers that run as another user than the worker, where that user has none; it is kept between
    /// restarts, for the caches of npx and uvx.
    #[arg(long, env = "HOLDFAST_MCP_HOME", default_value = "/var/lib/holdfast-mcp")]
    pub mcp_home: PathBuf,

    /// Time-out of starting a stdio server and reading its list of tools, in ms.
    #[arg(long = "mcp-connect-ms", env = "HOLDFAST_MCP_CONNECT_MS", default_value = "60000", value_parser = milliseconds)]
    pub mcp_connect: Duration,

    /// Time-out of connecting to an http or rpc server and reading its list of tools, in ms.
    #[arg(long = "mcp-http-connect-ms", env = "HOLDFAST_MCP_HTTP_CONNECT_MS", default_value = "10000", value_parser = milliseconds)]
    pub mcp_http_connect: Duration,

    /// Time that the first model call of a run waits for MCP servers that are still starting, in ms; and the time that a run
    /// waits for a free connection.
    #[arg(long = "mcp-wait-ms", env = "HOLDFAST_MCP_WAIT_MS", default_value = "2000", value_parser = milliseconds)]
    pub mcp_wait: Duration,

    /// Stdio servers that start at the same time in one worker; by default twice as many as the machine has cores.
    #[arg(long, env = "HOLDFAST_MCP_STARTS", value_parser = count)]
    pub mcp_starts: Option<usize>,

    /// Connections to MCP servers that one owner has in one worker; anonymous users of one address are one owner.
    #[arg(long, env = "HOLDFAST_MCP_OWNER_CONNECTIONS", default_value = "32", value_parser = count)]
    pub mcp_owner_connections: usize,

    /// Connections to MCP servers of one worker.
    #[arg(long, env = "HOLDFAST_MCP_CONNECTIONS", default_value = "1024", value_parser = count)]
    pub mcp_connections: usize,

    /// Stdio servers of one worker, which are connections too.
    #[arg(long, env = "HOLDFAST_MCP_PROCESSES", default_value = "64", value_parser = count)]
    pub mcp_processes: usize,

    /// Time-out of one call of an MCP tool, in ms, from its last sign of life on.
    #[arg(long = "mcp-timeout-ms", env = "HOLDFAST_MCP_TIMEOUT_MS", default_value = "10000", value_parser = milliseconds)]
    pub mcp_timeout: Duration,

    /// Time-out of one call of an MCP tool that reports progress, in ms.
    #[arg(long = "mcp-total-ms", env = "HOLDFAST_MCP_TOTAL_MS", default_value = "1800000", value_parser = milliseconds)]
    pub mcp_total: Duration,

    /// Time after which the worker closes an unused connection to an MCP server, in ms.
    #[arg(long = "mcp-idle-ms", env = "HOLDFAST_MCP_IDLE_MS", default_value = "600000", value_parser = milliseconds)]
    pub mcp_idle: Duration,

    /// Largest answer of an MCP server that the worker reads, in bytes.
    #[arg(long, env = "HOLDFAST_MCP_MAX_BYTES", default_value = "16777216", value_parser = bytes)]
    pub mcp_max_bytes: usize,

    /// Opening brackets, colons and commas of an answer of an MCP server outside of its texts, about as many as it has values.
    #[arg(long, env = "HOLDFAST_MCP_MAX_VALUES", default_value = "100000", value_parser = count)]
    pub mcp_max_values: usize,

    /// Bytes of all texts of an answer of an MCP server; the base64 of pictures, sound and resources is not text.
    #[arg(long, env = "HOLDFAST_MCP_TEXT_BYTES", default_value = "2097152", value_parser = bytes)]
    pub mcp_text_bytes: usize,

    /// Memory for the large answers of all MCP servers at a time, in bytes; an owner has at most a quarter, a server half.
    #[arg(long, env = "HOLDFAST_FOREIGN_ANSWERS_BYTES", default_value = "268435456", value_parser = bytes)]
    pub foreign_answers_bytes: usize,

    /// Time-out of one call of a built-in tool, in ms.
    #[arg(long = "tool-timeout-ms", env = "HOLDFAST_TOOL_TIMEOUT_MS", default_value = "30000", value_parser = milliseconds)]
    pub tool_timeout: Duration,

    /// Retries of a call whose tool may be called again, or that was never delivered.
    #[arg(long, env = "HOLDFAST_TOOL_RETRIES", default_value = "0", value_parser = retries)]
    pub tool_retries: u32,

    /// Pause before each retry of a call, in ms.
    #[arg(long = "tool-retry-ms", env = "HOLDFAST_TOOL_RETRY_MS", default_value = "1000", value_parser = milliseconds)]
    pub tool_retry: Duration,

    /// Tools of one run that the worker calls at the same time.
    #[arg(long, env = "HOLDFAST_TOOL_CONCURRENCY", default_value = "3", value_parser = count)]
    pub tool_concurrency: usize,

    /// Characters of a tool's result that the model reads, at least 400 and at most a third of the run's budget of context; the
    /// tool read_result reads the rest.
    #[arg(long, env = "HOLDFAST_TOOL_RESULT_CHARS", default_value = "25000", value_parser = result_chars)]
    pub tool_result_chars: usize,

    /// Bytes of a tool's result that the trace and the events keep.
    #[arg(long, env = "HOLDFAST_TOOL_RESULT_BYTES", default_value = "262144", value_parser = bytes)]
    pub tool_result_bytes: usize,

    /// Time in which a human, or a client that executes a tool, must answer, in ms; then the sweeper denies the call.
    #[arg(long = "approval-ttl-ms", env = "HOLDFAST_APPROVAL_TTL_MS", default_value = "604800000", value_parser = wait)]
    pub approval_ttl: Duration,

    /// Tool calls of one run; then the model must answer with what it has.
    #[arg(long, env = "HOLDFAST_MAX_TOOL_CALLS", default_value = "15", value_parser = calls)]
    pub max_tool_calls: u32,

    /// Subagents that one run may start; further calls fail, and the model reads why.
    #[arg(long, env = "HOLDFAST_MAX_SUBAGENTS", default_value = "32", value_parser = count)]
    pub max_subagents: usize,

    /// Runs below a run that a client started, one below the other; 0 for no subagents.
    #[arg(long, env = "HOLDFAST_MAX_SUBAGENT_DEPTH", default_value = "3", value_parser = depth)]
    pub max_subagent_depth: u32,

    /// Runs that one message may start, with the run that answers it and all runs below that; further calls of subagents fail,
    /// and the model reads why.
    #[arg(long, env = "HOLDFAST_MAX_TREE_RUNS", default_value = "64", value_parser = count)]
    pub max_tree_runs: usize,

    /// Tokens that all these runs together may read and write; then the next step of each of them fails with limit_exceeded.
    #[arg(long, env = "HOLDFAST_MAX_TREE_TOKENS", default_value = "10000000", value_parser = tokens)]
    pub max_tree_tokens: u64,

    /// Steps of one run, each a model call with its tool calls; the last one is without tools.
    #[arg(long, env = "HOLDFAST_MAX_STEPS", default_value = "50", value_parser = steps)]
    pub max_steps: u32,

    /// Longest time of one run in ms, without the time of waiting for people; then it fails with limit_exceeded.
    #[arg(long = "max-duration-ms", env = "HOLDFAST_MAX_DURATION_MS", default_value = "3600000", value_parser = milliseconds)]
    pub max_duration: Duration,

    /// Tools that a client may declare for one run; more get 400.
    #[arg(long, env = "HOLDFAST_MAX_CLIENT_TOOLS", default_value = "128", value_parser = count)]
    pub max_client_tools: usize,

    /// Bytes of JSON schemas that one request's client tools, or one tool of a server, may have.
    #[arg(long, env = "HOLDFAST_MAX_SCHEMA_BYTES", default_value = "262144", value_parser = bytes)]
    pub max_schema_bytes: usize,

    /// Patterns (regular expressions) that the schemas of one request's client tools, or one tool of a server, may have.
    #[arg(long, env = "HOLDFAST_MAX_SCHEMA_PATTERNS", default_value = "256", value_parser = count)]
    pub max_schema_patterns: usize,

    /// Memory of one compiled pattern of a schema, in bytes. Beyond 64 patterns, the patterns share that of 64.
    #[arg(long, env = "HOLDFAST_MAX_PATTERN_BYTES", default_value = "262144", value_parser = bytes)]
    pub max_pattern_bytes: usize,

    /// Steps of checking one call's arguments against its tool's schema; a check that needs more fails.
    #[arg(long, env = "HOLDFAST_MAX_SCHEMA_WORK", default_value = "1000000", value_parser = count)]
    pub max_schema_work: usize,

    /// Time-out of compiling schemas, or of a check against one, in ms. It includes the wait.
    #[arg(long = "schema-patience-ms", env = "HOLDFAST_SCHEMA_PATIENCE_MS", default_value = "5000", value_parser = milliseconds)]
    pub schema_patience: Duration,

    /// Tokens that the model may write in one run; unlimited unless set.
    #[arg(long, env = "HOLDFAST_MAX_OUTPUT_TOKENS", value_parser = tokens)]
    pub max_output_tokens: Option<u64>,

    /// Tokens that the model may read and write in one run; unlimited unless set.
    #[arg(long, env = "HOLDFAST_MAX_TOTAL_TOKENS", value_parser = tokens)]
    pub max_total_tokens: Option<u64>,
}

impl ToolsConfig {
    /// Returns the limits of foreign schemas.
    pub const fn schema_limits(&self) -> schema::SchemaLimits {
        schema::SchemaLimits {
            bytes: self.max_schema_bytes,
            patterns: self.max_schema_patterns,
            pattern_bytes: self.max_pattern_bytes,
            work: self.max_schema_work,
        }
    }

    /// Returns the number of stdio servers that start at the same time.
    pub fn mcp_starts(&self) -> usize {
        self.mcp_starts.unwrap_or_else(|| 2 * available_parallelism().map_or(1, NonZero::get))
    }

    /// Returns the limits of a run whose agent sets none.
    pub fn limits(&self) -> Limits {
        Limits {
            max_tool_calls: Some(self.max_tool_calls),
            max_steps: Some(self.max_steps),
            max_duration_ms: Some(self.max_duration.as_millis() as u64),
            max_output_tokens: self.max_output_tokens,
            max_total_tokens: self.max_total_tokens,
        }
    }
}

/// Longest time for people, in ms: ten years. Far later dates have no spelling.
const LONGEST_WAIT_MS: u64 = 10 * 365 * 24 * 3_600_000;

fn variable(text: &str) -> Result<String, String> {
    let name = text.trim();
    let fits = |char: char| char.is_ascii_alphanumeric() || char == '_';
    if !name.is_empty() && name.chars().all(fits) {
        Ok(name.to_owned())
    } else {
        Err(format!("names of environment variables such as KB_TOKEN,CRM_TOKEN, not {text:?}"))
    }
}

fn wait(text: &str) -> Result<Duration, String> {
    match milliseconds(text)? {
        wait if wait.as_millis() <= u128::from(LONGEST_WAIT_MS) => Ok(wait),
        _ => Err(format!("a duration in milliseconds of at most {LONGEST_WAIT_MS} (ten years), not {text:?}")),
    }
}

fn result_chars(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(chars) if chars >= MIN_RESULT_CHARS => Ok(chars),
        _ => Err(format!("a number of characters, {MIN_RESULT_CHARS} or more, not {text:?}")),
    }
}

fn calls(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("a number of tool calls, 0 or more, not {text:?}"))
}

/// Deepest family that is useful. A tree of runs grows exponentially with its depth.
const MAX_DEPTH: u32 = 10;

fn depth(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(depth) if depth <= MAX_DEPTH => Ok(depth),
        _ => Err(format!("a depth from 0 to {MAX_DEPTH}, not {text:?}")),
    }
}

fn steps(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(steps) if steps > 0 => Ok(steps),
        _ => Err(format!("a number of steps above 0, not {text:?}")),
    }
}

fn tokens(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(tokens) if tokens > 0 => Ok(tokens),
        _ => Err(format!("a number of tokens above 0, not {text:?}")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct ToolsFlags {
        #[command(flatten)]
        tools: ToolsConfig,
    }

    #[test]
    fn at_least_one_server_starts_and_is_connected_at_a_time() {
        let limits =
            ["--mcp-starts", "--mcp-owner-connections", "--mcp-connections", "--mcp-processes", "--mcp-wait-ms"];
        for limit in limits {
            assert!(ToolsFlags::try_parse_from(["holdfast", limit, "1"]).is_ok(), "{limit}");
            assert!(ToolsFlags::try_parse_from(["holdfast", limit, "0"]).is_err(), "{limit}");
        }
        let starts = |args: &[&str]| ToolsFlags::parse_from([&["holdfast"], args].concat()).tools.mcp_starts();
        assert_eq!(starts(&["--mcp-starts", "1"]), 1);
        assert_eq!(starts(&[]), 2 * available_parallelism().unwrap().get());
    }

    #[test]
    fn a_result_has_room_for_the_mark_of_its_cut() {
        assert_eq!(result_chars("400"), Ok(400));
        for refused in ["399", "0", "-1", "many"] {
            assert!(result_chars(refused).unwrap_err().contains("400 or more"), "{refused}");
        }
    }
}
