-- Longer messages are compressed when they are written: lz4, as for events. A table at a time, because who locks two waits
-- for those who have locked them the other way round.
do $$ begin
    alter table chat_messages alter column content set compression lz4;
exception when feature_not_supported then null;
end $$;
