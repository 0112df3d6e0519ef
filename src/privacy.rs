//! Hides this process's memory and environment, which hold secrets, from other processes of its user.

/// Makes the kernel refuse `/proc/<pid>/environ`, `/proc/<pid>/mem` and debuggers to all but root. The kernel also writes no
/// core dumps. A program that this process starts is readable again, because `exec` resets the switch.
#[cfg(target_os = "linux")]
pub fn hide_memory() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    // Every kernel that this program runs on has the switch.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Other systems have no such switch.
#[cfg(not(target_os = "linux"))]
pub fn hide_memory() {}
