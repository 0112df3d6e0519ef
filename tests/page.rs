//! The chat page in a real browser, against the real executable: what a person does in it, while whatever can break breaks.
//!
//! `tests/clients/page` asserts the page itself. These tests break the servers behind it, and assert the API's view at the end.

mod asked;
mod composer;
mod faults;
mod files;
mod knowledge;
mod looks;
mod memories;
mod messages;
mod plans;
mod previews;
mod projects;
mod races;
mod shell;
mod tabs;
mod workspace;

use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::support::{Client, ClientProgram, Deployment, Proxy, SharedProgram};

/// Visits at a time: more of them than cores only wait for each other, and for longer than a test may.
static VISITS: Semaphore = Semaphore::const_new(4);

/// The program with the browser of all visits.
static BROWSER: SharedProgram = SharedProgram::new("page");

/// A deployment, a network whose address stays the same, and a person with a browser.
struct Visit {
    deployment: Deployment,
    proxy: Proxy,
    program: ClientProgram,
    _permit: SemaphorePermit<'static>,
}

impl Visit {
    /// Begins one of the scenarios of `tests/clients/page`.
    async fn begin(deployment: Deployment, scenario: &str) -> Self {
        Self::with(deployment, scenario, json!({})).await
    }

    /// Runs a scenario with further parameters.
    async fn with(mut deployment: Deployment, scenario: &str, mut given: Value) -> Self {
        let permit = VISITS.acquire().await.expect("no test closes it");
        if deployment.is_embedded() {
            // A visit is long, and waits for no sweep.
            deployment = deployment.with("HOLDFAST_SWEEP_MS", 2_000);
        }
        let proxy = Proxy::before(deployment.client().base()).await;
        given["base"] = proxy.base.as_str().into();
        given["scenario"] = scenario.into();
        let program = BROWSER.connect(given).await;
        Self { deployment, proxy, program, _permit: permit }
    }

    /// Waits until the person is there; what it says of the place.
    async fn reaches(&mut self, place: &str) -> Value {
        let mut given = self.program.up_to_nth(1, |got| got["at"] == place).await;
        given.pop().expect("it has got there")
    }

    /// Starts whatever does not run, and leads the network to it.
    fn starts_again(&mut self) -> Client {
        let client = self.deployment.client();
        self.proxy.lead_to(client.base());
        client
    }

    /// Returns the result of the scenario, and its server.
    async fn ends(mut self) -> (Value, Client, Deployment) {
        let client = self.deployment.client();
        let (_, end) = self.program.rest().await;
        (end, client, self.deployment)
    }
}

/// A text without its markdown's line breaks, which are the page's own affair.
fn words(text: &Value) -> Vec<&str> {
    text.as_str().unwrap().split_whitespace().collect()
}

/// There is one run, and what the page shows as its only answer is what is stored; the run.
async fn shows_the_only_run(client: &Client, end: &Value) -> Value {
    let runs = client.get("/v1/runs").await.unwrap();
    let runs = runs["items"].as_array().unwrap();
    assert_eq!((runs.len(), end["shown"].as_array().unwrap().len()), (1, 1), "{end}");
    let run = client.wait_for_run(runs[0]["id"].as_str().unwrap()).await;
    assert_eq!(words(&end["shown"][0]), words(&run["output_message"]["content"]));
    run
}
