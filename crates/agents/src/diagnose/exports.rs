//! Whether a file declares or exports a name, whatever its language: by the words around it, not by a grammar.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exported {
    Yes,
    No,
    /// What was asked for is prose, or a route, and no name.
    NoName,
}

/// Languages whose declarations are known here; in a file of another kind it is enough that the word is there.
const CODE: &[&str] = &[
    "c", "cc", "cjs", "cpp", "cs", "cts", "cxx", "dart", "ex", "exs", "go", "h", "hh", "hpp", "java", "js", "jsx",
    "kt", "kts", "lua", "m", "mjs", "mm", "mts", "php", "py", "rb", "rs", "scala", "svelte", "swift", "ts", "tsx",
    "vue",
];

/// Words that say that a declaration follows.
const DECLARING: &str = "\
    abstract actor alias async class const data def define defmodule defp enum export extension final fn fun \
    func function interface let macro_rules mod module namespace object open override procedure protocol pub \
    public record static struct trait type typealias typedef union val var";

/// Words before which a name is used, not declared.
const USING: &str = "\
    and assert await case delete do echo elif else extends from goto if implements import in include \
    instanceof is new not or print raise require return super then throw typeof unless until use using when \
    while yield";

fn is_in(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

/// Whether the file at `path` with that `text` exports what the plan calls `wanted`.
pub(super) fn exported(wanted: &str, path: &str, text: &str) -> Exported {
    let Some(name) = name_in(wanted) else { return Exported::NoName };
    let file = path.rsplit('/').next().unwrap_or_default();
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
    let component = ["vue", "svelte"].contains(&extension);
    let found = match name {
        "default" => component || ["export default", "as default", "module.exports"].iter().any(|it| text.contains(it)),
        name if CODE.contains(&extension) => is_declared(name, text),
        name => text.lines().any(|line| occurrences(line, name).next().is_some()),
    };
    if found { Exported::Yes } else { Exported::No }
}

/// The name in `function save()`, `Store::open`, `default (Router)`.
fn name_in(wanted: &str) -> Option<&str> {
    let mut rest = wanted.trim().trim_matches('`').trim();
    loop {
        let (word, behind) = split_word(rest);
        if word == "default" {
            return Some("default");
        }
        if !is_in(DECLARING, word) || behind.is_empty() {
            break;
        }
        rest = behind;
    }
    let (word, behind) = split_word(rest);
    let is_remark = behind.is_empty() || behind.starts_with(['(', '<', ':', '=', '-', '–', '—']);
    let name = word.rsplit(['.', ':', '#', '>']).next().unwrap_or_default();
    let starts = name.starts_with(|first: char| first.is_alphabetic() || ['_', '$'].contains(&first));
    let whole = name.chars().all(|part| is_name_part(part) || ['-', '!', '?'].contains(&part));
    (is_remark && starts && whole).then_some(name)
}

fn split_word(text: &str) -> (&str, &str) {
    let end = text.find(|part: char| part.is_whitespace() || part == '(' || part == '<').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

fn is_declared(name: &str, text: &str) -> bool {
    let mut importing = false;
    for line in text.lines() {
        let code = line.trim_start();
        if is_comment(code) {
            continue;
        }
        // Whatever another module exports is exported here, too.
        if code.starts_with("export *") || (code.starts_with("pub use ") && code.trim_end().ends_with("::*;")) {
            return true;
        }
        if ["import ", "from ", "use ", "import(", "import{"].iter().any(|word| code.starts_with(word)) {
            importing = code.contains(['{', '(']) && !code.contains(['}', ')']);
        } else if importing {
            importing = !code.contains(['}', ')']);
        } else if occurrences(line, name).any(|at| declares(line, at, name)) {
            return true;
        }
    }
    false
}

fn is_comment(code: &str) -> bool {
    ["//", "/*", "* ", "# ", "-- ", "<!--"].iter().any(|mark| code.starts_with(mark))
}

fn occurrences<'l>(line: &'l str, name: &'l str) -> impl Iterator<Item = usize> + 'l {
    line.match_indices(name).map(|(at, _)| at).filter(move |&at| {
        let before = line[..at].chars().next_back();
        let after = line[at + name.len()..].chars().next();
        !before.is_some_and(is_name_part) && !after.is_some_and(is_name_part)
    })
}

fn is_name_part(part: char) -> bool {
    part.is_alphanumeric() || part == '_' || part == '$'
}

/// Whether the name at `at` is declared or exported there.
fn declares(line: &str, at: usize, name: &str) -> bool {
    let (before, after) = (line[..at].trim_start(), line[at + name.len()..].trim_start());
    if before.contains("// ") {
        return false;
    }
    if is_export_list(before) {
        return true;
    }
    let assigned = after.starts_with('=') && !after.starts_with("==");
    let opens = line.trim_end().ends_with(['{', ':', '>']);
    if before.is_empty() {
        return match after.chars().next() {
            None | Some(',' | ':' | '}') => true,
            Some('(') => opens,
            Some('=') => assigned,
            _ => false,
        };
    }
    let declaration = declaration_before(before);
    let mut words = declaration.split(|part| !is_name_part(part)).filter(|word| !word.is_empty());
    if words.clone().any(|word| is_in(DECLARING, word)) {
        return true;
    }
    let typed = words.clone().next().is_some() && words.all(|word| !is_in(USING, word)) && is_type(declaration);
    let ends = after.is_empty() || after.starts_with(['(', ';', '{', ':', '<']) || assigned;
    let prototype = assigned && declaration.ends_with(".prototype.");
    prototype || (typed && ends && !declaration.ends_with(['.', '>']) && (opens || declaration.contains(' ')))
}

/// How the text before a name begins in a line that lists exported names.
fn is_export_list(before: &str) -> bool {
    let begins = ["module.exports", "exports.", "exports[", "__all__", "pub use "];
    let braces = before.strip_prefix("export").map(|rest| rest.trim_start().trim_start_matches("type ").trim_start());
    begins.iter().any(|word| before.starts_with(word)) || braces.is_some_and(|rest| rest.starts_with('{'))
}

/// The part of `before` that belongs to what follows: up to the last open bracket, `=`, `,` or `;`.
fn declaration_before(before: &str) -> &str {
    let mut depth = 0;
    for (at, part) in before.char_indices().rev() {
        match part {
            ')' | ']' | '}' => depth += 1,
            '(' | '[' | '{' if depth == 0 => return before[at + 1..].trim_start(),
            '(' | '[' | '{' => depth -= 1,
            '=' | ',' | ';' | '"' | '\'' if depth == 0 && !inside_angles(&before[at..]) => {
                return before[at + part.len_utf8()..].trim_start();
            }
            _ => {}
        }
    }
    before
}

/// Whether a comma is one of `Map<K, V>`.
fn inside_angles(rest: &str) -> bool {
    rest.starts_with(',') && rest.contains('>')
}

fn is_type(text: &str) -> bool {
    text.chars().all(|part| is_name_part(part) || " \t<>,:*&[]?@.~".contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(wanted: &str, path: &str, text: &str) -> Exported {
        exported(wanted, path, text)
    }

    #[test]
    fn exports_are_found_in_many_languages() {
        let table = [
            ("save", "a.ts", "export async function save(x: number) {"),
            ("save", "a.ts", "export const save = async () => {"),
            ("save", "a.ts", "const save = 1\nconst other = 2\nexport { other, save }"),
            ("save", "a.ts", "export {\n  other,\n  save,\n}"),
            ("Shape", "a.ts", "export type { Shape } from './shape'"),
            ("Shape", "a.ts", "export interface Shape {"),
            ("useThing", "a.ts", "export * from './use-thing'"),
            ("save", "a.js", "module.exports = { load, save };"),
            ("save", "a.js", "exports.save = save_;"),
            ("save", "a.js", "module.exports = {\n  load,\n  save,\n};"),
            ("save", "a.js", "class S {\n  save(x) {"),
            ("save", "a.js", "Store.prototype.save = function () {"),
            ("default (Router)", "a.ts", "export default router"),
            ("default", "a.vue", "<template/>"),
            ("save", "a.rs", "    pub(crate) fn save<T>(x: T) {}"),
            ("save", "a.rs", "pub use disk::{load, save};"),
            ("save", "a.py", "    def save(self):"),
            ("save", "a.py", "__all__ = ['load', 'save']"),
            ("LIMIT", "a.py", "LIMIT = 3"),
            ("Save", "a.go", "func (s *Store) Save(x int) error {"),
            ("save", "A.java", "    public static Map<String, Integer> save(int x) {"),
            ("save", "A.java", "    List<User> save(int x) {"),
            ("Store::save", "a.cpp", "void Store::save(double rate)"),
            ("Store.save", "a.swift", "    func save() -> Int {"),
            ("save", "a.rb", "  def self.save(x)"),
            ("save()", "a.h", "int save(void);"),
            ("function save", "a.php", "    private function save() {"),
            ("users", "schema.sql", "CREATE TABLE users (id INT);"),
            ("größe", "a.py", "def größe(x):"),
        ];
        for (wanted, path, text) in table {
            assert_eq!(answer(wanted, path, text), Exported::Yes, "{wanted} in {text}");
        }
    }

    #[test]
    fn use_comment_or_longer_name_is_not_an_export() {
        let table = [
            ("save", "a.ts", "import { save } from './disk'\nsave(1)\nreturn save(2)"),
            ("save", "a.ts", "import {\n  load,\n  save,\n} from './disk'"),
            ("save", "a.ts", "// export function save() {"),
            ("save", "a.ts", "export function saveAll() {\n  x.save = 1\n  const y = save(3)\n}"),
            ("save", "a.ts", "export const all = [load, save(1)]"),
            ("default", "a.ts", "export const x = 1"),
            ("save", "a.rs", "use disk::save;\n    let x = save(1);"),
            ("save", "a.py", "from disk import save\nsave(1)\nself.save = 1"),
            ("save", "a.go", "// Save is Save\n\treturn s.Save(1)"),
            ("users", "schema.sql", "CREATE TABLE users_old (id INT);"),
        ];
        for (wanted, path, text) in table {
            assert_eq!(answer(wanted, path, text), Exported::No, "{wanted} in {text}");
        }
    }

    #[test]
    fn routes_and_prose_are_not_export_names() {
        for wanted in ["POST /login", "scaffold test suite", "", "42", "()"] {
            assert_eq!(answer(wanted, "a.ts", "anything"), Exported::NoName, "{wanted}");
        }
    }
}
