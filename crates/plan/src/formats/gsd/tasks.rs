//! The tasks of a plan's body, by tags or by headings, and the text between them.

use std::iter;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::command::is_in;
use crate::markdown::{Line, unfenced_lines};

use super::tokens::{Kind, Token};

const CHILDREN: &str = "\
    name files read-first behavior action implementation verify acceptance-criteria done what-built how-to-verify decision \
    context options instructions verification resume-signal steps notes";

#[derive(Debug, Clone)]
pub(super) struct Child {
    pub(super) name: &'static str,
    pub(super) content: Range<usize>,
}

#[derive(Debug)]
pub(super) struct RawTask<'a> {
    /// With its tags.
    pub(super) range: Range<usize>,
    /// Where its tag or heading ends.
    pub(super) head_end: usize,
    /// The attributes of the tag as they are written, or the words of the heading.
    pub(super) head: &'a str,
    pub(super) is_heading: bool,
    pub(super) children: Vec<Child>,
    /// Its text outside of its elements.
    pub(super) loose: Vec<Range<usize>>,
    /// Where an element or the task itself is not closed, and its name.
    pub(super) unclosed: Vec<(usize, &'static str)>,
}

impl<'a> RawTask<'a> {
    /// One without elements, below a heading or in a list.
    fn below(range: Range<usize>, head_end: usize, head: &'a str) -> Self {
        let loose = iter::once(head_end..range.end).collect();
        Self { range, head_end, head, is_heading: true, children: Vec::new(), loose, unclosed: Vec::new() }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.children.iter().any(|child| child.name == name)
    }

    /// The elements that `titles` names, in its order, with their titles.
    pub(super) fn titled<'t>(&'t self, titles: &'t [(&str, &str)]) -> impl Iterator<Item = (&'t str, &'t Child)> {
        let named = |name: &'t str| self.children.iter().filter(move |child| child.name == name);
        titles.iter().flat_map(move |(name, title)| named(name).map(move |child| (*title, child)))
    }
}

pub(super) fn tasks<'a>(text: &'a str, tokens: &[Token<'a>], body: &Range<usize>) -> Vec<RawTask<'a>> {
    if tokens.iter().any(|token| token.opens("task")) {
        return Tags { text, tokens, matching: matching(tokens), end: body.end }.tasks();
    }
    let found = by_headings(tokens, body);
    if found.is_empty() { by_numbers(text, tokens, body) } else { found }
}

/// Tasks that headings begin, all of the level of the first one.
fn by_headings<'a>(tokens: &[Token<'a>], body: &Range<usize>) -> Vec<RawTask<'a>> {
    let first = tokens.iter().find(|token| matches!(token.kind, Kind::TaskHeading(_)));
    let Some(Kind::TaskHeading(level)) = first.map(|token| token.kind) else { return Vec::new() };
    let ends = |token: &&Token<'_>| match token.kind {
        Kind::TaskHeading(own) | Kind::Heading(own) => own <= level,
        Kind::Close => token.name == "tasks",
        Kind::Open => is_in("verification success-criteria output threat-model", token.name),
    };
    let begins = tokens.iter().enumerate().filter(|(_, token)| token.kind == Kind::TaskHeading(level));
    let task = |(at, token): (usize, &Token<'a>)| {
        let end = tokens[at + 1..].iter().find(ends).map_or(body.end, |token| token.start);
        RawTask::below(token.start..end, token.end, token.inside)
    };
    begins.map(task).collect()
}

/// The numbered items below a heading `Tasks`, where nothing else begins a task.
fn by_numbers<'a>(text: &'a str, tokens: &[Token<'a>], body: &Range<usize>) -> Vec<RawTask<'a>> {
    let level = |token: &Token<'_>| if let Kind::Heading(level) = token.kind { Some(level) } else { None };
    let is_list = |token: &&Token<'_>| {
        let words = token.inside.trim_matches(['*', ':', ' ']).to_lowercase();
        level(token).is_some() && matches!(words.as_str(), "tasks" | "task list" | "task breakdown")
    };
    let Some(heading) = tokens.iter().find(is_list) else { return Vec::new() };
    let ends =
        |token: &&Token<'_>| token.start > heading.start && level(token) <= level(heading) && level(token).is_some();
    let end = tokens.iter().find(ends).map_or(body.end, |token| token.start);
    let item = |line: Line<'a>| {
        let digits = line.text.bytes().take_while(u8::is_ascii_digit).count();
        let words = line.text[digits..].strip_prefix(". ").filter(|_| digits > 0)?;
        Some((heading.end + line.start, line.text.len(), words))
    };
    let items: Vec<(usize, usize, &str)> = unfenced_lines(&text[heading.end..end]).filter_map(item).collect();
    let ends = items.iter().map(|(start, ..)| *start).skip(1).chain([end]);
    let task = |(&(start, length, words), end)| RawTask::below(start..end, start + length, words);
    items.iter().zip(ends).map(task).collect()
}

