//! `holdfast chat`: a terminal client, which uses only the HTTP API of the server.
//!
//! `client` sends requests, `stream` follows a run over any number of connections, and `frames` parses the wire. `fold` decides
//! what to show; `call` and `question` word tool calls and questions. `screen` prints, `input` reads lines, `upload` sends files. `exchange` handles
//! one message and its answer, with the states `answer_state`, `cancel` and `outage`. This file has the loop over messages.

mod answer_state;
mod call;
mod cancel;
mod client;
mod events;
mod exchange;
mod fold;
mod input;
mod outage;
mod plan;
mod question;
mod screen;
mod stream;
mod upload;

use std::{io, path::PathBuf, process::ExitCode};

use reqwest::Url;
use secrecy::SecretString;
use tokio::signal::unix::{Signal, SignalKind, signal};
use uuid::Uuid;

use client::{ChatClient, ClientIdentity, RequestFailure};
use exchange::{Corrections, Exchange, ExchangeOutcome};
use input::{InputLines, steering_text};
use screen::Screen;
use upload::upload;

/// Exit status of an interrupted process, by the convention of shells.
const INTERRUPTED: u8 = 130;

/// Chat with a Holdfast server in the terminal. In a pipe, each line is a message, and standard output has only the answers.
#[derive(Debug, Clone, clap::Args)]
pub struct ChatArgs {
    /// URL of the server.
    #[arg(long, env = "HOLDFAST_URL", default_value = "http://127.0.0.1:8080", value_parser = server_url)]
    url: Url,
    /// Session to continue, by a name that you choose; session_<username> if absent.
    #[arg(long, value_name = "NAME", conflicts_with = "conversation")]
    session: Option<String>,
    /// Conversation to continue.
    #[arg(long, value_name = "ID")]
    conversation: Option<Uuid>,
    /// Agent of a new conversation or session; /v1/agents lists the agents.
    #[arg(long, value_name = "ID", conflicts_with = "conversation")]
    agent: Option<Uuid>,
    /// File that goes with the first message; may be given several times.
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<PathBuf>,
    /// Name of the user, for a server in development mode.
    #[arg(long, value_name = "NAME")]
    username: Option<String>,
    /// Token of the user, for a server that checks tokens; it takes precedence over --username.
    #[arg(long, env = "HOLDFAST_TOKEN", hide_env_values = true)]
    token: Option<SecretString>,
}

fn server_url(text: &str) -> Result<Url, String> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
        _ => Err("an address such as http://127.0.0.1:8080".to_owned()),
    }
}

/// Runs the chat until the input ends, and returns the exit status of the process.
pub async fn run(args: ChatArgs) -> ExitCode {
    let mut chat = match TerminalChat::begin(args).await {
        Ok(chat) => chat,
        Err(sentence) => {
            eprintln!("holdfast: {sentence}");
            return ExitCode::FAILURE;
        }
    };
    match chat.converse().await {
        Ok(status) => status,
        // The reader of the pipe has closed it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("holdfast: failed to write the answer: {error}");
            ExitCode::FAILURE
        }
    }
}

struct TerminalChat {
    client: ChatClient,
    screen: Screen,
    lines: InputLines,
    interrupts: Signal,
    session: Option<String>,
    conversation: Option<Uuid>,
    agent: Option<Uuid>,
    corrections: Corrections,
    /// Files for the next message.
    files: Vec<Uuid>,
}

/// Number of messages of a session that the chat shows at its start.
const SHOWN_MESSAGES: usize = 4;

impl TerminalChat {
    async fn begin(args: ChatArgs) -> Result<Self, String> {
        let client =
            ChatClient::new(&args.url, ClientIdentity::of(args.token, args.username), args.session.as_deref())?;
        client.connect(args.conversation).await?;
        let mut files = Vec::new();
        for path in &args.files {
            files.push(upload(&client, path).await?);
        }
        // From here on the chat handles Ctrl-C.
        let interrupts = signal(SignalKind::interrupt()).map_err(|error| format!("failed to watch Ctrl-C: {error}"))?;
        Ok(Self {
            client,
            screen: Screen::new(),
            lines: InputLines::read(),
            interrupts,
            session: args.session,
            conversation: args.conversation,
            agent: args.agent,
            corrections: Corrections::new(),
            files,
        })
    }

