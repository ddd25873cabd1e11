//! What a change looks like, file by file, up to a limit.

use git2::{DiffOptions, Patch};
use lanewright_model::CommitId;

use super::libgit2::oid;
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

const FILES: usize = 100;

impl Repository {
    /// What `to` changed since `from`, with texts of at most `limit` bytes together; `None`: only git can show it.
    pub fn patches(&self, from: &CommitId, to: &CommitId, limit: usize) -> Option<Patches> {
        self.in_process(|git| {
            let tree = |commit| git.find_commit(oid(commit)?)?.tree();
            let mut options = DiffOptions::new();
            options.max_size(LARGEST);
            let diff = git.diff_tree_to_tree(Some(&tree(from)?), Some(&tree(to)?), Some(&mut options))?;
            let (all, mut room) = (diff.deltas().len(), limit);
            let files = (0..all.min(FILES)).map(|index| file(&diff, index, &mut room));
            Ok(Patches { files: files.collect::<Result<_, _>>()?, others: all.saturating_sub(FILES) })
        })
    }
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
