//! A process that outlives a killed worker for a moment, and kills the process groups that the worker has left.
//!
//! The worker reports each group over a pipe. The kernel closes the pipe with the worker, however the worker ends; the
//! guard then kills the remaining groups, and ends. A worker without stdio servers has no guard.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, BufRead, Write},
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard},
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Command;

/// The subcommand of this executable that runs the guard.
const ROLE: &str = "guard";

/// The worker's side.
#[derive(Clone)]
pub struct Guard(Option<Arc<GuardProcess>>);

struct GuardProcess {
    program: PathBuf,
    state: Mutex<GuardState>,
}

/// Invariant: a running guard knows exactly the living groups.
#[derive(Default)]
struct GuardState {
    living: BTreeSet<i32>,
    /// The guard's standard input; `None` while there is nothing to guard.
    pipe: Option<File>,
}

/// A group that is killed if this process dies before this is dropped.
pub struct GroupGuard {
    guard: Guard,
    group: Pid,
}

impl Guard {
    pub fn new(program: Option<PathBuf>) -> Self {
        Self(program.map(|program| Arc::new(GuardProcess { program, state: Mutex::default() })))
    }

    /// Registers the group, which is then killed if this process dies.
    pub fn watch(&self, group: Pid) -> GroupGuard {
        if let Some(process) = &self.0 {
            process.add(group.as_raw_nonzero().get());
        }
        GroupGuard { guard: self.clone(), group }
    }
}

impl Drop for GroupGuard {
    fn drop(&mut self) {
        if let Some(process) = &self.guard.0 {
            process.remove(self.group.as_raw_nonzero().get());
        }
    }
}

impl GuardProcess {
    fn add(&self, group: i32) {
        let mut state = self.state();
        state.living.insert(group);
        let sent = state.pipe.as_mut().is_some_and(|pipe| send(pipe, '+', group).is_ok());
        if !sent && let Err(error) = self.start(&mut state) {
            tracing::warn!(%error, "failed to start the guard; MCP servers may outlive this process if it is killed");
        }
    }

    fn remove(&self, group: i32) {
        let mut state = self.state();
        state.living.remove(&group);
        if state.living.is_empty() {
            state.pipe = None;
        } else if let Some(pipe) = &mut state.pipe {
            // A dead guard is noticed and replaced with the next group.
            let _ = send(pipe, '-', group);
        }
    }

    /// Starts a guard and reports all living groups to it.
    fn start(&self, state: &mut GuardState) -> io::Result<()> {
        state.pipe = None;
        let mut command = Command::new(&self.program);
        command.arg(ROLE).env_clear().stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // In its own process group, because Ctrl-C ends the worker's group. The runtime reaps the guard after its end.
        let mut guard = command.process_group(0).spawn()?;
        let input = guard.stdin.take().ok_or_else(|| io::Error::other("the guard has no pipe"))?;
        let mut pipe = File::from(input.into_owned_fd()?);
        for group in &state.living {
            send(&mut pipe, '+', *group)?;
        }
        state.pipe = Some(pipe);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, GuardState> {
        self.state.lock().expect("no thread panics with this lock")
    }
}

fn send(pipe: &mut File, what: char, group: i32) -> io::Result<()> {
    pipe.write_all(format!("{what}{group}\n").as_bytes())
}

/// The guard's side: reads standard input to its end, and then kills the remaining groups.
pub fn guard() {
    for group in living_at_the_end(io::stdin().lock()) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

fn living_at_the_end(input: impl BufRead) -> Vec<Pid> {
    let mut living = BTreeSet::new();
    for line in input.lines().map_while(Result::ok) {
        match (line.get(..1), line.get(1..).and_then(|group| group.parse::<i32>().ok())) {
            (Some("+"), Some(group)) => drop(living.insert(group)),
            (Some("-"), Some(group)) => drop(living.remove(&group)),
            _ => {}
        }
    }
    // Invariant: never the group 1, nor a negative number, which has another meaning.
    living.into_iter().filter(|group| *group > 1).filter_map(Pid::from_raw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_kills_groups_that_were_added_and_not_removed() {
        let check = |input: &str, expected: &[i32]| {
            let found: Vec<i32> =
                living_at_the_end(input.as_bytes()).iter().map(|pid| pid.as_raw_nonzero().get()).collect();
            assert_eq!(found, expected, "{input:?}");
        };
        check("", &[]);
        check("+40\n+30\n", &[30, 40]);
        check("+40\n+30\n-40\n", &[30]);
        check("+1\n+0\n+-5\n+x\n\nnoise\n+7", &[7]);
    }
}
