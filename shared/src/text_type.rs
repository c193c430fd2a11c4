//! Types that consist of a validated text.

/// Adds `as_str` and `Display` to types with a single text.
#[macro_export]
macro_rules! text_type {
    ($($name:ident),+) => {$(
        impl $name {
            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    )+};
}
