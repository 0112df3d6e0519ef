//! A lock on a table of PostgreSQL, under which each statement on the table waits.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
};

use crate::postgres::binary;

/// Holds the lock until it is dropped.
pub struct TableLock {
    psql: Child,
    url: String,
}

impl TableLock {
    /// Locks a table against all other statements.
    pub fn take(url: &str, table: &str) -> Self {
        let mut psql = Command::new(binary("psql"))
            .args(["-tAqX", "-v", "ON_ERROR_STOP=1", url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("psql can be started");
        let statements = format!("begin;\nlock table {table} in access exclusive mode;\nselect 'locked';\n");
        psql.stdin.as_mut().expect("it is piped").write_all(statements.as_bytes()).expect("psql reads");
        let mut line = String::new();
        BufReader::new(psql.stdout.as_mut().expect("it is piped")).read_line(&mut line).expect("psql answers");
        assert_eq!(line.trim(), "locked", "psql locks {table}");
        Self { psql, url: url.to_owned() }
    }

    /// Returns the number of statements with this word that wait for a lock in this database.
    pub fn waiting(&self, word: &str) -> usize {
        let of_word = format!("datname = current_database() and query like '%{word}%'");
        let count = format!("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and {of_word}");
        let counted = Command::new(binary("psql")).args(["-tAXc", &count, &self.url]).output().expect("psql starts");
        String::from_utf8_lossy(&counted.stdout).trim().parse().expect("a number")
    }
}

impl Drop for TableLock {
    fn drop(&mut self) {
        // The end of its input ends psql, which rolls back.
        drop(self.psql.stdin.take());
        let _ = self.psql.wait();
    }
}
