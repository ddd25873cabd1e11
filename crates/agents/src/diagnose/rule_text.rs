//! The rules as they are written in TOML.

use lanewright_model::FailureClass;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RulesText {
    pub(super) tool: Vec<ToolText>,
}

/// A tool; the keys are documented in `docs/diagnosis.md`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolText {
    pub(super) name: String,
    #[serde(default)]
    pub(super) alone: bool,
    #[serde(default)]
    pub(super) captured: Vec<RegionText>,
    pub(super) rule: Vec<RuleText>,
}

/// Lines between which a tool shows what others printed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RegionText {
    pub(super) from: String,
    pub(super) to: String,
}

/// A rule; all but `class` are patterns or switches.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleText {
    pub(super) class: FailureClass,
    pub(super) line: String,
    pub(super) above: Option<String>,
    #[serde(default)]
    pub(super) below: Vec<String>,
    pub(super) until: Option<String>,
    pub(super) with: Option<String>,
    pub(super) except: Option<String>,
    pub(super) seen: Option<String>,
    #[serde(default)]
    pub(super) run: bool,
    #[serde(default)]
    pub(super) fallback: bool,
}
