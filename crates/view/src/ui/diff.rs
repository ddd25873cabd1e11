//! A diff as rows that can be marked and commented on.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    /// Says something about the file.
    Header,
    Hunk,
    Context,
    Added,
    Removed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) kind: Kind,
    /// With the sign in front.
    pub(crate) text: String,
    /// Of the file in [`Diff::files`].
    pub(crate) file: usize,
    /// The line in the new file; of a removed line in the old one.
    pub(crate) number: Option<u32>,
}

impl Row {
    /// Whether it can be commented on.
    pub(crate) fn is_line(&self) -> bool {
        self.number.is_some()
    }
}

/// What `git diff` printed, with its prefixes `a/` and `b/`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diff {
    /// The names, as git writes them.
    pub(crate) files: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

const MOST_ROWS: usize = 50_000;

const LONGEST_ROW: usize = 4096;

impl Diff {
    pub fn parse(text: &str) -> Self {
        let mut reader = Reader::default();
        // A line of a file may hold a carriage return at its end.
        text.split('\n').take(MOST_ROWS).for_each(|line| reader.read(line));
        if reader.diff.rows.last().is_some_and(|row| row.text.is_empty()) {
            reader.diff.rows.pop();
        }
        reader.diff
    }

    /// The first line at or below `row` in its file, else the last one above it.
    pub(crate) fn line_near(&self, row: usize) -> Option<usize> {
        let file = self.rows.get(row)?.file;
        let line = |backwards| self.find(row, backwards, |row| row.file == file && row.is_line());
        line(false).or_else(|| line(true))
    }

    /// The first row at or after `from` that `wanted` accepts; backwards the last one at or before it.
    pub(crate) fn find(&self, from: usize, backwards: bool, wanted: impl Fn(&Row) -> bool) -> Option<usize> {
        match backwards {
            true => self.rows.iter().take(from + 1).rposition(wanted),
            false => Some(from + self.rows.iter().skip(from).position(wanted)?),
        }
    }
}

#[derive(Default)]
struct Reader {
    diff: Diff,
    /// The lines of the hunk that are left, of the old and of the new file.
    left: (u32, u32),
    next: (u32, u32),
}

impl Reader {
    fn read(&mut self, line: &str) {
        if self.left != (0, 0)
            && let Some(kind) = kind_in_hunk(line)
        {
            return self.push_line(kind, line);
        }
        if let Some(names) = line.strip_prefix("diff --git ") {
            self.left = (0, 0);
            self.diff.files.push(name_in_header(names));
            return self.push(Kind::File, line, None);
        }
        let name = line.strip_prefix("+++ ").map(|name| unquoted(name.trim_end_matches('\t')));
        if let Some(name) = name.as_ref().and_then(|name| name.strip_prefix("b/"))
            && let Some(file) = self.diff.files.last_mut()
        {
            name.clone_into(file);
        }
        match hunk(line) {
            Some((old, new)) => {
                (self.next, self.left) = ((old.0, new.0), (old.1, new.1));
                self.push(Kind::Hunk, line, None);
            }
            None => self.push(Kind::Header, line, None),
        }
    }

    fn push_line(&mut self, kind: Kind, line: &str) {
        let (old, new) = (kind != Kind::Added, kind != Kind::Removed);
        let number = if new { self.next.1 } else { self.next.0 };
        let step = |counts: &mut (u32, u32), by: i32| {
            counts.0 = counts.0.saturating_add_signed(if old { by } else { 0 });
            counts.1 = counts.1.saturating_add_signed(if new { by } else { 0 });
        };
        step(&mut self.next, 1);
        step(&mut self.left, -1);
        self.push(kind, line, Some(number));
    }

    fn push(&mut self, kind: Kind, line: &str, number: Option<u32>) {
        let file = self.diff.files.len().saturating_sub(1);
        let text = line.trim_end_matches('\r').chars().take(LONGEST_ROW).collect();
        self.diff.rows.push(Row { kind, text, file, number });
    }
}

fn kind_in_hunk(line: &str) -> Option<Kind> {
    match line.as_bytes().first() {
        Some(b'+') => Some(Kind::Added),
        Some(b'-') => Some(Kind::Removed),
        // Settings of git or a mailer may take the blank of an empty line.
        Some(b' ') | None => Some(Kind::Context),
        _ => None,
    }
}

