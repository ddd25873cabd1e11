//! What an agent's event stream says of its work: what it used, where it can be gone on with, and how it ended.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::outage::OutageKind;
use super::time::Timestamp;

/// The summary of the event stream of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Transcript {
    /// The program's session, which it can continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What the whole session used, if the program reports that instead of what the attempt used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_usage: Option<Usage>,
    /// What the attempt used.
    #[serde(flatten)]
    pub usage: Usage,
    /// The agent's last message, at most 2,000 characters of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What was unavailable, if a line reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outage: Option<OutageKind>,
    /// Until when the limit of its account is used up, if a line reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_until: Option<Timestamp>,
    /// An unresolved problem of the program when it ended.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub warning: String,
    /// Why the work failed according to the stream, or what is missing in it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// The tool calls that were refused since it wrote a file for the last time; at most three, the newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<Refusal>,
}

/// A tool call that was not allowed: by the permissions of the program, by a hook of the user, or by a sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Refusal {
    /// The tool and what it was called with, paths relative to the worktree: `[Write] src/a.rs`; empty where that is not
    /// reported.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub call: String,
    /// The reason in the words of the program or of the hook.
    pub reason: String,
}

impl fmt::Display for Refusal {
    /// `[Write] src/a.rs: Policy: no writing`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.call.is_empty() { f.write_str(&self.reason) } else { write!(f, "{}: {}", self.call, self.reason) }
    }
}

impl Transcript {
    /// `refused: [Write] src/a.rs: Policy: no writing; …`; empty where nothing was refused after the last written file.
    pub fn refused(&self) -> String {
        let refusals: Vec<String> = self.refusals.iter().map(ToString::to_string).collect();
        if refusals.is_empty() { String::new() } else { format!("refused: {}", refusals.join("; ")) }
    }

    /// Whether the program ended before it did anything.
    pub fn shows_no_work(&self) -> bool {
        self.session.is_none() && self.message.is_empty() && self.usage == Usage::default()
    }

    /// The session of a program in `worktree` that the next attempt can continue. One that continued `before` and broke off
    /// before it told what the session used has used what was counted.
    pub fn continuable(&self, before: Option<&Session>, worktree: &Path) -> Option<Session> {
        let id = self.session.clone()?;
        let known = before.filter(|before| before.id == id).map(|before| before.usage).unwrap_or_default();
        let counted = known + self.usage.only(&Usage::REPORTED.map(str::to_owned));
        let usage = self.session_usage.unwrap_or(counted);
        Some(Session { id, usage, worktree: worktree.to_owned() })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub id: String,
    /// What was counted of it so far.
    pub usage: Usage,
    /// Where the program ran.
    pub worktree: PathBuf,
}

/// What agents used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Usage {
    /// How often they used tools.
    pub tool_calls: u64,
    /// How many of these calls were refused; absent: none.
    #[serde(skip_serializing_if = "is_zero")]
    pub refused_calls: u64,
    /// How many of these calls failed, without those that were refused; absent: none.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed_calls: u64,
    /// Tokens that the model read, without those from its cache.
    pub input_tokens: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
    /// Tokens that were read from the model's cache.
    pub cache_read_tokens: u64,
    /// Tokens that were written to the model's cache.
    pub cache_write_tokens: u64,
    /// The cost in US dollars, if the program reports it.
    #[serde(rename = "cost_usd", skip_serializing_if = "Option::is_none")]
    pub cost: Option<Dollars>,
    /// Tokens of programs that report no cost, which is of the others; absent: none, or there is no cost.
    #[serde(skip_serializing_if = "is_zero")]
    pub unpriced_tokens: u64,
}

