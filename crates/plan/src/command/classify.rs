//! Which lines of a plan are commands.
//!
//! A gate that is none fails every attempt, so where a line may be prose it is: a word too many for the agent to read
//! costs nothing.

use lanewright_agents::shell::{Kind, MAX_SCRIPT, Word, is_search, parse};

use super::never_exits::never_exits;
use super::vocabulary::{OUTCOMES, PROSE, TOOLS, VERDICTS, WORDS, is_assignment, is_in};

/// A character of a line that may be prose, as a shell would read it.
pub(super) struct Character {
    pub(super) at: usize,
    pub(super) c: char,
    /// The quote that is open behind it.
    pub(super) quote: Option<char>,
    /// It quotes others, and is no part of a word.
    quotes: bool,
    /// It is neither quoted nor quotes.
    pub(super) plain: bool,
}

/// The characters of `line`, in which `quotes` and backslashes quote others, and whether every quote is closed.
pub(super) fn characters(line: &str, quotes: &str) -> (Vec<Character>, bool) {
    let (mut quote, mut escaped) = (None, false);
    let read = |(at, c)| {
        let literal = std::mem::take(&mut escaped);
        let closes = !literal && quote == Some(c);
        let opens = !literal && quote.is_none() && quotes.contains(c);
        escaped = !literal && c == '\\' && quote != Some('\'');
        quote = if opens { Some(c) } else { quote.filter(|_| !closes) };
        let quotes = opens || closes || escaped;
        Character { at, c, quote, quotes, plain: !literal && !quotes && quote.is_none() }
    };
    let found = line.char_indices().map(read).collect();
    (found, quote.is_none())
}

/// The words of a line that may be prose; `None`: its quotes do not match.
pub(crate) fn words(line: &str) -> Option<Vec<Word>> {
    let (characters, closed) = characters(line, "\"'");
    let mut words = Vec::new();
    let is_end = |read: &Character| read.plain && read.c.is_whitespace();
    for part in characters.split(is_end) {
        let quoted = part.iter().any(|read| read.quotes && read.c != '\\');
        let text: String = part.iter().filter(|read| !read.quotes).map(|read| read.c).collect();
        if let (Some(first), Some(last)) = (part.first(), part.last())
            && (quoted || !text.is_empty())
        {
            words.push(Word { text, quoted, range: first.at..last.at + last.c.len_utf8() });
        }
    }
    closed.then_some(words)
}

/// Whether a line of plain text is a command beyond doubt.
pub(crate) fn is_plain_command(line: &str) -> bool {
    if line.len() > MAX_SCRIPT {
        return false;
    }
    let Some(words) = words(line) else { return false };
    let program = words.iter().position(|word| word.quoted || !is_assignment(&word.text));
    let Some((first, rest)) = program.and_then(|at| words[at..].split_first()) else { return false };
    let known = is_in(TOOLS, first.text.as_str()) || is_program_path(&first.text);
    if first.quoted || !known || !closes_test(&first.text, rest) || never_exits(line) || !rest.iter().all(free_of_prose)
    {
        return false;
    }
    if is_in(WORDS, first.text.as_str()) && !takes_arguments(&first.text, rest) {
        return false;
    }
    let verdict = |word: &Word| word.text.strip_suffix(';').is_some_and(|text| !word.quoted && is_in(OUTCOMES, text));
    if rest.iter().any(verdict) {
        return false;
    }
    let plain = |word: &Word| !word.quoted && word.text.chars().all(|c| c.is_ascii_lowercase());
    !rest.get(1..).unwrap_or_default().windows(3).any(|three| three.iter().all(plain))
}

fn leaves_test_open(words: &[Word]) -> bool {
    words.split_first().is_some_and(|(first, rest)| !closes_test(&first.text, rest))
}

/// Whether a script begins with what only a shell has: a loop, a branch, `{ … }`, `name=$( … )`.
pub(crate) fn is_syntax(script: &str) -> bool {
    let script = parse(script).unwrap_or_default();
    script.lists.first().map(|list| &list.first().commands[0]).is_some_and(|command| match &command.kind {
        Kind::Simple => command.words.first().is_some_and(|word| is_assignment(&word.text)),
        Kind::Control { .. } | Kind::Group { subshell: false, .. } => true,
        _ => false,
    })
}

