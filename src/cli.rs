//! The command line and the environment: each setting is a variable, and a flag mirrors it.

use std::ffi::OsString;

use clap::{
    Arg, Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum,
    builder::Resettable,
    error::{ContextKind, ContextValue, ErrorKind},
};
use holdfast_shared::config::{
    ApiConfig, EgressConfig, EmbeddingConfig, FilesConfig, KnowledgeConfig, ModelConfig, PlannerConfig, QuotasConfig,
    RunConfig, SECRET_FILE_SUFFIX, StoresConfig, ToolsConfig, UsersConfig, WebSearchConfig,
};

use crate::{chat::ChatArgs, doctor::DoctorArgs, healthcheck::HealthcheckArgs, secret_files};

/// Agent runs that outlive the connection.
///
/// Without a command: API and worker in one process, with a SQLite file and nothing else to install.
#[derive(Debug, Parser)]
#[command(
    name = "holdfast",
    version,
    max_term_width = 110,
    after_help = "An empty variable counts as unset, except HOLDFAST_JWT_KEY, which is refused."
)]
pub struct Cli {
    #[command(flatten)]
    pub settings: ServerSettings,
    #[command(subcommand)]
    pub role: Option<CliRole>,
}

/// The role of this process.
#[derive(Debug, Subcommand)]
pub enum CliRole {
    /// Serve the HTTP API; needs DATABASE_URL and REDIS_URL, and workers elsewhere.
    Api,
    /// Execute runs; needs DATABASE_URL and REDIS_URL.
    Worker,
    /// Bring the database's schema up to date.
    Migrate,
    /// Check the running process with these settings, for the health checks of containers.
    Healthcheck(HealthcheckArgs),
    /// Check whether a process could start with these settings; changes nothing.
    Doctor(DoctorArgs),
    /// Chat with a Holdfast server in the terminal.
    Chat(Box<ChatArgs>),
    /// A worker starts it; it ends the worker's MCP servers when the worker is killed.
    #[command(hide = true)]
    Guard,
    /// A worker starts it for each document; it reads the document on its standard input under limits of its own.
    #[command(hide = true, name = holdfast_extraction::ROLE)]
    ExtractDocument {
        /// The media type and the limits, as the worker writes them.
        arguments: Vec<String>,
    },
}

/// All settings of the server's roles.
#[derive(Debug, Clone, Args)]
pub struct ServerSettings {
    #[command(flatten)]
    pub api: ApiConfig,
    #[command(flatten)]
    pub users: UsersConfig,
    #[command(flatten)]
    pub quotas: QuotasConfig,
    #[command(flatten)]
    pub stores: StoresConfig,
    #[command(flatten)]
    pub files: FilesConfig,
    #[command(flatten)]
    pub knowledge: KnowledgeConfig,
    #[command(flatten)]
    pub embedding: EmbeddingConfig,
    #[command(flatten)]
    pub run: RunConfig,
    #[command(flatten)]
    pub model: ModelConfig,
    #[command(flatten)]
    pub tools: ToolsConfig,
    #[command(flatten)]
    pub planner: PlannerConfig,
    #[command(flatten)]
    pub web_search: WebSearchConfig,
    #[command(flatten)]
    pub egress: EgressConfig,
    #[command(flatten)]
    pub logging: LoggingConfig,
}

