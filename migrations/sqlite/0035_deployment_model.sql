-- The model of plain conversations, as the worker that started last noted it. An API alone has no setting that names it.
create table deployment_model (
    id integer primary key check (id = 1),
    provider text not null,
    name text not null,
    noted_at text not null
);
