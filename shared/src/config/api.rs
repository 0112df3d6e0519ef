//! The listening address of the HTTP API, and its limits.

use std::{net::SocketAddr, time::Duration};

use super::{Error, bytes, count, delay, milliseconds};
use crate::time_zone::TimeZone;

/// Settings of the API process.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "API")]
pub struct ApiConfig {
    /// Address that the API listens on.
    #[arg(long, env = "HOLDFAST_ADDR", default_value = "127.0.0.1:8080", value_parser = address)]
    pub addr: SocketAddr,

    /// Origins of other front ends that browsers may call the API from, as https://chat.example.org,…; none unless set.
    #[arg(long, env = "HOLDFAST_CORS_ORIGINS", value_delimiter = ',', value_parser = origin)]
    pub cors_origins: Vec<String>,

    /// Whether browsers may send cookies from those origins.
    #[arg(long, env = "HOLDFAST_CORS_CREDENTIALS", default_value = "false", action = clap::ArgAction::Set)]
    pub cors_credentials: bool,

    /// The agent that answers the agent stream, by name or id; none for the plain model.
    #[arg(long, env = "HOLDFAST_STREAM_AGENT", default_value = "planner")]
    pub stream_agent: String,

    /// Time zone of users whose requests and profiles name none: a name of the IANA database, such as Europe/Copenhagen.
    #[arg(long, env = "HOLDFAST_TIME_ZONE", default_value = "UTC")]
    pub time_zone: TimeZone,

    /// Whether the chat page locks its message field while an answer is being made.
    #[arg(long, env = "HOLDFAST_PAGE_COMPOSER", default_value = "open", value_enum)]
    pub page_composer: PageComposer,

    /// Whether a closed connection of an AI SDK's client ends its run, 2 s after the last client that follows the run has left.
    #[arg(long, env = "HOLDFAST_AI_SDK_ON_DISCONNECT", default_value = "continue", value_enum)]
    pub ai_sdk_on_disconnect: OnDisconnect,

    /// Whether a closed connection of an AG-UI client ends its run in this way.
    #[arg(long, env = "HOLDFAST_AG_UI_ON_DISCONNECT", default_value = "continue", value_enum)]
    pub ag_ui_on_disconnect: OnDisconnect,

    /// Whether a closed connection ends the run of a chat completion, 2 s later, if no other request can return to it.
    #[arg(long, env = "HOLDFAST_COMPLETIONS_ON_DISCONNECT", default_value = "cancel", value_enum)]
    pub completions_on_disconnect: OnDisconnect,

    /// Searches of conversations that run at the same time. A further search waits up to 5 s and then gets 503.
    #[arg(long, env = "HOLDFAST_SEARCHES", default_value = "2", value_parser = count)]
    pub searches: usize,

    /// Reads of whole threads and logs at the same time, one for a caller. A further read waits up to 10 s and then gets 503.
    #[arg(long, env = "HOLDFAST_READS", default_value = "2", value_parser = count)]
    pub reads: usize,

    /// Largest request body, in bytes; a larger one gets 413.
    #[arg(long, env = "HOLDFAST_MAX_BODY_BYTES", default_value = "1048576", value_parser = bytes)]
    pub max_body_bytes: usize,

    /// Largest body of POST /api/chat, whose files may be in it, in bytes; a larger one gets 413.
    #[arg(long, env = "HOLDFAST_MAX_CHAT_BODY_BYTES", default_value = "16777216", value_parser = bytes)]
    pub max_chat_body_bytes: usize,

    /// Opening brackets, colons and commas of a JSON body outside of its texts; a body with more gets 413.
    #[arg(long, env = "HOLDFAST_MAX_BODY_VALUES", default_value = "100000", value_parser = count)]
    pub max_body_values: usize,

    /// Largest content of one message, in bytes of UTF-8; a larger one gets 400.
    #[arg(long, env = "HOLDFAST_MAX_CONTENT_BYTES", default_value = "65536", value_parser = bytes)]
    pub max_content_bytes: usize,

    /// Largest metadata of one message, in bytes of JSON; a larger one gets 400.
    #[arg(long, env = "HOLDFAST_MAX_METADATA_BYTES", default_value = "16384", value_parser = bytes)]
    pub max_metadata_bytes: usize,

    /// Largest profile of a user, in bytes of UTF-8; a larger one gets 400.
    #[arg(long, env = "HOLDFAST_MAX_PROFILE_BYTES", default_value = "4096", value_parser = bytes)]
    pub max_profile_bytes: usize,

    /// Runs that may wait in one conversation; a further message gets 429.
    #[arg(long, env = "HOLDFAST_MAX_QUEUED", default_value = "100", value_parser = count)]
    pub max_queued: usize,

