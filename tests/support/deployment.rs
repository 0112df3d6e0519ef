//! One deployment for both modes: one process with a file, or an API and a worker with PostgreSQL and Redis.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Client, Embedded, EventFrame, EventStream, Holdfast, ScaledOut, SharedMode, SharedStory};

/// Makes a test for each mode of an async function that takes a `Deployment`, for a fact that one mode alone can break: by its
/// statements, its log, its queue, or a part that dies without the others.
#[macro_export]
macro_rules! in_both_modes {
    ($($fact:ident),+ $(,)?) => {
        mod embedded {
            $(#[tokio::test]
            async fn $fact() {
                super::$fact($crate::support::Deployment::shared_embedded(stringify!($fact))).await;
            })+
        }

        mod scaled_out {
            $(#[tokio::test]
            async fn $fact() {
                super::$fact($crate::support::Deployment::shared_scaled_out(stringify!($fact))).await;
            })+
        }
    };
}

/// Makes one test of an async function that takes a `Deployment`, for a fact that the mode cannot change, such as a rule for
/// requests, a frame of a wire or the outcome of a tool.
#[macro_export]
macro_rules! in_either_mode {
    ($($fact:ident),+ $(,)?) => {
        mod either_mode {
            $(#[tokio::test]
            async fn $fact() {
                super::$fact($crate::support::Deployment::shared_embedded(stringify!($fact))).await;
            })+
        }
    };
}

/// A deployment in one of the modes: the shared one of the mode, or a test's own, whose processes it can kill.
pub struct Deployment {
    mode: Mode,
    api: Option<Holdfast>,
    worker: Option<Holdfast>,
}

enum Mode {
    Embedded(Embedded),
    ScaledOut(Box<ScaledOut>),
    Shared(SharedStory),
}

const SHARED: &str = "a story that breaks a server or reads its log calls `Deployment::own` first";

impl Deployment {
    /// Returns the embedded deployment that stories share.
    pub fn shared_embedded(fact: &str) -> Self {
        Self::shared(SharedMode::Embedded, fact)
    }

    /// Returns the scaled-out deployment that stories share.
    pub fn shared_scaled_out(fact: &str) -> Self {
        Self::shared(SharedMode::ScaledOut, fact)
    }

    fn shared(mode: SharedMode, fact: &str) -> Self {
        Self { mode: Mode::Shared(SharedStory::new(mode, fact)), api: None, worker: None }
    }

    /// Returns a deployment of the same mode for this test alone.
    pub fn own(self) -> Self {
        match &self.mode {
            Mode::Shared(story) if story.mode == SharedMode::Embedded => Self::embedded(),
            Mode::Shared(_) => Self::scaled_out(),
            Mode::Embedded(_) | Mode::ScaledOut(_) => self,
        }
    }

    pub fn embedded() -> Self {
        let embedded = Embedded::new().with("HOLDFAST_SWEEP_MS", 250);
        Self { mode: Mode::Embedded(embedded), api: None, worker: None }
    }

    pub fn scaled_out() -> Self {
        Self { mode: Mode::ScaledOut(Box::new(ScaledOut::new())), api: None, worker: None }
    }

    /// Returns an embedded deployment on a data folder that a test has prepared.
    pub fn on(embedded: Embedded) -> Self {
        Self { mode: Mode::Embedded(embedded), api: None, worker: None }
    }

    /// Returns a scaled-out deployment on servers that a test has started.
    pub fn of(scaled: ScaledOut) -> Self {
        Self { mode: Mode::ScaledOut(Box::new(scaled)), api: None, worker: None }
    }

    /// Sets a variable before the first start of the test's own deployment.
    pub fn with(self, variable: &'static str, value: impl ToString) -> Self {
        let mut own = self.own();
        own.mode = match own.mode {
            Mode::Embedded(embedded) => Mode::Embedded(embedded.with(variable, value)),
            Mode::ScaledOut(scaled) => Mode::ScaledOut(Box::new(scaled.with(variable, value))),
            Mode::Shared(_) => panic!("{SHARED}"),
        };
        own
    }

