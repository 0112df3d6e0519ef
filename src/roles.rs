//! The roles of a process, each composed of the same parts.

use std::{error::Error, path::PathBuf, sync::Arc};

use anyhow::{Context, bail};
use holdfast_api::{Api, Authenticator, HttpListener, Metrics, ProcessRole, serve_metrics};
use holdfast_shared::{
    config::{ModelChoice, Provider, Stores},
    queue::{self, Queue},
    rate_limit::{self, RateLimit},
    run_log::{self, Push, RunLog},
    storage::{self, Storage},
};
use holdfast_worker::{Children, Worker, model::Models};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{agents, cli::Settings, patience::Patience};

/// The three places where API and workers meet.
struct MeetingPlaces {
    storage: Storage,
    run_log: RunLog,
    pushes: mpsc::UnboundedReceiver<Push>,
    queue: Queue,
}

/// API and worker in one process.
pub async fn embedded(settings: Settings, shutdown: CancellationToken) -> anyhow::Result<()> {
    let stores = settings.stores.stores()?;
    let models = Models::new(&settings.model)?;
    let children = children(&settings)?;
    let auth = Authenticator::new(&settings.users, &settings.api)?;
    let listener = HttpListener::bind(settings.api.addr)?;
    let metrics = Metrics::install(ProcessRole::Both, shutdown.clone());
    let Some(places) = connect(&stores, &settings, ProcessRole::Both, &shutdown).await? else { return Ok(()) };
    let rate_limit = share_limits(&stores).await?;
    say_what_it_uses(&stores, &places.storage, &settings)?;
    say_where_it_listens(&listener, &auth);
    let worker = make_worker(&places, &settings, models, children);
    // This process is the worker, too: its settings decide, whether they state a model or not.
    let model = settings.model.choice().ok();
    let api = make_api(places, auth, rate_limit, &settings, model, metrics);
    tokio::join!(api.run(listener, shutdown.clone()), worker.run(shutdown));
    Ok(())
}

/// The API alone.
pub async fn api(settings: Settings, shutdown: CancellationToken) -> anyhow::Result<()> {
    let stores = scaled_out(&settings, "api")?;
    let auth = Authenticator::new(&settings.users, &settings.api)?;
    let listener = HttpListener::bind(settings.api.addr)?;
    let metrics = Metrics::install(ProcessRole::Api, shutdown.clone());
    let Some(places) = connect(&stores, &settings, ProcessRole::Api, &shutdown).await? else { return Ok(()) };
    let rate_limit = share_limits(&stores).await?;
    say_where_it_listens(&listener, &auth);
    make_api(places, auth, rate_limit, &settings, None, metrics).run(listener, shutdown).await;
    Ok(())
}

/// A worker alone.
pub async fn worker(settings: Settings, shutdown: CancellationToken) -> anyhow::Result<()> {
    let stores = scaled_out(&settings, "worker")?;
    let models = Models::new(&settings.model)?;
    let children = children(&settings)?;
    let metrics = Metrics::install(ProcessRole::Worker, shutdown.clone());
    let Some(places) = connect(&stores, &settings, ProcessRole::Worker, &shutdown).await? else { return Ok(()) };
    say_what_it_uses(&stores, &places.storage, &settings)?;
    note_model(&places.storage, &settings.model.choice()?).await;
    if let Some(address) = settings.run.metrics_addr {
        // Whoever watches a drain sees it to its end.
        let stop = CancellationToken::new();
        let served = serve_metrics(address, metrics, places.storage.clone(), stop.clone());
        let served = async move {
            served.await.with_context(|| {
                format!("could not serve metrics on {address}: set HOLDFAST_METRICS_ADDR to a free address")
            })
        };
        let worker = make_worker(&places, &settings, models, children);
        let work = async {
            worker.run(shutdown).await;
            stop.cancel();
            Ok(())
        };
        return tokio::try_join!(served, work).map(drop);
    }
    make_worker(&places, &settings, models, children).run(shutdown).await;
    Ok(())
}

/// The schema, brought up to date.
pub async fn migrate(settings: Settings, shutdown: CancellationToken) -> anyhow::Result<()> {
    let stores = settings.stores.stores()?;
    let patience = Patience::of(settings.stores.start_patience);
    let migrated =
        patience.reach("the database", storage::Error::is_away, || storage::migrate(&stores, &settings.stores));
    // Each migration is a transaction, so that one that is cut off leaves nothing.
    match shutdown.run_until_cancelled(migrated).await {
        Some(migrated) => migrated?,
        None => bail!("interrupted before the schema was up to date; run `holdfast migrate` again"),
    }
    tracing::info!("the schema is up to date");
    Ok(())
}

/// The stores of a role that needs both.
pub fn scaled_out(settings: &Settings, role: &str) -> anyhow::Result<Stores> {
    match settings.stores.stores()? {
        stores @ Stores::ScaledOut { .. } => Ok(stores),
        _ => bail!(
            "`holdfast {role}` alone needs DATABASE_URL and REDIS_URL, where it meets the other processes; plain `holdfast` needs neither"
        ),
    }
}

/// Connects to the meeting places; `None` if the process is to end before they are reached.
async fn connect(
    stores: &Stores,
    settings: &Settings,
    role: ProcessRole,
    shutdown: &CancellationToken,
) -> anyhow::Result<Option<MeetingPlaces>> {
    shutdown.run_until_cancelled(reach(stores, settings, role)).await.transpose()
}

