//! The profiles of users: texts that planners read.

use super::{
    Error, Storage,
    sql::{Tx, args, statements},
};

statements! {
    /// Returns the profile of a user.
    USER_PROFILE = "
        select profile
        from user_profiles
        where owner_id = $1
    ",
    /// Replaces the profile of a user.
    PUT_USER_PROFILE = "
        insert into user_profiles (owner_id, profile, updated_at)
        values ($1, $2, {now})
        on conflict (owner_id) do update
        set profile = excluded.profile,
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
    /// Returns the profile of a user; `None` if there is none.
    pub async fn user_profile(&self, owner: &str) -> Result<Option<String>, Error> {
        let doing = "read the profile of a user";
        let row = self.database.fetch_optional::<(String,)>(doing, USER_PROFILE, args![owner]).await?;
        Ok(row.map(|row| row.0))
    }

    /// Replaces the profile of a user; an empty text removes it.
    pub async fn put_user_profile(&self, owner: &str, profile: &str) -> Result<(), Error> {
        let doing = "store the profile of a user";
        let written = if profile.is_empty() {
            self.database.write::<(String,)>(doing, DELETE_USER_PROFILE, args![owner]).await
        } else {
            self.database.write::<(String,)>(doing, PUT_USER_PROFILE, args![owner, profile]).await
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
