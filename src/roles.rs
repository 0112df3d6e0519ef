//! The roles of a process. Each role composes the parts of API, worker and stores that it needs.

use std::{error::Error, path::PathBuf, sync::Arc};

use anyhow::{Context, bail};
use holdfast_api::{AnonymousRates, Api, Authenticator, HttpListener, Metrics, ProcessRole, serve_metrics};
use holdfast_extraction::{ExtractionLimits, Extractor};
use holdfast_shared::{
    config::{KnowledgeConfig, ModelChoice, Provider, Stores},
    file_store::{self, FileStore},
    queue::{self, Queue},
    rate_limit::{self, RateLimit},
    run_log::{self, Push, RunLog},
    storage::{self, Pgvector, Storage},
};
use holdfast_worker::{
    Children, Worker,
    model::{Embedder, Models},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{agents, cli::ServerSettings, start_deadline::StartDeadline};

/// The connections to the stores where API and workers meet.
struct StoreConnections {
    storage: Storage,
    file_store: FileStore,
    run_log: RunLog,
    pushes: mpsc::UnboundedReceiver<Push>,
    queue: Queue,
}

/// Runs API and worker in one process.
pub async fn embedded(settings: ServerSettings, shutdown: CancellationToken) -> anyhow::Result<()> {
    let stores = settings.stores.stores()?;
    let models = Models::new(&settings.model, &settings.files.model_files)?;
    let children = children(&settings)?;
    let auth = Authenticator::new(&settings.users, &settings.api)?;
    let listener = HttpListener::bind(settings.api.addr)?;
    let metrics = Metrics::install(ProcessRole::Both, shutdown.clone());
    let Some(connections) = connect(&stores, &settings, ProcessRole::Both, &shutdown).await? else { return Ok(()) };
    let rate_limit = connect_rate_limit(&stores).await?;
    log_stores_and_model(&stores, &connections.storage, &settings)?;
    note_models(&connections.storage, &settings).await?;
    log_address(&listener, &auth);
    let worker = make_worker(&connections, rate_limit.clone(), &settings, (models, children), auth.is_development())?;
    // This process is also the worker, so its settings name the model, even by default.
    let model = settings.model.choice().ok();
    let api = make_api(connections, auth, rate_limit, &settings, model, metrics);
    tokio::join!(api.run(listener, shutdown.clone()), worker.run(shutdown));
    Ok(())
}

/// Runs an API alone. Fails without DATABASE_URL or REDIS_URL.
pub async fn api(settings: ServerSettings, shutdown: CancellationToken) -> anyhow::Result<()> {
    let stores = scaled_out(&settings, "api")?;
    let auth = Authenticator::new(&settings.users, &settings.api)?;
    let listener = HttpListener::bind(settings.api.addr)?;
    let metrics = Metrics::install(ProcessRole::Api, shutdown.clone());
    let Some(connections) = connect(&stores, &settings, ProcessRole::Api, &shutdown).await? else { return Ok(()) };
    let rate_limit = connect_rate_limit(&stores).await?;
    log_address(&listener, &auth);
    make_api(connections, auth, rate_limit, &settings, None, metrics).run(listener, shutdown).await;
    Ok(())
}

/// Runs a worker alone. Fails without DATABASE_URL or REDIS_URL.
pub async fn worker(settings: ServerSettings, shutdown: CancellationToken) -> anyhow::Result<()> {
    let stores = scaled_out(&settings, "worker")?;
    let models = Models::new(&settings.model, &settings.files.model_files)?;
    let children = children(&settings)?;
    let metrics = Metrics::install(ProcessRole::Worker, shutdown.clone());
    let Some(connections) = connect(&stores, &settings, ProcessRole::Worker, &shutdown).await? else { return Ok(()) };
    let rate_limit = connect_rate_limit(&stores).await?;
    log_stores_and_model(&stores, &connections.storage, &settings)?;
    note_models(&connections.storage, &settings).await?;
    // A worker does not know whether its APIs are in development mode.
    let worker = make_worker(&connections, rate_limit, &settings, (models, children), false)?;
    if let Some(address) = settings.run.metrics_addr {
        // The metrics stay available until a drain has ended.
        let stop = CancellationToken::new();
        let serving = serve_metrics(address, metrics, connections.storage.clone(), stop.clone());
        let serving = async move {
            serving.await.with_context(|| {
                format!("could not serve metrics on {address}: set HOLDFAST_METRICS_ADDR to a free address")
            })
        };
        let work = async {
            worker.run(shutdown).await;
            stop.cancel();
            Ok(())
        };
        return tokio::try_join!(serving, work).map(drop);
    }
    worker.run(shutdown).await;
    Ok(())
}

/// Brings the schema up to date. Fails if the database stays away, or if a signal interrupts it.
pub async fn migrate(settings: ServerSettings, shutdown: CancellationToken) -> anyhow::Result<()> {
    let stores = settings.stores.stores()?;
    let deadline = StartDeadline::of(settings.stores.start_patience);
    let migrated =
        deadline.reach("the database", storage::Error::is_away, || storage::migrate(&stores, &settings.stores));
    // Each migration is a transaction, so an interrupted one changes nothing.
    match shutdown.run_until_cancelled(migrated).await {
        Some(migrated) => migrated?,
        None => bail!("interrupted before the schema was up to date; run `holdfast migrate` again"),
    }
    tracing::info!("the schema is up to date");
    Ok(())
}

/// Returns the stores of a role that needs both. Fails if the settings do not name both.
pub fn scaled_out(settings: &ServerSettings, role: &str) -> anyhow::Result<Stores> {
    match settings.stores.stores()? {
        stores @ Stores::ScaledOut { .. } => Ok(stores),
        _ => bail!(
            "`holdfast {role}` alone needs DATABASE_URL and REDIS_URL to meet the other processes; plain `holdfast` needs neither"
        ),
    }
}

/// Connects to the stores. Returns `None` if the process receives a signal before that.
async fn connect(
    stores: &Stores,
    settings: &ServerSettings,
    role: ProcessRole,
    shutdown: &CancellationToken,
) -> anyhow::Result<Option<StoreConnections>> {
    shutdown.run_until_cancelled(connect_stores(stores, settings, role)).await.transpose()
}

async fn connect_stores(
    stores: &Stores,
    settings: &ServerSettings,
    role: ProcessRole,
) -> anyhow::Result<StoreConnections> {
    let config = &settings.stores;
    let deadline = StartDeadline::of(config.start_patience);
    let unusable = "could not use the Redis that REDIS_URL names";
    let database = || async move {
        match role {
            ProcessRole::Worker => storage::connect_worker(stores, config).await,
            ProcessRole::Api | ProcessRole::Both => storage::connect(stores, config).await,
        }
    };
    let storage = deadline.reach("the database", storage::Error::is_away, database).await?;
    if role != ProcessRole::Worker {
        storage.load_builtin_agents().await?;
    }
    if let Some(path) = &settings.tools.agents_file {
        agents::load(path, &storage, &settings.tools.agent_secrets).await?;
    }
    let log = || run_log::connect(stores, config);
    let (run_log, pushes) = deadline.reach("Redis", run_log::Error::is_away, log).await.context(unusable)?;
    let queue = || queue::connect(stores);
    let queue = deadline.reach("Redis", queue::Error::is_away, queue).await.context(unusable)?;
    let file_store = file_store::connect(stores, &settings.files, &storage)?;
    Ok(StoreConnections { storage, file_store, run_log, pushes, queue })
}

/// Connects to the rate limit that all processes share.
async fn connect_rate_limit(stores: &Stores) -> anyhow::Result<RateLimit> {
    rate_limit::connect(stores).await.context("could not reach the Redis that REDIS_URL names")
}

fn make_api(
    connections: StoreConnections,
    auth: Authenticator,
    rate_limit: RateLimit,
    settings: &ServerSettings,
    model: Option<ModelChoice>,
    metrics: Metrics,
) -> Api {
    let StoreConnections { storage, file_store, run_log, pushes, queue } = connections;
    let quotas = settings.quotas.quotas(auth.is_development());
    let file_quotas = settings.quotas.files(auth.is_development());
    let all_anonymous_bytes = settings.quotas.all_anonymous(auth.is_development());
    let knowledge_limits = settings.quotas.knowledge(settings.knowledge.owner_collections, auth.is_development());
    Api {
        storage,
        file_store,
        run_log,
        queue,
        pushes,
        rate_limit,
        auth,
        anonymous_rates: AnonymousRates {
            runs: settings.users.anonymous_run_rate(),
            writes: settings.users.write_rate(),
            reads: settings.users.read_rate(),
            kibibytes: settings.users.anonymous_byte_rate(),
        },
        all_anonymous_bytes,
        quotas,
        file_quotas,
        knowledge_limits,
        workspace_limits: settings.quotas.workspace(),
        memory_limits: settings.quotas.memories(),
        web_search: settings.web_search.clone(),
        holder_limits: settings.users.holder_limits(),
        forgotten_after: settings.quotas.forgotten_after(),
        config: settings.api.clone(),
        files: settings.files.clone(),
        tools: settings.tools.clone(),
        model,
        metrics,
    }
}

/// Returns the rules by which a worker starts stdio MCP servers. Fails if the settings name an unknown user.
pub fn children(settings: &ServerSettings) -> anyhow::Result<Arc<Children>> {
    Ok(Arc::new(Children::new(&settings.tools, Some(own_program()?))?))
}

/// Returns the path of this executable. On Linux it stays valid when a deploy replaces the file.
fn own_program() -> anyhow::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        Ok("/proc/self/exe".into())
    } else {
        std::env::current_exe().context("could not find the file of this program")
    }
}

