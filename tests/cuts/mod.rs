//! Clients of each wire are cut off after each frame of a run while another part breaks. They come back in the way of their
//! protocol, and show in the end what a client without faults shows, with nothing twice.

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

/// Frames of a run before and after the answer to its question.
#[derive(Debug, Clone, Copy, Default)]
struct CutPoints {
    before: usize,
    after: usize,
}

/// Shows a run to a client, which is cut off once after so many frames of each part; 0 cuts nothing off. Returns the frames'
/// numbers and what is shown.
async fn show<C: WireClient>(deployment: &mut Deployment, cuts: CutPoints, fault: Fault) -> (CutPoints, Value) {
    let mut api = deployment.client();
    let mut client = C::new(format!("{fault:?}-{}-{}", cuts.before, cuts.after));
    let mut stream = client.ask(&api).await;
    let (mut counts, mut last, mut is_answered, mut was_cut) = (CutPoints::default(), String::new(), false, false);
    loop {
        if client.progress() == ShownProgress::Asked {
            stream = client.approve(&api).await;
            is_answered = true;
        }
        let next = match &mut stream {
            Some(stream) => stream.next().await,
            None => Ok(None),
        };
        let Ok(next) = next else {
            assert!(was_cut, "the stream was broken off after {last}");
            stream = client.come_back(&api).await;
            continue;
        };
        match (next, client.progress()) {
            (Some(frame), _) if frame.data.is_empty() => {}
            (Some(frame), _) => {
                client.take(&frame);
                last = frame.raw;
                let (count, cut) =
                    if is_answered { (&mut counts.after, cuts.after) } else { (&mut counts.before, cuts.before) };
                *count += 1;
                if *count == cut {
                    was_cut = true;
                    drop(stream);
                    fault.strike(deployment);
                    api = deployment.client();
                    stream = client.come_back(&api).await;
                }
            }
            (None, ShownProgress::Asked) => {}
            (None, ShownProgress::Ended) => return (counts, client.shown()),
            (None, ShownProgress::Streaming) => panic!("the stream ended in mid-run after {last}"),
        }
    }
}

/// Cuts clients off after those frames that have this fault. A client loses one connection before the answer to the run's
/// question and one after it, because the run then continues as it would without the first cut.
async fn expect_the_whole_run<C: WireClient>(deployment: Deployment, faults: &[Fault], fault: Fault) {
    let mut deployment =
        deployment.with("HOLDFAST_MAX_CRASHES", 100).with("HOLDFAST_LEASE_MS", 600).with("HOLDFAST_SWEEP_MS", 200);
    let api = deployment.client();
    agent(&api, json!([]), json!({"name": "helper", "description": "Helps."})).await;
    agent(&api, json!([]), json!({"name": "lead", "subagents": [{"agent": "helper"}]})).await;
    let (frames, whole) = show::<C>(&mut deployment, CutPoints::default(), Fault::Nothing).await;
    let own = faults.iter().position(|other| *other == fault).expect("it is one of these");
    let mut before = (1..=frames.before).filter(|cut| cut % faults.len() == own);
    let mut after = (1..=frames.after).filter(|cut| (frames.before + cut) % faults.len() == own);
    loop {
        let cuts = CutPoints { before: before.next().unwrap_or(0), after: after.next().unwrap_or(0) };
        if (cuts.before, cuts.after) == (0, 0) {
            return;
        }
        let (_, shown) = show::<C>(&mut deployment, cuts, fault).await;
        assert_eq!(shown, whole, "after the frames {cuts:?} of {frames:?}");
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
