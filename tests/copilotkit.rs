//! CopilotKit: its runtime before the server, and its page in a real browser.

use serde_json::{Value, json};

use crate::{
    files::asking,
    support::{ClientProgram, Deployment, SharedProgram, upstream::TestUpstream},
};

/// The program with the page and the browser of all tests.
static BROWSER: SharedProgram = SharedProgram::new("copilotkit");

/// The words of an answer: two for each reload, and two before the first.
const WORDS: &[&str] = &[
    "one",
    " two",
    " three",
    " four",
    " five",
    " six",
    " seven",
    " eight",
    " nine",
    " ten",
    " eleven",
    " twelve",
    " thirteen",
    " fourteen",
    " fifteen",
    " sixteen",
    " seventeen",
    " eighteen",
    " nineteen",
    " twenty",
    " alpha",
    " bravo",
    " charlie",
    " delta",
    " echo",
    " foxtrot",
    " golf",
    " hotel",
    " india",
    " juliett",
    " kilo",
    " lima",
    " mike",
    " november",
    " oscar",
    " papa",
    " quebec",
    " romeo",
    " sierra",
    " tango",
    " uniform",
    " victor",
];

const RELOADS: usize = 20;

/// Starts a scenario of `tests/clients/copilotkit`.
async fn scenario(deployment: &mut Deployment, name: &str) -> ClientProgram {
    let words: Vec<&str> = WORDS.iter().map(|word| word.trim()).collect();
    BROWSER.connect(json!({"base": deployment.client().base(), "scenario": name, "words": words})).await
}

#[tokio::test]
async fn a_page_reloaded_twenty_times_in_mid_answer_shows_the_same_text() {
    let upstream = TestUpstream::with_permits(WORDS).await;
    let mut deployment = asking(Deployment::embedded(), &upstream);
    let mut program = scenario(&mut deployment, "reloads").await;
    for _ in 0..=RELOADS {
        program.up_to_nth(1, |got| got["at"] == "wants words").await;
        upstream.permit_words(2);
    }
    let (_, shown) = program.rest().await;
    let expected = json!([{"role": "user", "text": "Count"}, {"role": "assistant", "text": WORDS.concat()}]);
    assert_eq!(shown, expected);
    assert_eq!(upstream.requests().len(), 1, "no reload asks the model again");
    let runs = deployment.client().get("/v1/runs").await.unwrap();
    assert_eq!(runs["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_page_approves_a_call_and_executes_its_own_tool() {
    let mut deployment = Deployment::embedded();
    let client = deployment.client();
    let (_, end) = scenario(&mut deployment, "answers").await.rest().await;
    assert_eq!(end["painted"], "teal");
    let texts: Vec<&Value> = end["shown"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(texts, ["user", "assistant", "assistant", "user", "assistant", "assistant"], "{end}");
    let runs = client.get("/v1/runs").await.unwrap();
    let statuses: Vec<&Value> = runs["items"].as_array().unwrap().iter().map(|run| &run["status"]).collect();
    assert_eq!(statuses, ["completed", "completed"]);
}

#[tokio::test]
async fn a_page_stops_an_answer() {
    let mut deployment = Deployment::embedded();
    let client = deployment.client();
    let (_, shown) = scenario(&mut deployment, "stops").await.rest().await;
    let runs = client.get("/v1/runs").await.unwrap();
    let run = client.wait_for_run(runs["items"][0]["id"].as_str().unwrap()).await;
    assert_eq!(run["status"], "cancelled", "{run}");
    // The page shows no space at the end.
    assert_eq!(shown[1]["text"], run["output_message"]["content"].as_str().unwrap().trim_end());
}
