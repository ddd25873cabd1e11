//! Whether a commit has what a lane must have (SPEC §3.2). Pure: the paths come in as data, the texts when asked for.
//!
//! What plans say is written by people and models: a path may be a directory, a glob, a file with a remark behind it, or
//! no path at all. What cannot be looked for is left to a reader, never called missing.

use lanewright_model::ownership::glob;
use lanewright_model::text::headline;
use lanewright_model::{Artifact, Demand, KeyLink, MustHaves, TreeEntry, TreeEntryKind, Verdict};
use regex::{Regex, RegexBuilder};

use super::exports::{Exported, exported};

/// The largest file that is looked into.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// How many files are looked into for one demand.
const MAX_FILES: usize = 300;

/// How much is looked through for one lane, in bytes, each once for everything that is looked for in it.
const MAX_WORK: usize = 1 << 30;

/// How much of one demand's texts is kept in memory.
const MAX_TEXT: usize = 16 << 20;

/// How many names of one artifact are looked for.
const MAX_EXPORTS: usize = 100;

const MAX_PATH: usize = 1024;

/// How much of what the plan says is repeated, in characters.
const SHOWN: usize = 160;

/// What a file holds, as far as it can be looked into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileText {
    /// Its text.
    Text(String),
    /// It is no text.
    Binary,
    /// It is larger than [`MAX_FILE_BYTES`].
    TooLarge,
    /// It cannot be read, for this reason.
    Unreadable(String),
}

/// Looks for everything that is asked for among `entries`. `text_of` reads a file, `uncommitted` says why a file of
/// that path is not committed, where that is known.
pub fn check(
    asked: &MustHaves,
    entries: &[TreeEntry],
    text_of: &mut dyn FnMut(&TreeEntry) -> FileText,
    uncommitted: &dyn Fn(&str) -> Option<String>,
) -> Vec<Verdict> {
    let mut search = Search { entries, text_of, uncommitted, work_left: MAX_WORK };
    let mut verdicts: Vec<Verdict> = asked.truths.iter().map(|truth| truth_verdict(truth)).collect();
    verdicts.extend(asked.artifacts.iter().map(|artifact| search.artifact(artifact)));
    verdicts.extend(asked.key_links.iter().map(|link| search.key_link(link)));
    verdicts
}

fn truth_verdict(truth: &str) -> Verdict {
    Verdict {
        kind: Demand::Truth,
        about: shown(truth),
        asked: Vec::new(),
        holds: None,
        missing: false,
        why: Vec::new(),
    }
}

struct Search<'s> {
    entries: &'s [TreeEntry],
    text_of: &'s mut dyn FnMut(&TreeEntry) -> FileText,
    uncommitted: &'s dyn Fn(&str) -> Option<String>,
    work_left: usize,
}

/// What a path of the plan leads to.
enum Located<'e> {
    Entries(Vec<&'e TreeEntry>),
    Missing,
    /// It cannot be looked for, for this reason.
    Elsewhere(String),
}

#[derive(Default)]
struct Texts<'e> {
    read: Vec<(&'e str, String)>,
    /// Why not all could be looked into.
    unread: Option<String>,
}

/// What is found out about one demand.
#[derive(Default)]
struct Findings {
    missing: bool,
    broken: Vec<String>,
    open: Vec<String>,
    remarks: Vec<String>,
}

impl Findings {
    fn note(&mut self, found: bool, unread: Option<&String>, complaint: impl FnOnce() -> String) {
        match unread {
            _ if found => {}
            None => self.broken.push(complaint()),
            Some(reason) if !self.open.contains(reason) => self.open.push(reason.clone()),
            Some(_) => {}
        }
    }

    fn verdict(self, kind: Demand, about: String, asked: Vec<String>) -> Verdict {
        let holds = match (self.broken.is_empty(), self.open.is_empty()) {
            (false, _) => Some(false),
            (true, true) => Some(true),
            (true, false) => None,
        };
        Verdict {
            kind,
            about,
            asked,
            holds,
            missing: self.missing,
            why: [self.broken, self.open, self.remarks].concat(),
        }
    }
}

