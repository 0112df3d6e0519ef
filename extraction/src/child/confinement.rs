//! The limits that the child sets for itself, before it reads a byte of a foreign file.
//!
//! A reader that a hostile file has taken over finds an empty environment, few system calls, and a memory and a time
//! that end.

use std::{fs, io};

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::{error::ExtractionError, limits::ExtractionLimits};

/// Sets the limits of this process; no later code can raise them.
pub fn confine(limits: &ExtractionLimits) -> Result<(), ExtractionError> {
    let failed = |what: &str, error: io::Error| {
        ExtractionError::ReaderNotStarted(format!("it failed to limit its {what}: {error}"))
    };
    let size = own_size().map_err(|error| failed("memory", error))?;
    let memory = size.saturating_add(limits.memory_bytes);
    let seconds = limits.seconds();
    // The soft limit of the time comes first, because its signal says which limit it was.
    let bounds = [
        ("memory", Resource::As, memory, memory),
        ("time", Resource::Cpu, seconds, seconds.saturating_add(1)),
        ("core dumps", Resource::Core, 0, 0),
        ("written files", Resource::Fsize, 0, 0),
        ("processes", Resource::Nproc, 0, 0),
        // Standard input and output stay open, and no other file or socket can be opened.
        ("open files", Resource::Nofile, 0, 0),
    ];
    for (what, resource, soft, hard) in bounds {
        let limit = Rlimit { current: Some(soft), maximum: Some(hard) };
        setrlimit(resource, limit).map_err(|error| failed(what, error.into()))?;
    }
    // Order matters: the limits above need calls that are refused from here on.
    #[cfg(target_os = "linux")]
    super::system_calls::restrict().map_err(|error| failed("system calls", io::Error::other(error)))?;
    Ok(())
}

/// Returns the size of this process's address space: the executable and the stacks, which are not the document's.
fn own_size() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    Ok(kib.ok_or_else(|| io::Error::other("/proc/self/status has no size"))?.saturating_mul(1024))
}
