//! The rules by which the output of tools is read, as they stand in `templates/diagnosis`.

use std::error::Error;
use std::ops::Deref;
use std::sync::LazyLock;

use lanewright_model::FailureClass;
use regex::Regex;
use regex::bytes::{RegexSet, RegexSetBuilder};
use serde::Deserialize;

/// The built-in rules. They are tried in this order, so the file that matches any tool's lines is the last.
const BUILT_IN: &[&str] = &[
    include_str!("../../templates/diagnosis/rust.toml"),
    include_str!("../../templates/diagnosis/jvm.toml"),
    include_str!("../../templates/diagnosis/javascript.toml"),
    include_str!("../../templates/diagnosis/python.toml"),
    include_str!("../../templates/diagnosis/go.toml"),
    include_str!("../../templates/diagnosis/c.toml"),
    include_str!("../../templates/diagnosis/any.toml"),
];

/// How many bytes the search for all patterns at once may use; with little it forgets what it has worked out and is slow.
const SET_MEMORY: usize = 32 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatternRole {
    /// The line of the rule with this number.
    Line(usize),
    /// What that rule wants above its line.
    Above(usize),
    /// What that rule wants in its message.
    With(usize),
    /// What ends that rule's message.
    Until(usize),
    /// What that rule wants somewhere.
    Seen(usize),
    From(usize),
    To(usize),
}

/// The rules as they are written in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesText {
    tool: Vec<ToolText>,
}

/// A tool; `docs/diagnosis.md` documents its keys and those of its rules.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolText {
    name: String,
    #[serde(default)]
    alone: bool,
    #[serde(default)]
    captured: Vec<RegionText>,
    rule: Vec<Rule>,
}

/// Lines between which a tool shows what others printed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RegionText {
    from: String,
    to: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    /// The number of its tool.
    #[serde(skip)]
    pub(super) tool: usize,
    pub(super) class: FailureClass,
    pub(super) line: Pattern,
    pub(super) above: Option<Pattern>,
    #[serde(default)]
    pub(super) below: Vec<Pattern>,
    until: Option<String>,
    with: Option<String>,
    pub(super) except: Option<Pattern>,
    seen: Option<String>,
    #[serde(default)]
    pub(super) run: bool,
    #[serde(default)]
    pub(super) fallback: bool,
}

/// A regular expression that is read from text.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Pattern(pub(super) Regex);

impl TryFrom<String> for Pattern {
    type Error = regex::Error;

    fn try_from(text: String) -> Result<Self, regex::Error> {
        Regex::new(&text).map(Self)
    }
}

impl Deref for Pattern {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        &self.0
    }
}

impl Rule {
    /// Whether `line` is one that the rule does not mean.
    pub(super) fn excepts(&self, line: &str) -> bool {
        self.except.as_ref().is_some_and(|except| except.is_match(line))
    }

    /// Whether a blank line ends its message, because nothing else was said.
    pub(super) fn is_until_blank(&self) -> bool {
        self.until.is_none()
    }

    /// Whether something must stand in its message.
    pub(super) fn needs_with(&self) -> bool {
        self.with.is_some()
    }

    /// Whether something must stand somewhere in the output.
    pub(super) fn needs_seen(&self) -> bool {
        self.seen.is_some()
    }
}

struct Tool {
    name: String,
    /// Whether it only counts where no other tool has said anything.
    alone: bool,
}

#[derive(Default)]
pub(super) struct Rules {
    tools: Vec<Tool>,
    /// In the order in which they are asked.
    pub(super) rules: Vec<Rule>,
    /// For each region of captured output the tool that captured it.
    pub(super) regions: Vec<usize>,
    set: RegexSet,
    roles: Vec<PatternRole>,
}

impl Rules {
    /// The rules that the program brings along.
    pub(super) fn built_in() -> &'static Self {
        static RULES: LazyLock<Rules> =
            LazyLock::new(|| Rules::parse(BUILT_IN).expect("the built-in rules are tested"));
        &RULES
    }

    fn parse(files: &[&str]) -> Result<Self, Box<dyn Error>> {
        let (mut rules, mut patterns) = (Self::default(), Vec::new());
        for file in files {
            let text: RulesText = toml::from_str(file)?;
            text.tool.into_iter().for_each(|tool| rules.add_tool(tool, &mut patterns));
        }
        // It reads megabytes quickly: it works on bytes, so that its classes are small, and may remember much.
        rules.set = RegexSetBuilder::new(patterns).unicode(false).dfa_size_limit(SET_MEMORY).build()?;
        Ok(rules)
    }

    fn add_tool(&mut self, text: ToolText, patterns: &mut Vec<String>) {
        let (tool, roles) = (self.tools.len(), &mut self.roles);
        self.tools.push(Tool { name: text.name, alone: text.alone });
        let mut add = |pattern: &str, what: PatternRole| {
            patterns.push(pattern.to_owned());
            roles.push(what);
        };
        for RegionText { from, to } in text.captured {
            add(&from, PatternRole::From(self.regions.len()));
            add(&to, PatternRole::To(self.regions.len()));
            self.regions.push(tool);
        }
        for rule in text.rule {
            let number = self.rules.len();
            let above = rule.above.as_ref().map(|above| above.as_str());
            add(rule.line.as_str(), PatternRole::Line(number));
            above.into_iter().for_each(|pattern| add(pattern, PatternRole::Above(number)));
            rule.with.iter().for_each(|pattern| add(pattern, PatternRole::With(number)));
            rule.until.iter().for_each(|pattern| add(pattern, PatternRole::Until(number)));
            rule.seen.iter().for_each(|pattern| add(pattern, PatternRole::Seen(number)));
            self.rules.push(Rule { tool, ..rule });
        }
    }

    /// What is found in `line`, in the order of the rules.
    pub(super) fn roles_in(&self, line: &str) -> Vec<PatternRole> {
        self.set.matches(line.as_bytes()).into_iter().map(|index| self.roles[index]).collect()
    }

    pub(super) fn tool_name(&self, rule: &Rule) -> &str {
        &self.tools[rule.tool].name
    }

    /// Whether `rule` counts for nothing where rules of other tools apply.
    pub(super) fn counts_alone_only(&self, rule: &Rule) -> bool {
        self.tools[rule.tool].alone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_rules_compile_with_known_groups() {
        let rules = Rules::parse(BUILT_IN).unwrap();
        let known = ["file", "line", "column", "message", "count"];
        for rule in &rules.rules {
            let patterns = [&rule.line].into_iter().chain(&rule.above).chain(&rule.below);
            let names: Vec<&str> = patterns.flat_map(|pattern| pattern.capture_names().flatten()).collect();
            assert!(names.iter().all(|name| known.contains(name)), "{rule:?}");
        }
    }

    #[test]
    fn invalid_rules_are_refused() {
        let rule = |fields: &str| format!("[[tool]]\nname = 'x'\n[[tool.rule]]\nclass = 'style'\n{fields}");
        assert!(Rules::parse(&[&rule("line = 'a'")]).is_ok());
        assert!(Rules::parse(&[&rule("line = '('")]).is_err_and(|error| error.to_string().contains("unclosed group")));
        assert!(Rules::parse(&[&rule("line = 'a'\nbelwo = ['b']")]).is_err_and(|error| error.is::<toml::de::Error>()));
    }
}