/// Returns the extractor of documents' texts, whose children are this executable.
fn extractor(settings: &KnowledgeConfig) -> Extractor {
    let limits = ExtractionLimits {
        time: settings.extraction,
        memory_bytes: settings.extraction_bytes as u64,
        text_bytes: settings.max_document_bytes as u64,
        pages: u32::try_from(settings.max_document_pages).unwrap_or(u32::MAX),
    };
    match own_program() {
        Ok(program) => Extractor::with_program(program, limits),
        Err(_) => Extractor::new(limits),
    }
}

fn make_worker(
    connections: &StoreConnections,
    rate_limit: RateLimit,
    settings: &ServerSettings,
    (models, children): (Models, Arc<Children>),
    is_development: bool,
) -> anyhow::Result<Worker> {
    let embedder = Embedder::new(&settings.embedding, &settings.model)?.map(Arc::new);
    Ok(Worker {
        storage: connections.storage.clone(),
        file_store: connections.file_store.clone(),
        run_log: connections.run_log.clone(),
        queue: connections.queue.clone(),
        models,
        config: settings.run.clone(),
        files: settings.files.clone(),
        knowledge: settings.knowledge.clone(),
        embedder,
        vector_bytes: settings.embedding.vector_bytes,
        embedding_pause: settings.embedding.embedding_pause,
        extractor: extractor(&settings.knowledge),
        tools: settings.tools.clone(),
        planner: settings.planner.clone(),
        children,
        archive_retention: settings.stores.archive_retention,
        quotas: settings.quotas.quotas(is_development),
        file_limits: settings.quotas.files(is_development),
        rate_limit,
        anonymous_byte_rate: settings.users.anonymous_run_byte_rate(),
        knowledge_limits: settings.quotas.knowledge(settings.knowledge.owner_collections, is_development),
        workspace_limits: settings.quotas.workspace(),
        memory_limits: settings.quotas.memories(),
        web_search: settings.web_search.clone(),
        egress: settings.egress.clone(),
        forgotten_after: settings.quotas.forgotten_after(),
        all_anonymous_bytes: settings.quotas.all_anonymous(is_development),
        is_development,
    })
}

