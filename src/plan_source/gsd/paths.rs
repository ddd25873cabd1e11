//! Paths as plans write them: notes cut off, brackets of routes kept apart from globs, prose left out.

use std::ops::Range;

use crate::plan_source::lower::glob_fault;

/// What an entry of a list of files is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// A path or glob below the repository's root, as the plan writes it.
    Path(String),
    /// Nothing: `none`, `(no files)`.
    Nothing,
    /// Not to be used, and why.
    Unusable(&'static str),
}

/// Files without an ending.
const BARE_NAMES: [&str; 10] = [
    "Makefile",
    "Dockerfile",
    "LICENSE",
    "Procfile",
    "Gemfile",
    "Rakefile",
    "CODEOWNERS",
    "Justfile",
    "justfile",
    "Vagrantfile",
];

/// Words that say that there is no file.
const NOTHING: [&str; 10] = ["none", "n/a", "na", "tbd", "nothing", "null", "[]", "-", "--", "—"];

/// What `text`, an item of a list, names.
pub(super) fn entry(text: &str) -> Entry {
    let text = unmarked(text);
    let bare = text.trim_end_matches(['.', ':']).to_ascii_lowercase();
    let note_only = text.starts_with('(') && text.ends_with(')') && text.contains(char::is_whitespace);
    if text.is_empty() || text.starts_with('#') || note_only || NOTHING.contains(&bare.as_str()) {
        return Entry::Nothing;
    }
    if NOTHING.iter().any(|word| word.len() > 2 && bare.strip_prefix(word).is_some_and(is_remark)) {
        return Entry::Nothing;
    }
    let Some(path) = without_note(text) else { return Entry::Unusable("it reads like prose") };
    usable(path)
}

fn is_remark(rest: &str) -> bool {
    rest.starts_with(" (") || rest.starts_with(" -") || rest.starts_with(" —")
}

/// A list item without its bullet, its quotes and what stands behind a backticked name.
fn unmarked(text: &str) -> &str {
    let mut text = text.trim();
    for bullet in ["- [ ] ", "- [x] ", "- ", "* ", "+ ", "• "] {
        text = text.strip_prefix(bullet).unwrap_or(text);
    }
    text = text.trim().trim_start_matches("**").trim_end_matches("**").trim();
    for quote in ['`', '"', '\''] {
        if let Some((inside, _)) = text.strip_prefix(quote).and_then(|rest| rest.split_once(quote)) {
            return inside.trim();
        }
    }
    text
}

/// The path without a remark behind it. `None`: it is no path.
fn without_note(text: &str) -> Option<&str> {
    let word_end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, rest) = (&text[..word_end], text[word_end..].trim());
    let word = word.trim_end_matches([',', ';', ':']);
    if rest.is_empty() {
        return is_path_like(word, true).then_some(word);
    }
    if rest.starts_with(['(', '#', '—', '–', '[', '<', '→'])
        || rest.starts_with("- ")
        || rest.starts_with("-- ")
        || rest.starts_with("-> ")
        || rest.starts_with("=> ")
        || rest.starts_with("& ")
    {
        return is_path_like(word, true).then_some(word);
    }
    if has_extension(word) && word.contains('/') {
        return Some(word);
    }
    // `My App/Main View.swift`: the whole is a path where it ends like one and reads like nothing else.
    let prose = [", ", ". ", ": ", " and ", " or ", " the ", " in ", " for "].iter().any(|part| text.contains(part));
    let last = text.rsplit(char::is_whitespace).next().unwrap_or("");
    (!prose && text.contains('/') && has_extension(last) && text.split_whitespace().count() <= 6).then_some(text)
}

/// Whether a word can be a path; with `alone` nothing else tells that it is meant as one.
fn is_path_like(word: &str, alone: bool) -> bool {
    let name = word.trim_end_matches('/');
    let speaks = name.chars().any(char::is_alphanumeric) || word.contains('*');
    let simple = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    speaks && (word.contains(['/', '.', '*', '\\']) || BARE_NAMES.contains(&name) || (alone && simple))
}

fn has_extension(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    name.rsplit_once('.').is_some_and(|(_, end)| {
        (1..=10).contains(&end.len()) && end.chars().all(|c| c.is_ascii_alphanumeric() || c == '*')
    })
}

