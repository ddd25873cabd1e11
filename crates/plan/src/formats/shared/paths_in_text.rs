//! The files that the text of a task names: in links, in backticks, and in prose.
//!
//! They are advice: a task may name no file and change several. What is doubtful in prose is left out; in backticks and
//! links it counts.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::command::is_in;
use crate::markdown::inline::codes;
use crate::path::{as_glob, below_root, in_prose, is_file_name};
use crate::source_text::{At, Span};

/// A file or directory of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedPath {
    /// Where the text names it.
    pub(crate) range: Range<usize>,
    pub(crate) path: String,
}

/// Directories that a repository has at its root: prose that begins with one names a path.
const ROOTS: &str = "\
    src app apps backend frontend lib libs packages tests test docs scripts cmd internal pkg crates server client \
    services components config infra deploy tools examples specs public web api .github .vscode .claude";

/// Words of prose with a slash between them: `frontend/backend`.
const SIDES: &str = "backend frontend client server web api services";

/// Files that are at the root of a repository, or anywhere, where nothing says which.
const AT_ROOT: &str = "\
    README.md CHANGELOG.md CONTRIBUTING.md LICENSE.md CLAUDE.md AGENTS.md package.json pyproject.toml Cargo.toml go.mod \
    Makefile Dockerfile docker-compose.yml docker-compose.yaml tsconfig.json .env .env.example .gitignore justfile";

/// Names of programs and libraries that look like those of files.
const LIBRARIES: &str = "\
    node.js next.js nuxt.js vue.js react.js express.js three.js d3.js chart.js nest.js socket.io ember.js alpine.js \
    backbone.js discord.js moment.js p5.js fabric.js angular.js solid.js svelte.js deno.js bun.js adonis.js hono.js";

/// Endings of files that are names of methods as well.
const METHODS: &str = "map lock sum snap in env go r d m h c ex";

static LINK: LazyLock<Regex> = pattern!(r"\[([^\[\]]*)\]\(([^()\s]*)\)");

static HOST: LazyLock<Regex> = pattern!(r"^(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev|ai)/");

/// With how many paths of a text each of its short names is compared.
const MAX_COMPARED: usize = 64;

/// The paths that `text` names, each once, in the order of the text.
pub(crate) fn paths_in_text(text: &str) -> Vec<NamedPath> {
    let mut found: Vec<NamedPath> = Vec::new();
    let links: Vec<_> = LINK.captures_iter(text).collect();
    for link in &links {
        let named = [1, 2].into_iter().find_map(|part| {
            let part = link.get(part)?;
            path_of(unquoted(part.as_str()), true).map(|path| NamedPath { range: part.range(), path })
        });
        found.extend(named);
    }
    let mut hidden: Vec<Range<usize>> = links.iter().map(|link| link.get_match().range()).collect();
    for code in codes(text) {
        if let Some(path) = path_of(text[code.inner.clone()].trim(), true) {
            found.push(NamedPath { range: code.inner, path });
        }
        hidden.push(code.outer);
    }
    hidden.sort_unstable_by_key(|range| range.start);
    let mut start = 0;
    for range in hidden.into_iter().chain(std::iter::once(text.len()..text.len())) {
        if range.start > start {
            in_words(text, start..range.start, &mut found);
        }
        start = start.max(range.end);
    }
    found.sort_by_key(|named| named.range.start);
    beside_the_one_before(text, &mut found);
    without_short_names(text, &mut found);
    let mut seen = HashSet::new();
    found.retain(|named| seen.insert(named.path.clone()));
    found
}

fn in_words(text: &str, range: Range<usize>, found: &mut Vec<NamedPath>) {
    let part = &text[range.clone()];
    let mut at = 0;
    for word in part.split(|c: char| c.is_whitespace() || "、，。（）".contains(c)) {
        let start = range.start + at + part[at..].find(word).unwrap_or(0);
        at = start - range.start + word.len();
        let mut offset = 0;
        for piece in word.split([',', ';']) {
            let inner = unwrapped(piece);
            if let Some(path) = path_of(inner, false) {
                let from = start + offset + piece.find(inner).unwrap_or(0);
                found.push(NamedPath { range: from..from + inner.len(), path });
            }
            offset += piece.len() + 1;
        }
    }
}

