//! The statements of the protocol, and the fenced writes that combine them.

use super::{
    accept, added, ancestor, answer, attempt, attempt_start, begin, blocked, cancel, children, chunk, closing,
    completion, deaths, delayed, due_summary, durable, edit_plan, end, expire, flush, forwarded, ingestion, lease,
    locked_conversation, opening, orphans, outcomes, plain_flush, planning, progress, queued, release, retire,
    steering, submit, summary, supersede, suspects, sweep, take, tree, unfinished,
};
use crate::storage::sql::{FencedTexts, Sql};

/// The statements of each step.
pub const STATEMENTS: &[&[Sql]] = &[
    accept::STATEMENTS,
    added::STATEMENTS,
    ancestor::STATEMENTS,
    answer::STATEMENTS,
    attempt::STATEMENTS,
    attempt_start::STATEMENTS,
    begin::STATEMENTS,
    blocked::STATEMENTS,
    cancel::STATEMENTS,
    children::STATEMENTS,
    chunk::STATEMENTS,
    take::STATEMENTS,
    closing::STATEMENTS,
    completion::STATEMENTS,
    deaths::STATEMENTS,
    delayed::STATEMENTS,
    due_summary::STATEMENTS,
    durable::STATEMENTS,
    edit_plan::STATEMENTS,
    end::STATEMENTS,
    expire::STATEMENTS,
    flush::STATEMENTS,
    forwarded::STATEMENTS,
    ingestion::STATEMENTS,
    lease::STATEMENTS,
    locked_conversation::STATEMENTS,
    opening::STATEMENTS,
    orphans::STATEMENTS,
    outcomes::STATEMENTS,
    plain_flush::STATEMENTS,
    planning::STATEMENTS,
    progress::STATEMENTS,
    queued::STATEMENTS,
    release::STATEMENTS,
    retire::STATEMENTS,
    steering::STATEMENTS,
    submit::STATEMENTS,
    summary::STATEMENTS,
    supersede::STATEMENTS,
    suspects::STATEMENTS,
    sweep::STATEMENTS,
    tree::STATEMENTS,
    unfinished::STATEMENTS,
];

/// The writes of a claim.
const STARTS: &[Sql] = &[attempt_start::INSERT_STARTS];

/// The writes of a chunk of events.
const CHUNK: &[Sql] = &[
    chunk::INSERT_EVENTS,
    progress::INSERT_MESSAGES,
    progress::UPSERT_CALLS,
    progress::USE_FILES,
    progress::INSERT_APPROVALS,
    progress::INSERT_PASSAGES,
    children::INSERT_CONVERSATIONS,
    children::INSERT_RUNS,
    children::INSERT_MESSAGES,
    children::INSERT_FIRST_EVENTS,
    steering::INSERT_JOINED_EVENTS,
    steering::END_JOINED_RUNS,
    steering::MOVE_MESSAGES,
    planning::UPSERT_PLANS,
    planning::DROP_STEPS,
    planning::UPSERT_STEPS,
    planning::INSERT_ROLES,
    planning::DROP_EDITS,
    planning::TAKE_EDITS,
    due_summary::NOTE_DUE,
    progress::INSERT_CHECKPOINTS,
];

/// The statements of each fenced write.
pub const FENCED: &[FencedTexts] = &[
    FencedTexts {
        before: &[],
        fence: accept::INSERT_RUN,
        writes: &[accept::INSERT_MESSAGE, accept::USE_FILES, chunk::INSERT_EVENTS],
    },
    FencedTexts {
        before: &[],
        fence: locked_conversation::CREATE,
        writes: &[accept::INSERT_FIRST_RUN, accept::INSERT_FIRST_MESSAGE, accept::USE_FILES, chunk::INSERT_EVENTS],
    },
    FencedTexts {
        before: &[("opening", opening::OPENING), ("owner", opening::OWNER)],
        fence: opening::INSERT_CONVERSATIONS,
        writes: &[opening::INSERT_RUNS, opening::INSERT_MESSAGES, opening::INSERT_FIRST_EVENTS],
    },
    FencedTexts { before: &[], fence: take::TAKE_EXPIRED, writes: STARTS },
    FencedTexts { before: &[], fence: queued::TAKE_QUEUED, writes: STARTS },
    FencedTexts { before: &[], fence: suspects::TAKE_SUSPECTS, writes: STARTS },
    FencedTexts { before: &[], fence: flush::EXTEND, writes: CHUNK },
    FencedTexts {
        before: &[("flushed", plain_flush::FLUSHED)],
        fence: plain_flush::EXTEND_ALL,
        writes: &[chunk::INSERT_CHUNKS],
    },
    FencedTexts { before: &[], fence: release::RELEASE, writes: CHUNK },
    FencedTexts { before: &[], fence: closing::END, writes: CHUNK },
    FencedTexts {
        before: &[
            ("ending", completion::ENDING),
            ("free", completion::FREE),
            ("counted", completion::COUNTED),
            ("completed", completion::COMPLETE),
        ],
        fence: completion::ENDED,
        writes: &[
            completion::INSERT_ANSWERS,
            chunk::INSERT_CHUNKS,
            progress::INSERT_MESSAGES,
            progress::UPSERT_CALLS,
            progress::USE_FILES,
            progress::INSERT_APPROVALS,
            progress::INSERT_PASSAGES,
            due_summary::NOTE_DUE,
            progress::INSERT_CHECKPOINTS,
        ],
    },
    FencedTexts { before: &[], fence: answer::RESUME, writes: &[chunk::INSERT_EVENTS] },
    FencedTexts { before: &[], fence: ancestor::ANSWER, writes: &[chunk::INSERT_EVENTS] },
];

/// The spare writes, which storage repeats without their fence.
pub const SPARE: &[Sql] = &[progress::INSERT_CHECKPOINTS];
