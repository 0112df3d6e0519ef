//! The extraction of text, with the real child: what each format becomes, and that no file harms the process that asks.

pub mod documents;
mod hostile;

use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use bytes::Bytes;
use documents::{DOCX, PDF, PPTX, XLSX};
use futures::{StreamExt, stream};
use holdfast_extraction::{DocumentText, ExtractFailure, ExtractionError, ExtractionLimits, Extractor, PageStart};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::until;

const PROGRAM: &str = env!("CARGO_BIN_EXE_holdfast");

/// Limits that no honest document of these tests reaches. The programs of tests are not optimised.
const LIMITS: ExtractionLimits = ExtractionLimits {
    time: Duration::from_secs(30),
    memory_bytes: 512 * 1024 * 1024,
    text_bytes: 1024 * 1024,
    pages: 100,
};

/// The arguments of a child, with the nice value and the limits.
const ARGUMENTS: [&str; 7] = ["extract-document", "text/plain", "10", "5500", "1000000000", "1000", "10"];

type Extraction = Result<DocumentText, ExtractionError>;

async fn extract_within(limits: ExtractionLimits, media_type: &str, contents: &[u8]) -> Extraction {
    extract_by(&Extractor::with_program(PROGRAM, limits), media_type, contents).await
}

async fn extract_by(extractor: &Extractor, media_type: &str, contents: &[u8]) -> Extraction {
    let parts: Vec<_> = contents.chunks(64 * 1024).map(|part| Ok::<_, String>(Bytes::copy_from_slice(part))).collect();
    extractor.extract(media_type, stream::iter(parts)).await.map_err(|failure| match failure {
        ExtractFailure::Document(error) => error,
        ExtractFailure::Contents(error) => panic!("{error}"),
    })
}

async fn text_of(media_type: &str, contents: &[u8]) -> String {
    extract_within(LIMITS, media_type, contents).await.unwrap().text
}

fn code(extraction: &Extraction) -> &'static str {
    extraction.as_ref().map_or_else(ExtractionError::code, |_| "text")
}

#[tokio::test]
async fn texts_keep_their_characters_and_lines() {
    assert_eq!(text_of("text/plain", "a\r\nb\0é\u{7f}".as_bytes()).await, "a\nbé");
    assert_eq!(text_of("text/plain", b"\xff\xfeh\0\xe4\0").await, "hä");
    assert_eq!(text_of("text/plain", b"caf\xe9").await, "café");
    assert_eq!(text_of("text/markdown", b"# One\n\ntext").await, "# One\n\ntext");
    assert_eq!(text_of("text/csv", b"id,name\r\n1,x\r\n").await, "id,name\n1,x\n");
    assert_eq!(text_of("application/json", b"{\"a\": 1}").await, "{\"a\": 1}");
    assert_eq!(text_of("text/html", b"<h1>One</h1><script>no</script><p>text").await, "# One\n\ntext");
}

#[tokio::test]
async fn a_word_document_becomes_markdown() {
    let expected = "# Install\n\nFirst, read *this* text.\n\n- one\n- two\n\n| A | B |\n| --- | --- |\n| 1 | 2 |";
    assert_eq!(text_of(DOCX, &documents::docx()).await, expected);
}

#[tokio::test]
async fn a_slide_is_a_page() {
    let document = extract_within(LIMITS, PPTX, &documents::pptx(&["First", "Second"])).await.unwrap();
    assert_eq!(document.text, "## Slide 1\n\nFirst\n\n## Slide 2\n\nSecond");
    assert_eq!(document.pages, [PageStart { page: 1, start: 0 }, PageStart { page: 2, start: 19 }]);
}

#[tokio::test]
async fn a_sheet_is_a_page_of_rows() {
    let document = extract_within(LIMITS, XLSX, &documents::xlsx(&["Costs", "Names"])).await.unwrap();
    let table = "| id | name |\n| --- | --- |\n| 1 | first |";
    assert_eq!(document.text, format!("## Costs\n\n{table}\n\n## Names\n\n{table}"));
    assert_eq!(document.pages.iter().map(|page| page.page).collect::<Vec<_>>(), [1, 2]);
}