impl<'s> Search<'s> {
    fn artifact(&mut self, artifact: &Artifact) -> Verdict {
        let contains = artifact.contains.as_deref().filter(|pattern| !pattern.is_empty());
        let mut asked: Vec<String> =
            artifact.min_lines.map(|lines| format!("at least {lines} lines")).into_iter().collect();
        asked.extend(contains.map(|pattern| format!("contains `{}`", shown(pattern))));
        asked.extend(artifact.exports.iter().take(MAX_EXPORTS).map(|name| format!("exports `{}`", shown(name))));
        let mut findings = Findings::default();
        match self.locate(&artifact.path, Strictness::Exact) {
            Located::Missing => self.missing(artifact, !asked.is_empty(), &mut findings),
            Located::Elsewhere(reason) => findings.open.push(reason),
            Located::Entries(_) if asked.is_empty() => {}
            Located::Entries(entries) => self.inspect(artifact, contains, &entries, &mut findings),
        }
        findings.verdict(Demand::Artifact, shown(&artifact.path), asked)
    }

    /// Nothing is at the artifact's path; `has_content`: more is asked of it than to be there.
    fn missing(&mut self, artifact: &Artifact, has_content: bool, findings: &mut Findings) {
        let path = before_remark(&artifact.path);
        if let Some(reason) = (self.uncommitted)(path) {
            return findings.open.push(reason);
        }
        findings.broken.push("missing file".to_owned());
        let other = self.other_place(path);
        findings.missing = other.is_none() && names_one_file(&artifact.path, has_content);
        findings.remarks.extend(other.map(|other| format!("perhaps it is {other}")));
    }

