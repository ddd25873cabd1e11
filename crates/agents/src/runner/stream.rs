//! Reading an agent's event stream: line after line, folded into a [`Transcript`].

use std::path::Path;

use lanewright_model::runner::{EventRule, Runner, TextRule};
use lanewright_model::snapshot_rules::ToolCall;
use lanewright_model::{Session, Timestamp, Transcript, Usage};
use regex::Regex;
use serde_json::Value;

use super::stream_item::StreamItem;
use calls::Calls;
use places::{holds, parts, text_at};

pub use counted::Counted;

/// How much of a message is kept, in characters.
const MAX_MESSAGE: usize = 2_000;

/// What these lines from anywhere in a stream say, in lines for people that are not blank.
pub fn readable_lines(runner: &Runner, worktree: Option<&Path>, lines: &[String]) -> Vec<String> {
    let mut stream = Stream::new(runner);
    stream.set_worktree(worktree);
    let mut said: Vec<StreamItem> = lines.iter().flat_map(|line| stream.read(line)).collect();
    said.extend(stream.flush());
    // Part of an event is nothing to read.
    said.retain(
        |said| !matches!(said, StreamItem::Line(line) if line.trim_start().starts_with('{') || line.ends_with('}')),
    );
    said.iter().flat_map(StreamItem::lines).filter(|line| !line.trim().is_empty()).collect()
}

/// Reads the event stream of a runner line by line, and folds it into a [`Transcript`].
#[derive(Debug)]
pub struct Stream<'r> {
    runner: &'r Runner,
    patterns: Vec<(Regex, &'r TextRule)>,
    transcript: Transcript,
    calls: Calls<'r>,
    /// The worktree, as the program may write it: paths in it are shown without.
    worktree: Vec<String>,
    counted: Counted,
    /// Whether the line before was a piece of a message.
    in_pieces: bool,
    /// A message that arrives in pieces, up to the limit; and the part of it that was not returned yet.
    open_message: String,
    unfinished: String,
    /// It says that it failed.
    failed: bool,
    ended: bool,
}

impl<'r> Stream<'r> {
    /// The stream of a program that `runner` describes, from its beginning.
    pub fn new(runner: &'r Runner) -> Self {
        let patterns = runner.text.iter().filter_map(|rule| Some((Regex::new(&rule.pattern).ok()?, rule)));
        Self {
            runner,
            patterns: patterns.collect(),
            transcript: Transcript::default(),
            calls: Calls::new(runner),
            worktree: Vec::new(),
            counted: Counted::default(),
            in_pieces: false,
            open_message: String::new(),
            unfinished: String::new(),
            failed: false,
            ended: false,
        }
    }

    /// Shows paths within `worktree`, where it is known, relative to it.
    pub fn set_worktree(&mut self, worktree: Option<&Path>) {
        let text = worktree.map(Path::to_string_lossy).unwrap_or_default();
        let text = text.trim_end_matches('/');
        if !text.is_empty() {
            // macOS links /tmp and /var to /private, and programs write either.
            self.worktree = vec![format!("/private{text}"), text.to_owned()];
        }
    }

    pub fn knows_worktree(&self) -> bool {
        !self.worktree.is_empty()
    }

    /// Reads one line, and returns what it says.
    pub fn read(&mut self, line: &str) -> Vec<StreamItem> {
        let (mut said, unfinished) = (Vec::new(), std::mem::take(&mut self.in_pieces));
        match serde_json::from_str::<Value>(line) {
            Ok(event) if event.is_object() && !self.runner.event.is_empty() => {
                for rule in self.runner.event.iter().filter(|rule| holds(&rule.when, &event)) {
                    for part in parts(rule, &event).into_iter().filter(|part| holds(&rule.only, part)) {
                        self.apply(rule, part, &mut said);
                    }
                }
            }
            _ => self.read_text(line, &mut said),
        }
        if unfinished && !self.in_pieces {
            said.splice(..0, self.flush());
        }
        said
    }

