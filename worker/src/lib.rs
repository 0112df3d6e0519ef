//! Holdfast's worker: claims runs, executes them, records their events.
//!
//! The modules, in the order in which a run passes them: `consumer` (apalis hands out claims), `lease` (renewals and
//! stop signals), `agents` (definitions), `executor` (the steps of a run). Then `model` (clients of providers), `tools`
//! (MCP servers and others) and `recorder` (the only writer of events). `sweeper` ends runs whose worker or human did
//! not answer, `memories` ends what agents
//! remember, `missing_vectors` starts runs for documents that lack vectors, and `forgotten` removes anonymous users who do not return. `agent_checks` tries definitions for operators. `spans` has the OpenTelemetry spans of all of
//! them.

mod agent_checks;
mod agents;
mod consumer;
mod document_reader;
mod document_texts;
mod egress;
mod executor;
mod extraction_schedule;
mod extraction_turns;
mod family;
mod file_memory;
mod files;
mod forgotten;
mod lease;
mod memories;
mod memory_budget;
mod missing_vectors;
pub mod model;
mod recorder;
mod refusals;
mod signs_of_life;
mod slow_documents;
mod spans;
mod summary_places;
mod sweeper;
mod tools;

use std::{sync::Arc, time::Duration};

use holdfast_extraction::Extractor;
use holdfast_knowledge::Knowledge;
use holdfast_shared::{
    config::{EgressConfig, FilesConfig, KnowledgeConfig, PlannerConfig, RunConfig, ToolsConfig, WebSearchConfig},
    file_store::FileStore,
    queue::Queue,
    quotas::{FileLimits, KnowledgeLimits, MemoryLimits, Quotas, WorkspaceLimits},
    rate_limit::{Rate, RateLimit},
    run_log::RunLog,
    schema::SchemaChecks,
    storage::{ClaimTerms, Holder, Storage},
};
use holdfast_workspace::WebSearch;
use tokio_util::sync::CancellationToken;

use agents::Agents;
use document_reader::DocumentReader;
use document_texts::DocumentTexts;
use egress::Egress;
use extraction_turns::ExtractionTurns;
use file_memory::FileMemory;
use lease::Leases;
use model::{Embedder, Models};
use refusals::Refusals;
use slow_documents::SlowDocuments;
use summary_places::SummaryPlaces;
pub use tools::mcp::{Children, guard};

use tools::mcp::Mcp;

/// Everything that executing runs needs.
pub struct Worker {
    pub storage: Storage,
    /// The contents of files.
    pub file_store: FileStore,
    pub run_log: RunLog,
    pub queue: Queue,
    pub models: Models,
    pub config: RunConfig,
    /// Settings of files.
    pub files: FilesConfig,
    /// Settings of documents and their passages.
    pub knowledge: KnowledgeConfig,
    /// Turns passages and questions into vectors, if a provider of vectors is set.
    pub embedder: Option<Arc<Embedder>>,
    /// Bytes of memory for vectors.
    pub vector_bytes: usize,
    /// Pause before a document without vectors is tried again.
    pub embedding_pause: Duration,
    /// Extracts the texts of documents.
    pub extractor: Extractor,
    pub tools: ToolsConfig,
    pub planner: PlannerConfig,
    /// Starts those MCP servers that are commands.
    pub children: Arc<Children>,
    /// Retention of the events of ended runs.
    pub archive_retention: Duration,
    /// The quotas of an owner that subagents must keep to.
    pub quotas: Quotas,
    /// The quotas of the files that tools return.
    pub file_limits: FileLimits,
    /// The buckets of the bytes that runs of anonymous callers store.
    pub rate_limit: RateLimit,
    /// The rate of these bytes for one address, in kibibytes; `None` for no limit.
    pub anonymous_byte_rate: Option<Rate>,
    /// The quotas of the texts that are extracted.
    pub knowledge_limits: KnowledgeLimits,
    /// The limits of one owner's workspace, which runs change.
    pub workspace_limits: WorkspaceLimits,
    /// The limits of what agents remember of one owner.
    pub memory_limits: MemoryLimits,
    /// The provider of web searches.
    pub web_search: WebSearchConfig,
    /// Fetches for users.
    pub egress: EgressConfig,
    /// An anonymous user who is absent for longer is removed; `None` keeps all of them.
    pub forgotten_after: Option<Duration>,
    /// In development mode, every caller is an operator, so the errors of runs quote the model's provider.
    pub is_development: bool,
    /// Near these bytes of all anonymous users together, some are removed early; `None` for no limit.
    pub all_anonymous_bytes: Option<u64>,
}

