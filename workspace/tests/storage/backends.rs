//! Workspaces on fresh databases, for the tests.

use clap::Parser;
use holdfast_shared::{
    config::StoresConfig,
    page::PageSize,
    quotas::WorkspaceLimits,
    storage::{self, Storage},
};
use holdfast_workspace::{Author, Entity, Filter, Kind, NewEntity, Outcome, Workspace};
use serde_json::Value;
use tempfile::TempDir;
use test_servers::{Postgres, TestDatabase};
use uuid::Uuid;

/// The owner of most tests.
pub const ANN: &str = "ann";

pub struct TestWorkspace {
    pub storage: Storage,
    pub workspace: Workspace,
    alive: (Option<TempDir>, Option<TestDatabase>),
}

#[derive(Parser)]
struct WorkspaceArgs {
    #[command(flatten)]
    stores: StoresConfig,
}

fn settings(args: &[&str]) -> StoresConfig {
    WorkspaceArgs::parse_from(["workspace"].iter().chain(args)).stores
}

/// Makes the schema of a database.
fn migrate(url: &str) {
    let config = settings(&["--database-url", url, "--redis-url", "redis://127.0.0.1:1"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(storage::migrate(&config.stores().unwrap(), &config)).unwrap();
}

pub const LIMITS: WorkspaceLimits =
    WorkspaceLimits { max_entities: 1000, max_bytes: 16 << 20, max_change_entities: 1000, max_change_bytes: 16 << 20 };

impl TestWorkspace {
    pub async fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = settings(&["--data-dir", folder.path().to_str().unwrap()]);
        Self::connect(&config, (Some(folder), None)).await
    }

    pub async fn postgres() -> Self {
        let database = tokio::task::spawn_blocking(|| Postgres::migrated_database(migrate)).await.unwrap();
        let config = settings(&["--database-url", database.url(), "--redis-url", "redis://127.0.0.1:1"]);
        Self::connect(&config, (None, Some(database))).await
    }

    async fn connect(config: &StoresConfig, alive: (Option<TempDir>, Option<TestDatabase>)) -> Self {
        let storage = storage::connect(&config.stores().unwrap(), config).await.unwrap();
        Self { workspace: Workspace::new(&storage, LIMITS), storage, alive }
    }

    /// Returns the URL of the PostgreSQL database, if it is one, and of the SQLite file.
    pub fn urls(&self) -> (Option<String>, String) {
        let (folder, database) = &self.alive;
        let file = folder.as_ref().map(|folder| format!("sqlite:{}/holdfast.db", folder.path().display()));
        (database.as_ref().map(|database| database.url().to_owned()), file.unwrap_or_default())
    }

    /// Returns the same workspace with other limits.
    pub fn limited(&self, limits: WorkspaceLimits) -> Workspace {
        Workspace::new(&self.storage, limits)
    }

    /// Creates an entity of ann.
    pub async fn create(&self, kind: Kind, input: Value) -> Entity {
        let new = NewEntity::read(kind, input.as_object().unwrap().clone()).unwrap();
        changed(self.workspace.create(Author::user(ANN), new).await.unwrap())
    }

    /// Returns all live entities of an owner, by their ids, without the facts that each change makes new.
    pub async fn dump(&self, owner: &str) -> Vec<(Kind, Uuid, Value)> {
        let mut dump = Vec::new();
        for kind in Kind::ALL {
            let listed = self.workspace.list(owner, *kind, &Filter::default(), None, PageSize::ALL).await.unwrap();
            for entity in listed.items {
                let whole = self.workspace.get(owner, *kind, entity.id).await.unwrap().unwrap();
                let mut state = whole.state();
                for volatile in ["version", "updated_at"] {
                    state.as_object_mut().unwrap().remove(volatile);
                }
                dump.push((*kind, entity.id, state));
            }
        }
        dump
    }
}

/// Returns the result of a change that was made.
pub fn changed<T: std::fmt::Debug>(outcome: Outcome<T>) -> T {
    match outcome {
        Outcome::Changed(result) => result,
        other => panic!("nothing was changed: {other:?}"),
    }
}

/// Makes a test for each database of an async function that takes a `TestWorkspace`.
#[macro_export]
macro_rules! on_both_databases {
    ($($fact:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $fact() {
                super::$fact($crate::backends::TestWorkspace::sqlite().await).await;
            })+
        }

        mod postgres {
            $(#[tokio::test]
            async fn $fact() {
                super::$fact($crate::backends::TestWorkspace::postgres().await).await;
            })+
        }
    };
}