// What serde asks gets a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    fn counted_with(self, other: Self, count: fn(u64, u64) -> u64) -> Self {
        Self {
            tool_calls: count(self.tool_calls, other.tool_calls),
            refused_calls: count(self.refused_calls, other.refused_calls),
            failed_calls: count(self.failed_calls, other.failed_calls),
            input_tokens: count(self.input_tokens, other.input_tokens),
            output_tokens: count(self.output_tokens, other.output_tokens),
            cache_read_tokens: count(self.cache_read_tokens, other.cache_read_tokens),
            cache_write_tokens: count(self.cache_write_tokens, other.cache_write_tokens),
            cost: None,
            unpriced_tokens: 0,
        }
    }

    /// Of which numbers that programs report [`Usage::only`] may speak.
    pub const REPORTED: [&str; 5] =
        ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost"];

    /// These numbers without those that are not in `names`.
    #[must_use]
    pub fn only(self, names: &[String]) -> Self {
        let is_named = |name: &str| names.iter().any(|named| named == name);
        let count = |name: &str, count: u64| if is_named(name) { count } else { 0 };
        Self {
            input_tokens: count("input_tokens", self.input_tokens),
            output_tokens: count("output_tokens", self.output_tokens),
            cache_read_tokens: count("cache_read_tokens", self.cache_read_tokens),
            cache_write_tokens: count("cache_write_tokens", self.cache_write_tokens),
            cost: self.cost.filter(|_| is_named("cost")),
            ..Self::default()
        }
    }

    /// The same with no fewer tokens than `counted`.
    #[must_use]
    pub fn at_least(self, counted: &Self) -> Self {
        Self { cost: self.cost, unpriced_tokens: self.unpriced_tokens, ..self.counted_with(*counted, u64::max) }
    }

    /// Tokens whose cost is not known.
    pub fn without_price(&self) -> u64 {
        if self.cost.is_none() { self.tokens() } else { self.unpriced_tokens }
    }

    /// All tokens, those of the cache included.
    pub fn tokens(&self) -> u64 {
        let written = self.output_tokens.saturating_add(self.cache_write_tokens);
        self.input_tokens.saturating_add(self.cache_read_tokens).saturating_add(written)
    }

    /// `34.5k tokens` and `$0.12`, where they are known and not zero; `$0.12 + 12.8k tokens (no price)` where the cost is not
    /// that of all.
    pub fn spent(&self) -> Vec<String> {
        let tokens = Some(self.tokens()).filter(|tokens| *tokens > 0).map(in_tokens);
        let cost = self.cost.filter(|cost| *cost > Dollars::default());
        tokens.into_iter().chain(cost.and(self.price())).collect()
    }

    /// `$0.12`, or `$0.12 + 12.8k tokens (no price)`; `None`: no cost is reported.
    pub fn price(&self) -> Option<String> {
        let cost = self.cost?;
        Some(match self.unpriced_tokens {
            0 => cost.to_string(),
            unpriced => format!("{cost} + {} (no price)", in_tokens(unpriced)),
        })
    }

    /// `12 tool calls (2 refused, 1 failed)`
    pub fn calls(&self) -> Option<String> {
        let calls = usize::try_from(self.tool_calls).unwrap_or(usize::MAX);
        let in_vain = [(self.refused_calls, "refused"), (self.failed_calls, "failed")];
        let in_vain = in_vain.into_iter().filter(|(count, _)| *count > 0);
        let in_vain = in_vain.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ");
        let in_vain = if in_vain.is_empty() { in_vain } else { format!(" ({in_vain})") };
        (calls > 0).then(|| format!("{}{in_vain}", super::text::counted(calls, "tool call")))
    }

    pub fn is_empty(&self) -> bool {
        Self { cost: None, ..*self } == Self::default() && self.cost.is_none_or(|cost| cost == Dollars::default())
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let cost = match (self.cost, other.cost) {
            (Some(one), Some(two)) => Some(Dollars(one.0.saturating_add(two.0))),
            (one, two) => one.or(two),
        };
        let unpriced = if cost.is_some() { self.without_price().saturating_add(other.without_price()) } else { 0 };
        Self { cost, unpriced_tokens: unpriced, ..self.counted_with(other, u64::saturating_add) }
    }
}

impl Sub for Usage {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        let before = other.cost.unwrap_or_default();
        let cost = self.cost.map(|cost| Dollars(cost.0.saturating_sub(before.0)));
        Self { cost, ..self.counted_with(other, u64::saturating_sub) }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(usages: I) -> Self {
        usages.fold(Self::default(), Add::add)
    }
}

impl fmt::Display for Usage {
    /// `12 tool calls (2 refused, 1 failed), 34.5k tokens, $0.12`, without what is zero or unknown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.calls().into_iter().chain(self.spent()).collect::<Vec<_>>().join(", "))
    }
}

fn in_tokens(count: u64) -> String {
    format!("{} tokens", short_count(count))
}

