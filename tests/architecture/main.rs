//! The rules of ARCHITECTURE.md, held by a test: who imports whom, where each library lives, how long a file may be.
#![allow(clippy::unwrap_used)]

mod pages;
mod statements;
mod words;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Lines that a file may have, without its tests.
const BUDGET: usize = 400;

/// Every library that has one home: the crate name as `use` has it, and where it may be used.
const HOMES: &[(&str, &[&str])] = &[
    ("axum", &["api/src"]),
    ("hyper", &["api/src"]),
    ("metrics_exporter_prometheus", &["api/src/metrics"]),
    ("metrics_process", &["api/src/metrics"]),
    ("utoipa_axum", &["api/src/routes"]),
    ("apalis", &["worker/src/consumer.rs"]),
    ("apalis_core", &["shared/src/queue/backend.rs"]),
    ("rust_embed", &["api/src/routes/page.rs"]),
    ("sqlx", &["shared/src/storage", "knowledge/src/storage"]),
    ("deadpool", &["shared/src/storage/sql/pool.rs"]),
    ("redis", &["shared/src/run_log", "shared/src/queue", "shared/src/rate_limit", "shared/src/redis_link"]),
    ("opentelemetry", &["shared/src/telemetry"]),
    ("opentelemetry_otlp", &["shared/src/telemetry"]),
    ("opentelemetry_sdk", &["shared/src/telemetry"]),
    ("governor", &["shared/src/rate_limit/memory.rs"]),
    ("jsonwebtoken", &["api/src/auth", "worker/src/model"]),
    (
        "reqwest",
        &[
            "worker/src/egress",
            "worker/src/model",
            "worker/src/tools/mcp",
            "workspace/src/tools/web_search.rs",
            "src/chat",
            "src/healthcheck.rs",
        ],
    ),
    ("rmcp", &["worker/src/tools/mcp", "api/src/protocols/mcp", "src/logging.rs"]),
    ("sse_stream", &["worker/src/tools/mcp", "src/chat/stream.rs"]),
    ("backon", &["shared/src/backoff.rs"]),
    (
        "base64",
        &[
            "api/src/auth",
            "api/src/thread/files.rs",
            "api/src/protocols/openai/wire/ids.rs",
            "worker/src/executor/attachments.rs",
            "worker/src/model/anthropic/pictures.rs",
            "worker/src/tools/base64_text.rs",
            "worker/src/tools/returned.rs",
        ],
    ),
    ("infer", &["shared/src/media_type.rs"]),
    ("rust_stemmers", &["knowledge/src/words.rs"]),
    ("mime_guess", &["shared/src/media_type.rs"]),
    ("flate2", &["api/src/routes/compression.rs"]),
    ("multer", &["api/src/routes/files"]),
    ("object_store", &["shared/src/file_store"]),
    ("axum_extra", &["api/src"]),
    ("rustix", &["worker/src/tools/mcp", "src/privacy.rs", "extraction/src/child", "extraction/src/extractor.rs"]),
    ("nix", &["extraction/src/child/confinement.rs"]),
    ("seccompiler", &["extraction/src/child/system_calls.rs"]),
    ("libc", &["extraction/src/child/system_calls.rs"]),
    ("unpdf", &["extraction/src/readers/pdf.rs"]),
    ("undoc", &["extraction/src/readers/office.rs"]),
    ("htmd", &["extraction/src/readers/html.rs"]),
    ("chardetng", &["text/src/encoding.rs"]),
    ("encoding_rs", &["text/src/encoding.rs"]),
    ("unicode_normalization", &["text/src/letters.rs"]),
    ("unicode_segmentation", &["extraction/src/passages"]),
    ("jiff", &["shared/src/time_zone.rs"]),
    ("jsonschema", &["shared/src/schema"]),
    ("toml", &["src/agents.rs"]),
    ("serde_saphyr", &["src/agents.rs"]),
    ("holdfast_api", &["src"]),
    ("holdfast_worker", &["src"]),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in
        ["src", "api/src", "worker/src", "shared/src", "workspace/src", "knowledge/src", "extraction/src", "text/src"]
    {
        collect(&root().join(folder), &mut found);
    }
    let name = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    found.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Whether a text names a crate in a path, as `name::`.
fn mentions(text: &str, name: &str) -> bool {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.into_iter().any(|line| {
        line.match_indices(&format!("{name}::")).any(|(at, _)| {
            !line[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == ':')
        }) || line
            .match_indices(&format!("::{name}::"))
            .any(|(at, _)| !line[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_'))
    })
}

#[test]
fn each_library_has_one_home() {
    for (name, homes) in HOMES {
        for (file, text) in sources() {
            let at_home = homes.iter().any(|home| file.starts_with(home));
            // A module of ours may have a library's name, as run_log::redis does.
            let own = text.contains(&format!("mod {}", name)) || file.contains(&format!("/{name}.rs"));
            assert!(at_home || own || !mentions(&text, name), "{file} uses {name}, whose home is {homes:?}");
        }
    }
}

#[test]
fn crates_depend_in_one_direction() {
    let ours = |manifest: &str| {
        let text = fs::read_to_string(root().join(manifest)).unwrap();
        let dependencies = text.split("[dependencies]").nth(1).unwrap().split("\n[").next().unwrap().to_owned();
        let names = dependencies
            .lines()
            .filter_map(|line| line.strip_prefix("holdfast-"))
            .map(|line| line.split(['.', ' ']).next().unwrap().to_owned());
        names.collect::<BTreeSet<_>>()
    };
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(ours("text/Cargo.toml"), set(&[]));
    assert_eq!(ours("shared/Cargo.toml"), set(&["text"]));
    assert_eq!(ours("extraction/Cargo.toml"), set(&["text"]));
    assert_eq!(ours("clients/rust/Cargo.toml"), set(&[]));
    assert_eq!(ours("workspace/Cargo.toml"), set(&["shared", "text"]));
    assert_eq!(ours("knowledge/Cargo.toml"), set(&["shared", "text"]));
    let beside = ["extraction", "knowledge", "shared", "text", "workspace"];
    assert_eq!(ours("api/Cargo.toml"), set(&beside));
    assert_eq!(ours("worker/Cargo.toml"), set(&beside));
    assert_eq!(ours("Cargo.toml"), set(&["api", "extraction", "shared", "worker"]));
}

/// The files of the relay, each after all files that it imports.
const RELAY: &[&str] = &[
    "arrivals",
    "batch",
    "replay_buffer",
    "log_reader",
    "shared_read",
    "topic",
    "subscriber",
    "frame_stream",
    "fold_stream",
    "mod",
];

#[test]
fn no_import_of_the_relay_points_back() {
    let is_of_relay = |file: &str| file.starts_with("api/src/relay/") && !file.ends_with("/tests.rs");
    let relay: Vec<_> = sources().into_iter().filter(|(file, _)| is_of_relay(file)).collect();
    assert_eq!(relay.len(), RELAY.len(), "a file is missing in the order of the relay");
    for (layer, name) in RELAY.iter().enumerate() {
        let (file, text) = relay.iter().find(|(file, _)| file.ends_with(&format!("/{name}.rs"))).unwrap();
        for above in &RELAY[layer + 1..] {
            let text = text.split("#[cfg(test)]").next().unwrap();
            assert!(!mentions(text, above), "{file} imports {above}, which is above it");
        }
    }
    let imports = |folder: &str, module: &str| {
        let files = sources().into_iter().filter(|(file, _)| file.starts_with(folder));
        files.filter(|(_, text)| mentions(text, module)).map(|(file, _)| file).collect::<Vec<_>>()
    };
    for (folder, above) in [
        ("api/src/wire/", "relay"),
        ("api/src/relay/", "app"),
        ("api/src/relay/", "routes"),
        ("api/src/relay/", "protocols"),
    ] {
        assert_eq!(imports(folder, above), [""; 0], "{folder} imports {above}, which is above it");
    }
}

#[test]
fn no_protocol_imports_another() {
    let folder = "api/src/protocols/";
    for (file, text) in sources().into_iter().filter(|(file, _)| file.starts_with(folder)) {
        // The files beside the rooms know all protocols.
        let Some((own, _)) = file.trim_start_matches(folder).split_once('/') else { continue };
        for rest in text.split("protocols::").skip(1) {
            let imported = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
            assert_eq!(imported, own, "{file} imports another protocol");
        }
    }
}

/// The modules of storage that others share, each after all modules that it imports. Above them are the reads, a file per
/// noun, which import no other noun.
const STORAGE: &[&str] = &[
    "sql",
    "removals",
    "quota",
    "file_removals",
    "roomy_owners",
    "position",
    "rows",
    "pages",
    "newest_first",
    "delegations",
    "user_profiles",
    "workspace_rows",
    "knowledge_rows",
    "memory_rows",
    "plans",
    "conversation_removal",
    "run",
    "fork_summary",
    "conversations",
];

/// The files of the run's protocol, each after all files that it imports.
const PROTOCOL: &[&str] = &[
    "attempt",
    "round",
    "abilities",
    "zone",
    "children",
    "steering",
    "planning",
    "elements",
    "due_summary",
    "progress",
    "chunk",
    "ancestor",
    "forwarded",
    "outcomes",
    "tree",
    "edit_plan",
    "holder",
    "clock",
    "attempt_start",
    "claim",
    "take",
    "queued",
    "lease",
    "suspects",
    "deaths",
    "group",
    "plain_flush",
    "flush",
    "release",
    "delayed",
    "blocked",
    "closing",
    "durable",
    "end",
    "sweep",
    "cancel",
    "orphans",
    "unfinished",
    "completion",
    "finish",
    "earlier",
    "summary",
    "begin",
    "added",
    "new_run",
    "supersede",
    "take_back",
    "accept",
    "locked_conversation",
    "opening",
    "submit",
    "ingestion",
    "answer",
    "expire",
    "retire",
    "statements",
];

#[test]
fn no_import_of_storage_points_back() {
    let folder = "shared/src/storage/";
    for (file, text) in sources().into_iter().filter(|(file, _)| file.starts_with(folder)) {
        let name = file.trim_start_matches(folder).trim_end_matches(".rs");
        let module = name.split('/').next().unwrap();
        // `connect` makes the storage, `mod` lists its modules, and `statements` lists their statements.
        if matches!(name, "mod" | "connect" | "statements" | "run/mod") {
            continue;
        }
        let from = if module == name { "super" } else { "storage" };
        let layer = STORAGE.iter().position(|lower| *lower == module).unwrap_or(STORAGE.len());
        for imported in modules_imported(&text, from).into_iter().filter(|imported| imported != module) {
            let below = STORAGE.iter().position(|lower| *lower == imported).unwrap_or(STORAGE.len());
            assert!(below < layer, "{file} imports {imported}, which is not below it");
        }
        if let Some(step) = name.strip_prefix("run/") {
            let place = |step: &str| PROTOCOL.iter().position(|lower| *lower == step);
            let own = place(step).unwrap_or_else(|| panic!("{file} is missing in the order of the protocol"));
            for imported in modules_imported(&text, "super") {
                assert!(place(&imported) < Some(own), "{file} imports {imported}, which is not below it");
            }
        }
    }
}

/// Returns the modules whose items the text imports from the module `from`.
fn modules_imported(text: &str, from: &str) -> BTreeSet<String> {
    let text = text.split("#[cfg(test)]").next().unwrap();
    let code: Vec<_> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join(" ");
    let mut found = BTreeSet::new();
    for (at, prefix) in code.match_indices(&format!("{from}::")) {
        if code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_') {
            continue;
        }
        let rest = &code[at + prefix.len()..];
        let mut items = vec![String::new()];
        let mut depth = 0;
        for character in rest.chars() {
            match character {
                '{' => depth += 1,
                '}' => depth -= 1,
                // A group right after the module has several items; a later one is within an item.
                ',' if depth == 1 && rest.starts_with('{') => items.push(String::new()),
                _ => items.last_mut().unwrap().push(character),
            }
            if depth == 0 && !(character.is_alphanumeric() || matches!(character, '_' | ':')) {
                break;
            }
        }
        let is_module = |name: &&str| name.starts_with(|first: char| first.is_ascii_lowercase());
        let head =
            |item: &String| item.trim().split(|c: char| !(c.is_alphanumeric() || c == '_')).next().map(str::to_owned);
        found.extend(items.iter().filter_map(head).filter(|name| is_module(&name.as_str())));
    }
    found
}

#[test]
fn no_hosts_clock_decides_when_a_question_expires() {
    // `mod.rs` measures with it.
    let executor = |file: &str| file.starts_with("worker/src/executor/") && !file.ends_with("/mod.rs");
    for (file, text) in sources().into_iter().filter(|(file, _)| executor(file)) {
        assert!(!text.contains("Utc::now"), "{file} reads the host's clock; `claim.clock` is the database's");
    }
}

#[test]
fn the_domain_is_pure() {
    let domain = [
        "agent/mod.rs",
        "agent/access.rs",
        "agent/definition.rs",
        "agent/limits.rs",
        "agent/mcp_server.rs",
        "agent/secret.rs",
        "approval.rs",
        "briefing.rs",
        "excerpt.rs",
        "finish_reason.rs",
        "schema/mod.rs",
        "schema/size.rs",
        "schema/work.rs",
        "storable.rs",
        "tool.rs",
        "trace.rs",
        "event.rs",
        "event_id.rs",
        "transcript.rs",
        "snapshot.rs",
        "run.rs",
        "telemetry/traceparent.rs",
        "message.rs",
        "conversation.rs",
        "page.rs",
        "idempotency.rs",
        "ending.rs",
        "memory.rs",
        "piece.rs",
        "text_enum.rs",
        "time_zone.rs",
        "timestamp.rs",
        "tokens.rs",
        "usage.rs",
    ];
    for (file, text) in sources() {
        if !domain.iter().any(|name| file == format!("shared/src/{name}")) {
            continue;
        }
        let code = text.split("#[cfg(test)]").next().unwrap();
        for banned in ["async ", "tokio", "sqlx", "redis", "Utc::now", "SystemTime", "Instant"] {
            assert!(!code.contains(banned), "{file} has {banned}");
        }
    }
}

#[test]
fn no_file_is_longer_than_its_budget() {
    for (file, text) in sources() {
        let lines = text.split("#[cfg(test)]").next().unwrap().lines().count();
        assert!(lines <= BUDGET, "{file} has {lines} lines: find the missing concept");
    }
}

#[test]
fn every_file_says_on_top_what_it_is() {
    for (file, text) in sources() {
        assert!(text.starts_with("//! "), "{file} does not begin with `//!`");
    }
}

#[test]
fn no_file_is_a_bucket() {
    let buckets = ["utils", "common", "helpers", "types", "models", "core", "misc", "manager", "service"];
    for (file, _) in sources() {
        let parts: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
        assert!(!parts.iter().any(|part| buckets.contains(part)), "{file} is named like a bucket");
    }
}

#[test]
fn migrations_come_in_pairs() {
    let names = |dialect: &str| {
        let folder = root().join("migrations").join(dialect);
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(names("postgres"), names("sqlite"));
}

#[test]
fn the_code_is_finished() {
    for (file, text) in sources() {
        for banned in ["TODO", "FIXME", "XXX", "todo!(", "unimplemented!(", "dbg!(", "#[ignore"] {
            assert!(!text.contains(banned), "{file} has {banned}");
        }
    }
}

#[test]
fn every_setting_is_documented() {
    let documented = fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let mut missing = Vec::new();
    for (file, text) in sources() {
        for (_, rest) in text.match_indices("env = \"").map(|(at, found)| (at, &text[at + found.len()..])) {
            let name = rest.split('"').next().unwrap();
            if !documented.contains(&format!("`{name}`")) {
                missing.push(format!("{name} ({file})"));
            }
        }
    }
    assert!(missing.is_empty(), "docs/configuration.md lacks {missing:#?}");
}

#[test]
fn every_limit_has_its_edge_described() {
    let described = fs::read_to_string(root().join("docs/operations/limits.md")).unwrap();
    let configuration = fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let settings = configuration.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let limits = settings.filter(|(name, _)| {
        let parts = [
            "_MAX_",
            "_BYTES",
            "_CHARS",
            "_TOKENS",
            "_CONCURRENCY",
            "_POOL",
            "_LIMIT",
            "_RETRIES",
            "TIMEOUT",
            "_TTL_MS",
            "_IDLE_MS",
        ];
        parts.iter().any(|part| name.contains(part))
    });
    let missing: Vec<&str> =
        limits.map(|(name, _)| name).filter(|name| !described.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/operations/limits.md lacks {missing:#?}");
}

/// The packages of the page that its reader receives.
fn page_packages() -> BTreeSet<String> {
    let lock: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(root().join("api/ui/package-lock.json")).unwrap()).unwrap();
    let packages = lock["packages"].as_object().unwrap().iter();
    let shipped = packages.filter(|(path, package)| {
        !path.is_empty() && package["dev"].as_bool() != Some(true) && package["optional"].as_bool() != Some(true)
    });
    shipped.map(|(path, _)| path.rsplit("node_modules/").next().unwrap().to_owned()).collect()
}

/// The crates that the executable is linked from.
fn crates() -> BTreeSet<String> {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--locked", "--offline", "--package", "holdfast", "--edges", "normal", "--prefix", "none"]);
    tree.args(["--target", "x86_64-unknown-linux-gnu"]).current_dir(root());
    let output = tree.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let foreign = lines.lines().filter(|line| !line.contains(root().to_str().unwrap()));
    foreign.filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect()
}

#[test]
fn the_notices_name_every_package_that_is_shipped() {
    let notices = fs::read_to_string(root().join("THIRD-PARTY-NOTICES.txt")).unwrap();
    for (kind, packages) in [("crate", crates()), ("npm", page_packages())] {
        let kind = format!(" ({kind}): ");
        let named: BTreeSet<&str> = notices
            .lines()
            .filter(|line| line.contains(&kind))
            .filter_map(|line| Some(line.split_once(' ')?.0))
            .collect();
        let missing: Vec<&String> = packages.iter().filter(|name| !named.contains(name.as_str())).collect();
        assert!(missing.is_empty(), "run deploy/third-party-notices.py, which names {missing:?}");
    }
}

/// The files that git tracks with these endings.
fn tracked(endings: &[&str]) -> Vec<(String, String)> {
    let listing = Command::new("git").arg("ls-files").args(endings).current_dir(root()).output().unwrap();
    let names = String::from_utf8(listing.stdout).unwrap();
    let text = |name: &str| fs::read_to_string(root().join(name)).ok();
    let files: Vec<_> = names.lines().filter_map(|name| Some((name.to_owned(), text(name)?))).collect();
    assert!(!files.is_empty(), "git lists no files here");
    files
}
