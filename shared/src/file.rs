//! Files of owners, and the messages that have them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A file, as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct StoredFile {
    /// UUIDv7.
    pub id: Uuid,
    /// The name that its owner gave it, without folders.
    pub name: String,
    /// Its media type, found in the contents and not believed.
    pub media_type: String,
    /// Bytes of the contents. While the upload lasts, the most that it can bring.
    pub bytes: u64,
    /// SHA-256 of the contents, in hexadecimal digits; null while the upload lasts.
    pub sha256: Option<String>,
    /// Bytes that the upload has stored so far. It continues from there.
    pub received: u64,
    /// Time of the database.
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
    /// Where the contents are.
    #[serde(skip)]
    pub content_id: Uuid,
    /// The request that brings bytes.
    #[serde(skip)]
    pub writer: Uuid,
}

impl StoredFile {
    /// Returns whether the file is a text.
    pub fn is_text(&self) -> bool {
        is_text(&self.media_type)
    }

    /// Returns whether the upload has ended.
    pub const fn is_complete(&self) -> bool {
        self.sha256.is_some()
    }
}

/// Bytes of each part of the contents but the last.
pub const PART_BYTES: u64 = 1 << 20;

/// Returns the number of parts of contents.
pub const fn parts_of(bytes: u64) -> u64 {
    bytes.div_ceil(PART_BYTES)
}

/// A file of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Attachment {
    /// `image` for a picture that models can see.
    #[serde(rename = "type")]
    pub kind: AttachmentKind,
    /// The file. Its owner may have deleted it.
    pub file_id: Uuid,
    /// Its name at the time of the message.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// Bytes of its contents.
    pub bytes: u64,
    /// Its place in the message: the number of bytes of UTF-8 of the text before it.
    pub offset: usize,
}

/// A file that a tool has returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ToolFile {
    /// The file. Its owner may have deleted it.
    pub file_id: Uuid,
    /// Its name: that of the tool's resource, or else one that the tool's name gives.
    pub name: String,
    /// Its media type, found in the contents and not believed.
    pub media_type: String,
    /// Bytes of its contents.
    pub bytes: u64,
}

impl From<&StoredFile> for ToolFile {
    fn from(file: &StoredFile) -> Self {
        Self { file_id: file.id, name: file.name.clone(), media_type: file.media_type.clone(), bytes: file.bytes }
    }
}

impl From<Attachment> for ToolFile {
    fn from(file: Attachment) -> Self {
        let Attachment { file_id, name, media_type, bytes, .. } = file;
        Self { file_id, name, media_type, bytes }
    }
}

impl ToolFile {
    /// Returns the path at which the API serves the file.
    pub fn path(&self) -> String {
        format!("/v1/files/{}", self.file_id)
    }
}

/// How a message has a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentKind {
    /// A picture.
    Image,
    /// Any other file.
    File,
}

/// Media types of pictures that browsers show and models see.
pub const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The media type of a PDF.
pub const PDF: &str = "application/pdf";

/// The media type of a text of Word.
pub const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/// The media type of slides of PowerPoint.
pub const PPTX: &str = "application/vnd.openxmlformats-officedocument.presentationml.presentation";

/// The media type of sheets of Excel.
pub const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";

impl Attachment {
    /// Returns the file at a place of a message.
    pub fn of(file: &StoredFile, offset: usize) -> Self {
        Self { offset, ..Self::from(&ToolFile::from(file)) }
    }

    /// Returns whether a text editor shows the file.
    pub fn is_text(&self) -> bool {
        is_text(&self.media_type)
    }

    /// Returns whether each model can get the text of the file.
    pub fn has_text(&self) -> bool {
        self.is_text() || has_extract(&self.media_type)
    }
}

impl From<&ToolFile> for Attachment {
    fn from(file: &ToolFile) -> Self {
        let ToolFile { file_id, name, media_type, bytes } = file.clone();
        let is_picture = PICTURES.contains(&media_type.as_str());
        let kind = if is_picture { AttachmentKind::Image } else { AttachmentKind::File };
        Self { kind, file_id, name, media_type, bytes, offset: 0 }
    }
}

/// Returns whether files of this media type are texts.
pub fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/") || media_type == "application/json"
}

/// Returns whether a model that does not take files of this media type gets their text, which a worker extracts.
pub fn has_extract(media_type: &str) -> bool {
    [PDF, DOCX, PPTX, XLSX].contains(&media_type)
}

/// A user's text, with files in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserContent {
    /// The text. A blank line is between what stood before and after a file.
    pub text: String,
    /// The files, in the order of their places.
    pub attachments: Vec<Attachment>,
    /// The name of the user among several, if the client tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    /// Files that the worker fetches. The text has a line in the place of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<FileLink>,
}

/// A file that a message names by an address of the web.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLink {
    /// The address.
    pub url: String,
    /// The place of the file in the message: the number of bytes of UTF-8 of the text before it.
    pub offset: usize,
    /// Why the worker could not fetch it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Most characters of an address in a line.
