//! The spelling of enums: one text for SQL, JSON and readers.

/// Gives an enum its one spelling in SQL, JSON and text.
#[macro_export]
macro_rules! text_enum {
    ($name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        impl $name {
            /// Returns the spelling in SQL and JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                match text.as_str() {
                    $($text => Ok(Self::$variant),)+
                    _ => Err(format!("expected one of {}, not {text:?}", [$($text),+].join(", "))),
                }
            }
        }
    };
}