    /// Starts the processes that do not run, and returns a client of the API.
    pub fn client(&mut self) -> Client {
        match &self.mode {
            Mode::Embedded(embedded) => {
                let start = || {
                    let mut process = embedded.start();
                    // The process listens before its worker takes checks of agents.
                    process.wait_for_log("worker started");
                    process
                };
                self.api.get_or_insert_with(start).client()
            }
            Mode::ScaledOut(scaled) => {
                self.worker.get_or_insert_with(|| scaled.worker());
                self.api.get_or_insert_with(|| scaled.api()).client()
            }
            Mode::Shared(story) => story.client(),
        }
    }

    /// Kills the worker; in embedded mode, the only process.
    pub fn kill_worker(&mut self) {
        match &self.mode {
            Mode::Embedded(_) => self.api.take().expect("it was started").kill(),
            Mode::ScaledOut(_) => self.worker.take().expect("it was started").kill(),
            Mode::Shared(_) => panic!("{SHARED}"),
        }
    }

    /// Returns whether API and worker are one process.
    pub fn is_embedded(&self) -> bool {
        match &self.mode {
            Mode::Embedded(_) => true,
            Mode::ScaledOut(_) => false,
            Mode::Shared(story) => story.mode == SharedMode::Embedded,
        }
    }

    /// Kills the API; in embedded mode, the only process.
    pub fn kill_api(&mut self) {
        self.assert_own();
        self.api.take().expect("it was started").kill();
    }

    /// Returns all data of Redis, byte for byte.
    pub fn redis_snapshot(&self) -> Vec<u8> {
        match &self.mode {
            Mode::Embedded(_) => panic!("there is no Redis in embedded mode"),
            Mode::ScaledOut(scaled) => scaled.redis.snapshot(),
            Mode::Shared(_) => panic!("{SHARED}"),
        }
    }

    /// Removes all data from Redis.
    pub fn flush_redis(&self) {
        match &self.mode {
            Mode::Embedded(_) => panic!("there is no Redis in embedded mode"),
            Mode::ScaledOut(scaled) => scaled.redis.flush_all(),
            Mode::Shared(_) => panic!("{SHARED}"),
        }
    }

    /// Kills Redis, and starts it again without data.
    pub fn replace_redis(&mut self) {
        match &mut self.mode {
            Mode::Embedded(_) => panic!("there is no Redis in embedded mode"),
            Mode::ScaledOut(scaled) => scaled.redis.restart(),
            Mode::Shared(_) => panic!("{SHARED}"),
        }
    }

    /// Returns the log of all processes so far.
    pub fn log(&mut self) -> String {
        self.assert_own();
        let processes = [self.api.as_mut(), self.worker.as_mut()];
        processes.into_iter().flatten().map(|process| process.log_so_far()).collect()
    }

    /// Ends all processes by SIGTERM, as a deploy does.
    pub fn shut_down(&mut self) {
        self.assert_own();
        for process in [self.api.take(), self.worker.take()].iter_mut().flatten() {
            process.signal("TERM");
            assert!(process.exit().success());
        }
    }

    fn assert_own(&self) {
        assert!(!matches!(self.mode, Mode::Shared(_)), "{SHARED}");
    }
}

/// Creates an agent with these servers and these other fields; returns its id.
pub async fn agent(client: &Client, servers: Value, more: Value) -> String {
    let mut definition = json!({"name": "tester", "mcp_servers": servers});
    definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    client.post("/v1/agents", definition).await.unwrap()["id"].as_str().unwrap().to_owned()
}

/// Starts a run of the agent and streams it.
pub async fn stream_of(client: &Client, agent_id: &str, input: &str) -> EventStream {
    let request = client.request(Method::POST, "/v1/runs").header("accept", "text/event-stream");
    EventStream::new(request.json(&json!({"agent_id": agent_id, "input": input})).send().await.unwrap())
}

/// Starts a run of the agent and returns all its frames.
pub async fn frames_of(client: &Client, agent_id: &str, input: &str) -> Vec<EventFrame> {
    stream_of(client, agent_id, input).await.rest().await
}

/// Returns the data of the frames of one kind.
pub fn of_kind<'a>(frames: &'a [EventFrame], kind: &str) -> Vec<&'a Value> {
    frames.iter().filter(|frame| frame.event == kind).map(|frame| &frame.data).collect()
}
