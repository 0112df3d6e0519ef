//! The page of a project.

use super::Visit;
use crate::support::Deployment;

#[tokio::test]
async fn tasks_are_sorted_and_grouped() {
    Visit::begin(Deployment::embedded(), "sorts_and_groups_tasks").await.ends().await;
}

#[tokio::test]
async fn a_long_list_of_tasks_is_in_the_order_of_the_server() {
    Visit::begin(Deployment::embedded(), "sorts_a_long_list").await.ends().await;
}

#[tokio::test]
async fn an_empty_project_invites_to_begin() {
    Visit::begin(Deployment::embedded(), "begins_in_an_empty_project").await.ends().await;
}

#[tokio::test]
async fn the_first_task_stands_near_the_top() {
    Visit::begin(Deployment::embedded(), "finds_the_first_task_at_the_top").await.ends().await;
}

#[tokio::test]
async fn the_changes_of_an_agent_appear_while_it_works() {
    Visit::begin(Deployment::embedded(), "sees_an_agent_at_work").await.ends().await;
}

#[tokio::test]
async fn a_template_is_readable() {
    Visit::begin(Deployment::embedded(), "reads_a_template").await.ends().await;
}

#[tokio::test]
async fn a_project_is_readable_in_forced_colours() {
    Visit::begin(Deployment::embedded(), "reads_a_project_in_forced_colours").await.ends().await;
}
