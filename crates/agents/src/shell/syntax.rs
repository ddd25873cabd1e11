//! A shell script as its parts: lists, pipelines, commands, words, each with its place in the text.

use std::ops::Range;

/// Lists in the order of the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    pub lists: Vec<List>,
    /// It holds what only bash takes; known of the whole script.
    pub needs_bash: bool,
}

/// Pipelines between `;` or line ends, joined by `&&` and `||`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    pub pipelines: Vec<(Link, Pipeline)>,
    /// It ends in `&`.
    pub background: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    First,
    /// `&&`
    And,
    /// `||`
    Or,
}

/// Commands between `|`; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// It begins with `!`.
    pub negated: bool,
    pub commands: Vec<Command>,
    /// From its first word, or its `!`, to the end of its last command.
    pub range: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub kind: Kind,
    /// With its redirections.
    pub range: Range<usize>,
    /// The words of a simple command, assignments included; those of `[[ … ]]`.
    pub words: Vec<Word>,
    pub writes: bool,
    /// What its words run: `$( … )`, `<( … )`.
    pub substituted: Vec<Script>,
    /// What its words run in backticks; with places in that text, not in the script's.
    pub backticked: Vec<Script>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Simple,
    /// `( … )`, whose `exit` leaves only that, and `{ … }`.
    Group {
        subshell: bool,
        script: Script,
    },
    /// `if`, `case`, `for`, `while`, `until`.
    Control {
        conditions: Vec<Script>,
        bodies: Vec<Script>,
        is_loop: bool,
    },
    /// `name() { … }`
    Function {
        body: Script,
    },
    /// `(( … ))`
    Arithmetic,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Without its quotes.
    pub text: String,
    /// Part of it is in quotes or behind a backslash.
    pub quoted: bool,
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
                let inner = command.substituted.iter().chain(&command.backticked).chain(command.scripts());
                inner.for_each(|script| script.collect(background, found));
            }
        }
    }

    /// The pipeline that decides whether the script succeeds.
    pub fn last_pipeline(&self) -> Option<&Pipeline> {
        self.lists.last().map(List::last)
    }
}

impl List {
    pub fn first(&self) -> &Pipeline {
        &self.pipelines[0].1
    }

    pub fn last(&self) -> &Pipeline {
        &self.pipelines[self.pipelines.len() - 1].1
    }

    pub fn range(&self) -> Range<usize> {
        self.first().range.start..self.last().range.end
    }
}

impl Command {
    /// What a simple command runs.
    pub fn program(&self) -> Option<&str> {
        self.arguments().next().filter(|_| self.kind == Kind::Simple).map(|word| word.text.as_str())
    }

    /// The words of a simple command without the assignments before its program.
    pub fn arguments(&self) -> impl Iterator<Item = &Word> {
        self.words.iter().skip_while(|word| is_assignment(&word.text))
    }

    /// The texts of [`Self::arguments`].
    pub fn texts(&self) -> Vec<&str> {
        self.arguments().map(|word| word.text.as_str()).collect()
    }

    /// The scripts that a compound command is made of.
    pub fn scripts(&self) -> impl Iterator<Item = &Script> {
        let (conditions, bodies): (&[Script], &[Script]) = match &self.kind {
            Kind::Simple | Kind::Arithmetic => (&[], &[]),
            Kind::Group { script, .. } | Kind::Function { body: script } => (&[], std::slice::from_ref(script)),
            Kind::Control { conditions, bodies, .. } => (conditions, bodies),
        };
        conditions.iter().chain(bodies)
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        begins && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Whether `word` is an option of single letters and one of `letters` is among them: `-rn` has `n`.
pub fn has_letter(word: &str, letters: &[char]) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains(letters)
}

/// `text` with each of the places, which do not overlap, replaced by its replacement.
pub fn edited(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(place, _)| place.start);
    let (mut whole, mut copied) = (String::with_capacity(text.len()), 0);
    for (place, new) in edits {
        whole.push_str(&text[copied..place.start]);
        whole.push_str(&new);
        copied = place.end;
    }
    whole + &text[copied..]
}
