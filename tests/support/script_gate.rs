//! A gate of the scripted model: an answer with its directive stops after the first part until the test opens the gate.

use std::{
    path::PathBuf,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use tempfile::TempDir;

/// The folder of all gates of this test process, which each process of Holdfast receives.
static FOLDER: OnceLock<TempDir> = OnceLock::new();

pub struct ScriptGate {
    name: String,
}

impl ScriptGate {
    /// Names the folder of the gates.
    pub const VARIABLE: &str = "HOLDFAST_SCRIPTED_GATES";

    /// Makes a closed gate.
    pub fn closed() -> Self {
        static GATES: AtomicUsize = AtomicUsize::new(0);
        Self { name: format!("gate-{}", GATES.fetch_add(1, Ordering::Relaxed)) }
    }

    pub fn folder() -> PathBuf {
        FOLDER.get_or_init(|| tempfile::tempdir().expect("a temporary folder can be made")).path().to_owned()
    }

    /// Returns the directive for the input of a run.
    pub fn directive(&self) -> String {
        format!("[gate={}]", self.name)
    }

    /// Lets all answers pass, also those to come.
    pub fn open(&self) {
        std::fs::write(Self::folder().join(&self.name), "").expect("a file can be made in the temporary folder");
    }
}
