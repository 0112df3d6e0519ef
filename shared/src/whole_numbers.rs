//! Whole numbers that JSON writes with a fraction of zero, such as `83.0`. JSON Schema counts them as integers, and some clients
//! write all numbers so. Only a type that wants a whole number reads them so: free JSON stays as it is. A list is no object.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde_json::Value;

/// Reads what another reader reads, takes `83.0` where a type wants a whole number, and refuses a list where it wants an object. So do
/// all readers within.
pub struct WholeNumbers<R>(pub R);

/// Passes on what a reader finds.
struct Within<V> {
    visitor: V,
    wanted: Wanted,
}

/// The form that the type wants to read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Whole,
    /// An object with named fields. serde would read a list as one, field by field.
    Object,
    Other,
}

/// Returns the whole number of a JSON value, if it is one.
pub fn whole_number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().filter(|number| number.fract() == 0.0).and_then(signed))
}

/// Returns a number without a fraction as an integer of this type, if it has the number.
fn signed(number: f64) -> Option<i64> {
    // The type's largest number is no `f64`, and the one after it is.
    (number >= i64::MIN as f64 && number < i64::MAX as f64).then_some(number as i64)
}

fn unsigned(number: f64) -> Option<u64> {
    (number >= 0.0 && number < u64::MAX as f64).then_some(number as u64)
}

macro_rules! read {
    ($wanted:ident: $($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, R::Error> {
            self.0.$method(Within { visitor, wanted: Wanted::$wanted })
        }
    )*};
}

