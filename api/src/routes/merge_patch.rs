//! JSON merge patches (RFC 7396).

use serde_json::{Value, json};

/// Applies a merge patch to `target`: null removes a field, and a list replaces the old one.
pub fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Value::Object(fields) = target else { return };
    for (name, value) in patch {
        match value {
            Value::Null => drop(fields.remove(&name)),
            value => merge(fields.entry(name).or_insert(Value::Null), value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_patch_changes_what_it_names() {
        let mut target = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1, 2]});
        merge(&mut target, json!({"a": null, "b": {"c": 4}, "e": [3], "f": {"g": null}}));
        assert_eq!(target, json!({"b": {"c": 4, "d": 3}, "e": [3], "f": {}}));
    }
}
