//! A child process that ends with this process, even if this process is killed. A shell waits at the other end of a pipe. When
//! it reads a line, it ends the child. When the pipe closes without a line, this process has ended before the child was
//! dropped, so the shell also removes the child's folder.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

pub struct SupervisedChild {
    shell: Child,
    pid: u32,
    /// The file with the child's output.
    log: PathBuf,
}

/// `$0` is the child's folder, `$1` the signal that ends the child.
const SUPERVISE: &str = r#"
trap '' INT
signal=$1; shift
"$@" & child=$!
echo $child > "$0/pid.part"; mv "$0/pid.part" "$0/supervised.pid"
if read -r _; then was_dropped=yes; fi
kill -"$signal" $child
# A stopped process handles the signal only after CONT.
kill -CONT $child 2>/dev/null
wait $child
[ "$was_dropped" ] || rm -rf "$0"
"#;

impl SupervisedChild {
    /// Starts a program whose output goes to `log`. The folder must belong to the program alone.
    pub fn start(command: &[String], signal: &str, folder: &Path, log: &Path) -> Self {
        let pid_file = folder.join("supervised.pid");
        let _ = fs::remove_file(&pid_file);
        let output = fs::File::create(log).expect("a log file can be made in the temporary folder");
        let shell = Command::new("sh")
            .args(["-c", SUPERVISE])
            .arg(folder)
            .arg(signal)
            .args(command)
            .stdin(Stdio::piped())
            .stdout(output.try_clone().expect("a file handle can be copied"))
            .stderr(output)
            .spawn()
            .expect("there is a shell");
        let pid = loop {
            match fs::read_to_string(&pid_file).ok().and_then(|pid| pid.trim().parse().ok()) {
                Some(pid) => break pid,
                None => pause(),
            }
        };
        Self { shell, pid, log: log.to_owned() }
    }

    /// Polls until the child is ready. Panics with the child's output if the child ends before.
    pub fn wait_until(&self, mut is_ready: impl FnMut() -> bool) {
        while !is_ready() {
            if !self.runs() {
                let output = fs::read_to_string(&self.log).unwrap_or_default();
                panic!("the program ended before it was ready: {output}");
            }
            pause();
        }
    }

    /// Returns whether the child runs. A child that has ended is a zombie until the shell waits for it.
    fn runs(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        // The state follows the name, which is in parentheses and may contain spaces.
        stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
    }

    /// Sends a signal to the child, such as `KILL`.
    pub fn signal(&self, signal: &str) {
        let _ = Command::new("kill").args([&format!("-{signal}"), &self.pid.to_string()]).status();
    }
}

/// Waits before the next poll. A loop without a pause would take the core that the child needs for its start.
pub(crate) fn pause() {
    std::thread::sleep(Duration::from_millis(2));
}

impl Drop for SupervisedChild {
    fn drop(&mut self) {
        if let Some(mut word) = self.shell.stdin.take() {
            let _ = word.write_all(b"end\n");
        }
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(folder: &Path) -> SupervisedChild {
        SupervisedChild::start(&["sleep".into(), "1000".into()], "TERM", folder, &folder.join("sleep.log"))
    }

    fn runs(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}")).exists()
    }

    #[test]
    fn a_program_that_is_dropped_ends_and_its_folder_stays() {
        let folder = tempfile::tempdir().unwrap();
        let sleeper = sleeper(folder.path());
        let pid = sleeper.pid;
        assert!(runs(pid));
        drop(sleeper);
        assert!(!runs(pid));
        assert!(folder.path().join("sleep.log").exists());
    }

    #[test]
    #[should_panic(expected = "no-such-program")]
    fn waiting_for_a_program_that_cannot_start_fails_with_its_output() {
        let folder = tempfile::tempdir().unwrap();
        let command = ["no-such-program".to_owned()];
        let missing = SupervisedChild::start(&command, "TERM", folder.path(), &folder.path().join("missing.log"));
        missing.wait_until(|| false);
    }

    #[test]
    fn a_program_whose_starter_has_died_ends_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut sleeper = sleeper(folder.path());
        // The system closes the pipe of a killed process in this way.
        drop(sleeper.shell.stdin.take());
        sleeper.shell.wait().unwrap();
        assert!(!runs(sleeper.pid));
        assert!(!folder.path().exists());
    }
}