/// A word without the punctuation around it. Brackets that belong to a name, as in `app/(shop)/[id]`, stay.
fn unwrapped(word: &str) -> &str {
    let mut word =
        word.trim_start_matches(|c: char| "\"'*“‘".contains(c)).trim_end_matches(|c: char| "\"'*”’.:!?".contains(c));
    for (open, close) in [('(', ')'), ('[', ']'), ('{', '}')] {
        if word.starts_with(open) && (word.ends_with(close) || !word.contains(close)) {
            word = &word[1..];
        }
        if word.ends_with(close) && word.matches(close).count() > word.matches(open).count() {
            word = &word[..word.len() - 1];
        }
    }
    word.trim_end_matches(['.', ':'])
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches('`')
}

/// The path below the repository's root that `word` is. A route such as `/users` is none, `/Makefile` is a file.
fn path_of(word: &str, is_marked: bool) -> Option<String> {
    let word = match word.strip_prefix('/') {
        Some(inner) if !inner.starts_with('/') && is_file_name(inner) => inner,
        _ => word,
    };
    let path = in_prose(word)?;
    let lower = path.to_ascii_lowercase();
    if is_in(LIBRARIES, &lower) || path.contains(['<', '>', '\u{2026}']) || path.starts_with('#') {
        return None;
    }
    // `github.com/owner/module` is an address.
    if HOST.is_match(&lower) {
        return None;
    }
    // `*.py` and `**` name no file of a task.
    if !path.trim_start_matches(['*', '/']).contains('/') && path.starts_with('*') {
        return None;
    }
    (is_marked || is_sure(path)).then(|| below_root(path).ok()).flatten()
}

/// Whether a word of prose is a path rather than `and/or`.
fn is_sure(path: &str) -> bool {
    if is_file_name(path) {
        // A method of an object is no file: `User.map`.
        let ending = path.rsplit('.').next().unwrap_or("");
        let is_method = path.starts_with(|c: char| c.is_ascii_uppercase()) && is_in(METHODS, ending);
        return path.contains('/') || !is_method;
    }
    let parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    let plain = parts.iter().all(|part| !part.is_empty() && part.is_ascii());
    let known = is_in(ROOTS, parts[0]);
    let contrasts = parts.len() == 2 && is_in(SIDES, parts[0]) && is_in(SIDES, parts[1]);
    plain && (path.ends_with('/') || known && parts.len() > 1 && !contrasts)
}

/// `models/user.py and api_key.py`: gives the second the directory of the first.
fn beside_the_one_before(text: &str, found: &mut [NamedPath]) {
    let ending = |path: &str| path.rsplit_once('.').map(|(_, ending)| ending.to_owned());
    for at in 1..found.len() {
        let (before, own) = (&found[at - 1], &found[at]);
        if own.path.contains('/') || is_in(AT_ROOT, &own.path) || ending(&before.path) != ending(&own.path) {
            continue;
        }
        if let Some((directory, _)) = before.path.rsplit_once('/').filter(|_| are_joined(text, before, own)) {
            found[at].path = format!("{directory}/{}", own.path);
        }
    }
}

/// Whether nothing but `and` or a comma is between two names.
fn are_joined(text: &str, before: &NamedPath, own: &NamedPath) -> bool {
    let between = text.get(before.range.end..own.range.start).unwrap_or("");
    let mut words = between.split(|c: char| c.is_whitespace() || ",&/`".contains(c));
    words.all(|word| matches!(word, "" | "and" | "or" | "+" | "と" | "和" | "e" | "y"))
}

/// `the README.md of the app in app/README.md` names one file.
fn without_short_names(text: &str, found: &mut Vec<NamedPath>) {
    let is_full = |short: &NamedPath, full: &NamedPath| {
        let (first, last) = if short.range.start < full.range.start { (short, full) } else { (full, short) };
        full.path.rsplit_once('/').is_some_and(|(_, name)| name == short.path) && !are_joined(text, first, last)
    };
    let short = |named: &&NamedPath| !named.path.contains('/');
    let doubled: HashSet<usize> = found
        .iter()
        .filter(short)
        .filter(|short| found.iter().take(MAX_COMPARED).any(|full| is_full(short, full)))
        .map(|short| short.range.start)
        .collect();
    found.retain(|named| !doubled.contains(&named.range.start));
}

/// Gives each name without a directory the only path of `all` that ends with it: `main.py` is `src/main.py` where the
/// text names no other of that name.
pub(crate) fn complete<'p>(all: impl Iterator<Item = &'p mut NamedPath>) {
    let mut all: Vec<&mut NamedPath> = all.collect();
    let mut full: BTreeMap<String, Option<String>> = BTreeMap::new();
    for named in &all {
        if let Some((_, name)) = named.path.rsplit_once('/').filter(|(_, name)| is_file_name(name)) {
            let known = full.entry(name.to_owned()).or_insert_with(|| Some(named.path.clone()));
            known.take_if(|known| *known != named.path);
        }
    }
    for named in &mut all {
        if let Some(Some(path)) = full.get(&named.path).filter(|_| !is_in(AT_ROOT, &named.path)) {
            named.path.clone_from(path);
        }
    }
}

