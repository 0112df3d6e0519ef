//! The search for conversations that forgives one typing error in each word, for a search that finds nothing.
//!
//! The database finds texts with a part of each word, and the words of these texts are compared here. The number of texts
//! and their lengths are limited.

use std::collections::HashSet;

use serde_json::{Value, json};
use sqlx::FromRow;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::{
    Error, Storage,
    conversations::containing,
    rows::{ConversationRow, conversation_columns},
    sql::{args, statements},
};
use crate::{
    conversation::{Conversation, SearchHit, excerpt_of},
    typing_error::{find_similar, parts_of},
};

/// Most conversations whose titles are compared.
const MOST_TITLES: usize = 200;

/// Most messages that are compared, and most of one conversation.
const MOST_MESSAGES: usize = 300;
const MOST_OF_ONE: usize = 20;

/// Most words of a search that forgives errors: each is compared with each word of each text.
const MOST_WORDS: usize = 8;

/// The condition that a column has a part of the word of a row of `{each:$n}`.
macro_rules! may_have_word {
    ($column:literal) => {
        concat!(
            "(
                lower(coalesce(",
            $column,
            ", '')) like lower(value->>'head') escape '\\'
                or lower(coalesce(",
            $column,
            ", '')) like lower(value->>'tail') escape '\\'
                or lower(coalesce(",
            $column,
            ", '')) like lower(value->>'around') escape '\\'
            )"
        )
    };
}

#[derive(FromRow)]
struct SimilarRow {
    #[sqlx(flatten)]
    conversation: ConversationRow,
    message_id: Option<Uuid>,
    message_client_id: Option<String>,
    /// The first 4,000 characters of the message.
    beginning: Option<String>,
}

statements! {
    /// Lists an owner's conversations whose titles have a part of each word of `$2`, newest activity first.
    SIMILAR_TITLES = concat!("
        select ", conversation_columns!(), ",
            null as message_id, null as message_client_id, null as beginning
        from chat_conversations c
        where c.owner_id = $1
          and c.deleted_at is null
          and c.parent_run_id is null
          and not c.hidden
          and not exists (select 1 from {each:$2} where not ", may_have_word!("c.title"), ")
        order by c.activity_at desc, c.id desc
        limit $3
    "),
    /// Lists messages that have, with their titles, a part of each word of `$2`, the newest conversations first.
    SIMILAR_MESSAGES = concat!("
        select ", conversation_columns!(), ",
            found.id as message_id, found.client_id as message_client_id, found.beginning
        from (
            select m.conversation_id, m.id, m.client_id, substr(m.content, 1, 4000) as beginning,
                row_number() over (
                    partition by m.conversation_id order by m.turn desc, m.position desc
                ) as place
            from chat_messages m
            join chat_conversations t on t.id = m.conversation_id
            where t.owner_id = $1
              and t.deleted_at is null
              and t.parent_run_id is null
              and not t.hidden
              and m.superseded_at is null
              and m.content_type = 'text'
              and not exists (
                  select 1
                  from {each:$2}
                  where not ", may_have_word!("m.content"), "
                    and not ", may_have_word!("t.title"), "
              )
        ) found
        join chat_conversations c on c.id = found.conversation_id
        where found.place <= $4
        order by c.activity_at desc, c.id desc, found.place
        limit $3
    "),
}

impl Storage {
    /// Returns the owner's conversations that have each word, with one typing error at most, in the title or in one
    /// message; the newest activity comes first.
    pub(super) async fn similar_conversations(
        &self,
        owner: &str,
        limit: usize,
        words: &[&str],
    ) -> Result<Vec<Conversation>, Error> {
        if words.len() > MOST_WORDS || words.iter().all(|word| parts_of(word).is_none()) {
            return Ok(Vec::new());
        }
        let patterns = patterns_of(words);
        let doing = "search for similar words";
        let titles = args![owner, patterns.clone(), MOST_TITLES];
        let mut rows = self.database.fetch_all::<SimilarRow>(doing, SIMILAR_TITLES, titles).await?;
        let messages = args![owner, patterns, MOST_MESSAGES, MOST_OF_ONE];
        rows.extend(self.database.fetch_all::<SimilarRow>(doing, SIMILAR_MESSAGES, messages).await?);
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        // A million characters take a while.
        Ok(spawn_blocking(move || matching(rows, limit, &words)).await.expect("the comparison ends"))
    }
}

/// Returns the conversations that have all words, one row of each, the newest activity first.
fn matching(rows: Vec<SimilarRow>, limit: usize, words: &[String]) -> Vec<Conversation> {
    let mut found = HashSet::new();
    let mut rows: Vec<SimilarRow> = rows
        .into_iter()
        .filter(|row| !found.contains(&row.conversation.id) && has_all(row, words) && found.insert(row.conversation.id))
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.conversation.activity_at, row.conversation.id)));
    rows.into_iter().take(limit).map(|row| shown(row, words)).collect()
}

fn has_all(row: &SimilarRow, words: &[String]) -> bool {
    let texts = [row.conversation.title.as_deref(), row.beginning.as_deref()];
    words.iter().all(|word| texts.iter().flatten().any(|text| has(text, word)))
}

fn has(text: &str, word: &str) -> bool {
    text.to_lowercase().contains(&word.to_lowercase()) || find_similar(text, word).is_some()
}

/// Returns the conversation, with the message unless the title has the words.
fn shown(row: SimilarRow, words: &[String]) -> Conversation {
    let found = row.message_id.zip(row.beginning).map(|(message_id, beginning)| {
        let word = words.iter().find_map(|word| find_similar(&beginning, word)).unwrap_or_default();
        SearchHit { message_id, client_id: row.message_client_id, excerpt: excerpt_of(&beginning, word) }
    });
    Conversation { found, ..row.conversation.into() }
}

/// Returns the patterns of `may_have_word!`. A short word has no error.
fn patterns_of(words: &[&str]) -> Value {
    let pattern = |word: &&str| match parts_of(word) {
        None => json!({"head": containing(word), "tail": containing(word), "around": containing(word)}),
        Some(parts) => {
            let [before, after] = parts.around.map(|part| containing(&part));
            let around = format!("{}__{}", before.trim_end_matches('%'), after.trim_start_matches('%'));
            json!({"head": containing(&parts.head), "tail": containing(&parts.tail), "around": around})
        }
    };
    words.iter().map(pattern).collect()
}
