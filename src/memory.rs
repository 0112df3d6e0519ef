//! The memory of a process: the budgets that its settings allow, and the limit of its container.

use std::{fs, path::Path};

use crate::cli::ServerSettings;

/// Memory that one setting allows.
pub struct Budget {
    /// The settings to lower, in words.
    setting: &'static str,
    bytes: u64,
}

const MIB: u64 = 1024 * 1024;

/// Replay buffers that doctor counts. Few runs fill theirs, so this is an estimate.
const FULL_TOPICS: u64 = 128;

/// Memory of all changes of workspaces that an API makes at a time: four, of 32 MiB each with room.
const CHANGES_BYTES: u64 = 128 * MIB;

/// Memory of a process without any work.
const IDLE_BYTES: u64 = 96 * MIB;

/// Returns the budgets of an API.
pub fn of_api(settings: &ServerSettings) -> Vec<Budget> {
    let api = &settings.api;
    let budget = |setting, bytes: usize| Budget { setting, bytes: bytes as u64 };
    vec![
        budget("HOLDFAST_BODIES_BYTES for bodies", api.bodies_bytes),
        budget("HOLDFAST_BODIES_BYTES for uploads", api.bodies_bytes),
        budget("HOLDFAST_ANSWERS_BYTES", api.answers_bytes),
        Budget { setting: "HOLDFAST_FEED_BYTES for 128 runs", bytes: api.feed_bytes as u64 * FULL_TOPICS },
        Budget { setting: "changes of workspaces", bytes: CHANGES_BYTES },
    ]
}

/// Returns the budgets of a worker.
pub fn of_worker(settings: &ServerSettings) -> Vec<Budget> {
    let budget = |setting, bytes: usize| Budget { setting, bytes: bytes as u64 };
    vec![
        budget("HOLDFAST_WORKER_FILE_BYTES", settings.files.worker_file_bytes),
        budget("HOLDFAST_VECTOR_BYTES", settings.embedding.vector_bytes),
        budget("HOLDFAST_FOREIGN_ANSWERS_BYTES", settings.tools.foreign_answers_bytes),
    ]
}

/// Returns in words that the budgets fit. Fails with the figures and the settings to lower.
pub fn fit(mut budgets: Vec<Budget>, limit: u64) -> Result<String, String> {
    let sum = budgets.iter().map(|budget| budget.bytes).sum::<u64>() + IDLE_BYTES;
    let figures = format!("its budgets allow {} MiB, and it has {} MiB", sum.div_ceil(MIB), limit / MIB);
    if sum <= limit {
        return Ok(figures);
    }
    budgets.sort_by_key(|budget| std::cmp::Reverse(budget.bytes));
    let settings = budgets.iter().map(|budget| format!("{} ({} MiB)", budget.setting, budget.bytes.div_ceil(MIB)));
    Err(format!("{figures}; lower some of these: {}", settings.collect::<Vec<_>>().join(", ")))
}

/// Returns the memory that this process may have, in bytes: its container's, or else the machine's. `None` where the system
/// does not say it.
pub fn limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    limit_of(&groups, &memory, |path| fs::read_to_string(path).ok())
}

fn limit_of(groups: &str, memory: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    // A group without a limit says "max" in version 2, and a number beyond all memory in version 1.
    let bytes = |path: &Path| read(path)?.trim().parse::<u64>().ok();
    let of_group = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return Vec::new(),
        };
        // The limits of all groups above hold too. In a container, the root is the container's own group.
        let own = Path::new(root).join(path.trim_start_matches('/'));
        let within = own.ancestors().take_while(|folder| folder.starts_with(root));
        within.filter_map(|folder| bytes(&folder.join(file))).collect()
    });
    let total = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let total = total.and_then(|kib| kib.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    of_group.chain(total.map(|kib| kib * 1024)).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: &str = "MemTotal:       16000000 kB\nMemFree: 1 kB\n";

    #[test]
    fn the_smallest_limit_counts() {
        let check = |groups: &str, files: &[(&str, &str)], expected: u64| {
            let read = |path: &Path| {
                files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
            };
            assert_eq!(limit_of(groups, MEMORY, read), Some(expected), "{groups}");
        };
        let total = 16_000_000 * 1024;
        check("", &[], total);
        check("0::/\n", &[("/sys/fs/cgroup/memory.max", "1073741824\n")], 1_073_741_824);
        check("0::/\n", &[("/sys/fs/cgroup/memory.max", "max\n")], total);
        let above = [("/sys/fs/cgroup/a/memory.max", "5000"), ("/sys/fs/cgroup/a/b/memory.max", "max")];
        check("0::/a/b\n", &above, 5000);
        let first = [("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712")];
        check("4:cpu:/\n3:memory:/\n", &first, total);
        check("3:hugetlb,memory:/\n", &[("/sys/fs/cgroup/memory/memory.limit_in_bytes", "7000")], 7000);
    }

    #[test]
    fn budgets_fit_up_to_the_limit() {
        let budgets = || vec![Budget { setting: "small", bytes: MIB }, Budget { setting: "large", bytes: 3 * MIB }];
        assert_eq!(fit(budgets(), 100 * MIB).unwrap(), "its budgets allow 100 MiB, and it has 100 MiB");
        let refused = fit(budgets(), 100 * MIB - 1).unwrap_err();
        assert!(refused.ends_with("lower some of these: large (3 MiB), small (1 MiB)"), "{refused}");
    }
}
