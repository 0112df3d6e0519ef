//! Runs the checker for the tests.

use std::collections::BTreeSet;

use stateright::{Checker, HasDiscoveries, Model};

/// Visits all states, and fails if a promise breaks. Prints their number.
pub fn holds<M>(model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: std::hash::Hash + Clone + std::fmt::Debug + PartialEq + Send + Sync + 'static,
    M::Action: Clone + std::fmt::Debug + PartialEq,
{
    let checker = model.checker().threads(2).spawn_bfs().join();
    println!("{} states, {} steps at most", checker.unique_state_count(), checker.max_depth());
    checker.assert_properties();
}

/// Returns a short way to a state that breaks the promise, one step a line.
pub fn counterexample<M>(model: M, promise: &'static str) -> String
where
    M: Model + Send + Sync + 'static,
    M::State: std::hash::Hash + Clone + std::fmt::Debug + PartialEq + Send + Sync + 'static,
    M::Action: Clone + std::fmt::Debug + PartialEq,
{
    let is_found = HasDiscoveries::AnyOf(BTreeSet::from([promise]));
    let checker = model.checker().finish_when(is_found).spawn_bfs().join();
    let path = checker.discovery(promise).unwrap_or_else(|| panic!("without its rule, this still holds: {promise}"));
    path.into_actions().iter().map(|action| format!("{action:?}\n")).collect()
}

/// Makes a test for each rule, which shows that a promise needs it: the snapshot is a way to break the promise in a model
/// `$without` the rule.
macro_rules! needed {
    ($without:path; $($rule:ident: $promise:literal $(, $faults:expr)?;)+) => {
        $(#[test]
        fn $rule() {
            let model = $without(|rules| rules.$rule = false $(, $faults)?);
            insta::assert_snapshot!(stringify!($rule), crate::check::counterexample(model, $promise));
        })+
    };
}
pub(crate) use needed;
