//! Files that are made to harm their reader: each ends as an error with a reason, within its time.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::stream;
use holdfast_extraction::{ExtractFailure, ExtractionLimits, Extractor};

use super::{
    Extraction, LIMITS, PROGRAM, code,
    documents::{self, DOCX, PDF, PPTX, XLSX, archive, docx_of, pdf_of, stored_docx_of, word_body},
    extract_within,
};

/// Time for a hostile file: no longer than a test may wait.
const SHORT: ExtractionLimits = ExtractionLimits { time: Duration::from_secs(10), ..LIMITS };

/// The parts of the time that a test waits beyond the limit: the child's start, and its end.
const GRACE: Duration = Duration::from_secs(20);

async fn extract_hostile(media_type: &str, contents: &[u8]) -> Extraction {
    extract_hostile_within(SHORT, media_type, contents).await
}

async fn extract_hostile_within(limits: ExtractionLimits, media_type: &str, contents: &[u8]) -> Extraction {
    let started = Instant::now();
    let extraction = extract_within(limits, media_type, contents).await;
    assert!(started.elapsed() < limits.time + GRACE, "{:?}: {extraction:?}", started.elapsed());
    extraction
}

#[tokio::test]
async fn an_archive_that_expands_without_end_is_refused() {
    let zeros = vec![0; 32 * 1024 * 1024];
    let bomb = docx_of(&zeros);
    assert!(bomb.len() < 100_000, "{}", bomb.len());
    assert_eq!(code(&extract_hostile(DOCX, &bomb).await), "malformed_document");
    let spaces = " ".repeat(32 * 1024 * 1024);
    let bomb = docx_of(word_body(&format!("<w:p><w:r><w:t>{spaces}a</w:t></w:r></w:p>")).as_bytes());
    assert_eq!(code(&extract_hostile(DOCX, &bomb).await), "malformed_document");
}

#[tokio::test]
async fn entities_are_not_expanded() {
    let mut entities = "<!ENTITY a0 \"laugh\">".to_owned();
    for level in 1..10 {
        let before = format!("&a{};", level - 1).repeat(10);
        write!(entities, "<!ENTITY a{level} \"{before}\">").unwrap();
    }
    let body = word_body("<w:p><w:r><w:t>before &a9; after</w:t></w:r></w:p>");
    let main = body.replacen("?>", &format!("?><!DOCTYPE x [{entities}]>"), 1);
    let extraction = extract_hostile(DOCX, &docx_of(main.as_bytes())).await;
    assert!(!format!("{extraction:?}").contains("laugh"), "{extraction:?}");
    let outside = main.replacen("<!ENTITY a9", "<!ENTITY b SYSTEM \"file:///etc/passwd\"><!ENTITY a9", 1);
    let outside = outside.replace("&a9; after", "&b; after");
    let extraction = extract_hostile(DOCX, &docx_of(outside.as_bytes())).await;
    assert!(!format!("{extraction:?}").contains("root"), "{extraction:?}");
}

#[tokio::test]
async fn a_document_nested_a_million_deep_ends() {
    for element in ["w:p", "w:tbl", "w:sdt", "w:r"] {
        let deep = format!("<{element}>").repeat(1_000_000) + &format!("</{element}>").repeat(1_000_000);
        let extraction = extract_hostile(DOCX, &stored_docx_of(word_body(&deep).as_bytes())).await;
        assert_ne!(code(&extraction), "text", "{element}");
    }
}

#[tokio::test]
async fn a_page_nested_deep_ends() {
    for element in ["div", "b", "blockquote", "ul><li"] {
        let deep = format!("<{element}>").repeat(200_000) + "hello";
        let limits = ExtractionLimits { time: Duration::from_secs(3), ..LIMITS };
        let extraction = extract_hostile_within(limits, "text/html", deep.as_bytes()).await;
        let expected = ["malformed_document", "extraction_timed_out", "document_too_large", "extraction_out_of_memory"];
        assert!(expected.contains(&code(&extraction)), "{element}: {extraction:?}");
    }
    // A page that is only deep for a person is read.
    let deep = "<div>".repeat(500) + "hello" + &"</div>".repeat(500);
    assert_eq!(extract_hostile("text/html", deep.as_bytes()).await.unwrap().text.trim(), "hello");
}

