//! Commands that go to a directory of the machine that the plan was written on.
//!
//! Such a gate would judge another copy of the files than the lane's, or none.

use std::sync::LazyLock;

use lanewright_agents::shell::edited;
use regex::Regex;

use super::classify::characters;
use crate::source_text::File;

/// The directory of a worktree, for everything that its lane runs.
const WORKTREE: &str = "$LANEWRIGHT_WORKTREE";

const ELSEWHERE: [&str; 10] = ["/tmp", "/var", "/etc", "/usr", "/opt", "/dev", "/proc", "/sys", "/bin", "/lib"];

/// The directory that all plans take for the repository's root: the shortest one that they `cd` to, where all others
/// lie below it.
///
/// Where most of the `owned` files begin with the last parts of that directory, it is one of the repository's own, and the
/// repository is the text before them.
pub(crate) fn root<'a>(files: &[File<'a>], owned: &[&str]) -> Option<&'a str> {
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

/// `script` with the lane's worktree in place of `root`; `None`: it names other files of another machine. Where it goes
/// nowhere, names below `root` become relative ones.
pub(crate) fn relocated(script: &str, root: Option<&str>) -> Option<String> {
    let moves = script.match_indices("cd ").any(|(at, _)| !script[..at].ends_with(|c: char| c.is_alphanumeric()));
    let (mut edits, mut begins) = (Vec::new(), true);
    for read in characters(script, "\"'").0 {
        let (at, name) = (read.at, &script[read.at..]);
        if let Some(root) = root.filter(|root| begins && is_below(name, root)) {
            let below = &name[root.len()..];
            let separator = usize::from(below.starts_with(['/', '\\']));
            let end = at + root.len();
            edits.push(match read.quote {
                _ if !moves && below[separator..].starts_with(in_name) => (at..end + separator, String::new()),
                _ if !moves => (at..end + separator, ".".to_owned()),
                None => (at..end, format!("\"{WORKTREE}\"")),
                Some('\'') => {
                    // Between two quotes nothing is left of either.
                    let (opened, closed) = (script[..at].ends_with('\''), below.starts_with('\''));
                    let [before, behind] = [opened, closed].map(|next| if next { "" } else { "'" });
                    let place = at - usize::from(opened)..end + usize::from(closed);
                    (place, format!("{before}\"{WORKTREE}\"{behind}"))
                }
                Some(_) => (at..end, WORKTREE.to_owned()),
            });
        } else if begins && is_abroad(name) {
            return None;
        }
        // In quotes, `|` is part of a pattern.
        begins = read.c.is_whitespace() || "\"'`=(<>;&".contains(read.c) || (read.c == '|' && read.quote.is_none());
    }
    let home = ["cd ~/", "cd $HOME/", "cd \"$HOME/", "cd ${HOME}/"].iter().any(|home| script.contains(home));
    (!home).then(|| edited(script, edits))
}

/// Whether `text` begins with `root` or a name below it.
fn is_below(text: &str, root: &str) -> bool {
    text.strip_prefix(root).is_some_and(|rest| !rest.starts_with(in_name))
}

fn in_name(c: char) -> bool {
    c.is_alphanumeric() || "-_.*?[{$".contains(c)
}

fn common<'a>(files: &[File<'a>]) -> Option<&'a str> {
    let mut found = files.iter().flat_map(|file| directories(file.text));
    let first = found.next()?;
    let root = found.clone().fold(first, |root, other| if other.len() < root.len() { other } else { root });
    let below = |directory: &str| {
        directory.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '\\']))
    };
    (below(first) && found.all(below)).then_some(root)
}

/// Whether `text` begins with a name below someone's home, or on a drive.
fn is_abroad(text: &str) -> bool {
    static ABROAD: LazyLock<Regex> = pattern!(r"^(?:[A-Z]:[/\\][A-Za-z0-9]|/(?:home|Users|root|mnt|Volumes|c)/)");
    ABROAD.is_match(text)
}

