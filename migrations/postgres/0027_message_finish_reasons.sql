-- Why the model ended the answer; null for messages of users, for answers that broke off, and for those of older versions.
alter table chat_messages add column finish_reason text;
