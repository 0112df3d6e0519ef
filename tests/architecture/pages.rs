//! The pages name only links, files, tests and types of events that exist, and show only code that runs.

use std::{collections::BTreeSet, fs};

use holdfast_shared::event::EventKind;

use crate::{root, tracked};

#[test]
fn links_between_the_pages_lead_somewhere() {
    // The pages of `tests/page` are messages for the chat page.
    let pages = tracked(&["*.md"]).into_iter().map(|(name, _)| name).filter(|name| !name.starts_with("tests/page/"));
    let anchor = |heading: &str| {
        let kept = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        kept.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect::<String>()
    };
    let mut broken = Vec::new();
    for page in pages {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        for (link, _) in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            if link.contains("://") || link.contains(char::is_whitespace) {
                continue;
            }
            let target =
                if file.is_empty() { root().join(&page) } else { root().join(&page).parent().unwrap().join(file) };
            let found = match fs::read_to_string(&target) {
                _ if !target.exists() => false,
                Ok(text) if !heading.is_empty() => {
                    text.lines().any(|line| line.starts_with('#') && anchor(line) == heading)
                }
                _ => true,
            };
            if !found {
                broken.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn the_maps_name_files_that_exist() {
    let files = tracked(&["*.rs", "*.ts", "*.tsx", "*.lua", "*.mjs", "*.py", "*.md", "*.yml", "*.json"]);
    let exists = |name: &str| files.iter().any(|(path, _)| path == name || path.ends_with(&format!("/{name}")));
    let is_file = |name: &&str| {
        let endings = [".rs", ".ts", ".tsx", ".lua", ".mjs", ".py", ".md", ".yml", ".json"];
        endings.iter().any(|ending| name.ends_with(ending)) && !name.starts_with('/') && !name.contains(['<', ' ', '*'])
    };
    let is_map = |page: &str| {
        ["ARCHITECTURE.md", "CONTRIBUTING.md", "api/ui/README.md"].contains(&page)
            || page.starts_with("docs/decisions/")
    };
    for (page, text) in files.iter().filter(|(page, _)| is_map(page)) {
        let names = text.split('`').skip(1).step_by(2).filter(is_file);
        let missing: Vec<&str> =
            names.map(|name| name.trim_start_matches("../")).filter(|name| !exists(name)).collect();
        assert!(missing.is_empty(), "{page} names {missing:?}");
    }
}

#[test]
fn the_pages_name_functions_and_tests_that_exist() {
    let code: String = tracked(&["*.rs", "*.ts", "*.sql", "*.lua"]).into_iter().map(|(_, text)| text).collect();
    let code: BTreeSet<&str> = code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let is_name = |name: &&str| {
        name.contains('_')
            && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_')
    };
    for page in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let names = text.split('`').skip(1).step_by(2).map(|name| name.rsplit("::").next().unwrap_or(name));
        let missing: Vec<&str> = names.filter(is_name).filter(|name| !code.contains(name)).collect();
        assert!(missing.is_empty(), "{page} names {missing:?}");
    }
}

#[test]
fn what_the_clients_page_shows_is_what_the_programs_run() {
    let pages =
        ["docs/clients.md", "clients/python/README.md", "clients/typescript/README.md", "clients/rust/README.md"];
    let pages = pages.map(|page| fs::read_to_string(root().join(page)).unwrap());
    let programs = [
        "fold.mjs",
        "event-source.mjs",
        "eventsource/main.mjs",
        "fetch-event-source/follow.mjs",
        "httpx-sse/main.py",
        "ai-sdk/patiently.mjs",
        "ai-sdk/use-chat.mjs",
        "ai-sdk/workflow.mjs",
        "durable-streams/follow.mjs",
        "holdfast-python/ask.py",
        "holdfast-typescript/ask.mjs",
        "holdfast-typescript/chat.mjs",
        "holdfast-typescript/watch.mjs",
        "../client_packages/ask.rs",
    ]
    .map(|name| fs::read_to_string(root().join("tests/clients").join(name)).unwrap())
    .join("\n");
    let blocks = pages.iter().flat_map(|page| page.split("```").skip(1).step_by(2));
    let blocks = blocks.map(|block| block.split_once('\n').unwrap().1);
    let strange: Vec<&str> = blocks.filter(|block| !programs.contains(block.trim_end())).collect();
    assert!(strange.is_empty(), "no program in tests/clients has {strange:#?}");
}

#[test]
fn every_type_of_event_is_documented_and_event_source_listens_to_it() {
    let page = fs::read_to_string(root().join("docs/events.md")).unwrap();
    let table = page.split("\n## Types\n").nth(1).unwrap().trim_start().split("\n\n").next().unwrap();
    let documented: BTreeSet<&str> = table.lines().skip(2).map(|row| row.split('`').nth(1).unwrap()).collect();
    let program = fs::read_to_string(root().join("tests/clients/event-source.mjs")).unwrap();
    let heard: BTreeSet<&str> = program.split([' ', '\n', '`']).collect();
    for kind in EventKind::ALL.iter().map(|kind| kind.name()) {
        assert!(documented.contains(kind), "docs/events.md has no row for {kind}");
        assert!(heard.contains(kind), "tests/clients/event-source.mjs does not listen to {kind}");
    }
}

/// Returns the codes in the first column of a page's table, after this line.
fn codes_of_table(page: &str, line: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let after = text.split_once(line).unwrap_or_else(|| panic!("{page} has no {line}")).1;
    let rows = after.lines().skip_while(|row| !row.starts_with('|')).take_while(|row| row.starts_with('|'));
    let cells = rows.map(|row| row.split('|').nth(1).unwrap().to_owned()).collect::<Vec<_>>();
    cells.iter().flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[test]
fn every_code_with_which_a_run_fails_or_warns_is_documented() {
    let worker: Vec<_> = tracked(&["*.rs"]).into_iter().filter(|(name, _)| name.starts_with("worker/src/")).collect();
    let literals_after = |marker: &str| -> BTreeSet<String> {
        let texts = worker.iter().flat_map(|(_, text)| text.split(marker).skip(1));
        texts.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next()).map(str::to_owned).collect()
    };
    let of_models = fs::read_to_string(root().join("worker/src/model/error.rs")).unwrap();
    let of_models = of_models.split("pub fn code(").nth(1).unwrap().split("\n    }\n").next().unwrap().to_owned();
    let of_models = of_models.split("=> \"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
    let failures: BTreeSet<String> = literals_after("RunError::new(").into_iter().chain(of_models).collect();
    assert!(failures.len() > 15, "{failures:?}");
    let undocumented = |codes: BTreeSet<String>, page: &str, line: &str| -> Vec<String> {
        codes.difference(&codes_of_table(page, line)).cloned().collect()
    };
    // A unit test of the chat page compares these tables with its words.
    assert_eq!(undocumented(failures, "docs/api.md", "\n`error.code` of a run"), Vec::<String>::new());
    let warnings = literals_after(".warn(");
    assert!(warnings.len() > 10, "{warnings:?}");
    assert_eq!(undocumented(warnings, "docs/events.md", "\n| `warning.raised` with `code`"), Vec::<String>::new());
}
