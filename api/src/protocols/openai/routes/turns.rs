//! The turns of a request, whichever of the two APIs it speaks, and the action that they ask for.

use std::{collections::HashMap, sync::Arc};

use holdfast_shared::{
    file::UserContent,
    message::Role,
    overrides::{GivenHistory, GivenMessage},
    storage::{ClientResult, EarlierResult},
};
use uuid::Uuid;

use super::given_history::keep_newest;
use crate::{
    app::App,
    auth::Caller,
    problem::Problem,
    protocols::openai::wire::{parse_approval_id, run_of_call},
    thread::{HistoryBound, PartAnswer, UiPart, content_of},
};

/// Most turns of one request.
const MAX_TURNS: usize = 4096;

/// Most answers of one request.
const MAX_ANSWERS: usize = 256;

/// A turn of a request.
pub enum RequestTurn {
    Instructions(String),
    User(Vec<UiPart>),
    /// An answer of the model, and the run that has given it, if its id names one.
    Assistant {
        text: String,
        run_id: Option<Uuid>,
    },
    /// A call, and the run that has made it, if its id names one.
    Call {
        call_id: String,
        name: String,
        arguments: String,
        run_id: Option<Uuid>,
    },
    Result {
        call_id: String,
        output: String,
        files: Vec<UiPart>,
    },
    Approval {
        request_id: String,
        approved: bool,
        reason: Option<String>,
    },
    /// Another item of this run.
    Item(Uuid),
}

/// The action that a request asks for.
pub enum OpenAiAction {
    Ask(Question),
    /// Answer the questions of a waiting run.
    Answer(GivenAnswers),
}

/// The answers of a request to the questions of one run.
pub struct GivenAnswers {
    pub run_id: Uuid,
    /// Calls have the protocol's ids.
    pub answers: Vec<PartAnswer>,
    /// The files of results, by the ids of their calls, unless the question has them.
    pub files: Vec<(String, Vec<UiPart>)>,
    /// Instructions among the turns.
    pub instructions: Vec<String>,
    /// The messages of the user beside the answers, if the history is the conversation's. Else the whole of the turns as a question, for a run
    /// that does not wait for these answers; `None` without a message of the user.
    pub question: Option<Box<Question>>,
}

/// A message with the turns around it.
#[derive(Default)]
pub struct Question {
    pub parts: Vec<UiPart>,
    /// Instructions among the turns.
    pub instructions: Vec<String>,
    /// The run whose conversation the message continues.
    pub after: Option<Uuid>,
    /// Turns before the message that this server does not have.
    before: Vec<RequestTurn>,
    /// Calls and their results after the message, and the beginning of its answer.
    results: Vec<RequestTurn>,
}

impl OpenAiAction {
    /// Returns the action that the turns ask for. `has_history` says whether the request names the conversation that has the turns
    /// before these. Fails if they have no message of a user, and no answer.
    pub fn of(mut turns: Vec<RequestTurn>, has_history: bool) -> Result<Self, Problem> {
        if turns.len() > MAX_TURNS {
            return Err(Problem::invalid_body(format!("A request has at most {MAX_TURNS} messages or items.")));
        }
        let mut instructions = take_instructions(&mut turns);
        if turns.is_empty()
            && let Some(text) = instructions.pop()
        {
            // AutoGen's agents ask so. Many providers refuse a request without a message of the user.
            turns.push(RequestTurn::User(vec![UiPart::Text { text }]));
        }
        if has_history && let Some((run_id, answers)) = answers_beside(&turns)? {
            let files = take_files(&mut turns);
            let parts = parts_of(turns);
            let question = Question { parts, instructions: instructions.clone(), ..Question::default() };
            let question = Some(Box::new(question));
            return Ok(Self::Answer(GivenAnswers { run_id, answers, files, instructions, question }));
        }
        if let Some((run_id, answers)) = answers_at_end(&turns)? {
            let mut files = Vec::new();
            let whole = if has_history { None } else { Question::of_turns(&mut turns, instructions.clone()).ok() };
            if whole.is_none() {
                files = take_files(&mut turns);
            }
            let question = whole.map(Box::new);
            return Ok(Self::Answer(GivenAnswers { run_id, answers, files, instructions, question }));
        }
        let known = turns.iter().rposition(|turn| turn.run_id().is_some());
        let after = known.and_then(|at| turns[at].run_id());
        // A result after that turn is one that this server does not have.
        let continues = |rest: &[RequestTurn]| {
            let is_asked = rest.iter().any(|turn| matches!(turn, RequestTurn::User(_)));
            is_asked && !rest.iter().any(|turn| matches!(turn, RequestTurn::Result { .. }))
        };
        if let Some(at) = known
            && continues(&turns[at + 1..])
            && !ends_with_answer(&turns)
        {
            // The server has everything up to that turn.
            turns.drain(..=at);
            return Ok(Self::Ask(Question { parts: parts_of(turns), instructions, after, ..Question::default() }));
        }
        Question::of_turns(&mut turns, instructions).map(Self::Ask)
    }
}