#[tokio::test]
async fn a_pdf_has_its_pages() {
    let document = extract_within(LIMITS, PDF, &documents::pdf(&["Hello there", "", "Good bye"])).await.unwrap();
    assert_eq!(document.text, "Hello there\n\nGood bye");
    let starts = [(1, 0), (2, 13), (3, 13)].map(|(page, start)| PageStart { page, start });
    assert_eq!(document.pages, starts);
}

#[tokio::test]
async fn a_pdf_may_have_bytes_before_its_header_and_after_its_end() {
    let pdf = documents::pdf(&["Hello there", "Good bye"]);
    let garbage = "garbage of a gateway\n".repeat(500);
    for (before, after) in
        [("\n\n\n", ""), ("HTTP/1.1 200 OK\r\n\r\n", ""), ("", garbage.as_str()), ("\r\n", "\n\0\0\0")]
    {
        let contents = [before.as_bytes(), &pdf, after.as_bytes()].concat();
        assert_eq!(text_of(PDF, &contents).await, "Hello there\n\nGood bye", "{before:?} {}", after.len());
    }
    // Its places count from the first byte of the file.
    let shifted = documents::pdf_after("\n\n\n", &documents::one_page_of("Hello there"));
    assert_eq!(text_of(PDF, &shifted).await, "Hello there");
}

#[tokio::test]
async fn a_bar_in_a_cell_ends_no_cell() {
    let cell = |text: &str| format!("<w:tc><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc>");
    let row = |one: &str, other: &str| format!("<w:tr>{}{}</w:tr>", cell(one), cell(other));
    let table = format!("<w:tbl>{}{}</w:tbl>", row("A", "B"), row("1|2", "3"));
    let word = documents::docx_of(documents::word_body(&table).as_bytes());
    assert_eq!(text_of(DOCX, &word).await, "| A | B |\n| --- | --- |\n| 1\\|2 | 3 |");
    let text = |cell: &str, text: &str| format!("<c r=\"{cell}\" t=\"inlineStr\"><is><t>{text}</t></is></c>");
    let rows = format!("<row r=\"1\">{}{}</row>", text("A1", "a|b"), text("B1", "c"));
    assert!(text_of(XLSX, &documents::xlsx_of(&["One"], &rows)).await.contains("| a\\|b | c |"));
    let page = b"<table><tr><th>A</th><th>B</th></tr><tr><td>1|2</td><td>3</td></tr></table>";
    assert!(text_of("text/html", page).await.contains("| 1\\|2 | 3 |"));
}

#[tokio::test]
async fn texts_of_any_encoding_become_composed_letters() {
    let shift_jis = b"\x96\xbc\x91\x4f,\x8f\x8a\r\n\x8e\x52\x93\x63,\x93\x8c\x8b\x9e\r\n";
    assert_eq!(text_of("text/csv", shift_jis).await, "名前,所\n山田,東京\n");
    assert_eq!(
        text_of("text/plain", "Bru\u{308}cke, of\u{ad}fice, e\u{fb03}cient".as_bytes()).await,
        "Brücke, office, efficient"
    );
    assert_eq!(text_of("text/csv", b"n\0a\0m\0e\0;\0c\0i\0t\0y\0").await, "name;city");
}

