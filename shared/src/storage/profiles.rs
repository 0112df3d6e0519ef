//! The model profiles of the deployment: one document, which the file of agents or the API writes.

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::{FromRow, types::Json};

use super::{
    Error, Storage,
    sql::{Commit, RollBack, Tx, args, statements},
};
use crate::agent::{Origin, Profiles};

/// The stored document.
#[derive(Debug, Clone)]
pub struct StoredProfiles {
    /// The profiles and the roles.
    pub profiles: Profiles,
    /// `api`, or `file` for the file of agents.
    pub origin: Origin,
    /// Time of the database.
    pub updated_at: DateTime<Utc>,
}

#[derive(FromRow)]
struct ProfilesRow {
    document: Json<Profiles>,
    #[sqlx(try_from = "String")]
    origin: Origin,
    updated_at: DateTime<Utc>,
}

statements! {
    /// Returns the document.
    PROFILES = "
        select document, origin, updated_at
        from model_profiles
        where id = 1
    ",
    /// Locks the document.
    LOCK_PROFILES = "
        select document, origin, updated_at
        from model_profiles
        where id = 1
        {for update}
    ",
    /// Replaces the document.
    PUT_PROFILES = "
        insert into model_profiles (id, document, origin, updated_at)
        values (1, $1, $2, {now})
        on conflict (id) do update
        set document = excluded.document,
            origin = excluded.origin,
            updated_at = excluded.updated_at
    ",
    /// Removes the document of the file.
    REMOVE_FROM_FILE = "
        delete from model_profiles
        where id = 1 and origin = 'file'
    ",
}

impl Storage {
    /// Returns the stored document; `None` if there is none.
    pub async fn stored_profiles(&self) -> Result<Option<StoredProfiles>, Error> {
        let row = self.database.fetch_optional::<ProfilesRow>("read the model profiles", PROFILES, args![]);
        Ok(row.await?.map(StoredProfiles::from))
    }

    /// Returns the profiles and the roles.
    pub async fn profiles(&self) -> Result<Profiles, Error> {
        Ok(self.stored_profiles().await?.map(|stored| stored.profiles).unwrap_or_default())
    }

    /// Replaces the profiles for a client of the API. Returns false if the file of agents has them.
    pub async fn put_profiles(&self, profiles: &Profiles) -> Result<bool, Error> {
        let put = async |tx: &mut Tx| {
            let stored = tx.fetch_optional::<ProfilesRow>(LOCK_PROFILES, args![]).await?;
            if stored.is_some_and(|stored| stored.origin == Origin::File) {
                return Ok(RollBack(false));
            }
            tx.execute(PUT_PROFILES, args![json!(profiles), Origin::Api.as_str()]).await?;
            Ok(Commit(true))
        };
        self.database.transact("replace the model profiles", put).await
    }

    /// Replaces the profiles by those of the file of agents. Without any in the file, those of an earlier file are removed,
    /// and those of the API stay.
    pub async fn load_profiles(&self, profiles: Option<&Profiles>) -> Result<(), Error> {
        let load = async |tx: &mut Tx| {
            match profiles {
                Some(profiles) => tx.execute(PUT_PROFILES, args![json!(profiles), Origin::File.as_str()]).await?,
                None => tx.execute(REMOVE_FROM_FILE, args![]).await?,
            };
            Ok(Commit(()))
        };
        self.database.transact("load the model profiles of a file", load).await
    }
}

impl From<ProfilesRow> for StoredProfiles {
    fn from(row: ProfilesRow) -> Self {
        Self { profiles: row.document.0, origin: row.origin, updated_at: row.updated_at }
    }
}