    /// Longest time by which a client may delay a run, in ms, up to a year; a longer one gets 400.
    #[arg(long = "max-delay-ms", env = "HOLDFAST_MAX_DELAY_MS", default_value = "604800000", value_parser = delay)]
    pub max_delay: Duration,

    /// Time-out of reading a request's body, in ms; a slower one gets 408.
    #[arg(long = "body-timeout-ms", env = "HOLDFAST_BODY_TIMEOUT_MS", default_value = "30000", value_parser = milliseconds)]
    pub body_timeout: Duration,

    /// Bytes per second that an open upload brings at least, on the average since its beginning, after the time-out of a
    /// body; a slower one gets 408.
    #[arg(long, env = "HOLDFAST_LEAST_UPLOAD_RATE", default_value = "16384", value_parser = bytes)]
    pub least_upload_rate: usize,

    /// Longest title of a conversation, in characters.
    #[arg(long, env = "HOLDFAST_MAX_TITLE_CHARS", default_value = "200", value_parser = count)]
    pub max_title_chars: usize,

    /// Most items that one page of a list may have.
    #[arg(long, env = "HOLDFAST_MAX_PAGE", default_value = "200", value_parser = count)]
    pub max_page: usize,

    /// Bytes of JSON at which a page of a list, or a history, ends, give or take an item.
    #[arg(long, env = "HOLDFAST_MAX_PAGE_BYTES", default_value = "1048576", value_parser = bytes)]
    pub max_page_bytes: usize,

    /// Bytes of request bodies that the API reads at the same time; a further one gets 503.
    #[arg(long, env = "HOLDFAST_BODIES_BYTES", default_value = "134217728", value_parser = bytes)]
    pub bodies_bytes: usize,

    /// Bytes of request bodies that the API reads for one caller at the same time; a further one gets 429.
    #[arg(long, env = "HOLDFAST_BODIES_PER_CALLER_BYTES", default_value = "33554432", value_parser = bytes)]
    pub bodies_per_caller_bytes: usize,

    /// Bytes of answers that clients have not read yet; a request for more gets 503.
    #[arg(long, env = "HOLDFAST_ANSWERS_BYTES", default_value = "268435456", value_parser = bytes)]
    pub answers_bytes: usize,

    /// Bytes of answers that one caller has not read yet; a request for more gets 429.
    #[arg(long, env = "HOLDFAST_ANSWERS_PER_CALLER_BYTES", default_value = "33554432", value_parser = bytes)]
    pub answers_per_caller_bytes: usize,

    /// Time in which a client must read an answer that is no stream, in ms; then the API closes the connection.
    #[arg(long = "answer-timeout-ms", env = "HOLDFAST_ANSWER_TIMEOUT_MS", default_value = "120000", value_parser = milliseconds)]
    pub answer_timeout: Duration,

    /// Newest messages in the history of a session or of a chat, and of the history that a request brings.
    #[arg(long, env = "HOLDFAST_MAX_HISTORY", default_value = "1000", value_parser = count)]
    pub max_history: usize,

    /// Bytes of the history that a request brings with its message; the run answers without older messages.
    #[arg(long, env = "HOLDFAST_GIVEN_HISTORY_BYTES", default_value = "4194304", value_parser = bytes)]
    pub given_history_bytes: usize,

    /// Bytes of the history that a request of an anonymous caller brings with its message.
    #[arg(long, env = "HOLDFAST_ANONYMOUS_GIVEN_HISTORY_BYTES", default_value = "262144", value_parser = bytes)]
    pub anonymous_given_history_bytes: usize,

    /// Longest time that a client may wait for a run in one request, in ms.
    #[arg(long = "max-wait-ms", env = "HOLDFAST_MAX_WAIT_MS", default_value = "600000", value_parser = milliseconds)]
    pub max_wait: Duration,

    /// Open connections, besides those in reserve; a request on a further one gets 503.
    #[arg(long, env = "HOLDFAST_MAX_CONNECTIONS", default_value = "10000", value_parser = count)]
    pub max_connections: usize,

    /// Connections in reserve for probes, Prometheus and operators; 0 for none.
    #[arg(long, env = "HOLDFAST_RESERVED_CONNECTIONS", default_value = "100", value_parser = reserve)]
    pub reserved_connections: usize,

    /// Longest life of a stream, in ms; then the API closes it and its client reconnects.
    #[arg(long = "stream-life-ms", env = "HOLDFAST_STREAM_LIFE_MS", default_value = "3600000", value_parser = milliseconds)]
    pub stream_life: Duration,

    /// Silence on a stream after which the API sends a heartbeat comment, in ms.
    #[arg(long = "heartbeat-ms", env = "HOLDFAST_HEARTBEAT_MS", default_value = "15000", value_parser = milliseconds)]
    pub heartbeat: Duration,

    /// Longest time that the head of a text or chat stream waits for the run's first output, in ms. A run that fails
    /// before it gets 500.
    #[arg(long = "head-wait-ms", env = "HOLDFAST_HEAD_WAIT_MS", default_value = "5000", value_parser = milliseconds)]
    pub head_wait: Duration,

