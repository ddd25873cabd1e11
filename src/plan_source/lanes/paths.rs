//! Paths that a lane or a task names, as globs that own exactly what is meant.

use std::ops::Range;

use crate::model::ownership::glob;
use crate::plan_source::inline::{codes, is_nothing, parts, without_parentheses};

/// A path or glob, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) path: String,
    pub(super) at: Range<usize>,
}

/// The longest glob, in bytes.
const MAX_GLOB: usize = 1024;

/// Endings that tell a file from a symbol where there is no slash.
const ENDINGS: &[&str] = &[
    "bash", "bats", "bzl", "c", "cc", "cfg", "clj", "cmake", "conf", "cpp", "cs", "css", "csv", "cts", "cypher", "d2",
    "dart", "diff", "dot", "ex", "exs", "fish", "go", "gql", "gradle", "graphql", "h", "hbs", "hcl", "hpp", "hs",
    "html", "ico", "in", "ini", "ipynb", "java", "jl", "jpg", "js", "json", "json5", "jsonc", "jsonl", "jsx", "kt",
    "kts", "less", "lock", "lua", "m", "map", "md", "mdx", "mjs", "mk", "ml", "mod", "mts", "nix", "patch", "php",
    "pl", "plist", "png", "po", "proto", "ps1", "py", "pyi", "r", "rb", "rs", "rst", "sbt", "scala", "scss", "sh",
    "snap", "sol", "sql", "sum", "svelte", "svg", "swift", "tf", "tfvars", "toml", "ts", "tsv", "tsx", "txt", "vb",
    "vue", "webp", "xml", "yaml", "yml", "zig", "zsh",
];

/// Names of files without an ending.
const FILES: &[&str] = &[
    "BUILD",
    "Brewfile",
    "CHANGELOG",
    "CODEOWNERS",
    "Caddyfile",
    "Containerfile",
    "Dockerfile",
    "GNUmakefile",
    "Gemfile",
    "Jenkinsfile",
    "Justfile",
    "LICENSE",
    "Makefile",
    "NOTICE",
    "Pipfile",
    "Procfile",
    "README",
    "Rakefile",
    "VERSION",
    "Vagrantfile",
    "WORKSPACE",
    "justfile",
    "makefile",
];

/// Words after which a path is named as one that is not owned.
const DENIALS: &[&str] = &[
    "not",
    "except",
    "excluding",
    "without",
    "never",
    "read-only",
    "readonly",
    "reads",
    "no",
    "but",
    "outside",
    "consumes",
    "untouched",
];

/// The files that a lane owns. `None`: it says that it owns none.
pub(super) fn owned(text: &str, range: Range<usize>) -> Option<Vec<Named>> {
    let value = &text[range.clone()];
    if is_nothing(value) {
        return None;
    }
    let visible = without_parentheses(value);
    let mut found = Vec::new();
    for clause in clauses(&visible) {
        let line = &visible[clause.clone()];
        let start = range.start + clause.start;
        let spans = codes(line);
        if spans.is_empty() {
            found.extend(plain(line, start));
            continue;
        }
        let mut last = 0;
        for code in spans {
            let denied = words(&line[last..code.outer.start]).any(|word| DENIALS.contains(&word.as_str()));
            if denied {
                break;
            }
            last = code.outer.end;
            found.extend(path(&line[code.inner.clone()], start + code.inner.start));
        }
    }
    Some(found)
}

/// The files of a cell. A cell that is prose names none, but with `prose` those in backticks count.
pub(super) fn in_cell(text: &str, start: usize, prose: bool) -> Vec<Named> {
    if is_nothing(text) {
        return Vec::new();
    }
    let visible = without_parentheses(text);
    let spans = codes(&visible);
    if spans.is_empty() {
        return plain(&visible, start);
    }
    let mut around = String::new();
    let mut last = 0;
    for code in &spans {
        around.push_str(&visible[last..code.outer.start]);
        around.push(' ');
        last = code.outer.end;
    }
    around.push_str(&visible[last..]);
    let is_list = words(&around).all(|word| matches!(word.as_str(), "and" | "plus" | "new" | "or"));
    if !is_list && !prose {
        return Vec::new();
    }
    spans.into_iter().filter_map(|code| path(&visible[code.inner.clone()], start + code.inner.start)).collect()
}

