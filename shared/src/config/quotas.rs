//! Quotas of one owner, and the retention of anonymous owners.

use std::time::Duration;

use super::{bytes, count};
use crate::quotas::{Quotas, WorkspaceLimits};

/// Settings of quotas.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Quotas")]
pub struct QuotasConfig {
    /// Unfinished runs of one owner, 100 by default; a further one gets 429. 0 for no limit. In development mode only
    /// if set.
    #[arg(long, env = "HOLDFAST_RUNS_PER_OWNER", value_parser = runs)]
    pub runs_per_owner: Option<usize>,

    /// Bytes that one owner may keep in conversations and briefings, 268435456 by default; a further write gets 403. 0
    /// for no limit. In development mode only if set.
    #[arg(long, env = "HOLDFAST_OWNER_BYTES", value_parser = size)]
    pub owner_bytes: Option<usize>,

    /// Entities of one owner's workspace, with those deleted in the last 30 days; a further one gets 403.
    #[arg(long, env = "HOLDFAST_WORKSPACE_ENTITIES", default_value = "20000", value_parser = count)]
    pub workspace_entities: usize,

    /// Bytes that one owner's workspace keeps, with the changes of the last 30 days; a change beyond it gets 403.
    #[arg(long, env = "HOLDFAST_WORKSPACE_BYTES", default_value = "268435456", value_parser = bytes)]
    pub workspace_bytes: usize,

    /// Absence after which the sweeper erases an anonymous user with all data, in ms; 0 for never.
    #[arg(long = "anonymous-retention-ms", env = "HOLDFAST_ANONYMOUS_RETENTION_MS", default_value = "7776000000", value_parser = absence)]
    pub anonymous_retention: Duration,
}

const DEFAULT_RUNS: usize = 100;

const DEFAULT_BYTES: usize = 256 << 20;

impl QuotasConfig {
    /// Returns the absence after which the sweeper erases an anonymous user; `None` for never.
    pub fn forgotten_after(&self) -> Option<Duration> {
        Some(self.anonymous_retention).filter(|retention| !retention.is_zero())
    }

    /// Returns the limits of one owner's workspace.
    pub const fn workspace(&self) -> WorkspaceLimits {
        WorkspaceLimits { max_entities: self.workspace_entities, max_bytes: self.workspace_bytes }
    }

    /// Returns the quotas that apply. In development mode, only set quotas apply.
    pub fn quotas(&self, is_development: bool) -> Quotas {
        Quotas {
            runs: in_force(self.runs_per_owner, DEFAULT_RUNS, is_development),
            bytes: in_force(self.owner_bytes, DEFAULT_BYTES, is_development),
        }
    }
}

/// Returns the limit that is set, else the default outside of development mode. 0 becomes `None`.
fn in_force(set: Option<usize>, default: usize, is_development: bool) -> Option<usize> {
    set.or((!is_development).then_some(default)).filter(|limit| *limit > 0)
}

fn runs(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("a number of runs such as 100, or 0 for no limit, not {text:?}"))
}

fn absence(text: &str) -> Result<Duration, String> {
    let expected = || format!("a duration in whole milliseconds such as 7776000000, or 0 for no limit, not {text:?}");
    text.parse().map(Duration::from_millis).map_err(|_| expected())
}

fn size(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("a size in bytes such as 268435456, or 0 for no limit, not {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_applies_outside_of_development_mode_or_where_it_is_set() {
        let check = |set: Option<usize>, is_development: bool, expected: Option<usize>| {
            let quotas = QuotasConfig {
                runs_per_owner: set,
                owner_bytes: set,
                workspace_entities: 1,
                workspace_bytes: 1,
                anonymous_retention: Duration::ZERO,
            };
            let quotas = quotas.quotas(is_development);
            let bytes = if set.is_none() { expected.map(|_| 268_435_456) } else { expected };
            assert_eq!((quotas.runs, quotas.bytes), (expected, bytes), "{set:?}, development {is_development}");
        };
        check(None, false, Some(100));
        check(None, true, None);
        check(Some(3), false, Some(3));
        check(Some(3), true, Some(3));
        check(Some(0), false, None);
        check(Some(0), true, None);
    }
}
