//! How the output of a program is read: the rules of a runner for JSON lines and for text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::outage::OutageKind;

/// What a JSON line says for which all of `when` holds. Places in it are JSON pointers (RFC 6901).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EventRule {
    pub when: BTreeMap<String, Expected>,
    /// For each element of the array there; the places below are seen from the element.
    pub each: Option<String>,
    /// Of those only where all of this holds.
    pub only: BTreeMap<String, Expected>,
    /// The program's session.
    pub session: Option<String>,
    /// The program's version.
    pub version: Option<String>,
    /// A tool is called.
    pub tool_call: Option<ToolCallPlaces>,
    /// What came of a tool call.
    pub tool_result: Option<ToolResultPlaces>,
    /// The id of a tool call whose result failed, which was in fact refused.
    pub tool_refused: Option<String>,
    /// Something that the agent says.
    pub message: Option<String>,
    /// Such lines follow each other and hold one text together.
    pub pieces: bool,
    /// That something outside is out.
    pub outage: Option<OutageKind>,
    /// Until when the limit of its account is used up, in seconds since the epoch.
    pub limited_until: Option<String>,
    /// It is not used up any more.
    pub limit_over: bool,
    /// Trouble that the program deals with itself: a request that it tries again, for example.
    pub warning: Option<String>,
    /// What tokens and cost here are of.
    pub totals: Totals,
    /// Which of them are of the program's whole session although the others are of the stream: `cost`, for example …
    pub session_totals: Vec<String>,
    /// … from this version of the program on; absent: in all.
    pub session_totals_since: Option<String>,
    /// Lines with the same value there repeat the same tokens and cost, which count once.
    pub once_per: Option<String>,
    /// As the others, the sum for all members of an object where the place has a `*`: `/of_models/*/input`.
    pub input_tokens: Option<String>,
    /// Whether `input_tokens` counts those that came out of the cache.
    pub input_includes_cache_read: bool,
    pub output_tokens: Option<String>,
    /// Tokens out of the cache.
    pub cache_read_tokens: Option<String>,
    /// Tokens into the cache.
    pub cache_write_tokens: Option<String>,
    pub cost: Option<String>,
    /// The stream is complete: where a rule says so, a stream without such a line is none of success.
    pub ends: bool,
    /// Why the work failed …
    pub error: Option<String>,
    /// … where all of this holds.
    pub error_when: BTreeMap<String, Expected>,
}

/// What numbers in a line are of. Written as `false`, `true` or `"session"`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Totals {
    /// Of a part: parts are added up.
    #[default]
    Part,
    /// Of the whole stream; the last such line counts.
    Stream,
    /// Of the program's whole session, including the attempts that it continues.
    Session,
}

impl TryFrom<Value> for Totals {
    type Error = &'static str;
    fn try_from(value: Value) -> Result<Self, Self::Error> {
        match value {
            Value::Bool(false) => Ok(Self::Part),
            Value::Bool(true) => Ok(Self::Stream),
            Value::String(word) if word == "session" => Ok(Self::Session),
            _ => Err("`totals` is true, false or \"session\""),
        }
    }
}

impl From<Totals> for Value {
    fn from(totals: Totals) -> Self {
        match totals {
            Totals::Part => false.into(),
            Totals::Stream => true.into(),
            Totals::Session => "session".into(),
        }
    }
}

/// Where to find a tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolCallPlaces {
    pub name: String,
    pub input: Option<String>,
    /// What its result names it by.
    pub id: Option<String>,
}

/// Where to find what came of a tool call: it failed where all of `failed_when` holds or its exit code is not 0, and was
/// refused where its text then matches one of the runner's `refusals`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolResultPlaces {
    /// The call; without it, the call of the same event.
    pub id: Option<String>,
    /// What the tool, or the program in its place, answered: a text, or a list of blocks with a `text` each.
    pub text: Option<String>,
    pub exit_code: Option<String>,
    pub failed_when: BTreeMap<String, Expected>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Expected {
    Any(Vec<Value>),
    One(Value),
}

impl Expected {
    /// Whether the value there is this one; an absent value equals `null`.
    pub fn is_met_by(&self, found: Option<&Value>) -> bool {
        let found = found.unwrap_or(&Value::Null);
        match self {
            Self::One(value) => value == found,
            Self::Any(values) => values.contains(found),
        }
    }
}

/// What a line of text says: a regular expression whose groups are named as the fields of an [`EventRule`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextRule {
    pub pattern: String,
    /// What tokens and cost here are of.
    #[serde(default)]
    pub totals: Totals,
    /// As for events.
    #[serde(default)]
    pub input_includes_cache_read: bool,
    /// As for events.
    #[serde(default)]
    pub ends: bool,
}

/// Regular expressions, in capitals or not, on lines that tell of something outside that is out. A group `reason` is the part
/// of the line that is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutagePatterns {
    /// The service takes no more requests for now.
    pub quota: Vec<String>,
    /// The service cannot be reached.
    pub network: Vec<String>,
    /// No attempt comes through until a person changes something: an empty account, for example.
    pub refused: Vec<String>,
    /// The same, because of the key.
    pub wrong_key: Vec<String>,
    /// The same, because of the model.
    pub wrong_model: Vec<String>,
    /// The same, because the program does not know an argument of `command`; only of a program that has done nothing yet.
    pub wrong_version: Vec<String>,
    /// How long to wait, in a group `wait` (`20`: seconds, `3 days 2 hours`), or until when, in a group `until`: a time of day, with
    /// or without a date and a time zone, RFC 3339, or seconds since 1970.
    pub ends: Vec<String>,
}

impl OutagePatterns {
    /// All expressions.
    pub fn all(&self) -> impl Iterator<Item = &String> {
        let Self { quota, network, refused, wrong_key, wrong_model, wrong_version, ends } = self;
        [quota, network, refused, wrong_key, wrong_model, wrong_version, ends].into_iter().flatten()
    }
}
