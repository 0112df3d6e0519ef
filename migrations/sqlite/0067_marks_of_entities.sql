-- A deletion, a restoration, and the undo of either change no field of an entity. Their changes keep only what differs, and the
-- bytes of both whole states; null if the row has the states whole.
alter table onto_changes add column size integer;
