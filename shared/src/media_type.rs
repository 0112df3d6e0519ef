//! The media type of a file: what its bytes are, whatever its name and its client say.

use holdfast_text::TextEncoding;
use memchr::memmem;

use crate::file::{DOCX, PDF, PICTURES, PPTX, XLSX, is_text};

/// The media type of bytes that nothing is known about.
pub const BYTES: &str = "application/octet-stream";

/// The media type of an archive that is no document.
const ZIP: &str = "application/zip";

/// The media type of a text that is no other.
pub const TEXT: &str = "text/plain";

/// Returns the media type of contents by their beginning. `is_whole` says whether there is no more. The name decides only which
/// kind of text a text is.
pub fn of(beginning: &[u8], is_whole: bool, name: &str) -> String {
    let reads_as_text = TextEncoding::of(beginning, is_whole).is_some();
    // A picture in SVG is a program for the browser, so it is the text that it is.
    let found = infer::get(beginning).map(|kind| kind.mime_type()).filter(|kind| !is_text(kind));
    if let Some(kind) = found.filter(|kind| *kind != PDF || is_pdf(beginning, reads_as_text, name)) {
        let office = (kind == ZIP).then(|| office_type(beginning)).flatten();
        return office.unwrap_or(kind).to_owned();
    }
    if !reads_as_text {
        return BYTES.to_owned();
    }
    // The bytes are none of what the name says, if that has signs of its own.
    let by_name = mime_guess::from_path(name).first_raw().filter(|kind| is_text(kind));
    by_name.unwrap_or(TEXT).to_owned()
}

/// Returns the usual ending of the names of such files, for types that need no name to be found.
pub fn ending(media_type: &str) -> Option<&'static str> {
    Some(match media_type {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "audio/mpeg" => "mp3",
        "audio/x-wav" => "wav",
        "audio/ogg" => "ogg",
        PDF => "pdf",
        DOCX => "docx",
        PPTX => "pptx",
        XLSX => "xlsx",
        TEXT => "txt",
        _ => return None,
    })
}

/// Returns whether a browser may show the contents in place of saving them.
pub fn is_shown(media_type: &str) -> bool {
    PICTURES.contains(&media_type) || media_type == PDF
}

/// Returns the media type of an office document by the names of its entries, in any order: each program writes its own.
fn office_type(archive: &[u8]) -> Option<&'static str> {
    /// The beginning of an entry, and the places in it of the name's length and of the name.
    const ENTRY: &[u8] = b"PK\x03\x04";
    const NAME_LENGTH: usize = 26;
    const NAME: usize = 30;

    let mut names = memmem::find_iter(archive, ENTRY).filter_map(|at| {
        let entry = &archive[at..];
        let length = entry.get(NAME_LENGTH..NAME_LENGTH + 2)?;
        entry.get(NAME..NAME + usize::from(u16::from_le_bytes([length[0], length[1]])))
    });
    let kinds: [(&[u8], &'static str); 3] = [(b"word/", DOCX), (b"ppt/", PPTX), (b"xl/", XLSX)];
    let kind_of = |name: &[u8]| kinds.iter().find(|(folder, _)| name.starts_with(folder)).map(|(_, kind)| *kind);
    // A package of another kind may contain an office document.
    let first = names.next()?;
    let is_package = first == b"[Content_Types].xml"
        || [&b"_rels/"[..], b"docProps/"].iter().any(|folder| first.starts_with(folder));
    if is_package { names.find_map(kind_of) } else { kind_of(first) }
}

/// Returns whether a file with the header of a PDF near its beginning is one. A text may name such a header, so in bytes that read
/// as a text only white space comes before it, unless the name says that the file is a PDF.
fn is_pdf(beginning: &[u8], reads_as_text: bool, name: &str) -> bool {
    memmem::find(beginning, b"%PDF-").is_some_and(|at| {
        !reads_as_text || beginning[..at].trim_ascii().is_empty() || name.to_ascii_lowercase().ends_with(".pdf")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_decide_and_the_name_only_among_texts() {
        let check = |bytes: &[u8], name: &str, expected: &str| assert_eq!(of(bytes, true, name), expected, "{name}");
        check(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a.txt", "image/png");
        check(b"%PDF-1.7\n", "a.png", PDF);
        check(b"\r\n\r\n%PDF-1.7\n", "a", PDF);
        check(b"HTTP/1.1 200 OK\r\n\r\n%PDF-1.7\n1 0 obj", "a.PDF", PDF);
        check(b"\0\x01\xff%PDF-1.7\n", "a", PDF);
        check(b"A file begins with %PDF-1.7.", "a.txt", TEXT);
        check(b"MZ\x90\0\x03\0\0\0", "a.pdf", "application/vnd.microsoft.portable-executable");
        check(b"# Title\n", "a.md", "text/markdown");
        check(b"a,b\n1,2\n", "a.csv", "text/csv");
        check("häfen".as_bytes(), "a.png", TEXT);
        check(b"{}", "a.json", "application/json");
        check(b"fn main() {}", "a.rs", "text/x-rust");
        check(b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>", "a.svg", TEXT);
        check(b"<html><script>alert(1)</script>", "a.html", "text/html");
        check(b"name;city\nJ\xf6rg;K\xf6ln\n", "people.csv", "text/csv");
        check(b"\xff\xfea\0\t\0b\0", "people.csv", "text/csv");
        check(b"a\0b\0c\0", "a.txt", TEXT);
        check(b"a\0b", "a.txt", BYTES);
        check(b"\xff\xfe\xfd", "a.txt", BYTES);
    }

    fn archive(names: &[&str]) -> Vec<u8> {
        let entry = |name: &&str| {
            let length = (name.len() as u16).to_le_bytes();
            [b"PK\x03\x04", &[0; 22][..], &length, &[0; 2], name.as_bytes(), b"contents"].concat()
        };
        names.iter().flat_map(entry).collect()
    }

    #[test]
    fn an_office_document_is_found_by_its_entries_in_any_order() {
        let check =
            |names: &[&str], expected: &str| assert_eq!(of(&archive(names), true, "a.bin"), expected, "{names:?}");
        let (types, rels, core) = ("[Content_Types].xml", "_rels/.rels", "docProps/core.xml");
        check(&[types, rels, "word/document.xml"], DOCX);
        check(&[types, rels, core, "docProps/app.xml", "word/document.xml"], DOCX);
        check(&[rels, core, "docProps/app.xml", "xl/workbook.xml", types], XLSX);
        check(&[core, "docProps/thumbnail.jpeg", rels, types, "ppt/presentation.xml"], PPTX);
        check(&["word/document.xml", types], DOCX);
        check(&["letter.docx", types, "word/document.xml"], ZIP);
        check(&[types, rels], ZIP);
        let cut = archive(&[types, "word/document.xml"]);
        assert_eq!(of(&cut[..cut.len() - 20], true, "a.docx"), ZIP);
    }

    #[test]
    fn a_character_may_end_in_the_next_part() {
        let cut = &"日本".as_bytes()[..4];
        assert_eq!(of(cut, false, "a"), TEXT);
        let cut = &b"a\0b\0c\0"[..5];
        assert_eq!((of(cut, false, "a"), of(cut, true, "a")), (TEXT.to_owned(), BYTES.to_owned()));
    }
}
