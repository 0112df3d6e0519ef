//! The payloads of events: a struct for each kind. In the log and on the native wire, a payload is a JSON object.
//!
//! A field that a later version added has a default, so that the later version reads the events of earlier ones.

mod call;
mod knowledge;
mod memory;
mod plan;
mod run;
mod step;
mod workspace;

pub use self::{
    call::{
        ApprovalRequested, ApprovalResolved, ExecutedBy, SubagentCompleted, SubagentStarted, ToolCallCompleted,
        ToolCallDelta, ToolCallStarted,
    },
    knowledge::{CitationAdded, CitationDropped, ContextRetrieved, DocumentProgress, IngestionStage, RetrievedPassage},
    memory::MemoryTold,
    plan::{PlanCreated, PlanReviewed, PlanStepCompleted, PlanStepStarted, PlanUpdated, QuestionAsked},
    run::{
        AgentState, AgentStateChanged, AttemptReason, AttemptStarted, RunCancelled, RunCompleted, RunFailed, RunQueued,
        WarningRaised,
    },
    step::{ContextUsage, MessageCompleted, MessageDelta, MessageSteered, ReasoningDelta, StepCompleted, StepStarted},
    workspace::{
        ContextShifted, EntityAccessed, EntityCounts, FocusChanged, OntologyLoaded, TemplateRequested,
        TemplateSuggested,
    },
};
