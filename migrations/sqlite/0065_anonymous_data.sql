-- The bytes of all anonymous users together, which one sweep after another measures. One row.
create table anonymous_data (
    id integer primary key check (id = 1),
    bytes integer not null,
    -- Counts the measurements.
    number integer not null default 0,
    -- The last sweep that began to measure.
    begun_at text not null
);
