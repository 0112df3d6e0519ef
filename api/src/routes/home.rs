//! `/`: what this is, until the chat page comes.

use axum::response::Html;

/// A page without scripts.
pub async fn page() -> Html<&'static str> {
    Html(include_str!("home.html"))
}
