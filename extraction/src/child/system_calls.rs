//! The system calls that the child may make: those for its memory, its two pipes, the time and its own end.
//!
//! Each other one fails with EPERM. So a reader that a hostile file has taken over starts no program and no thread,
//! signals and traces no process, opens no file and no socket, and makes no memory executable.

use std::{collections::BTreeMap, env::consts::ARCH, process};

use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter_all_threads,
};

/// Calls that may have any arguments.
const ALLOWED: &[i64] = &[
    // The pipes that are open.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_lseek,
    // Memory.
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    // Threads that have started.
    libc::SYS_futex,
    libc::SYS_getcpu,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    // Signals, of which an overflow of the stack is one.
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    // Time and chance.
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_getrandom,
    libc::SYS_nanosleep,
    // The end.
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Restricts all threads of this process; no later code can take it back.
pub fn restrict() -> Result<(), Error> {
    apply_filter_all_threads(&program()?)
}

fn program() -> Result<BpfProgram, Error> {
    let any = |call: &i64| (*call, Vec::new());
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = ALLOWED.iter().map(any).collect();
    // The third argument has the protection of the memory.
    let not_executable = only_if(2, SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64), 0)?;
    rules.insert(libc::SYS_mmap, vec![not_executable.clone()]);
    rules.insert(libc::SYS_mprotect, vec![not_executable]);
    // An abort signals its own process.
    rules.insert(libc::SYS_tgkill, vec![only_if(0, SeccompCmpOp::Eq, u64::from(process::id()))?]);
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, refused, SeccompAction::Allow, TargetArch::try_from(ARCH)?)?;
    Ok(filter.try_into()?)
}

/// Returns the rule that an argument compares with a value.
fn only_if(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, Error> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?;
    Ok(SeccompRule::new(vec![condition])?)
}

#[cfg(test)]
mod tests {
    use std::{
        env,
        fs::{self, File},
        io,
        net::{TcpListener, UdpSocket},
        os::unix::{net::UnixDatagram, process::CommandExt},
        process::{Command, Stdio},
        thread,
    };

    use rustix::process::{Signal, getppid, kill_process};

    use super::*;

    const TEST: &str = "child::system_calls::tests::a_restricted_process_starts_opens_and_signals_nothing";

    /// Makes the process of a test the restricted one.
    const RESTRICTED: &str = "RESTRICTED";

    #[test]
    fn a_restricted_process_starts_opens_and_signals_nothing() {
        if env::var_os(RESTRICTED).is_some() {
            process::exit(try_all());
        }
        let mut command = Command::new(env::current_exe().unwrap());
        let output = command.args(["--exact", TEST, "--nocapture"]).env(RESTRICTED, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains("9 calls were refused"), "{said}");
    }

    /// Tries what is refused, in a process that is restricted. Returns the code for its end.
    fn try_all() -> i32 {
        let parent = getppid().unwrap();
        let file = env::temp_dir().join(format!("restricted-{}", process::id()));
        restrict().unwrap();
        let tries: [(&str, io::Result<()>); 9] = [
            ("open a file", File::open("/dev/null").map(drop)),
            ("write a file", fs::write(&file, "a")),
            ("remove a file", fs::remove_file(&file)),
            ("listen", TcpListener::bind("127.0.0.1:0").map(drop)),
            ("send", UdpSocket::bind("127.0.0.1:0").map(drop)),
            ("make a pair of sockets", UnixDatagram::pair().map(drop)),
            ("signal the parent", kill_process(parent, Signal::URG).map_err(io::Error::from)),
            ("start a thread", thread::Builder::new().spawn(|| ()).map(drop)),
            // It returns only if it fails.
            ("execute a program", Err(Command::new("/bin/true").stdin(Stdio::inherit()).exec())),
        ];
        let is_refused =
            |tried: &io::Result<()>| tried.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EPERM));
        for (what, tried) in tries.iter().filter(|(_, tried)| !is_refused(tried)) {
            println!("failed to refuse to {what}: {tried:?}");
        }
        let refused = tries.iter().filter(|(_, tried)| is_refused(tried)).count();
        println!("{refused} calls were refused");
        i32::from(refused < tries.len())
    }
}
