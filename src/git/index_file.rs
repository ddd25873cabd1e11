//! Git's index as it lies on disk, read without a process: what is in it, and as what.

use std::borrow::Cow;

/// One path of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    /// From the root of the worktree.
    pub path: Cow<'a, [u8]>,
    /// As in a tree: `0o100644`, `0o100755`, `0o120000`, `0o160000`.
    pub mode: u32,
    /// The name of its blob or commit.
    pub object: &'a [u8],
    /// Whether it would be in a tree: it is in no conflict, and not only intended to be added.
    pub settled: bool,
    /// Whether git was told to take it for unchanged.
    pub assumed: bool,
    /// Whether git was told that it is not in the worktree.
    pub skipped: bool,
}

const OBJECT: usize = 20;
const MODE_AT: usize = 24;
const OBJECT_AT: usize = 40;
const FLAGS_AT: usize = OBJECT_AT + OBJECT;
const EXTENDED: u16 = 0x4000;
const STAGE: u16 = 0x3000;
const INTENDED: u16 = 0x2000;
const ASSUMED: u16 = 0x8000;
const SKIPPED: u16 = 0x4000;

/// The entries of an index of a SHA-1 repository, in its order (gitformat-index: versions 2 to 4). `None`: it is
/// damaged, or holds something without which its entries cannot be understood, such as the other half of a split index.
pub(crate) fn entries(bytes: &[u8]) -> Option<Vec<Entry<'_>>> {
    parts(bytes).map(|(entries, _)| entries)
}

/// The name of the tree that an index stands for, if git noted one when it wrote the index. It stands for no other then.
pub(crate) fn noted_tree(bytes: &[u8]) -> Option<&[u8]> {
    let (entries, extensions) = parts(bytes)?;
    let (_, noted) = extensions.into_iter().find(|(name, _)| name == b"TREE")?;
    // Its first entry is the root, which has no name: how many entries it holds, or -1, how many directories, its object.
    let (counts, rest) = split_at_byte(noted.strip_prefix(b"\0")?, b'\n')?;
    let (count, _) = split_at_byte(counts, b' ')?;
    let count: usize = std::str::from_utf8(count).ok()?.parse().ok()?;
    let whole = count == entries.len() && entries.iter().all(|entry| entry.settled);
    rest.get(..OBJECT).filter(|_| whole)
}

/// The names of what an index holds beside its entries.
pub(crate) fn extensions_of(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    parts(bytes).map(|(_, extensions)| extensions.into_iter().map(|(name, _)| name).collect())
}

/// What git knows an index by; `None`: it was told to leave that out.
pub(crate) fn checksum(bytes: &[u8]) -> Option<&[u8]> {
    let (_, name) = bytes.split_at_checked(bytes.len().checked_sub(OBJECT)?)?;
    Some(name).filter(|name| name.iter().any(|&byte| byte != 0))
}

fn split_at_byte(bytes: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|it| *it == byte)?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

type Extension<'a> = (&'a [u8], &'a [u8]);

/// The entries, and what follows them.
fn parts(bytes: &[u8]) -> Option<(Vec<Entry<'_>>, Vec<Extension<'_>>)> {
    let body = bytes.get(..bytes.len().checked_sub(OBJECT)?)?;
    let version = word(body.strip_prefix(b"DIRC")?)?;
    let mut rest = body.get(12..)?;
    let mut found: Vec<Entry<'_>> = Vec::new();
    if !(2..=4).contains(&version) {
        return None;
    }
    for _ in 0..word(&body[8..])? {
        let (entry, length) = entry(rest, version, found.last())?;
        found.push(entry);
        rest = rest.get(length..)?;
    }
    Some((found, extensions(rest)?))
}

/// The entry at the beginning of `bytes`, and how long it is there.
fn entry<'a>(bytes: &'a [u8], version: u32, before: Option<&Entry<'a>>) -> Option<(Entry<'a>, usize)> {
    let flags = half_word(bytes.get(FLAGS_AT..)?)?;
    let extended = flags & EXTENDED != 0;
    let more = if extended { half_word(bytes.get(FLAGS_AT + 2..)?)? } else { 0 };
    let start = FLAGS_AT + if extended { 4 } else { 2 };
    let (path, length) = match version {
        4 => shortened_path(bytes, start, before)?,
        _ => {
            let path = until_nul(bytes.get(start..)?)?;
            // One to eight NUL bytes follow, up to a multiple of eight.
            (Cow::Borrowed(path), (start + path.len() + 8) & !7)
        }
    };
    let settled = flags & STAGE == 0 && more & INTENDED == 0;
    let (assumed, skipped) = (flags & ASSUMED != 0, more & SKIPPED != 0);
    let object = bytes.get(OBJECT_AT..FLAGS_AT)?;
    Some((Entry { path, mode: word(bytes.get(MODE_AT..)?)?, object, settled, assumed, skipped }, length))
}

