//! What a change looks like, file by file, up to a limit.

use git2::{DiffOptions, Index, IndexEntry, IndexTime, Oid, Patch};
use lanewright_model::CommitId;

use super::libgit2::{ChangedEntry, changed_entries, oid};
use crate::repo::Repository;

/// A file that two commits hold differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    pub path: Vec<u8>,
    /// How many lines were added and removed; `None`: it is not text, or too large to be compared.
    pub lines: Option<(usize, usize)>,
    /// A unified diff with git's headers, or its first lines.
    pub text: Vec<u8>,
    /// Whether the text is all of it.
    pub whole: bool,
}

/// The first files in which two commits differ, and how many others there are.
#[derive(Debug)]
pub struct Patches {
    pub files: Vec<FilePatch>,
    pub others: usize,
}

/// Larger files are not compared.
const LARGEST: i64 = 512 * 1024;

pub(super) const FILES: usize = 100;

impl Repository {
    /// What `to` changed since `from`, with texts of at most `limit` bytes together; `None`: only git can show it.
    pub fn patches(&self, from: &CommitId, to: &CommitId, limit: usize) -> Option<Patches> {
        self.in_process(|git| {
            let tree = |commit| Ok::<_, git2::Error>(git.find_commit(oid(commit)?)?.tree_id());
            let changed = changed_entries(git, tree(from)?, tree(to)?)?;
            let shown = &changed[..changed.len().min(FILES)];
            let (old, new) = (index_of(shown, |entry| entry.from)?, index_of(shown, |entry| entry.to)?);
            let mut options = DiffOptions::new();
            options.max_size(LARGEST);
            let diff = git.diff_index_to_index(&old, &new, Some(&mut options))?;
            let mut room = limit;
            let files = (0..diff.deltas().len()).map(|index| file(&diff, index, &mut room));
            Ok(Patches { files: files.collect::<Result<_, _>>()?, others: changed.len() - shown.len() })
        })
    }
}

/// An index in memory with one side of what was changed, so that libgit2 looks at nothing else.
fn index_of(
    changed: &[ChangedEntry],
    side: impl Fn(&ChangedEntry) -> Option<(Oid, u32)>,
) -> Result<Index, git2::Error> {
    let mut index = Index::new()?;
    let zero = IndexTime::new(0, 0);
    for (entry, (id, mode)) in changed.iter().filter_map(|entry| Some((entry, side(entry)?))) {
        index.add(&IndexEntry {
            ctime: zero,
            mtime: zero,
            dev: 0,
            ino: 0,
            mode,
            uid: 0,
            gid: 0,
            file_size: 0,
            id,
            flags: 0,
            flags_extended: 0,
            path: entry.path.clone(),
        })?;
    }
    Ok(index)
}

fn file(diff: &git2::Diff<'_>, index: usize, room: &mut usize) -> Result<FilePatch, git2::Error> {
    let patch = Patch::from_diff(diff, index)?;
    // Whether it is text is known once it was compared.
    let delta = diff.get_delta(index).ok_or_else(|| git2::Error::from_str("the change is not there"))?;
    let path = delta.new_file().path_bytes().or(delta.old_file().path_bytes()).unwrap_or_default().to_vec();
    let Some(mut patch) = patch.filter(|_| !delta.flags().is_binary()) else {
        return Ok(FilePatch { path, lines: None, text: Vec::new(), whole: true });
    };
    let (_, added, removed) = patch.line_stats()?;
    let all = patch.to_buf()?;
    let text = first_lines(&all, *room).to_vec();
    *room -= text.len();
    Ok(FilePatch { path, lines: Some((added, removed)), whole: text.len() == all.len(), text })
}

/// As many whole lines of `text` as have at most `limit` bytes.
fn first_lines(text: &[u8], limit: usize) -> &[u8] {
    match text.get(..limit) {
        None => text,
        Some(_) if text.len() == limit => text,
        Some(start) => &text[..start.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1)],
    }
}