/// Level and format of the log.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Logging")]
pub struct LoggingConfig {
    /// Level of the log, or levels per module as in info,holdfast_worker=debug.
    #[arg(long, env = "HOLDFAST_LOG", default_value = "info")]
    pub log: String,
    /// Format of the log.
    #[arg(long, env = "HOLDFAST_LOG_FORMAT", default_value = "text", value_enum)]
    pub log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

/// Reads flags and environment; ends the process with an error message if they do not fit.
pub fn read() -> Cli {
    parse(std::env::args_os(), |variable| std::env::var_os(variable)).unwrap_or_else(|refusal| refusal.exit())
}

/// The reason for which the settings were refused.
#[derive(Debug)]
pub enum Refusal {
    /// A value of a variable does not fit; the text is Holdfast's own.
    Setting(String),
    /// Any other error, or a request for help; the text is clap's.
    Usage(clap::Error),
}

impl Refusal {
    fn exit(self) -> ! {
        match self {
            Self::Setting(sentence) => {
                eprintln!("holdfast: {sentence}");
                std::process::exit(2)
            }
            Self::Usage(error) => error.exit(),
        }
    }
}

/// The only variable that does not count as unset when it or its file variable is empty: a deployment that forgot to fill in
/// the secret must not admit every caller.
const JWT_KEY: &str = "HOLDFAST_JWT_KEY";

fn parse(args: impl Iterator<Item = OsString>, variable: impl Fn(&str) -> Option<OsString>) -> Result<Cli, Refusal> {
    let args: Vec<OsString> = args.collect();
    // `holdfast chat` has none of the server's settings.
    let is_client = args.get(1).is_some_and(|role| role == "chat");
    let key_file = format!("{JWT_KEY}{SECRET_FILE_SUFFIX}");
    let has_file = variable(&key_file).is_some_and(|path| !path.is_empty());
    let has_key = variable(JWT_KEY).is_some_and(|key| !key.is_empty());
    let unfilled = |name: &str, other: bool| !other && variable(name).is_some_and(|value| value.is_empty());
    let empty =
        [(JWT_KEY, has_file), (key_file.as_str(), has_key)].into_iter().find(|(name, other)| unfilled(name, *other));
    if let Some((name, _)) = empty.filter(|_| !is_client) {
        let sentence = format!(
            "{name} is empty: give it a key, or unset it for development mode, in which every caller is believed"
        );
        return Err(Refusal::Setting(sentence));
    }
    let mut command = Cli::command();
    if !is_client {
        command = command.mut_args(|arg| arg.global(true));
    }
    let command = without_empty_variables(command, &variable);
    let command = secret_files::read_into(command, is_client, &variable).map_err(Refusal::Setting)?;
    let matches = command.clone().try_get_matches_from(args).map_err(|error| explain(error, &command))?;
    Cli::from_arg_matches(&matches).map_err(Refusal::Usage)
}

fn without_empty_variables(command: Command, variable: &impl Fn(&str) -> Option<OsString>) -> Command {
    let command = command.mut_args(|arg| match arg.get_env().and_then(|name| variable(&name.to_string_lossy())) {
        Some(value) if value.is_empty() => arg.env(Resettable::Reset),
        _ => arg,
    });
    command.mut_subcommands(|role| without_empty_variables(role, variable))
}

/// Returns a message that names the variable of the refused value and the expected values. Passes all other errors through.
fn explain(error: clap::Error, command: &Command) -> Refusal {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let refused = matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue);
    let arg = text(ContextKind::InvalidArg).and_then(|name| find(command, &name));
    let Some((arg, value)) = arg.zip(text(ContextKind::InvalidValue)).filter(|_| refused) else {
        return Refusal::Usage(error);
    };
    let names = match (arg.get_env(), arg.get_long()) {
        (Some(variable), Some(flag)) => format!("{} (or --{flag})", variable.to_string_lossy()),
        (None, Some(flag)) => format!("--{flag}"),
        (_, None) => arg.get_id().to_string(),
    };
    let choices: Vec<String> = arg.get_possible_values().iter().map(|choice| choice.get_name().to_owned()).collect();
    if value.is_empty() && choices.is_empty() {
        return Refusal::Setting(format!("{names}: expected a value"));
    }
    let expected = match std::error::Error::source(&error) {
        Some(expected) => expected.to_string(),
        None => format!("one of {}, not {value:?}", choices.join(", ")),
    };
    Refusal::Setting(format!("{names}: expected {expected}"))
}

/// Returns the argument that clap's message names as `--flag <VALUE>`.
fn find<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let flag = name.split_whitespace().next()?.trim_start_matches("--");
    let all = command.get_arguments().chain(command.get_subcommands().flat_map(Command::get_arguments));
    all.into_iter().find(|arg| arg.get_long() == Some(flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(args: &[&str]) -> String {
        let args = ["holdfast"].iter().chain(args).map(OsString::from);
        match parse(args, |_| None) {
            Err(Refusal::Setting(sentence)) => sentence,
            other => panic!("expected a refused setting, not {other:?}"),
        }
    }

    #[test]
    fn a_wrong_value_is_refused_with_the_variables_name_and_what_was_expected() {
        let check = |args: &[&str], expected: &str| assert_eq!(refusal(args), expected);
        check(
            &["--addr", "here"],
            "HOLDFAST_ADDR (or --addr): expected an address and port such as 127.0.0.1:8080, not \"here\"",
        );
        check(
            &["worker", "--lease-ms", "0"],
            "HOLDFAST_LEASE_MS (or --lease-ms): expected a duration in whole milliseconds above 0, such as 15000, not \"0\"",
        );
        check(
            &["--model-retries", "x"],
            "HOLDFAST_MODEL_RETRIES (or --model-retries): expected a number of tries from 0 to 100, not \"x\"",
        );
        check(&["chat", "--url", "here"], "HOLDFAST_URL (or --url): expected an address such as http://127.0.0.1:8080");
        check(&["--lease-ms"], "HOLDFAST_LEASE_MS (or --lease-ms): expected a value");
        assert!(refusal(&["--approval-ttl-ms", "18446744073709551615"]).contains("ten years"));
        check(&["chat", "--username"], "--username: expected a value");
        assert!(refusal(&["chat", "--conversation", "nope"]).starts_with("--conversation: expected "));
        check(
            &["--chat-memory-backend", "tape"],
            "CHAT_MEMORY_BACKEND (or --chat-memory-backend): expected one of postgres, sqlite, memory, not \"tape\"",
        );
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_flag_is_its_variable_in_lower_case_without_holdfast() {
        for arg in Cli::command().get_arguments() {
            if let (Some(variable), Some(flag)) = (arg.get_env(), arg.get_long()) {
                let variable = variable.to_string_lossy().to_lowercase().replace('_', "-");
                assert_eq!(variable.trim_start_matches("holdfast-"), flag);
            }
        }
    }
}
