//! The tool calls of a stream, and what came of them.

use std::collections::HashMap;

use lanewright_model::runner::{Runner, ToolResultPlaces};
use lanewright_model::snapshot_rules::ToolCall;
use lanewright_model::{Refusal, Usage};
use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::{holds, text_at};
use crate::runner::stream_item::{StreamItem, shown_call};

/// How many refusals are kept.
const MOST_REFUSALS: usize = 3;

/// How much of the result of a call that failed is kept, in characters.
const MAX_REASON: usize = 300;

/// A call whose result was not read yet.
#[derive(Debug, Clone, Default)]
struct OpenCall {
    tool: String,
    /// As it is shown.
    shown: String,
}

/// The tool calls of one stream.
#[derive(Debug)]
pub(super) struct Calls<'r> {
    runner: &'r Runner,
    patterns: Vec<Regex>,
    open: HashMap<String, OpenCall>,
    last: OpenCall,
    made: u64,
    refused: u64,
    failed: u64,
    /// Calls that failed, by their ids, each with how many files were written before it.
    failures: HashMap<String, (u64, Refusal)>,
    written: u64,
    /// Since a file was written for the last time.
    refusals: Vec<Refusal>,
}

impl<'r> Calls<'r> {
    pub(super) fn new(runner: &'r Runner) -> Self {
        let pattern = |pattern: &String| RegexBuilder::new(pattern).case_insensitive(true).build().ok();
        Self {
            runner,
            patterns: runner.refusals.iter().filter_map(pattern).collect(),
            open: HashMap::new(),
            last: OpenCall::default(),
            made: 0,
            refused: 0,
            failed: 0,
            failures: HashMap::new(),
            written: 0,
            refusals: Vec::new(),
        }
    }

    pub(super) fn begin(&mut self, id: Option<String>, call: &ToolCall) {
        self.made += 1;
        self.last = OpenCall { tool: call.tool.clone(), shown: shown_call(call) };
        if let Some(id) = id {
            self.open.insert(id, self.last.clone());
        }
    }

    /// Reads the result of a call; the item is for one that was refused or failed. `clean`: how its text is shown.
    pub(super) fn end(
        &mut self,
        places: &ToolResultPlaces,
        part: &Value,
        clean: impl Fn(&str) -> String,
    ) -> Option<StreamItem> {
        let id = text_at(part, places.id.as_ref());
        let call = match &id {
            // Of a stream that is read from somewhere in it, the call is not known.
            Some(id) => self.open.remove(id).unwrap_or_default(),
            None => self.last.clone(),
        };
        let exit_code = places.exit_code.as_ref().and_then(|place| part.pointer(place)).and_then(Value::as_i64);
        let exit_code = exit_code.filter(|code| *code != 0);
        let failed = !places.failed_when.is_empty() && holds(&places.failed_when, part);
        if !failed && exit_code.is_none() {
            if self.runner.write_tools.contains(&call.tool) {
                self.refusals.clear();
                self.written += 1;
            }
            return None;
        }
        let text = places.text.as_ref().and_then(|place| part.pointer(place)).map(text_of).unwrap_or_default();
        let item = self.fail(call.shown, exit_code, &clean(&text));
        if let (Some(id), StreamItem::Failed { call, reason }) = (id, &item) {
            self.failures.insert(id, (self.written, Refusal { call: call.clone(), reason: reason.clone() }));
        }
        Some(item)
    }

    /// A line of text reports it: there was no event of the call itself.
    pub(super) fn fail_unseen(&mut self, text: &str) -> StreamItem {
        self.made += 1;
        self.fail(String::new(), None, text)
    }

    /// Counts a call as refused whose result looked like a failure.
    pub(super) fn refuse(&mut self, id: &str) -> Option<StreamItem> {
        let (written, refusal) = self.failures.remove(id)?;
        self.failed -= 1;
        self.refused += 1;
        if written == self.written {
            self.keep(refusal.clone());
        }
        Some(StreamItem::Refused(refusal))
    }

    fn keep(&mut self, refusal: Refusal) {
        // One that insists is quoted once.
        self.refusals.retain(|known| *known != refusal);
        self.refusals.push(refusal);
        self.refusals.drain(..self.refusals.len().saturating_sub(MOST_REFUSALS));
    }

    fn fail(&mut self, call: String, exit_code: Option<i64>, text: &str) -> StreamItem {
        if let Some(reason) = self.refusal(text) {
            self.refused += 1;
            let refusal = Refusal { call, reason };
            self.keep(refusal.clone());
            return StreamItem::Refused(refusal);
        }
        self.failed += 1;
        let text = one_line(text);
        let reason = match exit_code {
            Some(code) if text.is_empty() => format!("exit code {code}"),
            Some(code) => format!("exit code {code}: {text}"),
            None => text,
        };
        StreamItem::Failed { call, reason }
    }

    /// Why a call was refused, if the text of its result says that it was.
    fn refusal(&self, text: &str) -> Option<String> {
        let groups = self.patterns.iter().find_map(|pattern| pattern.captures(text))?;
        let reason = groups.name("reason").map(|reason| one_line(reason.as_str())).filter(|reason| !reason.is_empty());
        Some(reason.unwrap_or_else(|| one_line(text)))
    }

    /// `usage` with the counts of the calls.
    pub(super) fn counted(&self, usage: Usage) -> Usage {
        Usage { tool_calls: self.made, refused_calls: self.refused, failed_calls: self.failed, ..usage }
    }

    pub(super) fn into_refusals(self) -> Vec<Refusal> {
        self.refusals
    }
}

/// A text, or the texts of a list of blocks.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    lanewright_model::text::headline(&line, MAX_REASON)
}
