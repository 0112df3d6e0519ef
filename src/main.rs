//! Holdfast, the executable: one program, many roles.
//!
//! `holdfast` alone is API and worker in one process; `api`, `worker` and `migrate` are for scaling out; `chat` is a client,
//! `healthcheck` asks whether the others are well, `doctor` whether they could start. `guard` is what a worker starts for itself.
//! Only composition happens here: `cli` reads the settings, `roles` puts the parts together.

mod agents;
mod chat;
mod cli;
mod doctor;
mod healthcheck;
mod logging;
mod patience;
mod privacy;
mod roles;
mod secret_files;
mod shutdown;

use std::process::ExitCode;

use cli::{Cli, Role, Settings};
use holdfast_shared::telemetry;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Order matters: the environment holds secrets from the first moment.
    privacy::keep_to_myself();
    let cli = cli::read();
    if let Some(Role::Guard) = cli.role {
        holdfast_worker::guard();
        return ExitCode::SUCCESS;
    }
    run(cli)
}

#[tokio::main]
async fn run(cli: Cli) -> ExitCode {
    let result = match cli.role {
        Some(Role::Chat(args)) => return chat::run(args).await,
        Some(Role::Healthcheck(args)) => healthcheck::run(args, &cli.settings).await,
        Some(Role::Doctor(args)) => doctor::run(args, &cli.settings).await,
        role => {
            logging::start(&cli.settings);
            play(role, cli.settings).await
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

/// Is what the process was started as, to its end.
async fn play(role: Option<Role>, settings: Settings) -> anyhow::Result<()> {
    let name = match role {
        None => "embedded",
        Some(Role::Api) => "api",
        Some(Role::Worker) => "worker",
        Some(Role::Migrate) => return roles::migrate(settings, shutdown::on_signals()).await,
        Some(Role::Chat(_) | Role::Healthcheck(_) | Role::Doctor(_) | Role::Guard) => {
            unreachable!("they are no roles of the server")
        }
    };
    let exporting = telemetry::start(name, env!("CARGO_PKG_VERSION"))?;
    let shutdown = shutdown::on_signals();
    let played = match role {
        Some(Role::Api) => roles::api(settings, shutdown).await,
        Some(Role::Worker) => roles::worker(settings, shutdown).await,
        _ => roles::embedded(settings, shutdown).await,
    };
    if let Some(exporting) = exporting {
        exporting.finish();
    }
    played
}
