//! The layout of SQL: each statement has a name in its file's block, a place in the list, and short lines.

use crate::sources;

const STORAGE: &str = "shared/src/storage/";

/// Columns of a line of SQL.
const COLUMNS: usize = 100;

/// Files with SQL outside of a block, because no connection may prepare it.
const UNPREPARED: &[&str] = &[
    // It finds out whether prepared statements work at all.
    "sql/pooler.rs",
    // It tests a connection before the pool has it.
    "sql/servers.rs",
];

/// Lists of statements, each with the beginning of the paths that it covers. The first match counts.
const LISTS: &[(&str, &str)] = &[("run/", "run/statements.rs"), ("sql/", "sql/mod.rs"), ("", "statements.rs")];

/// A file of storage, without its tests and the lines of comments.
struct StorageFile {
    /// The path below the folder of storage.
    name: String,
    /// The statements of its block.
    statements: String,
    /// The fragments that its statements share.
    fragments: String,
    /// All other code.
    code: String,
}

fn files() -> Vec<StorageFile> {
    let files = sources().into_iter().filter_map(|(path, text)| Some((path.strip_prefix(STORAGE)?.to_owned(), text)));
    files.map(|(name, text)| StorageFile::read(name, &text)).collect()
}

impl StorageFile {
    fn read(name: String, text: &str) -> Self {
        let text = text.split("#[cfg(test)]").next().unwrap();
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        let mut file = Self { name, statements: String::new(), fragments: String::new(), code: String::new() };
        // A block begins and ends in the first column.
        let mut is_in = None;
        for line in text.lines().filter(is_code) {
            is_in = match is_in {
                None if line == "statements! {" => Some(true),
                None if line.starts_with("macro_rules! ") => Some(false),
                is_in => is_in,
            };
            let part = match is_in {
                Some(true) => &mut file.statements,
                Some(false) => &mut file.fragments,
                None => &mut file.code,
            };
            part.push_str(line);
            part.push('\n');
            if line == "}" {
                is_in = None;
            }
        }
        file
    }

    /// The names of its statements.
    fn names(&self) -> Vec<&str> {
        let entries = self.statements.lines().filter_map(|line| line.strip_prefix("    "));
        let names = entries.filter_map(|entry| entry.split_once([' ']).map(|(name, _)| name));
        names.filter(|name| name.starts_with(|first: char| first.is_ascii_uppercase())).collect()
    }
}

/// The texts between quotation marks.
fn literals(code: &str) -> Vec<String> {
    let code = code.replace("\\\\", "").replace("\\\"", "").replace("'\"'", "");
    let texts = code.split('"').skip(1).step_by(2);
    texts.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn is_sql(text: &str) -> bool {
    let begins = |beginning: &str| text.starts_with(beginning);
    begins("select ")
        || begins("insert into ")
        || begins("delete from ")
        || begins("update ") && text.contains(" set ")
        || begins("with ") && text.contains(" as ")
}

#[test]
fn every_statement_stands_in_its_files_block() {
    let mut found = Vec::new();
    for file in files().iter().filter(|file| !UNPREPARED.contains(&file.name.as_str())) {
        let statements = literals(&file.code).into_iter().filter(|text| is_sql(text));
        found.extend(statements.map(|text| format!("{}: {text}", file.name)));
    }
    assert!(found.is_empty(), "declare these statements with `statements!`: {found:#?}");
}

#[test]
fn every_block_is_in_the_list_that_a_test_prepares() {
    let files = files();
    let code = |name: &str| &files.iter().find(|file| file.name == name).unwrap().code;
    for file in files.iter().filter(|file| !file.statements.is_empty()) {
        let (folder, list) = LISTS.iter().find(|(folder, _)| file.name.starts_with(folder)).unwrap();
        let module = file.name.strip_prefix(folder).unwrap().trim_end_matches(".rs").to_owned();
        let is_listed = code(list).contains(&format!(" {module}::STATEMENTS"))
            || code(list).contains(&format!("[{module}::STATEMENTS"));
        assert!(is_listed, "{list} lacks the statements of {}", file.name);
    }
}

#[test]
fn every_statement_is_used() {
    for file in files() {
        let words: Vec<_> = file.code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        for name in file.names() {
            assert!(words.contains(&name), "{} declares {name}, and does not use it", file.name);
        }
    }
}

#[test]
fn every_line_of_sql_is_short() {
    for file in files().iter().filter(|file| file.name != "sql/statement.rs") {
        for line in file.statements.lines().chain(file.fragments.lines()) {
            assert!(line.chars().count() <= COLUMNS, "{} has a long line: {line}", file.name);
        }
    }
}
