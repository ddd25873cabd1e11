//! How a table of the native format is described: one line for each key says which field it fills, what it takes, and what
//! editors say about it. The struct, the schema and the reader are made from it.

use lanewright_model::plan::{EdgeOrigin, Skipped};

use super::fields::Fields;
use crate::source_text::{At, Span};

#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) about: &'static str,
    /// The help where it is missing; empty: it may be left out.
    pub(super) required: &'static [&'static str],
}

#[derive(Debug)]
pub(super) enum Shape {
    Id,
    Ids,
    Text,
    FullText,
    Texts,
    /// A whole number from the first to the second.
    Number(u32, u32),
    Flag,
    Dollars,
    Duration,
    Word(fn() -> Vec<&'static str>),
    Words(fn() -> Vec<&'static str>),
    Command,
    Commands,
    /// A number, or a list of runners.
    Candidates,
    Env,
    Matrix,
    Pools,
    /// A table of these keys, those but not named.
    Table(fn() -> &'static [Key], &'static [&'static str]),
    /// A list of tables of these keys.
    Tables(fn() -> &'static [Key]),
}

pub(super) trait Table: Sized {
    /// As messages call it: `a lane`.
    const OWNER: &'static str;

    fn keys() -> &'static [Key];

    /// Reads every key. Faults are noted, and what is at fault is left out.
    fn read(fields: &mut Fields<'_>) -> Self;

    /// Takes from `defaults` the values of the fields that are not set.
    fn fill(&mut self, defaults: &Self);
}

/// A field of a [`Table`], which the keys called `names` fill.
pub(super) trait Field {
    fn read(fields: &mut Fields<'_>, names: &[&'static str]) -> Self;

    /// Takes the value of `default` where none is set. A field whose keys have no default stays as it is.
    fn fill(&mut self, _default: &Self) {}
}

impl Field for Span {
    fn read(fields: &mut Fields<'_>, _: &[&'static str]) -> Self {
        fields.span()
    }
}

/// Makes a type a field that no key fills.
macro_rules! filled_by_no_key {
    ($($type:ty),*) => {$(
        impl $crate::draft::keys::Field for $type {
            fn read(_: &mut $crate::draft::fields::Fields<'_>, _: &[&'static str]) -> Self {
                Self::default()
            }
        }
    )*};
}
pub(super) use filled_by_no_key;

filled_by_no_key! { Vec<Skipped>, Vec<(At<String>, EdgeOrigin)> }

/// Describes how a struct is read from a table.
macro_rules! table {
    ($name:ident = $owner:literal {
        $($field:ident: $type:ty =
            [$($key:literal: $shape:expr, $about:literal $(, or $help:literal)?);*];)*
    }) => {
        impl Table for $name {
            const OWNER: &'static str = $owner;

            fn keys() -> &'static [Key] {
                const KEYS: &[Key] = &[$($(
                    Key { name: $key, shape: $shape, about: $about, required: &[$($help)?] },
                )*)*];
                KEYS
            }

            fn read(fields: &mut Fields<'_>) -> Self {
                Self { $($field: <$type as Field>::read(fields, &[$($key),*]),)* }
            }

            fn fill(&mut self, defaults: &Self) {
                $(Field::fill(&mut self.$field, &defaults.$field);)*
            }
        }
    };
}
pub(super) use table;

/// Declares a struct and how it is read from a table.
macro_rules! draft {
    ($(#[$attribute:meta])* $name:ident = $owner:literal {
        $($(#[$doc:meta])* $field:ident: $type:ty = [$($keys:tt)*];)*
    }) => {
        $(#[$attribute])*
        #[derive(Debug, Default, Clone)]
        pub(super) struct $name {
            $($(#[$doc])* pub(super) $field: $type,)*
        }

        table! { $name = $owner { $($field: $type = [$($keys)*];)* } }
    };
}
pub(super) use draft;