/// Paths without backticks: items of a list, each no more than a path and a remark behind a dash.
fn plain(text: &str, start: usize) -> Vec<Named> {
    let item = |range: Range<usize>| {
        let item = &text[range.clone()];
        let begun = item.trim_start_matches(|c: char| c.is_whitespace() || "-*+".contains(c));
        let word = begun.split_whitespace().next()?;
        let rest = begun[word.len()..].trim_start();
        let alone = rest.is_empty() || rest.starts_with(['—', '–', '-', ':', '#', '→']);
        // Markers of a list are no part of a glob, but `*.rs` is one.
        let from = range.start + (item.len() - begun.len());
        let from = if text[..from].ends_with('*') { from - 1 } else { from };
        let word = &text[from..range.start + (item.len() - begun.len()) + word.len()];
        // `README` in a sentence may mean any of several files.
        let named = path(word.trim_end_matches(['.', ':', ';']), start + from);
        named.filter(|named| alone && named.path.contains(['/', '.', '*']))
    };
    parts(text, &[',', ';', '\n']).into_iter().filter_map(item).collect()
}

/// The stretches of `text` within which a denial holds.
fn clauses(text: &str) -> Vec<Range<usize>> {
    let hidden = crate::plan_source::inline::without_code(text);
    let mut found = Vec::new();
    let mut start = 0;
    let bytes = hidden.as_bytes();
    for (at, byte) in hidden.bytes().enumerate() {
        let next = bytes.get(at + 1).copied().unwrap_or(b'\n');
        let ends = match byte {
            b';' => true,
            b'.' => next.is_ascii_whitespace(),
            b'\n' => hidden[at + 1..].trim_start_matches([' ', '\t']).starts_with(['-', '*', '+']),
            _ => false,
        };
        if ends {
            found.push(start..at);
            start = at + 1;
        }
    }
    found.push(start..text.len());
    found
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '-')
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .map(str::to_lowercase)
}

/// The path that `word` is, without line numbers and the like; `None` for a symbol.
pub(super) fn path(word: &str, at: usize) -> Option<Named> {
    let trimmed = word.trim();
    let start = at + (word.len() - word.trim_start().len());
    let cut = ["::", "#"].iter().filter_map(|mark| trimmed.find(mark)).min().unwrap_or(trimmed.len());
    let whole = &trimmed[..cut];
    let kept = whole
        .rfind(':')
        .filter(|&colon| whole[colon + 1..].bytes().all(|byte| byte.is_ascii_digit() || b"-,".contains(&byte)));
    let path = &whole[..kept.unwrap_or(whole.len())];
    is_path(path).then(|| Named { path: path.to_owned(), at: start..start + path.len() })
}

fn is_path(word: &str) -> bool {
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !"\"'|;&=,!`\\".contains(c);
    if word.is_empty()
        || !word.chars().all(plain)
        || word.contains("://")
        || word.contains("()")
        || word.starts_with(['-', '$'])
    {
        return false;
    }
    let name = word.trim_end_matches('/').rsplit('/').next().unwrap_or(word);
    let ending = name.rsplit_once('.').map(|(stem, ending)| (stem, ending.to_ascii_lowercase()));
    let known = ending.is_some_and(|(stem, ending)| {
        (!stem.is_empty() && ENDINGS.contains(&ending.trim_end_matches(['*', '}']))) || ending.contains(',')
    });
    if !word.contains('/') {
        let dotted = word.len() > 1
            && word.starts_with('.')
            && !word[1..].contains(['(', '.'])
            && word[1..].bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        return known
            || dotted
            || FILES.contains(&word)
            || word == "**"
            || (word.starts_with('.') && name.matches('.').count() > 1);
    }
    // `@scope/package` and `{id}/x` are names of something else, unless they end like a file.
    let scoped = word.starts_with('@') && word.matches('/').count() == 1;
    let called = word.contains('(') && !word.contains("/(") && !word.starts_with('(');
    known || !(scoped || called || word == "/")
}

/// A path as a glob that lanes can own, or why none can be made of it.
pub(super) fn as_glob(path: &str) -> Result<String, &'static str> {
    let path = path.trim_start_matches("./");
    if path.starts_with(['/', '~']) {
        return Err("it lies outside of the repository");
    }
    if path.split('/').any(|part| part == "..") {
        return Err("it leads out of the repository");
    }
    if path.contains('$') {
        return Err("it holds a variable");
    }
    let filled = with_wildcards(path);
    let filled = if filled.ends_with('/') { format!("{filled}**") } else { filled };
    if filled.is_empty() || filled.len() > MAX_GLOB {
        return Err("it is too long, or empty");
    }
    let usable = |text: &str| text.matches('{').count() <= 8 && glob(text).is_ok();
    let literal = literal_brackets(&filled);
    if usable(&literal) {
        return Ok(literal);
    }
    let escaped: String =
        filled.chars().map(|c| if "[]{}".contains(c) { format!("[{c}]") } else { c.to_string() }).collect();
    Some(escaped).filter(|text| usable(text)).ok_or("it is no glob")
}

/// `runs/<run>/a.json` as `runs/*/a.json`.
fn with_wildcards(path: &str) -> String {
    let mut filled = String::new();
    let mut rest = path;
    while let Some((before, behind)) = rest.split_once('<') {
        let Some((_, after)) = behind.split_once('>') else { break };
        filled.push_str(before);
        filled.push('*');
        rest = after;
    }
    filled + rest
}

