//! The marks that give a plan's body its shape: tags at the beginnings and ends of lines, and headings of tasks.
//!
//! The body is Markdown, not XML. A tag counts outside code fences only, and only where it begins a line, stands
//! behind another tag that does, or closes at the end of a line.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::command::is_in;
use crate::markdown::{Closers, FenceMark, Line, lines};

const NAMES: &str = "\
    task tasks feature objective execution-context context verification success-criteria output threat-model name files \
    read-first behavior action implementation verify acceptance-criteria done what-built how-to-verify decision options \
    instructions resume-signal steps notes interfaces";

/// Elements that hold others on the line of their own tag.
const CONTAINERS: &str = "task tasks feature";

/// The most tasks of a plan.
pub(super) const MAX_TASKS: usize = 1_000;

/// The most marks of a plan; what comes behind them is text.
const MAX_TOKENS: usize = 100_000;

/// How many elements may be open in each other; what is opened deeper is not missed.
const MAX_OPEN: usize = 64;

const MAX_TAG: usize = 2_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Open,
    Close,
    /// A heading that begins a task, of this level.
    TaskHeading(usize),
    /// Any other heading of this level.
    Heading(usize),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    /// The element, with `-` for every `_`; empty for a heading.
    pub(super) name: &'static str,
    pub(super) start: usize,
    pub(super) end: usize,
    /// The text after the tag's name, or the words of a heading.
    pub(super) inside: &'a str,
}

impl Token<'_> {
    pub(super) fn opens(&self, name: &str) -> bool {
        self.kind == Kind::Open && self.name == name
    }

    pub(super) fn closes(&self, name: &str) -> bool {
        self.kind == Kind::Close && self.name == name
    }
}

/// A tag up to its `>`, also a few lines further; one that nothing closes ends with its line.
static TAG: LazyLock<Regex> = pattern!(concat!(
    r"(?m)\A<(/?)([A-Za-z0-9_-]+)",
    r#"((?:\s(?:"[^"]*"|'[^']*'|[^<>"'])*)?/?>|(?:\s[^>\n]*)?>|(?:[\s/][^\n]*)?$)"#
));

static CLOSE: LazyLock<Regex> = pattern!("</([A-Za-z0-9_-]+)>");

pub(super) fn tokens(text: &str, body: Range<usize>) -> Vec<Token<'_>> {
    let closers = Closers::new(text);
    let mut scanner = Scanner { text, tokens: Vec::new(), tasks: 0, open: Vec::new() };
    // The fence that is open, with the elements that are opened in it and not closed.
    let mut fence: Option<(FenceMark<'_>, Vec<&'static str>)> = None;
    let mut position = body.start;
    for line in lines(&text[body.clone()]) {
        let (start, end) = (body.start + line.start, body.start + line.range().end);
        if end < position || (start < position && end == position) {
            continue;
        }
        let start = start.max(position);
        if let Some((mark, inner)) = &mut fence {
            let Some(at) = scanner.end_of_fence(mark, inner, start..end) else { continue };
            fence = None;
            position = scanner.line(at, end);
        } else if let Some(opened) = closers.opened(Line { start, text: &text[start..end] }) {
            fence = Some((opened, Vec::new()));
        } else {
            position = scanner.line(start, end);
        }
        if scanner.tasks > MAX_TASKS || scanner.tokens.len() > MAX_TOKENS {
            break;
        }
    }
    scanner.tokens
}

struct Scanner<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    tasks: usize,
    open: Vec<&'static str>,
}

impl<'a> Scanner<'a> {
    /// Where the rest of a line begins that ends a fence.
    fn end_of_fence(&self, mark: &FenceMark<'_>, inner: &mut Vec<&'static str>, range: Range<usize>) -> Option<usize> {
        let line = &self.text[range.clone()];
        if let Some(own) = FenceMark::of(line).filter(|own| own.closes(mark)) {
            return Some(range.start + line.trim_end().len() - own.info.len());
        }
        let tag = TAG.captures(line.trim())?;
        let name = known(&tag[2])?;
        if tag[1].is_empty() {
            if inner.len() < MAX_OPEN {
                inner.push(name);
            }
        } else if let Some(at) = inner.iter().rposition(|open| *open == name) {
            inner.truncate(at);
        } else if self.open.contains(&name) {
            // The element around it ends: a fence in a fence, or one that its author forgot to close.
            return Some(range.start);
        }
        None
    }

    /// Takes the marks of a line; returns where to continue, because a tag may be longer than its line.
    fn line(&mut self, start: usize, end: usize) -> usize {
        let mut at = start + indent(&self.text[start..end]);
        if let Some(heading) = heading(self.text, at, end) {
            self.tokens.push(heading);
            return end;
        }
        while let Some(tag) = self.tag(at, end) {
            at = tag.end;
            self.push(tag);
            if at >= end {
                return at;
            }
            at += indent(&self.text[at..end]);
            if tag.kind == Kind::Open && !is_in(CONTAINERS, tag.name) {
                let Some(close) = self.closes(at, end).find(|close| close.name == tag.name) else { break };
                at = close.end;
                self.push(close);
                at += indent(&self.text[at..end]);
            }
        }
        self.closes_at_end(at, end);
        end
    }