/// `950`, `34.5k`, `1.2M`.
fn short_count(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// What agents may use; absent: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Budget {
    /// The highest cost in US dollars.
    #[serde(rename = "max_cost_usd", skip_serializing_if = "Option::is_none")]
    pub cost: Option<Dollars>,
    /// The most tokens, those of the cache included.
    #[serde(rename = "max_tokens", skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

impl Budget {
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// `$1.50`, `10.0k tokens`: each of the limits.
    pub fn in_words(&self) -> Vec<String> {
        self.cost.map(|cost| cost.to_string()).into_iter().chain(self.tokens.map(in_tokens)).collect()
    }

    /// Why nothing more may be begun after `used`; `None`: something may.
    pub fn exhausted_by(&self, used: &Usage) -> Option<String> {
        let cost = self.cost.zip(used.cost).filter(|(limit, cost)| cost >= limit);
        if let Some((limit, cost)) = cost {
            return Some(format!("budget reached: {cost} of {limit}"));
        }
        let limit = self.tokens.filter(|limit| used.tokens() >= *limit)?;
        Some(format!("budget reached: {} of {} tokens", used.tokens(), limit))
    }

    /// An equal part of what is left after `used`, rounded up.
    #[must_use]
    pub fn part_left(&self, used: &Usage, parts: usize) -> Self {
        let parts = u64::try_from(parts).unwrap_or(u64::MAX).max(1);
        let part = |limit: u64, used: u64| limit.saturating_sub(used).div_ceil(parts);
        let cost = self.cost.map(|limit| Dollars(part(limit.0, used.cost.unwrap_or_default().0)));
        Self { cost, tokens: self.tokens.map(|limit| part(limit, used.tokens())) }
    }

    /// The smaller of both limits.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let least = |one: Option<u64>, two: Option<u64>| one.into_iter().chain(two).min();
        let cost = self.cost.into_iter().chain(other.cost).min();
        Self { cost, tokens: least(self.tokens, other.tokens) }
    }

    /// The budget of which this much is left after `used`.
    #[must_use]
    pub fn on_top_of(&self, used: &Usage) -> Self {
        let cost = self.cost.map(|left| Dollars(left.0.saturating_add(used.cost.unwrap_or_default().0)));
        Self { cost, tokens: self.tokens.map(|left| left.saturating_add(used.tokens())) }
    }

    /// The flags with which a resume may use as much again; empty where no limit is reached.
    pub fn flags_for_more(&self, used: &Usage) -> Vec<String> {
        let mut flags = Vec::new();
        if let Some((limit, cost)) = self.cost.zip(used.cost).filter(|(limit, cost)| cost >= limit) {
            let millionths = cost.0.saturating_add(limit.0.max(Dollars::LEAST_RAISE));
            let cents = millionths.div_ceil(10_000);
            flags.extend(["--max-cost".to_owned(), format!("{}.{:02}", cents / 100, cents % 100)]);
        }
        if let Some(limit) = self.tokens.filter(|limit| used.tokens() >= *limit) {
            flags.extend(["--max-tokens".to_owned(), used.tokens().saturating_add(limit.max(1)).to_string()]);
        }
        flags
    }
}

/// An amount of US dollars.
// In millionths, so that sums are exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "f64", extend("minimum" = 0)))]
pub struct Dollars(u64);

impl Dollars {
    /// A cent, in millionths.
    const LEAST_RAISE: u64 = 10_000;

    /// Rounds to a millionth; `None` for what is no amount.
    pub fn new(dollars: f64) -> Option<Self> {
        let millionths = (dollars * 1e6).round();
        // Far below where a float could not hold the sum any more.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in the range")]
        (0.0..1e15).contains(&millionths).then_some(Self(millionths as u64))
    }

