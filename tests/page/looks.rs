//! How the page looks: for axe, on a phone, and with hostile text of a model.

use serde_json::json;

use super::Visit;
use crate::support::{Deployment, upstream::TestUpstream};

#[tokio::test]
async fn it_is_accessible_in_light_colours() {
    Visit::with(Deployment::embedded(), "is_accessible", json!({"colours": "light"})).await.ends().await;
}

#[tokio::test]
async fn it_is_accessible_in_dark_colours() {
    Visit::with(Deployment::embedded(), "is_accessible", json!({"colours": "dark"})).await.ends().await;
}

#[tokio::test]
async fn it_fits_on_a_phone() {
    Visit::begin(Deployment::embedded(), "fits_on_a_phone").await.ends().await;
}

#[tokio::test]
async fn a_wide_table_scrolls_in_its_own_box_on_a_phone() {
    let upstream = TestUpstream::start(&[include_str!("wide_table.md")]).await;
    let deployment = Deployment::embedded()
        .with("CHAT_MODEL_PROVIDER", "openai")
        .with("CHAT_MODEL_NAME", "tables")
        .with("OPENAI_BASE_URL", &upstream.base_url);
    Visit::begin(deployment, "scrolls_a_wide_table").await.ends().await;
}

#[tokio::test]
async fn the_dots_of_the_list_are_visible_in_forced_colours() {
    Visit::begin(Deployment::embedded(), "sees_the_dots_in_forced_colours").await.ends().await;
}

/// A hostile answer, such as an injected prompt makes a model write.
const HOSTILE: &str = include_str!("hostile.md");

#[tokio::test]
async fn hostile_text_is_only_read() {
    let upstream = TestUpstream::start(&[HOSTILE]).await;
    let deployment = Deployment::embedded()
        .with("CHAT_MODEL_PROVIDER", "openai")
        .with("CHAT_MODEL_NAME", "hostile")
        .with("OPENAI_BASE_URL", &upstream.base_url);
    // The reader may have been told to say it, too: it is the conversation's title then.
    Visit::with(deployment, "reads_hostile_text", json!({"text": HOSTILE})).await.ends().await;
}

/// Only on demand, because they are in the repository: `HOLDFAST_PICTURES=docs/images cargo test --test e2e pictures`.
#[tokio::test]
async fn pictures_for_the_documentation() {
    let Some(folder) = std::env::var_os("HOLDFAST_PICTURES") else { return };
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    Visit::with(Deployment::embedded(), "takes_pictures", json!({"folder": folder})).await.ends().await;
}

/// Only on demand, because figures of a busy machine and of a debug build say nothing:
/// `HOLDFAST_PROGRAM=target/release/holdfast HOLDFAST_MEASURE=1 cargo test --test e2e figures -- --nocapture`.
#[tokio::test]
async fn figures_of_this_machine() {
    if std::env::var_os("HOLDFAST_MEASURE").is_none() {
        return;
    }
    let mut visit = Visit::begin(Deployment::embedded(), "measure").await;
    for place in ["loaded", "streaming", "long"] {
        visit.reaches(place).await;
    }
    let (end, ..) = visit.ends().await;
    println!("{end:#}");
}