fn matching(tokens: &[Token<'_>]) -> Vec<Option<usize>> {
    let mut open: std::collections::HashMap<&str, Vec<usize>> = std::collections::HashMap::new();
    let mut closes = vec![None; tokens.len()];
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Open => open.entry(token.name).or_default().push(at),
            Kind::Close => {
                if let Some(opening) = open.get_mut(token.name).and_then(Vec::pop) {
                    closes[opening] = Some(at);
                }
            }
            Kind::TaskHeading(_) | Kind::Heading(_) => {}
        }
    }
    closes
}

struct Tags<'t, 'a> {
    text: &'t str,
    tokens: &'t [Token<'a>],
    matching: Vec<Option<usize>>,
    end: usize,
}

impl<'a> Tags<'_, 'a> {
    fn tasks(&self) -> Vec<RawTask<'a>> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            if self.tokens[at].opens("task") {
                let (task, next) = self.task(at);
                found.push(task);
                at = next;
            } else if self.tokens[at].kind == Kind::Open && self.tokens[at].name != "tasks" {
                // A section that is closed may show what a task looks like.
                at = self.section_end(at).unwrap_or(at + 1);
            } else {
                at += 1;
            }
        }
        found
    }

    /// The mark behind a section of the plan that holds no whole task list.
    fn section_end(&self, at: usize) -> Option<usize> {
        let close = self.matching[at]?;
        let holds_tasks =
            self.tokens[at..close].iter().take(64).any(|token| token.opens("task") || token.opens("tasks"));
        (!holds_tasks).then_some(close + 1)
    }

    /// The task that opens at `opening`, and the next mark.
    fn task(&self, opening: usize) -> (RawTask<'a>, usize) {
        let head = &self.tokens[opening];
        let mut task = RawTask {
            range: head.start..self.end,
            head_end: head.end,
            head: head.inside,
            is_heading: false,
            children: Vec::new(),
            loose: Vec::new(),
            unclosed: Vec::new(),
        };
        let own_close = self.matching[opening];
        let mut loose_from = head.end;
        let mut at = opening + 1;
        while let Some(token) = self.tokens.get(at) {
            if token.closes("task") {
                task.range.end = token.end;
                self.add_loose(&mut task, loose_from..token.start);
                return (task, at + 1);
            }
            if token.opens("task") || token.opens("tasks") || token.closes("tasks") || self.is_plan_section(token) {
                break;
            }
            if !is_in(CHILDREN, token.name) {
                at += 1;
                continue;
            }
            self.add_loose(&mut task, loose_from..token.start);
            (loose_from, at) = match token.kind {
                Kind::Open => self.child(&mut task, at, own_close),
                _ => (token.end, at + 1),
            };
        }
        task.unclosed.push((head.start, "task"));
        task.range.end = self.tokens.get(at).map_or(self.end, |token| token.start);
        let end = task.range.end;
        self.add_loose(&mut task, loose_from..end);
        (task, at)
    }

    /// Adds the element that opens at `at`; returns where it ends in the text, and the next mark.
    fn child(&self, task: &mut RawTask<'a>, at: usize, task_close: Option<usize>) -> (usize, usize) {
        let token = &self.tokens[at];
        if let Some(close) = self.matching[at].filter(|&close| task_close.is_none_or(|own| close < own)) {
            let content = token.end..self.tokens[close].start;
            task.children.push(Child { name: token.name, content });
            return (self.tokens[close].end, close + 1);
        }
        task.unclosed.push((token.start, token.name));
        let next = self.next_mark(at + 1);
        let end = self.tokens.get(next).map_or(self.end, |token| token.start);
        task.children.push(Child { name: token.name, content: token.end..end });
        (end, next)
    }

    /// Whether a tag at the margin begins a section of the plan, which no task holds.
    fn is_plan_section(&self, token: &Token<'_>) -> bool {
        let at_margin = token.start == 0 || self.text.as_bytes()[token.start - 1] == b'\n';
        token.kind == Kind::Open && at_margin && ["objective", "success-criteria", "threat-model"].contains(&token.name)
    }

    /// The next mark that ends an element that is not closed.
    fn next_mark(&self, from: usize) -> usize {
        let ends = |token: &Token<'_>| match token.kind {
            Kind::Open => true,
            Kind::Close => token.name == "task" || token.name == "tasks",
            _ => false,
        };
        self.tokens[from..].iter().position(ends).map_or(self.tokens.len(), |at| from + at)
    }

    fn add_loose(&self, task: &mut RawTask<'a>, range: Range<usize>) {
        if self.text.get(range.clone()).is_some_and(|text| !text.trim().is_empty()) {
            task.loose.push(range);
        }
    }
}

