//! The deployment's own model. Workers store it, so that an API process can show it.

use super::{
    Error, Storage,
    sql::{args, statements},
};

statements! {
    /// Stores the model of plain conversations and that of vectors.
    NOTE_MODEL = "
        insert into deployment_model (id, provider, name, embedding_model, noted_at)
        values (1, $1, $2, $3, {now})
        on conflict (id) do update
        set provider = $1, name = $2, embedding_model = $3, noted_at = {now}
        returning name
    ",
    /// Returns the model that a worker stored last.
    MODEL = "
        select provider, name
        from deployment_model
    ",
    /// Returns the model of vectors that a worker stored last.
    EMBEDDING_MODEL = "
        select embedding_model
        from deployment_model
    ",
}

impl Storage {
    /// Stores the model of plain conversations and that of vectors; a worker does this at its start.
    pub async fn note_models(&self, provider: &str, name: &str, embedding: Option<String>) -> Result<(), Error> {
        let args = args![provider, name, embedding];
        self.database.write::<(String,)>("note the model of this deployment", NOTE_MODEL, args).await.map(drop)
    }

    /// Returns the provider and the name of the model that a worker stored last; `None` before the first worker.
    pub async fn noted_model(&self) -> Result<Option<(String, String)>, Error> {
        self.database.fetch_optional("read the model of this deployment", MODEL, args![]).await
    }

    /// Returns the model of vectors that a worker stored last, as `<provider>/<name>`.
    pub async fn noted_embedding_model(&self) -> Result<Option<String>, Error> {
        let row = self.database.fetch_optional::<(Option<String>,)>(
            "read the deployment's model of vectors",
            EMBEDDING_MODEL,
            args![],
        );
        Ok(row.await?.and_then(|row| row.0))
    }
}