    /// The transcript of the whole stream. `passed`: the program ended successfully; `before` is the session
    /// that it was to continue.
    pub fn finish(mut self, passed: bool, before: Option<&Session>) -> Transcript {
        let of_session = self.counted.of_session();
        self.transcript.session_usage = of_session;
        let before = before.filter(|before| Some(&before.id) == self.transcript.session.as_ref());
        let counted = before.filter(|_| of_session.is_some()).map(|before| before.usage).unwrap_or_default();
        // A program that was killed may have forgotten what it used before.
        let usage = (self.counted.usage() - counted).at_least(&self.counted.parts());
        self.transcript.usage = self.calls.counted(usage);
        if self.transcript.error.is_empty() {
            self.transcript.error = self.silent_failure(passed).to_owned();
        }
        self.transcript.refusals = self.calls.into_refusals();
        self.transcript
    }

    /// Why the work failed although no line gives a reason.
    fn silent_failure(&self, passed: bool) -> &str {
        let ends = self.runner.event.iter().map(|rule| rule.ends).chain(self.runner.text.iter().map(|rule| rule.ends));
        let must_end = passed && ends.into_iter().any(|ends| ends);
        match self.transcript.warning.as_str() {
            _ if self.failed => "it says that it failed, and not why",
            "" if must_end && !self.ended => "its output broke off before the end",
            warning if must_end => warning,
            _ => "",
        }
    }

    fn apply(&mut self, rule: &EventRule, part: &Value, said: &mut Vec<StreamItem>) {
        if let Some(session) = text_at(part, rule.session.as_ref()) {
            self.transcript.session =
                Some(session).filter(|session| is_session(session)).or(self.transcript.session.take());
        }
        if let Some(places) = &rule.tool_call {
            let tool = text_at(part, Some(&places.name)).unwrap_or_default();
            let input = places.input.as_ref().and_then(|place| part.pointer(place)).cloned().unwrap_or_default();
            let call = ToolCall { tool, input: self.relative_in(input) };
            self.calls.begin(text_at(part, places.id.as_ref()), &call);
            self.transcript.warning.clear();
            said.push(StreamItem::Call(call));
        }
        if let Some(places) = &rule.tool_result {
            let worktree = &self.worktree;
            said.extend(self.calls.end(places, part, |text| relative(text, worktree)));
        }
        if let Some(id) = text_at(part, rule.tool_refused.as_ref()) {
            said.extend(self.calls.refuse(&id));
        }
        match text_at(part, rule.message.as_ref()) {
            Some(text) if rule.pieces => self.take_piece(&text, said),
            Some(text) => self.take_message(text, said),
            None => {}
        }
        if let Some(text) = text_at(part, rule.warning.as_ref()).filter(|text| !text.trim().is_empty()) {
            self.transcript.warning = shortened(&text);
            said.push(StreamItem::Warning(text));
        }
        if rule.outage.is_some() && holds(&rule.error_when, part) {
            self.transcript.outage = rule.outage;
        }
        if rule.limit_over {
            self.transcript.limited_until = None;
        }
        if let Some(seconds) = rule.limited_until.as_ref().and_then(|place| part.pointer(place)?.as_i64()) {
            self.transcript.limited_until = Some(Timestamp::from_unix_millis(seconds.saturating_mul(1000)));
        }
        if rule.error.is_some() && holds(&rule.error_when, part) {
            self.failed = true;
            if let Some(error) = text_at(part, rule.error.as_ref()).filter(|text| !text.trim().is_empty()) {
                self.transcript.error = shortened(&error);
                said.push(StreamItem::Error(error));
            }
        }
        self.counted.add(rule, part);
        self.note_end(rule.ends);
    }

    fn take_message(&mut self, text: String, said: &mut Vec<StreamItem>) {
        if !text.trim().is_empty() {
            self.transcript.message = shortened(&text);
            self.transcript.warning.clear();
            said.push(StreamItem::Message(text));
        }
    }

