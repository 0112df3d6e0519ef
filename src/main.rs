//! Holdfast, the executable: one program, many roles.
//!
//! Plain `holdfast` is API and worker in one process; `api`, `worker` and `migrate` are for scaling out. `chat` is a client,
//! `healthcheck` checks a running process, and `doctor` checks the settings of one. A worker starts `guard` for itself,
//! and `extract-document` for each document.
//! This crate only composes: `cli` reads the settings, `roles` puts the parts together.

mod agents;
mod chat;
mod cli;
mod doctor;
mod healthcheck;
mod logging;
mod memory;
mod privacy;
mod roles;
mod secret_files;
mod shutdown;
mod start_deadline;

use std::process::ExitCode;

use cli::{Cli, CliRole, ServerSettings};
use holdfast_shared::telemetry;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Order matters: the environment already holds secrets.
    privacy::hide_memory();
    let cli = cli::read();
    match &cli.role {
        Some(CliRole::Guard) => {
            holdfast_worker::guard();
            ExitCode::SUCCESS
        }
        // Before the runtime, whose threads its limits would take.
        Some(CliRole::ExtractDocument { arguments }) => holdfast_extraction::extract_in_child(arguments),
        _ => run(cli),
    }
}

#[tokio::main]
async fn run(cli: Cli) -> ExitCode {
    let result = match cli.role {
        Some(CliRole::Chat(args)) => return chat::run(*args).await,
        Some(CliRole::Healthcheck(args)) => healthcheck::run(args, &cli.settings).await,
        Some(CliRole::Doctor(args)) => doctor::run(args, &cli.settings).await,
        role => {
            logging::start(&cli.settings);
            run_server(role, cli.settings).await
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("holdfast: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the server in its role until it shuts down.
async fn run_server(role: Option<CliRole>, settings: ServerSettings) -> anyhow::Result<()> {
    let name = match role {
        None => "embedded",
        Some(CliRole::Api) => "api",
        Some(CliRole::Worker) => "worker",
        Some(CliRole::Migrate) => return roles::migrate(settings, shutdown::on_signals()).await,
        Some(
            CliRole::Chat(_)
            | CliRole::Healthcheck(_)
            | CliRole::Doctor(_)
            | CliRole::Guard
            | CliRole::ExtractDocument { .. },
        ) => unreachable!("`main` and `run` have executed these commands before"),
    };
    let exporter = telemetry::start(name, env!("CARGO_PKG_VERSION"))?;
    let shutdown = shutdown::on_signals();
    let result = match role {
        Some(CliRole::Api) => roles::api(settings, shutdown).await,
        Some(CliRole::Worker) => roles::worker(settings, shutdown).await,
        _ => roles::embedded(settings, shutdown).await,
    };
    if let Some(exporter) = exporter {
        exporter.finish();
    }
    result
}
