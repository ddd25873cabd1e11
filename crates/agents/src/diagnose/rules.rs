//! The rules by which the output of tools is read, as they stand in `templates/diagnosis`.

use std::error::Error;
use std::sync::LazyLock;

use lanewright_model::FailureClass;
use regex::Regex;
use regex::bytes::{RegexSet, RegexSetBuilder};

use super::rule_text::{RegionText, RuleText, RulesText, ToolText};

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
pub(super) enum Sought {
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

/// One rule; the keys are documented in `docs/diagnosis.md`.
#[derive(Debug)]
pub(super) struct Rule {
    /// The number of its tool.
    pub(super) tool: usize,
    pub(super) class: FailureClass,
    pub(super) line: Regex,
    pub(super) above: Option<Regex>,
    pub(super) below: Vec<Regex>,
    pub(super) except: Option<Regex>,
    /// Whether a blank line ends its message, because nothing else was said.
    pub(super) until_blank: bool,
    /// Whether something must stand in its message.
    pub(super) needs_with: bool,
    /// Whether something must stand somewhere in the output.
    pub(super) needs_seen: bool,
    pub(super) run: bool,
    pub(super) fallback: bool,
}

impl Rule {
    /// Whether `line` is one that the rule does not mean.
    pub(super) fn excepts(&self, line: &str) -> bool {
        self.except.as_ref().is_some_and(|except| except.is_match(line))
    }
}

struct Tool {
    name: String,
    /// Whether it only counts where no other tool has said anything.
    alone: bool,
}

pub(super) struct Rules {
    tools: Vec<Tool>,
    /// In the order in which they are asked.
    pub(super) rules: Vec<Rule>,
    /// For each region of captured output the tool that captured it.
    pub(super) regions: Vec<usize>,
    set: RegexSet,
    sought: Vec<Sought>,
}

impl Rules {
    /// The rules that the program brings along.
    pub(super) fn built_in() -> &'static Self {
        static RULES: LazyLock<Rules> =
            LazyLock::new(|| Rules::parse(BUILT_IN).expect("the built-in rules are tested"));
        &RULES
    }

    fn parse(files: &[&str]) -> Result<Self, Box<dyn Error>> {
        let mut building = Building::default();
        for file in files {
            let text: RulesText = toml::from_str(file)?;
            text.tool.into_iter().try_for_each(|tool| building.add_tool(tool))?;
        }
        let Building { tools, rules, regions, patterns, sought } = building;
        Ok(Self { tools, rules, regions, set: set_of(&patterns)?, sought })
    }

    /// What is found in `line`, in the order of the rules.
    pub(super) fn sought_in(&self, line: &str) -> Vec<Sought> {
        self.set.matches(line.as_bytes()).into_iter().map(|index| self.sought[index]).collect()
    }

    pub(super) fn tool_name(&self, rule: &Rule) -> &str {
        &self.tools[rule.tool].name
    }

    /// Whether `rule` counts for nothing where rules of other tools apply.
    pub(super) fn counts_alone_only(&self, rule: &Rule) -> bool {
        self.tools[rule.tool].alone
    }
}

/// A set that reads megabytes quickly: it works on bytes, so that its classes are small, and may remember much.
fn set_of(patterns: &[String]) -> Result<RegexSet, regex::Error> {
    RegexSetBuilder::new(patterns).unicode(false).dfa_size_limit(SET_MEMORY).build()
}

#[derive(Default)]
struct Building {
    tools: Vec<Tool>,
    rules: Vec<Rule>,
    regions: Vec<usize>,
    patterns: Vec<String>,
    sought: Vec<Sought>,
}

impl Building {
    fn add_tool(&mut self, text: ToolText) -> Result<(), Box<dyn Error>> {
        let tool = self.tools.len();
        self.tools.push(Tool { name: text.name, alone: text.alone });
        for RegionText { from, to } in text.captured {
            let region = self.regions.len();
            self.regions.push(tool);
            self.seek(from, Sought::From(region));
            self.seek(to, Sought::To(region));
        }
        text.rule.into_iter().try_for_each(|rule| self.add_rule(tool, rule))
    }

    fn add_rule(&mut self, tool: usize, text: RuleText) -> Result<(), Box<dyn Error>> {
        let compile = |pattern: &Option<String>| pattern.as_deref().map(Regex::new).transpose();
        let rule = Rule {
            tool,
            class: text.class,
            line: Regex::new(&text.line)?,
            above: compile(&text.above)?,
            below: text.below.iter().map(|pattern| Regex::new(pattern)).collect::<Result<_, _>>()?,
            except: compile(&text.except)?,
            until_blank: text.until.is_none(),
            needs_with: text.with.is_some(),
            needs_seen: text.seen.is_some(),
            run: text.run,
            fallback: text.fallback,
        };
        let number = self.rules.len();
        self.rules.push(rule);
        self.seek(text.line, Sought::Line(number));
        let others = [
            (text.above, Sought::Above(number)),
            (text.with, Sought::With(number)),
            (text.until, Sought::Until(number)),
            (text.seen, Sought::Seen(number)),
        ];
        for (pattern, sought) in others {
            pattern.into_iter().for_each(|pattern| self.seek(pattern, sought));
        }
        Ok(())
    }

    fn seek(&mut self, pattern: String, sought: Sought) {
        self.patterns.push(pattern);
        self.sought.push(sought);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_rules_can_be_used_and_name_only_known_groups() {
        let rules = Rules::parse(BUILT_IN).unwrap();
        let known = ["file", "line", "column", "message", "count"];
        for rule in &rules.rules {
            let patterns = [&rule.line].into_iter().chain(&rule.above).chain(&rule.below);
            let names: Vec<&str> = patterns.flat_map(|pattern| pattern.capture_names().flatten()).collect();
            assert!(names.iter().all(|name| known.contains(name)), "{rule:?}");
        }
    }

    #[test]
    fn faulty_rules_are_refused() {
        let rule = |fields: &str| format!("[[tool]]\nname = 'x'\n[[tool.rule]]\nclass = 'style'\n{fields}");
        assert!(Rules::parse(&[&rule("line = 'a'")]).is_ok());
        assert!(Rules::parse(&[&rule("line = '('")]).is_err_and(|error| error.is::<regex::Error>()));
        assert!(Rules::parse(&[&rule("line = 'a'\nbelwo = ['b']")]).is_err_and(|error| error.is::<toml::de::Error>()));
    }
}
