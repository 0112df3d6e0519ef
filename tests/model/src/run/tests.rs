//! The protocol keeps its promises, and each rule is needed.

use super::{Faults, Rules, RunModel};
use crate::check::{holds, needed};

fn with(faults: Faults) -> RunModel {
    RunModel { faults, ..RunModel::default() }
}

fn without(remove: impl FnOnce(&mut Rules), faults: Faults) -> RunModel {
    let mut model = with(faults);
    remove(&mut model.rules);
    model
}

#[test]
fn a_run_survives_workers_that_die_and_that_wake_up_again() {
    holds(with(Faults { kills: 1, freezes: 1, ..Faults::default() }));
    holds(with(Faults { freezes: 1, lost_appends: 1, ..Faults::default() }));
}

#[test]
fn a_run_survives_the_loss_of_its_log() {
    holds(with(Faults { log_losses: 1, freezes: 1, ..Faults::default() }));
    holds(with(Faults { log_losses: 2, lost_appends: 1, ..Faults::default() }));
}

#[test]
fn a_run_survives_lost_answers_of_the_database() {
    holds(with(Faults { lost_commits: 2, ..Faults::default() }));
    holds(with(Faults { lost_commits: 1, kills: 1, ..Faults::default() }));
    holds(with(Faults { lost_commits: 1, freezes: 1, ..Faults::default() }));
}

#[test]
fn a_run_survives_drains_and_cancels() {
    holds(with(Faults { drains: 1, cancels: 1, ..Faults::default() }));
    holds(with(Faults { cancels: 1, freezes: 1, ..Faults::default() }));
    holds(with(Faults { cancels: 1, lost_commits: 1, log_losses: 1, ..Faults::default() }));
}

#[test]
fn a_run_that_kills_its_workers_at_once_ends() {
    holds(with(Faults { is_deadly: true, lost_commits: 1, ..Faults::default() }));
}

const NONE: Faults = Faults {
    kills: 0,
    freezes: 0,
    log_losses: 0,
    lost_commits: 0,
    lost_appends: 0,
    drains: 0,
    cancels: 0,
    is_deadly: false,
};

needed! { without;
    attempts_fence_the_database: "a client's text is the stored message", Faults { freezes: 1, ..NONE };
    every_writer_takes_an_attempt: "an id has one content", Faults { cancels: 1, ..NONE };
    ends_are_committed_first: "a visible end is the only one and is committed", NONE;
    intents_are_committed_first: "only a human repeats a call", Faults { kills: 1, ..NONE };
    writes_find_their_own_work: "only a death is charged", Faults { lost_commits: 1, ..NONE };
    leaves_check_cancels: "a cancelled run does not wait", Faults { kills: 1, cancels: 1, ..NONE };
    answers_move_the_checkpoint: "a client's text is the stored message", Faults { kills: 1, ..NONE };
    gaps_are_flushed_first: "an appended event reaches every cursor", Faults { log_losses: 1, ..NONE };
    clients_check_bases: "a client's text is the stored message", Faults { freezes: 1, log_losses: 1, ..NONE };
    claims_archive_their_start: "a client's text is the stored message", Faults { drains: 1, cancels: 1, ..NONE };
    claim_marks_execution: "a deadly run ends", Faults { is_deadly: true, ..NONE };
    unknown_claims_are_free: "only a death is charged", Faults { lost_commits: 1, ..NONE };
}