/// Whether a name without any directory is one of a file; `Mailer.send` is one of a method.
pub(super) fn is_file_name(name: &str) -> bool {
    const ENDINGS: &str = "c cc cfg cjs conf cpp cs css csv dart entitlements env ex example exs gd go godot gradle graphql \
        h hpp html ini java js json jsx kt lock lua m md mdx mjs mm php plist prisma properties proto py rb rs sass scala \
        scss sh sql svelte swift tf toml tres ts tscn tsx txt vue xcconfig xml yaml yml zig";
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| crate::plan_source::command::is_in(ENDINGS, ending)) || BARE_NAMES.contains(&name)
}

/// The path as git names it, or why it cannot be one.
fn usable(path: &str) -> Entry {
    if path.contains('\0') {
        return Entry::Unusable("it holds a NUL character");
    }
    let mut path = path.replace('\\', "/");
    for prefix in ["res://", "@./", "./"] {
        path = path.strip_prefix(prefix).map_or(path.clone(), str::to_owned);
    }
    if let Some(rest) = path.strip_prefix("@.planning/") {
        path = format!(".planning/{rest}");
    }
    if path.contains("://") {
        return Entry::Unusable("it is an address, no path");
    }
    let drive = path.len() > 2 && path.as_bytes()[0].is_ascii_alphabetic() && path[1..].starts_with(":/");
    if path.starts_with(['/', '~', '$']) || drive {
        return Entry::Unusable("it is no path below the repository's root");
    }
    if path.starts_with("@/") {
        return Entry::Unusable("it is a name of the program's, no path");
    }
    if path.split('/').any(|part| part == "..") {
        return Entry::Unusable("it leads out of the repository");
    }
    let path = without_place(&path);
    if path.trim_matches(['/', '.']).is_empty() {
        return Entry::Unusable("it names no file");
    }
    Entry::Path(path.to_owned())
}

/// `src/a.ts:12-40` and `src/a.ts#L10` without the lines.
fn without_place(path: &str) -> &str {
    let path = path.split("#L").next().unwrap_or(path);
    match path.split_once(':') {
        Some((name, lines)) if lines.starts_with(|c: char| c.is_ascii_digit()) => name,
        _ => path,
    }
}

/// The glob that owns `path`; `None` where no plan owns it, or nothing can.
pub(super) fn glob(path: &str) -> Option<String> {
    if path == ".planning" || path.starts_with(".planning/") {
        return None;
    }
    let mut glob = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(c) = rest.chars().next() {
        let class = rest.starts_with('[').then(|| class_length(rest)).flatten();
        match (c, class) {
            (_, Some(length)) => {
                glob.push_str(&rest[..length]);
                rest = &rest[length..];
                continue;
            }
            ('[', None) => glob.push_str("[[]"),
            (']', None) => glob.push_str("[]]"),
            _ => glob.push(c),
        }
        rest = &rest[c.len_utf8()..];
    }
    if glob.ends_with('/') {
        glob.push_str("**");
    }
    if glob_fault(&glob).is_some() {
        glob = globset::escape(path);
    }
    glob_fault(&glob).is_none().then_some(glob)
}

/// How long a class of characters like `[0-9]` at the beginning of `text` is; `[slug]` is the name of a route.
fn class_length(text: &str) -> Option<usize> {
    let inside = &text[1..text.find(']')?];
    let range = |part: &[u8]| part[1] == b'-' && part[0].is_ascii_alphanumeric() && part[2].is_ascii_alphanumeric();
    let ranges = inside.len().is_multiple_of(3) && inside.len() <= 9 && inside.as_bytes().chunks(3).all(range);
    (ranges && !inside.is_empty()).then_some(inside.len() + 2)
}

/// The items of a text that lists files, with their places in it.
pub(super) fn items(text: &str) -> Vec<(Range<usize>, &str)> {
    let mut items = Vec::new();
    let mut line_start = 0;
    for line in text.split('\n') {
        let balanced = is_balanced(line);
        let (mut depth, mut ticked, mut from) = (0usize, false, 0);
        for (at, c) in line.char_indices() {
            match c {
                '`' => ticked = !ticked,
                '(' | '{' | '[' => depth += 1,
                ')' | '}' | ']' => depth = depth.saturating_sub(1),
                ',' | ';' if !balanced || (depth == 0 && !ticked) => {
                    push(&mut items, line_start, line, from..at);
                    from = at + 1;
                }
                _ => {}
            }
        }
        push(&mut items, line_start, line, from..line.len());
        line_start += line.len() + 1;
    }
    items
}

