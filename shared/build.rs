//! Compiles the crate again when a migration is added, because `sqlx::migrate!` reads their folder.

fn main() {
    println!("cargo:rerun-if-changed=../migrations");
}
