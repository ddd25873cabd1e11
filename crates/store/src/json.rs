//! JSON objects of which some members change: the others keep their order and the text of their values, so numbers stay
//! as they are written.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// An object as it is written, but for the white space between its members.
#[derive(Debug)]
pub struct Object<V = Box<RawValue>> {
    /// Names and values, in their order; a name may be repeated.
    pub members: Vec<(String, V)>,
}

impl<V> Default for Object<V> {
    fn default() -> Self {
        Self { members: Vec::new() }
    }
}

impl Object {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.members.iter().find(|(known, _)| known == name).map(|(_, value)| value.get())
    }

    /// Replaces the value of the member `name` by the JSON `text`, or appends that member.
    pub fn set(&mut self, name: &str, text: String) -> serde_json::Result<()> {
        let value = RawValue::from_string(text)?;
        match self.members.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.members.push((name.to_owned(), value)),
        }
        Ok(())
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.members.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Object<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members(PhantomData))
    }
}

struct Members<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for Members<V> {
    type Value = Object<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<V>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Object { members })
    }
}

pub(super) fn to_object(value: &impl Serialize) -> Result<Map<String, Value>, serde_json::Error> {
    match serde_json::to_value(value)? {
        Value::Object(object) => Ok(object),
        other => Err(serde::ser::Error::custom(format!("{other} is no object"))),
    }
}