/// Whether `[` is the program: its `]` is there, and only more commands come behind it.
fn closes_test(first: &str, rest: &[Word]) -> bool {
    let close = match first {
        "[" => "]",
        "[[" => "]]",
        _ => return true,
    };
    let at = rest.iter().position(|word| !word.quoted && word.text.trim_end_matches(';') == close);
    let goes_on = |at: usize| {
        rest[at].text.ends_with(';') || rest.get(at + 1).is_none_or(|word| word.text.starts_with(['&', '|', ';', '>']))
    };
    at.is_some_and(|at| at > 0 && goes_on(at))
}

fn free_of_prose(word: &Word) -> bool {
    if word.quoted {
        return true;
    }
    let text = word.text.as_str();
    let lower = text.to_ascii_lowercase();
    let marks = ["—", "–", "->", "=>", "→", "--", "(", "..."];
    let ends = text.len() > 1 && text.ends_with(['.', ',', ':', '?']) && text.starts_with(char::is_alphabetic);
    let dots = text.ends_with("/...");
    !(is_in(OUTCOMES, lower.as_str())
        || (marks.contains(&text) && text != "--")
        || (text.starts_with('(') && text.len() > 1)
        || (ends && !dots)
        || !text.is_ascii())
}

/// Whether a program whose name is a word is followed by what it takes.
fn takes_arguments(program: &str, rest: &[Word]) -> bool {
    let Some(first) = rest.first() else { return matches!(program, "make" | "true") };
    let text = first.text.as_str();
    match program {
        "go" => ["build", "test", "vet", "run", "mod", "fmt", "generate", "list", "tool", "install"].contains(&text),
        "make" | "just" | "next" | "stack" => rest.len() == 1 || rest.iter().all(|word| looks_technical(&word.text)),
        "echo" => first.quoted,
        _ => first.quoted || looks_technical(text),
    }
}

fn looks_technical(text: &str) -> bool {
    text.contains(['/', '-', '.', '$', '=', '!', '*', '|', '&'])
}

/// Whether a program is known, or named by its path.
pub(super) fn is_word_of_script(program: &str) -> bool {
    is_in(TOOLS, program) || is_program_path(program)
}

/// `./gradlew`, `.venv/bin/python`, `scripts/check.sh`.
fn is_program_path(word: &str) -> bool {
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "./_-".contains(c));
    let name = word.rsplit('/').next().unwrap_or("");
    let runs = word.starts_with("./") || word.contains("/bin/") || word.contains("/Scripts/") || name.ends_with(".sh");
    plain && word.contains('/') && runs && !name.is_empty() && !name.ends_with(".md")
}

/// Whether what a plan marks as a command (`<automated>`, backticks, a fence) can be one.
pub(crate) fn may_be_command(text: &str) -> bool {
    let first_line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let Some(line) = first_line else { return false };
    if text.len() > MAX_SCRIPT || states_verdict(line) {
        return false;
    }
    if is_placeholder(line) || words(line).is_some_and(|words| leaves_test_open(&words)) {
        return false;
    }
    let first = line.split_whitespace().next().unwrap_or("");
    let technical = looks_technical(line) || line.contains(['"', '\'', '>', '<', ';', '`', '_']);
    if is_in(TOOLS, first) {
        return !is_in(WORDS, first) || technical || line.split_whitespace().count() <= 2;
    }
    let name = first.trim_start_matches(['(', '{', '!', '"', '\'']);
    let program = name.chars().all(|c| c.is_ascii_alphanumeric() || "./_-+=$:{}@\\\"'~".contains(c));
    let sentence = line.starts_with(|c: char| c.is_ascii_uppercase()) && !is_assignment(first);
    let lone = line.split_whitespace().count() == 1;
    if !program || sentence {
        return sentence && program && first.contains(['/', '\\']) && technical;
    }
    // One word alone is a program's name only where no file or symbol is called like that.
    if lone {
        return is_program_path(line) || line.contains('=');
    }
    is_program_path(first) || is_assignment(first) || (technical && !reads_like_prose(line) && !ends_sentence(line))
}

/// `TODO`, `MISSING — no test yet`.
fn is_placeholder(line: &str) -> bool {
    let words = ["MISSING", "TODO", "TBD", "N/A", "NONE", "MANUAL", "(NONE", "HUMAN", "VISUAL", "PENDING", "-"];
    let begins = |word: &&str| line.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    words.iter().any(|word| begins(word) && ends_word(&line[word.len()..]))
}

fn ends_word(rest: &str) -> bool {
    !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '/')
}

