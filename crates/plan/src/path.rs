//! Paths as plans write them, in lists of files and in prose, and the globs that own them.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::command::is_in;
use super::markdown::inline::{is_nothing, parts};
use super::markdown::{lines, trim, without_marker};
use super::validate::glob_fault;

/// Endings that distinguish a file from a symbol where there is no slash.
const ENDINGS: &str = "\
    bash bats bzl c cc cfg cjs clj cmake conf cpp cs css csv cts cypher d2 dart diff dot entitlements env ex example \
    exs fish gd go godot gql gradle graphql h hbs hcl hpp hs html ico in ini ipynb java jl jpg js json json5 jsonc \
    jsonl jsx kt kts less lock lua m map md mdx mjs mk ml mm mod mts nix patch php pl plist png po prisma properties \
    proto ps1 py pyi r rb rs rst sass sbt scala scss sh snap sol sql sum svelte svg swift tf tfvars toml tres ts tscn \
    tsv tsx txt vb vue webp xcconfig xml yaml yml zig zsh";

/// Names of files without an ending.
const NAMES: &str = "\
    BUILD Brewfile CHANGELOG CODEOWNERS Caddyfile Containerfile Dockerfile GNUmakefile Gemfile Jenkinsfile Justfile \
    LICENSE Makefile NOTICE Pipfile Procfile README Rakefile VERSION Vagrantfile WORKSPACE justfile makefile";

/// Whether the last part of a path is the name of a file; `Mailer.send` is one of a method.
pub(super) fn is_file_name(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, ending)| ending);
    is_in(NAMES, name)
        || ending.is_some_and(|ending| is_in(ENDINGS, ending.to_ascii_lowercase().trim_end_matches(['*', '}'])))
}

/// The items of a text that lists files, with their places in it: one on each line, or several with commas between them.
pub(super) fn items(text: &str) -> Vec<(Range<usize>, &str)> {
    let of_line = |line: super::markdown::Line<'_>| {
        let items = parts(line.text, &[',', ';']).into_iter();
        items.map(move |range| trim(text, line.start + range.start..line.start + range.end))
    };
    lines(text).flat_map(of_line).filter(|range| !range.is_empty()).map(|range| (range.clone(), &text[range])).collect()
}

/// The path that an item of a list of files names, without its remark; `None` where it says that there is no file.
///
/// # Errors
/// Why the item cannot be used.
pub(super) fn listed(item: &str) -> Result<Option<String>, &'static str> {
    let text = unmarked(item);
    if text.starts_with('#') || is_nothing(text) {
        return Ok(None);
    }
    below_root(without_remark(text).ok_or("it reads like prose")?).map(Some)
}

/// A list item without its marker, its quotes and the text after a quoted name.
fn unmarked(text: &str) -> &str {
    let text = without_marker(text);
    let text = text.trim_start_matches("**").trim_end_matches("**").trim();
    let quoted = |quote: char| text.strip_prefix(quote)?.split_once(quote);
    ['`', '"', '\''].into_iter().find_map(quoted).map_or(text, |(inside, _)| inside.trim())
}

/// The path without a remark behind it; `None` for prose.
fn without_remark(text: &str) -> Option<&str> {
    let (word, rest) = text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim()));
    let word = word.trim_end_matches([',', ';', ':']);
    let begins = |mark: &&str| rest.starts_with(*mark);
    if rest.is_empty() || ["(", "#", "—", "–", "[", "<", "→", "- ", "-- ", "-> ", "=> ", "& "].iter().any(begins)
    {
        let simple = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/');
        let speaks = word.contains(|c: char| c.is_alphanumeric() || c == '*');
        return (speaks && (word.contains(['/', '.', '*', '\\']) || word.chars().all(simple))).then_some(word);
    }
    if ENDING.is_match(word) && word.contains('/') {
        return Some(word);
    }
    // `My App/Main View.swift`: the whole is a path where it ends like one and reads like nothing else.
    let prose = [", ", ". ", ": ", " and ", " or ", " the ", " in ", " for "].iter().any(|part| text.contains(part));
    (!prose && text.contains('/') && ENDING.is_match(text) && text.split_whitespace().count() <= 6).then_some(text)
}

static ENDING: LazyLock<Regex> = pattern!(r"\.[A-Za-z0-9*]{1,10}$");