/// Leaves out what an issue names without a directory, unless it is a file at the root: names of libraries and classes look
/// like those of files. Files below `managed`, which only Lanewright changes, are left out, too.
pub(crate) fn retain_sure(paths: &mut Vec<NamedPath>, managed: &str) {
    let is_sure = |path: &str| path.contains('/') || is_in(AT_ROOT, path);
    paths.retain(|named| is_sure(&named.path) && !named.path.starts_with(['@', '/']) && !named.path.contains(managed));
}

/// The globs that own the paths, each once, at the place that `span` gives for a stretch of the text.
pub(crate) fn globs<'p>(
    paths: impl Iterator<Item = &'p NamedPath>,
    span: impl Fn(Range<usize>) -> Span,
) -> Vec<At<String>> {
    let mut seen = HashSet::new();
    let globs = paths.filter_map(|named| Some(At::new(as_glob(&named.path).ok()?, span(named.range.clone()))));
    globs.filter(|glob| seen.insert(glob.value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        for named in paths_in_text(text) {
            assert!(text.is_char_boundary(named.range.start) && named.range.end <= text.len());
        }
        paths_in_text(text).into_iter().map(|named| named.path).collect()
    }

    #[test]
    fn paths_are_found_in_links_code_and_prose() {
        let cases: &[(&str, &[&str])] = &[
            ("Add hook in web/src/hooks/useTone.ts", &["web/src/hooks/useTone.ts"]),
            ("Edit [web/a.tsx](file:///c:/Users/N/web/a.tsx).", &["web/a.tsx"]),
            ("See [the page](docs/a.md#top)", &["docs/a.md"]),
            ("Create `src/models/user.py` and `key.py`", &["src/models/user.py", "src/models/key.py"]),
            ("Create src/user.py, key.py and README.md", &["src/user.py", "src/key.py", "README.md"]),
            ("Write app/(auth)/[id]/page.tsx", &["app/(auth)/[id]/page.tsx"]),
            ("Directories (src/api/, src/db/) in backend/src", &["src/api/", "src/db/", "backend/src"]),
            ("テストを tests/unit/test_a.py に作成", &["tests/unit/test_a.py"]),
            ("ファイル（src/a.py）を直す", &["src/a.py"]),
            ("Add a target in `/Makefile`", &["Makefile"]),
            ("Change **src/a.rs**: more", &["src/a.rs"]),
            ("Add `internal/store` layer", &["internal/store"]),
            ("`src/a.rs`, `src/a.rs`", &["src/a.rs"]),
            ("Create the README.md of the app in app/README.md", &["app/README.md"]),
            ("Update README.md and docs/README.md", &["README.md", "docs/README.md"]),
        ];
        for (text, expected) in cases {
            assert_eq!(paths(text), *expected, "{text}");
        }
    }

    #[test]
    fn routes_symbols_and_words_are_no_paths() {
        for text in [
            "Add GET /api/users and `/orgs/{id}`",
            "Use Next.js and Node.js and/or try/except",
            "Install @scope/package, CI/CD, ping/pong",
            "frontend/backend split, input/output",
            "Call `User.name()` and `ok(data)` at https://a.b/c.md",
            "T001/T002, US1/US2, 24/7",
            "Rename the module to `github.com/owner/module`",
            "C:\\a\\b.txt ../x/y.rs ~/z.md",
            "all *.py files",
            "",
        ] {
            assert_eq!(paths(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn lone_names_get_their_only_directory() {
        let texts = ["mount in main.py", "src/main.py", "a.py", "x/a.py", "y/a.py", "README.md", "d/README.md"];
        let mut all: Vec<NamedPath> = texts.iter().flat_map(|text| paths_in_text(text)).collect();
        complete(all.iter_mut());
        let all: Vec<&str> = all.iter().map(|named| named.path.as_str()).collect();
        assert_eq!(all, ["src/main.py", "src/main.py", "a.py", "x/a.py", "y/a.py", "README.md", "d/README.md"]);
    }

    #[test]
    fn globs_match_brackets_as_they_are() {
        let globs = globs(paths_in_text("app/[id]/page.tsx and src/x/").iter(), Span::from);
        let globs: Vec<String> = globs.into_iter().map(|glob| glob.value).collect();
        assert_eq!(globs, ["app/[[]id[]]/page.tsx", "src/x/**"]);
    }
}
