//! The deployment's own model. Workers store it, so that an API process can show it.

use super::{
    Error, Storage,
    sql::{args, statements},
};

statements! {
    /// Stores the model of plain conversations.
    NOTE_MODEL = "
        insert into deployment_model (id, provider, name, noted_at)
        values (1, $1, $2, {now})
        on conflict (id) do update
        set provider = $1, name = $2, noted_at = {now}
        returning name
    ",
    /// Returns the model that a worker stored last.
    MODEL = "
        select provider, name
        from deployment_model
    ",
}

impl Storage {
    /// Stores the model of plain conversations; a worker does this at its start.
    pub async fn note_model(&self, provider: &str, name: &str) -> Result<(), Error> {
        let args = args![provider, name];
        self.database.write::<(String,)>("note the model of this deployment", NOTE_MODEL, args).await.map(drop)
    }

    /// Returns the provider and the name of the model that a worker stored last; `None` before the first worker.
    pub async fn noted_model(&self) -> Result<Option<(String, String)>, Error> {
        self.database.fetch_optional("read the model of this deployment", MODEL, args![]).await
    }
}
