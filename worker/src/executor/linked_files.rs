//! The files that a request names by addresses of the web: each is fetched once, and is a file of the run's owner from then on.
//!
//! The text of the message has a line in the place of each. A file that cannot be had costs a warning, and the model reads why.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, stream};
use holdfast_shared::{
    event::{EventBody, WarningRaised},
    file::PART_BYTES,
    file::{Attachment, FileLink, PICTURES, ToolFile, UserContent, has_extract, is_text},
    media_type,
    message::Message,
    overrides::RunOverrides,
    storable::storable,
    storage::{Claim, LinkedFiles},
    tool::ClientTool,
    turns::TurnPermit,
};
use tokio::time::{Instant, timeout_at};

use super::{Stop, retry_query::retry_query};
use crate::{
    WorkerState,
    egress::ADDRESSES_AT_ONCE,
    lease::Lease,
    model::ChosenModel,
    recorder::Recorder,
    tools::{FileKeeper, ReturnedData, ReturnedFile},
};

/// Files by their addresses, or why there are none.
type FetchedFiles = BTreeMap<String, Result<ToolFile, String>>;

/// The parts of a run that have addresses.
pub struct LinkedParts<'a> {
    input: &'a mut Message,
    overrides: &'a mut RunOverrides,
    client_tools: &'a [ClientTool],
    /// The model that gets the files.
    model: &'a ChosenModel,
}

impl<'a> LinkedParts<'a> {
    pub const fn new(
        input: &'a mut Message,
        overrides: &'a mut RunOverrides,
        client_tools: &'a [ClientTool],
        model: &'a ChosenModel,
    ) -> Self {
        Self { input, overrides, client_tools, model }
    }
}

/// Fetches the files, and stores them with the run.
pub async fn fetch(
    shared: &WorkerState,
    claim: &Claim,
    (lease, recorder): (&mut Lease, &mut Recorder),
    parts: LinkedParts<'_>,
) -> Result<(), Stop> {
    let LinkedParts { input, overrides, client_tools, model } = parts;
    let wanted: BTreeSet<String> =
        links_of(overrides).filter(|link| link.failure.is_none()).map(|link| link.url.clone()).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let fetching = fetch_all(shared, claim, wanted, model);
    let found = tokio::select! {
        found = recorder.alongside(fetching) => found?,
        signal = lease.stop_signal() => return Err(signal.into()),
    };
    for (url, failure) in found.iter().filter_map(|(url, file)| Some((url, file.as_ref().err()?))) {
        let message = format!("The model answers without the file at {}: {failure}.", shown(url));
        let (code, message) = ("file_not_fetched".into(), storable(message).into());
        recorder.emit(&EventBody::WarningRaised(WarningRaised { code, message }));
    }
    overrides.links = settle(std::mem::take(&mut overrides.links), &found, &mut input.attachments);
    let given = overrides.history.iter_mut().flat_map(|history| &mut history.before);
    for UserContent { attachments, links, .. } in given.map(|message| &mut message.content) {
        *links = settle(std::mem::take(links), &found, attachments);
    }
    let new = found.into_values().filter_map(Result::ok).map(|file| file.file_id).collect();
    let linked = LinkedFiles { attachments: &input.attachments, client_tools, overrides, new };
    let is_held = retry_query(lease, recorder, || shared.worker.storage.keep_linked_files(claim, &linked)).await?;
    if is_held { Ok(()) } else { Err(Stop::Fenced) }
}

/// Returns what the model must know of the files that it does not have.
pub fn notices(overrides: &RunOverrides) -> Vec<String> {
    let failed = links_of(overrides).filter_map(|link| Some((shown(&link.url), link.failure.as_ref()?)));
    let lines = failed.map(|(url, failure)| format!("[The file at {url} is not here: {failure}]"));
    lines.collect::<BTreeSet<_>>().into_iter().collect()
}

fn links_of(overrides: &RunOverrides) -> impl Iterator<Item = &FileLink> {
    let given = overrides.history.iter().flat_map(|history| &history.before);
    overrides.links.iter().chain(given.flat_map(|message| &message.content.links))
}

/// Adds the files that were found, in the order of their places. Returns the other links.
fn settle(links: Vec<FileLink>, found: &FetchedFiles, attachments: &mut Vec<Attachment>) -> Vec<FileLink> {
    let mut failed = Vec::new();
    for link in links {
        match found.get(&link.url) {
            Some(Ok(file)) => attachments.push(Attachment { offset: link.offset, ..Attachment::from(file) }),
            Some(Err(failure)) => failed.push(FileLink { failure: Some(failure.clone()), ..link }),
            None => failed.push(link),
        }
    }
    attachments.sort_by_key(|attachment| attachment.offset);
    failed
}

async fn fetch_all(shared: &WorkerState, claim: &Claim, wanted: BTreeSet<String>, model: &ChosenModel) -> FetchedFiles {
    let (egress, limit) = (&shared.egress, shared.worker.egress.egress);
    let turn = match egress.turn(claim.counted_as(), limit).await {
        Ok(turn) => turn,
        Err(error) => return wanted.into_iter().map(|url| (url, Err(error.to_string()))).collect(),
    };
    // The wait for others is not a time of these servers.
    let (turn, until) = (&turn, Instant::now() + limit);
    let fetched = stream::iter(wanted).map(|url| async move {
        let file = match timeout_at(until, fetch_one(shared, claim, turn, &url, model)).await {
            Ok(file) => file,
            Err(_) => Err("it does not arrive in time".to_owned()),
        };
        (url, file)
    });
    fetched.buffer_unordered(ADDRESSES_AT_ONCE).collect().await
}

async fn fetch_one(
    shared: &WorkerState,
    claim: &Claim,
    turn: &TurnPermit,
    url: &str,
    model: &ChosenModel,
) -> Result<ToolFile, String> {
    let keeper = FileKeeper::new(&shared.worker, claim);
    keeper.expect_room().await?;
    let contents = shared.egress.fetch(turn, url).await.map_err(|error| error.to_string())?;
    let beginning = &contents[..contents.len().min(PART_BYTES as usize)];
    let media_type = media_type::of(beginning, beginning.len() == contents.len(), "");
    if !(is_text(&media_type) || has_extract(&media_type) || model.takes(&media_type)) {
        let what = if PICTURES.contains(&media_type.as_str()) { "pictures" } else { "such files" };
        return Err(format!("the model takes no {what} ({media_type})"));
    }
    let data = ReturnedData::Bytes(contents.clone());
    keeper.keep_fetched(ReturnedFile { kind: "file", uri: Some(url.to_owned()), media_type: None, data }).await
}

/// Returns an address for a line of ours.
fn shown(url: &str) -> String {
    FileLink::shown(url)
}