static ATTRIBUTE: LazyLock<Regex> =
    pattern!(r#"([\p{Alphabetic}\p{N}][^=\s]*)(?:\s*=\s*(?:"([^"]*)"?|'([^']*)'?|(\S*)))?"#);

/// The attributes of a tag, in order: `type="auto" tdd="true"`.
pub(super) fn attributes(inside: &str) -> Vec<(String, String)> {
    let attribute = |found: Captures<'_>| {
        let value = (2..=4).find_map(|way| found.get(way)).map_or("", |value| value.as_str().trim());
        (found[1].to_ascii_lowercase(), value.to_owned())
    };
    ATTRIBUTE.captures_iter(inside.trim_end_matches('/').trim()).map(attribute).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let body = 0..text.len();
        let show = |task: RawTask<'_>| {
            let children =
                task.children.iter().map(|child| format!("{}={}", child.name, text[child.content.clone()].trim()));
            let loose = task.loose.iter().map(|range| format!("[{}]", text[range.clone()].trim()));
            let unclosed = task.unclosed.iter().map(|(_, name)| format!("!{name}"));
            children.chain(loose).chain(unclosed).collect::<Vec<_>>().join(" ")
        };
        tasks(text, &tokens(text, body.clone()), &body).into_iter().map(show).collect()
    }

    #[test]
    fn unclosed_element_ends_at_next_tag() {
        let cases: [(&str, &[&str]); 7] = [
            ("<task>\n<name>a</name>\n<task>\n<name>b</name>\n</task>", &["name=a !task", "name=b"]),
            (
                "<task>\n<action>\na\n</task>\n<task>\n<action>\nb\n</action>\n</task>",
                &["action=a !action", "action=b"],
            ),
            ("<task>\n<action>\na\n<verify>v</verify>\n</task>", &["action=a verify=v !action"]),
            ("<tasks>\n<task>\nx\n</tasks>\n<output>\ny\n</output>", &["[x] !task"]),
            ("<task>\n<name>a</name>", &["name=a !task"]),
            ("<task>\n<name>a</name>\nmore\n</action>\nend\n</task>", &["name=a [more] [end]"]),
            (
                "<task>\n<action>\n<task>\n<action>\nx\n</action>\n</task>\n</action>\n</task>",
                &["action=<task>\n<action>\nx\n</action>\n</task>"],
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text), expected, "{text:?}");
        }
    }

    #[test]
    fn task_headings_count_without_tags() {
        let text = "# P\n## Task 1: a\nx\n### Task 1.1\ny\n## Task 2: b\nz\n## Verification\nv";
        assert_eq!(read(text), ["[x\n### Task 1.1\ny]", "[z]"]);
        let text = "# P\n### T-23-01-01: a\nx\n### T-23-01-02 — b\ny\n### T-shirts\nz";
        assert_eq!(read(text), ["[x]", "[y]"]);
    }

    #[test]
    fn numbered_items_are_tasks_as_last_resort() {
        let text = "# P\n1. no\n## Tasks\nfirst:\n1. **a**\n   x\n```\n2. no\n```\n2. b\n## Checks\n1. no";
        assert_eq!(read(text), ["[x\n```\n2. no\n```]", "[]"]);
        assert_eq!(read("## Tasks\n### Task 1: a\n1. no"), ["[1. no]"]);
    }

    #[test]
    fn tag_attributes_allow_any_quoting() {
        let pairs =
            |text| attributes(text).into_iter().map(|(name, value)| format!("{name}:{value}")).collect::<Vec<_>>();
        assert_eq!(pairs(" type=\"auto\" tdd='true' id=T1 bare"), ["type:auto", "tdd:true", "id:T1", "bare:"]);
        assert_eq!(pairs(" name=\"a = b"), ["name:a = b"]);
        assert_eq!(pairs("="), Vec::<String>::new());
    }
}