#[tokio::test]
async fn a_pdf_whose_pages_are_a_circle_ends() {
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R 2 0 R] /Count 4 >>",
        "<< /Type /Pages /Parent 2 0 R /Kids [2 0 R 3 0 R] /Count 2 >>",
    ];
    let objects = objects.map(str::to_owned);
    assert_ne!(code(&extract_hostile(PDF, &pdf_of(&objects, "")).await), "text");
}

#[tokio::test]
async fn a_pdf_of_nested_brackets_ends() {
    let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
    let objects = [format!("<< /Type /Catalog /Pages 2 0 R /Deep {deep} >>"), "<< /Type /Pages /Kids [] >>".to_owned()];
    assert_eq!(code(&extract_hostile(PDF, &pdf_of(&objects, "")).await), "malformed_document");
    let one_page = String::from_utf8(documents::pdf(&["(deep)"])).unwrap().replace("(deep)", &deep);
    assert_eq!(code(&extract_hostile(PDF, one_page.as_bytes()).await), "malformed_document");
}

#[tokio::test]
async fn a_pdf_whose_forms_double_forty_times_ends() {
    let forms = (0..40).map(|level| {
        let contents = if level < 39 { "/X Do /X Do" } else { "BT /F1 12 Tf 72 700 Td (laugh) Tj ET" };
        let resources = format!("<< /Font << /F1 3 0 R >> /XObject << /X {} 0 R >> >>", 7 + level);
        let form = format!("<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources {resources}");
        documents::stream(contents).replacen("<<", &form, 1)
    });
    let mut objects = documents::one_page("/X Do", "/XObject << /X 6 0 R >>");
    objects.extend(forms);
    let extraction = extract_hostile(PDF, &pdf_of(&objects, "")).await;
    assert_ne!(code(&extraction), "extraction_failed", "{extraction:?}");
}

#[tokio::test]
async fn a_pdf_that_maps_codes_without_end_ends() {
    let limits = ExtractionLimits { time: Duration::from_secs(3), ..LIMITS };
    let looping = documents::looping_pdf();
    assert!(looping.len() < 2_500, "{}", looping.len());
    assert_eq!(code(&extract_hostile_within(limits, PDF, &looping).await), "extraction_timed_out");
}

#[tokio::test]
async fn a_stream_that_expands_without_end_stays_within_the_memory() {
    let limits = ExtractionLimits { memory_bytes: 64 * 1024 * 1024, ..SHORT };
    let packed = documents::zlib(&vec![b' '; 128 * 1024 * 1024]);
    let hex: String = packed.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut objects = documents::one_page("", "");
    objects[4] = documents::stream(&hex).replacen("<<", "<< /Filter [/ASCIIHexDecode /FlateDecode]", 1);
    let extraction = extract_hostile_within(limits, PDF, &pdf_of(&objects, "")).await;
    assert_eq!(code(&extraction), "extraction_out_of_memory", "{extraction:?}");
}

#[tokio::test]
async fn a_sheet_of_distant_cells_ends() {
    let row = |number: u32| format!("<row r=\"{number}\"><c r=\"XFD{number}\"><v>1</v></c></row>");
    let rows: String = (1..10_000).map(row).collect();
    let sheet = documents::xlsx_of(&["far"], &rows);
    // It ends by its size, which takes a busy machine some time.
    let extraction = extract_hostile_within(LIMITS, XLSX, &sheet).await;
    assert!(["document_too_large", "extraction_out_of_memory"].contains(&code(&extraction)), "{extraction:?}");
}

#[tokio::test]
async fn a_pdf_of_ten_thousand_pages_is_too_large() {
    let texts = vec!["page"; 10_000];
    let extraction = extract_hostile_within(LIMITS, PDF, &documents::pdf(&texts)).await;
    assert_eq!(code(&extraction), "document_too_large");
}

