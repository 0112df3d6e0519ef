//! The child's side: it limits itself, reads the document from standard input, and writes the answer to standard
//! output.

mod confinement;
#[cfg(target_os = "linux")]
mod system_calls;

use std::{
    io::{self, Write},
    panic,
    process::ExitCode,
    thread,
};

use crate::{document::DocumentText, error::ExtractionError, frame, limits::ExtractionLimits, readers};

/// The subcommand of the executable that is the child.
pub const ROLE: &str = "extract-document";

/// Stack for readers that recurse with the nesting of a document. Its pages count only once they are used.
const STACK: usize = 64 * 1024 * 1024;

/// Returns the arguments after the subcommand, which `extract_in_child` reads.
pub fn arguments(media_type: &str, nice: i32, limits: ExtractionLimits) -> Vec<String> {
    let mut arguments = vec![media_type.to_owned(), nice.to_string()];
    arguments.extend(limits.to_arguments());
    arguments
}

/// Extracts the document on standard input and writes the answer to standard output. `arguments` are those after the
/// subcommand: the media type, the nice value and the limits, which this process sets for itself first.
pub fn extract_in_child(arguments: &[String]) -> ExitCode {
    let Some((media_type, nice, limits)) = read_arguments(arguments) else {
        eprintln!("holdfast {ROLE} is started by a worker: expected a media type, a nice value and four limits");
        return ExitCode::FAILURE;
    };
    // A panic's text can contain pieces of the document.
    panic::set_hook(Box::new(|_| {}));
    let work = move || {
        // Order matters: no byte of the document may arrive before the limits.
        let answer = confinement::confine(&limits, nice).and_then(|()| read(&media_type, limits));
        io::stdout().write_all(&frame::encode(answer))?;
        io::stdout().flush()
    };
    // Once confined, this process cannot start another thread.
    let reader = thread::Builder::new().name("reader".to_owned()).stack_size(STACK).spawn(work);
    match reader.map(thread::JoinHandle::join) {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn read_arguments(arguments: &[String]) -> Option<(String, i32, ExtractionLimits)> {
    let [media_type, nice, limits @ ..] = arguments else { return None };
    Some((media_type.clone(), nice.parse().ok()?, ExtractionLimits::from_arguments(limits)?))
}

/// Reads the document. A reader's panic means that the document is none that it expected.
fn read(media_type: &str, limits: ExtractionLimits) -> Result<DocumentText, ExtractionError> {
    let attempt = panic::catch_unwind(|| readers::read(media_type, io::stdin().lock(), limits));
    attempt.unwrap_or_else(|_| Err(ExtractionError::malformed("its structure is not valid")))
}
