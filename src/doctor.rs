//! `holdfast doctor`: checks whether a process could start with these settings. It reads all of them, connects to both
//! stores, and changes nothing. So an operator can run it beside the processes that a deploy will replace.

use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use holdfast_api::Authenticator;
use holdfast_shared::{
    agent::Profiles,
    config::Stores,
    run_log,
    storage::{self, SchemaState},
};
use holdfast_worker::{
    Children,
    model::{Embedder, Models, TrialFailure},
};

use crate::{agents, cli::ServerSettings, memory, roles};

/// Longest wait for the model.
const MODEL_PATIENCE: Duration = Duration::from_secs(10);

/// Arguments of `holdfast doctor`.
#[derive(Debug, Clone, Args)]
pub struct DoctorArgs {
    /// Role whose settings to check.
    #[arg(value_enum, default_value = "both")]
    role: ExaminedRole,
    /// Memory of the process, in bytes; by default its container's, or else the machine's.
    #[arg(long)]
    memory_bytes: Option<u64>,
    /// Accept an older schema, because `holdfast migrate` comes next.
    #[arg(long)]
    before_migrate: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExaminedRole {
    Api,
    Worker,
    /// API and worker in one process, as plain `holdfast` is.
    Both,
}

/// Checks all parts and prints a line for each. Fails if at least one part is wrong.
pub async fn run(args: DoctorArgs, settings: &ServerSettings) -> anyhow::Result<()> {
    let mut faults = 0;
    let mut report = |part: &str, finding: anyhow::Result<String>| match finding {
        Ok(finding) => println!("ok     {part}: {finding}"),
        Err(error) => {
            faults += 1;
            println!("wrong  {part}: {error:#}");
        }
    };
    if args.role != ExaminedRole::Worker {
        report("users", users(settings));
    }
    if args.role != ExaminedRole::Api {
        match model(settings).await {
            Ok(ModelTrial::Answers(finding)) => report("model", Ok(finding)),
            // A process can start meanwhile, so this stops no deploy.
            Ok(ModelTrial::IsAway(problem)) => println!("warn   model: {problem}"),
            Err(error) => report("model", Err(error)),
        }
        report("MCP servers", roles::children(settings).map(|children| servers(&children)));
    }
    if let Some(path) = &settings.tools.agents_file {
        let agents = agents::read(path, &settings.tools.agent_secrets);
        report("agents", agents.map(|found| format!("{} in {}", found.agents.len(), path.display())));
    }
    match memory(&args, settings) {
        Some(Ok(finding)) => report("memory", Ok(finding)),
        // The process can start, so this is no fault.
        Some(Err(problem)) => println!("warn   memory: {problem}"),
        None => {}
    }
    match stores(args.role, settings) {
        Ok(stores) => {
            report("database", database(&stores, settings, args.before_migrate).await);
            if matches!(stores, Stores::ScaledOut { .. }) {
                report("Redis", redis(&stores, settings).await);
            }
        }
        Err(error) => report("stores", Err(error)),
    }
    match faults {
        0 => Ok(()),
        1 => bail!("one part is wrong"),
        faults => bail!("{faults} parts are wrong"),
    }
}

fn users(settings: &ServerSettings) -> anyhow::Result<String> {
    let auth = Authenticator::new(&settings.users, &settings.api)?;
    Ok(if auth.is_development() { "development mode, every caller is believed" } else { "as their JWTs say" }
        .to_owned())
}

/// The outcome of a request to the model.
enum ModelTrial {
    Answers(String),
    /// It has no time for now, which no setting changes.
    IsAway(String),
}

async fn model(settings: &ServerSettings) -> anyhow::Result<ModelTrial> {
    let choice = settings.model.choice()?;
    let models = Models::new(&settings.model, &settings.files.model_files)?;
    Embedder::new(&settings.embedding, &settings.model)?;
    let mut failures = models.try_out(None, &Profiles::default(), MODEL_PATIENCE).await;
    match failures.pop() {
        None => Ok(ModelTrial::Answers(format!("{}, {}", choice.provider, choice.name))),
        Some(TrialFailure::Answer(error)) if error.is_of_provider() => Ok(ModelTrial::IsAway(error.to_string())),
        Some(error) => Err(error.into()),
    }
}

fn servers(children: &Children) -> String {
    format!("commands run as {}", children.user_name().unwrap_or("this user"))
}

/// Returns whether the budgets of the role fit the memory of the process; `None` where the system does not say it.
fn memory(args: &DoctorArgs, settings: &ServerSettings) -> Option<Result<String, String>> {
    let mut budgets = Vec::new();
    if args.role != ExaminedRole::Worker {
        budgets.extend(memory::of_api(settings));
    }
    if args.role != ExaminedRole::Api {
        budgets.extend(memory::of_worker(settings));
    }
    Some(memory::fit(budgets, args.memory_bytes.or_else(memory::limit)?))
}

fn stores(role: ExaminedRole, settings: &ServerSettings) -> anyhow::Result<Stores> {
    match role {
        ExaminedRole::Api => roles::scaled_out(settings, "api"),
        ExaminedRole::Worker => roles::scaled_out(settings, "worker"),
        ExaminedRole::Both => Ok(settings.stores.stores()?),
    }
}

async fn database(stores: &Stores, settings: &ServerSettings, before_migrate: bool) -> anyhow::Result<String> {
    let finding = match storage::inspect(stores, &settings.stores).await? {
        SchemaState::UpToDate => "reached, and its schema is up to date",
        SchemaState::Older if before_migrate => "reached; `holdfast migrate` will bring its schema up to date",
        SchemaState::Older => return Err(storage::Error::OldSchema.into()),
        SchemaState::Missing => "the first start makes it",
    };
    Ok(finding.to_owned())
}

async fn redis(stores: &Stores, settings: &ServerSettings) -> anyhow::Result<String> {
    let check = async {
        let (run_log, _pushes) = run_log::connect(stores, &settings.stores).await?;
        run_log.ready().await
    };
    check.await.context("could not use the Redis that REDIS_URL names")?;
    Ok("reached, and it takes writes".to_owned())
}
