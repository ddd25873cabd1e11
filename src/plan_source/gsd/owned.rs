//! Which files a plan is about.

use std::collections::HashSet;

use crate::plan_source::draft::TaskDraft;
use crate::plan_source::faults::{Faults, quoted};
use crate::plan_source::source_text::At;

use super::lane::PlanFile;
use super::paths;

/// The globs of all files of a plan, so that no two plans work on one at once. Files below `.planning/` are not owned:
/// every plan writes there.
pub(super) fn globs(files: &[At<String>]) -> Vec<At<String>> {
    let mut seen = HashSet::new();
    let globs = files.iter().filter_map(|file| Some(At::new(paths::glob(&file.value)?, file.span)));
    globs.filter(|glob| seen.insert(glob.value.clone())).collect()
}

/// Everything that the front matter and the tasks name, as it is written there.
pub(super) fn files(plan: &PlanFile<'_>, tasks: &[TaskDraft], faults: &Faults<'_>) -> Vec<At<String>> {
    let mut files: Vec<At<String>> = Vec::new();
    let mut bad: Vec<(&At<String>, &str)> = Vec::new();
    for written in &plan.header.files {
        for (_, item) in items(&written.value) {
            match paths::entry(item) {
                paths::Entry::Path(path) => files.push(At::new(path, written.span)),
                paths::Entry::Nothing => {}
                paths::Entry::Unusable(why) => bad.push((written, why)),
            }
        }
    }
    files.extend(tasks.iter().flat_map(|task| task.files.iter().cloned()));
    if let [(first, why), rest @ ..] = bad.as_slice() {
        let more = if rest.is_empty() { String::new() } else { format!(", and {} more are left out", rest.len()) };
        let message = format!("{} in `files_modified` is taken for no file: {why}{more}", quoted(&first.value));
        faults.warning(first.span, message, "name one file below the repository's root in each item");
    }
    files
}

/// One name, or several with commas between them.
fn items(text: &str) -> Vec<(std::ops::Range<usize>, &str)> {
    if text.contains(", ") { paths::items(text) } else { vec![(0..text.len(), text)] }
}
