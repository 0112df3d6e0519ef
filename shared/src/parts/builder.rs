//! The fold of a log into parts.

use super::{CallProgress, MessagePart, MessageParts, ToolCallPart, change::PartChange};
use crate::{
    event::{Event, EventBody, ExecutedBy},
    event_id::EventId,
};

/// Folds events into parts. It takes as much memory as the message without its text, and 16 bytes for each delta of a log.
#[derive(Debug, Clone, Default)]
pub struct PartsBuilder(Vec<FoldEntry>);

/// An event, or several deltas, as the builder keeps them: a later attempt may supersede them.
#[derive(Debug, Clone)]
enum FoldEntry {
    Deltas(DeltaRun),
    Change { id: EventId, at_ms: i64, change: PartChange },
}

/// Consecutive deltas of one kind.
#[derive(Debug, Clone)]
struct DeltaRun {
    kind: DeltaKind,
    since_ms: i64,
    text: String,
    /// For each delta, the length of the run at its end: in characters for a text, which is not kept, else in bytes.
    ends: Vec<(EventId, usize)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum DeltaKind {
    Text,
    Reasoning,
    /// The arguments of a call; in its first delta with the name of the tool, and the party that executes it.
    Arguments {
        call_id: String,
        tool: Option<(String, Option<ExecutedBy>)>,
    },
}

impl PartsBuilder {
    /// Applies the next event of the log.
    pub fn push(&mut self, event: &Event) {
        if let Some(base) = event.base {
            self.supersede_after(base);
        }
        self.push_body(event.id, event.at_ms, &event.body());
    }

    /// Applies an event that a writer adds to its own attempt. No event of the attempt supersedes another, so a run of
    /// deltas needs one end only, however many they are.
    pub fn record(&mut self, id: EventId, at_ms: i64, body: &EventBody<'_>) {
        self.push_body(id, at_ms, body);
        if let Some(FoldEntry::Deltas(run)) = self.0.last_mut() {
            run.ends.drain(..run.ends.len() - 1);
        }
    }

    fn push_body(&mut self, id: EventId, at_ms: i64, body: &EventBody<'_>) {
        match body {
            EventBody::MessageDelta(delta) => self.push_delta(DeltaKind::Text, id, at_ms, &delta.text),
            EventBody::ReasoningDelta(delta) => self.push_delta(DeltaKind::Reasoning, id, at_ms, &delta.text),
            EventBody::ToolCallDelta(delta) => {
                let tool = delta.name.as_deref().map(|name| (name.to_owned(), delta.by));
                let kind = DeltaKind::Arguments { call_id: delta.call_id.to_string(), tool };
                self.push_delta(kind, id, at_ms, &delta.text);
            }
            body => self.0.push(FoldEntry::Change { id, at_ms, change: PartChange::of(body) }),
        }
    }

    fn push_delta(&mut self, kind: DeltaKind, id: EventId, at_ms: i64, text: &str) {
        let continues = matches!(self.0.last(), Some(FoldEntry::Deltas(run)) if run.continues_with(&kind));
        if !continues {
            self.0.push(FoldEntry::Deltas(DeltaRun { kind, since_ms: at_ms, text: String::new(), ends: Vec::new() }));
        }
        if let Some(FoldEntry::Deltas(run)) = self.0.last_mut() {
            run.push(id, text);
        }
    }

    /// Continues with the events of an attempt that this event has begun.
    pub fn followed_by(mut self, started: &Event, attempt: Self) -> Self {
        self.push(started);
        self.0.extend(attempt.0);
        self
    }

    fn supersede_after(&mut self, base: EventId) {
        self.0.retain_mut(|entry| match entry {
            FoldEntry::Change { id, .. } => *id <= base,
            FoldEntry::Deltas(run) => run.supersede_after(base),
        });
    }

