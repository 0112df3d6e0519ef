//! Makes summaries of older messages, each from the one before and from what follows it.
//!
//! The model of the role `summarizer` writes them, or else the model that answers. Nothing is summarised twice: a summary that is
//! to cover more gets the turns that it lacks, in as many requests as the model's context window needs.

use std::{collections::BTreeSet, time::Duration};

use holdfast_shared::{
    agent::{ModelRole, ModelSettings, Profiles},
    excerpt,
    message::{Content, Language},
    storable::storable,
    storage::{self, EarlierMessage, Summary, SummaryScope},
    time_zone::RunDate,
    tokens,
    usage::Usage,
};

use super::{
    attachments::LoadedFiles,
    context::{turn_of_earlier, with_summary},
    side_call::ask_for_text,
};
use crate::{
    WorkerState,
    model::{self, ChosenModel, Models, Request, Turn},
    signs_of_life::SignsOfLife,
    spans::Spans,
};

/// Divisor of the model's context window: the messages of one request.
const WINDOW_SHARE: u32 = 2;

/// Smallest room for the messages of one request after refusals.
const LEAST_ROOM: u32 = 500;

/// Fewest bytes of a token, as it is estimated, in a text of any script.
const TOKEN_BYTES: usize = 3;

/// Pause after a query that failed because the database is away.
const PAUSE: Duration = Duration::from_millis(250);