#[tokio::test]
async fn the_limits_hold_at_their_edges() {
    let limits = ExtractionLimits { text_bytes: 10, pages: 2, ..LIMITS };
    let check = async |media_type: &str, contents: &[u8], expected: &str| {
        let extraction = extract_within(limits, media_type, contents).await;
        assert_eq!(code(&extraction), expected, "{media_type}: {extraction:?}");
    };
    check("text/plain", &[b'x'; 10], "text").await;
    check("text/plain", &[b'x'; 11], "document_too_large").await;
    check(PDF, &documents::pdf(&["a", "b"]), "text").await;
    check(PDF, &documents::pdf(&["a", "b", "c"]), "document_too_large").await;
    check(PDF, &documents::pdf(&["more than ten bytes"]), "document_too_large").await;
    check(PPTX, &documents::pptx(&["a", "b", "c"]), "document_too_large").await;
    check(XLSX, &documents::xlsx(&["a", "b", "c"]), "document_too_large").await;
    check(DOCX, &documents::docx(), "document_too_large").await;
}

#[tokio::test]
async fn a_document_without_text_says_so() {
    for (media_type, contents) in [("text/plain", b" \n".to_vec()), (PDF, documents::pdf(&[""]))] {
        assert_eq!(extract_within(LIMITS, media_type, &contents).await, Err(ExtractionError::NoText));
    }
}

#[tokio::test]
async fn an_unknown_format_starts_no_child() {
    let extractor = Extractor::with_program("/nowhere", LIMITS);
    let unsupported = extract_by(&extractor, "image/png", b"").await.unwrap_err();
    assert_eq!(unsupported.code(), "unsupported_format");
    let not_started = extract_by(&extractor, "text/plain", b"a").await.unwrap_err();
    assert_eq!((not_started.code(), not_started.is_transient()), ("extraction_failed", true));
}

#[tokio::test]
async fn a_failure_of_the_contents_is_none_of_the_document() {
    let parts = stream::iter([Ok(Bytes::from_static(b"a")), Err("the store is away")]);
    let failure = Extractor::with_program(PROGRAM, LIMITS).extract("text/plain", parts).await;
    assert_eq!(failure, Err(ExtractFailure::Contents("the store is away")));
}

#[tokio::test]
async fn the_child_limits_itself_before_it_reads() {
    let mut command = Command::new(PROGRAM);
    let mut child = command.args(ARGUMENTS).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let path = format!("/proc/{}/limits", child.id());
    let limits = until("the child has limited itself", async || {
        let limits = fs::read_to_string(&path).unwrap();
        limits.lines().any(|line| is_limit(line, "Max open files", "0")).then_some(limits)
    })
    .await;
    let expected = [
        ("Max cpu time", "6"),
        ("Max file size", "0"),
        ("Max core file size", "0"),
        ("Max processes", "0"),
        ("Max open files", "0"),
    ];
    for (name, value) in expected {
        assert!(limits.lines().any(|line| is_limit(line, name, value)), "{name}: {limits}");
    }
    assert!(!limits.lines().any(|line| is_limit(line, "Max address space", "unlimited")), "{limits}");
    until("each of its threads has few system calls", async || {
        let threads = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
        let states = threads.map(|thread| fs::read_to_string(thread.unwrap().path().join("status")).unwrap());
        let states: Vec<String> = states.collect();
        (states.len() == 2 && states.iter().all(|state| state.contains("Seccomp:\t2"))).then_some(())
    })
    .await;
    assert_eq!(fs::read_to_string(format!("/proc/{}/oom_score_adj", child.id())).unwrap(), "1000\n");
    assert_eq!(nice_value_of_reader(child.id()), 10);
    child.stdin.take().unwrap().write_all(b"text").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "{\"text\":{\"bytes\":4,\"pages\":[]}}\ntext");
}

/// Returns the nice value of the thread that reads the document.
fn nice_value_of_reader(process: u32) -> i32 {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let mut stats = threads.map(|thread| fs::read_to_string(thread.unwrap().path().join("stat")).unwrap());
    let fields = stats.find_map(|stat| stat.split_once("(reader) ").map(|(_, fields)| fields.to_owned())).unwrap();
    // The first field after the name is the third one of `proc_pid_stat(5)`.
    fields.split(' ').nth(19 - 3).unwrap().parse().unwrap()
}

