//! Holdfast, the executable: one program, many roles.
//!
//! `holdfast` alone is API and worker in one process; `api`, `worker` and `migrate` are for scaling out; `chat` is a client,
//! `healthcheck` asks whether the others are well.
//! Only composition happens here: `cli` reads the settings, `roles` puts the parts together.

mod agents;
mod chat;
mod cli;
mod healthcheck;
mod logging;
mod patience;
mod roles;
mod shutdown;

use std::process::ExitCode;

use cli::Role;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = cli::read();
    let result = match cli.role {
        Some(Role::Chat(args)) => return chat::run(args).await,
        Some(Role::Healthcheck(args)) => healthcheck::run(args, &cli.settings).await,
        role => {
            logging::start(&cli.settings);
            let shutdown = shutdown::on_signals();
            match role {
                None => roles::embedded(cli.settings, shutdown).await,
                Some(Role::Api) => roles::api(cli.settings, shutdown).await,
                Some(Role::Worker) => roles::worker(cli.settings, shutdown).await,
                Some(Role::Migrate) => roles::migrate(cli.settings, shutdown).await,
                Some(Role::Chat(_) | Role::Healthcheck(_)) => unreachable!("they were taken above"),
            }
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