    /// Returns the parts of a run that ends at this time, in ms since the Unix epoch.
    pub fn into_parts(self, end_ms: i64) -> MessageParts {
        let mut parts = MessageParts { ended_ms: end_ms, parts: Vec::new() };
        let mut entries = self.0.into_iter().peekable();
        while let Some(entry) = entries.next() {
            let next_ms = entries.peek().map_or(end_ms, FoldEntry::at_ms);
            match entry {
                FoldEntry::Change { change, .. } => parts.apply(change),
                FoldEntry::Deltas(run) => run.add_to(&mut parts, next_ms),
            }
        }
        parts
    }
}

impl FoldEntry {
    const fn at_ms(&self) -> i64 {
        match self {
            Self::Change { at_ms, .. } => *at_ms,
            Self::Deltas(run) => run.since_ms,
        }
    }
}

impl DeltaRun {
    fn continues_with(&self, kind: &DeltaKind) -> bool {
        match (&self.kind, kind) {
            (DeltaKind::Arguments { call_id, .. }, DeltaKind::Arguments { call_id: next, tool: None }) => {
                call_id == next
            }
            (known, next) => known == next,
        }
    }

    fn push(&mut self, id: EventId, text: &str) {
        let end = if self.kind == DeltaKind::Text {
            self.ends.last().map_or(0, |(_, end)| *end) + text.chars().count()
        } else {
            self.text.push_str(text);
            self.text.len()
        };
        self.ends.push((id, end));
    }

    /// Returns whether a delta is left.
    fn supersede_after(&mut self, base: EventId) -> bool {
        self.ends.truncate(self.ends.partition_point(|(id, _)| *id <= base));
        let end = self.ends.last().map_or(0, |(_, end)| *end);
        self.text.truncate(end);
        !self.ends.is_empty()
    }

    fn add_to(self, parts: &mut MessageParts, next_ms: i64) {
        match self.kind {
            DeltaKind::Text => {
                parts.push_text(self.ends.last().map_or(0, |(_, end)| *end));
            }
            DeltaKind::Reasoning => {
                let duration_ms = u64::try_from(next_ms - self.since_ms).unwrap_or_default();
                parts.parts.push(MessagePart::Reasoning { text: self.text, duration_ms });
            }
            DeltaKind::Arguments { call_id, tool } => {
                let call = match tool {
                    Some((name, by)) => {
                        let call = parts.call_named(&call_id, &name);
                        call.by = by.or(call.by);
                        Some(call)
                    }
                    None => parts.call(&call_id),
                };
                if let Some(ToolCallPart { state: CallProgress::Incomplete(input), .. }) = call {
                    input.push_str(&self.text);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use serde_json::json;
    use uuid::Uuid;

    use super::{
        super::{CallApproval, QuestionPart},
        *,
    };
    use crate::{
        approval::{ApprovalKind, ApprovalStatus},
        citation::{Citation, DropReason, DroppedMark},
        event::{
            ApprovalRequested, ApprovalResolved, AttemptReason, AttemptStarted, CitationAdded, CitationDropped,
            ExecutedBy, MessageDelta, RawJson, ReasoningDelta, StepStarted, ToolCallCompleted, ToolCallDelta,
            ToolCallStarted,
        },
        tool::ToolError,
    };

    fn text(text: &'static str) -> EventBody<'static> {
        MessageDelta { message_id: Uuid::nil(), text: text.into() }.into()
    }

    fn reasoning(text: &'static str) -> EventBody<'static> {
        ReasoningDelta { message_id: Uuid::nil(), text: text.into() }.into()
    }

    fn step() -> EventBody<'static> {
        StepStarted { step: 1 }.into()
    }

    fn arguments(name: Option<&'static str>, text: &'static str) -> EventBody<'static> {
        ToolCallDelta { call_id: "c".into(), name: name.map(Into::into), by: None, text: text.into() }.into()
    }

    fn input() -> RawJson<'static> {
        json!({"amount": 1}).into()
    }

    fn started(by: ExecutedBy) -> EventBody<'static> {
        let (call_id, name) = ("c".into(), "bank__pay".into());
        ToolCallStarted { call_id, step: 1, name, input: input(), by, expires_at: None }.into()
    }

    fn completed(refused: bool, error: Option<ToolError>) -> EventBody<'static> {
        let (call_id, name, input) = ("c".into(), "bank__pay".into(), refused.then(input));
        ToolCallCompleted { call_id, name, input, error, duration_ms: 5, ..Default::default() }.into()
    }

    fn asked() -> EventBody<'static> {
        let (call_id, name, expires_at) = ("c".into(), "bank__pay".into(), DateTime::UNIX_EPOCH);
        let (approval_id, kind) = (Uuid::max(), ApprovalKind::Policy);
        ApprovalRequested {
            base: None,
            approval_id,
            call_id,
            child_run_id: None,
            kind,
            name,
            input: input(),
            expires_at,
        }
        .into()
    }

