//! JSON as text: changing values and leaving every other byte as it is.
//!
//! Other programs write into our files too. What they wrote comes back with its own spaces, its own order and its own
//! spelling, because nothing that is not changed is ever parsed and printed again.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// An array or object, cut where its values begin and end.
#[derive(Debug)]
pub(super) struct Items<'a> {
    /// The bracket that opens it, and what stands before.
    pub(super) open: &'a str,
    /// Its items, without the commas between them.
    pub(super) items: Vec<Item<'a>>,
    /// What stands after the last value, the closing bracket included.
    pub(super) close: Cow<'a, str>,
}

/// One element of an array or member of an object.
#[derive(Debug, Clone)]
pub(super) struct Item<'a> {
    /// The member's name, unescaped; empty in an array.
    pub(super) name: Cow<'a, str>,
    /// What stands between the comma or bracket and the value: space, and in an object the name and a colon.
    pub(super) before: Cow<'a, str>,
    /// The value.
    pub(super) value: Cow<'a, str>,
    /// Space before the comma that follows.
    after: &'a str,
}

impl<'a> Item<'a> {
    /// An item that no text held yet.
    pub(super) fn new(name: &'a str, before: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, str>>) -> Self {
        Self { name: name.into(), before: before.into(), value: value.into(), after: "" }
    }
}

impl<'a> Items<'a> {
    /// Cuts the array `text`, which may have space around it.
    pub(super) fn of_array(text: &'a str) -> serde_json::Result<Self> {
        let values: Vec<&RawValue> = serde_json::from_str(text)?;
        Ok(Self::cut(text, values.into_iter().map(|value| (Cow::Borrowed(""), value.get()))))
    }

    /// Cuts the object `text`, which may have space around it.
    pub(super) fn of_object(text: &'a str) -> serde_json::Result<Self> {
        let Members(members) = serde_json::from_str(text)?;
        Ok(Self::cut(text, members.into_iter().map(|(name, value)| (name, value.get()))))
    }

    /// The whole text, changed values included.
    pub(super) fn text(&self) -> String {
        let length = |item: &Item<'_>| item.before.len() + item.value.len() + item.after.len() + 1;
        let mut text =
            String::with_capacity(self.open.len() + self.close.len() + self.items.iter().map(length).sum::<usize>());
        text.push_str(self.open);
        for (index, item) in self.items.iter().enumerate() {
            text.push_str(if index == 0 { "" } else { "," });
            text.extend([&item.before, &item.value, item.after]);
        }
        text.push_str(&self.close);
        text
    }

    /// `values` are slices of `text`, in order.
    fn cut(text: &'a str, values: impl Iterator<Item = (Cow<'a, str>, &'a str)>) -> Self {
        let start = text.len() - text.trim_start().len() + 1;
        let (open, mut rest) = text.split_at(start);
        let mut items: Vec<Item<'a>> = Vec::new();
        for (name, value) in values {
            if let Some(last) = items.last_mut() {
                // Only space stands between a value and its comma.
                (last.after, rest) = rest.split_once(',').unwrap_or((rest, ""));
            }
            let (before, from_value) = rest.split_at(value.as_ptr().addr() - rest.as_ptr().addr());
            rest = &from_value[value.len()..];
            items.push(Item { name, before: before.into(), value: value.into(), after: "" });
        }
        Self { open, items, close: rest.into() }
    }
}

/// The fields of `value`, in the order in which they are declared.
pub(super) fn to_object(value: &impl Serialize) -> Result<Map<String, Value>, serde_json::Error> {
    match serde_json::to_value(value)? {
        Value::Object(object) => Ok(object),
        other => Err(serde::ser::Error::custom(format!("{other} is no object"))),
    }
}

/// The members of an object in order, names as they read, values as they are written.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((name, value)) = map.next_entry::<Name<'de>, &RawValue>()? {
            members.push((name.0, value));
        }
        Ok(Members(members))
    }
}

/// A name that is borrowed where it holds no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(items: &Items<'_>) -> Vec<String> {
        items.items.iter().map(|item| item.value.to_string()).collect()
    }

    #[test]
    fn what_is_not_changed_comes_back_byte_for_byte() {
        for text in ["[]", " [ ]\n", "[1]", "[ 1 ,\t{\"a\" : [ , ] }]", "[\r\n 1.50e+0 , \"\\u0061,\" ,null\n]\n"] {
            match Items::of_array(text) {
                Ok(items) => assert_eq!(items.text(), text),
                Err(_) => assert!(text.contains("[ , ]"), "{text}"),
            }
        }
        let object = "{ \"\\u0061\" :1 , \"b\": {\"c\":[2, 3]}\n, \"b\":4 }";
        let items = Items::of_object(object).unwrap();
        assert_eq!(items.text(), object);
        assert_eq!(items.items[0].name, "a");
        assert_eq!(values(&items), ["1", "{\"c\":[2, 3]}", "4"]);
    }

    #[test]
    fn a_changed_value_changes_nothing_else() {
        let mut items = Items::of_array("[ 1 , 2 ,3]").unwrap();
        items.items[1].value = "\"two\"".into();
        items.items.push(Item::new("", " ", "4"));
        assert_eq!(items.text(), "[ 1 , \"two\" ,3, 4]");
    }

    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            any::<i32>().prop_map(|number| format!(" {number}")),
            any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
            Just("null ".to_owned()),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(|list| format!("[{}\n]", list.join(" ,\t"))),
                prop::collection::vec(("[a-z,\\[]{0,3}", inner), 0..4).prop_map(|list| {
                    let members: Vec<String> =
                        list.iter().map(|(name, value)| format!("\"{name}\" :{value}")).collect();
                    format!("{{ {}}}", members.join(" , "))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_array_and_object_comes_back(list in prop::collection::vec(json(), 0..5)) {
            let array = format!("\n[{}]", list.join(","));
            let items = Items::of_array(&array).unwrap();
            prop_assert_eq!(items.text(), array.as_str());
            prop_assert_eq!(values(&items), list.iter().map(|value| value.trim().to_owned()).collect::<Vec<_>>());
            let object = format!("{{\"x\":{array}, \"y\" : 1 }}");
            prop_assert_eq!(Items::of_object(&object).unwrap().text(), object.as_str());
        }
    }
}
