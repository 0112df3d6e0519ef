//! Documents of all formats, broken and hostile ones among them, while workers are killed: each ends as `ready`, or as `failed`
//! with its reason, and each answer of the provider of vectors is paid for once.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    extraction::documents::{self, docx_of, pdf_of, stored_docx_of, word_body},
    in_both_modes,
    knowledge::{add, collection, path_of, search, text_of},
    support::{Client, Deployment, upstream::TestUpstream},
};

in_both_modes!(killed_workers_lose_no_document_and_pay_no_vector_twice);

/// Returns a number of the environment, for a longer test: DOCUMENTS=400 KILL_MS=5000 kills a worker every 5 s.
fn number(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
}

/// Passages of one request to the provider, and documents that a worker ingests at a time.
const BATCH: usize = 4;
const AT_ONCE: usize = 16;

/// A file, and the ends that it may have.
struct IngestedFile {
    name: String,
    bytes: Vec<u8>,
    ends: &'static [&'static str],
}

const READY: &[&str] = &["ready"];
const MALFORMED: &[&str] = &["malformed_document"];

/// Paragraphs of which each names the document and itself, so that no two passages are equal.
fn paragraphs(n: usize, count: usize) -> impl Iterator<Item = String> {
    (0..count)
        .map(move |at| format!("In paragraph p{at} of document d{n} a keel holds the ship, and nothing else does so."))
}

/// Returns the document of this number: most are good, every fourth is broken or hostile.
fn sample(n: usize) -> IngestedFile {
    let lines: Vec<String> = paragraphs(n, 40).collect();
    let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
    let (text, pages) = (lines.join("\n\n"), pages_of(&lines));
    let (ending, bytes, ends): (_, Vec<u8>, _) = if n % 4 == 3 {
        broken(n / 4, n)
    } else {
        match n % 8 {
            0 => ("pdf", documents::pdf(&pages.iter().map(String::as_str).collect::<Vec<_>>()), READY),
            1 => ("md", format!("# Part {n}\n\n{text}").into(), READY),
            2 => ("docx", docx_of(word_body(&paragraphs_of_word(&lines)).as_bytes()), READY),
            4 => ("pptx", documents::pptx(&texts), READY),
            5 => ("html", format!("<h1>{n}</h1><p>{}</p>", lines.join("</p><p>")).into(), READY),
            6 => ("xlsx", documents::xlsx_of(&[&format!("Sheet {n}")], &rows_of(&lines)), READY),
            _ => unreachable!("every fourth is broken"),
        }
    };
    IngestedFile { name: format!("{n}.{ending}"), bytes, ends }
}

/// Returns a few long pages, because a program of the tests takes 50 ms for each.
fn pages_of(lines: &[String]) -> Vec<String> {
    lines.chunks(5).map(|page| page.join(" ")).collect()
}

fn paragraphs_of_word(lines: &[String]) -> String {
    lines.iter().map(|line| format!("<w:p><w:r><w:t>{line}</w:t></w:r></w:p>")).collect()
}

fn rows_of(lines: &[String]) -> String {
    let mut rows = String::new();
    for (row, line) in (1..).zip(lines) {
        let cell = format!("<c r=\"A{row}\" t=\"inlineStr\"><is><t>{line}</t></is></c>");
        write!(rows, "<row r=\"{row}\">{cell}</row>").unwrap();
    }
    rows
}

/// Returns bytes that mean nothing.
fn noise(seed: usize) -> Vec<u8> {
    let next =
        |state: &u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
    let states = std::iter::successors(Some(seed as u64), next);
    states.skip(1).take(50_000).map(|state| (state >> 56) as u8).collect()
}

