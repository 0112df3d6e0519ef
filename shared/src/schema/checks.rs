//! Checks off the runtime's threads: a few at a time, with a limit on the wait.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use tokio::{sync::Semaphore, task::spawn_blocking, time::timeout};

use super::{Limits, Schema};
use crate::config::ToolsConfig;

/// Checks that run at the same time; the rest of the machine is for everything else.
const AT_ONCE: usize = 2;

/// Where one process compiles schemas and checks arguments; cheap to clone.
#[derive(Clone)]
pub struct SchemaChecks {
    limits: Limits,
    patience: Duration,
    permits: Arc<Semaphore>,
}

/// The reason why a check has not passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unchecked {
    /// The schema, or the arguments, break a rule.
    Invalid(String),
    /// No thread was free in time, or the check took too long.
    Busy,
}

impl SchemaChecks {
    pub fn new(config: &ToolsConfig) -> Self {
        let permits = Arc::new(Semaphore::new(AT_ONCE));
        Self { limits: config.schema_limits(), patience: config.schema_patience, permits }
    }

    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Compiles a schema.
    pub async fn compile(&self, schema: Value) -> Result<Arc<Schema>, Unchecked> {
        let limits = self.limits;
        self.off_thread(move || Schema::compile(schema, &limits).map(Arc::new)).await
    }

    /// Compiles each schema, and names the first that fails.
    pub async fn compile_all(&self, schemas: Vec<(String, Value)>) -> Result<(), Unchecked> {
        let limits = self.limits;
        let compile = move |(name, schema): (String, Value)| {
            Schema::compile(schema, &limits).map(drop).map_err(|problem| format!("input_schema of {name}: {problem}"))
        };
        self.off_thread(move || schemas.into_iter().try_for_each(compile)).await
    }

    /// Checks arguments against a schema.
    pub async fn validate(&self, schema: Arc<Schema>, input: Value) -> Result<(), Unchecked> {
        self.off_thread(move || schema.validate(&input)).await
    }

    async fn off_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, Unchecked> {
        let permits = Arc::clone(&self.permits);
        let run = async {
            let permit = permits.acquire_owned().await.expect("nothing closes the semaphore");
            // A thread cannot be interrupted: the permit stays with it until the work ends.
            let worked = spawn_blocking(move || {
                let worked = work();
                drop(permit);
                worked
            });
            worked.await
        };
        match timeout(self.patience, run).await {
            Ok(Ok(worked)) => worked.map_err(Unchecked::Invalid),
            Ok(Err(panicked)) => {
                tracing::error!(error = %panicked, "a check against a schema panicked");
                Err(Unchecked::Busy)
            }
            Err(_) => {
                tracing::warn!(patience_ms = self.patience.as_millis() as u64, "a check against a schema timed out");
                Err(Unchecked::Busy)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_check_that_finds_no_thread_in_time_is_busy() {
        let checks = SchemaChecks {
            limits: Limits::default(),
            patience: Duration::from_millis(50),
            permits: Arc::new(Semaphore::new(1)),
        };
        let (release, held) = mpsc::channel::<()>();
        let (started, running) = tokio::sync::oneshot::channel();
        let slow = checks.off_thread(move || {
            let _ = started.send(());
            held.recv().map_err(|error| error.to_string())
        });
        assert_eq!(slow.await, Err(Unchecked::Busy), "a slow check is given up");
        running.await.unwrap();
        let waiting = checks.compile(Value::Bool(true)).await;
        assert_eq!(waiting.err(), Some(Unchecked::Busy), "the slow check still holds its thread");
        release.send(()).unwrap();
        let checks = SchemaChecks { patience: Duration::from_secs(10), ..checks };
        assert!(checks.compile(Value::Bool(true)).await.is_ok(), "the next one takes over");
    }
}
