-- Texts that users have written about themselves, for planners.
create table user_profiles (
    owner_id text primary key,
    profile text not null,
    updated_at timestamptz not null
);