/// Why there is no summary.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the model wrote no summary")]
    Model(#[from] model::Error),
    #[error("the model returned an empty summary")]
    Empty,
    #[error("no model is set up for summaries")]
    NoModel(#[source] model::ConnectError),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

/// The messages of which a summary is made.
pub enum OlderMessages<'a> {
    /// Those of a conversation, which keeps the summary.
    Stored(SummaryScope),
    /// Those that a request has brought, for its run alone.
    Given(&'a [EarlierMessage]),
}

/// A summary as far as the summariser has made it, perhaps of a part of the messages.
pub struct Extended {
    pub summary: Option<Summary>,
    pub usage: Usage,
    pub outcome: Result<(), Error>,
}

/// A model with the task of summaries.
pub struct Summariser<'a> {
    pub shared: &'a WorkerState,
    pub model: ChosenModel,
    pub language: Language,
    pub date: Option<RunDate>,
    pub spans: Spans,
    pub signs_of_life: SignsOfLife,
    /// Most tokens of a summary.
    pub tokens: u32,
}

/// Returns the model of the role, if the deployment has one.
pub fn model_of_role(models: &Models, profiles: &Profiles) -> Option<ChosenModel> {
    let profile = profiles.roles.get(&ModelRole::Summarizer).cloned()?;
    let settings = ModelSettings { profile: Some(profile), ..ModelSettings::default() };
    let model = models.get(Some(&settings), profiles);
    let warn = |error: &model::ConnectError| {
        tracing::warn!(error = error as &dyn std::error::Error, "failed to set up the model of the role summarizer");
    };
    model.inspect_err(warn).ok()
}

impl Summariser<'_> {
    /// Extends a summary up to a turn. Each part is kept as soon as it is made.
    pub async fn extend(&self, older: &OlderMessages<'_>, before: Option<Summary>, up_to: i64) -> Extended {
        let mut extended = Extended { summary: before, usage: Usage::default(), outcome: Ok(()) };
        extended.outcome = self.extend_by_parts(older, &mut extended, up_to).await;
        extended
    }

    async fn extend_by_parts(
        &self,
        older: &OlderMessages<'_>,
        extended: &mut Extended,
        up_to: i64,
    ) -> Result<(), Error> {
        let mut room = self.room();
        loop {
            let after = extended.summary.as_ref().map_or(i64::MIN, |summary| summary.up_to);
            let messages = self.next_messages(older, after, up_to, room).await?;
            let Some(last) = messages.last().map(|message| message.turn) else { return Ok(()) };
            let request = self.request(extended.summary.as_ref(), messages, room);
            let most_bytes = self.shared.worker.config.max_answer_bytes;
            let (text, usage) = match ask_for_text(&self.model, request, self.spans, most_bytes, &self.signs_of_life)
                .await
            {
                Err(error) if error.is_too_long() && room > LEAST_ROOM => {
                    tracing::warn!(%error, "the messages to summarise were too long for the model; asking with fewer");
                    room /= 2;
                    continue;
                }
                answer => answer?,
            };
            extended.usage += usage;
            let text = storable(text);
            if text.trim().is_empty() {
                return Err(Error::Empty);
            }
            // A model that ignores the requested length must not fill the budget again.
            let summary = Summary { up_to: last, content: tokens::beginning(&text, self.tokens).to_owned() };
            if let OlderMessages::Stored(scope) = older {
                patiently(|| self.shared.worker.storage.keep_summary(scope, &summary, usage)).await?;
            }
            extended.summary = Some(summary);
        }
    }

    /// Returns the next complete turns that one request has room for, but at least one.
    async fn next_messages(
        &self,
        older: &OlderMessages<'_>,
        after: i64,
        up_to: i64,
        room: u32,
    ) -> Result<Vec<EarlierMessage>, Error> {
        match older {
            OlderMessages::Stored(scope) => {
                let bytes = room as usize * TOKEN_BYTES;
                let read = || self.shared.worker.storage.older_turns(scope, after, up_to, bytes);
                Ok(patiently(read).await?)
            }
            OlderMessages::Given(messages) => {
                let mut used = 0_u32;
                let fits = |message: &&EarlierMessage| {
                    let is_first = used == 0;
                    used = used.saturating_add(self.size(message));
                    is_first || used <= room
                };
                let next = messages.iter().filter(|message| message.turn > after && message.turn <= up_to);
                Ok(next.take_while(fits).cloned().collect())
            }
        }
    }

    /// Returns the tokens of messages that one request has room for.
    fn room(&self) -> u32 {
        self.model.context_window() / WINDOW_SHARE
    }

    fn size(&self, earlier: &EarlierMessage) -> u32 {
        tokens::estimate(&earlier.message.content.model_text(self.language)).saturating_add(tokens::PER_MESSAGE)
    }

    fn request(&self, before: Option<&Summary>, mut messages: Vec<EarlierMessage>, room: u32) -> Request {
        self.shorten(&mut messages, room);
        let (files, mut sent) = (LoadedFiles::default(), BTreeSet::new());
        let turns = messages.iter().filter_map(|earlier| turn_of_earlier(earlier, self.language, &files, &mut sent));
        let mut turns = with_summary(turns.collect(), before);
        let words = self.tokens * 3 / 4;
        let task = format!(
            "Summarise our conversation so far. Your summary will stand in place of the messages above and of the summary before them, so keep \
             everything that the conversation needs to continue: facts, names, numbers, dates, decisions, what was asked for and what is still \
             open. Write in the language of the conversation, at most {words} words, and nothing but the summary."
        );
        turns.push(Turn::user(task));
        let mut request = Request { turns, ..Request::default() };
        request.date_newest(self.date.as_ref());
        request
    }

    /// Shortens the messages of a turn that is longer than a request may be.
    fn shorten(&self, messages: &mut [EarlierMessage], room: u32) {
        let all = messages.iter().map(|message| self.size(message)).fold(0, u32::saturating_add);
        if all <= room {
            return;
        }
        let most = room / messages.len() as u32;
        for earlier in messages {
            let text = earlier.message.content.model_text(self.language);
            earlier.message.content = Content::Text(excerpt::tokens(&text, most));
        }
    }
}

/// Repeats a query while the database is away.
async fn patiently<T, F: Future<Output = Result<T, storage::Error>>>(
    mut ask: impl FnMut() -> F,
) -> Result<T, storage::Error> {
    loop {
        match ask().await {
            Err(error) if error.is_away() => tokio::time::sleep(PAUSE).await,
            answer => return answer,
        }
    }
}
