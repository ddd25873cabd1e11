//! One level of a value in YAML or JSON, before its parts have their places: repeated keys are still there.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::tree::Value;

/// `K` is what keys are read into, `V` what the parts of a list and the values of a table are.
pub(super) enum Raw<K, V> {
    Scalar(Value),
    List(Vec<V>),
    Table(Vec<(K, V)>),
}

impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de> for Raw<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor(PhantomData))
    }
}

struct RawVisitor<K, V>(PhantomData<(K, V)>);

impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for RawVisitor<K, V> {
    type Value = Raw<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Raw::Scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Raw::Scalar(Value::Boolean(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Raw::Scalar(Value::Integer(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Raw::Scalar(i64::try_from(value).map_or(Value::Other("a number out of range"), Value::Integer)))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Raw::Scalar(Value::Other("a fraction")))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Raw::Scalar(Value::Text(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let list = std::iter::from_fn(|| items.next_element().transpose());
        list.collect::<Result<_, _>>().map(Raw::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let table = std::iter::from_fn(|| entries.next_entry().transpose());
        table.collect::<Result<_, _>>().map(Raw::Table)
    }
}