fn log_stores_and_model(stores: &Stores, storage: &Storage, settings: &ServerSettings) -> anyhow::Result<()> {
    match (storage.caution(), stores) {
        (Some(caution), _) => tracing::warn!(
            error = &caution.cause as &dyn Error,
            "THE DATABASE CANNOT BE USED; because of CHAT_MEMORY_FALLBACK, everything is kept in memory and lost when this process ends"
        ),
        (None, Stores::Embedded { data_dir }) => {
            tracing::info!("database: SQLite, {}", data_dir.join("holdfast.db").display())
        }
        (None, Stores::EmbeddedInMemory) => {
            tracing::warn!("database: SQLite in memory; everything is lost when this process ends")
        }
        (None, Stores::ScaledOut { .. }) => tracing::info!("database: PostgreSQL, as DATABASE_URL says"),
    }
    match storage.pgvector() {
        Pgvector::Ready => tracing::info!("pgvector: it searches collections beyond HOLDFAST_VECTOR_BYTES"),
        Pgvector::WithoutTable => tracing::warn!(
            "pgvector is in the database and not in use: run `holdfast migrate` with the same settings, then start the workers again"
        ),
        Pgvector::Missing => {}
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

/// Stores the models' names for APIs and other workers. A failure is only logged, because the worker can execute runs without.
async fn note_models(storage: &Storage, settings: &ServerSettings) -> anyhow::Result<()> {
    let choice = settings.model.choice()?;
    let embedding = settings.embedding.choice(&settings.model)?.map(|choice| choice.path());
    if let Err(error) = storage.note_models(&choice.provider.to_string(), &choice.name, embedding).await {
        tracing::warn!(
            error = &error as &dyn Error,
            "failed to note the models; GET /v1/server may show an older one, and documents may keep older vectors"
        );
    }
    Ok(())
}

fn log_address(listener: &HttpListener, auth: &Authenticator) {
    let address = listener.address();
    tracing::info!("Holdfast listens on http://{address}");
    if !auth.is_development() {
        tracing::info!("users: as their JWTs say{}", if auth.takes_anonymous() { ", or anonymous" } else { "" });
        return;
    }
    tracing::info!("users: development mode, every caller is believed; set HOLDFAST_JWT_KEY for real users");
    if !address.ip().is_loopback() {
        tracing::warn!(
            "{address} can be reached from other machines, and HOLDFAST_DEVELOPMENT=true makes the API believe every caller that sends a loopback Host header; publish the port on this machine only"
        );
    }
}