/// Brackets and braces that are part of a name (`[slug]`, `{id}`), not of a glob, are taken as they are.
fn literal_brackets(path: &str) -> String {
    let mut text = String::new();
    let mut rest = path;
    while let Some(at) = rest.find(['[', '{']) {
        let close = if rest.as_bytes()[at] == b'[' { ']' } else { '}' };
        let Some(end) = rest[at..].find(close).map(|end| at + end) else { break };
        let inside = &rest[at + 1..end];
        let is_name = inside.trim_start_matches('.').chars().all(|c| c.is_alphanumeric() || c == '_')
            || (close == ']' && inside.contains('-') && inside.len() > 3);
        text.push_str(&rest[..at]);
        if is_name && (close == '}' || inside.len() > 1) {
            text.push_str(if close == ']' { "[[]" } else { "[{]" });
            text.push_str(inside);
            text.push_str(if close == ']' { "[]]" } else { "[}]" });
        } else {
            text.push_str(&rest[at..=end]);
        }
        rest = &rest[end + 1..];
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ownership::Ownership;

    fn names(text: &str) -> Option<Vec<String>> {
        let found = owned(text, 0..text.len())?;
        assert!(found.iter().all(|named| text[named.at.clone()] == named.path), "{found:?}");
        Some(found.into_iter().map(|named| named.path).collect())
    }

    #[test]
    fn owned_files_are_paths_not_symbols_nor_what_parentheses_say() {
        let cases: &[(&str, Option<&[&str]>)] = &[
            ("`src/a.rs`, `tests/**`", Some(&["src/a.rs", "tests/**"])),
            ("`pkg/__init__.py` (extend `__all__`), `README.md`", Some(&["pkg/__init__.py", "README.md"])),
            ("`src/a.py` — `build_index` and `pmcp.env_store` lines 106-119", Some(&["src/a.py"])),
            ("`docs/a.md`,\n  `docs/b.md`, and\n  `c.md`", Some(&["docs/a.md", "docs/b.md", "c.md"])),
            (
                "- src/types/Node.ts\n- `README.md`\n- tests/a.test.ts (new)",
                Some(&["src/types/Node.ts", "README.md", "tests/a.test.ts"]),
            ),
            ("\n- src/a.rs — the core\n- some remark on it", Some(&["src/a.rs"])),
            ("none", None),
            ("(none — disjoint from SL-2's `a.rs`)", None),
            ("none; read-only survey of `a.rs`", None),
            ("`a.rs`; must not touch `b.rs`", Some(&["a.rs"])),
            ("`a.rs` but not `b.rs`, `c.rs`; `d.rs`", Some(&["a.rs", "d.rs"])),
            ("`@scope/package`, `f(x)`, `Makefile`, `.gitignore`, `https://a/b.md`", Some(&["Makefile", ".gitignore"])),
            ("`src/a.ts:12-30`, `tests/t.py::test_a`", Some(&["src/a.ts", "tests/t.py"])),
            ("`app/(group)/[slug]/page.tsx`", Some(&["app/(group)/[slug]/page.tsx"])),
        ];
        for (text, expected) in cases {
            let expected = expected.map(|names| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
            assert_eq!(names(text), expected, "{text}");
        }
    }

    #[test]
    fn cells_name_files_unless_they_are_prose() {
        let cell = |text: &str| in_cell(text, 0, false).into_iter().map(|named| named.path).collect::<Vec<_>>();
        assert_eq!(cell("tests/a.py, src/b.py"), ["tests/a.py", "src/b.py"]);
        assert_eq!(cell("`tests/a.py`, and `b.py`"), ["tests/a.py", "b.py"]);
        for prose in [
            "package metadata, lock tests",
            "parse `src/a.py` and count",
            "-",
            "—",
            "n/a",
            "per catalog",
            "all SL-1 tests",
        ] {
            assert!(cell(prose).is_empty(), "{prose}");
        }
    }

    #[test]
    fn globs_own_what_is_meant() {
        let cases = [
            ("app/[slug]/page.tsx", "app/[slug]/page.tsx", "app/s/page.tsx"),
            ("app/[...rest]/a.ts", "app/[...rest]/a.ts", "app/./a.ts"),
            ("src/{a,b}.ts", "src/a.ts", "src/{a,b}.ts"),
            ("api/{id}/a.ts", "api/{id}/a.ts", "api/id/a.ts"),
            ("docs/", "docs/a/b.md", "docs2/a"),
            ("runs/<run>/v.json", "runs/7/v.json", "runs/7/8/v.json"),
            ("a[0-9].rs", "a7.rs", "a[0-9].rs"),
            ("x/a[b.rs", "x/a[b.rs", "x/ab.rs"),
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
