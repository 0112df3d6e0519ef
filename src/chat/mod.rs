//! `holdfast chat`: a terminal client.

use std::process::ExitCode;

/// Chat.
#[derive(Debug, Clone, clap::Args)]
pub struct ChatArgs {}

pub async fn run(_: ChatArgs) -> ExitCode {
    ExitCode::SUCCESS
}