/// Takes the instructions out of the turns.
fn take_instructions(turns: &mut Vec<RequestTurn>) -> Vec<String> {
    let mut instructions = Vec::new();
    turns.retain_mut(|turn| match turn {
        RequestTurn::Instructions(text) => {
            instructions.push(std::mem::take(text));
            false
        }
        _ => true,
    });
    instructions
}

/// Returns all parts of the user's messages.
fn parts_of(turns: Vec<RequestTurn>) -> Vec<UiPart> {
    turns.into_iter().filter_map(RequestTurn::into_parts).flatten().collect()
}

/// Takes the files of results out of the turns, by the ids of their calls.
fn take_files(turns: &mut [RequestTurn]) -> Vec<(String, Vec<UiPart>)> {
    let files = turns.iter_mut().filter_map(|turn| match turn {
        RequestTurn::Result { call_id, files, .. } if !files.is_empty() => {
            Some((call_id.clone(), std::mem::take(files)))
        }
        _ => None,
    });
    files.collect()
}

/// Returns whether the turns end with the beginning of an answer.
fn ends_with_answer(turns: &[RequestTurn]) -> bool {
    matches!(turns.last(), Some(RequestTurn::Assistant { .. }))
}

/// Returns the answers to the questions of one run among the turns, if all others are messages of the user and there is one.
fn answers_beside(turns: &[RequestTurn]) -> Result<Option<(Uuid, Vec<PartAnswer>)>, Problem> {
    let is_user = |turn: &RequestTurn| matches!(turn, RequestTurn::User(_));
    let are_both = turns.iter().all(|turn| is_user(turn) || turn.answer().is_some());
    if !are_both || !turns.iter().any(is_user) {
        return Ok(None);
    }
    one_run(turns.iter().filter_map(RequestTurn::answer).collect())
}

/// Returns the answers at the end of the turns, if they answer questions of one run.
fn answers_at_end(turns: &[RequestTurn]) -> Result<Option<(Uuid, Vec<PartAnswer>)>, Problem> {
    let mut answers: Vec<_> = turns.iter().rev().map_while(RequestTurn::answer).collect();
    answers.reverse();
    one_run(answers)
}

/// Returns the run of the answers, if it is one.
fn one_run(answers: Vec<(Uuid, PartAnswer)>) -> Result<Option<(Uuid, Vec<PartAnswer>)>, Problem> {
    let Some(run_id) = answers.first().map(|(run_id, _)| *run_id) else { return Ok(None) };
    if answers.iter().any(|(other, _)| *other != run_id) {
        return Ok(None);
    }
    if answers.len() > MAX_ANSWERS {
        return Err(Problem::invalid_body(format!("A request answers at most {MAX_ANSWERS} calls and approvals.")));
    }
    Ok(Some((run_id, answers.into_iter().map(|(_, answer)| answer).collect())))
}

impl RequestTurn {
    /// Returns the run that the turn answers, and its answer, which has the protocol's id of a call.
    fn answer(&self) -> Option<(Uuid, PartAnswer)> {
        match self {
            Self::Result { call_id, output, .. } => {
                let (run_id, call_id) = (run_of_call(call_id)?, call_id.clone());
                Some((run_id, PartAnswer::Result { call_id, result: ClientResult::Output(output.clone()) }))
            }
            Self::Approval { request_id, approved, reason } => {
                let (run_id, id) = parse_approval_id(request_id)?;
                let (approved, reason) = (*approved, reason.clone());
                Some((run_id, PartAnswer::Approval { id, approved, reason, edited_input: None }))
            }
            _ => None,
        }
    }

    fn run_id(&self) -> Option<Uuid> {
        match self {
            Self::Assistant { run_id, .. } | Self::Call { run_id, .. } => *run_id,
            Self::Item(run_id) => Some(*run_id),
            _ => None,
        }
    }

    fn into_parts(self) -> Option<Vec<UiPart>> {
        match self {
            Self::User(parts) => Some(parts),
            _ => None,
        }
    }
}

