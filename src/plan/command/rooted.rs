//! Commands that go to a directory of the machine that the plan was written on.
//!
//! Such a gate would judge another copy of the files than the lane's, or none.

use std::ops::Range;

use super::classify::characters;
use crate::plan::source_text::File;
use crate::shell::edited;

/// Where a worktree is, for everything that its lane runs.
const WORKTREE: &str = "\"$LANEKEEPER_WORKTREE\"";

/// Directories that are no repository.
const ELSEWHERE: [&str; 10] = ["/tmp", "/var", "/etc", "/usr", "/opt", "/dev", "/proc", "/sys", "/bin", "/lib"];

/// A `cd` to an absolute directory: where its argument stands, and what it names.
struct Change<'a> {
    argument: Range<usize>,
    directory: &'a str,
}

/// The directory that all plans take for the repository's root: the shortest one that they `cd` to, where all others
/// lie below it.
///
/// Where most of the `owned` files begin with the last parts of that directory, it is one of the repository's own, and the
/// repository is what stands before them.
pub(in crate::plan) fn root<'a>(files: &[File<'a>], owned: &[&str]) -> Option<&'a str> {
    let directory = common(files)?;
    let counted: Vec<&&str> = owned.iter().filter(|path| path.contains('/') && !path.starts_with('.')).collect();
    let is_below = |begin: usize| {
        let part = format!("{}/", directory[begin..].replace('\\', "/"));
        let below = counted.iter().filter(|path| path.starts_with(&part)).count();
        below > 0 && 2 * below > counted.len()
    };
    let begins = directory.rmatch_indices(['/', '\\']).map(|(at, _)| at).filter(|&at| at > 0).take(3);
    Some(begins.into_iter().find(|&at| is_below(at + 1)).map_or(directory, |at| &directory[..at]))
}

/// `script` with the lane's worktree in place of `root`; `None`: it names other files of another machine.
pub(in crate::plan) fn relocated(script: &str, root: Option<&str>) -> Option<String> {
    let within = root.map_or_else(|| script.to_owned(), |root| in_worktree(script, root));
    let (moved, foreign) = localised(&within, root);
    let home = ["cd ~/", "cd $HOME/", "cd \"$HOME/", "cd ${HOME}/"].iter().any(|home| moved.contains(home));
    (!foreign && !home).then_some(moved)
}

fn common<'a>(files: &[File<'a>]) -> Option<&'a str> {
    let mut directories = files.iter().flat_map(|file| changes(file.text)).map(|change| change.directory);
    let first = directories.next()?;
    let root = directories.clone().fold(first, |root, other| if other.len() < root.len() { other } else { root });
    let below = |directory: &str| remainder(directory, root).is_some();
    (below(first) && directories.all(below)).then_some(root)
}

/// `script` with the lane's worktree in place of `root`.
fn in_worktree(script: &str, root: &str) -> String {
    let moved = |change: Change<'_>| {
        let below = remainder(change.directory, root)?;
        let parts = Some(format!("/{below}")).filter(|_| !below.is_empty());
        Some((change.argument, format!("{WORKTREE}{}", crate::model::text::shell_line(parts))))
    };
    edited(script, changes(script).filter_map(moved).collect())
}

/// `script` with names below `root` in place of the absolute ones that stand outside of a `cd`, and whether absolute
/// names of another machine are left.
fn localised(script: &str, root: Option<&str>) -> (String, bool) {
    let (mut edits, mut foreign) = (Vec::new(), false);
    let moves = script.match_indices("cd ").any(|(at, _)| !script[..at].ends_with(|c: char| c.is_alphanumeric()));
    let (mut begins, mut end) = (true, 0);
    for read in characters(script, "\"'").0 {
        let at = read.at;
        if begins && at >= end && is_abroad(&script[at..]) {
            let length = script[at..].find(|c: char| c.is_whitespace() || "\"'`;&|<>(),".contains(c));
            let name = &script[at..length.map_or(script.len(), |length| at + length)];
            match root.and_then(|root| remainder(name, root)) {
                Some(below) if !(moves && read.quote == Some('\'')) => {
                    end = at + name.len();
                    edits.push((at..end, if moves { in_any_directory(name, below, read.quote) } else { here(below) }));
                }
                _ => foreign = true,
            }
        }
        // In quotes, `|` is part of a pattern.
        begins = read.c.is_whitespace() || "\"'`=(<>;&".contains(read.c) || (read.c == '|' && read.quote.is_none());
    }
    (edited(script, edits), foreign)
}

/// What `below` the worktree is called in it.
fn here(below: &str) -> String {
    if below.is_empty() { ".".to_owned() } else { below.to_owned() }
}

/// What `name`, the end of which is `below` the worktree, is called wherever a script has gone.
fn in_any_directory(name: &str, below: &str, quote: Option<char>) -> String {
    let worktree = if quote.is_none() { WORKTREE } else { WORKTREE.trim_matches('"') };
    let separator = usize::from(!below.is_empty());
    format!("{worktree}{}", &name[name.len() - below.len() - separator..])
}

/// Whether `text` begins with a name below someone's home, or on a drive.
fn is_abroad(text: &str) -> bool {
    let bytes = text.as_bytes();
    let drive = bytes.len() > 3
        && bytes[0].is_ascii_uppercase()
        && bytes[1] == b':'
        && matches!(bytes[2], b'/' | b'\\')
        && bytes[3].is_ascii_alphanumeric();
    drive || ["/home/", "/Users/", "/root/", "/mnt/", "/Volumes/", "/c/"].iter().any(|home| text.starts_with(home))
}

