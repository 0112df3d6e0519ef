//! JSON schemas of tools' arguments, for models and for humans who edit a call.
//!
//! Clients and servers send the schemas, and no thread can interrupt a check. So `size` limits what `compile` accepts,
//! and `work` limits the cost of a check before it begins. `checks` runs both outside the runtime's threads.

mod checks;
mod size;
mod violations;
mod work;

use serde_json::Value;

pub use checks::{SchemaCheckError, SchemaChecks};
pub use size::{SchemaLimits, Sizes};

/// Most violations in one message.
const NAMED: usize = 5;

/// Most work at which a check collects several violations. The validator keeps each of them in memory.
const WORK_TO_NAME_ALL: usize = 20_000;

/// Memory for the cache of matching one pattern, in bytes.
const MATCH_CACHE: usize = 64 * 1024;

/// Deepest chain of schemas for one value. References could make it endless.
const DEEPEST: usize = 256;

/// A compiled schema.
pub struct Schema {
    validator: jsonschema::Validator,
    source: Value,
    most_work: usize,
}

impl Schema {
    /// Compiles a schema within the limits, or returns the problem. The compiler fetches nothing: references reach no
    /// further than the schema itself.
    pub fn compile(source: Value, limits: &SchemaLimits) -> Result<Self, String> {
        let sizes = Sizes::of(&source);
        sizes.check(limits)?;
        let limits = limits.shared_by(sizes.patterns);
        // The engine matches patterns in linear time.
        let patterns = jsonschema::PatternOptions::regex()
            .size_limit(limits.pattern_bytes)
            .dfa_size_limit(limits.pattern_bytes.max(MATCH_CACHE));
        let validator = jsonschema::options().with_pattern_options(patterns).build(&source).map_err(|error| {
            let patterns = match sizes.patterns {
                0 => String::new(),
                _ => format!("; a pattern may take {} bytes when compiled", limits.pattern_bytes),
            };
            format!("it is no JSON schema: {}{patterns}", shorten(&error.to_string()))
        })?;
        Ok(Self { validator, source, most_work: limits.work })
    }

    /// Returns the violations with their paths, or that the check would need too much work.
    pub fn validate(&self, input: &Value) -> Result<(), String> {
        let Some(work) = work::of(&self.source, input, self.most_work) else {
            return Err("at the top: these arguments are too much to check against the tool's schema".to_owned());
        };
        if self.validator.is_valid(input) {
            return Ok(());
        }
        let most = if work <= WORK_TO_NAME_ALL { NAMED } else { 1 };
        let mut named = match most {
            1 => self.validator.validate(input).err().iter().map(|violation| name(violation, &self.source)).collect(),
            _ => {
                let violations = self.validator.iter_errors(input).take(most);
                violations.map(|violation| name(&violation, &self.source)).collect::<Vec<_>>()
            }
        };
        if named.is_empty() {
            named.push("at the top: the schema refuses it".to_owned());
        }
        Err(named.join("; "))
    }
}

fn name(violation: &jsonschema::ValidationError<'_>, source: &Value) -> String {
    let rule = violations::rule(violation, source);
    match violation.instance_path().as_str() {
        "" => format!("at the top: {}", shorten(&rule)),
        path => format!("at {}: {}", shorten(path), shorten(&rule)),
    }
}

