//! A shell script taken apart.
//!
//! The grammar is that of POSIX with what people write for bash: `[[ … ]]`, `(( … ))`, `<( … )`, `<<<`, arrays.

mod words;

use words::is_name;

use super::syntax::{Command, Kind, Link, List, Pipeline, Script, Word, edited};

/// The longest script that is taken apart, in bytes.
pub const MAX_SCRIPT: usize = 8_000;

/// How deep commands may be nested.
const MAX_DEPTH: usize = 64;

/// Takes a script apart. `None`: no shell would take it, or it is too long.
pub fn parse(text: &str) -> Option<Script> {
    let mut parser = Parser::new(text)?;
    let mut script = parser.script(&[])?;
    script.needs_bash = parser.needs_bash;
    (parser.at == text.len() && parser.pending.is_empty()).then_some(script)
}

/// `text` with the parentheses escaped that are part of a path, as in `app/(group)/page.tsx`; `None`: also then no
/// shell would take it.
pub fn with_literal_parentheses(text: &str) -> Option<String> {
    let mut parser = Parser::new(text)?;
    parser.escapes = Some(Vec::new());
    parser.script(&[])?;
    if parser.at != text.len() || !parser.pending.is_empty() {
        return None;
    }
    let escapes = parser.escapes.unwrap_or_default().into_iter();
    Some(edited(text, escapes.map(|at| (at..at, "\\".to_owned())).collect()))
}

#[derive(Default)]
struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// Here-documents that begin behind the next line end: what ends each, and whether tabs may stand before that.
    pending: Vec<(String, bool)>,
    /// Where backslashes are missing; `None`: parentheses are never part of a word.
    escapes: Option<Vec<usize>>,
    substituted: Vec<Script>,
    backticked: Vec<Script>,
    needs_bash: bool,
    end: usize,
}

