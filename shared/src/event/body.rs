//! The bodies of events: a variant of `EventBody` for each kind, with its payload.
//!
//! `event_bodies!` is the one list of kinds. A fold matches the whole enum, so the compiler finds each fold that a new
//! kind concerns. Payloads borrow from the line of their event and leave foreign JSON unparsed. `docs/events.md`
//! describes each kind for clients.

use serde::Serialize;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, schema::Schema},
};

use super::payload::*;

macro_rules! event_bodies {
    ($($variant:ident($payload:ty) = $name:literal;)+) => {
        /// The payload of an event, by its kind.
        #[derive(Debug, Clone, PartialEq)]
        pub enum EventBody<'a> {
            $(#[doc = concat!("The payload of `", $name, "`.")] $variant($payload),)+
            /// An event of a newer version, which this one cannot read. No worker writes it.
            Unknown,
        }

        /// The kind of an event.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum EventKind {
            $(#[doc = concat!("`", $name, "`")] $variant,)+
            /// A kind that only a newer version knows.
            Unknown,
        }

        impl EventKind {
            /// All kinds that this version writes.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the kind of a name, `noun.past_verb` or `noun.delta`.
            pub fn of(name: &str) -> Self {
                match name {
                    $($name => Self::$variant,)+
                    _ => Self::Unknown,
                }
            }

            /// Returns the name in the log and on the native wire.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                    Self::Unknown => "unknown",
                }
            }
        }

        impl<'a> EventBody<'a> {
            /// Parses a JSON object with the fields of the payload and perhaps others. Returns `Unknown` if that fails,
            /// except for the end of a run, which every reader must see.
            pub fn read(kind: EventKind, json: &'a [u8]) -> Self {
                Self::try_read(kind, json).unwrap_or_else(|_| kind.unreadable())
            }

            fn try_read(kind: EventKind, json: &'a [u8]) -> serde_json::Result<Self> {
                Ok(match kind {
                    $(EventKind::$variant => Self::$variant(serde_json::from_slice(json)?),)+
                    EventKind::Unknown => Self::Unknown,
                })
            }

            /// Returns the schema of each kind's payload, and adds the schemas that these refer to.
            pub fn schemas(referred: &mut Vec<(String, RefOr<Schema>)>) -> Vec<(EventKind, RefOr<Schema>)> {
                $(<$payload as ToSchema>::schemas(referred);)+
                vec![$((EventKind::$variant, <$payload as PartialSchema>::schema())),+]
            }

            /// Returns the kind of the event.
            pub const fn kind(&self) -> EventKind {
                match self {
                    $(Self::$variant(_) => EventKind::$variant,)+
                    Self::Unknown => EventKind::Unknown,
                }
            }
        }

        impl Serialize for EventBody<'_> {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(payload) => payload.serialize(serializer),)+
                    Self::Unknown => serde::ser::SerializeMap::end(serializer.serialize_map(Some(0))?),
                }
            }
        }

        $(impl<'a> From<$payload> for EventBody<'a> {
            fn from(payload: $payload) -> Self {
                Self::$variant(payload)
            }
        })+
    };
}

event_bodies! {
    RunQueued(RunQueued) = "run.queued";
    AttemptStarted(AttemptStarted) = "attempt.started";
    StepStarted(StepStarted) = "step.started";
    StepCompleted(StepCompleted) = "step.completed";
    MessageDelta(MessageDelta<'a>) = "message.delta";
    ReasoningDelta(ReasoningDelta<'a>) = "reasoning.delta";
    ToolCallDelta(ToolCallDelta<'a>) = "tool_call.delta";
    ToolCallStarted(ToolCallStarted<'a>) = "tool_call.started";
    ToolCallCompleted(ToolCallCompleted<'a>) = "tool_call.completed";
    MessageSteered(MessageSteered) = "message.steered";
    SubagentStarted(SubagentStarted<'a>) = "subagent.started";
    SubagentCompleted(SubagentCompleted<'a>) = "subagent.completed";
    PlanCreated(PlanCreated) = "plan.created";
    PlanUpdated(PlanUpdated) = "plan.updated";
    PlanReviewed(PlanReviewed<'a>) = "plan.reviewed";
    PlanStepStarted(PlanStepStarted) = "plan_step.started";
    PlanStepCompleted(PlanStepCompleted) = "plan_step.completed";
    QuestionAsked(QuestionAsked<'a>) = "question.asked";
    ContextShifted(ContextShifted<'a>) = "context.shifted";
    FocusChanged(FocusChanged) = "focus.changed";
    OntologyLoaded(OntologyLoaded<'a>) = "ontology.loaded";
    TemplateRequested(TemplateRequested<'a>) = "template.requested";
    TemplateSuggested(TemplateSuggested<'a>) = "template.suggested";
    DocumentProgress(DocumentProgress) = "document.progress";
    ContextRetrieved(ContextRetrieved<'a>) = "context.retrieved";
    CitationAdded(CitationAdded) = "citation.added";
    CitationDropped(CitationDropped) = "citation.dropped";
    MemoryTold(MemoryTold<'a>) = "memory.told";
    ApprovalRequested(ApprovalRequested<'a>) = "approval.requested";
    ApprovalResolved(ApprovalResolved<'a>) = "approval.resolved";
    MessageCompleted(MessageCompleted) = "message.completed";
    AgentState(AgentStateChanged<'a>) = "agent.state";
    ContextUsage(ContextUsage) = "context.usage";
    WarningRaised(WarningRaised<'a>) = "warning.raised";
    RunCompleted(RunCompleted) = "run.completed";
    RunFailed(RunFailed) = "run.failed";
    RunCancelled(RunCancelled) = "run.cancelled";
}

impl EventKind {
    /// Returns whether a run ends with an event of this kind.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::RunCompleted | Self::RunFailed | Self::RunCancelled)
    }

    /// Returns whether the event is a piece of text that a later event has completely.
    pub const fn is_delta(self) -> bool {
        matches!(self, Self::MessageDelta | Self::ReasoningDelta | Self::ToolCallDelta)
    }

    /// Returns the body of an event of this kind whose payload cannot be parsed.
    fn unreadable(self) -> EventBody<'static> {
        match self {
            Self::RunCompleted => RunCompleted::default().into(),
            Self::RunFailed => RunFailed::default().into(),
            Self::RunCancelled => RunCancelled::default().into(),
            _ => EventBody::Unknown,
        }
    }
}