/// State that the parts of one worker process share.
struct WorkerState {
    worker: Worker,
    holder: Holder,
    leases: Leases,
    agents: Agents,
    mcp: Arc<Mcp>,
    schemas: SchemaChecks,
    web_search: Option<WebSearch>,
    egress: Egress,
    file_memory: FileMemory,
    refusals: Refusals,
    summary_places: SummaryPlaces,
    documents: Knowledge,
    document_reader: Arc<DocumentReader>,
}

impl WorkerState {
    /// Returns the terms on which this process claims runs.
    fn claim_terms(&self) -> ClaimTerms {
        let config = &self.worker.config;
        ClaimTerms {
            holder: self.holder.clone(),
            lease: config.lease,
            max_crashes: config.max_crashes,
            // The queue knows the free places.
            ingestions: 0,
            reserved: config.reserved_slots(),
        }
    }
}

impl Worker {
    /// Executes runs until `shutdown`. The worker then claims no more, drains its runs, and hands the remaining runs
    /// over.
    pub async fn run(self, shutdown: CancellationToken) {
        let document_reader = DocumentReader {
            file_store: self.file_store.clone(),
            extractor: self.extractor.clone(),
            queue: self.queue.clone(),
            turns: ExtractionTurns::new(self.knowledge.extractions()),
            slow: SlowDocuments::default(),
            texts: DocumentTexts::default(),
            text_bytes: self.files.model_text_bytes,
            first_try: self.knowledge.extraction_try,
            limit: self.knowledge.extraction,
        };
        let shared = Arc::new(WorkerState {
            holder: Holder::new(),
            leases: Leases::default(),
            agents: Agents::default(),
            mcp: Mcp::new(&self.tools, Arc::clone(&self.children)),
            schemas: SchemaChecks::new(&self.tools),
            web_search: WebSearch::new(&self.web_search),
            egress: Egress::new(&self.egress).expect("an HTTP client needs nothing but its settings"),
            file_memory: FileMemory::new(self.files.worker_file_bytes),
            refusals: Refusals::default(),
            summary_places: SummaryPlaces::new(self.config.reserved_slots()),
            documents: Knowledge::new(&self.storage, self.knowledge_limits, self.vector_bytes),
            document_reader: Arc::new(document_reader),
            worker: self,
        });
        let checks = agent_checks::subscribe(&shared).await;
        tracing::info!(
            holder = shared.holder.as_str(),
            slots = shared.worker.config.worker_concurrency,
            "worker started"
        );
        metrics::gauge!("holdfast_worker_slots").set(shared.worker.config.worker_concurrency as f64);
        let background = CancellationToken::new();
        let keeper = tokio::spawn(lease::keep(Arc::clone(&shared), background.clone()));
        let cancels = tokio::spawn(lease::listen_for_cancels(Arc::clone(&shared), background.clone()));
        let checks = tokio::spawn(agent_checks::listen(Arc::clone(&shared), checks, background.clone()));
        let sweeper = tokio::spawn(sweeper::sweep(Arc::clone(&shared), background.clone()));
        let file_sweep = tokio::spawn(files::sweep(Arc::clone(&shared), background.clone()));
        let warming = Arc::clone(&shared);
        let warming = tokio::spawn(async move { agents::warm_up(&warming.worker.storage, &warming.mcp).await });
        consumer::consume(&shared, shutdown).await;
        // Order matters: leases are renewed until the last run has ended or was handed over.
        background.cancel();
        warming.abort();
        let _ = tokio::join!(keeper, cancels, checks, sweeper, file_sweep);
        shared.mcp.close().await;
        tracing::info!("worker stopped");
    }
}
