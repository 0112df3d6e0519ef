//! Keeps this process's memory and environment, which hold secrets, from other processes of its user.

/// Makes the kernel refuse `/proc/<pid>/environ`, `/proc/<pid>/mem` and debuggers to all but root. Core dumps go with it.
/// A program that this process starts is readable again, as its `exec` begins with a fresh memory.
#[cfg(target_os = "linux")]
pub fn hide_memory() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    // A kernel without it is older than any that this program runs on.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Other systems have no such switch.
#[cfg(not(target_os = "linux"))]
pub fn hide_memory() {}
