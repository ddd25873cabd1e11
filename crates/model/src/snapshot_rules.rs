//! When an agent's worktree is kept in a snapshot while the agent works (SPEC §5).

use std::time::Duration;

use regex::{RegexSet, RegexSetBuilder};
use serde::Deserialize;

use super::Timestamp;

/// When a running agent's worktree is kept.
#[derive(Debug, Clone)]
pub struct SnapshotRules {
    /// At the latest this long after the last snapshot; `None`: never for time alone.
    every: Option<Duration>,
    /// At every so manieth tool call; 0: never.
    every_tool_calls: u32,
    /// When a tool call looks like this.
    risky: RegexSet,
}

/// One line of `tool_calls.jsonl`: a tool that an agent is about to use or has used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ToolCall {
    pub tool: String,
    pub input: serde_json::Value,
}

/// What there is to know of an agent at work.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// When its worktree was last kept, or else when the attempt began.
    pub kept_at: Timestamp,
    /// How many tool calls were counted before.
    pub counted: u64,
    /// Those that came since.
    pub calls: &'a [ToolCall],
}

/// Why an agent's worktree is to be kept now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotTrigger {
    Risky,
    ToolCalls,
    Interval,
}

impl SnapshotRules {
    /// The longest time without a snapshot (seed 000, Checkpoint Strategy).
    pub const INTERVAL: Duration = Duration::from_secs(15 * 60);
    /// Tool calls from one snapshot to the next.
    pub const TOOL_CALLS: u32 = 10;
    /// Operations that destroy what they meet (seed 000: migrations, major refactors).
    pub const RISKY: &'static [&'static str] = &[
        r"\brm\s+(-\S+\s+)*-\w*[rf]",
        r"\bgit\s+(\S+\s+)*reset\s+(\S+\s+)*--hard",
        r"\bgit\s+(\S+\s+)*clean\s+(\S+\s+)*-\w*f",
        r"\bgit\s+(\S+\s+)*push\s+(\S+\s+)*(--force|-f\b)",
        r"\bgit\s+(\S+\s+)*(checkout|restore)\s+(--\s+)?\.",
        r"\b(drop|truncate)\s+(table|database|schema)\b",
        r"\bmigrat(e|ion|ions)\b",
    ];

    /// The rules of the settings; patterns match in capitals or not.
    ///
    /// # Errors
    /// When a pattern is no regular expression.
    pub fn new(every: Option<Duration>, every_tool_calls: u32, risky: &[String]) -> Result<Self, regex::Error> {
        let risky = RegexSetBuilder::new(risky).case_insensitive(true).build()?;
        Ok(Self { every, every_tool_calls, risky })
    }

    /// Whether nothing is ever kept while an agent works.
    pub fn is_idle(&self) -> bool {
        self.every.is_none() && self.every_tool_calls == 0 && self.risky.is_empty()
    }

    /// Whether, and why, the worktree is to be kept now.
    pub fn trigger(&self, progress: &Progress<'_>, now: Timestamp) -> Option<SnapshotTrigger> {
        let after = progress.counted + progress.calls.len() as u64;
        let round = |calls: u64| calls.checked_div(u64::from(self.every_tool_calls)).unwrap_or(0);
        if progress.calls.iter().any(|call| self.is_risky(call)) {
            return Some(SnapshotTrigger::Risky);
        }
        if round(progress.counted) < round(after) {
            return Some(SnapshotTrigger::ToolCalls);
        }
        let is_due = self.due_in(progress.kept_at, now).is_some_and(|rest| rest.is_zero());
        is_due.then_some(SnapshotTrigger::Interval)
    }

    /// How long after `now` time alone is a reason to keep a worktree that was last kept at `kept_at`; `None`: never.
    pub fn due_in(&self, kept_at: Timestamp, now: Timestamp) -> Option<Duration> {
        Some(self.every?.saturating_sub(now.since(kept_at)))
    }

    fn is_risky(&self, call: &ToolCall) -> bool {
        self.risky.is_match(&call.tool) || any_text(&call.input, &|text| self.risky.is_match(text))
    }
}

/// Whether a text in `value` fulfils `condition`.
fn any_text(value: &serde_json::Value, condition: &dyn Fn(&str) -> bool) -> bool {
    match value {
        serde_json::Value::String(text) => condition(text),
        serde_json::Value::Array(values) => values.iter().any(|value| any_text(value, condition)),
        serde_json::Value::Object(fields) => fields.values().any(|value| any_text(value, condition)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules(every_tool_calls: u32) -> SnapshotRules {
        let risky: Vec<String> = SnapshotRules::RISKY.iter().map(|&pattern| pattern.to_owned()).collect();
        SnapshotRules::new(Some(SnapshotRules::INTERVAL), every_tool_calls, &risky).unwrap()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_millis(seconds * 1000)
    }

    fn harmless(count: usize) -> Vec<ToolCall> {
        vec![ToolCall { tool: "Read".into(), input: json!({"file": "src/lib.rs"}) }; count]
    }

    fn trigger(every: u32, counted: u64, calls: &[ToolCall], now: i64) -> Option<SnapshotTrigger> {
        rules(every).trigger(&Progress { kept_at: at(0), counted, calls }, at(now))
    }

    #[test]
    fn snapshot_at_every_tenth_tool_call() {
        assert_eq!(trigger(10, 0, &harmless(9), 0), None);
        assert_eq!(trigger(10, 9, &harmless(1), 0), Some(SnapshotTrigger::ToolCalls));
        assert_eq!(trigger(10, 10, &harmless(9), 0), None);
        assert_eq!(trigger(10, 0, &harmless(35), 0), Some(SnapshotTrigger::ToolCalls));
        assert_eq!(trigger(0, 0, &harmless(35), 0), None);
    }

    #[test]
    fn snapshot_interval_is_exact() {
        assert_eq!(trigger(0, 0, &[], 899), None);
        assert_eq!(trigger(0, 0, &[], 900), Some(SnapshotTrigger::Interval));
        let never = SnapshotRules::new(None, 0, &[]).unwrap();
        assert_eq!(never.trigger(&Progress { kept_at: at(0), counted: 0, calls: &[] }, at(1 << 30)), None);
        assert!(never.is_idle() && !rules(0).is_idle());
    }

    #[test]
    fn destructive_commands_are_risky() {
        for input in [
            json!("cd x && rm -rf build"),
            json!({"command": "git reset --hard HEAD~1"}),
            json!({"args": ["git push origin main --force"]}),
            json!("rm -v -fr x"),
            json!("git -C x clean -xdf"),
            json!("git checkout ."),
            json!("DROP TABLE users"),
            json!("bin/rails db:migrate"),
        ] {
            let call = ToolCall { tool: "Bash".into(), input };
            assert_eq!(trigger(0, 0, std::slice::from_ref(&call), 0), Some(SnapshotTrigger::Risky), "{call:?}");
        }
        for input in
            [json!("git push origin main"), json!("cargo rm serde"), json!("git reset HEAD a"), json!("farm -rf")]
        {
            let call = ToolCall { tool: "Bash".into(), input };
            assert_eq!(trigger(0, 0, std::slice::from_ref(&call), 0), None, "{call:?}");
        }
    }

    #[test]
    fn a_line_may_say_more_or_less_than_we_read() {
        let call: ToolCall = serde_json::from_str(r#"{"at":"2026-01-01T00:00:00Z","tool":"Bash"}"#).unwrap();
        assert_eq!(call, ToolCall { tool: "Bash".into(), input: serde_json::Value::Null });
    }
}
