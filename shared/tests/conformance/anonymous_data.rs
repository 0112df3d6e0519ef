//! The measurement of the data of all anonymous users together.

use std::time::Duration;

use holdfast_shared::{
    quotas::FileQuotas,
    storage::{NewFile, Target, UploadOutcome, UploadedContents},
};

use crate::{backends::TestBackends, on_each_backend};

on_each_backend!(a_measurement_has_the_data_of_anonymous_users_alone, one_process_measures_in_each_interval);

const NEW: Target = Target::New { agent_id: None };

async fn measured(backends: &TestBackends) -> u64 {
    let measured = backends.storage.measure_anonymous_data(Duration::ZERO).await.unwrap().0;
    assert_eq!(backends.storage.anonymous_data().await.unwrap().bytes, measured);
    measured
}

async fn begun(backends: &TestBackends, owner: &str, bytes: u64) -> holdfast_shared::file::StoredFile {
    let new = NewFile { name: "a.txt".into(), bytes, key: None };
    match backends.storage.begin_upload(owner, &new, FileQuotas::default()).await.unwrap() {
        UploadOutcome::Begun(file) => file,
        other => panic!("{other:?}"),
    }
}

async fn a_measurement_has_the_data_of_anonymous_users_alone(backends: TestBackends) {
    let storage = &backends.storage;
    assert_eq!(measured(&backends).await, 0);
    for owner in ["anonymous_a", "anonymous_b"] {
        storage.remember_anonymous(owner).await.unwrap();
        backends.submit_as(owner, NEW, "hi").await;
    }
    backends.submit_as("ann", NEW, "hi").await;
    let kept = storage.kept_bytes("anonymous_a").await.unwrap() as u64;
    assert_eq!(measured(&backends).await, 2 * kept);
    let file = begun(&backends, "anonymous_a", 1000).await;
    assert_eq!(measured(&backends).await, 2 * kept, "promised bytes do not count");
    assert!(storage.note_received(&file, 7).await.unwrap());
    assert_eq!(measured(&backends).await, 2 * kept + 7);
    let contents = UploadedContents { media_type: "text/plain".into(), bytes: 9, sha256: "aa".into(), same: None };
    storage.complete_upload(&file, &contents).await.unwrap().unwrap();
    begun(&backends, "ann", 1000).await;
    assert_eq!(measured(&backends).await, 2 * kept + 9);
}

async fn one_process_measures_in_each_interval(backends: TestBackends) {
    const HOUR: Duration = Duration::from_secs(3_600);
    let storage = &backends.storage;
    let number = || async { storage.anonymous_data().await.unwrap().number };
    assert_eq!(number().await, 0);
    assert_eq!(storage.measure_anonymous_data(HOUR).await.unwrap(), (0, true));
    assert_eq!(storage.measure_anonymous_data(HOUR).await.unwrap(), (0, false));
    storage.remember_anonymous("anonymous_a").await.unwrap();
    backends.submit_as("anonymous_a", NEW, "hi").await;
    assert_eq!(number().await, 1, "the last measurement stays");
    let (bytes, is_new) = storage.measure_anonymous_data(Duration::ZERO).await.unwrap();
    assert!(bytes > 0 && is_new);
    assert_eq!(
        storage.measure_anonymous_data(HOUR).await.unwrap(),
        (bytes, false),
        "a sweep between knows the last one"
    );
    assert_eq!(number().await, 2);
}
