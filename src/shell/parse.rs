//! A shell script as its parts: lists, pipelines, commands, words, each with its place in the text.
//!
//! The grammar is that of POSIX with what people write for bash: `[[ … ]]`, `(( … ))`, `<( … )`, `<<<`, arrays.

use std::ops::Range;

/// The longest script that is taken apart, in bytes.
pub const MAX_SCRIPT: usize = 8_000;

/// How deep commands may be nested.
const MAX_DEPTH: usize = 64;

/// Commands one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// In the order of the text.
    pub lists: Vec<List>,
    /// It holds what only bash takes; known of the whole script.
    pub needs_bash: bool,
}

/// Pipelines between `;` or line ends, joined by `&&` and `||`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// Each with what joins it to those before it.
    pub pipelines: Vec<(Link, Pipeline)>,
    /// It ends in `&`.
    pub background: bool,
}

/// What joins a pipeline to those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// It is the first of its list.
    First,
    /// `&&`
    And,
    /// `||`
    Or,
}

/// Commands between `|`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// It begins with `!`.
    pub negated: bool,
    /// At least one.
    pub commands: Vec<Command>,
    /// From its first word, or its `!`, to the end of its last command.
    pub range: Range<usize>,
}

/// A command, simple or compound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What it is.
    pub kind: Kind,
    /// With its redirections.
    pub range: Range<usize>,
    /// The words of a simple command, assignments included; those of `[[ … ]]`.
    pub words: Vec<Word>,
    /// It writes to a file.
    pub writes: bool,
    /// What its words run: `$( … )`, `<( … )`.
    pub substituted: Vec<Script>,
    /// What its words run in backticks; with places in that text, not in the script's.
    pub backticked: Vec<Script>,
}

/// Simple commands and compound ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A program with its arguments, or assignments.
    Simple,
    /// `( … )`, whose `exit` leaves only that, and `{ … }`.
    Group {
        /// It is `( … )`.
        subshell: bool,
        /// What it holds.
        script: Script,
    },
    /// `if`, `case`.
    Branches {
        /// What is asked.
        conditions: Vec<Script>,
        /// What may be done.
        bodies: Vec<Script>,
    },
    /// `for`, `while`, `until`.
    Loop {
        /// What is asked before each turn.
        condition: Option<Script>,
        /// What is done in each turn.
        body: Script,
    },
    /// `name() { … }`
    Function {
        /// What it does when it is called.
        body: Script,
    },
    /// `(( … ))`
    Arithmetic,
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Without its quotes.
    pub text: String,
    /// Part of it is in quotes or behind a backslash.
    pub quoted: bool,
    /// Its place.
    pub range: Range<usize>,
}

impl Script {
    /// All commands: nested ones, too, and those of substitutions; and whether each runs in the background.
    pub fn commands(&self) -> Vec<(&Command, bool)> {
        let mut found = Vec::new();
        self.collect(false, &mut found);
        found
    }

    fn collect<'a>(&'a self, background: bool, found: &mut Vec<(&'a Command, bool)>) {
        for list in &self.lists {
            let background = background || list.background;
            for command in list.pipelines.iter().flat_map(|(_, pipeline)| &pipeline.commands) {
                found.push((command, background));
                let inner = command.substituted.iter().chain(&command.backticked);
                inner.for_each(|script| script.collect(background, found));
                command.scripts().for_each(|script| script.collect(background, found));
            }
        }
    }
}

impl Command {
    /// What a simple command runs.
    pub fn program(&self) -> Option<&str> {
        self.arguments().next().filter(|_| self.kind == Kind::Simple).map(|word| word.text.as_str())
    }

