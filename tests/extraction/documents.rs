//! Small documents of each format, made by hand.

use std::{
    fmt::Write as _,
    io::{Cursor, Read, Write},
};

use zip::{CompressionMethod, ZipArchive, ZipWriter, write::SimpleFileOptions};

pub const PDF: &str = "application/pdf";
pub const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
pub const PPTX: &str = "application/vnd.openxmlformats-officedocument.presentationml.presentation";
pub const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";

const WORD: &str = "xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\"";
const DRAWING: &str = "xmlns:a=\"http://schemas.openxmlformats.org/drawingml/2006/main\" \
     xmlns:p=\"http://schemas.openxmlformats.org/presentationml/2006/main\" \
     xmlns:r=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships\"";
const SHEET: &str = "xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\" \
     xmlns:r=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships\"";
const RELATIONSHIP: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

/// Returns a zip archive of the entries.
pub fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
    packed(entries, CompressionMethod::Deflated)
}

fn packed(entries: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, contents) in entries {
        writer.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
        writer.write_all(contents).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn content_types(parts: &[(&str, &str)]) -> String {
    let mut types = "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\">\
                     <Default Extension=\"xml\" ContentType=\"application/xml\"/>"
        .to_owned();
    for (part, kind) in parts {
        let kind = format!("application/vnd.openxmlformats-officedocument.{kind}+xml");
        write!(types, "<Override PartName=\"/{part}\" ContentType=\"{kind}\"/>").unwrap();
    }
    types + "</Types>"
}

fn relationships(targets: &[(&str, String)]) -> String {
    let mut text = "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">".to_owned();
    for (number, (kind, target)) in targets.iter().enumerate() {
        let kind = format!("{RELATIONSHIP}/{kind}");
        write!(text, "<Relationship Id=\"rId{}\" Type=\"{kind}\" Target=\"{target}\"/>", number + 1).unwrap();
    }
    text + "</Relationships>"
}

/// Returns a document whose main part is the XML.
pub fn docx_of(main: &[u8]) -> Vec<u8> {
    word(main, CompressionMethod::Deflated)
}

/// Returns a document whose main part is the XML, without compression.
pub fn stored_docx_of(main: &[u8]) -> Vec<u8> {
    word(main, CompressionMethod::Stored)
}

fn word(main: &[u8], method: CompressionMethod) -> Vec<u8> {
    let types = content_types(&[("word/document.xml", "wordprocessingml.document.main")]);
    let package = relationships(&[("officeDocument", "word/document.xml".to_owned())]);
    let numbering = format!(
        "<w:numbering {WORD}><w:abstractNum w:abstractNumId=\"0\"><w:lvl w:ilvl=\"0\"><w:numFmt w:val=\"bullet\"/>\
         </w:lvl></w:abstractNum><w:num w:numId=\"1\"><w:abstractNumId w:val=\"0\"/></w:num></w:numbering>"
    );
    let styles = format!(
        "<w:styles {WORD}><w:style w:type=\"paragraph\" w:styleId=\"Heading1\"><w:name w:val=\"heading 1\"/>\
         <w:pPr><w:outlineLvl w:val=\"0\"/></w:pPr></w:style></w:styles>"
    );
    let parts = [
        ("[Content_Types].xml", types.as_bytes()),
        ("_rels/.rels", package.as_bytes()),
        ("word/document.xml", main),
        ("word/numbering.xml", numbering.as_bytes()),
        ("word/styles.xml", styles.as_bytes()),
    ];
    packed(&parts, method)
}

/// Returns the main part with the XML as its body.
pub fn word_body(body: &str) -> String {
    format!("<?xml version=\"1.0\"?><w:document {WORD}><w:body>{body}</w:body></w:document>")
}

/// Returns a document with a heading, a paragraph, a list and a table.
pub fn docx() -> Vec<u8> {
    let run = |text: &str| format!("<w:r><w:t xml:space=\"preserve\">{text}</w:t></w:r>");
    let paragraph = |properties: &str, runs: &str| format!("<w:p><w:pPr>{properties}</w:pPr>{runs}</w:p>");
    let item = "<w:numPr><w:ilvl w:val=\"0\"/><w:numId w:val=\"1\"/></w:numPr>";
    let cells = |texts: [&str; 2]| {
        let cells = texts.map(|text| format!("<w:tc>{}</w:tc>", paragraph("", &run(text))));
        format!("<w:tr>{}</w:tr>", cells.concat())
    };
    let slanted = "<w:r><w:rPr><w:i/></w:rPr><w:t>this</w:t></w:r>";
    let body = [
        paragraph("<w:pStyle w:val=\"Heading1\"/>", &run("Install")),
        paragraph("", &[run("First, read "), slanted.to_owned(), run(" text.")].concat()),
        paragraph(item, &run("one")),
        paragraph(item, &run("two")),
        format!("<w:tbl>{}{}</w:tbl>", cells(["A", "B"]), cells(["1", "2"])),
    ];
    docx_of(word_body(&body.concat()).as_bytes())
}

/// Returns a presentation with a slide for each text.
pub fn pptx(texts: &[&str]) -> Vec<u8> {
    let types = content_types(&[("ppt/presentation.xml", "presentationml.presentation.main")]);
    let package = relationships(&[("officeDocument", "ppt/presentation.xml".to_owned())]);
    let numbers = 1..=texts.len();
    let ids = numbers.clone().map(|n| format!("<p:sldId id=\"{}\" r:id=\"rId{n}\"/>", 255 + n));
    let ids: String = ids.collect();
    let main = format!("<p:presentation {DRAWING}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>");
    let targets: Vec<_> = numbers.map(|n| ("slide", format!("slides/slide{n}.xml"))).collect();
    let slides = relationships(&targets);
    let mut parts = vec![
        ("[Content_Types].xml".to_owned(), types),
        ("_rels/.rels".to_owned(), package),
        ("ppt/presentation.xml".to_owned(), main),
        ("ppt/_rels/presentation.xml.rels".to_owned(), slides),
    ];
    for ((_, target), text) in targets.iter().zip(texts) {
        let body = format!("<p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody>");
        let tree = format!("<p:cSld><p:spTree><p:sp>{body}</p:sp></p:spTree></p:cSld>");
        parts.push((format!("ppt/{target}"), format!("<p:sld {DRAWING}>{tree}</p:sld>")));
    }
    archive_of(&parts)
}

/// Returns a workbook with a small sheet of each name.
pub fn xlsx(names: &[&str]) -> Vec<u8> {
    let text = |cell: &str, text: &str| format!("<c r=\"{cell}\" t=\"inlineStr\"><is><t>{text}</t></is></c>");
    let head = format!("<row r=\"1\">{}{}</row>", text("A1", "id"), text("B1", "name"));
    let row = format!("<row r=\"2\"><c r=\"A2\"><v>1</v></c>{}</row>", text("B2", "first"));
    xlsx_of(names, &(head + &row))
}

/// Returns a workbook whose sheets have the rows.
pub fn xlsx_of(names: &[&str], rows: &str) -> Vec<u8> {
    let types = content_types(&[("xl/workbook.xml", "spreadsheetml.sheet.main")]);
    let package = relationships(&[("officeDocument", "xl/workbook.xml".to_owned())]);
    let numbered = names.iter().enumerate().map(|(index, name)| (index + 1, name));
    let sheets = numbered.map(|(n, name)| format!("<sheet name=\"{name}\" sheetId=\"{n}\" r:id=\"rId{n}\"/>"));
    let sheets: String = sheets.collect();
    let main = format!("<workbook {SHEET}><sheets>{sheets}</sheets></workbook>");
    let targets: Vec<_> = (1..=names.len()).map(|n| ("worksheet", format!("worksheets/sheet{n}.xml"))).collect();
    let mut parts = vec![
        ("[Content_Types].xml".to_owned(), types),
        ("_rels/.rels".to_owned(), package),
        ("xl/workbook.xml".to_owned(), main),
        ("xl/_rels/workbook.xml.rels".to_owned(), relationships(&targets)),
    ];
    for (_, target) in &targets {
        let sheet = format!("<worksheet {SHEET}><sheetData>{rows}</sheetData></worksheet>");
        parts.push((format!("xl/{target}"), sheet));
    }
    archive_of(&parts)
}

fn archive_of(parts: &[(String, String)]) -> Vec<u8> {
    let parts: Vec<_> = parts.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
    archive(&parts)
}

/// Returns a PDF with a page for each text.
pub fn pdf(texts: &[&str]) -> Vec<u8> {
    let kids: String = (0..texts.len()).map(|index| format!("{} 0 R ", 4 + 2 * index)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", texts.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    for (index, text) in texts.iter().enumerate() {
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> \
             /Contents {} 0 R >>",
            5 + 2 * index
        ));
        objects.push(stream(&format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET")));
    }
    pdf_of(&objects, "")
}

/// Returns the objects of a PDF with one page: the fifth is its contents. Others can be added.
pub fn one_page(contents: &str, resources: &str) -> Vec<String> {
    vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
        format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Resources << {resources} >> /Contents 5 0 R >>"),
        stream(contents),
    ]
}

