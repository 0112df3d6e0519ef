//! Checks outside the runtime's threads: a few at a time, with a time-out.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use tokio::{
    task::spawn_blocking,
    time::{Instant, timeout_at},
};

use super::{Schema, SchemaLimits, Sizes};
use crate::{config::ToolsConfig, turns::Turns};

/// Checks that run at the same time. The other cores stay free for other work.
const AT_ONCE: usize = 2;

/// Compiles schemas and checks arguments for one process, one piece at a time for each caller; cheap to clone.
#[derive(Clone)]
pub struct SchemaChecks {
    limits: SchemaLimits,
    timeout: Duration,
    turns: Turns,
}

/// The reason why a check has not passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaCheckError {
    /// The schema or the arguments break a rule; the sentence says which.
    Invalid(String),
    /// No thread was free in time, or the check took too long.
    Busy,
}

impl SchemaChecks {
    /// Returns checks with the limits and the time-out of the configuration.
    pub fn new(config: &ToolsConfig) -> Self {
        Self { limits: config.schema_limits(), timeout: config.schema_patience, turns: Turns::new(AT_ONCE) }
    }

    /// Returns the limits of each schema.
    pub const fn limits(&self) -> &SchemaLimits {
        &self.limits
    }

    /// Compiles a schema, or returns why not.
    pub async fn compile(&self, caller: &str, schema: Value) -> Result<Arc<Schema>, SchemaCheckError> {
        let limits = self.limits;
        self.off_thread(caller, move || Schema::compile(schema, &limits).map(Arc::new)).await
    }

    /// Compiles each named schema, and discards it. The error names the first that fails.
    pub async fn compile_all(&self, caller: &str, schemas: Vec<(String, Value)>) -> Result<(), SchemaCheckError> {
        let patterns = schemas.iter().map(|(_, schema)| Sizes::of(schema).patterns).sum();
        let limits = self.limits.shared_by(patterns);
        let compile = move |(name, schema): (String, Value)| {
            Schema::compile(schema, &limits).map(drop).map_err(|problem| format!("input_schema of {name}: {problem}"))
        };
        self.off_thread(caller, move || schemas.into_iter().try_for_each(compile)).await
    }

    /// Checks arguments against a schema.
    pub async fn validate(&self, caller: &str, schema: Arc<Schema>, input: Value) -> Result<(), SchemaCheckError> {
        self.off_thread(caller, move || schema.validate(&input)).await
    }

    async fn off_thread<T: Send + 'static>(
        &self,
        caller: &str,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, SchemaCheckError> {
        let until = Instant::now() + self.timeout;
        let busy = || {
            tracing::warn!(patience_ms = self.timeout.as_millis() as u64, "a check against a schema timed out");
            SchemaCheckError::Busy
        };
        let turn = self.turns.take(caller, self.timeout).await.map_err(|_| busy())?;
        // No caller can interrupt a thread, so the permit stays with it until the work ends.
        let result = spawn_blocking(move || {
            let result = work();
            drop(turn);
            result
        });
        match timeout_at(until, result).await {
            Ok(Ok(result)) => result.map_err(SchemaCheckError::Invalid),
            Ok(Err(panicked)) => {
                tracing::error!(error = %panicked, "a check against a schema panicked");
                Err(SchemaCheckError::Busy)
            }
            Err(_) => Err(busy()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Returns checks whose one thread runs a first check for ann, and the sender that ends it.
    async fn checks_with_busy_thread(at_once: usize) -> (SchemaChecks, mpsc::Sender<()>) {
        let (limits, timeout) = (SchemaLimits::default(), Duration::from_millis(50));
        let checks = SchemaChecks { limits, timeout, turns: Turns::new(at_once) };
        let (release, released) = mpsc::channel::<()>();
        let (started, running) = tokio::sync::oneshot::channel();
        let slow = checks.off_thread("ann", move || {
            let _ = started.send(());
            released.recv().map_err(|error| error.to_string())
        });
        assert_eq!(slow.await, Err(SchemaCheckError::Busy), "the slow check times out");
        running.await.unwrap();
        (checks, release)
    }

    #[tokio::test]
    async fn a_check_that_finds_no_thread_in_time_is_busy() {
        let (checks, release) = checks_with_busy_thread(1).await;
        let waiting = checks.compile("bob", Value::Bool(true)).await;
        assert_eq!(waiting.err(), Some(SchemaCheckError::Busy), "the slow check still holds its thread");
        release.send(()).unwrap();
        let checks = SchemaChecks { timeout: Duration::from_secs(10), ..checks };
        assert!(checks.compile("bob", Value::Bool(true)).await.is_ok(), "the next one takes over");
    }

    #[tokio::test]
    async fn one_callers_schemas_leave_a_thread_to_the_others() {
        let (checks, release) = checks_with_busy_thread(AT_ONCE).await;
        let waiting = checks.compile("ann", Value::Bool(true)).await;
        assert_eq!(waiting.err(), Some(SchemaCheckError::Busy), "ann's own check is in the way");
        let checks = SchemaChecks { timeout: Duration::from_secs(10), ..checks };
        assert!(checks.compile("bob", Value::Bool(true)).await.is_ok());
        release.send(()).unwrap();
    }
}
