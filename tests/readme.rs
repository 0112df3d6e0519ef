//! The README: its commands as printed, and its figures.
//!
//! A folder of its own is the fresh machine. There, `cargo run` starts the program that the tests have built.

use std::{
    fs,
    io::{Read, Write},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;
use test_servers::mcp::node_modules;
use tokio::task::spawn_blocking;

use crate::support::{Holdfast, ScaledOut};

/// The address that the README prints.
const PRINTED: &str = "127.0.0.1:8080";

/// The first words of the README's rows and of the benchmarks', and how many rows below these the figure stands there.
const FIGURES: [(&str, usize); 8] = [
    ("first token, 1 at a time", 0),
    ("first token, 32 at a time", 0),
    ("64 runs x 200 tokens", 0),
    ("1-token runs", 0),
    ("500 runs x 20 tokens/s", 1),
    ("500 cut runs", 0),
    ("memory of the api", 0),
    ("memory of the worker", 0),
];

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// Returns the README's text below this heading.
fn section(heading: &str) -> String {
    let readme = page("README.md");
    let text = readme.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no heading {heading}")).1;
    text.split("\n## ").next().unwrap().to_owned()
}

/// Returns the code blocks of a text that are written in this language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// Returns the commands of a text's blocks: each line of the shell's, and of the others each line after a prompt.
fn commands(text: &str) -> Vec<String> {
    let typed = blocks(text, "console").join("\n").replace("\\\n", " ");
    let typed = typed.lines().filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned).collect::<Vec<_>>();
    let lines = blocks(text, "sh").join("\n");
    typed.into_iter().chain(lines.lines().filter(|line| !line.is_empty()).map(str::to_owned)).collect()
}

/// Returns the kinds of the events that an output shows.
fn kinds(output: &str) -> Vec<&str> {
    output.lines().filter_map(|line| line.strip_prefix("event: ")).collect()
}

