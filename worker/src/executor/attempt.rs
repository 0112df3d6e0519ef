//! State that the nodes of the graph share, and the start of an attempt.

use std::{error::Error, future::Future, sync::Arc};

use holdfast_shared::{
    agent::{AgentDefinition, Profiles},
    config::Provider,
    event::{EventBody, WarningRaised},
    run::RunError,
    storable::storable,
    storage::{Answer, BeginResult, Claim, NewCheckpoint, Progress, Start, Window},
    telemetry::Span,
    tool::ClientTool,
    trace::{Node, TraceRole},
    usage::Usage,
};
use uuid::Uuid;

use super::{
    Stop, age, attachments, budget, compress,
    deadline::Deadline,
    knowledge,
    limits::RunLimits,
    linked_files::{self, LinkedParts},
    mcp_servers,
    memory::Memory,
    overridden::overridden,
    planning::Planner,
    results,
    retry_query::retry_query,
    workspace::add_workspace_tools,
};
use crate::{
    WorkerState,
    lease::{Lease, Signal},
    model::{ChosenModel, NOT_CONFIGURED},
    recorder::Recorder,
    signs_of_life::SignsOfLife,
    spans::Spans,
    tools::{MemoryOfRun, Toolbox},
};

/// One attempt at a run.
pub struct Attempt<'a> {
    pub shared: &'a WorkerState,
    pub claim: &'a Claim,
    pub lease: &'a mut Lease,
    pub recorder: &'a mut Recorder,
    /// The agent's definition at the run's submission; a plain conversation has an empty one.
    pub definition: Arc<AgentDefinition>,
    pub chosen_model: ChosenModel,
    /// Tokens that the conversation may have for the model.
    pub budget: u32,
    /// The earlier messages that the model may read word by word.
    pub window: Window,
    /// True if a summary is to be made after the end of the run.
    pub is_summary_due: bool,
    pub toolbox: Toolbox,
    /// The part of a planner, or of a child that works for one.
    pub planner: Option<Box<Planner>>,
    pub limits: RunLimits,
    pub memory: Memory,
    /// The tools that the model did not get in the newest step, because it takes no more.
    pub left_out_tools: Vec<String>,
    /// The project that a call of this step has led to; the next step has its tools.
    pub shifted_to: Option<Uuid>,
    /// Parent of the spans that belong to no step.
    pub spans: Spans,
    /// Span of the current step.
    pub step: Span,
    pub signs_of_life: SignsOfLife,
    /// Fails the run that takes too long, or gives no sign of life for too long.
    deadline: Deadline,
    first_token: bool,
}

impl<'a> Attempt<'a> {
    /// Reads the state that the attempt continues from, and connects to the agent's servers. Waits while the database
    /// cannot be reached. Fails as soon as the run should stop, or if the state cannot be read.
    pub async fn begin(
        shared: &'a WorkerState,
        claim: &'a Claim,
        lease: &'a mut Lease,
        recorder: &'a mut Recorder,
        spans: Spans,
    ) -> Result<Self, Stop> {
        let worker = &shared.worker;
        warn_of_database(shared, claim, recorder);
        let definition = match claim.agent {
            None => Arc::default(),
            Some((id, version)) => {
                let read = || shared.agents.definition(&worker.storage, id, version);
                let agent_gone = || RunError::new("agent_gone", "the definition of the run's agent was removed");
                retry_query(lease, recorder, read).await?.ok_or_else(|| Stop::Failed(agent_gone()))?
            }
        };
        let mut planner = Planner::of_run(shared, claim, (lease, recorder), &definition).await?;
        let of_run = match &planner {
            None => Arc::clone(&definition),
            Some(planner) => Arc::new(planner.adapt(&definition, &worker.planner)),
        };
        let names_profile = definition.model.as_ref().is_some_and(|model| model.profile.is_some());
        let mut profiles = if names_profile || planner.is_some() {
            retry_query(lease, recorder, || worker.storage.profiles()).await?
        } else {
            Profiles::default()
        };
        let settings = match &planner {
            None => definition.model.clone(),
            Some(planner) => planner.model(&definition, &profiles),
        };
        if let Some(planner) = &mut planner {
            planner.set_synthesizer(&worker.models, &definition, &profiles);
        }
        let definition = of_run;
        let budget_of = |model: &ChosenModel| budget::tokens(&definition, shared, &claim.owner_id, model);
        let window_of = |budget| budget::window(&definition, claim.agent.is_none(), &worker.config, budget);
        // A request that names another profile has a budget that is not known before the state is read.
        let usual = worker.models.get(settings.as_ref(), &profiles).map_or(0, |model| budget_of(&model));
        let mut start = Box::new(read_start(shared, claim, (lease, recorder), window_of(usual)).await?);
        let mut overrides = std::mem::take(&mut start.overrides);
        if overrides.profile.is_some() {
            profiles = retry_query(lease, recorder, || worker.storage.profiles()).await?;
        }
        let settings = overridden(settings, &overrides);
        let chosen_model = worker.models.get(settings.as_ref(), &profiles).map_err(|error| {
            tracing::warn!(error = &error as &dyn Error, "failed to set up the model of the run's agent");
            let sentence = "the agent's model is not set up on this server";
            Stop::Failed(RunError::new(NOT_CONFIGURED, sentence).with_details(error.to_string()))
        })?;
        let budget = budget_of(&chosen_model);
        if budget > usual && start.history.older.is_some() {
            start.history = read_start(shared, claim, (lease, recorder), window_of(budget)).await?.history;
        }
        let window = window_of(budget);
        let model = chosen_model.choice().path();
        if let Some(planner) = planner.as_mut().filter(|_| claim.is_fresh()) {
            recorder.note_for_next_flush(planner.own_role(claim, &model, budget));
        }
        start.plan =
            planner.as_mut().and_then(|planner| planner.newest_plan.take_if(|plan| plan.run_id == claim.run_id));
        recorder.note_for_next_flush(Progress { model: Some(model), ..Progress::default() });
        let client_tools = std::mem::take(&mut start.client_tools);
        let limits = limits_of(shared, claim, &definition, planner.is_some());
        let signs_of_life = SignsOfLife::default();
        let deadline = Deadline::new(limits, claim.worked, signs_of_life.clone());
        let parts = LinkedParts::new(&mut start.history.input, &mut overrides, &client_tools, &chosen_model);
        linked_files::fetch(shared, claim, (lease, recorder), parts).await?;
        let mut memory = Memory::of(*start, overrides);
        memory.set_date(definition.tells_date().then(|| claim.date.clone()));
        recorder.continue_from(Answer {
            text: memory.text(),
            usage: memory.usage,
            finish_reason: memory.finish_reason,
            ..Answer::default()
        });
        let mut attempt = Self {
            shared,
            claim,
            lease,
            recorder,
            definition,
            chosen_model,
            budget,
            window,
            is_summary_due: false,
            toolbox: Toolbox::default(),
            planner,
            limits,
            memory,
            left_out_tools: Vec::new(),
            shifted_to: None,
            spans,
            step: Span::default(),
            signs_of_life,
            deadline,
            first_token: true,
        };
        attempt.warn_of_given_history();
        attempt.gather_tools(client_tools).await?;
        knowledge::begin(&mut attempt).await?;
        compress::fit(&mut attempt).await?;
        results::offer_reading_on(&mut attempt);
        attempt.note_input();
        Ok(attempt)
    }

