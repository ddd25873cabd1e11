//! Enums whose values are single words in plans, state files and on the command line.

/// One of several words.
pub trait Word: Copy + Send + Sync + 'static {
    fn all() -> &'static [Self];
    fn word(self) -> &'static str;
}

/// The item with a JSON Schema, where this crate has them: also in crates that know no feature of that name.
#[doc(hidden)]
#[cfg(feature = "schema")]
#[macro_export]
macro_rules! with_schema {
    ($($item:tt)*) => {
        #[derive($crate::schemars::JsonSchema)]
        #[schemars(crate = "lanewright_model::schemars")]
        $($item)*
    };
}

#[doc(hidden)]
#[cfg(not(feature = "schema"))]
#[macro_export]
macro_rules! with_schema {
    ($($item:tt)*) => { $($item)* };
}

/// Declares such an enum with its words, so that no word is ever written twice.
#[macro_export]
macro_rules! word_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* }) => {
        $crate::with_schema! {
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
            #[derive(serde::Serialize, serde::Deserialize)]
            pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant,)* }
        }

        #[allow(dead_code, reason = "not every enum is listed or read")]
        impl $name {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word that plans, state files and the command line use.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The value of `word`.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.word() == word)
            }
        }

        impl $crate::Word for $name {
            fn all() -> &'static [Self] { Self::ALL }
            fn word(self) -> &'static str { Self::word(self) }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }
    };
}
