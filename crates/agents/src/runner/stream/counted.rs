//! What the events of a stream say of the tokens and the money that it used.

use std::collections::HashSet;

use lanewright_model::runner::{EventRule, Runner, Totals};
use lanewright_model::{Dollars, Usage};
use semver::Version;
use serde_json::Value;

use super::places::{holds, parts, text_at};

/// The usage so far.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    /// What events of parts of the stream add up to, and what the last event of the whole of it says.
    parts: Usage,
    whole: Option<Usage>,
    /// What of that is of the whole session.
    of_session: Option<Usage>,
    version: Option<Version>,
    /// What was counted, for values that are reported several times.
    known: HashSet<String>,
}

impl Counted {
    /// Reads one line of the stream of `runner`, and only what it says of usage.
    pub fn read(&mut self, runner: &Runner, line: &str) {
        let Some(event) = serde_json::from_str::<Value>(line).ok().filter(Value::is_object) else { return };
        for rule in runner.event.iter().filter(|rule| holds(&rule.when, &event)) {
            for part in parts(rule, &event).into_iter().filter(|part| holds(&rule.only, part)) {
                self.add(rule, part);
            }
        }
    }

    /// The usage so far; of a program that tells it at the end only, nothing before.
    pub fn usage(&self) -> Usage {
        self.whole.unwrap_or(self.parts)
    }

    /// What parts of the stream add up to.
    pub(super) fn parts(&self) -> Usage {
        self.parts
    }

    pub(super) fn of_session(&self) -> Option<Usage> {
        self.of_session
    }

    pub(super) fn add(&mut self, rule: &EventRule, part: &Value) {
        if let Some(version) = text_at(part, rule.version.as_ref()) {
            self.version = Version::parse(&version).ok();
        }
        let id = text_at(part, rule.once_per.as_ref());
        if id.is_none_or(|id| self.known.insert(id)) {
            let usage = usage_in(rule, part);
            let of_session = Some(usage.only(&rule.session_totals)).filter(|_| self.has_session_totals(rule));
            self.count(usage, of_session, rule.totals);
        }
    }

    pub(super) fn count(&mut self, usage: Usage, of_session: Option<Usage>, totals: Totals) {
        match totals {
            _ if usage.is_empty() => {}
            Totals::Part => self.parts += usage,
            Totals::Stream => (self.whole, self.of_session) = (Some(usage), of_session),
            Totals::Session => (self.whole, self.of_session) = (Some(usage), Some(usage)),
        }
    }

    /// Whether some of the rule's numbers are of the session in this version of the program, which is new if it is not known.
    fn has_session_totals(&self, rule: &EventRule) -> bool {
        let since = rule.session_totals_since.as_deref().and_then(|since| Version::parse(since).ok());
        let is_old = since.zip(self.version.as_ref()).is_some_and(|(since, version)| *version < since);
        !rule.session_totals.is_empty() && !is_old
    }
}

fn usage_in(rule: &EventRule, part: &Value) -> Usage {
    let number = |place: &Option<String>| place.as_ref().map_or(0, |place| sum_at(part, place));
    let cached = number(&rule.cache_read_tokens);
    let input = number(&rule.input_tokens);
    Usage {
        input_tokens: if rule.input_includes_cache_read { input.saturating_sub(cached) } else { input },
        output_tokens: number(&rule.output_tokens),
        cache_read_tokens: cached,
        cache_write_tokens: number(&rule.cache_write_tokens),
        cost: rule.cost.as_ref().and_then(|place| part.pointer(place)?.as_f64()).and_then(Dollars::new),
        ..Usage::default()
    }
}

/// The number at `place`, or the sum of the numbers there for each member of what is before `/*`.
fn sum_at(value: &Value, place: &str) -> u64 {
    let Some((before, behind)) = place.split_once("/*") else {
        return value.pointer(place).and_then(Value::as_u64).unwrap_or_default();
    };
    let members = value.pointer(before).and_then(Value::as_object).into_iter().flat_map(|members| members.values());
    members.map(|member| sum_at(member, behind)).fold(0, u64::saturating_add)
}