    /// Awaits `other` while events are written. Fails at a stop signal, or when the run's deadline passes. While the
    /// database is away, it first waits until the recorder has room for the events of `other`.
    pub async fn alongside<T>(&mut self, other: impl Future<Output = T>) -> Result<T, Stop> {
        self.alongside_until(Signal::Yield, other).await
    }

    /// Does as `alongside`, but only a signal that is at least `signal` stops it.
    pub async fn alongside_until<T>(&mut self, signal: Signal, other: impl Future<Output = T>) -> Result<T, Stop> {
        self.expect_no_refusal()?;
        tokio::select! {
            biased;
            signal = self.lease.until(signal) => Err(signal.into()),
            late = self.deadline.passed() => Err(Stop::Failed(late)),
            output = self.recorder.alongside_with_room(other) => Ok(output?),
        }
    }

    /// Waits until everything so far is in the database; later work may then have effects. Only a signal that is at
    /// least `signal` stops the wait.
    pub async fn durable_until(&mut self, signal: Signal) -> Result<(), Stop> {
        tokio::select! {
            biased;
            signal = self.lease.until(signal) => return Err(signal.into()),
            late = self.deadline.passed() => return Err(Stop::Failed(late)),
            durable = self.recorder.durable() => durable?,
        }
        self.expect_no_refusal()
    }

    fn expect_no_refusal(&self) -> Result<(), Stop> {
        self.recorder.refusal().map_or(Ok(()), |error| Err(Stop::Failed(error)))
    }

    /// Warns in the first attempt if the API has left out a part of the history that the request brought.
    fn warn_of_given_history(&mut self) {
        if self.memory.left_out > 0 && self.claim.is_fresh() {
            let left_out = self.memory.left_out;
            self.warn(
                "history_left_out",
                format!("The model answers without the oldest {left_out} messages and calls of the request's history, which is too long."),
            );
        }
    }

    /// Sends a warning to the clients; a warning is no failure.
    pub fn warn(&mut self, code: &str, message: impl Into<String>) {
        self.recorder.emit(&EventBody::WarningRaised(WarningRaised {
            code: code.into(),
            message: storable(message.into()).into(),
        }));
    }

    /// Writes a checkpoint after a completed node, together with the node's progress.
    pub fn checkpoint(&mut self, node: Node, progress: Progress) {
        let event_id = self.recorder.last();
        let checkpoint = NewCheckpoint {
            id: Uuid::now_v7(),
            node,
            step: self.memory.step,
            event_id,
            messages: self.memory.trace.len(),
            metadata: self.memory.metadata.clone(),
        };
        let progress = Progress { checkpoints: vec![checkpoint], resume_at: Some(event_id), ..progress };
        match node {
            // The input alone is not worth its own commit.
            Node::Input => self.recorder.note_for_next_flush(progress),
            _ => self.recorder.note(progress),
        }
    }