/// The path as git names it.
///
/// # Errors
/// Why it is not a path below the repository's root.
pub(super) fn below_root(path: &str) -> Result<String, &'static str> {
    if path.contains('\0') {
        return Err("it holds a NUL character");
    }
    let mut path = path.replace('\\', "/").replace("@.planning/", ".planning/");
    for prefix in ["res://", "@./", "./"] {
        path = path.strip_prefix(prefix).map_or(path.clone(), str::to_owned);
    }
    let drive = path.len() > 2 && path.as_bytes()[0].is_ascii_alphabetic() && path[1..].starts_with(":/");
    let why = if path.contains("://") {
        "it is an address, not a path"
    } else if path.starts_with(['/', '~', '$']) || drive {
        "it is not a path below the repository's root"
    } else if path.contains("${") {
        "it holds a variable"
    } else if path.starts_with("@/") {
        "it is an alias of the program, not a path"
    } else if path.split('/').any(|part| part == "..") {
        "it leads out of the repository"
    } else if path.trim_matches(['/', '.']).is_empty() {
        "it names no file"
    } else {
        return Ok(without_place(&path).to_owned());
    };
    Err(why)
}

/// `src/a.ts:12-40`, `src/a.ts#L10` and `tests/t.py::test_a` without the place in the file.
fn without_place(path: &str) -> &str {
    let cut = ["::", "#"].iter().filter_map(|mark| path.find(mark)).min().unwrap_or(path.len());
    let whole = &path[..cut];
    let is_place = |place: &str| place.bytes().all(|byte| byte.is_ascii_digit() || b"-,".contains(&byte));
    whole.rsplit_once(':').filter(|(_, place)| is_place(place)).map_or(whole, |(path, _)| path)
}

/// The path that a word of prose is, without a place in the file; `None` for a symbol.
pub(super) fn in_prose(word: &str) -> Option<&str> {
    let word = without_place(word.trim());
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !"\"'|;&=,!`\\".contains(c);
    if word.is_empty()
        || !word.chars().all(plain)
        || ["://", "()"].iter().any(|sign| word.contains(sign))
        || word.starts_with(['-', '$'])
    {
        return None;
    }
    let known = is_file_name(word.trim_end_matches('/'));
    let is_path = if word.contains('/') {
        // `@scope/package` and `f(x)/y` are names of something else, unless they end like a file.
        let scoped = word.starts_with('@') && word.matches('/').count() == 1;
        let called = word.contains('(') && !word.contains("/(") && !word.starts_with('(');
        known || !(scoped || called || word == "/")
    } else {
        // `.gitignore` and `.eslintrc.json`
        let dotted =
            |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') || name.contains('.');
        known
            || word == "**"
            || word.strip_prefix('.').is_some_and(|name| name.contains(char::is_alphanumeric) && dotted(name))
    };
    is_path.then_some(word)
}

/// `<run>` in `runs/<run>/a.json`.
static PLACEHOLDER: LazyLock<Regex> = pattern!("<[^>]*>");

/// The glob that owns a path: placeholders are any name, and brackets of routes stand for themselves.
///
/// # Errors
/// Why it cannot be owned.
pub(super) fn as_glob(path: &str) -> Result<String, &'static str> {
    let path = PLACEHOLDER.replace_all(&below_root(path)?, "*").into_owned();
    let path = if path.ends_with('/') { format!("{path}**") } else { path };
    let globs = [with_literal_names(&path), globset::escape(&path)];
    globs.into_iter().find(|glob| glob_fault(glob).is_none()).ok_or("it is not a valid glob, or too long")
}

/// Brackets and braces that are part of a name, like `[slug]` and `{id}`, as themselves.
fn with_literal_names(path: &str) -> String {
    let mut glob = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find(['[', ']', '{', '}']) {
        let (before, bracket) = rest.split_at(at);
        glob.push_str(before);
        let length = pattern_length(bracket).unwrap_or(0);
        if length == 0 {
            glob.push_str(&format!("[{}]", &bracket[..1]));
        }
        glob.push_str(&bracket[..length]);
        rest = &bracket[length.max(1)..];
    }
    glob + rest
}