/// Returns a PDF of 2 kB that costs its reader minutes: its font maps four billion codes, again and again.
pub fn looping_pdf() -> Vec<u8> {
    let ranges = "<0000> <FFFFFFFF> <0000>\n".repeat(50);
    let codes = "1 begincodespacerange <0000> <FFFF> endcodespacerange";
    let mut objects = one_page("BT /F1 12 Tf 1 1 Td (loop) Tj ET", "/Font << /F1 3 0 R >>");
    objects[2] = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R >>".to_owned();
    objects.push(stream(&format!("{codes}\n50 beginbfrange\n{ranges}endbfrange")));
    pdf_of(&objects, "")
}

/// Returns bytes compressed for a stream of PDF, but for the checksum.
pub fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut archive = ZipArchive::new(Cursor::new(archive(&[("bytes", bytes)]))).unwrap();
    let mut packed = b"\x78\x9c".to_vec();
    archive.by_index_raw(0).unwrap().read_to_end(&mut packed).unwrap();
    packed
}

/// Returns an object that is a stream.
pub fn stream(contents: &str) -> String {
    format!("<< /Length {} >>\nstream\n{contents}\nendstream", contents.len())
}

/// Returns a PDF of the objects, of which the first is the catalogue. `trailer` is added to the trailer.
pub fn pdf_of(objects: &[String], trailer: &str) -> Vec<u8> {
    pdf_with("%PDF-1.7\n", objects, trailer)
}

/// Returns a PDF that counts its places from the bytes before its header.
pub fn pdf_after(before: &str, objects: &[String]) -> Vec<u8> {
    pdf_with(&format!("{before}%PDF-1.7\n"), objects, "")
}

/// Returns the objects of a PDF with one page that has the text.
pub fn one_page_of(text: &str) -> Vec<String> {
    one_page(&format!("BT /F1 12 Tf 1 1 Td ({text}) Tj ET"), "/Font << /F1 3 0 R >>")
}

fn pdf_with(header: &str, objects: &[String], trailer: &str) -> Vec<u8> {
    let mut file = header.to_owned();
    let mut table = "0000000000 65535 f \n".to_owned();
    for (number, object) in (1..).zip(objects) {
        writeln!(table, "{:010} 00000 n ", file.len()).unwrap();
        writeln!(file, "{number} 0 obj\n{object}\nendobj").unwrap();
    }
    let (start, size) = (file.len(), objects.len() + 1);
    write!(file, "xref\n0 {size}\n{table}trailer\n<< /Size {size} /Root 1 0 R {trailer} >>\n").unwrap();
    write!(file, "startxref\n{start}\n%%EOF\n").unwrap();
    file.into_bytes()
}
