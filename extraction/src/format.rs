//! The formats whose text is extracted, by media type.

/// Media types of texts outside of `text/`.
const TEXTS: &[&str] = &[
    "application/ecmascript",
    "application/graphql",
    "application/javascript",
    "application/json",
    "application/sql",
    "application/toml",
    "application/typescript",
    "application/x-httpd-php",
    "application/x-javascript",
    "application/x-ndjson",
    "application/x-perl",
    "application/x-python",
    "application/x-ruby",
    "application/x-sh",
    "application/x-tex",
    "application/x-yaml",
    "application/xml",
    "application/yaml",
];

/// A family of formats with one reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentFormat {
    Pdf,
    /// DOCX, PPTX and XLSX: zip archives of XML, which say themselves which of the three they are.
    Office,
    Html,
    Markdown,
    /// Prose without marks.
    Plain,
    /// A text in which a line means something: source code, CSV, JSON.
    Lines,
}

impl DocumentFormat {
    /// Returns the format of a media type; parameters and case do not count.
    pub fn of(media_type: &str) -> Option<Self> {
        let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            "application/pdf" => Some(Self::Pdf),
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
            | "application/vnd.openxmlformats-officedocument.presentationml.presentation"
            | "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => Some(Self::Office),
            "text/html" | "application/xhtml+xml" => Some(Self::Html),
            "text/markdown" | "text/x-markdown" => Some(Self::Markdown),
            "text/plain" => Some(Self::Plain),
            // Its marks would be most of the text.
            "text/rtf" => None,
            text if text.starts_with("text/") || TEXTS.contains(&text) => Some(Self::Lines),
            other if other.starts_with("application/") && (other.ends_with("+json") || other.ends_with("+xml")) => {
                Some(Self::Lines)
            }
            _ => None,
        }
    }

    /// Returns whether the extracted text is Markdown.
    pub const fn is_markdown(self) -> bool {
        matches!(self, Self::Pdf | Self::Office | Self::Html | Self::Markdown)
    }
}

/// Returns whether text can be extracted from files of the media type.
pub fn is_supported(media_type: &str) -> bool {
    DocumentFormat::of(media_type).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_media_type_has_its_format() {
        let check = |media_type: &str, expected| assert_eq!(DocumentFormat::of(media_type), expected, "{media_type}");
        check("application/pdf", Some(DocumentFormat::Pdf));
        check("application/vnd.openxmlformats-officedocument.wordprocessingml.document", Some(DocumentFormat::Office));
        check("Text/HTML; charset=utf-8", Some(DocumentFormat::Html));
        check("text/markdown", Some(DocumentFormat::Markdown));
        check("text/plain", Some(DocumentFormat::Plain));
        check("text/csv", Some(DocumentFormat::Lines));
        check("text/x-rust", Some(DocumentFormat::Lines));
        check("application/json", Some(DocumentFormat::Lines));
        check("application/ld+json", Some(DocumentFormat::Lines));
        check("text/rtf", None);
        check("image/png", None);
        check("image/svg+xml", None);
        check("application/msword", None);
        check("application/zip", None);
        check("", None);
    }
}
