//! The spelling of enums: one text for SQL, JSON and readers.

/// Gives enums that strum spells the names that SQL, JSON and text share.
#[macro_export]
macro_rules! text_enum {
    ($($name:ident),+ $(,)?) => {$(
        impl $name {
            /// Returns the spelling in SQL and JSON.
            pub fn as_str(self) -> &'static str {
                self.into()
            }
        }

        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                let expected = <Self as strum::VariantNames>::VARIANTS;
                text.parse().map_err(|_| format!("expected one of {}, not {text:?}", expected.join(", ")))
            }
        }
    )+};
}