    /// The one file that may be meant by a path that leads nowhere: its path ends the same way, or it has the same name
    /// and is below the same directory of the repository's root. In the plans that were looked at, such a path is an
    /// error of the plan, not of the work.
    fn other_place(&mut self, path: &str) -> Option<&'s str> {
        self.work_left = self.work_left.saturating_sub(64 * self.entries.len());
        if self.work_left == 0 {
            return None;
        }
        let (first, name) = (path.split('/').next(), path.rsplit('/').next());
        let alike = |entry: &&'s TreeEntry| {
            let other = entry.path.as_str();
            other.rsplit('/').next() == name
                && (other.split('/').next() == first || other.strip_suffix(path).is_some_and(|it| it.ends_with('/')))
        };
        let shared = |other: &str| other.rsplit('/').zip(path.rsplit('/')).take_while(|(a, b)| a == b).count();
        let alike: Vec<&str> = self.entries.iter().filter(alike).map(|entry| entry.path.as_str()).collect();
        let most = alike.iter().map(|other| shared(other)).max()?;
        let mut closest = alike.into_iter().filter(|other| shared(other) == most);
        closest.next().filter(|_| closest.next().is_none())
    }

    fn inspect(
        &mut self,
        artifact: &Artifact,
        contains: Option<&str>,
        entries: &[&'s TreeEntry],
        findings: &mut Findings,
    ) {
        let names = &artifact.exports[..artifact.exports.len().min(MAX_EXPORTS)];
        let texts = self.read(entries, 2 + names.len());
        let unread = texts.unread.as_ref();
        if let Some(wanted) = artifact.min_lines {
            let lines: usize = texts.read.iter().map(|(_, text)| text.lines().count()).sum();
            findings.note(lines >= wanted as usize, unread, || format!("{lines} of {wanted} lines"));
        }
        if let Some(pattern) = contains.map(Pattern::new) {
            findings.note(pattern.is_in(&texts), unread, || pattern.complaint("it"));
        }
        for name in names {
            let answers: Vec<Exported> = texts.read.iter().map(|(path, text)| exported(name, path, text)).collect();
            if answers.contains(&Exported::NoName) {
                findings.remarks.push(format!("`{}` is no name and was not looked for", shown(name)));
            } else {
                let found = answers.contains(&Exported::Yes);
                findings.note(found, unread, || format!("export `{}` not found", shown(name)));
            }
        }
        if names.len() < artifact.exports.len() {
            findings.remarks.push(format!("only the first {MAX_EXPORTS} exports were looked for"));
        }
    }

    fn key_link(&mut self, link: &KeyLink) -> Verdict {
        let pattern = link.pattern.as_deref().filter(|pattern| !pattern.is_empty()).map(Pattern::new);
        let from = shown(&link.from);
        let about = if link.to.is_empty() { from.clone() } else { format!("{from} -> {}", shown(&link.to)) };
        let asked = pattern.iter().map(|pattern| format!("`{}` in {from}", shown(pattern.text))).collect();
        let mut findings = Findings::default();
        match (self.locate(&link.from, Strictness::WithRemarks), pattern) {
            (Located::Missing, _) => findings.broken.push(format!("`{from}` is missing")),
            (Located::Elsewhere(reason), _) => findings.open.push(reason),
            (Located::Entries(_), None) => findings.open.push("no pattern says what to look for".to_owned()),
            (Located::Entries(entries), Some(pattern)) => {
                let texts = self.read(&entries, 2);
                findings.note(pattern.is_in(&texts), texts.unread.as_ref(), || pattern.complaint(&from));
            }
        }
        findings.verdict(Demand::KeyLink, about, asked)
    }

    /// Reads files; `times` is how often each is gone through.
    fn read(&mut self, entries: &[&'s TreeEntry], times: usize) -> Texts<'s> {
        let mut texts = Texts::default();
        let mut kept = 0;
        for entry in entries {
            let text = match entry.kind {
                TreeEntryKind::Link => Err("it is a symbolic link, which is not followed".to_owned()),
                TreeEntryKind::Submodule => Err("it is a submodule, which is not looked into".to_owned()),
                TreeEntryKind::File if texts.read.len() >= MAX_FILES || kept >= MAX_TEXT || self.work_left == 0 => {
                    Err("there is more than can be looked through".to_owned())
                }
                TreeEntryKind::File => match (self.text_of)(entry) {
                    FileText::Text(text) => Ok(text),
                    FileText::Binary => Err(format!("{} is binary and was not looked into", entry.path)),
                    FileText::TooLarge => Err(format!("{} is too large to look into", entry.path)),
                    FileText::Unreadable(reason) => Err(format!("{} cannot be read: {reason}", entry.path)),
                },
            };
            match text {
                Ok(text) => {
                    kept += text.len();
                    self.work_left = self.work_left.saturating_sub(text.len().saturating_mul(times));
                    texts.read.push((&entry.path, text));
                }
                Err(reason) => texts.unread = texts.unread.or(Some(reason)),
            }
        }
        texts
    }

    /// Finds what the plan calls `path`; a remark may stand behind it.
    fn locate(&mut self, path: &str, strictness: Strictness) -> Located<'s> {
        let whole = tidy(path);
        let before_remark = before_remark(path);
        let first_word = tidy(whole.split_whitespace().next().unwrap_or_default());
        if whole.is_empty() || first_word.len() > MAX_PATH {
            return Located::Elsewhere("it names no file".to_owned());
        }
        if is_outside(first_word) {
            return Located::Elsewhere("it is outside of the repository".to_owned());
        }
        for candidate in [whole, before_remark, first_word] {
            let found = self.entries_at(candidate);
            if !found.is_empty() {
                return Located::Entries(found);
            }
        }
        let below = |entry: &&TreeEntry| entry.kind == TreeEntryKind::Submodule && is_below(first_word, &entry.path);
        if let Some(submodule) = self.entries.iter().find(below) {
            return Located::Elsewhere(format!("it is in the submodule {}", submodule.path));
        }
        match strictness {
            Strictness::Exact if whole == first_word || before_remark == first_word => Located::Missing,
            _ if !looks_like_a_path(first_word) => Located::Elsewhere("it names no file".to_owned()),
            Strictness::Exact => Located::Missing,
            Strictness::WithRemarks => self.called(first_word),
        }
    }

    /// The file itself, everything below the directory, or what the glob matches.
    fn entries_at(&mut self, path: &str) -> Vec<&'s TreeEntry> {
        if path.is_empty() || path.len() > MAX_PATH {
            return Vec::new();
        }
        let entries = self.entries;
        let named: Vec<&TreeEntry> =
            entries.iter().filter(|entry| entry.path == path || is_below(&entry.path, path)).collect();
        if !named.is_empty() || !path.contains(['*', '?', '[', '{']) || self.work_left == 0 {
            return named;
        }
        // A directory may be called `[slug]`: brackets are tried as they are first.
        let literal = path.replace('[', "\u{0}").replace(']', "[]]").replace('\u{0}', "[[]");
        for pattern in [literal.as_str(), path] {
            let Ok(glob) = glob(pattern) else { continue };
            let matcher = glob.compile_matcher();
            self.work_left = self.work_left.saturating_sub(64 * entries.len());
            let matched: Vec<&TreeEntry> = entries.iter().filter(|entry| matcher.is_match(&entry.path)).collect();
            if !matched.is_empty() {
                return matched;
            }
        }
        Vec::new()
    }

    /// Files of that name wherever they are: `from` often says `Page.tsx` and no more.
    fn called(&self, name: &str) -> Located<'s> {
        let ends_so = |entry: &&TreeEntry| entry.path.strip_suffix(name).is_some_and(|rest| rest.ends_with('/'));
        let found: Vec<&TreeEntry> = self.entries.iter().filter(ends_so).collect();
        if found.is_empty() || name.contains('/') { Located::Missing } else { Located::Entries(found) }
    }
}

