//! The work of checking one value against one schema, found by a walk with a limit.
//!
//! The walk visits each pair of a subschema and a value that a validator may visit, and counts at least the validator's
//! work. A validator stops at the first violation and the walk does not, so it finds an upper bound.

use serde_json::{Map, Value};

use super::DEEPEST;

/// Bytes of text that count as one step.
const BYTES_PER_STEP: usize = 64;

/// Bytes of text that one step matches against a small pattern.
const MATCHED_PER_STEP: usize = 4;

/// Size, with repetitions written out, at which a pattern costs twice a small one.
const SMALL_PATTERN: usize = 32;

/// Steps per value for finding equal items in a list.
const PER_UNIQUE: usize = 8;

/// Returns the work of a check, or `None` if it is more than `most`.
pub fn of(schema: &Value, value: &Value, most: usize) -> Option<usize> {
    let mut walk = Walk { root: schema, left: most };
    walk.visit(schema, value, DEEPEST)?;
    Some(most - walk.left)
}

struct Walk<'a> {
    root: &'a Value,
    left: usize,
}

impl Walk<'_> {
    fn spend(&mut self, steps: usize) -> Option<()> {
        self.left = self.left.checked_sub(steps)?;
        Some(())
    }

    fn visit(&mut self, schema: &Value, value: &Value, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        self.spend(1)?;
        let Value::Object(keywords) = schema else { return Some(()) };
        keywords.keys().try_for_each(|keyword| self.keyword(keywords, keyword, value, depth))
    }

    fn keyword(&mut self, keywords: &Map<String, Value>, keyword: &str, value: &Value, depth: usize) -> Option<()> {
        self.spend(1)?;
        match (keyword, &keywords[keyword], value) {
            ("allOf" | "anyOf" | "oneOf", Value::Array(all), _) => {
                all.iter().try_for_each(|schema| self.visit(schema, value, depth))
            }
            ("not" | "if" | "then" | "else", schema, _) => self.visit(schema, value, depth),
            ("$ref", Value::String(target), _) => {
                let root = self.root;
                let schema = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer))?;
                self.visit(schema, value, depth)
            }
            ("$dynamicRef" | "$recursiveRef", ..) => None,
            ("enum" | "const", inner, _) => self.spend(values_in(inner)),
            (_, inner, Value::Object(fields)) => self.of_object(keywords, (keyword, inner), fields, value, depth),
            (_, inner, Value::Array(items)) => self.of_array(keywords, (keyword, inner), items, value, depth),
            ("pattern", Value::String(pattern), Value::String(text)) => self.matches(pattern, text),
            (_, _, Value::String(text)) => self.spend(text.len() / BYTES_PER_STEP),
            _ => Some(()),
        }
    }

    fn of_object(
        &mut self,
        keywords: &Map<String, Value>,
        (keyword, inner): (&str, &Value),
        fields: &Map<String, Value>,
        value: &Value,
        depth: usize,
    ) -> Option<()> {
        match (keyword, inner) {
            ("properties", Value::Object(named)) => {
                self.spend(named.len())?;
                let present = named.iter().filter_map(|(name, schema)| Some((schema, fields.get(name)?)));
                present.into_iter().try_for_each(|(schema, field)| self.visit(schema, field, depth))
            }
            ("patternProperties", Value::Object(patterns)) => patterns.iter().try_for_each(|(pattern, schema)| {
                fields.iter().try_for_each(|(name, field)| {
                    self.matches(pattern, name)?;
                    self.visit(schema, field, depth)
                })
            }),
            ("additionalProperties", schema) => {
                if let Some(Value::Object(patterns)) = keywords.get("patternProperties") {
                    let each = |pattern: &String| fields.keys().try_for_each(|name| self.matches(pattern, name));
                    patterns.keys().try_for_each(each)?;
                }
                fields.values().try_for_each(|field| self.visit(schema, field, depth))
            }
            ("unevaluatedProperties", schema) => {
                self.siblings(keywords, value, depth)?;
                fields.values().try_for_each(|field| self.visit(schema, field, depth))
            }
            ("propertyNames", schema) => fields.keys().try_for_each(|name| {
                self.spend(1 + name.len() / BYTES_PER_STEP)?;
                self.visit(schema, &Value::String(name.clone()), depth)
            }),
            ("dependentSchemas" | "dependencies", Value::Object(named)) => {
                self.spend(values_in(inner))?;
                let present = named.iter().filter(|(name, schema)| fields.contains_key(*name) && !schema.is_array());
                present.into_iter().try_for_each(|(_, schema)| self.visit(schema, value, depth))
            }
            ("required" | "dependentRequired", inner) => self.spend(values_in(inner)),
            _ => Some(()),
        }
    }

    fn of_array(
        &mut self,
        keywords: &Map<String, Value>,
        (keyword, inner): (&str, &Value),
        items: &[Value],
        value: &Value,
        depth: usize,
    ) -> Option<()> {
        match (keyword, inner) {
            ("items" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter().zip(items).try_for_each(|(schema, item)| self.visit(schema, item, depth))
            }
            ("items" | "additionalItems" | "contains", schema) => {
                items.iter().try_for_each(|item| self.visit(schema, item, depth))
            }
            ("unevaluatedItems", schema) => {
                self.siblings(keywords, value, depth)?;
                items.iter().try_for_each(|item| self.visit(schema, item, depth))
            }
            ("uniqueItems", Value::Bool(true)) => self.spend(PER_UNIQUE * values_in(value)),
            _ => Some(()),
        }
    }

    /// The validator finds unevaluated fields by evaluating all keywords beside this one again.
    fn siblings(&mut self, keywords: &Map<String, Value>, value: &Value, depth: usize) -> Option<()> {
        let evaluating = keywords.keys().filter(|keyword| !keyword.starts_with("unevaluated"));
        evaluating.into_iter().try_for_each(|keyword| self.keyword(keywords, keyword, value, depth))
    }

    fn matches(&mut self, pattern: &str, text: &str) -> Option<()> {
        let each = 1 + written_out(pattern) / SMALL_PATTERN;
        self.spend((1 + text.len() / MATCHED_PER_STEP).saturating_mul(each))
    }
}

