//! Starts stdio servers: chooses their user (`user`), and ends them when this process dies (`guard`).
//!
//! `stdio` starts one and speaks with it.

mod guard;
mod user;

use std::{
    env,
    path::{Path, PathBuf},
};

use holdfast_shared::config::{self, ToolsConfig};
use rustix::process::Pid;
use tokio::process::Command;

pub use guard::{GroupGuard, guard};

use guard::Guard;
use user::User;

/// Variables that a child inherits from the worker.
const INHERITED: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

/// Variables that a child with its own user does not inherit, because they name the worker's user.
const PERSONAL: [&str; 5] = ["HOME", "USER", "LOGNAME", "SHELL", "TMPDIR"];

/// Settings of all children of this process.
pub struct Children {
    user: Option<User>,
    guard: Guard,
}

impl Children {
    /// Chooses the user of the children. `program` is this executable, which is also the guard's; without it, only an
    /// orderly end of this process ends them. Fails if the configured user is unknown or not allowed.
    pub fn new(config: &ToolsConfig, program: Option<PathBuf>) -> Result<Self, config::Error> {
        Ok(Self { user: User::of(config.mcp_user.as_deref(), &config.mcp_home)?, guard: Guard::new(program) })
    }

    /// Returns the name of the children's user, or `None` if it is this process's user.
    pub fn user_name(&self) -> Option<&str> {
        self.user.as_ref().map(|user| user.name.as_str())
    }

    /// Sets the environment, the user and the folder of a child on its command. Without a folder of its definition, a child with
    /// its own user starts in its home, because it may not be able to read the worker's folder.
    pub fn prepare(&self, command: &mut Command, folder: Option<&Path>) {
        command.env_clear();
        let inherits = |name: &&&str| self.user.is_none() || !PERSONAL.contains(*name);
        command.envs(INHERITED.iter().filter(inherits).filter_map(|name| Some((name, env::var_os(name)?))));
        if let Some(user) = &self.user {
            command.uid(user.uid).gid(user.gid);
            command.env("HOME", user.home()).env("USER", &user.name).env("LOGNAME", &user.name);
        }
        let home = || self.user.as_ref().map(User::home);
        if let Some(folder) = folder.or_else(home) {
            command.current_dir(folder);
        }
    }

    /// Returns a guard of the group: the group is killed if this process dies before the guard is dropped.
    pub fn guard(&self, group: Pid) -> GroupGuard {
        self.guard.watch(group)
    }
}
