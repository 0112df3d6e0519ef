//! The limits that the child sets for itself, before it reads a byte of a foreign file.
//!
//! A reader that a hostile file has taken over finds an empty environment, no foreign descriptor, few system calls, and a
//! memory and a time that end. It yields the cores to the server, and it dies first when the machine has no memory left.

use std::{fs, io};

use rustix::process::{Resource, Rlimit, getpriority_process, setpriority_process, setrlimit};

use crate::{error::ExtractionError, limits::ExtractionLimits};

/// The last descriptor of a child: standard error.
const LAST_DESCRIPTOR: i32 = 2;

/// Sets the limits of this process; no later code can raise them.
pub fn confine(limits: &ExtractionLimits, nice: i32) -> Result<(), ExtractionError> {
    let failed = |what: &str, error: io::Error| {
        ExtractionError::ReaderNotStarted(format!("it failed to limit its {what}: {error}"))
    };
    close_inherited().map_err(|error| failed("descriptors", error))?;
    #[cfg(target_os = "linux")]
    die_first().map_err(|error| failed("claim to memory", error))?;
    yield_cores(nice).map_err(|error| failed("priority", error))?;
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

/// Closes all descriptors but the three standard ones: the worker may have others without the flag that closes them.
fn close_inherited() -> io::Result<()> {
    let folder = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
    let mut inherited: Vec<i32> = Vec::new();
    for entry in fs::read_dir(folder)? {
        inherited.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    for descriptor in inherited.into_iter().filter(|descriptor| *descriptor > LAST_DESCRIPTOR) {
        // The folder's own descriptor is closed already, so its number is unknown by now.
        let _ = nix::unistd::close(descriptor);
    }
    Ok(())
}

/// Lets the kernel end this process before any other when memory runs out.
#[cfg(target_os = "linux")]
fn die_first() -> io::Result<()> {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    // The switch that hides the memory also gives the file to root. This process holds no secret, and no document yet.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    let written = fs::write("/proc/self/oom_score_adj", "1000");
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    written
}

/// Gives way to processes of a lower nice value. On Linux, this is the value of the calling thread, which is the reader.
fn yield_cores(nice: i32) -> io::Result<()> {
    // Only root may lower it.
    let nice = nice.max(getpriority_process(None)?);
    Ok(setpriority_process(None, nice)?)
}

/// Returns the size of this process's address space: the executable and the stacks, which are not the document's.
fn own_size() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    Ok(kib.ok_or_else(|| io::Error::other("/proc/self/status has no size"))?.saturating_mul(1024))
}
