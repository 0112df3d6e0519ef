-- Anonymous users, and when each of them was last here. Those who do not come back are forgotten.
create table anonymous_users (
    owner_id text primary key,
    seen_at timestamptz not null
);
create index anonymous_users_by_time on anonymous_users (seen_at);
insert into anonymous_users select owner_id, max(activity_at) from chat_conversations where owner_id like 'anonymous\_%' escape '\' group by owner_id;
insert into anonymous_users select distinct owner_id, now() from briefings where owner_id like 'anonymous\_%' escape '\' on conflict do nothing;
