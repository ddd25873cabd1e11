//! Which files a plan is about.

use std::collections::HashSet;

use crate::plan::draft::TaskDraft;
use crate::plan::faults::{Faults, quoted};
use crate::plan::path::{as_glob, items, listed};
use crate::plan::source_text::At;

use super::plan_file::PlanFile;

/// The globs of all files of a plan, so that no two plans work on one at once. Files below `.planning/` are not owned:
/// every plan writes there.
pub(super) fn globs(files: &[At<String>]) -> Vec<At<String>> {
    let mut seen = HashSet::new();
    let foreign = |file: &&At<String>| file.value != ".planning" && !file.value.starts_with(".planning/");
    let globs = files.iter().filter(foreign).filter_map(|file| Some(At::new(as_glob(&file.value).ok()?, file.span)));
    globs.filter(|glob| seen.insert(glob.value.clone())).collect()
}

/// Everything that the front matter and the tasks name, as it is written there.
pub(super) fn files(plan: &PlanFile<'_>, tasks: &[TaskDraft], faults: &Faults<'_>) -> Vec<At<String>> {
    let mut files: Vec<At<String>> = Vec::new();
    let mut bad: Vec<(&At<String>, &str)> = Vec::new();
    for written in &plan.header.files {
        for item in named(&written.value) {
            match listed(item) {
                Ok(path) => files.extend(path.map(|path| At::new(path, written.span))),
                Err(why) => bad.push((written, why)),
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
fn named(text: &str) -> Vec<&str> {
    if text.contains(", ") { items(text).into_iter().map(|(_, item)| item).collect() } else { vec![text] }
}