    /// Whole lines are returned at once, the rest at the end of the message.
    fn take_piece(&mut self, text: &str, said: &mut Vec<StreamItem>) {
        self.in_pieces = true;
        self.unfinished.push_str(text);
        let room = (MAX_MESSAGE + 1).saturating_sub(self.open_message.chars().count());
        self.open_message.extend(text.chars().take(room));
        self.transcript.message = shortened(&self.open_message);
        self.transcript.warning.clear();
        if let Some(end) = self.unfinished.rfind('\n') {
            let rest = self.unfinished.split_off(end + 1);
            said.push(StreamItem::Message(std::mem::replace(&mut self.unfinished, rest)));
        }
    }

    /// The rest of a message that has come to its end.
    fn flush(&mut self) -> Option<StreamItem> {
        self.open_message.clear();
        Some(std::mem::take(&mut self.unfinished)).filter(|rest| !rest.trim().is_empty()).map(StreamItem::Message)
    }

    fn note_end(&mut self, ends: bool) {
        if ends {
            self.ended = true;
            self.transcript.warning.clear();
        }
    }

    fn read_text(&mut self, line: &str, said: &mut Vec<StreamItem>) {
        let (mut found, mut failed) = (Vec::new(), None);
        for (pattern, rule) in &self.patterns {
            let Some(groups) = pattern.captures(line) else { continue };
            let group = |name: &str| groups.name(name).map(|group| group.as_str());
            let number = |name: &str| group(name).and_then(rounded).unwrap_or_default();
            let counted = if rule.input_includes_cache_read { number("cache_read_tokens") } else { 0 };
            let usage = Usage {
                input_tokens: number("input_tokens").saturating_sub(counted),
                output_tokens: number("output_tokens"),
                cache_read_tokens: number("cache_read_tokens"),
                cache_write_tokens: number("cache_write_tokens"),
                cost: group("cost").and_then(|cost| cost.parse().ok()),
                ..Usage::default()
            };
            found.push((usage, *rule));
            if let Some(warning) = group("warning") {
                self.transcript.warning = shortened(warning);
            }
            failed = group("failed").map(str::to_owned).or(failed);
            if let Some(error) = group("error") {
                self.transcript.error = shortened(error);
            }
            if let Some(session) = group("session").filter(|session| is_session(session)) {
                self.transcript.session = Some(session.to_owned());
            }
        }
        for (usage, rule) in found {
            self.counted.count(usage, None, rule.totals);
            self.note_end(rule.ends);
        }
        said.push(match failed {
            Some(text) => self.calls.fail_unseen(&relative(&text, &self.worktree)),
            None => StreamItem::Line(line.to_owned()),
        });
    }

    fn relative_in(&self, mut input: Value) -> Value {
        fn each(value: &mut Value, worktree: &[String]) {
            match value {
                Value::String(text) => *text = relative(text, worktree),
                Value::Array(values) => values.iter_mut().for_each(|value| each(value, worktree)),
                Value::Object(fields) => fields.values_mut().for_each(|value| each(value, worktree)),
                _ => {}
            }
        }
        if !self.worktree.is_empty() {
            each(&mut input, &self.worktree);
        }
        input
    }
}

/// `text` with paths relative to `worktree`.
fn relative(text: &str, worktree: &[String]) -> String {
    worktree.iter().fold(text.to_owned(), |text, place| text.replace(&format!("{place}/"), ""))
}

/// `1,234`, `2.3k`, `1.1M`.
fn rounded(text: &str) -> Option<u64> {
    let text = text.replace(',', "");
    let (number, unit) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1e3),
        None => text.strip_suffix(['m', 'M']).map_or((text.as_str(), 1.0), |number| (number, 1e6)),
    };
    let count = (number.parse::<f64>().ok()? * unit).round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in the range")]
    (0.0..1e15).contains(&count).then_some(count as u64)
}

/// What may be put into a command again. An agent's words are data (SPEC §13): nothing that looks like a flag.
fn is_session(text: &str) -> bool {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_.:/".contains(character);
    (1..=200).contains(&text.len()) && !text.starts_with('-') && text.chars().all(plain)
}

fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

mod calls;
mod counted;
mod places;
#[cfg(test)]
mod tests;