const SHOWN_ADDRESS: usize = 200;

impl FileLink {
    /// Returns an address as a line shows it. The line cannot end in it.
    pub fn shown(url: &str) -> String {
        let mut shown: String = url.chars().filter(|c| !c.is_control()).take(SHOWN_ADDRESS).collect();
        if shown.len() < url.len() {
            shown.push('…');
        }
        shown.replace(['[', ']'], " ")
    }
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentPart<'a> {
    /// A text.
    Text(&'a str),
    /// A file.
    File(&'a Attachment),
}

/// Between the texts of a message.
const JOINT: &str = "\n\n";

impl UserContent {
    /// Adds a text.
    pub fn push_text(&mut self, text: &str) {
        if !self.text.is_empty() && !text.is_empty() {
            self.text.push_str(JOINT);
        }
        self.text.push_str(text);
    }

    /// Adds a file.
    pub fn push_file(&mut self, file: &StoredFile) {
        self.attachments.push(Attachment::of(file, self.text.len()));
    }

    /// Adds a line in the place of a file that the worker fetches.
    pub fn push_link(&mut self, url: String) {
        self.push_text(&format!("[The file at {}]", FileLink::shown(&url)));
        self.links.push(FileLink { url, offset: self.text.len(), failure: None });
    }

    /// Returns the approximate bytes that it takes.
    pub fn stored_bytes(&self) -> usize {
        let files = self.attachments.iter().map(|attachment| 200 + attachment.name.len());
        // A link becomes a file.
        let links = self.links.iter().map(|link| 300 + link.url.len());
        self.text.len() + files.chain(links).sum::<usize>()
    }
}

impl From<String> for UserContent {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl From<&str> for UserContent {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// Returns the texts and the files of a message in order.
pub fn parts_of_message<'a>(text: &'a str, attachments: &'a [Attachment]) -> Vec<ContentPart<'a>> {
    let mut parts = Vec::new();
    let mut at = 0;
    for attachment in attachments {
        // A place that an older text had, or another program made, is the end.
        let place = if text.is_char_boundary(attachment.offset) { attachment.offset.max(at) } else { text.len() };
        push_text(&mut parts, &text[at..place]);
        parts.push(ContentPart::File(attachment));
        at = place;
    }
    push_text(&mut parts, &text[at..]);
    parts
}

fn push_text<'a>(parts: &mut Vec<ContentPart<'a>>, text: &'a str) {
    let follows_file = matches!(parts.last(), Some(ContentPart::File(_)));
    let text = if follows_file { text.strip_prefix(JOINT).unwrap_or(text) } else { text };
    if !text.is_empty() {
        parts.push(ContentPart::Text(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, media_type: &str) -> StoredFile {
        StoredFile {
            id: Uuid::nil(),
            name: name.into(),
            media_type: media_type.into(),
            bytes: 3,
            sha256: Some(String::new()),
            received: 3,
            created_at: DateTime::UNIX_EPOCH,
            content_id: Uuid::nil(),
            writer: Uuid::nil(),
        }
    }

    /// Builds a message, and returns its text and its parts, files by their names.
    fn parts(given: &[Result<&str, &str>]) -> (String, Vec<String>) {
        let mut content = UserContent::default();
        for part in given {
            match part {
                Ok(text) => content.push_text(text),
                Err(name) => content.push_file(&file(name, "image/png")),
            }
        }
        let parts = parts_of_message(&content.text, &content.attachments).into_iter().map(|part| match part {
            ContentPart::Text(text) => text.to_owned(),
            ContentPart::File(file) => format!("<{}>", file.name),
        });
        let parts = parts.collect();
        (content.text, parts)
    }

    #[test]
    fn files_keep_their_places_among_the_texts() {
        let check = |given: &[Result<&str, &str>], text: &str, expected: &[&str]| {
            assert_eq!(parts(given), (text.to_owned(), expected.iter().map(|part| (*part).to_owned()).collect()));
        };
        check(&[Ok("a")], "a", &["a"]);
        check(&[Err("1"), Ok("a")], "a", &["<1>", "a"]);
        check(&[Ok("é"), Err("1"), Err("2"), Ok("b"), Err("3")], "é\n\nb", &["é", "<1>", "<2>", "b", "<3>"]);
        check(&[Ok("a"), Ok("b"), Err("1")], "a\n\nb", &["a\n\nb", "<1>"]);
        check(&[Err("1")], "", &["<1>"]);
    }

    #[test]
    fn a_place_outside_of_the_text_is_its_end() {
        let attachment = |offset| Attachment { offset, ..Attachment::of(&file("1", PDF), 0) };
        for offset in [1, 9] {
            let attachments = [attachment(offset)];
            assert_eq!(
                parts_of_message("é", &attachments),
                [ContentPart::Text("é"), ContentPart::File(&attachments[0])]
            );
        }
        assert_eq!(attachment(0).kind, AttachmentKind::File);
        assert_eq!(Attachment::of(&file("1", "image/webp"), 0).kind, AttachmentKind::Image);
    }
}