#[tokio::test]
async fn the_child_closes_the_descriptors_that_it_inherits() {
    // Of the pipe for errors, the child inherits only the descriptor 9.
    let script = r#"exec "$0" "$@" 9>&2 2>/dev/null"#;
    let mut command = tokio::process::Command::new("/bin/sh");
    command.args(["-c", script, PROGRAM]).args(ARGUMENTS).env_clear().kill_on_drop(true);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stderr.take().unwrap();
    let mut errors = String::new();
    let end = tokio::time::timeout(Duration::from_secs(60), pipe.read_to_string(&mut errors)).await;
    end.expect("the pipe ends before the child gets its document").unwrap();
    assert_eq!(errors, "");
    child.stdin.take().unwrap().write_all(b"text").await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().ends_with("\ntext"));
}

fn is_limit(line: &str, name: &str, value: &str) -> bool {
    line.strip_prefix(name).is_some_and(|rest| rest.split_whitespace().next() == Some(value))
}

/// Returns an extractor whose child is a shell script.
fn scripted(folder: &tempfile::TempDir, script: &str, limits: ExtractionLimits) -> Extractor {
    let path = folder.path().join("child");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    Extractor::with_program(path, limits)
}

#[tokio::test]
async fn a_child_that_lies_or_dies_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let check = async |script: &str, expected: &str| {
        let extraction = extract_by(&scripted(&folder, script, LIMITS), "text/plain", b"a").await;
        assert_eq!(code(&extraction), expected, "{script}: {extraction:?}");
    };
    check("echo hello", "extraction_failed").await;
    check("exit 3", "extraction_failed").await;
    check("kill -KILL $$", "extraction_failed").await;
    check("kill -SEGV $$", "malformed_document").await;
    check("exec yes", "extraction_failed").await;
    check("echo '{\"text\":{\"bytes\":1,\"pages\":[{\"page\":1,\"start\":9}]}}'; printf a", "extraction_failed").await;
    check("echo '{\"error\":\"no_text\"}'", "no_text").await;
}

#[tokio::test]
async fn a_silent_child_ends_with_the_time_and_slow_contents_do_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ExtractionLimits { time: Duration::from_millis(300), ..LIMITS };
    let silent = scripted(&folder, "exec sleep 1000", limits);
    assert_eq!(extract_by(&silent, "text/plain", b"a").await, Err(ExtractionError::ExtractionTimedOut(1)));
    let large = vec![b'a'; 1024 * 1024];
    assert_eq!(extract_by(&silent, "text/plain", &large).await, Err(ExtractionError::ExtractionTimedOut(1)));
    let waited = Instant::now();
    assert_eq!(extract_by(&silent.patient(), "text/plain", b"a").await, Err(ExtractionError::ExtractionTimedOut(1)));
    assert!(waited.elapsed() >= 4 * limits.time, "a busy machine costs no document: {:?}", waited.elapsed());
    // The child's own start takes some of its time, so only the arrival takes longer than the limit.
    let limits = ExtractionLimits { time: Duration::from_secs(5), ..LIMITS };
    let parts = stream::iter(["a", "b", "c"]).then(async |part| {
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok::<_, String>(Bytes::from_static(part.as_bytes()))
    });
    let extraction = Extractor::with_program(PROGRAM, limits).extract("text/plain", Box::pin(parts)).await;
    assert_eq!(extraction.unwrap().text, "abc");
}

#[tokio::test]
async fn the_child_dies_with_the_extraction() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let extractor =
        scripted(&folder, &format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000", file.display()), LIMITS);
    let extraction = tokio::spawn(async move { extract_by(&extractor, "text/plain", b"a").await });
    let pid = until("the child runs", async || fs::read_to_string(&file).ok()).await;
    extraction.abort();
    let process = format!("/proc/{}", pid.trim());
    until("the child is gone", async || (!fs::exists(&process).unwrap()).then_some(())).await;
}
