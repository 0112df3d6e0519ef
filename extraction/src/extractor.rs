//! The parent's side: starts a child for each document, feeds it, bounds it, and explains its end.

use std::{
    fmt::Display,
    future::Future,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use rustix::process::Signal;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin, Command},
    time::{Instant, timeout},
};

use crate::{
    child,
    document::DocumentText,
    error::{ExtractFailure, ExtractionError},
    format::is_supported,
    frame,
    limits::ExtractionLimits,
};

/// Bytes of the child's standard error that are kept: the runtime's last words are short.
const LAST_WORDS: u64 = 4096;

/// The nice value of children, unless the extractor has another one: they get the time that no other process wants.
const NICE: i32 = 19;

/// How many times the time of a child on a core may pass while other processes have the cores.
const PATIENCE: u32 = 4;

/// The allocator reserves 1 GiB at the start of a process, which the child could use beyond its limit of memory.
const ALLOCATOR: (&str, &str) = ("MIMALLOC_ARENA_RESERVE", "32M");

/// Extracts texts of documents, each in a child process of its own.
#[derive(Debug, Clone)]
pub struct Extractor {
    /// The executable that has the role of the child; `None` if this process does not know its own.
    program: Option<PathBuf>,
    limits: ExtractionLimits,
    /// The nice value of the children.
    nice: i32,
    /// How many times a child's time may pass before it has used all of it.
    patience: u32,
}

impl Extractor {
    /// Returns an extractor whose children are this executable in another role.
    pub fn new(limits: ExtractionLimits) -> Self {
        Self { program: std::env::current_exe().ok(), limits, nice: NICE, patience: 1 }
    }

    /// Returns an extractor whose children are another executable.
    pub fn with_program(program: impl Into<PathBuf>, limits: ExtractionLimits) -> Self {
        Self { program: Some(program.into()), limits, nice: NICE, patience: 1 }
    }

    /// Returns this extractor with less time for each document, if its own is longer.
    #[must_use]
    pub fn within(&self, time: Duration) -> Self {
        let limits = ExtractionLimits { time: self.limits.time.min(time), ..self.limits };
        Self { limits, ..self.clone() }
    }

    /// Returns this extractor with another nice value for its children, unless the server's own is higher.
    #[must_use]
    pub fn niced(&self, nice: i32) -> Self {
        Self { nice, ..self.clone() }
    }

    /// Returns this extractor for a machine without free cores: the time of a document is that of its child on a core, and up to
    /// four times as much may pass.
    #[must_use]
    pub fn patient(&self) -> Self {
        Self { patience: PATIENCE, ..self.clone() }
    }

    /// Returns the text of a document. Its contents are only passed on, so no document is in this process's memory. The
    /// child dies with the returned future.
    pub async fn extract<E: Display>(
        &self,
        media_type: &str,
        contents: impl Stream<Item = Result<Bytes, E>> + Unpin,
    ) -> Result<DocumentText, ExtractFailure<E>> {
        if !is_supported(media_type) {
            return Err(ExtractionError::UnsupportedFormat(media_type.to_owned()).into());
        }
        let mut child = self.start(media_type)?;
        let input = child.stdin.take().ok_or_else(|| not_started("it has no input"))?;
        let mut allowance = Allowance { left: self.limits.time.saturating_mul(self.patience), limits: self.limits };
        feed(input, contents, &mut allowance).await?;
        let output = allowance.spend(output_of(&mut child, &self.limits)).await??;
        Ok(self.explain(output)?)
    }

    fn start(&self, media_type: &str) -> Result<Child, ExtractionError> {
        let program = self.program.as_ref().ok_or_else(|| not_started("the executable has no path"))?;
        let mut command = Command::new(program);
        command
            .arg(child::ROLE)
            .args(child::arguments(media_type, self.nice, self.limits))
            .env_clear()
            .env(ALLOCATOR.0, ALLOCATOR.1);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true).spawn().map_err(not_started)
    }

    /// Returns the child's answer, or the reason why it has none.
    fn explain(&self, output: ChildOutput) -> Result<DocumentText, ExtractionError> {
        let ChildOutput { status, answer, last_words } = output;
        if status.success() {
            return frame::decode(answer).unwrap_or_else(|| Err(failed("its answer is not valid")));
        }
        let is_signal = |signal: Signal| status.signal() == Some(signal.as_raw());
        if is_signal(Signal::XCPU) {
            return Err(self.timed_out());
        }
        // The runtime of Rust says so before it aborts.
        if last_words.contains("memory allocation of") {
            return Err(ExtractionError::ExtractionOutOfMemory(self.limits.memory_mib()));
        }
        let is_crash = [Signal::ABORT, Signal::SEGV, Signal::BUS, Signal::ILL].into_iter().any(is_signal);
        Err(if is_crash { ExtractionError::malformed("its structure is too deep") } else { failed(status) })
    }

    const fn timed_out(&self) -> ExtractionError {
        ExtractionError::ExtractionTimedOut(self.limits.seconds())
    }
}

/// The time that is left for a document.
struct Allowance {
    left: Duration,
    limits: ExtractionLimits,
}

impl Allowance {
    /// Executes the work within the time that is left, and takes its time from it.
    async fn spend<T>(&mut self, work: impl Future<Output = T>) -> Result<T, ExtractionError> {
        let started = Instant::now();
        let done = timeout(self.left, work).await;
        self.left = self.left.saturating_sub(started.elapsed());
        done.map_err(|_| ExtractionError::ExtractionTimedOut(self.limits.seconds()))
    }
}

/// Writes the contents to the child. The time in which they arrive does not count.
async fn feed<E: Display>(
    mut input: ChildStdin,
    mut contents: impl Stream<Item = Result<Bytes, E>> + Unpin,
    allowance: &mut Allowance,
) -> Result<(), ExtractFailure<E>> {
    while let Some(part) = contents.next().await {
        let part = part.map_err(ExtractFailure::Contents)?;
        if allowance.spend(input.write_all(&part)).await?.is_err() {
            // The child has ended or wants no more; its answer says why.
            break;
        }
    }
    Ok(())
}

/// The child's last signs.
struct ChildOutput {
    status: ExitStatus,
    answer: Vec<u8>,
    last_words: String,
}

async fn output_of(child: &mut Child, limits: &ExtractionLimits) -> Result<ChildOutput, ExtractionError> {
    let (Some(output), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(not_started("it has no output"));
    };
    let longest = frame::longest(limits);
    let read = tokio::try_join!(read_at_most(output, longest), read_at_most(errors, LAST_WORDS));
    let (answer, last_words) = read.map_err(failed)?;
    let status = child.wait().await.map_err(failed)?;
    Ok(ChildOutput { status, answer, last_words: String::from_utf8_lossy(&last_words).into_owned() })
}

/// Reads to the end or to the most, and closes the pipe then.
async fn read_at_most(pipe: impl AsyncRead + Unpin, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.take(most).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

fn failed(reason: impl Display) -> ExtractionError {
    ExtractionError::ExtractionFailed(reason.to_string())
}

fn not_started(reason: impl Display) -> ExtractionError {
    ExtractionError::ReaderNotStarted(reason.to_string())
}