impl Question {
    /// Returns the last message of the user among the turns. Fails if there is none.
    fn of_turns(turns: &mut Vec<RequestTurn>, instructions: Vec<String>) -> Result<Self, Problem> {
        let asked = turns.iter().rposition(|turn| matches!(turn, RequestTurn::User(_)));
        let asked = asked.ok_or_else(|| {
            let problem = if turns.iter().any(|turn| matches!(turn, RequestTurn::Result { .. })) {
                "The request has the output of a call that this server does not know, and no message of the role user."
            } else {
                "The request has no message of the role user."
            };
            Problem::invalid_body(problem)
        })?;
        let results = turns.split_off(asked + 1);
        let parts = turns.pop().and_then(RequestTurn::into_parts).unwrap_or_default();
        Ok(Self { parts, instructions, after: None, before: std::mem::take(turns), results })
    }

    /// Takes the files of the results after the message, by the ids of their calls.
    pub fn take_files(&mut self) -> Vec<(String, Vec<UiPart>)> {
        take_files(&mut self.results)
    }

    /// Returns the message with all texts of the user, for a conversation that the request names. Fails if other turns are among
    /// them, because the history is the conversation's.
    pub fn in_conversation(self) -> Result<Self, Problem> {
        let Self { parts, instructions, after, before, results } = self;
        if !results.is_empty() || before.iter().any(|turn| !matches!(turn, RequestTurn::User(_))) {
            return Err(Problem::invalid_body(
                "With a conversation or previous_response_id, a request has messages of the user, the results and approvals that the response waits for, or both.",
            ));
        }
        let earlier = before.into_iter().filter_map(RequestTurn::into_parts).flatten();
        let parts = earlier.chain(parts).collect();
        Ok(Self { parts, instructions, after, before: Vec::new(), results })
    }

    /// Returns the message with the files of the results after it, and the turns around it that this server does not have.
    pub async fn content(
        mut self,
        app: &Arc<App>,
        caller: &Caller,
    ) -> Result<(UserContent, Option<GivenHistory>), Problem> {
        let files = self.take_files();
        let Self { mut parts, before, results, .. } = self;
        parts.extend(files.into_iter().flat_map(|(_, files)| files));
        let content = content_of(app, caller, parts).await?;
        Ok((content, Self::history(app, caller, before, results).await?))
    }

    async fn history(
        app: &Arc<App>,
        caller: &Caller,
        mut before: Vec<RequestTurn>,
        mut results: Vec<RequestTurn>,
    ) -> Result<Option<GivenHistory>, Problem> {
        if before.is_empty() && results.is_empty() {
            return Ok(None);
        }
        // Order matters: the files of a message that is left out are not stored.
        let left_out = keep_newest(HistoryBound::of(app.config(), caller), &mut before, &mut results);
        let parts = before.iter().flat_map(|turn| match turn {
            RequestTurn::User(parts) => parts.as_slice(),
            _ => &[],
        });
        let (files, most) =
            (parts.filter(|part| matches!(part, UiPart::File { .. })).count(), app.files().max_attachments);
        if files > most {
            return Err(Problem::too_many_attachments(most));
        }
        let (mut history, mut calls, mut found) =
            (GivenHistory { left_out, ..GivenHistory::default() }, HashMap::new(), Vec::new());
        for turn in before {
            let (role, content) = match turn {
                RequestTurn::User(parts) => (Role::User, content_of(app, caller, parts).await?),
                RequestTurn::Assistant { text, .. } => (Role::Assistant, text.into()),
                turn => {
                    note_call(turn, &mut calls, &mut found);
                    continue;
                }
            };
            history.before.push(GivenMessage { role, content, results: newest_first(&mut found) });
        }
        if !found.is_empty() {
            let (role, content) = (Role::Assistant, String::new().into());
            history.before.push(GivenMessage { role, content, results: newest_first(&mut found) });
        }
        if ends_with_answer(&results)
            && let Some(RequestTurn::Assistant { text, .. }) = results.pop()
        {
            history.begun = Some(text).filter(|text| !text.trim().is_empty());
        }
        results.into_iter().for_each(|turn| note_call(turn, &mut calls, &mut found));
        history.results = newest_first(&mut found);
        Ok(Some(history))
    }
}

fn newest_first(results: &mut Vec<EarlierResult>) -> Vec<EarlierResult> {
    results.reverse();
    std::mem::take(results)
}

/// Notes a call, or the result of one.
fn note_call(turn: RequestTurn, calls: &mut HashMap<String, (String, String)>, found: &mut Vec<EarlierResult>) {
    match turn {
        RequestTurn::Call { call_id, name, arguments, .. } => {
            calls.insert(call_id, (name, arguments));
        }
        RequestTurn::Result { call_id, output, .. } => {
            let (name, input) = calls.remove(&call_id).unwrap_or_else(|| ("tool".into(), "{}".into()));
            found.push(EarlierResult { name, input, output: Some(output), error: None, call_id: None });
        }
        _ => {}
    }
}