async fn reach(stores: &Stores, settings: &Settings, role: ProcessRole) -> anyhow::Result<MeetingPlaces> {
    let config = &settings.stores;
    let patience = Patience::of(config.start_patience);
    let unreached = "could not use the Redis that REDIS_URL names";
    let database = || async move {
        match role {
            ProcessRole::Worker => storage::connect_worker(stores, config).await,
            ProcessRole::Api | ProcessRole::Both => storage::connect(stores, config).await,
        }
    };
    let storage = patience.reach("the database", storage::Error::is_away, database).await?;
    if let Some(path) = &settings.tools.agents_file {
        agents::load(path, &storage, &settings.tools.agent_secrets).await?;
    }
    let log = || run_log::connect(stores, config);
    let (run_log, pushes) = patience.reach("Redis", run_log::Error::is_away, log).await.context(unreached)?;
    let queue = || queue::connect(stores);
    let queue = patience.reach("Redis", queue::Error::is_away, queue).await.context(unreached)?;
    Ok(MeetingPlaces { storage, run_log, pushes, queue })
}

/// Where APIs meet one another.
async fn share_limits(stores: &Stores) -> anyhow::Result<RateLimit> {
    rate_limit::connect(stores).await.context("could not reach the Redis that REDIS_URL names")
}

fn make_api(
    places: MeetingPlaces,
    auth: Authenticator,
    rate_limit: RateLimit,
    settings: &Settings,
    model: Option<ModelChoice>,
    metrics: Metrics,
) -> Api {
    let MeetingPlaces { storage, run_log, pushes, queue } = places;
    let quotas = settings.quotas.quotas(auth.is_development());
    Api {
        storage,
        run_log,
        queue,
        pushes,
        rate_limit,
        auth,
        run_rate: settings.users.anonymous_run_rate(),
        write_rate: settings.users.write_rate(),
        quotas,
        holder_limits: settings.users.holder_limits(),
        forgotten_after: settings.quotas.forgotten_after(),
        config: settings.api.clone(),
        tools: settings.tools.clone(),
        model,
        metrics,
    }
}

/// How a worker starts the MCP servers that are its children.
pub fn children(settings: &Settings) -> anyhow::Result<Arc<Children>> {
    Ok(Arc::new(Children::new(&settings.tools, Some(own_program()?))?))
}

/// This executable, also after a newer one has taken its place on the disk.
fn own_program() -> anyhow::Result<PathBuf> {
    match cfg!(target_os = "linux") {
        true => Ok("/proc/self/exe".into()),
        false => std::env::current_exe().context("could not find the file of this program"),
    }
}

fn make_worker(places: &MeetingPlaces, settings: &Settings, models: Models, children: Arc<Children>) -> Worker {
    Worker {
        storage: places.storage.clone(),
        run_log: places.run_log.clone(),
        queue: places.queue.clone(),
        models,
        config: settings.run.clone(),
        tools: settings.tools.clone(),
        children,
        archive_retention: settings.stores.archive_retention,
        forgotten_after: settings.quotas.forgotten_after(),
    }
}

fn say_what_it_uses(stores: &Stores, storage: &Storage, settings: &Settings) -> anyhow::Result<()> {
    match (storage.caution(), stores) {
        (Some(caution), _) => tracing::warn!(
            error = &caution.cause as &dyn Error,
            "THE DATABASE CANNOT BE USED; as CHAT_MEMORY_FALLBACK says, everything is kept in memory and lost when this process ends"
        ),
        (None, Stores::Embedded { data_dir }) => {
            tracing::info!("database: SQLite, {}", data_dir.join("holdfast.db").display())
        }
        (None, Stores::EmbeddedInMemory) => {
            tracing::warn!("database: SQLite in memory; everything is lost when this process ends")
        }
        (None, Stores::ScaledOut { .. }) => tracing::info!("database: PostgreSQL, as DATABASE_URL says"),
    }
    let choice = settings.model.choice()?;
    match choice.provider {
        Provider::Scripted => tracing::warn!(
            "model: scripted, which only plays a model; set CHAT_MODEL_PROVIDER and its key to talk to a real one"
        ),
        provider => tracing::info!("model: {provider}, {}", choice.name),
    }
    Ok(())
}

/// Notes the model for APIs, which only show it: a worker without this note works as well.
async fn note_model(storage: &Storage, choice: &ModelChoice) {
    if let Err(error) = storage.note_model(&choice.provider.to_string(), &choice.name).await {
        tracing::warn!(error = &error as &dyn Error, "failed to note the model; GET /v1/server may show an older one");
    }
}

fn say_where_it_listens(listener: &HttpListener, auth: &Authenticator) {
    let address = listener.address();
    tracing::info!("Holdfast listens on http://{address}");
    if !auth.is_development() {
        tracing::info!("users: as their JWTs say{}", if auth.takes_anonymous() { ", or anonymous" } else { "" });
        return;
    }
    tracing::info!("users: development mode, nobody is checked; set HOLDFAST_JWT_KEY for real users");
    if !address.ip().is_loopback() {
        tracing::warn!(
            "{address} can be reached from other machines, and HOLDFAST_DEVELOPMENT=true has the API believe every caller that sends a loopback Host header; publish the port on this machine only"
        );
    }
}