/// What of `directory` is below `root`.
fn remainder<'a>(directory: &'a str, root: &str) -> Option<&'a str> {
    let rest = directory.strip_prefix(root)?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix(['/', '\\']) }
}

/// Every `cd` to an absolute directory that is followed by more.
fn changes(text: &str) -> impl Iterator<Item = Change<'_>> + Clone {
    text.match_indices("cd ").filter_map(|(at, _)| {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| !(c.is_whitespace() || "(;&|>`".contains(c))) {
            return None;
        }
        let begin = at + 3;
        let rest = &text[begin..];
        let (length, inside) = match rest.chars().next().filter(|quote| matches!(quote, '"' | '\'')) {
            Some(quote) => {
                let end = rest[1..].find([quote, '\n'])?;
                (end + 2, 1..end + 1)
            }
            None => {
                let end = rest.find([' ', '\n', ';', '&', ')', '`']).unwrap_or(rest.len());
                (end, 0..end)
            }
        };
        let directory = rest[inside].trim_end_matches('/');
        let follows = rest.get(length..).unwrap_or("").trim_start_matches([' ', '\t', '\r']);
        let goes_on = follows.starts_with(['&', ';', '\n']);
        (goes_on && is_foreign(directory)).then(|| Change { argument: begin..begin + length, directory })
    })
}

fn is_foreign(directory: &str) -> bool {
    let bytes = directory.as_bytes();
    let drive =
        bytes.len() > 3 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' && matches!(bytes[2], b'/' | b'\\');
    let below = |root: &str| directory.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let absolute = directory.starts_with('/') && directory.len() > 1 && !ELSEWHERE.iter().any(|root| below(root));
    (drive || absolute) && !directory.contains('$')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::source_text::SourceText;

    #[test]
    fn the_root_of_another_machine_is_the_lanes_worktree() {
        let text = "cd /home/x/app && make && cd /home/x/app/web && npm test\n(cd '/home/x/app/a b' && ls)";
        let source = SourceText::new("p", text);
        assert_eq!(root(source.files(), &[]), Some("/home/x/app"));
        let expected = "cd \"$LANEKEEPER_WORKTREE\" && make && cd \"$LANEKEEPER_WORKTREE\"/web && npm test\n\
                        (cd \"$LANEKEEPER_WORKTREE\"'/a b' && ls)";
        assert_eq!(in_worktree(text, "/home/x/app"), expected);
        let script = SourceText::new("p", "cd C:/src/app\nmake");
        assert_eq!(root(script.files(), &[]), Some("C:/src/app"));
        let windows = SourceText::new("p", "cd C:\\work\\app && make");
        assert_eq!(root(windows.files(), &[]), Some("C:\\work\\app"));
    }

    #[test]
    fn owned_files_say_where_the_repository_begins() {
        let cases: &[(&str, &[&str], &str)] = &[
            ("cd /u/x/invest/app && npm test", &["app/src/a.ts", "app/b.ts", "README.md"], "/u/x/invest"),
            ("cd /u/x/invest/web/app && npm test", &["web/app/a.ts", "web/app/b.ts"], "/u/x/invest"),
            ("cd /u/x/app && npm test", &["src/a.ts", "app/page.ts", "lib/b.ts"], "/u/x/app"),
            ("cd /u/x/app && npm test", &[], "/u/x/app"),
            ("cd /u/x/app && make && cd /u/x && ls", &["app/a.ts"], "/u/x"),
        ];
        for (text, owned, expected) in cases {
            assert_eq!(root(SourceText::new("p", text).files(), owned), Some(*expected), "{text}");
        }
        assert_eq!(
            relocated("cd /u/x/invest/app && npm test", Some("/u/x/invest")).as_deref(),
            Some("cd \"$LANEKEEPER_WORKTREE\"/app && npm test")
        );
    }

    #[test]
    fn names_on_another_machine_are_moved_or_told() {
        let root = Some("/home/x/app");
        let cases = [
            ("ls /home/x/app/src/a.rs", root, "ls src/a.rs", false),
            ("grep -q 'y' '/home/x/app/b' /home/x/app", root, "grep -q 'y' 'b' .", false),
            ("cd web && ls /home/x/app/b", root, "cd web && ls \"$LANEKEEPER_WORKTREE\"/b", false),
            ("cd web && ls \"/home/x/app/b\"", root, "cd web && ls \"$LANEKEEPER_WORKTREE/b\"", false),
            ("cd /home/x/app\nls", root, "cd \"$LANEKEEPER_WORKTREE\"\nls", false),
            ("cd web && ls '/home/x/app/b'", root, "cd web && ls '/home/x/app/b'", true),
            ("ls /home/x/other", root, "ls /home/x/other", true),
            ("ls /Users/y/a", None, "ls /Users/y/a", true),
            ("test -f C:/code/a", None, "test -f C:/code/a", true),
            ("FILE=/root/a ls", None, "FILE=/root/a ls", true),
            ("ls src/home/x /tmp/a", None, "ls src/home/x /tmp/a", false),
            ("curl http://localhost/home/x", None, "curl http://localhost/home/x", false),
            ("rg 'x|/mnt/y' a", None, "rg 'x|/mnt/y' a", false),
            ("grep -q 'A:/' a", None, "grep -q 'A:/' a", false),
        ];
        for (script, root, expected, foreign) in cases {
            assert_eq!(localised(script, root), (expected.to_owned(), foreign), "{script}");
        }
    }

    #[test]
    fn other_directories_stay() {
        for text in ["cd web && make", "cd /tmp/x && make", "abcd /a/b && make", "cd /home/x", "cd /a && x; cd /b && y"]
        {
            assert_eq!(root(SourceText::new("p", text).files(), &[]), None, "{text}");
        }
    }
}