impl<'de, R: Deserializer<'de>> Deserializer<'de> for WholeNumbers<R> {
    type Error = R::Error;

    read!(Whole: deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128);
    read!(Whole: deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128);
    read!(Other: deserialize_any deserialize_bool deserialize_f32 deserialize_f64 deserialize_char deserialize_str);
    read!(Other: deserialize_string deserialize_bytes deserialize_byte_buf deserialize_option deserialize_unit);
    read!(Other: deserialize_seq deserialize_map deserialize_identifier deserialize_ignored_any);

    fn deserialize_unit_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, R::Error> {
        self.0.deserialize_unit_struct(name, Within { visitor, wanted: Wanted::Other })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, R::Error> {
        self.0.deserialize_newtype_struct(name, Within { visitor, wanted: Wanted::Other })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, R::Error> {
        self.0.deserialize_tuple(length, Within { visitor, wanted: Wanted::Other })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, R::Error> {
        self.0.deserialize_tuple_struct(name, length, Within { visitor, wanted: Wanted::Other })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, R::Error> {
        self.0.deserialize_struct(name, fields, Within { visitor, wanted: Wanted::Object })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, R::Error> {
        self.0.deserialize_enum(name, variants, Within { visitor, wanted: Wanted::Other })
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

macro_rules! visit {
    ($($method:ident: $type:ty,)*) => {$(
        fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.visitor.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Within<V> {
    type Value = V::Value;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(text)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<V::Value, E> {
        if self.wanted != Wanted::Whole || value.fract() != 0.0 {
            return self.visitor.visit_f64(value);
        }
        match (unsigned(value), signed(value)) {
            (Some(number), _) => self.visitor.visit_u64(number),
            (None, Some(number)) => self.visitor.visit_i64(number),
            (None, None) => self.visitor.visit_f64(value),
        }
    }

    visit! {
        visit_bool: bool, visit_i8: i8, visit_i16: i16, visit_i32: i32, visit_i64: i64, visit_i128: i128,
        visit_u8: u8, visit_u16: u16, visit_u32: u32, visit_u64: u64, visit_u128: u128, visit_f32: f32,
        visit_char: char, visit_str: &str, visit_borrowed_str: &'de str, visit_string: String,
        visit_bytes: &[u8], visit_borrowed_bytes: &'de [u8], visit_byte_buf: Vec<u8>,
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_some<R: Deserializer<'de>>(self, reader: R) -> Result<V::Value, R::Error> {
        self.visitor.visit_some(WholeNumbers(reader))
    }

    fn visit_newtype_struct<R: Deserializer<'de>>(self, reader: R) -> Result<V::Value, R::Error> {
        self.visitor.visit_newtype_struct(WholeNumbers(reader))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        if self.wanted == Wanted::Object {
            return Err(A::Error::invalid_type(Unexpected::Seq, &self));
        }
        self.visitor.visit_seq(WholeNumbers(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(WholeNumbers(fields))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_enum(WholeNumbers(variant))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for WholeNumbers<S> {
    type Value = S::Value;

    fn deserialize<R: Deserializer<'de>>(self, reader: R) -> Result<S::Value, R::Error> {
        self.0.deserialize(WholeNumbers(reader))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for WholeNumbers<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(WholeNumbers(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for WholeNumbers<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(WholeNumbers(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(WholeNumbers(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for WholeNumbers<A> {
    type Error = A::Error;
    type Variant = WholeNumbers<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        self.0.variant_seed(WholeNumbers(seed)).map(|(value, variant)| (value, WholeNumbers(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for WholeNumbers<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(WholeNumbers(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(length, Within { visitor, wanted: Wanted::Other })
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Within { visitor, wanted: Wanted::Object })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::{json, value::RawValue};

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Cargo {
        crates: u8,
        depth: Option<i64>,
        holds: Vec<u32>,
        weights: BTreeMap<String, usize>,
        stowed: Stowed,
        free: Value,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    enum Stowed {
        In(u16),
        At { row: u16 },
    }

    fn read<T: for<'de> Deserialize<'de>>(json: &str) -> Result<T, serde_json::Error> {
        T::deserialize(WholeNumbers(&mut serde_json::Deserializer::from_str(json)))
    }

    #[test]
    fn a_type_of_whole_numbers_reads_a_fraction_of_zero_and_free_json_keeps_it() {
        let cargo = |stowed: &str| {
            let json = format!(
                r#"{{"crates": 3.0, "depth": -2e1, "holds": [1.0, 2], "weights": {{"a": 1e3}}, "stowed": {stowed},
                    "free": {{"a": 1.0, "b": [2.0, 3]}}}}"#
            );
            read::<Cargo>(&json).unwrap()
        };
        let expected = Cargo {
            crates: 3,
            depth: Some(-20),
            holds: vec![1, 2],
            weights: BTreeMap::from([("a".to_owned(), 1000)]),
            stowed: Stowed::In(7),
            free: json!({"a": 1.0, "b": [2.0, 3]}),
        };
        assert_eq!(cargo(r#"{"In": 7.0}"#), expected);
        assert_eq!(cargo(r#"{"At": {"row": 8.0}}"#).stowed, Stowed::At { row: 8 });
        assert_eq!(read::<Box<RawValue>>("[1.0]").unwrap().get(), "[1.0]");
        assert_eq!(read::<f64>("1.0").unwrap(), 1.0);
    }

    #[test]
    fn other_numbers_are_refused_in_words() {
        let check = |json: &str, part: &str| {
            let problem = read::<u8>(json).unwrap_err().to_string();
            assert!(problem.contains(part), "{json}: {problem}");
        };
        check("3.5", "floating point `3.5`, expected u8");
        check("256.0", "integer `256`, expected u8");
        check("-1.0", "integer `-1`, expected u8");
        check("1e300", "expected u8");
        assert!(read::<u64>("18446744073709551616").is_err());
        assert_eq!(read::<u64>("18446744073709549568.0").unwrap(), 18_446_744_073_709_549_568);
        assert_eq!(read::<i64>("-9223372036854775808.0").unwrap(), i64::MIN);
    }

    #[test]
    fn a_list_is_no_object() {
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "only its reading matters")]
        struct CargoHold {
            crates: Option<u8>,
        }
        let problem = read::<Vec<CargoHold>>("[{}, [1]]").unwrap_err().to_string();
        assert!(problem.contains("invalid type: sequence, expected struct CargoHold"), "{problem}");
        assert_eq!(read::<(u8, Vec<u8>)>("[1.0, [2]]").unwrap(), (1, vec![2]));
    }

    #[test]
    fn a_value_is_a_whole_number_in_either_form() {
        let numbers = [json!(3), json!(3.0), json!(3.5), json!("3"), json!(1e300)];
        assert_eq!(numbers.map(|number| whole_number(&number)), [Some(3), Some(3), None, None, None]);
    }
}