fn output_of(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{command:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// A machine on which nothing is installed but the tools that the README names.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        let cargo = folder.path().join("bin/cargo");
        let program = Holdfast::command().get_program().to_string_lossy().into_owned();
        fs::write(
            &cargo,
            format!("#!/bin/sh\n[ \"$1\" = run ] && shift; [ \"$1\" = -- ] && shift\nexec {program} \"$@\"\n"),
        )
        .unwrap();
        fs::set_permissions(cargo, fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    /// Returns a command for the shell. Those that the README prints talk to `base` instead of the usual address.
    fn shell(&self, line: &str, base: &str) -> Command {
        let address = base.trim_start_matches("http://");
        let mut command = Holdfast::command();
        let path = format!("{}/bin:{}", self.folder.path().display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.env_clear().env("HOME", self.folder.path());
        shell.envs(command.env("PATH", path).get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.args(["-c", &line.replace(PRINTED, address)]).current_dir(self.folder.path());
        shell.env("HOLDFAST_URL", base).env("HOLDFAST_DATA_DIR", self.folder.path().join("data"));
        shell
    }

    fn run(&self, line: &str, base: &str) -> String {
        output_of(&mut self.shell(line, base))
    }

    /// Starts a server in place of the shell, so that it ends with the test.
    fn start(&self, line: &str) -> Holdfast {
        let (settings, program) = line.split_at(line.find("cargo").unwrap());
        Holdfast::start(&mut self.shell(&format!("{settings} exec {program}"), ""))
    }
}

#[tokio::test]
async fn the_first_commands_stream_break_off_and_resume() {
    let machine = Machine::new();
    let two = commands(&section("Two commands"));
    let [run, check] = &two[..] else { panic!("{two:?}") };
    assert!(check.starts_with("./check "), "it runs this test");
    let mut server = machine.start(run);
    let base = server.base();

    let text = section("Stream, break off, resume");
    let lines = commands(&text);
    let [stream, resume, chat, piped] = &lines[..] else { panic!("{lines:?}") };
    let shown = blocks(&text, "console");
    let received = machine.run(stream, &base);
    assert!(received.starts_with("HTTP/1.1 200 OK"), "{received}");
    let kinds_shown = kinds(&shown[0]);
    assert_eq!(kinds_shown, kinds(&received)[..kinds_shown.len()]);

    let run_id = received.lines().find_map(|line| line.strip_prefix("x-run-id: ")).unwrap().trim();
    let printed_id = resume.split("/runs/").nth(1).unwrap().split('/').next().unwrap();
    let rest = machine.run(&resume.replace(printed_id, run_id), &base);
    let first = |text: &str| text.lines().find(|line| line.starts_with("id: ")).unwrap().to_owned();
    assert_eq!(first(&rest), first(&shown[1]));
    assert_eq!(kinds(&rest).last(), kinds(&shown[1]).last());

    let answer = machine.run(piped, &base);
    assert!(shown[2].trim_end().ends_with(answer.trim()), "{answer:?}");
    let terminal = format!("script -qfec {chat:?} /dev/null");
    let mut chat =
        machine.shell(&terminal, &base).env("TERM", "dumb").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let chat = chat.as_mut().unwrap();
    chat.stdin.as_mut().unwrap().write_all(b"Hello!\n/quit\n").unwrap();
    let mut printed = String::new();
    chat.stdout.as_mut().unwrap().read_to_string(&mut printed).unwrap();
    assert!(chat.wait().unwrap().success(), "{printed}");
    for line in ["your session; /quit ends", "conversation ", "This is Holdfast's scripted model"] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
}

#[tokio::test]
async fn each_command_for_a_real_model_starts_a_server_with_it() {
    let lines = commands(&section("A real model"));
    assert_eq!(lines.len(), 5);
    for line in lines {
        let machine = Machine::new();
        let mut server = machine.start(&line);
        server.base();
        let (_, name) = line.split_once("CHAT_MODEL_NAME=").unwrap();
        server.wait_for_log(name.split(' ').next().unwrap());
    }
}

#[tokio::test]
async fn the_agent_calls_its_tool() {
    let machine = Machine::new();
    let text = section("An agent in five lines");
    fs::write(machine.folder.path().join("agents.yaml"), &blocks(&text, "yaml")[0]).unwrap();
    // npx takes the server that is installed here, and downloads nothing.
    symlink(spawn_blocking(node_modules).await.unwrap(), machine.folder.path().join("node_modules")).unwrap();
    let lines = commands(&text);
    let [run, list, call] = &lines[..] else { panic!("{lines:?}") };
    let mut server = machine.start(run);
    let base = server.base();
    let agents: serde_json::Value = serde_json::from_str(&machine.run(list, &base)).unwrap();
    let id = agents["items"][0]["id"].as_str().unwrap();
    assert!(blocks(&text, "console")[0].contains(&format!("{{\"items\":[{{\"id\":\"{id}\"")), "{agents}");
    let received = machine.run(call, &base);
    assert!(received.contains(r#""output":"The sum of 2 and 3 is 5.""#), "{received}");
    assert_eq!(kinds(&received).last(), Some(&"run.completed"));
    let chat = text.split('`').find(|code| code.starts_with("cargo run -- chat --agent")).unwrap();
    let answer = machine.run(&format!("echo '[tokens=3]' | {chat}"), &base);
    assert!(answer.starts_with("This is"), "{answer}");
}

#[tokio::test]
async fn the_commands_for_scaling_out_start_apis_and_workers() {
    let text = section("Scaling out");
    let lines = commands(&text);
    let [export, migrate, api, worker] = &lines[..] else { panic!("{lines:?}") };
    assert!(export.starts_with("export DATABASE_URL=postgres://") && export.contains("REDIS_URL=redis://"), "{export}");
    let (machine, scaled) = (Machine::new(), ScaledOut::new());
    let (database, redis) = (&scaled.database_url, scaled.redis.url());
    let with_places = |line: &str| format!("DATABASE_URL='{database}' REDIS_URL='{redis}' {line}");
    machine.run(&with_places(migrate), "");
    let (mut api, mut worker) = (machine.start(&with_places(api)), machine.start(&with_places(worker)));
    worker.wait_for_log("worker started");
    let stream = &commands(&section("Stream, break off, resume"))[0];
    assert_eq!(kinds(&machine.run(stream, &api.base())).last(), Some(&"run.completed"));
}

#[test]
fn the_figures_are_those_of_the_benchmarks() {
    let (readme, benchmarks) = (section("Measured"), page("docs/benchmarks.md"));
    let table = |text: &str| -> Vec<Vec<String>> {
        let rows = text.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
        rows.skip(2).map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
    };
    let measured = table(benchmarks.split_once("\n## Figures\n").unwrap().1);
    let rows = table(&readme);
    assert_eq!(rows.len(), FIGURES.len());
    for (row, (name, offset)) in rows.iter().zip(FIGURES) {
        assert!(row[0].starts_with(name), "{row:?}");
        let at = measured.iter().position(|row| row[0].starts_with(name)).unwrap_or_else(|| panic!("no row {name}"));
        let (ours, peers) = (&measured[at + offset][3], &measured[at + offset][5]);
        // A cell there may have several percentiles, and one here has a unit.
        let first = |cell: &str| cell.split(' ').next().unwrap().to_owned();
        assert_eq!((first(&row[1]), first(&row[2])), (first(ours), first(peers)), "{name}");
    }
}