/// How long the class `[0-9]` or the group `{a,b}` is that `text` begins with.
fn pattern_length(text: &str) -> Option<usize> {
    if text.starts_with('{') {
        let depth = text.bytes().scan(0i32, |depth, byte| {
            *depth += i32::from(byte == b'{') - i32::from(byte == b'}');
            Some(*depth)
        });
        let end = depth.take_while(|depth| *depth > 0).count();
        return text.get(..=end).filter(|group| group.contains(',')).map(str::len);
    }
    let inside = text.strip_prefix('[')?.split_once(']')?.0.as_bytes();
    let is_range =
        |part: &[u8]| matches!(part, [from, b'-', to] if from.is_ascii_alphanumeric() && to.is_ascii_alphanumeric());
    (1..=9).contains(&inside.len()).then_some(())?;
    inside.chunks(3).all(is_range).then_some(inside.len() + 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanewright_model::ownership::Ownership;

    #[test]
    fn listed_items_are_paths_none_or_errors() {
        let cases = [
            ("src/a.rs", "src/a.rs"),
            ("src/a.rs (new)", "src/a.rs"),
            ("src/a.rs - extend the reader", "src/a.rs"),
            ("src/a.rs — new", "src/a.rs"),
            ("src/a.rs # later", "src/a.rs"),
            ("`src/a.rs` and its tests", "src/a.rs"),
            ("- \"docs/\"", "docs/"),
            ("app/(shop)/[slug]/page.tsx", "app/(shop)/[slug]/page.tsx"),
            ("app/(shop)/page.tsx (new)", "app/(shop)/page.tsx"),
            ("src/**/*.css", "src/**/*.css"),
            ("./src/a.rs", "src/a.rs"),
            ("src\\win\\a.cs", "src/win/a.cs"),
            ("src/a.ts:12-40", "src/a.ts"),
            ("res://data/items.json", "data/items.json"),
            ("My App/Main View.swift", "My App/Main View.swift"),
            ("Makefile", "Makefile"),
            ("tests", "tests"),
        ];
        for (text, expected) in cases {
            assert_eq!(listed(text), Ok(Some(expected.to_owned())), "{text:?}");
        }
        for text in ["none", "None (checks only)", "(checks only, no file)", "# a remark", "", "..."] {
            assert_eq!(listed(text), Ok(None), "{text:?}");
        }
        let unusable = [
            "every file that mentions the old name",
            "~/notes.md",
            "/etc/hosts",
            "../other/a.rs",
            "C:/a/b.txt",
            "$HOME/a",
            "a/${B}/c",
            "https://example.org/a",
            "a/\0b",
            "@/components/Button",
            "./",
        ];
        for text in unusable {
            assert!(listed(text).is_err(), "{text:?}: {:?}", listed(text));
        }
    }

    #[test]
    fn lists_split_at_commas_outside_brackets() {
        let texts = |text| items(text).into_iter().map(|(_, item)| item).collect::<Vec<_>>();
        assert_eq!(texts("a.rs, b.rs (new, small)\n  - src/{x,y}.ts"), ["a.rs", "b.rs (new, small)", "- src/{x,y}.ts"]);
        assert_eq!(texts("a.rs (never closed, b.rs"), ["a.rs (never closed", "b.rs"]);
    }

    #[test]
    fn prose_words_are_paths_or_symbols() {
        for word in
            ["src/a.ts", "README.md", ".gitignore", ".eslintrc.json", "Makefile", "app/(x)/p.tsx", "docs/", "*.rs"]
        {
            assert_eq!(in_prose(word), Some(word));
        }
        assert_eq!(in_prose("tests/t.py::test_a"), Some("tests/t.py"));
        for symbol in
            ["Mailer.send", "@scope/package", "f(x)", "f()/y", "https://a/b.md", "a b.rs", "__all__", "..", "$X/a.rs"]
        {
            assert_eq!(in_prose(symbol), None, "{symbol}");
        }
    }

    #[test]
    fn as_glob_matches_intended_files() {
        let cases = [
            ("app/[slug]/page.tsx", "app/[slug]/page.tsx", "app/s/page.tsx"),
            ("app/[[...rest]]/a.ts", "app/[[...rest]]/a.ts", "app/./a.ts"),
            ("src/{a,b}.ts", "src/a.ts", "src/{a,b}.ts"),
            ("src/{a,{b,c}}.ts", "src/c.ts", "src/{b,c}.ts"),
            ("src/{a.ts", "src/{a.ts", "src/a.ts"),
            ("api/{id}/a.ts", "api/{id}/a.ts", "api/id/a.ts"),
            ("docs/", "docs/a/b.md", "docs2/a"),
            ("runs/<run>/v.json", "runs/7/v.json", "runs/7/8/v.json"),
            ("a[0-9a-f].rs", "a7.rs", "a[0-9a-f].rs"),
            ("x/a[b.rs", "x/a[b.rs", "x/ab.rs"),
            ("app/(shop)/page.tsx", "app/(shop)/page.tsx", "app/shop/page.tsx"),
        ];
        for (path, inside, outside) in cases {
            let globs = Ownership::new(&[as_glob(path).unwrap()]).unwrap();
            assert!(globs.allows(inside), "{path} {inside}");
            assert!(!globs.allows(outside), "{path} {outside}");
        }
        for path in ["/etc/x", "~/x", "a/../b", "$HOME/x.md"] {
            assert!(as_glob(path).is_err(), "{path}");
        }
    }
}
