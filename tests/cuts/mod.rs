//! A client of each wire is cut off after each frame of a run while another part breaks. It comes back in the way of its
//! protocol, and shows in the end what a client without faults shows, with nothing twice.

mod a2a;
mod ag_ui;
mod langgraph;
mod openai;

use serde_json::{Value, json};

use crate::support::{BlockStream, Client, Deployment, StreamBlock, agent};

/// A run with reasoning, a call, a subagent, an approved call, a text and a failure.
const TALK: &str = r#"[think] [call=scripted__echo {"text":"hi"}] [delegate=helper [delay=20] [tokens=3] count] [approval] [delay=20] [tokens=9] [fail] hello"#;

/// The state of the run, by the frames that a client has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShownProgress {
    Streaming,
    Asked,
    Ended,
}

/// A client of one wire, which keeps what those of its protocol show. A stream is `None` if there are no frames to come.
trait WireClient {
    /// Returns a client that knows nothing yet, with a name for its thread and its requests.
    fn new(name: String) -> Self;

    /// Asks the agent `lead`.
    async fn ask(&mut self, api: &Client) -> Option<BlockStream>;

    /// Approves the call that the run waits for.
    async fn approve(&mut self, api: &Client) -> Option<BlockStream>;

    /// Continues after a lost connection.
    async fn come_back(&mut self, api: &Client) -> Option<BlockStream>;

    /// Takes a frame. Panics if it does not fit to those before.
    fn take(&mut self, frame: &StreamBlock);

    fn progress(&self) -> ShownProgress;

    /// Returns what it shows, without ids.
    fn shown(&self) -> Value;
}

/// The part that breaks while a client is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Nothing,
    Worker,
    Api,
    Redis,
}

impl Fault {
    fn strike(self, deployment: &mut Deployment) {
        match self {
            Self::Nothing => {}
            Self::Worker => deployment.kill_worker(),
            Self::Api => deployment.kill_api(),
            Self::Redis => deployment.replace_redis(),
        }
    }
}

/// The faults in turn: each frame of a run has one.
const SCALED_OUT: [Fault; 4] = [Fault::Nothing, Fault::Worker, Fault::Api, Fault::Redis];
/// A worker is a part of the only process.
const EMBEDDED: [Fault; 2] = [Fault::Worker, Fault::Nothing];

/// Shows a run to a client, which is cut off once after so many frames. Returns the frames' number and what is shown.
async fn show<C: WireClient>(deployment: &mut Deployment, cut: usize, fault: Fault) -> (usize, Value) {
    let mut api = deployment.client();
    let mut client = C::new(format!("{fault:?}-{cut}"));
    let mut stream = client.ask(&api).await;
    let (mut frames, mut last) = (0, String::new());
    loop {
        if client.progress() == ShownProgress::Asked {
            stream = client.approve(&api).await;
        }
        let next = match &mut stream {
            Some(stream) => stream.next().await,
            None => Ok(None),
        };
        let Ok(next) = next else {
            assert!((1..=frames).contains(&cut), "the stream was broken off after {last}");
            stream = client.come_back(&api).await;
            continue;
        };
        match (next, client.progress()) {
            (Some(frame), _) if frame.data.is_empty() => {}
            (Some(frame), _) => {
                client.take(&frame);
                frames += 1;
                last = frame.raw;
                if frames == cut {
                    drop(stream);
                    fault.strike(deployment);
                    api = deployment.client();
                    stream = client.come_back(&api).await;
                }
            }
            (None, ShownProgress::Asked) => {}
            (None, ShownProgress::Ended) => return (frames, client.shown()),
            (None, ShownProgress::Streaming) => panic!("the stream ended in mid-run after {last}"),
        }
    }
}

/// Cuts clients off after those frames that have this fault.
async fn expect_the_whole_run<C: WireClient>(deployment: Deployment, faults: &[Fault], fault: Fault) {
    let mut deployment =
        deployment.with("HOLDFAST_MAX_CRASHES", 100).with("HOLDFAST_LEASE_MS", 600).with("HOLDFAST_SWEEP_MS", 100);
    let api = deployment.client();
    agent(&api, json!([]), json!({"name": "helper", "description": "Helps."})).await;
    agent(&api, json!([]), json!({"name": "lead", "subagents": [{"agent": "helper"}]})).await;
    let (frames, whole) = show::<C>(&mut deployment, 0, Fault::Nothing).await;
    let own = faults.iter().position(|other| *other == fault).expect("it is one of these");
    for cut in (1..=frames).filter(|cut| cut % faults.len() == own) {
        let (_, shown) = show::<C>(&mut deployment, cut, fault).await;
        assert_eq!(shown, whole, "after frame {cut} of {frames}");
    }
}

/// Makes the tests of a wire: one for each fault, which share its frames.
macro_rules! cuts_of {
    ($($wire:ident: $client:ty),+ $(,)?) => {
        $(mod $wire {
            use super::*;

            #[tokio::test]
            async fn a_client_that_is_cut_off_shows_the_whole_run() {
                expect_the_whole_run::<$client>(Deployment::scaled_out(), &SCALED_OUT, Fault::Nothing).await;
            }

            #[tokio::test]
            async fn a_client_whose_worker_dies_shows_the_whole_run() {
                expect_the_whole_run::<$client>(Deployment::scaled_out(), &SCALED_OUT, Fault::Worker).await;
            }

            #[tokio::test]
            async fn a_client_whose_api_dies_shows_the_whole_run() {
                expect_the_whole_run::<$client>(Deployment::scaled_out(), &SCALED_OUT, Fault::Api).await;
            }

            #[tokio::test]
            async fn a_client_whose_redis_is_lost_shows_the_whole_run() {
                expect_the_whole_run::<$client>(Deployment::scaled_out(), &SCALED_OUT, Fault::Redis).await;
            }

            #[tokio::test]
            async fn a_client_whose_only_process_dies_shows_the_whole_run() {
                expect_the_whole_run::<$client>(Deployment::embedded(), &EMBEDDED, Fault::Worker).await;
            }
        })+
    };
}

cuts_of!(on_openai: openai::ResponsesClient, on_ag_ui: ag_ui::AgUiClient, on_langgraph: langgraph::LangGraphClient, on_a2a: a2a::A2aClient);
