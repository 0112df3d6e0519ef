//! A child process that ends when this process ends, even when this process is killed: a shell waits at the other end of
//! a pipe, and ends the child when the pipe is closed.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

pub struct Supervised {
    shell: Child,
    pid: u32,
}

/// `$0` is the file for the pid, `$1` the signal that ends the child.
const SUPERVISE: &str = r#"signal=$1; shift; "$@" & child=$!; echo $child > "$0.part"; mv "$0.part" "$0"; read -r _; kill -"$signal" $child; wait $child"#;

impl Supervised {
    /// Starts a program whose output goes to `log`.
    pub fn start(command: &[String], signal: &str, folder: &Path, log: &Path) -> Self {
        let pid_file = folder.join("supervised.pid");
        let _ = fs::remove_file(&pid_file);
        let log = fs::File::create(log).expect("a log file can be made in the temporary folder");
        let shell = Command::new("sh")
            .args(["-c", SUPERVISE])
            .arg(&pid_file)
            .arg(signal)
            .args(command)
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a file handle can be copied"))
            .stderr(log)
            .spawn()
            .expect("there is a shell");
        let pid = loop {
            match fs::read_to_string(&pid_file).ok().and_then(|pid| pid.trim().parse().ok()) {
                Some(pid) => break pid,
                None => std::thread::yield_now(),
            }
        };
        Self { shell, pid }
    }

    /// Sends a signal to the child, such as `KILL`.
    pub fn signal(&self, signal: &str) {
        let _ = Command::new("kill").args([&format!("-{signal}"), &self.pid.to_string()]).status();
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