/// Returns a broken or hostile file.
fn broken(kind: usize, n: usize) -> (&'static str, Vec<u8>, &'static [&'static str]) {
    match kind % 12 {
        0 => ("pdf", format!("%PDF-1.4 broken {n}").into(), MALFORMED),
        1 => ("docx", docx_of(&vec![0; 32 << 20]), MALFORMED),
        2 => ("pdf", documents::pdf(&vec!["page"; 10_000]), &["document_too_large", "extraction_timed_out"]),
        3 => {
            let deep = "<w:p>".repeat(300_000) + &"</w:p>".repeat(300_000);
            let ends = &["malformed_document", "no_text", "extraction_timed_out", "extraction_out_of_memory"];
            ("docx", stored_docx_of(word_body(&deep).as_bytes()), ends)
        }
        4 => ("txt", " \n ".into(), &["no_text"]),
        5 => {
            let complete = documents::xlsx(&["Costs"]);
            ("xlsx", complete[..complete.len() - 30].to_vec(), MALFORMED)
        }
        6 => {
            let deep = "[".repeat(300_000) + &"]".repeat(300_000);
            let pages = "<< /Type /Pages /Kids [] >>".to_owned();
            ("pdf", pdf_of(&[format!("<< /Type /Catalog /Pages 2 0 R /Deep {deep} >>"), pages], ""), MALFORMED)
        }
        7 => {
            let rows = (1..5_000).map(|row| format!("<row r=\"{row}\"><c r=\"XFD{row}\"><v>1</v></c></row>"));
            let rows: String = rows.collect();
            let ends = &["document_too_large", "extraction_out_of_memory", "extraction_timed_out"];
            ("xlsx", documents::xlsx_of(&["far"], &rows), ends)
        }
        8 => ("pdf", [b"%PDF-1.7\n".to_vec(), noise(n)].concat(), MALFORMED),
        9 => {
            let deep = "<div>".repeat(100_000) + "hello";
            let ends =
                &["malformed_document", "extraction_timed_out", "document_too_large", "extraction_out_of_memory"];
            ("html", deep.into(), ends)
        }
        10 => {
            let mut objects =
                vec!["<< /Type /Catalog /Pages 2 0 R >>".into(), "<< /Type /Pages /Kids [] /Count 0 >>".into()];
            let key = "00".repeat(32);
            objects.push(format!("<< /Filter /Standard /V 2 /R 3 /Length 128 /P -4 /O <{key}> /U <{key}> >>"));
            ("pdf", pdf_of(&objects, "/Encrypt 3 0 R /ID [<00> <00>]"), &["encrypted_document"])
        }
        _ => {
            let objects = [
                "<< /Type /Catalog /Pages 2 0 R >>",
                "<< /Type /Pages /Kids [3 0 R 2 0 R] /Count 4 >>",
                "<< /Type /Pages /Parent 2 0 R /Kids [2 0 R 3 0 R] /Count 2 >>",
            ];
            ("pdf", pdf_of(&objects.map(str::to_owned), ""), &["malformed_document", "no_text"])
        }
    }
}

/// Kills the worker again and again: every `KILL_MS`, or else after each eighth document.
struct Killer {
    deployment: Deployment,
    every: Option<Duration>,
    last: Instant,
    kills: usize,
}

impl Killer {
    fn new(deployment: Deployment) -> Self {
        let every = Some(number("KILL_MS", 0)).filter(|ms| *ms > 0);
        let every = every.map(|ms| Duration::from_millis(ms as u64));
        Self { deployment, every, last: Instant::now(), kills: 0 }
    }

    /// Returns a client, after a kill if one is due.
    fn client(&mut self, submitted: usize) -> Client {
        let is_due = match self.every {
            Some(every) => self.last.elapsed() >= every,
            None => submitted / 8 > self.kills,
        };
        if is_due {
            self.deployment.kill_worker();
            self.kills += 1;
            self.last = Instant::now();
        }
        self.deployment.client()
    }
}

/// Returns the end of a document: `ready`, with the vectors that come after its words, or the code of its failure.
fn end_of(document: &Value) -> Option<&str> {
    match document["status"].as_str().unwrap() {
        "queued" | "processing" => None,
        "ready" if document["vectors"] != "complete" => None,
        "failed" => Some(document["error"]["code"].as_str().expect("a failure has its reason")),
        status => Some(status),
    }
}

/// Waits until each document has ended, while workers are killed.
async fn ended(killer: &mut Killer, added: &[Value]) -> Vec<Value> {
    let patience = Duration::from_secs(120 + 2 * added.len() as u64);
    let since = Instant::now();
    let (submitted, mut documents) = (added.len(), Vec::new());
    for added in added {
        loop {
            let client = killer.client(submitted);
            let document = client.get(&path_of(&added["document"])).await.unwrap();
            if end_of(&document).is_some() {
                documents.push(document);
                break;
            }
            assert!(since.elapsed() < patience, "{} of {} have ended: {document}", documents.len(), patience.as_secs());
            // The test waits here for minutes, and each question costs the server what it tests.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    documents
}

async fn killed_workers_lose_no_document_and_pay_no_vector_twice(deployment: Deployment) {
    let upstream = TestUpstream::start(&["fine"]).await;
    // A hostile file must end between two kills.
    let extraction_ms = 30_000.min(number("KILL_MS", usize::MAX) / 5 * 3);
    let deployment = deployment
        .with("HOLDFAST_EMBEDDING_PROVIDER", "openai")
        .with("HOLDFAST_EMBEDDING_MODEL", "meanings")
        .with("HOLDFAST_EMBEDDING_BASE_URL", &upstream.base_url)
        .with("HOLDFAST_EMBEDDING_BATCH", BATCH)
        .with("HOLDFAST_WORKER_CONCURRENCY", AT_ONCE)
        // The kills come from outside, so no document is to blame for the deaths.
        .with("HOLDFAST_MAX_CRASHES", 100)
        .with("HOLDFAST_MAX_DOCUMENT_BYTES", 1 << 20)
        .with("HOLDFAST_EXTRACTION_MS", extraction_ms)
        .with("HOLDFAST_PASSAGE_CHARS", 300);
    let number_of_documents = number("DOCUMENTS", 24);
    let since = Instant::now();
    let mut killer = Killer::new(deployment);
    let collection = collection(&killer.client(0), "Many").await;
    let mut added = Vec::new();
    for n in 0..number_of_documents {
        let IngestedFile { name, bytes, .. } = sample(n);
        let client = killer.client(n);
        added.push(add(&client, &collection, &name, bytes).await);
    }
    let documents = ended(&mut killer, &added).await;
    let took = since.elapsed();

    let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
    for (n, document) in documents.iter().enumerate() {
        let end = end_of(document).unwrap();
        *ends.entry(end).or_default() += 1;
        let expected = sample(n);
        assert!(expected.ends.contains(&end), "{} ended as {end}: {document}", expected.name);
    }
    let client = killer.deployment.client();
    let mut paid: BTreeMap<String, usize> = BTreeMap::new();
    for request in upstream.requests() {
        for text in request["input"].as_array().unwrap() {
            *paid.entry(text.as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    let ready: Vec<&Value> = documents.iter().filter(|document| document["status"] == "ready").collect();
    let passages: u64 = ready.iter().map(|document| document["passages"].as_u64().unwrap()).sum();
    let again: usize = paid.values().map(|times| times - 1).sum();
    let most = paid.values().copied().max().unwrap_or_default();
    eprintln!(
        "{} documents and {} kills in {took:?}: {ends:?}; {passages} passages ready, {} paid, {again} of them again, one at most {most} times",
        documents.len(),
        killer.kills,
        paid.len(),
    );
    assert_eq!(paid.len() as u64, passages, "each passage of a ready document is paid, and no other");
    assert!(again <= killer.kills * AT_ONCE * BATCH, "only answers in flight may be paid again: {again}");
    for document in ready {
        let chars = text_of(&client, document, "").await.chars().count();
        assert_eq!(document["chars"], chars);
    }
    assert!(!search(&client, &collection, "keel").await.is_empty());
}
