//! The profiles of users: texts that planners read, and time zones.

use sqlx::FromRow;

use super::{
    Error, Storage,
    sql::{Tx, args, statements},
};
use crate::time_zone::TimeZone;

/// The profile of a user, as its row has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredUserProfile {
    /// A text for planners.
    pub text: Option<String>,
    /// The zone of requests that name none.
    pub time_zone: Option<TimeZone>,
}

#[derive(FromRow)]
struct Row {
    profile: String,
    time_zone: Option<String>,
}

impl From<Row> for StoredUserProfile {
    fn from(row: Row) -> Self {
        let text = Some(row.profile).filter(|text| !text.is_empty());
        Self { text, time_zone: row.time_zone.and_then(|name| name.parse().ok()) }
    }
}

statements! {
    /// Returns the profile of a user.
    USER_PROFILE = "
        select profile, time_zone
        from user_profiles
        where owner_id = $1
    ",
    /// Replaces the profile of a user.
    PUT_USER_PROFILE = "
        insert into user_profiles (owner_id, profile, time_zone, updated_at)
        values ($1, $2, $3, {now})
        on conflict (owner_id) do update
        set profile = excluded.profile,
            time_zone = excluded.time_zone,
            updated_at = excluded.updated_at
        returning owner_id
    ",
    /// Removes the profile of a user.
    DELETE_USER_PROFILE = "
        delete from user_profiles
        where owner_id = $1
        returning owner_id
    ",
    /// Moves a profile to another user who has none.
    MOVE_USER_PROFILE = "
        update user_profiles
        set owner_id = $2
        where owner_id = $1
          and not exists (select 1 from user_profiles own where own.owner_id = $2)
    ",
}

impl Storage {
    /// Returns the profile of a user; an empty one if there is none.
    pub async fn user_profile(&self, owner: &str) -> Result<StoredUserProfile, Error> {
        let doing = "read the profile of a user";
        let row = self.database.fetch_optional::<Row>(doing, USER_PROFILE, args![owner]).await?;
        Ok(row.map(StoredUserProfile::from).unwrap_or_default())
    }

    /// Replaces the profile of a user; an empty one removes it.
    pub async fn put_user_profile(&self, owner: &str, profile: &StoredUserProfile) -> Result<(), Error> {
        let doing = "store the profile of a user";
        let written = if *profile == StoredUserProfile::default() {
            self.database.write::<(String,)>(doing, DELETE_USER_PROFILE, args![owner]).await
        } else {
            let zone = profile.time_zone.as_ref().map(|zone| zone.name().to_owned());
            let args = args![owner, profile.text.as_deref().unwrap_or_default(), zone];
            self.database.write::<(String,)>(doing, PUT_USER_PROFILE, args).await
        };
        written.map(drop)
    }
}

/// Moves the profile of one user to another who has none; otherwise removes it.
pub async fn move_profile(tx: &mut Tx, from: &str, to: &str) -> Result<(), Error> {
    tx.execute(MOVE_USER_PROFILE, args![from, to]).await?;
    delete_profile(tx, from).await
}

/// Removes the profile of a user.
pub async fn delete_profile(tx: &mut Tx, owner: &str) -> Result<(), Error> {
    tx.execute(DELETE_USER_PROFILE, args![owner]).await.map(drop)
}