/// `a/NAME b/NAME`: the second half of what is the same twice.
fn name_in_header(names: &str) -> String {
    if let Some((_, quoted)) = names.rsplit_once(" \"").filter(|_| names.ends_with('"')) {
        let name = unquoted(&format!("\"{quoted}"));
        return name.strip_prefix("b/").unwrap_or(&name).to_owned();
    }
    let half = names.len() / 2;
    let second = names.get(half + 1..).and_then(|name| name.strip_prefix("b/"));
    second.or_else(|| Some(names.rsplit_once(" b/")?.1)).unwrap_or(names).to_owned()
}

/// The name that git wrote as a string of C; if it holds no readable text, as it is written.
fn unquoted(name: &str) -> String {
    let Some(inner) = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) else { return name.to_owned() };
    let text = unescaped(inner).and_then(|bytes| String::from_utf8(bytes).ok());
    text.filter(|text| !text.contains(char::is_control)).unwrap_or_else(|| inner.to_owned())
}

fn unescaped(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let (byte, length) = match (first, after.first()) {
            (b'\\', Some(b'0'..=b'7')) => {
                let digits = std::str::from_utf8(after.get(..3)?).ok()?;
                (u8::from_str_radix(digits, 8).ok()?, 4)
            }
            (b'\\', Some(byte @ (b'"' | b'\\'))) => (*byte, 2),
            // A control character.
            (b'\\', _) => return None,
            (byte, _) => (*byte, 1),
        };
        bytes.push(byte);
        rest = rest.get(length..)?;
    }
    Some(bytes)
}

type Range = (u32, u32);

/// The ranges of `@@ -OLD,COUNT +NEW,COUNT @@`.
fn hunk(line: &str) -> Option<(Range, Range)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let range = |text: &str| {
        let (from, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((from.parse().ok()?, count.parse().ok()?))
    };
    Some((range(old)?, range(new)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "diff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n\
                        @@ -3,3 +3,4 @@ fn f() {\n one\n-two\n+2\n+--- 3\n three\n\\ No newline at end of file\n\
                        diff --git a/img.png b/img.png\nBinary files a/img.png and b/img.png differ\n";

    #[test]
    fn lines_have_the_numbers_of_their_file() {
        let diff = Diff::parse(TEXT);
        assert_eq!(diff.files, ["src/a.rs", "img.png"]);
        let lines: Vec<(Kind, &str, u32)> =
            diff.rows.iter().filter_map(|row| Some((row.kind, row.text.as_str(), row.number?))).collect();
        let expected = [
            (Kind::Context, " one", 3),
            (Kind::Removed, "-two", 4),
            (Kind::Added, "+2", 4),
            (Kind::Added, "+--- 3", 5),
            (Kind::Context, " three", 6),
        ];
        assert_eq!(lines, expected);
        assert_eq!(diff.rows.len(), TEXT.lines().count());
        assert_eq!(diff.rows.last().map(|row| (row.kind, row.file)), Some((Kind::Header, 1)));
    }

    #[test]
    fn a_file_has_the_name_that_it_has_now() {
        let renamed = "diff --git a/old b.rs b/new b.rs\nrename from old b.rs\nrename to new b.rs\n";
        assert_eq!(Diff::parse(renamed).files, ["new b.rs"]);
        assert_eq!(Diff::parse("diff --git a/x y b/x y\nnew file mode 100644\n").files, ["x y"]);
        let deleted = "diff --git a/gone b/gone\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
        assert_eq!(Diff::parse(deleted).files, ["gone"]);
        assert_eq!(Diff::parse(deleted).rows.last().map(|row| row.number), Some(Some(1)));
    }

    #[test]
    fn quoted_names_are_read() {
        let name = r#""b/n/gr\303\266\303\237e \"x\".txt""#;
        let header = format!("diff --git {} {name}\n", name.replace("b/n", "a/n"));
        assert_eq!(Diff::parse(&header).files, ["n/größe \"x\".txt"]);
        let renamed = format!("diff --git a/old {name}\n--- a/old\n+++ {name}\n");
        assert_eq!(Diff::parse(&renamed).files, ["n/größe \"x\".txt"]);
        let odd = "diff --git \"a/x\\ty\" \"b/x\\ty\"\n";
        assert_eq!(Diff::parse(odd).files, ["x\\ty"], "no control character gets into a message");
    }

    #[test]
    fn text_that_is_no_diff_has_no_lines_to_comment_on() {
        let diff = Diff::parse("warning: odd\n@@ nothing @@\n+x\n");
        assert_eq!((diff.files.len(), diff.rows.len()), (0, 3));
        assert!(!diff.rows.iter().any(Row::is_line));
        assert_eq!(Diff::parse(""), Diff::default());
    }
}