    /// As a number of dollars.
    #[expect(clippy::cast_precision_loss, reason = "amounts stay below 1e15 millionths")]
    pub fn value(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl fmt::Display for Dollars {
    /// `$1.50`; small amounts in more detail: `$0.0042`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = if self.0 == 0 || self.0 >= 100_000 { 2 } else { 4 };
        write!(f, "${:.places$}", self.value())
    }
}

impl FromStr for Dollars {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.trim().trim_start_matches('$').parse().ok();
        number.and_then(Self::new).ok_or_else(|| "an amount of US dollars, such as 2.50, is needed".to_owned())
    }
}

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.value())
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        Self::new(value).ok_or_else(|| serde::de::Error::custom("an amount of US dollars is needed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_exact_and_know_what_is_unknown() {
        let tenth = Usage { cost: Dollars::new(0.1), input_tokens: 1, ..Usage::default() };
        let sum: Usage = std::iter::repeat_n(tenth, 30).chain([Usage { tool_calls: 2, ..Usage::default() }]).sum();
        assert_eq!((sum.cost, sum.input_tokens, sum.tool_calls), (Dollars::new(3.0), 30, 2));
        assert_eq!(Usage::default().cost, None);
        let much = Usage { input_tokens: u64::MAX, output_tokens: 5, ..Usage::default() };
        assert_eq!((much + much).tokens(), u64::MAX);
    }

    #[test]
    fn usage_is_displayed_on_one_line() {
        let usage = Usage {
            tool_calls: 1,
            input_tokens: 34_000,
            output_tokens: 560,
            cost: Dollars::new(0.12345),
            ..Usage::default()
        };
        assert_eq!(usage.to_string(), "1 tool call, 34.5k tokens, $0.12");
        assert_eq!(Usage { input_tokens: 1_250_000, ..Usage::default() }.to_string(), "1.2M tokens");
        assert_eq!(Usage { cost: Dollars::new(0.0042), ..Usage::default() }.to_string(), "$0.0042");
        assert_eq!(Usage::default().to_string(), "");
    }

    #[test]
    fn a_budget_is_exhausted_by_what_reaches_it() {
        let used = Usage { input_tokens: 90, cache_read_tokens: 10, cost: Dollars::new(2.0), ..Usage::default() };
        let exhausted =
            |cost: Option<f64>, tokens| Budget { cost: cost.and_then(Dollars::new), tokens }.exhausted_by(&used);
        assert_eq!(exhausted(Some(2.0), None).unwrap(), "budget reached: $2.00 of $2.00");
        assert_eq!(exhausted(None, Some(100)).unwrap(), "budget reached: 100 of 100 tokens");
        assert_eq!(exhausted(Some(2.01), Some(101)), None);
        // Without a reported cost, nothing is known to be used up.
        assert_eq!(Budget { cost: Dollars::new(0.0), tokens: None }.exhausted_by(&Usage::default()), None);
        assert!(Budget::default().is_unlimited() && Budget::default().exhausted_by(&used).is_none());
    }

    #[test]
    fn budget_left_is_split_into_equal_parts() {
        let used = Usage { input_tokens: 90, cost: Dollars::new(2.0), ..Usage::default() };
        let budget = Budget { cost: Dollars::new(5.0), tokens: Some(91) };
        let part = budget.part_left(&used, 3);
        assert_eq!(part, Budget { cost: Dollars::new(1.0), tokens: Some(1) });
        assert_eq!(part.on_top_of(&used), Budget { cost: Dollars::new(3.0), tokens: Some(91) });
        assert_eq!(part.on_top_of(&used).exhausted_by(&used), None);
        assert_eq!(budget.part_left(&(used + used), 0).tokens, Some(0));
        assert!(Budget::default().part_left(&used, 2).on_top_of(&used).is_unlimited());
    }

    #[test]
    fn a_session_that_tells_nothing_has_used_what_it_had() {
        let used = |tokens| Usage { input_tokens: tokens, ..Usage::default() };
        let before = Session { id: "s".into(), usage: used(1000), worktree: "/w".into() };
        let transcript =
            |id: &str, usage| Transcript { session: Some(id.into()), session_usage: usage, ..Transcript::default() };
        assert_eq!(transcript("s", None).continuable(Some(&before), Path::new("/w")), Some(before.clone()));
        assert_eq!(
            transcript("s", Some(used(1500))).continuable(Some(&before), Path::new("/w")).unwrap().usage,
            used(1500)
        );
        assert_eq!(transcript("t", None).continuable(Some(&before), Path::new("/w")).unwrap().usage, Usage::default());
        assert_eq!(Transcript::default().continuable(Some(&before), Path::new("/w")), None);
        let stopped = Transcript { usage: Usage { tool_calls: 3, ..used(70) }, ..transcript("s", None) };
        assert_eq!(stopped.continuable(Some(&before), Path::new("/w")).unwrap().usage, used(1070));
    }

    #[test]
    fn amounts_are_numbers_of_dollars() {
        let usage: Usage = serde_json::from_str(r#"{"cost_usd": 1.5, "output_tokens": 7}"#).unwrap();
        assert_eq!((usage.cost, usage.output_tokens), (Dollars::new(1.5), 7));
        assert!(serde_json::to_string(&usage).unwrap().contains("\"cost_usd\":1.5"));
        for wrong in ["-1", "many", "", "inf", "NaN", "1e300"] {
            assert!(wrong.parse::<Dollars>().is_err(), "{wrong}");
        }
        assert_eq!("$2.50".parse(), Ok(Dollars::new(2.5).unwrap()));
    }
}