    fn resolved(decision: ApprovalStatus, edited_input: Option<RawJson<'static>>) -> EventBody<'static> {
        let (base, approval_id, call_id) = (None, Uuid::max(), "c".into());
        ApprovalResolved {
            base,
            approval_id,
            call_id,
            child_run_id: None,
            decision,
            reason: Some("why".into()),
            edited_input,
        }
        .into()
    }

    /// Returns the parts of these events, one per second, which end a second later.
    fn parts_of(bodies: &[EventBody<'_>]) -> Vec<MessagePart> {
        let mut builder = PartsBuilder::default();
        for (n, body) in (1..).zip(bodies) {
            builder.record(EventId::new(1, n), i64::from(n) * 1000, body);
        }
        builder.into_parts((bodies.len() as i64 + 1) * 1000).parts
    }

    fn call(
        by: Option<ExecutedBy>,
        state: CallProgress,
        by_worker: bool,
        approved: Option<Option<bool>>,
    ) -> MessagePart {
        let reason = |approved: Option<bool>| approved.map(|_| "why".to_owned());
        let approval = approved.map(|approved| CallApproval { id: Uuid::max(), approved, reason: reason(approved) });
        MessagePart::Call(ToolCallPart {
            call_id: "c".into(),
            name: "bank__pay".into(),
            by,
            state,
            by_worker,
            approval,
        })
    }

    fn question(edited: bool) -> MessagePart {
        let (approval_id, call_id, expires_at) = (Uuid::max(), "c".into(), DateTime::UNIX_EPOCH);
        MessagePart::Question(QuestionPart { approval_id, call_id, kind: ApprovalKind::Policy, expires_at, edited })
    }

    #[test]
    fn consecutive_deltas_are_one_part() {
        let parts = parts_of(&[step(), reasoning("a"), reasoning("b"), text("one "), text("zwö"), step(), text("x")]);
        let expected = [
            MessagePart::Step,
            MessagePart::Reasoning { text: "ab".into(), duration_ms: 2000 },
            MessagePart::Text { chars: 7 },
            MessagePart::Step,
            MessagePart::Text { chars: 1 },
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn a_citation_does_not_end_a_text() {
        let citation =
            Citation { id: Uuid::nil(), chunk: 0, title: "t".into(), page: None, start: 0, end: 9, score: 1.0 };
        let cited = |number| EventBody::from(CitationAdded { number, source: citation.clone() });
        let mark = DroppedMark { number: 9, reason: DropReason::NotTold };
        let dropped = EventBody::from(CitationDropped { number: mark.number, reason: mark.reason });
        let parts = parts_of(&[step(), text("a [2]"), cited(2), text(" b [1]"), cited(1), text("."), dropped, step()]);
        assert_eq!(parts[1], MessagePart::Text { chars: 12 });
        assert_eq!(parts.len(), 6);
        let sources = MessageParts { ended_ms: 0, parts }.sources();
        assert_eq!(sources.documents.iter().map(|cited| cited.number).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(sources.dropped, [mark]);
    }

    #[test]
    fn a_writers_deltas_take_no_memory_each() {
        let mut builder = PartsBuilder::default();
        for n in 1..1_000 {
            builder.record(EventId::new(1, n), 0, &text("x"));
        }
        let [FoldEntry::Deltas(run)] = &builder.0[..] else { panic!("the deltas are not one run") };
        assert_eq!(run.ends, [(EventId::new(1, 999), 999)]);
    }

    #[test]
    fn a_call_has_the_state_of_its_last_event() {
        use CallProgress::{Asked, Ended, Incomplete, Started, Withdrawn};
        const WORKER: Option<ExecutedBy> = Some(ExecutedBy::Worker);
        const CLIENT: Option<ExecutedBy> = Some(ExecutedBy::Client);
        let end = MessagePart::CallEnd { call_id: "c".into() };
        let check = |bodies: &[EventBody<'_>], expected: &[MessagePart]| assert_eq!(parts_of(bodies), expected);
        let writing = [arguments(Some("bank__pay"), "{\"am"), arguments(None, "ount\"")];
        check(&writing, &[call(None, Incomplete("{\"amount\"".into()), false, None)]);
        check(&[started(ExecutedBy::Client)], &[call(CLIENT, Started, false, None)]);
        check(&[started(ExecutedBy::Worker), completed(false, None)], &[call(WORKER, Ended, true, None), end.clone()]);
        check(
            &[completed(true, Some(ToolError::new("no_such_tool", "")))],
            &[call(None, Ended, true, None), end.clone()],
        );
        check(&[asked()], &[call(WORKER, Asked, false, Some(None)), question(false)]);
        let denied =
            [asked(), resolved(ApprovalStatus::Denied, None), completed(true, Some(ToolError::new("denied", "")))];
        check(&denied, &[call(WORKER, Ended, false, Some(Some(false))), question(false), end.clone()]);
        let withdrawn = [asked(), resolved(ApprovalStatus::Cancelled, None)];
        check(&withdrawn, &[call(WORKER, Withdrawn, false, Some(Some(false))), question(false)]);
        let edited = [asked(), resolved(ApprovalStatus::Approved, Some(input())), started(ExecutedBy::Worker)];
        check(&edited, &[call(WORKER, Started, true, Some(Some(true))), question(true)]);
    }

    #[test]
    fn an_attempt_takes_back_what_came_after_its_base() {
        let mut earlier = PartsBuilder::default();
        for (n, body) in (2..).zip([step(), text("kept "), text("lost"), started(ExecutedBy::Worker)]) {
            earlier.push_body(EventId::new(1, n), 0, &body);
        }
        let base = EventId::new(1, 3);
        let begin =
            AttemptStarted { attempt: 2, base, reason: AttemptReason::LeaseExpired, crashes: 1, max_crashes: 3 };
        let begin = Event::new(EventId::first_of(2), DateTime::UNIX_EPOCH, &begin.into());
        let mut attempt = PartsBuilder::default();
        attempt.record(EventId::new(2, 2), 0, &text("new"));
        let parts = earlier.followed_by(&begin, attempt).into_parts(0);
        let expected = [MessagePart::Step, MessagePart::Text { chars: 5 }, MessagePart::Text { chars: 3 }];
        assert_eq!((parts.parts, parts.ended_ms), (expected.to_vec(), 0));
    }

    #[test]
    fn a_text_without_deltas_is_the_last_part() {
        let mut parts = MessageParts { ended_ms: 0, parts: parts_of(&[step(), text("ab")]) };
        parts.complete_text("ab");
        assert_eq!(parts.parts.len(), 2);
        parts.complete_text("abcü");
        assert_eq!(parts.parts[2], MessagePart::Text { chars: 2 });
    }

    #[test]
    fn no_part_has_what_a_database_refuses() {
        let parts = parts_of(&[reasoning("a\0"), arguments(Some("n"), "{\0")]);
        let stored = json!(MessageParts { ended_ms: 0, parts }.into_storable());
        assert!(!crate::storable::has_nul(&stored), "{stored}");
    }
}
