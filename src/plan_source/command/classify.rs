//! Which lines of a plan are commands.
//!
//! A gate that is none fails every attempt, so where a line may be prose it is: a word too many for the agent to read
//! costs nothing.

use super::endless::is_endless;
use super::vocabulary::{OUTCOMES, PROSE, TOOLS, VERDICTS, WORDS, is_in};

use crate::shell::{Kind, MAX_SCRIPT, Word, is_search, parse};

/// The words of a line that may be prose; `None`: its quotes do not match.
pub(in crate::plan_source) fn words(line: &str) -> Option<Vec<Word>> {
    let (mut words, mut quote) = (Vec::new(), None);
    let new = |at: usize| Word { text: String::new(), quoted: false, range: at..at };
    let mut word = new(0);
    let mut chars = line.char_indices();
    while let Some((at, c)) = chars.next() {
        match (c, quote) {
            ('\\', open) if open != Some('\'') => word.text.extend(chars.next().map(|(_, c)| c)),
            (c, Some(open)) if c == open => quote = None,
            (c, Some(_)) => word.text.push(c),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.quoted = true;
            }
            (c, None) if c.is_whitespace() => {
                if word.quoted || !word.text.is_empty() {
                    word.range.end = at;
                    words.push(std::mem::replace(&mut word, new(at)));
                }
                word.range.start = at + c.len_utf8();
            }
            (c, None) => word.text.push(c),
        }
    }
    if word.quoted || !word.text.is_empty() {
        word.range.end = line.len();
        words.push(word);
    }
    quote.is_none().then_some(words)
}

/// Whether a line of plain text is a command beyond doubt.
pub(in crate::plan_source) fn is_plain_command(line: &str) -> bool {
    if line.len() > MAX_SCRIPT {
        return false;
    }
    let Some(words) = words(line) else { return false };
    let program = words.iter().position(|word| word.quoted || !is_assignment(&word.text));
    let Some((first, rest)) = program.and_then(|at| words[at..].split_first()) else { return false };
    let known = is_in(TOOLS, first.text.as_str()) || is_program_path(&first.text);
    if first.quoted || !known || !closes_test(&first.text, rest) || is_endless(line) || !rest.iter().all(free_of_prose)
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
pub(in crate::plan_source) fn is_syntax(script: &str) -> bool {
    let script = parse(script).unwrap_or_default();
    let first = script.lists.first().and_then(|list| list.pipelines.first()).map(|(_, pipeline)| &pipeline.commands[0]);
    first.is_some_and(|command| match &command.kind {
        Kind::Simple => command.words.first().is_some_and(|word| is_assignment(&word.text)),
        Kind::Branches { .. } | Kind::Loop { .. } | Kind::Group { subshell: false, .. } => true,
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

pub(in crate::plan_source) fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
            && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    })
}

/// Whether what a plan marks as a command (`<automated>`, backticks, a fence) can be one.
pub(in crate::plan_source) fn may_be_command(text: &str) -> bool {
    let first_line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let Some(line) = first_line else { return false };
    if text.len() > MAX_SCRIPT || tells_verdict(line) {
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
    if lone {
        return is_program_path(line) || is_word_of_shell(line);
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

/// One word alone is a program's name only where no file or symbol is called like that.
fn is_word_of_shell(word: &str) -> bool {
    is_in(TOOLS, word) || word.contains('=')
}

fn ends_sentence(line: &str) -> bool {
    line.strip_suffix('.').is_some_and(|rest| rest.ends_with(|c: char| c.is_alphabetic()))
}

/// Four plain words in a row, or an outcome told outside of quotes.
fn reads_like_prose(line: &str) -> bool {
    let Some(words) = words(line) else { return false };
    let plain = |word: &Word| !word.quoted && word.text.chars().all(|c| c.is_alphabetic());
    let told = words.iter().filter(|word| plain(word) && is_in(OUTCOMES, word.text.as_str())).count();
    words.windows(4).any(|four| four.iter().all(plain)) || told >= 2
}

/// Whether a line says what a command is to show: `grep x file confirms it`.
fn tells_verdict(line: &str) -> bool {
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

/// Whether a line in `<automated>` is a call of a program that nobody here has heard of: short, and in no way prose.
pub(in crate::plan_source) fn may_be_call(text: &str) -> bool {
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
        && !tells_verdict(line)
        && !is_placeholder(line)
}

/// The command before a remark like ` — no errors`, and the remark.
pub(in crate::plan_source) fn without_remark(line: &str) -> (&str, &str) {
    if line.len() > MAX_SCRIPT {
        return (line, "");
    }
    let parts = |at: usize, mark: &str| (line[..at].trim_end(), line[at + mark.len()..].trim());
    let (mut first, mut last) = ([None; 3], None);
    let marks = [" — ", " – ", " → "];
    let mut quote = None;
    let mut chars = line.char_indices();
    while let Some((at, c)) = chars.next() {
        match (c, quote) {
            ('\\', open) if open != Some('\'') => {
                chars.next();
            }
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(c),
            (' ', None) => {
                let rest = &line[at..];
                if let Some(mark) = marks.iter().position(|mark| rest.starts_with(mark)) {
                    first[mark] = first[mark].or(Some(at));
                } else if rest.starts_with(" -- ") {
                    last = Some(at);
                }
            }
            _ => {}
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
    let told = words.iter().any(|word| is_in(OUTCOMES, word.trim_end_matches(['.', ','])));
    words.len() > 1 && !technical && (told || words.len() > 3)
}

#[cfg(test)]
mod tests;
