//! How stdio servers are started: as which user (`user`), and what ends them when this process dies (`guard`).
//!
//! `stdio` starts one and speaks with it.

mod guard;
mod user;

use std::{env, path::PathBuf};

use holdfast_shared::config::{self, ToolsConfig};
use rustix::process::Pid;
use tokio::process::Command;

pub use guard::{GroupGuard, guard};

use guard::Guard;
use user::User;

/// Variables that a child takes over from the worker.
const INHERITED: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

/// Variables that a child with a user of its own does not take over: they name the worker's user.
const PERSONAL: [&str; 5] = ["HOME", "USER", "LOGNAME", "SHELL", "TMPDIR"];

/// What all children of this process have in common.
pub struct Children {
    user: Option<User>,
    guard: Guard,
}

impl Children {
    /// Decides who the children are. `program` is this executable, which also plays the guard; without it, only an orderly
    /// end of this process ends them.
    pub fn new(config: &ToolsConfig, program: Option<PathBuf>) -> Result<Self, config::Error> {
        Ok(Self { user: User::of(config.mcp_user.as_deref())?, guard: Guard::new(program) })
    }

    /// The user of the children; `None` if it is this process's own.
    pub fn user_name(&self) -> Option<&str> {
        self.user.as_ref().map(|user| user.name.as_str())
    }

    /// Gives a command the environment and the user of a child.
    pub fn prepare(&self, command: &mut Command) {
        command.env_clear();
        let inherits = |name: &&&str| self.user.is_none() || !PERSONAL.contains(*name);
        command.envs(INHERITED.iter().filter(inherits).filter_map(|name| Some((name, env::var_os(name)?))));
        if let Some(user) = &self.user {
            command.uid(user.uid).gid(user.gid);
            command.env("HOME", user.home()).env("USER", &user.name).env("LOGNAME", &user.name);
        }
    }

    /// Has the group killed when this process dies, until the answer is dropped.
    pub fn guard(&self, group: Pid) -> GroupGuard {
        self.guard.watch(group)
    }
}
