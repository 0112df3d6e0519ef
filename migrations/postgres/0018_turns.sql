-- A message that brings its turn, as all but those of old versions do, need not wait for the trigger.
drop trigger chat_messages_turn on chat_messages;
create trigger chat_messages_turn before insert on chat_messages for each row when (new.turn = 0) execute function chat_messages_take_turn();