    /// The scripts that a compound command is made of.
    pub fn scripts(&self) -> impl Iterator<Item = &Script> {
        let (first, second): (&[Script], &[Script]) = match &self.kind {
            Kind::Simple | Kind::Arithmetic => (&[], &[]),
            Kind::Group { script, .. } | Kind::Function { body: script } => (std::slice::from_ref(script), &[]),
            Kind::Branches { conditions, bodies } => (conditions, bodies),
            Kind::Loop { condition, body } => {
                (condition.as_ref().map(std::slice::from_ref).unwrap_or_default(), std::slice::from_ref(body))
            }
        };
        first.iter().chain(second)
    }
}

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
    let (mut escaped, mut copied) = (String::new(), 0);
    for at in parser.escapes.unwrap_or_default() {
        escaped.push_str(&text[copied..at]);
        escaped.push('\\');
        copied = at;
    }
    escaped.push_str(&text[copied..]);
    Some(escaped)
}

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
    /// Where the last word, redirection or closing word ended.
    end: usize,
}

/// Words that only end something, where a command may begin.
const CLOSING: [&str; 9] = ["then", "do", "done", "fi", "else", "elif", "esac", "}", "]]"];

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Option<Self> {
        let parser = Self {
            text,
            at: 0,
            depth: 0,
            pending: Vec::new(),
            escapes: None,
            substituted: Vec::new(),
            backticked: Vec::new(),
            needs_bash: false,
            end: 0,
        };
        (text.len() <= MAX_SCRIPT && !text.contains('\0')).then_some(parser)
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

    /// The reserved word that stands here.
    fn reserved(&self) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c: char| c.is_whitespace() || ";&|()<>\"'`$\\".contains(c)).unwrap_or(rest.len());
        &rest[..length]
    }

    fn word_is(&self, words: &[&str]) -> bool {
        words.contains(&self.reserved())
    }

    fn expect_word(&mut self, word: &str) -> Option<()> {
        self.newlines();
        (self.reserved() == word).then(|| self.at += word.len())
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
                let condition = Some(self.script(&["do"])?);
                Kind::Loop { condition, body: self.do_done()? }
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
            if self.word_is(&["elif"]) {
                self.at += "elif".len();
                continue;
            }
            if self.word_is(&["else"]) {
                self.at += "else".len();
                bodies.push(self.script(&["fi"])?);
            }
            self.expect_word("fi")?;
            let any_empty = conditions.iter().chain(&bodies).any(|script| script.lists.is_empty());
            return (!any_empty).then_some(Kind::Branches { conditions, bodies });
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
            if self.word_is(&["in"]) {
                self.at += "in".len();
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
        Some(Kind::Loop { condition: None, body: self.do_done()? })
    }

    fn case(&mut self) -> Option<Kind> {
        self.at += "case".len();
        self.blanks();
        self.word()?;
        self.expect_word("in")?;
        let mut bodies = Vec::new();
        loop {
            self.newlines();
            if self.word_is(&["esac"]) {
                self.at += "esac".len();
                return Some(Kind::Branches { conditions: Vec::new(), bodies });
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

    /// What a function does: a command, which stands for a script of its own.
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

    /// Takes a redirection, if one stands here; whether it writes to a file.
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

    /// A word; `None` also where none stands.
    fn word(&mut self) -> Option<Word> {
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

    /// Whether the parenthesis that stands here begins the name of a directory, as in `app/(group)/page.tsx`.
    fn is_in_path(&self) -> bool {
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
            let rest = self.rest();
            let mut escaped = false;
            let end = rest.char_indices().find(|&(_, c)| {
                let found = c == '`' && !escaped;
                escaped = c == '\\' && !escaped;
                found
            });
            let inner = rest[..end?.0].replace("\\`", "`");
            self.at += end?.0 + 1;
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
            let mut escaped = false;
            let end = self.rest().char_indices().find(|&(_, c)| {
                let found = c == '\'' && !escaped;
                escaped = c == '\\' && !escaped;
                found
            });
            self.at += end?.0 + 1;
        } else {
            self.at += 1;
        }
        text.push_str(&self.text[start..self.at]);
        Some(())
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

fn is_name(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}

#[cfg(test)]
mod tests;
