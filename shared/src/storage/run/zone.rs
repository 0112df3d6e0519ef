//! The time zone of a new run.

/// The zone that the request names, or else that of its owner's profile, or else the deployment's.
macro_rules! zone_of {
    ($owner:literal, $named:literal, $otherwise:literal) => {
        concat!(
            "coalesce(
                ",
            $named,
            ",
                (select u.time_zone from user_profiles u where u.owner_id = ",
            $owner,
            "),
                ",
            $otherwise,
            "
            )"
        )
    };
}
pub(super) use zone_of;