    /// Longest time without a sign of life of a run that a client started through the agent stream, in ms, unless its agent sets
    /// a time for the whole run.
    #[arg(long = "agent-stream-duration-ms", env = "HOLDFAST_AGENT_STREAM_DURATION_MS", default_value = "90000", value_parser = milliseconds)]
    pub agent_stream_silence: Duration,

    /// Longest time that a long poll of a Durable Stream waits for an event, in ms.
    #[arg(long = "long-poll-ms", env = "HOLDFAST_LONG_POLL_MS", default_value = "20000", value_parser = milliseconds)]
    pub long_poll: Duration,

    /// Time after which the API closes an SSE connection of a Durable Stream, so that the client reconnects, in ms.
    #[arg(long = "durable-sse-ms", env = "HOLDFAST_DURABLE_SSE_MS", default_value = "60000", value_parser = milliseconds)]
    pub durable_sse: Duration,

    /// Time after its end in which a reconnecting AI SDK client still gets a chat's last answer complete, in ms.
    #[arg(long = "chat-grace-ms", env = "HOLDFAST_CHAT_GRACE_MS", default_value = "300000", value_parser = milliseconds)]
    pub chat_grace: Duration,

    /// Time for which a client's socket may accept no bytes before the API closes it, in ms.
    #[arg(long = "stall-ms", env = "HOLDFAST_STALL_MS", default_value = "30000", value_parser = milliseconds)]
    pub stall: Duration,

    /// Time that a worker has to end a cancelled run before the API ends it, in ms.
    #[arg(long = "cancel-grace-ms", env = "HOLDFAST_CANCEL_GRACE_MS", default_value = "1500", value_parser = milliseconds)]
    pub cancel_grace: Duration,

    /// Events and encoded frames that one topic keeps in memory, in bytes. The API reads older ones from the run log or
    /// the archive.
    #[arg(long, env = "HOLDFAST_FEED_BYTES", default_value = "1048576", value_parser = bytes)]
    pub feed_bytes: usize,

    /// Interval at which the API polls the database for all followed runs, in case a push was lost, in ms.
    #[arg(long = "look-ms", env = "HOLDFAST_LOOK_MS", default_value = "1000", value_parser = milliseconds)]
    pub look: Duration,
}

impl ApiConfig {
    /// Refuses settings that contradict one another.
    pub fn check(&self) -> Result<(), Error> {
        if self.cors_credentials && self.cors_origins.is_empty() {
            Err(Error::new(
                "HOLDFAST_CORS_CREDENTIALS",
                "has no effect without an origin: set HOLDFAST_CORS_ORIGINS as well",
            ))
        } else {
            Ok(())
        }
    }
}

fn reserve(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("a whole number, or 0 for none, not {text:?}"))
}

/// Parses an origin in the one spelling that browsers send (RFC 6454, section 6.2).
fn origin(text: &str) -> Result<String, String> {
    let expected =
        || Err(format!("exact origins such as https://chat.example.org,http://localhost:5173, not {text:?}"));
    let origin = text.trim();
    let Some((scheme @ ("http" | "https"), host)) = origin.split_once("://") else { return expected() };
    let default_port = if scheme == "http" { ":80" } else { ":443" };
    let fits = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || ".-_:[]".contains(char);
    if host.is_empty() || !host.chars().all(fits) || host.ends_with([':', '.']) || host.ends_with(default_port) {
        expected()
    } else {
        Ok(origin.to_owned())
    }
}

/// The effect of a client that disconnects before the end of its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OnDisconnect {
    /// The run is cancelled.
    Cancel,
    /// The run continues.
    Continue,
}

/// The values of `HOLDFAST_PAGE_COMPOSER`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PageComposer {
    /// The reader may write and send during an answer.
    Open,
    /// The field is locked during an answer.
    Locked,
}

/// Parses a listening address.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("an address and port such as 127.0.0.1:8080, not {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_the_spelling_of_browsers() {
        for good in ["https://chat.example.org", "http://localhost:5173", "http://[::1]:8080", " https://a.b "] {
            assert_eq!(origin(good).as_deref(), Ok(good.trim()));
        }
        for bad in [
            "*",
            "null",
            "",
            "chat.example.org",
            "https://",
            "https://chat.example.org/",
            "https://Chat.example.org",
            "https://*.example.org",
            "https://chat.example.org:443",
            "http://chat.example.org:80",
            "https://user@chat.example.org",
            "file://host",
        ] {
            assert!(origin(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn a_delay_is_at_most_a_year() {
        assert_eq!(delay("31536000000"), Ok(Duration::from_secs(365 * 24 * 60 * 60)));
        assert!(delay("31536000001").is_err());
        assert!(delay("0").is_err());
    }
}
