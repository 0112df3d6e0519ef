//! An answer of the server that is older than a change on the page, and arrives after it.

use super::Visit;
use crate::support::Deployment;

#[tokio::test]
async fn a_title_that_is_changed_while_the_list_is_read_stays() {
    Visit::begin(Deployment::embedded(), "renames_while_the_list_is_read").await.ends().await;
}

#[tokio::test]
async fn a_task_that_is_changed_while_it_is_read_stays_changed() {
    Visit::begin(Deployment::embedded(), "changes_a_task_while_it_is_read").await.ends().await;
}

#[tokio::test]
async fn a_memory_that_is_changed_while_they_are_read_stays_changed() {
    Visit::begin(Deployment::embedded(), "changes_a_memory_while_they_are_read").await.ends().await;
}

#[tokio::test]
async fn a_title_that_gets_lost_leaves_the_later_one() {
    Visit::begin(Deployment::embedded(), "renames_twice_before_an_answer").await.ends().await;
}

#[tokio::test]
async fn a_writer_types_on_while_the_text_is_saved() {
    Visit::begin(Deployment::embedded(), "types_on_while_a_text_is_saved").await.ends().await;
}

#[tokio::test]
async fn a_title_that_is_changed_by_a_reader_who_leaves_at_once_is_kept() {
    Visit::begin(Deployment::embedded(), "renames_and_leaves").await.ends().await;
}