/// Words that only end something, where a command may begin.
const CLOSING: [&str; 9] = ["then", "do", "done", "fi", "else", "elif", "esac", "}", "]]"];

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Option<Self> {
        (text.len() <= MAX_SCRIPT && !text.contains('\0')).then(|| Self { text, ..Self::default() })
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn sees(&self, what: &str) -> bool {
        self.rest().starts_with(what)
    }

    fn take(&mut self, what: &str) -> bool {
        let found = self.sees(what);
        self.at += if found { what.len() } else { 0 };
        found
    }

    /// Skips blanks, continued lines and comments.
    fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\r') => self.at += 1,
                Some('\\') if self.sees("\\\n") => self.at += 2,
                Some('#') => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                _ => return,
            }
        }
    }

    /// Takes a line end and the here-documents behind it.
    fn newline(&mut self) -> bool {
        if !self.take("\n") {
            return false;
        }
        while !self.pending.is_empty() {
            let (end, tabs) = self.pending.remove(0);
            let mut lines = self.rest().split_inclusive('\n');
            let closed = lines.by_ref().map(|line| {
                self.at += line.len();
                let line = line.trim_end_matches('\n');
                if tabs { line.trim_start_matches('\t') == end } else { line == end }
            });
            if !closed.into_iter().any(|is_end| is_end) {
                // A shell takes what is left, with a warning; no author meant that.
                self.pending.push((end, tabs));
                return true;
            }
        }
        true
    }

    fn newlines(&mut self) {
        loop {
            self.blanks();
            if !self.newline() {
                return;
            }
        }
    }

    /// The reserved word here.
    fn reserved(&self) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c: char| c.is_whitespace() || ";&|()<>\"'`$\\".contains(c)).unwrap_or(rest.len());
        &rest[..length]
    }

    fn word_is(&self, words: &[&str]) -> bool {
        words.contains(&self.reserved())
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.reserved() == word;
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn expect_word(&mut self, word: &str) -> Option<()> {
        self.newlines();
        self.take_word(word).then_some(())
    }

    fn deeper(&mut self) -> Option<()> {
        self.depth += 1;
        (self.depth <= MAX_DEPTH).then_some(())
    }

    /// Commands up to the end of the text, a `)`, `;;`, or one of `ends` where a command would begin.
    fn script(&mut self, ends: &[&str]) -> Option<Script> {
        self.deeper()?;
        let mut script = Script::default();
        loop {
            self.newlines();
            if self.peek().is_none_or(|c| c == ')') || self.sees(";;") || self.word_is(ends) {
                break;
            }
            let list = self.list()?;
            script.lists.push(list);
            self.blanks();
            if self.sees(";;") || self.take(";") || self.newline() {
                continue;
            }
            let ended = script.lists.last().is_some_and(|list| list.background);
            if !ended && self.peek().is_some_and(|c| c != ')') {
                return None;
            }
        }
        self.depth -= 1;
        Some(script)
    }

    fn list(&mut self) -> Option<List> {
        let mut pipelines = vec![(Link::First, self.pipeline()?)];
        loop {
            self.blanks();
            let link = if self.take("&&") {
                Link::And
            } else if self.take("||") {
                Link::Or
            } else {
                let background = !self.sees("&>") && self.take("&");
                return Some(List { pipelines, background });
            };
            self.newlines();
            pipelines.push((link, self.pipeline()?));
        }
    }

    fn pipeline(&mut self) -> Option<Pipeline> {
        let start = self.at;
        let mut negated = false;
        while self.word_is(&["!", "time"]) {
            negated ^= self.sees("!");
            self.at += self.reserved().len();
            self.blanks();
        }
        let mut commands = vec![self.command()?];
        loop {
            self.blanks();
            self.needs_bash |= self.sees("|&");
            if self.sees("||") || !(self.take("|&") || self.take("|")) {
                break;
            }
            self.newlines();
            commands.push(self.command()?);
        }
        let end = commands.last()?.range.end;
        Some(Pipeline { negated, commands, range: start..end })
    }

    fn command(&mut self) -> Option<Command> {
        self.deeper()?;
        let start = self.at;
        let outer = (std::mem::take(&mut self.substituted), std::mem::take(&mut self.backticked));
        let (kind, words, mut writes) = self.bare_command()?;
        if !matches!(kind, Kind::Simple) || words.first().is_some_and(|word| word.text == "[[") {
            self.end = self.at;
            loop {
                self.blanks();
                match self.redirection()? {
                    Some(writing) => writes |= writing,
                    None => break,
                }
            }
        }
        self.depth -= 1;
        let substituted = std::mem::replace(&mut self.substituted, outer.0);
        let backticked = std::mem::replace(&mut self.backticked, outer.1);
        Some(Command { kind, range: start..self.end, words, writes, substituted, backticked })
    }

    fn bare_command(&mut self) -> Option<(Kind, Vec<Word>, bool)> {
        let word = self.reserved();
        let kind = match word {
            _ if self.sees("((") && self.is_arithmetic() => {
                self.arithmetic()?;
                self.needs_bash = true;
                Kind::Arithmetic
            }
            _ if self.take("(") => {
                let script = self.script(&[])?;
                (self.take(")") && !script.lists.is_empty()).then_some(Kind::Group { subshell: true, script })?
            }
            "{" => {
                self.at += 1;
                let script = self.script(&["}"])?;
                self.expect_word("}")?;
                (!script.lists.is_empty()).then_some(Kind::Group { subshell: false, script })?
            }
            "if" => self.branches()?,
            "while" | "until" => {
                self.at += word.len();
                let conditions = vec![self.script(&["do"])?];
                Kind::Control { conditions, bodies: vec![self.do_done()?], is_loop: true }
            }
            "for" | "select" => self.for_loop()?,
            "case" => self.case()?,
            "function" => {
                self.needs_bash = true;
                self.at += word.len();
                self.blanks();
                self.word()?;
                self.blanks();
                self.at += if self.sees("()") { 2 } else { 0 };
                Kind::Function { body: self.body()? }
            }
            "[[" => return Some((Kind::Simple, self.test()?, false)),
            _ if CLOSING.contains(&word) => return None,
            _ => return self.simple(),
        };
        Some((kind, Vec::new(), false))
    }

    fn is_arithmetic(&self) -> bool {
        let line = self.rest().lines().next().unwrap_or("");
        line.contains("))")
    }

    fn arithmetic(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        for (at, c) in self.rest().char_indices() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.at += at + 1;
                return Some(());
            }
        }
        None
    }

    fn branches(&mut self) -> Option<Kind> {
        let (mut conditions, mut bodies) = (Vec::new(), Vec::new());
        self.at += "if".len();
        loop {
            conditions.push(self.script(&["then"])?);
            self.expect_word("then")?;
            bodies.push(self.script(&["elif", "else", "fi"])?);
            self.newlines();
            if self.take_word("elif") {
                continue;
            }
            if self.take_word("else") {
                bodies.push(self.script(&["fi"])?);
            }
            self.expect_word("fi")?;
            let any_empty = conditions.iter().chain(&bodies).any(|script| script.lists.is_empty());
            return (!any_empty).then_some(Kind::Control { conditions, bodies, is_loop: false });
        }
    }

    fn do_done(&mut self) -> Option<Script> {
        self.expect_word("do")?;
        let body = self.script(&["done"])?;
        self.expect_word("done")?;
        (!body.lists.is_empty()).then_some(body)
    }

    fn for_loop(&mut self) -> Option<Kind> {
        self.at += self.reserved().len();
        self.blanks();
        if self.sees("((") {
            self.needs_bash = true;
            self.arithmetic()?;
        } else {
            self.word()?;
            self.newlines();
            if self.take_word("in") {
                loop {
                    self.blanks();
                    if self.peek().is_none_or(|c| c == ';' || c == '\n') {
                        break;
                    }
                    self.word()?;
                }
            }
        }
        self.blanks();
        self.take(";");
        Some(Kind::Control { conditions: Vec::new(), bodies: vec![self.do_done()?], is_loop: true })
    }

    fn case(&mut self) -> Option<Kind> {
        self.at += "case".len();
        self.blanks();
        self.word()?;
        self.expect_word("in")?;
        let mut bodies = Vec::new();
        loop {
            self.newlines();
            if self.take_word("esac") {
                return Some(Kind::Control { conditions: Vec::new(), bodies, is_loop: false });
            }
            self.take("(");
            loop {
                self.blanks();
                self.word()?;
                self.blanks();
                if !self.take("|") {
                    break;
                }
            }
            self.take(")").then_some(())?;
            bodies.push(self.script(&["esac"])?);
            self.newlines();
            if !(self.take(";;&") || self.take(";;") || self.take(";&") || self.word_is(&["esac"])) {
                return None;
            }
        }
    }

    /// The body of a function: a command, treated as a separate script.
    fn body(&mut self) -> Option<Script> {
        self.newlines();
        let command = self.command()?;
        let pipeline = Pipeline { negated: false, range: command.range.clone(), commands: vec![command] };
        let list = List { pipelines: vec![(Link::First, pipeline)], background: false };
        Some(Script { lists: vec![list], needs_bash: false })
    }

    /// `[[ … ]]`, in which `&&`, `<` and parentheses are words.
    fn test(&mut self) -> Option<Vec<Word>> {
        let mut words = Vec::new();
        self.needs_bash = true;
        loop {
            self.newlines();
            let start = self.at;
            let operators = ["&&", "||", "(", ")", "<", ">", "|"];
            if let Some(operator) = operators.into_iter().find(|operator| self.sees(operator)) {
                self.at += operator.len();
                words.push(Word { text: operator.to_owned(), quoted: false, range: start..self.at });
                continue;
            }
            let word = self.word()?;
            let closed = word.text == "]]" && !word.quoted;
            words.push(word);
            if closed {
                let behind = self.peek().is_none_or(|c| c.is_whitespace() || ";&|)>".contains(c));
                return (behind && words.len() > 2).then_some(words);
            }
        }
    }

    fn simple(&mut self) -> Option<(Kind, Vec<Word>, bool)> {
        let (mut words, mut writes, mut redirected): (Vec<Word>, bool, bool) = (Vec::new(), false, false);
        loop {
            self.blanks();
            if let Some(writing) = self.redirection()? {
                (writes, redirected) = (writes | writing, true);
                continue;
            }
            match self.peek() {
                None | Some('\n' | ';' | '&' | '|' | ')') => break,
                Some('(') if words.len() == 1 && !words[0].quoted && is_name(&words[0].text) => {
                    self.at += 1;
                    self.blanks();
                    self.take(")").then_some(())?;
                    return Some((Kind::Function { body: self.body()? }, Vec::new(), false));
                }
                Some('(') if !self.is_in_path() => return None,
                Some(_) => words.push(self.word()?),
            }
        }
        (!words.is_empty() || redirected).then_some((Kind::Simple, words, writes))
    }

    /// Takes a redirection, if there is one here; whether it writes to a file.
    fn redirection(&mut self) -> Option<Option<bool>> {
        let rest = self.rest();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let operators = ["<<<", "<<-", "<<", "<>", "<&", ">&", ">>", ">|", "&>>", "&>", "<", ">"];
        let behind = &rest[digits..];
        let Some(operator) = operators.into_iter().find(|operator| behind.starts_with(operator)) else {
            return Some(None);
        };
        if (operator.starts_with('&') && digits > 0) || ["<(", ">("].iter().any(|open| behind.starts_with(open)) {
            return Some(None);
        }
        self.needs_bash |= operator == "<<<" || operator.starts_with('&');
        self.at += digits + operator.len();
        self.blanks();
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && self.rest()[digits..].starts_with(['<', '>']) {
            return None;
        }
        let target = self.word()?;
        if operator == "<<" || operator == "<<-" {
            self.pending.push((target.text.clone(), operator == "<<-"));
        }
        let to_file = operator.contains('>') && operator != ">&" && target.text != "/dev/null";
        Some(Some(to_file))
    }
}

#[cfg(test)]
mod tests;
