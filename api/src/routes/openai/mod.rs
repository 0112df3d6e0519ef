//! `/openai/v1`: the routes for the clients of OpenAI, with the Responses API and chat completions.
//!
//! `request` and `completion_request` read the bodies into `turns`, which say what a request asks for. `posting` makes a message of
//! it, and `respond` the response of a run. The other files have the routes of a noun each.

pub mod catalog;
mod completion_request;
pub mod completions;
pub mod conversations;
mod posting;
mod request;
mod respond;
pub mod responses;
mod turns;
