//! Words, with their quotes and expansions.

use super::super::syntax::Word;
use super::{Parser, parse};

impl<'a> Parser<'a> {
    /// A word; `None` also if there is none.
    pub(super) fn word(&mut self) -> Option<Word> {
        let start = self.at;
        let (mut text, mut quoted) = (String::new(), false);
        while let Some(c) = self.peek() {
            match c {
                '\\' if self.sees("\\\n") => self.at += 2,
                '\\' => {
                    self.at += 1;
                    text.extend(self.peek());
                    self.at += self.peek().map_or(0, char::len_utf8);
                    quoted = true;
                }
                '\'' => {
                    let length = self.rest()[1..].find('\'')?;
                    text.push_str(&self.rest()[1..=length]);
                    self.at += length + 2;
                    quoted = true;
                }
                '"' => {
                    self.double_quoted(&mut text)?;
                    quoted = true;
                }
                '$' | '`' => self.expansion(&mut text)?,
                '<' | '>' if self.rest()[1..].starts_with('(') && text.is_empty() => {
                    self.at += 2;
                    self.needs_bash = true;
                    self.substitution()?;
                }
                '(' if text.ends_with('=') && self.at > start => self.array(&mut text)?,
                '(' if self.is_in_path() => {
                    let close = self.at + self.rest().find(')')?;
                    self.escapes.as_mut()?.extend([self.at, close]);
                    text.push_str(&self.text[self.at..=close]);
                    self.at = close + 1;
                }
                '(' if self.at > start && is_name(&text) => break,
                '(' => return None,
                _ if c.is_whitespace() || ";&|)<>".contains(c) => break,
                _ => {
                    text.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
        self.end = self.at;
        (self.at > start).then_some(Word { text, quoted, range: start..self.at })
    }

    fn array(&mut self, text: &mut String) -> Option<()> {
        self.at += 1;
        self.needs_bash = true;
        loop {
            self.newlines();
            if self.take(")") {
                text.push_str("()");
                return Some(());
            }
            self.word()?;
        }
    }

    /// Whether the parenthesis here begins the name of a directory, as in `app/(group)/page.tsx`.
    pub(super) fn is_in_path(&self) -> bool {
        if self.escapes.is_none() {
            return false;
        }
        let rest = &self.rest()[1..];
        let name = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c))).unwrap_or(rest.len());
        let closed = name > 0 && rest[name..].starts_with(')');
        let behind = rest.get(name + 1..).unwrap_or("");
        let before = &self.text[..self.at];
        let begins = before.is_empty() || before.ends_with([' ', '"']);
        let is_path = before.ends_with('/') || (begins && behind.starts_with('/'));
        closed && is_path && (behind.is_empty() || behind.starts_with(['/', ' ', '\n', ';', '&', '|']))
    }

    fn double_quoted(&mut self, text: &mut String) -> Option<()> {
        self.at += 1;
        loop {
            match self.peek()? {
                '"' => {
                    self.at += 1;
                    return Some(());
                }
                '\\' => {
                    self.at += 1;
                    let c = self.peek()?;
                    if !"$`\"\\\n".contains(c) {
                        text.push('\\');
                    }
                    text.push(c);
                    self.at += c.len_utf8();
                }
                '$' | '`' => self.expansion(text)?,
                c => {
                    text.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
    }

    /// `$name`, `${ … }`, `$( … )`, `$(( … ))`, `$' … '`, backticks; as it is written.
    fn expansion(&mut self, text: &mut String) -> Option<()> {
        let start = self.at;
        if self.take("`") {
            let inner = self.take_through('`')?.replace("\\`", "`");
            // What is in backticks has escapes of its own; that it is no script is a matter for the shell.
            self.backticked.extend(parse(&inner));
        } else if self.sees("$((") && self.is_arithmetic() {
            self.at += 1;
            self.arithmetic()?;
        } else if self.take("$(") {
            self.substitution()?;
        } else if self.take("${") {
            self.parameter()?;
        } else if self.take("$'") {
            self.needs_bash = true;
            self.take_through('\'')?;
        } else {
            self.at += 1;
        }
        text.push_str(&self.text[start..self.at]);
        Some(())
    }

    /// Takes everything up to a mark without a backslash before it; the text before the mark.
    fn take_through(&mut self, mark: char) -> Option<&'a str> {
        let rest = self.rest();
        let mut escaped = false;
        let (end, _) = rest.char_indices().find(|&(_, c)| {
            let found = c == mark && !escaped;
            escaped = c == '\\' && !escaped;
            found
        })?;
        self.at += end + mark.len_utf8();
        Some(&rest[..end])
    }

    /// The rest of `$( … )`.
    fn substitution(&mut self) -> Option<()> {
        let script = self.script(&[])?;
        self.take(")").then_some(())?;
        self.substituted.push(script);
        Some(())
    }

    /// The rest of `${ … }`.
    fn parameter(&mut self) -> Option<()> {
        self.deeper()?;
        let mut ignored = String::new();
        loop {
            match self.peek()? {
                '}' => {
                    self.at += 1;
                    self.depth -= 1;
                    return Some(());
                }
                '\\' => {
                    self.at += 1;
                    self.at += self.peek()?.len_utf8();
                }
                '"' => self.double_quoted(&mut ignored)?,
                '\'' => self.at += self.rest()[1..].find('\'')? + 2,
                '$' | '`' => self.expansion(&mut ignored)?,
                c => self.at += c.len_utf8(),
            }
        }
    }
}

pub(super) fn is_name(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}
