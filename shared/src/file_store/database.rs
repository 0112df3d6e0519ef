//! The contents of files in a table.

use bytes::Bytes;
use uuid::Uuid;

use crate::{
    database::{Database, args, statements},
    storage::Error,
};

statements! {
    /// Stores a part.
    PUT = "
        insert into file_parts (content_id, number, body)
        values ($1, $2, $3)
        on conflict (content_id, number) do update
        set body = excluded.body
        returning number
    ",
    /// Returns a part.
    GET = "
        select body
        from file_parts
        where content_id = $1 and number = $2
    ",
    /// Removes some parts of contents.
    REMOVE = "
        delete from file_parts
        where content_id = $1
          and number in (select number from file_parts where content_id = $1 limit $2)
    ",
}

pub async fn put(database: &Database, content_id: Uuid, number: u64, body: Bytes) -> Result<(), Error> {
    let args = args![content_id, number as i64, Vec::from(body)];
    database.write::<(i64,)>("store a part of a file", PUT, args).await.map(drop)
}

pub async fn get(database: &Database, content_id: Uuid, number: u64) -> Result<Option<Bytes>, Error> {
    let args = args![content_id, number as i64];
    let row = database.fetch_optional::<(Vec<u8>,)>("read a part of a file", GET, args).await?;
    Ok(row.map(|row| row.0.into()))
}

pub async fn remove(database: &Database, content_id: Uuid) -> Result<(), Error> {
    while database.write_piece_of("remove the parts of a file", &[REMOVE], args![content_id]).await? {}
    Ok(())
}
