//! promtool, which checks metrics and rules of Prometheus.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Runs promtool in the repository with this standard input. Returns its output; as an error, if promtool fails.
pub fn promtool(args: &[&str], input: &str) -> Result<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let own = root.join("target/promtool/usr/bin/promtool");
    let program = if own.exists() { own } else { PathBuf::from("promtool") };
    let mut command = Command::new(program);
    command.args(args).current_dir(root).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}; ./check says what is needed"));
    let mut stdin = child.stdin.take().expect("its standard input is a pipe");
    std::io::Write::write_all(&mut stdin, input.as_bytes()).expect("it reads its standard input");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    // The findings of its linter are only warnings.
    if output.status.success() { Ok(text) } else { Err(text) }
}