#[tokio::test]
async fn an_encrypted_document_says_so() {
    let mut objects =
        vec!["<< /Type /Catalog /Pages 2 0 R >>".to_owned(), "<< /Type /Pages /Kids [] /Count 0 >>".to_owned()];
    let key = "00".repeat(32);
    objects.push(format!("<< /Filter /Standard /V 2 /R 3 /Length 128 /P -4 /O <{key}> /U <{key}> >>"));
    let encrypted = pdf_of(&objects, "/Encrypt 3 0 R /ID [<00> <00>]");
    assert_eq!(code(&extract_hostile(PDF, &encrypted).await), "encrypted_document");
}

#[tokio::test]
async fn an_endless_text_is_too_large_before_it_ends() {
    let endless = stream::repeat_with(|| Ok::<_, String>(Bytes::from("1,2,3\n".repeat(10_000))));
    let extraction = Extractor::with_program(PROGRAM, SHORT).extract("text/csv", endless).await;
    let Err(ExtractFailure::Document(error)) = extraction else {
        panic!("{extraction:?}");
    };
    assert_eq!(error.code(), "document_too_large");
}

#[tokio::test]
async fn a_document_that_needs_more_memory_than_its_limit_says_so() {
    let limits = ExtractionLimits { memory_bytes: 64 * 1024 * 1024, ..LIMITS };
    let large = "<p>hello</p>".repeat(2_000_000);
    let extraction = extract_within(limits, "text/html", large.as_bytes()).await;
    assert_eq!(code(&extraction), "extraction_out_of_memory", "{extraction:?}");
    let limits_of_text = ExtractionLimits { text_bytes: u64::MAX, ..limits };
    let extraction = extract_within(limits_of_text, "text/plain", &vec![b'a'; 80 * 1024 * 1024]).await;
    assert_eq!(code(&extraction), "extraction_out_of_memory", "{extraction:?}");
    let small = extract_within(limits, DOCX, &documents::docx()).await;
    assert_eq!(code(&small), "text", "{small:?}");
}

#[tokio::test]
async fn a_truncated_document_ends() {
    let formats = [
        (PDF, documents::pdf(&["Hello there", "Good bye"])),
        (DOCX, documents::docx()),
        (PPTX, documents::pptx(&["First", "Second"])),
        (XLSX, documents::xlsx(&["Costs"])),
        ("text/html", b"<html><table><tr><td>text</td></tr></table></html>".to_vec()),
    ];
    for (media_type, complete) in formats {
        for part in 0..8 {
            let extraction = extract_hostile(media_type, &complete[..complete.len() * part / 8]).await;
            let expected: &[_] = match media_type {
                PDF | "text/html" => &["text", "no_text", "malformed_document"],
                _ => &["malformed_document"],
            };
            assert!(expected.contains(&code(&extraction)), "{media_type} {part}/8: {extraction:?}");
        }
    }
}

#[tokio::test]
async fn random_bytes_are_malformed_under_each_media_type() {
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let random: Vec<u8> = (0..50_000).map(|_| random()).collect();
    for media_type in [PDF, DOCX, PPTX, XLSX, "text/plain", "text/csv", "application/json", "text/markdown"] {
        let extraction = extract_hostile(media_type, &random).await;
        assert_eq!(code(&extraction), "malformed_document", "{media_type}: {extraction:?}");
    }
    for (media_type, beginning) in
        [(PDF, &b"%PDF-1.7\n"[..]), (DOCX, b"PK\x03\x04"), (XLSX, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")]
    {
        let extraction = extract_hostile(media_type, &[beginning, &random].concat()).await;
        assert_eq!(code(&extraction), "malformed_document", "{media_type}: {extraction:?}");
    }
    let other = archive(&[("hello.txt", b"hello")]);
    assert_eq!(code(&extract_hostile(DOCX, &other).await), "malformed_document");
    assert_ne!(code(&extract_hostile("text/html", &random).await), "extraction_failed");
}
