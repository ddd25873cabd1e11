//! The paths that a lane or a task names, and where.

use std::ops::Range;

use crate::command::is_in;
use crate::markdown::inline::{codes, is_nothing, parts, sentences, without_code, without_parentheses};
use crate::markdown::trim;
use crate::path::in_prose;
use crate::source_text::At;

/// Words after which a path is named as one that is not owned.
const DENIALS: &str = "not except excluding without never read-only readonly reads no but outside consumes untouched";

/// The files that a lane owns. `None`: it says that it owns none.
pub(super) fn owned(text: &str, range: Range<usize>) -> Option<Vec<At<String>>> {
    let value = &text[range.clone()];
    if is_nothing(value) {
        return None;
    }
    let visible = without_parentheses(value);
    let mut found = Vec::new();
    for sentence in sentences(&visible) {
        let line = &visible[sentence.clone()];
        let start = range.start + sentence.start;
        let spans = codes(line);
        if spans.is_empty() {
            found.extend(plain(line, start));
        }
        let mut last = 0;
        for code in spans {
            if words(&line[last..code.outer.start]).any(|word| is_in(DENIALS, &word)) {
                break;
            }
            last = code.outer.end;
            found.extend(path(&line[code.inner.clone()], start + code.inner.start));
        }
    }
    Some(found)
}

/// The files of a cell. A cell that is prose names none, but with `prose` those in backticks count.
pub(super) fn in_cell(text: &str, start: usize, prose: bool) -> Vec<At<String>> {
    if is_nothing(text) {
        return Vec::new();
    }
    let visible = without_parentheses(text);
    let spans = codes(&visible);
    if spans.is_empty() {
        return plain(&visible, start);
    }
    if !prose && !words(&without_code(&visible)).all(|word| is_in("and plus new or", &word)) {
        return Vec::new();
    }
    spans.into_iter().filter_map(|code| path(&visible[code.inner.clone()], start + code.inner.start)).collect()
}

/// Paths without backticks: items of a list, each no more than a path and a remark behind a dash.
fn plain(text: &str, start: usize) -> Vec<At<String>> {
    let item = |range: Range<usize>| {
        let range = trim(text, range);
        let item = &text[range.clone()];
        // `*.rs` is a glob, not an item of a list.
        let begun = item.trim_start_matches(['-', '+', ' ']).trim_start_matches("* ").trim_start();
        let word = begun.split_whitespace().next()?;
        let rest = begun[word.len()..].trim_start();
        let alone = rest.is_empty() || rest.starts_with(['—', '–', '-', ':', '#', '→']);
        // `README` in a sentence may mean any of several files.
        let named = path(word.trim_end_matches(['.', ':', ';']), start + range.end - begun.len());
        named.filter(|named| alone && named.value.contains(['/', '.', '*']))
    };
    parts(text, &[',', ';', '\n']).into_iter().filter_map(item).collect()
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '-')
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .map(str::to_lowercase)
}

/// The path that `word`, at byte `at`, is.
pub(super) fn path(word: &str, at: usize) -> Option<At<String>> {
    let path = in_prose(word)?;
    let start = at + (word.len() - word.trim_start().len());
    Some(At::new(path.to_owned(), start..start + path.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Option<Vec<String>> {
        let found = owned(text, 0..text.len())?;
        assert!(found.iter().all(|named| text[named.span.start..named.span.end] == named.value), "{found:?}");
        Some(found.into_iter().map(|named| named.value).collect())
    }

    #[test]
    fn owned_files_exclude_symbols_and_parentheses() {
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
    fn prose_cells_name_no_files() {
        let cell = |text: &str| in_cell(text, 0, false).into_iter().map(|named| named.value).collect::<Vec<_>>();
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
}