/// A path of version 4: how much of the end of the path before it goes, then what comes in its place.
fn shortened_path<'a>(bytes: &[u8], start: usize, before: Option<&Entry<'a>>) -> Option<(Cow<'a, [u8]>, usize)> {
    let mut at = start;
    let mut next = || {
        at += 1;
        bytes.get(at - 1).map(|&byte| usize::from(byte))
    };
    let mut byte = next()?;
    let mut dropped = byte & 127;
    while byte & 128 != 0 {
        byte = next()?;
        dropped = dropped.checked_add(1)?.checked_mul(128)? + (byte & 127);
    }
    let before = before.map_or(&[][..], |entry| &entry.path);
    let added = until_nul(bytes.get(at..)?)?;
    let kept = before.get(..before.len().checked_sub(dropped)?)?;
    Some((Cow::Owned([kept, added].concat()), at + added.len() + 1))
}

/// What follows the entries, each with its name. `None`: something that may not be left out, whose name git writes in
/// small letters.
fn extensions(mut rest: &[u8]) -> Option<Vec<Extension<'_>>> {
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (name, length) = (rest.get(..4)?, word(rest.get(4..)?)? as usize);
        let content = rest.get(8..)?.get(..length)?;
        if !name[0].is_ascii_uppercase() {
            return None;
        }
        found.push((name, content));
        rest = &rest[8 + length..];
    }
    Some(found)
}

fn until_nul(bytes: &[u8]) -> Option<&[u8]> {
    bytes.split(|&byte| byte == 0).next().filter(|path| path.len() < bytes.len())
}

fn word(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

fn half_word(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::super::program::Git;
    use super::*;

    #[test]
    fn every_version_is_read_as_git_lists_it_and_nothing_else_is_believed() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        let git = |arguments: &[&str]| Git::new(place).args(arguments).run().unwrap();
        git(&["init", "--quiet"]);
        let long = "x".repeat(200);
        for name in ["a", "a.txt", "abcdefg", "abcdefgh", "\u{fc}/b", "\u{fc}/bc", &long, "z"] {
            let path = place.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, name).unwrap();
        }
        git(&["add", "--all"]);
        std::fs::write(place.join("intended"), "").unwrap();
        git(&["add", "--intent-to-add", "intended"]);
        for version in ["2", "3", "4"] {
            git(&["update-index", "--index-version", version]);
            let bytes = std::fs::read(place.join(".git/index")).unwrap();
            let found = entries(&bytes).unwrap();
            let lines = found.iter().flat_map(|entry| {
                let object: String = entry.object.iter().map(|byte| format!("{byte:02x}")).collect();
                [format!("{:o} {object} 0\t", entry.mode).as_bytes(), &entry.path, b"\0"].concat()
            });
            assert_eq!(lines.collect::<Vec<u8>>(), git(&["ls-files", "-z", "--stage"]));
            let open: Vec<_> = found.iter().filter(|entry| !entry.settled).map(|entry| entry.path.to_vec()).collect();
            assert_eq!(open, [b"intended"]);
            (0..bytes.len()).for_each(|end| assert!(entries(&bytes[..end]).is_none_or(|found| found.len() == 9)));
        }
        git(&["rm", "--quiet", "--cached", "intended"]);
        let index = || std::fs::read(place.join(".git/index")).unwrap();
        assert_eq!(noted_tree(&index()), None, "it has changed since a tree was made of it");
        let tree = String::from_utf8(git(&["write-tree"])).unwrap();
        let noted =
            |bytes: &[u8]| Some(noted_tree(bytes)?.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        assert_eq!(noted(&index()).as_deref(), Some(tree.trim_end()));
        (0..index().len()).for_each(|end| assert!(noted_tree(&index()[..end]).is_none()));
        git(&["update-index", "--split-index"]);
        assert_eq!(entries(&std::fs::read(place.join(".git/index")).unwrap()), None);
    }
}
