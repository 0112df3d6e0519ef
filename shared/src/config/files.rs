//! Files: where their contents are, and what a file may be.

use std::time::Duration;

use super::{ModelFileKind, bytes, count, milliseconds};

/// Settings of files, which API and workers share.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Files")]
pub struct FilesConfig {
    /// Store of the contents of files, as s3://bucket/path (with the variables AWS_… for its key, region and endpoint) or
    /// file:///folder; by default the data folder, and PostgreSQL in the scaled-out mode.
    #[arg(long, env = "HOLDFAST_FILES_URL")]
    pub files_url: Option<String>,

    /// Bytes of a file; a larger one gets 413.
    #[arg(long, env = "HOLDFAST_MAX_FILE_BYTES", default_value = "67108864", value_parser = bytes)]
    pub max_file_bytes: usize,

    /// Bytes of a file whose contents are in the database; a larger one gets 413.
    #[arg(long, env = "HOLDFAST_MAX_DATABASE_FILE_BYTES", default_value = "33554432", value_parser = bytes)]
    pub max_database_file_bytes: usize,

    /// Media types that files may have, as a list with commas; `image/*` stands for all of its kind.
    #[arg(
        long,
        env = "HOLDFAST_FILE_TYPES",
        value_delimiter = ',',
        default_value = "image/png,image/jpeg,image/gif,image/webp,text/*,application/pdf,application/json,application/vnd.openxmlformats-officedocument.wordprocessingml.document,application/vnd.openxmlformats-officedocument.presentationml.presentation,application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    )]
    pub file_types: Vec<String>,

    /// Files of one message; a further one gets 400. Also the files of one tool's result.
    #[arg(long, env = "HOLDFAST_MAX_ATTACHMENTS", default_value = "10", value_parser = count)]
    pub max_attachments: usize,

    /// Kinds of files that the models take, as a list with commas of image and pdf; by default what is known of a model of
    /// this name.
    #[arg(long, env = "HOLDFAST_MODEL_FILES", value_enum, value_delimiter = ',', default_value = "auto")]
    pub model_files: Vec<ModelFileKind>,

    /// Bytes of files in one request to a model; older files beyond it are only named.
    #[arg(long, env = "HOLDFAST_MODEL_FILE_BYTES", default_value = "20971520", value_parser = bytes)]
    pub model_file_bytes: usize,

    /// Bytes of a text that a model gets of one file: of a text, or of the text that a worker extracts from a document.
    #[arg(long, env = "HOLDFAST_MODEL_TEXT_BYTES", default_value = "65536", value_parser = bytes)]
    pub model_text_bytes: usize,

    /// Bytes of memory that one worker has for the files in its requests to models; further runs with files wait.
    #[arg(long, env = "HOLDFAST_WORKER_FILE_BYTES", default_value = "536870912", value_parser = bytes)]
    pub worker_file_bytes: usize,

    /// Time after which the sweeper deletes a file that nothing names, and an upload that was left, in ms.
    #[arg(long = "unused-file-ms", env = "HOLDFAST_UNUSED_FILE_MS", default_value = "86400000", value_parser = milliseconds)]
    pub unused_file: Duration,
}

impl FilesConfig {
    /// Returns whether a file may be of this media type.
    pub fn takes(&self, media_type: &str) -> bool {
        self.file_types.iter().map(|pattern| pattern.trim()).any(|pattern| match pattern.strip_suffix('*') {
            Some(kind) => media_type.starts_with(kind),
            None => media_type == pattern,
        })
    }
}
