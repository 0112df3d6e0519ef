-- Plain conversations :from up to :to, each with ten questions and answers, for curves.sh.
-- SQL writes them, because 100,000 runs through the API would take minutes. The events of the runs are past their
-- retention.
-- The ids are those of loadgen's --conversations.
set search_path = kb;
begin;
create temporary table seeded on commit drop as
select conversation, turn,
       ('01a00000-0000-7000-8000-' || lpad(to_hex(conversation), 12, '0'))::uuid as id,
       ('01a00000-0000-7001-8000-' || lpad(to_hex(conversation * 10 + turn), 12, '0'))::uuid as run_id,
       ('01a00000-0000-7002-8000-' || lpad(to_hex(conversation * 10 + turn), 12, '0'))::uuid as question_id,
       ('01a00000-0000-7003-8000-' || lpad(to_hex(conversation * 10 + turn), 12, '0'))::uuid as answer_id
from generate_series(:from, :to - 1) as conversation, generate_series(0, 9) as turn;
insert into chat_conversations (id, owner_id, last_position, created_at, last_message_at, activity_at)
select id, 'debug_user', 20, now(), now(), now() from seeded where turn = 0;
insert into agent_runs (id, owner_id, conversation_id, position, status, attempt, input_message_id, output_message_id, model,
                        archived_to, checkpoint, created_at, started_at, finished_at, events_removed_at)
select run_id, 'debug_user', id, turn * 2 + 1, 'completed', 1, question_id, answer_id, 'fake', 1, 1, now(), now(), now(), now() from seeded;
insert into chat_messages (id, conversation_id, owner_id, run_id, position, turn, role, content, status, created_at)
select question_id, id, 'debug_user', run_id, turn * 2 + 1, turn * 2 + 1, 'user', 'What became of the letters that were sent?', 'complete', now() from seeded
union all
select answer_id, id, 'debug_user', run_id, turn * 2 + 2, turn * 2 + 1, 'assistant',
       'They were answered in the order in which they came, and the answers were kept with them.', 'complete', now() from seeded;
commit;
-- Vacuum now, so that autovacuum does not run during the measurement.
vacuum analyze;