    /// Returns the spans of the current step. A step that an earlier attempt started gets a new span.
    pub fn spans_of_step(&mut self) -> Spans {
        if self.step.traceparent().is_none() {
            self.step = self.spans.step(self.memory.step);
        }
        self.spans.under(&self.step)
    }

    /// Records the time to the first token of the answer.
    pub fn record_first_token(&mut self) {
        if std::mem::take(&mut self.first_token) && self.memory.step <= 1 {
            let waited = age(self.claim);
            metrics::histogram!("holdfast_first_token_seconds").record(waited.as_secs_f64());
            tracing::Span::current().record("first_token_ms", waited.as_millis() as u64);
        }
    }

    async fn gather_tools(&mut self, client_tools: Vec<ClientTool>) -> Result<(), Stop> {
        mcp_servers::gather(self).await?;
        self.gather_subagents().await?;
        if self.chosen_model.choice().provider == Provider::Scripted {
            self.toolbox.add_scripted(self.shared.worker.tools.tool_timeout);
        }
        add_workspace_tools(self).await?;
        self.add_memory_tools();
        knowledge::add_tools(self).await?;
        self.toolbox.add_client_tools(client_tools);
        attachments::offer_reading(self);
        if let Some(planner) = &self.planner {
            match &planner.tools {
                Some(tools) => self.toolbox.keep_only(tools),
                None => self.toolbox.add_planner_tools(),
            }
        }
        Ok(())
    }

    /// Adds the tools of the agent's memory, if it has one.
    fn add_memory_tools(&mut self) {
        if !self.definition.memory {
            return;
        }
        let (worker, claim) = (&self.shared.worker, self.claim);
        self.toolbox.add_memory_tools(MemoryOfRun {
            storage: worker.storage.clone(),
            limits: worker.memory_limits,
            owner: claim.owner_id.clone(),
            agent: self.definition.name.clone(),
            run_id: claim.run_id,
            attempt: claim.attempt,
            result_chars: results::room(self, "recall").chars(),
        });
    }

    /// Adds a tool for each subagent of the definition.
    async fn gather_subagents(&mut self) -> Result<(), Stop> {
        if self.definition.subagents.is_empty() {
            return Ok(());
        }
        let definition = Arc::clone(&self.definition);
        let names: Vec<String> = definition.subagents.iter().map(|subagent| subagent.agent.clone()).collect();
        let storage = &self.shared.worker.storage;
        let mut found = retry_query(self.lease, self.recorder, || storage.agents_named(&names)).await?;
        for subagent in &definition.subagents {
            match found.remove(&subagent.agent) {
                Some(agent) => self.toolbox.add_subagent(agent, subagent.description.clone()),
                None => self.warn("subagent_unavailable", format!("There is no agent {} now.", subagent.agent)),
            }
        }
        Ok(())
    }

    /// Executes the input node of a fresh run: the system prompt and the input go into the trace.
    fn note_input(&mut self) {
        if !self.memory.trace.is_empty() {
            return;
        }
        if let Some(prompt) = &self.definition.system_prompt {
            self.memory.push(TraceRole::System, prompt.clone(), 0);
        }
        let input = self.memory.input.content.model_text(self.definition.language);
        // The run's usage is the sum over its trace, so the usage of a summary belongs to the input.
        let usage = (self.memory.usage != Usage::default()).then_some(self.memory.usage);
        self.memory.push(TraceRole::User, input, 0).usage = usage;
        let messages = self.memory.trace.clone();
        self.checkpoint(Node::Input, Progress { messages, ..Progress::default() });
    }
}

fn limits_of(shared: &WorkerState, claim: &Claim, definition: &AgentDefinition, is_planner: bool) -> RunLimits {
    let worker = &shared.worker;
    let silence = claim.max_silence.or(is_planner.then_some(worker.planner.planner_silence));
    // An agent with a time of its own may be silent for that time.
    let silence = silence.filter(|_| definition.limits.max_duration_ms.is_none());
    RunLimits::of(definition.limits.or(worker.tools.limits()), silence)
}

/// Warns of a database that may lose data, once per run: the checkpoint after the input also covers this warning.
fn warn_of_database(shared: &WorkerState, claim: &Claim, recorder: &mut Recorder) {
    if claim.is_fresh()
        && let Some(caution) = shared.worker.storage.caution()
    {
        let (code, message) = (caution.code.into(), caution.message.into());
        recorder.emit(&EventBody::WarningRaised(WarningRaised { code, message }));
    }
}

/// Reads the state that the attempt continues from, with the earlier messages within the window.
async fn read_start(
    shared: &WorkerState,
    claim: &Claim,
    (lease, recorder): (&mut Lease, &mut Recorder),
    window: Window,
) -> Result<Start, Stop> {
    match retry_query(lease, recorder, || shared.worker.storage.begin(claim, window)).await? {
        BeginResult::Executing(start) => Ok(*start),
        BeginResult::Fenced => Err(Stop::Fenced),
    }
}
