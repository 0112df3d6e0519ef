//! The gates of the scripted model, which tests open: `[gate=NAME]` stops an answer after its first part until the file NAME
//! exists in the folder that `HOLDFAST_SCRIPTED_GATES` names. Only tests set this variable. Without it, the directive is
//! other text in brackets.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::time::sleep;

/// Names the folder of the gates.
pub(super) const FOLDER: &str = "HOLDFAST_SCRIPTED_GATES";

/// Time between two looks at a closed gate.
const POLL: Duration = Duration::from_millis(10);

/// Returns the file that opens the gate, unless there are no gates or the name could lead out of their folder.
pub(super) fn file(folder: Option<OsString>, name: &str) -> Option<PathBuf> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let folder = folder.filter(|_| !name.is_empty() && name.bytes().all(is_plain))?;
    Some(Path::new(&folder).join(name))
}

/// Waits until the gate is open.
pub(super) async fn wait(file: &Path) {
    while !file.exists() {
        sleep(POLL).await;
    }
}
