//! The pages of the workspace.

use super::Visit;
use crate::support::Deployment;

#[tokio::test]
async fn a_project_is_kept_on_the_page() {
    Visit::begin(Deployment::embedded(), "keeps_a_project").await.ends().await;
}

#[tokio::test]
async fn a_new_task_stays_when_an_older_list_arrives_after_it() {
    Visit::begin(Deployment::embedded(), "keeps_a_task_that_a_slow_list_lacks").await.ends().await;
}

#[tokio::test]
async fn a_text_that_two_people_change_loses_nothing() {
    Visit::begin(Deployment::embedded(), "loses_no_text").await.ends().await;
}

#[tokio::test]
async fn a_chat_about_a_project_changes_it_and_takes_it_back() {
    Visit::begin(Deployment::embedded(), "talks_about_a_project").await.ends().await;
}

#[tokio::test]
async fn a_project_fits_on_a_phone() {
    Visit::begin(Deployment::embedded(), "reads_a_project_on_a_phone").await.ends().await;
}

#[tokio::test]
async fn tasks_are_added_as_fast_as_they_are_written() {
    Visit::begin(Deployment::embedded(), "adds_tasks_quickly").await.ends().await;
}