    async fn converse(&mut self) -> io::Result<ExitCode> {
        let target = match (self.conversation, &self.session, self.agent) {
            (Some(id), ..) => format!("conversation {id}"),
            (None, Some(name), _) => format!("session {name}"),
            (None, None, None) => "your session".to_owned(),
            (None, None, Some(_)) => "a new conversation".to_owned(),
        };
        self.screen.greet(&format!(
            "Holdfast at {}, {target}; /quit ends, /steer TEXT corrects the answer under way",
            self.client.url()
        ))?;
        self.show_history().await?;
        let interactive = self.screen.is_interactive();
        let mut status = ExitCode::SUCCESS;
        while let Some(input) = self.read_input().await? {
            let text = match input {
                ReaderInput::Message(text) => text,
                ReaderInput::Interrupt => return Ok(INTERRUPTED.into()),
            };
            match self.exchange(text).await? {
                ExchangeOutcome::Interrupted => return Ok(INTERRUPTED.into()),
                ExchangeOutcome::Cancelled if !interactive => return Ok(INTERRUPTED.into()),
                // The next message would cancel the waiting run.
                ExchangeOutcome::Waiting => return Ok(ExitCode::FAILURE),
                // A person has seen the error; a script needs the status.
                ExchangeOutcome::Incomplete if !interactive => status = ExitCode::FAILURE,
                ExchangeOutcome::Incomplete | ExchangeOutcome::Cancelled | ExchangeOutcome::Complete => {}
            }
        }
        Ok(status)
    }

    /// Sends a message and shows its answer, and the answers to corrections that came too late for it.
    async fn exchange(&mut self, text: String) -> io::Result<ExchangeOutcome> {
        let Self { client, screen, agent, conversation, corrections, lines, interrupts, files, .. } = self;
        let exchange = Exchange::new(client, screen, *agent, conversation, corrections);
        let mut outcome = exchange.run((text, std::mem::take(files)), lines, interrupts).await?;
        // The end of a cancelled answer does not end its corrections: their runs answer them.
        while !matches!(outcome, ExchangeOutcome::Interrupted | ExchangeOutcome::Waiting)
            && let Some(updates) = corrections.pop_front()
        {
            let exchange = Exchange::new(client, screen, *agent, conversation, corrections);
            outcome = exchange.show_answer(updates, lines, interrupts).await?;
        }
        corrections.clear();
        Ok(outcome)
    }

    /// Shows the last messages of an existing session to an interactive reader.
    async fn show_history(&mut self) -> io::Result<()> {
        let is_new = self.conversation.is_some() || (self.agent.is_some() && self.session.is_none());
        if is_new || !self.screen.is_interactive() {
            return Ok(());
        }
        match self.client.history().await {
            Ok(history) => {
                for line in &history[history.len().saturating_sub(SHOWN_MESSAGES)..] {
                    self.screen.notice(&line.summary())?;
                }
                Ok(())
            }
            Err(RequestFailure::Away(reason)) => {
                self.screen.notice(&format!("[failed to read the last messages: {reason}]"))
            }
            Err(RequestFailure::Refused(problem)) => self.screen.error(&problem.detail),
        }
    }

    /// Returns the next input of the reader, or `None` when the input has ended.
    async fn read_input(&mut self) -> io::Result<Option<ReaderInput>> {
        loop {
            self.screen.prompt()?;
            let line = tokio::select! {
                line = self.lines.message() => line,
                _ = self.interrupts.recv() => {
                    self.screen.end_line()?;
                    return Ok(Some(ReaderInput::Interrupt));
                }
            };
            match line {
                None => {
                    self.screen.end_line()?;
                    return Ok(None);
                }
                Some(line) if line.trim().is_empty() => {}
                Some(line) if line.trim() == "/quit" && self.screen.is_interactive() => return Ok(None),
                Some(line) => {
                    // No answer is under way any more.
                    let text = steering_text(&line).filter(|_| self.screen.is_interactive());
                    return Ok(Some(ReaderInput::Message(text.map_or(line.clone(), str::to_owned))));
                }
            }
        }
    }
}

/// One input of the reader.
enum ReaderInput {
    Message(String),
    Interrupt,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_url_names_a_scheme_and_a_host() {
        for url in ["http://127.0.0.1:8080", "https://example.org/holdfast/"] {
            assert!(server_url(url).is_ok(), "{url} was refused");
        }
        for url in ["", "127.0.0.1:8080", "localhost:8080", "ftp://example.org"] {
            assert!(server_url(url).is_err(), "{url} was accepted");
        }
    }
}