fn ends_sentence(line: &str) -> bool {
    line.strip_suffix('.').is_some_and(|rest| rest.ends_with(|c: char| c.is_alphabetic()))
}

/// Four plain words in a row, or an outcome stated outside of quotes.
fn reads_like_prose(line: &str) -> bool {
    let Some(words) = words(line) else { return false };
    let plain = |word: &Word| !word.quoted && word.text.chars().all(|c| c.is_alphabetic());
    let outcomes = words.iter().filter(|word| plain(word) && is_in(OUTCOMES, word.text.as_str())).count();
    words.windows(4).any(|four| four.iter().all(plain)) || outcomes >= 2
}

/// Whether a line says what a command is to show: `grep x file confirms it`.
fn states_verdict(line: &str) -> bool {
    let script = parse(line).unwrap_or_default();
    script.commands().into_iter().any(|(command, _)| {
        let words = &command.words;
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        if texts.first().is_none_or(|first| is_in("echo printf [ test", first)) {
            return false;
        }
        let searches = is_search(texts[0]);
        let pattern = texts.iter().skip(1).position(|text| !text.starts_with('-')).map(|at| at + 1);
        (1..words.len()).any(|at| {
            let argument = takes_value(texts[at - 1]) || (searches && pattern == Some(at));
            !words[at].quoted && !argument && is_in(VERDICTS, texts[at])
        })
    })
}

/// `-k`, `-name`, `--filter`: what follows belongs to the option.
fn takes_value(option: &str) -> bool {
    let short = option.starts_with('-') && !option.starts_with("--");
    short || is_in("--grep --filter --test --testNamePattern --bin --example --package --name --tests", option)
}

/// Whether a line in `<automated>` calls a program that is not known here: short, and clearly not prose.
pub(crate) fn may_be_call(text: &str) -> bool {
    let line = text.trim();
    if line.len() > 400 {
        return false;
    }
    let Some(words) = words(line).filter(|words| (2..=12).contains(&words.len()) && !line.contains('\n')) else {
        return false;
    };
    let first = words[0].text.as_str();
    let name = first.starts_with(|c: char| c.is_ascii_alphabetic())
        && first.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c));
    let capital = first.starts_with(|c: char| c.is_ascii_uppercase());
    let technical = words[1..].iter().any(|word| word.quoted || looks_technical(&word.text));
    let prose = |word: &Word| {
        let lower = word.text.to_ascii_lowercase();
        !word.quoted && (is_in(PROSE, lower.trim_end_matches([',', '.', ':'])) || !free_of_prose(word))
    };
    name && !words[0].quoted
        && !is_in(TOOLS, first)
        && !words.iter().any(prose)
        && (!capital || technical)
        && !line.ends_with(['.', ':', ',', '?'])
        && !reads_like_prose(line)
        && !states_verdict(line)
        && !is_placeholder(line)
}

/// The command before a remark like ` — no errors`, and the remark.
pub(crate) fn without_remark(line: &str) -> (&str, &str) {
    if line.len() > MAX_SCRIPT {
        return (line, "");
    }
    let parts = |at: usize, mark: &str| (line[..at].trim_end(), line[at + mark.len()..].trim());
    let (mut first, mut last) = ([None; 3], None);
    let marks = [" — ", " – ", " → "];
    for read in characters(line, "\"'").0.iter().filter(|read| read.plain && read.c == ' ') {
        let rest = &line[read.at..];
        if let Some(mark) = marks.iter().position(|mark| rest.starts_with(mark)) {
            first[mark] = first[mark].or(Some(read.at));
        } else if rest.starts_with(" -- ") {
            last = Some(read.at);
        }
    }
    if let Some((at, mark)) = first.iter().zip(marks).find_map(|(at, mark)| Some(((*at)?, mark))) {
        return parts(at, mark);
    }
    // What another ` -- ` follows is not spoken.
    last.map(|at| parts(at, " -- ")).filter(|(_, remark)| is_spoken(remark)).unwrap_or((line, ""))
}

/// Whether words behind ` -- ` are for a reader, not for the program.
fn is_spoken(remark: &str) -> bool {
    let words: Vec<&str> = remark.split_whitespace().collect();
    let technical = words.iter().any(|word| looks_technical(word) && !word.ends_with('.'));
    let outcomes = words.iter().any(|word| is_in(OUTCOMES, word.trim_end_matches(['.', ','])));
    words.len() > 1 && !technical && (outcomes || words.len() > 3)
}

#[cfg(test)]
mod tests;