/// Returns the number of values in a value, itself included.
fn values_in(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(values_in).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(values_in).sum::<usize>(),
        _ => 1,
    }
}

/// Returns about the length of a pattern with its counted repetitions written out. It treats adjacent repetitions as
/// nested. The limit on compiled patterns also limits the number of states.
fn written_out(pattern: &str) -> usize {
    const MOST: usize = 16_384;
    let counts = pattern.split('{').skip(1).filter_map(|rest| rest.split_once('}')?.0.rsplit(',').next()?.parse().ok());
    counts.fold(pattern.len(), |length, count: usize| length.saturating_mul(count.max(1))).min(MOST)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn work_grows_with_schema_and_value() {
        let work = |schema: Value, value: Value| of(&schema, &value, 1_000_000).unwrap();
        let rules = |count: usize| json!({"items": {"anyOf": vec![json!({"type": "string"}); count]}});
        let once = work(rules(10), json!(vec!["x"; 10]));
        assert!(work(rules(100), json!(vec!["x"; 10])) > 8 * once);
        assert!(work(rules(10), json!(vec!["x"; 100])) > 8 * once);
        assert!(work(rules(1_000), json!({"no": "list"})) < 10, "what does not apply costs nothing");
    }

    #[test]
    fn a_limit_applies_at_its_edge() {
        let (schema, value) = (json!({"items": {"type": "string"}}), json!(["a", "b"]));
        let needed = of(&schema, &value, 1_000).unwrap();
        assert_eq!(of(&schema, &value, needed), Some(needed));
        assert_eq!(of(&schema, &value, needed - 1), None);
    }

    #[test]
    fn each_keyword_that_repeats_work_is_counted() {
        let check = |schema: Value, value: Value| {
            assert_eq!(of(&schema, &value, 100_000), None, "{}", &schema.to_string()[..60]);
        };
        let many = || json!(vec!["x"; 1_000]);
        let fields = || (0..1_000).map(|n| (format!("f{n}"), json!(n))).collect::<Map<_, _>>();
        let rules = || vec![json!({"minimum": 1}); 200];
        let patterns = (0..64).map(|n| (format!("^a{{{n}}}"), json!(true))).collect::<Map<_, _>>();
        check(json!({"contains": {"allOf": rules()}}), many());
        check(json!({"additionalProperties": {"oneOf": rules()}}), Value::Object(fields()));
        check(json!({"patternProperties": patterns}), Value::Object(fields()));
        check(json!({"propertyNames": {"enum": vec!["x"; 1_000]}}), Value::Object(fields()));
        check(json!({"items": {"uniqueItems": true}}), json!(vec![many(); 20]));
        check(json!({"pattern": "(a|b){1,1000}"}), json!("a".repeat(10_000)));
        let nested = (0..30).fold(json!({}), |inner, _| json!({"allOf": [inner], "unevaluatedProperties": false}));
        check(nested, json!({"a": 1}));
        check(json!({"$dynamicRef": "#node"}), json!(1));
    }
}
