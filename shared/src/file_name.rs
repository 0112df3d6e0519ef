//! The names of files: without folders, and without what would hide their ending.

use holdfast_text::composed;

use crate::{
    hidden::{is_visible, without_hidden},
    media_type,
};

/// Characters of a file's name; the end of a longer one stays, because it has the ending.
const MAX_NAME_CHARS: usize = 200;

/// The name of a file without one.
const UNNAMED: &str = "file";

/// Returns the name of a file in composed letters, without its folders, and without characters that a terminal or a header would obey.
pub fn plain_name(name: &str) -> String {
    let name = composed(name.rsplit(['/', '\\']).next().unwrap_or_default());
    let name = without_hidden(&name);
    let plain: Vec<char> = name.chars().filter(|char| !char.is_control()).collect();
    let kept: String = plain[plain.len().saturating_sub(MAX_NAME_CHARS)..].iter().collect();
    Some(kept.trim()).filter(|name| is_visible(name)).unwrap_or(UNNAMED).to_owned()
}

/// Returns the name of a call's file that has none of its own, such as `draw.png` and `draw-2.png`. `number` counts the files
/// of the call, from 1.
pub fn name_from_tool(tool: &str, number: usize, media_type: &str) -> String {
    let counted = if number == 1 { tool.to_owned() } else { format!("{tool}-{number}") };
    plain_name(&match media_type::ending(media_type) {
        Some(ending) => format!("{counted}.{ending}"),
        None => counted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_neither_folders_nor_hidden_characters() {
        let check = |name: &str, expected: &str| assert_eq!(plain_name(name), expected, "{name:?}");
        check("../notes/a b.txt", "a b.txt");
        check("invoice\u{202e}fdp.exe", "invoicefdp.exe");
        check("a\u{200b}.p\u{feff}df\n", "a.pdf");
        check("a\u{200d}.pdf", "a.pdf");
        check("Bru\u{308}cke; \"neu\".pdf", "Brücke; \"neu\".pdf");
        check("👩\u{200d}💻.png", "👩\u{200d}💻.png");
        check("\u{200b}\u{2066}", "file");
        check("\u{3164}", "file");
    }

    #[test]
    fn a_file_without_a_name_has_its_tools_and_the_ending_of_its_type() {
        let check = |tool: &str, number: usize, media_type: &str, expected: &str| {
            assert_eq!(name_from_tool(tool, number, media_type), expected);
        };
        check("draw", 1, "image/png", "draw.png");
        check("draw", 2, "image/jpeg", "draw-2.jpg");
        check("report", 1, "application/pdf", "report.pdf");
        check("read", 1, "text/plain", "read.txt");
        check("read", 1, "application/octet-stream", "read");
        check("../a\u{202e}", 1, "image/gif", "a.gif");
    }
}
