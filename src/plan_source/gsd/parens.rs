//! Parentheses in a shell line that the shell would not take: in names of files, and around remarks.

use std::borrow::Cow;

/// Words that a subshell may follow.
const BEFORE_SUBSHELL: [&str; 14] =
    ["!", "{", "then", "do", "else", "elif", "if", "while", "until", "time", "in", "for", "[[", "&&"];

/// `script` as the shell takes it: parentheses in a path like `app/(group)/page.tsx` are escaped. `None`: a
/// parenthesis stands where no command has one, as around a remark.
pub(super) fn mended(script: &str) -> Option<Cow<'_, str>> {
    if !script.contains('(') || script.contains("<<") || script.contains("[[") {
        return Some(Cow::Borrowed(script));
    }
    let mut text = String::new();
    let (mut copied, mut quote, mut word) = (0, None, 0);
    // Parentheses that are part of a path, and whether one is open.
    let mut in_path = false;
    let mut chars = script.char_indices();
    while let Some((at, c)) = chars.next() {
        match (c, quote) {
            ('\\', open) if open != Some('\'') => {
                chars.next();
            }
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'' | '`', None) => quote = Some(c),
            ('(', None) if is_in_path(script, at) => {
                in_path = true;
                push_escaped(script, &mut text, &mut copied, at);
            }
            (')', None) if in_path => {
                in_path = false;
                push_escaped(script, &mut text, &mut copied, at);
            }
            ('(', None) => {
                if !may_open(&script[..at], word) {
                    return None;
                }
                word = at + 1;
            }
            (c, None) if c.is_whitespace() || ";&|)".contains(c) => word = at + c.len_utf8(),
            _ => {}
        }
    }
    if copied == 0 {
        return Some(Cow::Borrowed(script));
    }
    text.push_str(&script[copied..]);
    Some(Cow::Owned(text))
}

fn push_escaped(script: &str, text: &mut String, copied: &mut usize, at: usize) {
    text.push_str(&script[*copied..at]);
    text.push('\\');
    *copied = at;
}

/// Whether the parenthesis at `at` begins the name of a directory, as in `app/(group)/page.tsx`.
fn is_in_path(script: &str, at: usize) -> bool {
    let rest = &script[at + 1..];
    let name = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c))).unwrap_or(rest.len());
    let closed = name > 0 && rest[name..].starts_with(')');
    let behind = rest.get(name + 1..).unwrap_or("");
    let before = &script[..at];
    let path = before.ends_with('/') || (before.is_empty() || before.ends_with([' ', '"'])) && behind.starts_with('/');
    closed && path && (behind.is_empty() || behind.starts_with(['/', ' ', '\n', ';', '&', '|']))
}

/// Whether a subshell, a substitution, a list or a function may open behind `before`, whose last word begins at `word`.
fn may_open(before: &str, word: usize) -> bool {
    let own = before.get(word..).unwrap_or("");
    if !own.is_empty() {
        // `$(…)`, `<(…)`, `list=(…)`, `name()`; inside of any other word it is no shell.
        let name = own.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        return own.ends_with(['$', '<', '>', '=', '?', '!', '@', '*', '+'])
            || (name && before.len() > word && is_first(before, word));
    }
    let line = before.trim_end_matches([' ', '\t']);
    line.is_empty()
        || line.ends_with([';', '&', '|', '(', '\n'])
        || BEFORE_SUBSHELL.contains(&line.rsplit([' ', '\t', '\n', ';', '(']).next().unwrap_or(line))
}

/// Whether the word at `word` is the first one of its command.
fn is_first(before: &str, word: usize) -> bool {
    let line = before[..word].trim_end_matches([' ', '\t']);
    line.is_empty() || line.ends_with([';', '&', '|', '\n', '{'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parentheses_of_paths_are_escaped() {
        let cases = [
            ("test -f apps/web/app/(protected)/page.tsx", "test -f apps/web/app/\\(protected\\)/page.tsx"),
            ("ls app/(a)/(b)/*.ts && ls x", "ls app/\\(a\\)/\\(b\\)/*.ts && ls x"),
            ("ls \"app/(a)/x\" 'app/(b)'", "ls \"app/(a)/x\" 'app/(b)'"),
        ];
        for (script, expected) in cases {
            assert_eq!(mended(script).as_deref(), Some(expected), "{script}");
        }
    }

    #[test]
    fn parentheses_of_the_shell_stay_and_those_of_remarks_are_none() {
        for script in [
            "(cd web && npm test)",
            "cd a && (npm test || true)",
            "x=$(ls | wc -l); [ $x -gt 3 ]",
            "test $(ls | wc -l) -gt 3",
            "test \"$(grep -c 'a(b)' x)\" = 1",
            "diff <(a) <(b)",
            "find . \\( -name a \\)",
            "f() { ls; }; f",
            "if (ls a); then (ls b); fi",
            "! (grep x y)",
            "a=(1 2)",
            "((a))",
            "ls\n(ls a)",
        ] {
            assert_eq!(mended(script).as_deref(), Some(script));
        }
        for script in ["npx x --exit-code 0 (accepts schema) && npx jest a", "npm test (all green)", "grep foo(bar) x"]
        {
            assert_eq!(mended(script), None, "{script}");
        }
    }

    #[test]
    fn many_parentheses_take_no_long_time() {
        for part in ["(", "a(", "/(a)", "$(", "( ", "/(", " (a)/"] {
            let script = part.repeat(8_000 / part.len());
            let _ = mended(&script);
        }
    }
}
