//! The content of a message, as clients send it: a text, or texts and files.

use holdfast_shared::{
    agent::{AgentKind, ModelSettings},
    config::ModelChoice,
    file::{Attachment, PICTURES, StoredFile, UserContent},
    storage::Target,
};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::App;
use crate::{auth::Caller, problem::Problem};

/// The content of a message.
#[derive(Debug, Clone, Deserialize, utoipa::ToSchema)]
#[serde(
    untagged,
    expecting = "it is a text, or a list of parts such as {\"type\": \"text\", \"text\": \"Hi\"} or {\"type\": \"image\", \"file_id\": \"…\"}"
)]
pub enum ContentInput {
    /// A text alone.
    Text(String),
    /// Texts and files, in order.
    Parts(Vec<PartInput>),
}

/// A part of a message.
#[derive(Debug, Clone, Deserialize, utoipa::ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum PartInput {
    /// A text.
    Text { text: String },
    /// A picture.
    Image { file_id: Uuid },
    /// Any file.
    File { file_id: Uuid },
}

/// A part of a message, as any wire has it.
#[derive(Debug)]
pub enum InputPiece {
    Text(String),
    Picture(Uuid),
    File(Uuid),
    /// A file that the worker fetches.
    Link {
        url: String,
    },
    /// The name of the user who speaks.
    Speaker(String),
}

impl InputPiece {
    const fn file_id(&self) -> Option<Uuid> {
        match self {
            Self::Text(_) | Self::Link { .. } | Self::Speaker(_) => None,
            Self::Picture(file_id) | Self::File(file_id) => Some(*file_id),
        }
    }
}

impl From<PartInput> for InputPiece {
    fn from(part: PartInput) -> Self {
        match part {
            PartInput::Text { text } => Self::Text(text),
            PartInput::Image { file_id } => Self::Picture(file_id),
            PartInput::File { file_id } => Self::File(file_id),
        }
    }
}

impl App {
    /// Returns the content with what is known of its files. Fails if the caller has no such files, or too many.
    pub async fn content(&self, caller: &Caller, input: ContentInput) -> Result<UserContent, Problem> {
        let parts = match input {
            ContentInput::Text(text) => return Ok(text.into()),
            ContentInput::Parts(parts) => parts,
        };
        self.content_of(caller, parts.into_iter().map(InputPiece::from).collect()).await
    }

    /// Returns the content of these pieces. Fails if the caller has no such files, or too many.
    pub async fn content_of(&self, caller: &Caller, pieces: Vec<InputPiece>) -> Result<UserContent, Problem> {
        let ids: Vec<Uuid> = pieces.iter().filter_map(InputPiece::file_id).collect();
        let links = pieces.iter().filter(|piece| matches!(piece, InputPiece::Link { .. })).count();
        if ids.len() + links > self.files.max_attachments {
            return Err(Problem::too_many_attachments(self.files.max_attachments));
        }
        let files = if ids.is_empty() { Vec::new() } else { self.storage.files_by_id(&caller.owner, ids).await? };
        let mut content = UserContent::default();
        for piece in pieces {
            match piece {
                InputPiece::Text(text) => content.push_text(&text),
                InputPiece::Picture(file_id) => content.push_file(picture(ready(&files, file_id)?)?),
                InputPiece::File(file_id) => content.push_file(ready(&files, file_id)?),
                InputPiece::Link { url } => content.push_link(url),
                InputPiece::Speaker(name) => content.speaker = Some(name),
            }
        }
        Ok(content)
    }
}

impl App {
    /// Fails if the model that will answer is known to take no such files. The worker decides for a planner, whose parts have
    /// models of their own.
    pub(super) async fn expect_taken(
        &self,
        caller: &Caller,
        target: &Target,
        content: &UserContent,
    ) -> Result<(), Problem> {
        if content.attachments.iter().all(Attachment::has_text) {
            return Ok(());
        }
        let Some(model) = self.model_of(caller, target).await? else { return Ok(()) };
        let is_refused =
            |file: &&Attachment| !file.has_text() && !model.takes(&self.files.model_files, &file.media_type);
        match content.attachments.iter().find(is_refused) {
            None => Ok(()),
            Some(file) => Err(Problem::attachment_not_taken(&file.name, &file.media_type, &model.path())),
        }
    }

    /// Returns the deployment's own model, as `provider/name`; `None` if this process cannot know it.
    pub async fn own_model_name(&self) -> Result<Option<String>, Problem> {
        Ok(self.own_model().await?.map(|own| own.path()))
    }

    async fn own_model(&self) -> Result<Option<ModelChoice>, Problem> {
        if let Some(own) = &self.model {
            return Ok(Some(own.clone()));
        }
        let noted = self.storage.noted_model().await?;
        Ok(noted.and_then(|(provider, name)| ModelChoice::named(&provider, &name)))
    }

    /// Returns the model that answers first; `None` if this process cannot know it.
    async fn model_of(&self, caller: &Caller, target: &Target) -> Result<Option<ModelChoice>, Problem> {
        let agent = match target {
            Target::New { agent_id } => *agent_id,
            Target::Existing(id) => {
                self.storage.conversation(&caller.owner, *id).await?.and_then(|conversation| conversation.agent_id)
            }
            Target::Named { handle, agent_id } => {
                let found = self.storage.find_conversation(&caller.owner, handle).await?;
                found.map_or(*agent_id, |conversation| conversation.agent_id)
            }
        };
        let agent = match agent {
            Some(id) => self.storage.agent(id).await?,
            None => None,
        };
        if agent.as_ref().is_some_and(|agent| agent.definition.kind == AgentKind::Planner) {
            return Ok(None);
        }
        let settings = agent.and_then(|agent| agent.definition.model).unwrap_or_default();
        if let Some(profile) = &settings.profile {
            let first = self.storage.profiles().await?.models(profile).and_then(|models| models.into_iter().next());
            return Ok(first.and_then(|first| ModelChoice::named(&first.provider, &first.model)));
        }
        let own = self.own_model().await?;
        let ModelSettings { provider, name, .. } = settings;
        Ok(match (provider, name) {
            (Some(provider), Some(name)) => ModelChoice::named(&provider, &name),
            (None, Some(name)) => own.map(|own| ModelChoice { name, ..own }),
            // A provider without a name has a default that only its worker knows.
            (Some(_), None) => None,
            (None, None) => own,
        })
    }
}

fn ready(files: &[StoredFile], id: Uuid) -> Result<&StoredFile, Problem> {
    let file = files.iter().find(|file| file.id == id).ok_or_else(|| Problem::file_not_found(id))?;
    if file.is_complete() { Ok(file) } else { Err(Problem::upload_unfinished(id)) }
}

fn picture(file: &StoredFile) -> Result<&StoredFile, Problem> {
    let StoredFile { name, media_type, .. } = file;
    if PICTURES.contains(&media_type.as_str()) {
        return Ok(file);
    }
    Err(Problem::invalid_body(format!("{name:?} of type {media_type} is no picture; give its part the type \"file\".")))
}

/// Returns what distinguishes the content from another one, for the fingerprint of a request. A text is its own.
pub fn fingerprint(content: &UserContent) -> String {
    if content.attachments.is_empty() && content.links.is_empty() && content.speaker.is_none() {
        return content.text.clone();
    }
    let files = content.attachments.iter().map(|file| json!([file.file_id, file.offset]));
    let links = content.links.iter().map(|link| json!([link.url, link.offset]));
    json!([content.text, files.chain(links).collect::<Vec<_>>(), content.speaker]).to_string()
}