    fn push(&mut self, token: Token<'a>) {
        if token.opens("task") {
            self.tasks += 1;
        }
        if token.kind == Kind::Open && self.open.len() < MAX_OPEN {
            self.open.push(token.name);
        } else if token.kind == Kind::Close
            && let Some(at) = self.open.iter().rposition(|open| *open == token.name)
        {
            self.open.truncate(at);
        }
        self.tokens.push(token);
    }

    /// The tag that begins at `at`, if its name is one that counts.
    fn tag(&self, at: usize, end: usize) -> Option<Token<'a>> {
        let limit = self.text.floor_char_boundary((at + MAX_TAG).min(self.text.len())).max(end);
        let found = TAG.captures(&self.text[at..limit])?;
        let (name, inside) = (known(found.get(2)?.as_str())?, found.get(3)?.range());
        let kind = if found[1].is_empty() { Kind::Open } else { Kind::Close };
        let inside = self.text[at + inside.start..at + inside.end].trim_end_matches('>');
        Some(Token { kind, name, start: at, end: at + found.get_match().end(), inside })
    }

    /// The closing tags between two places.
    fn closes(&self, from: usize, end: usize) -> impl Iterator<Item = Token<'a>> {
        let close = move |found: Captures<'a>| {
            let (at, name) = (found.get_match(), known(&found[1])?);
            Some(Token { kind: Kind::Close, name, start: from + at.start(), end: from + at.end(), inside: "" })
        };
        CLOSE.captures_iter(&self.text[from..end]).filter_map(close)
    }

    /// Takes the tags that close at the end of a line.
    fn closes_at_end(&mut self, from: usize, mut end: usize) {
        let mut closing: Vec<Token<'a>> = self.closes(from, end).collect();
        let mut first = closing.len();
        while first > 0 && self.text[closing[first - 1].end..end].trim().is_empty() {
            first -= 1;
            end = closing[first].start;
        }
        closing.drain(first..).for_each(|token| self.push(token));
    }
}

/// The element of that name, in any spelling.
fn known(name: &str) -> Option<&'static str> {
    let same = |known: &&str| {
        known.len() == name.len() && known.bytes().zip(name.bytes()).all(|(a, b)| a == b || (a == b'-' && b == b'_'))
    };
    NAMES.split(' ').find(same)
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn heading(text: &str, at: usize, end: usize) -> Option<Token<'_>> {
    let line = &text[at..end];
    let level = line.bytes().take_while(|&byte| byte == b'#').count();
    let words = line[level..].strip_prefix([' ', '\t'])?.trim();
    let kind = match level {
        1..=6 if TASK_HEADING.is_match(words) => Kind::TaskHeading(level),
        1..=6 => Kind::Heading(level),
        _ => return None,
    };
    Some(Token { kind, name: "", start: at, end, inside: words })
}

/// `Task 1: …`, `**Task 2** …`, `Task A - …`, `T-01-02: …`.
static TASK_HEADING: LazyLock<Regex> =
    pattern!(r"^[*_\[ \]`]*(?:T-[0-9][0-9-]*[ :`*]|(?i-u:task)(?:[ #-]+[0-9]| [ #-]*[A-Z][:.)—]))");

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let mark = |token: &Token<'_>| match token.kind {
            Kind::Open => token.name.to_owned(),
            Kind::Close => format!("/{}", token.name),
            Kind::TaskHeading(level) => format!("task heading {level}"),
            Kind::Heading(level) => format!("heading {level}"),
        };
        tokens(text, 0..text.len()).iter().map(mark).collect()
    }

    #[test]
    fn tags_count_outside_fences_at_line_ends() {
        let cases: [(&str, &[&str]); 14] = [
            ("<task type=\"auto\">\n  <name>A</name>\n</task>", &["task", "name", "/name", "/task"]),
            ("<task><name>A</name><done>b</done></task>", &["task", "name", "/name", "done", "/done", "/task"]),
            ("  <action>do\n  it</action></task>", &["action", "/action", "/task"]),
            ("```\n<task>\n</task>\n```\n<tasks>", &["tasks"]),
            ("~~~~\n~~~\n<task>\n~~~~\n<tasks>", &["tasks"]),
            ("```\n<tasks>", &["tasks"]),
            ("Write `<task>` like this.", &[]),
            ("<taskbar>\n<div>\n<read_first>\n<read-first>", &["read-first", "read-first"]),
            ("<task name=\"a > b\"\n  type='auto'>\n", &["task"]),
            ("<task name=\"it", &["task"]),
            ("<task>\n```sh\nx\n</task>\n<task>\n```\ny\n```\n</task>", &["task", "/task", "task", "/task"]),
            ("```sh\nx\n```</verify>", &["/verify"]),
            ("<action>\n```md\n```sh\nx\n```\n```\n</action>\n<done>\n```\n", &["action", "/action", "done"]),
            ("<action>\n```\n<action>\n</action>\n```\n</action>", &["action", "/action"]),
        ];
        for (text, expected) in cases {
            assert_eq!(names(text), expected, "{text:?}");
        }
    }

    #[test]
    fn task_heading_is_recognized() {
        let cases = [
            ("## Task 1: Do it", "task heading 2"),
            ("### **Task 2** — more", "task heading 3"),
            ("## Task A: more", "task heading 2"),
            ("## Tasks", "heading 2"),
            ("## Task list", "heading 2"),
            ("# Plan", "heading 1"),
        ];
        for (text, expected) in cases {
            assert_eq!(names(text), [expected], "{text:?}");
        }
        assert_eq!(names("####### Task 1\n#hash"), Vec::<String>::new());
    }
}