/// Truncates a text that a schema or its arguments make long.
fn shorten(text: &str) -> String {
    const MOST: usize = 1_000;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::json;

    use super::*;

    fn compiled(schema: Value) -> Result<Schema, String> {
        Schema::compile(schema, &SchemaLimits::default())
    }

    #[test]
    fn a_violation_names_its_path() {
        let schema = compiled(json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "object", "properties": {"n": {"type": "integer"}}}}}))
        .unwrap();
        let check = |input: Value, part: Option<&str>| match (schema.validate(&input), part) {
            (Ok(()), None) => {}
            (Err(problem), Some(part)) => assert!(problem.contains(part), "{problem:?} lacks {part}"),
            (result, part) => panic!("{input}: {result:?}, expected {part:?}"),
        };
        check(json!({"a": {"n": 1}}), None);
        check(json!({"a": {"n": "one"}}), Some("/a/n"));
        check(json!({}), Some("at the top"));
        check(json!("text"), Some("object"));
    }

    #[test]
    fn a_schema_that_reaches_outside_is_refused_and_fetches_nothing() {
        assert!(compiled(json!({"$ref": "http://127.0.0.1:9/schema.json"})).is_err());
        assert!(compiled(json!({"$defs": {"a": {"type": "string"}}, "$ref": "#/$defs/a"})).is_ok());
        assert!(compiled(json!({"type": "nonsense"})).is_err());
    }

    #[test]
    fn a_pattern_that_compiles_to_megabytes_is_refused() {
        assert!(compiled(json!({"pattern": "^[a-zA-Z0-9._%+-]{1,64}@[a-z0-9.-]{1,255}$"})).is_ok());
        assert!(compiled(json!({"pattern": "^.{1,200}$"})).is_ok());
        let problem = compiled(json!({"pattern": "(((.{30}){30}){30}){30}"})).err().unwrap();
        assert!(problem.contains("may take 262144 bytes"), "{problem}");
    }

    #[test]
    fn the_largest_schemas_that_are_taken_compile_in_a_moment() {
        let limits = SchemaLimits::default();
        let nested = |levels: usize| {
            (0..levels).fold(
                json!({"type": "object"}),
                |inner, _| json!({"allOf": [inner], "unevaluatedProperties": false, "unevaluatedItems": false}),
            )
        };
        let patterns: serde_json::Map<String, Value> = (0..limits.patterns)
            .map(|n| (format!("p{n}"), json!({"pattern": format!("[^x]{{{}}}", 10 + n % 50)})))
            .collect();
        let rules: Vec<Value> = (0..2_500).map(|n| json!({"required": [format!("f{n}")]})).collect();
        for schema in [nested(30), json!({"properties": patterns}), json!({"anyOf": rules})] {
            let start = Instant::now();
            let compiled = compiled(schema);
            assert!(start.elapsed().as_secs() < 5, "{:?} after {:?}", compiled.err(), start.elapsed());
            assert!(compiled.is_ok(), "{:?}", compiled.err());
        }
    }

    #[test]
    fn many_patterns_share_the_memory_of_64() {
        let pattern = json!({"pattern": "[^x]{200}"});
        let schema = |count: usize| json!({"properties": (0..count).map(|n| (format!("p{n}"), pattern.clone())).collect::<serde_json::Map<_, _>>()});
        assert!(compiled(schema(64)).is_ok());
        let problem = compiled(schema(256)).err().unwrap();
        assert!(problem.contains("may take 65536 bytes"), "{problem}");
        let small = json!({"pattern": "^[a-z]{1,10}$"});
        let many = (0..256).map(|n| (format!("p{n}"), small.clone())).collect::<serde_json::Map<_, _>>();
        assert!(compiled(json!({"properties": many})).is_ok());
    }

    #[test]
    fn references_that_multiply_compile_in_a_moment() {
        for keyword in ["allOf", "anyOf", "oneOf", "items", "not", "if", "properties"] {
            let mut schema = json!({"$defs": {"d0": {"type": "object"}}, "$ref": "#/$defs/d30"});
            for n in 1..=30 {
                let inner = json!({"$ref": format!("#/$defs/d{}", n - 1)});
                schema["$defs"][format!("d{n}")] = match keyword {
                    "allOf" | "anyOf" | "oneOf" => json!({keyword: [inner.clone(), inner]}),
                    "properties" => json!({"properties": {"a": inner.clone(), "b": inner}}),
                    "if" => json!({"if": inner.clone(), "then": inner.clone(), "else": inner}),
                    _ => json!({keyword: inner, "additionalProperties": {"$ref": "#"}}),
                };
            }
            let start = Instant::now();
            let outcome = compiled(schema).map(drop);
            assert!(start.elapsed().as_secs() < 5, "{keyword}: {outcome:?} after {:?}", start.elapsed());
        }
    }

    #[test]
    fn arguments_that_need_too_much_work_are_refused_with_a_sentence() {
        let rules: Vec<Value> = (0..2_500).map(|n| json!({"const": n})).collect();
        let schema = compiled(json!({"properties": {"a": {"items": {"anyOf": rules}}}})).unwrap();
        let items = |count: usize| json!({"a": vec![json!("x"); count]});
        assert!(schema.validate(&items(3)).unwrap_err().starts_with("at /a/0: "));
        let start = Instant::now();
        assert!(schema.validate(&items(20_000)).unwrap_err().contains("too much to check"));
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
        let plain = compiled(json!({"properties": {"a": {"items": {"type": "string", "minLength": 1}}}})).unwrap();
        assert_eq!(plain.validate(&items(20_000)), Ok(()));
    }

    #[test]
    fn references_that_multiply_or_never_end_need_too_much_work() {
        let mut schema = json!({"$defs": {"d0": {"type": "object"}}, "$ref": "#/$defs/d30"});
        for n in 1..=30 {
            let inner = json!({"$ref": format!("#/$defs/d{}", n - 1)});
            schema["$defs"][format!("d{n}")] = json!({"allOf": [inner.clone(), inner]});
        }
        let check = |schema: Value| compiled(schema).unwrap().validate(&json!({"a": 1})).unwrap_err();
        assert!(check(schema).contains("too much"));
        assert!(check(json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}})).contains("too much"));
        let tree = json!({"type": "object", "properties": {"n": {"type": "integer"}, "next": {"$ref": "#"}}});
        let tree = compiled(tree).unwrap();
        assert_eq!(tree.validate(&json!({"n": 1, "next": {"n": 2, "next": {"n": 3}}})), Ok(()));
        assert!(tree.validate(&json!({"next": {"n": "x"}})).unwrap_err().contains("/next/n"));
    }
}