/// How a path of the plan is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strictness {
    /// It is a path from the repository's root.
    Exact,
    /// It may be a name alone, or words about something that is no file.
    WithRemarks,
}

fn tidy(path: &str) -> &str {
    let path = path.trim().trim_matches(['`', '"', '\'']).trim();
    path.trim_start_matches("./").trim_end_matches('/')
}

/// The path without the remark in parentheses behind it.
fn before_remark(path: &str) -> &str {
    tidy(tidy(path).split(" (").next().unwrap_or_default())
}

/// Whether a path cannot mean a directory or several files. A name without an extension is a file's if it begins with a
/// capital letter (`Makefile`) or something is asked of its text.
fn names_one_file(written: &str, has_content: bool) -> bool {
    let is_directory = written.trim().trim_end_matches(['`', '"', '\'']).ends_with('/');
    let path = before_remark(written);
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_file = has_content || name.contains('.') || name.starts_with(char::is_uppercase);
    is_file && !is_directory && !path.contains(['*', '?', '{', ' '])
}

fn is_outside(path: &str) -> bool {
    path.starts_with(['/', '~', '\\']) || path.contains("://") || path.split('/').any(|part| part == "..")
}

fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

fn looks_like_a_path(word: &str) -> bool {
    let is_extension =
        |text: &str| (1..=8).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let has_extension = word.rsplit_once('.').is_some_and(|(_, extension)| is_extension(extension));
    !word.contains(['(', ')', '<', '>']) && (word.contains('/') || has_extension)
}

fn shown(text: &str) -> String {
    headline(text, SHOWN)
}

/// What is looked for in a text: the words themselves, or what they mean as a regular expression.
struct Pattern<'p> {
    text: &'p str,
    /// Also with `\|` for `|`, as `grep` has it; empty: it is no regular expression.
    meanings: Vec<Regex>,
}

impl<'p> Pattern<'p> {
    fn new(text: &'p str) -> Self {
        let compile = |text: &str| RegexBuilder::new(text).multi_line(true).size_limit(1 << 21).build().ok();
        let mut meanings: Vec<Regex> = compile(text).into_iter().collect();
        if text.contains(r"\|") {
            meanings.extend(compile(&text.replace(r"\|", "|")));
        }
        Self { text, meanings }
    }

    fn is_in(&self, texts: &Texts<'_>) -> bool {
        let matches = |text: &str| text.contains(self.text) || self.meanings.iter().any(|regex| regex.is_match(text));
        texts.read.iter().any(|(_, text)| matches(text))
    }

    fn complaint(&self, place: &str) -> String {
        let remark = if self.meanings.is_empty() { " (taken literally, as it is no regular expression)" } else { "" };
        format!("`{}` not found in {place}{remark}", shown(self.text))
    }
}

#[cfg(test)]
mod tests;
