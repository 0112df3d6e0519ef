//! The same story in both modes: one process with a file, or an API and a worker around servers.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Client, Embedded, EventFrame, EventStream, Holdfast, ScaledOut};

/// Makes a test per mode of an async function that takes a `Deployment`.
#[macro_export]
macro_rules! in_both_modes {
    ($($fact:ident),+ $(,)?) => {
        mod embedded {
            $(#[tokio::test]
            async fn $fact() {
                super::$fact($crate::support::Deployment::embedded()).await;
            })+
        }

        mod scaled_out {
            $(#[tokio::test]
            async fn $fact() {
                super::$fact($crate::support::Deployment::scaled_out()).await;
            })+
        }
    };
}

/// Something to talk to, whose worker can die.
pub struct Deployment {
    mode: Mode,
    api: Option<Holdfast>,
    worker: Option<Holdfast>,
}

enum Mode {
    Embedded(Embedded),
    ScaledOut(ScaledOut),
}

impl Deployment {
    pub fn embedded() -> Self {
        let embedded = Embedded::new().with("HOLDFAST_SWEEP_MS", 250);
        Self { mode: Mode::Embedded(embedded), api: None, worker: None }
    }

    pub fn scaled_out() -> Self {
        Self { mode: Mode::ScaledOut(ScaledOut::new()), api: None, worker: None }
    }

    /// On a data folder that a test has prepared.
    pub fn on(embedded: Embedded) -> Self {
        Self { mode: Mode::Embedded(embedded), api: None, worker: None }
    }

    /// Before the first start.
    pub fn with(mut self, variable: &'static str, value: impl ToString) -> Self {
        self.mode = match self.mode {
            Mode::Embedded(embedded) => Mode::Embedded(embedded.with(variable, value)),
            Mode::ScaledOut(scaled) => Mode::ScaledOut(scaled.with(variable, value)),
        };
        self
    }

    /// Starts what is not running, and answers a client of it.
    pub fn client(&mut self) -> Client {
        match &self.mode {
            Mode::Embedded(embedded) => self.api.get_or_insert_with(|| embedded.start()).client(),
            Mode::ScaledOut(scaled) => {
                self.worker.get_or_insert_with(|| scaled.worker());
                self.api.get_or_insert_with(|| scaled.api()).client()
            }
        }
    }

    /// Ends whoever executes runs, without a word. In embedded mode that is everything.
    pub fn kill_worker(&mut self) {
        match &self.mode {
            Mode::Embedded(_) => self.api.take().expect("it was started").kill(),
            Mode::ScaledOut(_) => self.worker.take().expect("it was started").kill(),
        }
    }

    /// Whether whoever serves clients also executes runs.
    pub fn is_embedded(&self) -> bool {
        matches!(self.mode, Mode::Embedded(_))
    }

    /// Ends whoever serves clients, without a word. In embedded mode that is everything.
    pub fn kill_api(&mut self) {
        self.api.take().expect("it was started").kill();
    }

    /// Makes the Redis around which everything runs forget all.
    pub fn flush_redis(&self) {
        match &self.mode {
            Mode::Embedded(_) => panic!("there is no Redis in embedded mode"),
            Mode::ScaledOut(scaled) => scaled.redis.flush_all(),
        }
    }

    /// All that the processes have logged so far.
    pub fn log(&mut self) -> String {
        let processes = [self.api.as_mut(), self.worker.as_mut()];
        processes.into_iter().flatten().map(|process| process.log_so_far()).collect()
    }

    /// Ends all processes as an operator would, for a deploy.
    pub fn shut_down(&mut self) {
        for process in [self.api.take(), self.worker.take()].iter_mut().flatten() {
            process.signal("TERM");
            assert!(process.exit().success());
        }
    }
}

/// An agent with these servers and whatever else its definition has.
pub async fn agent(client: &Client, servers: Value, more: Value) -> String {
    let mut definition = json!({"name": "tester", "mcp_servers": servers});
    definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    client.post("/v1/agents", definition).await.unwrap()["id"].as_str().unwrap().to_owned()
}

/// A stream of a run of this agent.
pub async fn stream_of(client: &Client, agent_id: &str, input: &str) -> EventStream {
    let request = client.request(Method::POST, "/v1/runs").header("accept", "text/event-stream");
    EventStream::new(request.json(&json!({"agent_id": agent_id, "input": input})).send().await.unwrap())
}

/// The whole of it.
pub async fn frames_of(client: &Client, agent_id: &str, input: &str) -> Vec<EventFrame> {
    stream_of(client, agent_id, input).await.rest().await
}

/// The data of the frames of a type.
pub fn of_kind<'a>(frames: &'a [EventFrame], kind: &str) -> Vec<&'a Value> {
    frames.iter().filter(|frame| frame.event == kind).map(|frame| &frame.data).collect()
}
