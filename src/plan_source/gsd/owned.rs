//! Which files a plan is about.

use std::collections::HashSet;

use crate::plan_source::draft::TaskDraft;
use crate::plan_source::faults::{Faults, quoted};
use crate::plan_source::source_text::At;

use super::lane::PlanFile;
use super::paths;

/// The globs of everything that the front matter and the tasks name, so that no two plans work on a file at once.
/// Files below `.planning/` are not owned: every plan writes there.
pub(super) fn globs(plan: &PlanFile<'_>, tasks: &[TaskDraft], faults: &Faults<'_>) -> Vec<At<String>> {
    let mut globs: Vec<At<String>> = Vec::new();
    let mut seen = HashSet::new();
    let mut bad: Vec<(&At<String>, &str)> = Vec::new();
    let mut take = |path: &str, at: &At<String>| {
        if let Some(glob) = paths::glob(path)
            && seen.insert(glob.clone())
        {
            globs.push(At::new(glob, at.span));
        }
    };
    for written in &plan.header.files {
        for (_, item) in items(&written.value) {
            match paths::entry(item) {
                paths::Entry::Path(path) => take(&path, written),
                paths::Entry::Nothing => {}
                paths::Entry::Unusable(why) => bad.push((written, why)),
            }
        }
    }
    for file in tasks.iter().flat_map(|task| &task.files) {
        take(&file.value, file);
    }
    if let [(first, why), rest @ ..] = bad.as_slice() {
        let more = if rest.is_empty() { String::new() } else { format!(", and {} more are left out", rest.len()) };
        let message = format!("{} in `files_modified` is taken for no file: {why}{more}", quoted(&first.value));
        faults.warning(first.span, message, "name one file below the repository's root in each item");
    }
    globs
}

/// One name, or several with commas between them.
fn items(text: &str) -> Vec<(std::ops::Range<usize>, &str)> {
    if text.contains(", ") { paths::items(text) } else { vec![(0..text.len(), text)] }
}