fn push<'a>(items: &mut Vec<(Range<usize>, &'a str)>, start: usize, line: &'a str, range: Range<usize>) {
    let text = &line[range.clone()];
    let trimmed = text.trim();
    if !trimmed.is_empty() {
        let begin = start + range.start + (text.len() - text.trim_start().len());
        items.push((begin..begin + trimmed.len(), trimmed));
    }
}

fn is_balanced(line: &str) -> bool {
    let count = |wanted: char| line.matches(wanted).count();
    count('(') == count(')') && count('{') == count('}') && count('[') == count(']') && count('`') % 2 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_paths_nothing_or_unusable() {
        let path = |text: &str| Entry::Path(text.to_owned());
        let cases = [
            ("src/a.rs", path("src/a.rs")),
            ("src/a.rs (new)", path("src/a.rs")),
            ("src/a.rs - extend the reader", path("src/a.rs")),
            ("src/a.rs — new", path("src/a.rs")),
            ("src/a.rs # later", path("src/a.rs")),
            ("`src/a.rs` and its tests", path("src/a.rs")),
            ("- \"docs/\"", path("docs/")),
            ("app/(shop)/[slug]/page.tsx", path("app/(shop)/[slug]/page.tsx")),
            ("app/(shop)/page.tsx (new)", path("app/(shop)/page.tsx")),
            ("src/**/*.css", path("src/**/*.css")),
            ("./src/a.rs", path("src/a.rs")),
            ("src\\win\\a.cs", path("src/win/a.cs")),
            ("src/a.ts:12-40", path("src/a.ts")),
            ("res://data/items.json", path("data/items.json")),
            ("My App/Main View.swift", path("My App/Main View.swift")),
            ("Makefile", path("Makefile")),
            ("tests", path("tests")),
            ("none", Entry::Nothing),
            ("None (checks only)", Entry::Nothing),
            ("(checks only, no file)", Entry::Nothing),
            ("# a remark", Entry::Nothing),
            ("", Entry::Nothing),
        ];
        for (text, expected) in cases {
            assert_eq!(entry(text), expected, "{text:?}");
        }
        let unusable = [
            "every file that mentions the old name",
            "~/notes.md",
            "/etc/hosts",
            "../other/a.rs",
            "C:/a/b.txt",
            "$HOME/a",
            "https://example.org/a",
            "a/\0b",
            "@/components/Button",
            "...",
            "./",
        ];
        for text in unusable {
            assert!(matches!(entry(text), Entry::Unusable(_)), "{text:?}: {:?}", entry(text));
        }
    }

    #[test]
    fn routes_are_names_and_globs_are_globs() {
        let cases = [
            ("app/[slug]/page.tsx", Some("app/[[]slug[]]/page.tsx")),
            ("app/[[...rest]]/x", Some("app/[[][[]...rest[]][]]/x")),
            ("logs/[0-9].txt", Some("logs/[0-9].txt")),
            ("src/**/*.ts", Some("src/**/*.ts")),
            ("src/{a,b}.ts", Some("src/{a,b}.ts")),
            ("src/{a.ts", Some("src/[{]a.ts")),
            ("docs/", Some("docs/**")),
            ("app/(shop)/page.tsx", Some("app/(shop)/page.tsx")),
            (".planning/STATE.md", None),
        ];
        for (path, expected) in cases {
            assert_eq!(glob(path).as_deref(), expected, "{path}");
        }
        let route = crate::model::ownership::Ownership::new(&[glob("app/[slug]/page.tsx").unwrap()]).unwrap();
        assert!(route.allows("app/[slug]/page.tsx") && !route.allows("app/s/page.tsx"));
    }

    #[test]
    fn lists_are_split_at_commas_outside_of_brackets() {
        let texts = |text| items(text).into_iter().map(|(_, item)| item).collect::<Vec<_>>();
        assert_eq!(texts("a.rs, b.rs (new, small)\n  - src/{x,y}.ts"), ["a.rs", "b.rs (new, small)", "- src/{x,y}.ts"]);
        assert_eq!(texts("a.rs (never closed, b.rs"), ["a.rs (never closed", "b.rs"]);
    }
}