/// Every absolute directory that the text changes to (`cd`) before another command.
fn directories(text: &str) -> impl Iterator<Item = &str> + Clone {
    text.match_indices("cd ").filter_map(|(at, _)| {
        if text[..at].ends_with(|c: char| !(c.is_whitespace() || "(;&|>`".contains(c))) {
            return None;
        }
        let rest = &text[at + 3..];
        let (directory, behind) = match rest.chars().next().filter(|quote| matches!(quote, '"' | '\'')) {
            Some(quote) => {
                let end = rest[1..].find([quote, '\n'])? + 1;
                (&rest[1..end], &rest[end + 1..])
            }
            None => rest.split_at(rest.find([' ', '\n', ';', '&', ')', '`']).unwrap_or(rest.len())),
        };
        let directory = directory.trim_end_matches('/');
        let goes_on = behind.trim_start_matches([' ', '\t', '\r']).starts_with(['&', ';', '\n']);
        (goes_on && is_foreign(directory)).then_some(directory)
    })
}

fn is_foreign(directory: &str) -> bool {
    static DRIVE: LazyLock<Regex> = pattern!(r"(?s)^[A-Za-z]:[/\\].");
    let below = |root: &str| directory.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let absolute = directory.starts_with('/') && directory.len() > 1 && !ELSEWHERE.iter().any(|root| below(root));
    (DRIVE.is_match(directory) || absolute) && !directory.contains('$')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source_text::SourceText;

    #[test]
    fn foreign_root_becomes_worktree() {
        let text = "cd /home/x/app && make && cd /home/x/app/web && npm test\n(cd '/home/x/app/a b' && ls)";
        let source = SourceText::new("p", text);
        assert_eq!(root(source.files(), &[]), Some("/home/x/app"));
        let expected = "cd \"$LANEWRIGHT_WORKTREE\" && make && cd \"$LANEWRIGHT_WORKTREE\"/web && npm test\n\
                        (cd \"$LANEWRIGHT_WORKTREE\"'/a b' && ls)";
        assert_eq!(relocated(text, Some("/home/x/app")).as_deref(), Some(expected));
        let script = SourceText::new("p", "cd C:/src/app\nmake");
        assert_eq!(root(script.files(), &[]), Some("C:/src/app"));
        let windows = SourceText::new("p", "cd C:\\work\\app && make");
        assert_eq!(root(windows.files(), &[]), Some("C:\\work\\app"));
    }

    #[test]
    fn owned_files_locate_repository_root() {
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
            Some("cd \"$LANEWRIGHT_WORKTREE\"/app && npm test")
        );
    }

    #[test]
    fn foreign_paths_are_relocated_or_refused() {
        let root = Some("/home/x/app");
        let cases = [
            ("ls /home/x/app/src/a.rs", root, Some("ls src/a.rs")),
            ("grep -q 'y' '/home/x/app/b' /home/x/app /home/x/app/", root, Some("grep -q 'y' 'b' . .")),
            ("cd web && ls /home/x/app/b", root, Some("cd web && ls \"$LANEWRIGHT_WORKTREE\"/b")),
            ("cd web && ls \"/home/x/app/b\"", root, Some("cd web && ls \"$LANEWRIGHT_WORKTREE/b\"")),
            ("cd web && ls '/home/x/app/b'", root, Some("cd web && ls \"$LANEWRIGHT_WORKTREE\"'/b'")),
            ("cd '/home/x/app' && ls", root, Some("cd \"$LANEWRIGHT_WORKTREE\" && ls")),
            ("bash -c 'cd /home/x/app && ls'", root, Some("bash -c 'cd '\"$LANEWRIGHT_WORKTREE\"' && ls'")),
            ("cd /home/x/app\nls", root, Some("cd \"$LANEWRIGHT_WORKTREE\"\nls")),
            ("ls /home/x/other", root, None),
            ("ls /home/x/app2", root, None),
            ("ls /Users/y/a", None, None),
            ("test -f C:/code/a", None, None),
            ("FILE=/mnt/y/a ls", None, None),
            ("cd ~/app && ls", None, None),
            ("ls src/home/x /tmp/a", None, Some("ls src/home/x /tmp/a")),
            ("curl http://localhost/home/x", None, Some("curl http://localhost/home/x")),
            ("rg 'x|/mnt/y' a", None, Some("rg 'x|/mnt/y' a")),
            ("grep -q 'A:/' a", None, Some("grep -q 'A:/' a")),
        ];
        for (script, root, expected) in cases {
            assert_eq!(relocated(script, root).as_deref(), expected, "{script}");
        }
    }

    #[test]
    fn unrelated_directories_are_not_relocated() {
        for text in ["cd web && make", "cd /tmp/x && make", "abcd /a/b && make", "cd /home/x", "cd /a && x; cd /b && y"]
        {
            assert_eq!(root(SourceText::new("p", text).files(), &[]), None, "{text}");
        }
    }
}
