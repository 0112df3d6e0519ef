-- The checkpoint that a conversation was forked from. Its first messages are copies, which name runs of another conversation.
alter table chat_conversations add column forked_from blob;
