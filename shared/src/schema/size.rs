//! The size of a schema: bytes, patterns and references, found by one walk.

use serde_json::Value;

/// The limits of a schema, and of a check against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaLimits {
    /// Bytes of JSON.
    pub bytes: usize,
    /// Number of patterns, those of `patternProperties` included.
    pub patterns: usize,
    /// Memory of one compiled pattern, in bytes.
    pub pattern_bytes: usize,
    /// Steps of one check. A step compares one value with one keyword.
    pub work: usize,
}

/// Patterns that may have the memory of one each. More share it.
const WHOLE_PATTERNS: usize = 64;

impl SchemaLimits {
    /// Returns the limits of one of several schemas with so many patterns together.
    pub fn shared_by(self, patterns: usize) -> Self {
        let pattern_bytes = self.pattern_bytes / patterns.div_ceil(WHOLE_PATTERNS).max(1);
        Self { pattern_bytes, ..self }
    }
}

impl Default for SchemaLimits {
    fn default() -> Self {
        Self { bytes: 262_144, patterns: 256, pattern_bytes: 262_144, work: 1_000_000 }
    }
}

/// Longest text of one pattern, in bytes.
const PATTERN_TEXT: usize = 4_096;

/// The sizes of one or several schemas.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of JSON.
    pub bytes: usize,
    /// Number of patterns.
    pub patterns: usize,
    longest_pattern: usize,
    /// Whether a part refers to another schema.
    has_references: bool,
    /// A keyword that refers to a schema which only the arguments decide.
    dynamic: Option<&'static str>,
    /// A keyword that concerns what all other schemas of its place have left.
    unevaluated: Option<&'static str>,
    /// Whether a part of a schema has its own id, which changes how references resolve.
    has_ids: bool,
}

impl Sizes {
    /// Returns the sizes of one schema.
    pub fn of(schema: &Value) -> Self {
        let mut sizes = Self { bytes: schema.to_string().len(), ..Self::default() };
        sizes.walk(schema, true);
        sizes
    }

    /// Returns the sizes of both together.
    pub fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            patterns: self.patterns + other.patterns,
            longest_pattern: self.longest_pattern.max(other.longest_pattern),
            has_references: self.has_references || other.has_references,
            dynamic: self.dynamic.or(other.dynamic),
            unevaluated: self.unevaluated.or(other.unevaluated),
            has_ids: self.has_ids || other.has_ids,
        }
    }

    /// Returns a keyword that could make the compilation of a stranger's schema endless.
    pub const fn endless_keyword(&self) -> Option<&'static str> {
        match (self.dynamic, self.unevaluated) {
            (None, Some(keyword)) if self.has_references => Some(keyword),
            (dynamic, _) => dynamic,
        }
    }

    /// Returns a sentence about the first limit that the sizes exceed.
    pub fn check(&self, limits: &SchemaLimits) -> Result<(), String> {
        let beyond =
            |what: &str, have: usize, most: usize| Err(format!("it has {have} {what}, and the limit is {most}"));
        match self {
            _ if self.bytes > limits.bytes => beyond("bytes", self.bytes, limits.bytes),
            _ if self.patterns > limits.patterns => beyond("patterns", self.patterns, limits.patterns),
            _ if self.longest_pattern > PATTERN_TEXT => {
                beyond("bytes in one pattern", self.longest_pattern, PATTERN_TEXT)
            }
            _ if (self.has_references || self.dynamic.is_some()) && self.has_ids => {
                Err("it has both references and inner ids".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Counts each name that looks like a keyword, also the name of a property. A count that is too high is safe.
    fn walk(&mut self, value: &Value, is_root: bool) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match (name.as_str(), value) {
                        ("pattern", Value::String(pattern)) => self.pattern(pattern),
                        ("patternProperties", Value::Object(patterns)) => {
                            patterns.keys().for_each(|pattern| self.pattern(pattern))
                        }
                        ("$ref", Value::String(_)) => self.has_references = true,
                        ("$dynamicRef", Value::String(_)) => self.dynamic = Some("$dynamicRef"),
                        ("$recursiveRef", Value::String(_)) => self.dynamic = Some("$recursiveRef"),
                        ("unevaluatedProperties", _) => self.unevaluated = Some("unevaluatedProperties"),
                        ("unevaluatedItems", _) => self.unevaluated = Some("unevaluatedItems"),
                        ("$id" | "id", Value::String(_)) if !is_root => self.has_ids = true,
                        _ => {}
                    }
                    self.walk(value, false);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.walk(item, false)),
            _ => {}
        }
    }

    fn pattern(&mut self, pattern: &str) {
        self.patterns += 1;
        self.longest_pattern = self.longest_pattern.max(pattern.len());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_apply_at_their_edge() {
        let limits = SchemaLimits { bytes: 60, patterns: 2, ..SchemaLimits::default() };
        let check = |schema: Value, part: Option<&str>| match (Sizes::of(&schema).check(&limits), part) {
            (Ok(()), None) => {}
            (Err(problem), Some(part)) => assert!(problem.contains(part), "{problem:?} lacks {part}"),
            (result, part) => panic!("{schema}: {result:?}, expected {part:?}"),
        };
        check(json!({"patternProperties": {"a": {"pattern": "b"}}}), None);
        check(json!({"patternProperties": {"a": {"pattern": "b"}, "c": {}}}), Some("3 patterns, and the limit is 2"));
        check(json!({"title": "x".repeat(48)}), None);
        check(json!({"title": "x".repeat(49)}), Some("61 bytes, and the limit is 60"));
        let limits = SchemaLimits::default();
        assert!(Sizes::of(&json!({"pattern": "x".repeat(PATTERN_TEXT)})).check(&limits).is_ok());
        assert!(Sizes::of(&json!({"pattern": "x".repeat(PATTERN_TEXT + 1)})).check(&limits).is_err());
    }

    #[test]
    fn references_are_found_and_exclude_inner_ids() {
        assert!(Sizes::of(&json!({"allOf": [{"$ref": "#/$defs/b"}]})).has_references);
        assert!(!Sizes::of(&json!({"properties": {"$ref": {"type": "string"}}})).has_references);
        let endless = |schema: Value| Sizes::of(&schema).endless_keyword();
        assert_eq!(endless(json!({"$ref": "#/$defs/b"})), None);
        assert_eq!(endless(json!({"unevaluatedItems": false})), None);
        assert_eq!(endless(json!({"$ref": "#/$defs/b", "unevaluatedItems": false})), Some("unevaluatedItems"));
        assert_eq!(endless(json!({"$dynamicRef": "#a"})), Some("$dynamicRef"));
        let inner = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$id": "http://a/", "type": "string"}}});
        assert!(Sizes::of(&inner).check(&SchemaLimits::default()).is_err());
    }
}
