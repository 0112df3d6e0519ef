//! The statements of fenced writes, in the order of PostgreSQL's combined statement, so that a test can prepare each.

use super::{
    batch::{combined, part},
    statement::Sql,
};

/// The statements of fenced writes.
pub struct FencedTexts {
    /// Statements before the fence, each with the name by which later ones read it.
    pub before: &'static [(&'static str, Sql)],
    pub fence: Sql,
    /// Each write that may follow the fence.
    pub writes: &'static [Sql],
}

impl FencedTexts {
    /// Returns whether the statement is one of these.
    pub fn contains(&self, statement: Sql) -> bool {
        let before = self.before.iter().map(|(_, sql)| sql);
        before.chain([&self.fence]).chain(self.writes).any(|sql| sql.name() == statement.name())
    }

    /// Returns the name of each statement, with the text of this statement after those that it reads.
    pub fn for_postgres(&self) -> Vec<(&'static str, String)> {
        let (mut parts, mut parameters, mut texts) = (Vec::new(), 0, Vec::new());
        for (name, sql) in self.before.iter().copied().chain([("fence", self.fence)]) {
            parts.push(part(name, sql, parameters));
            parameters += parameters_of(sql);
            texts.push((sql.name(), combined(&parts, name)));
        }
        for write in self.writes {
            parts.push(part("write", *write, parameters));
            texts.push((write.name(), combined(&parts, "fence")));
            parts.pop();
        }
        texts
    }
}

/// Returns the highest number of a parameter.
fn parameters_of(sql: Sql) -> usize {
    let text = sql.for_postgres();
    let digits = |part: &str| part.chars().take_while(char::is_ascii_digit).collect::<String>();
    text.split('$').skip(1).filter_map(|part| digits(part).parse().ok()).max().unwrap_or(0)
}
