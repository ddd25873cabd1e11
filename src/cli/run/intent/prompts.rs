//! The repository's own templates of prompts: read, and checked with the plan that uses them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lanewright_agents::prompt::{self, PromptError};
use lanewright_files::regular_file::{self, Links};
use lanewright_model::Plan;
use lanewright_plan::settings::{Origin, Setting, nearest};
use lanewright_plan::{Diagnostic, MAX_TEXT, Severity};

use super::phase_sequence::names_in;

const HELP: &str = "see docs/prompts.md; `lanewright plan show PLAN --prompts` prints every prompt";

/// The templates of the directory by name, and what is wrong with their files.
pub(crate) fn read(place: &Setting<PathBuf>) -> (BTreeMap<String, String>, Vec<Diagnostic>) {
    let directory = &place.value;
    let (mut templates, mut faults) = (BTreeMap::new(), Vec::from_iter(no_directory(place)));
    let names = names_in(directory);
    for name in names.iter().filter(|name| name.ends_with(".md")) {
        let path = directory.join(name);
        match regular_file::read_text_with(&path, Links::Follow, MAX_TEXT as u64) {
            Ok(text) => drop(templates.insert(name.clone(), text)),
            Err(error) => faults.push(fault(Severity::Error, &path, &format!("cannot be read: {error}"), HELP)),
        }
    }
    faults.extend(names.iter().filter_map(|name| misspelt(directory, name, &templates)));
    (templates, faults)
}

/// That the directory was set and is none. The default one may be missing.
fn no_directory(place: &Setting<PathBuf>) -> Option<Diagnostic> {
    let (directory, origin) = (&place.value, &place.origin);
    let exists = directory.exists();
    if directory.is_dir() || (*origin == Origin::Default && !exists) {
        return None;
    }
    let what = if exists { "is not a directory" } else { "does not exist" };
    let message = format!("`prompts` names the directory of templates, and this {what} (set by: {origin})");
    Some(fault(Severity::Error, directory, &message, "create the directory, or remove the setting"))
}

/// A file that no prompt uses and whose name is nearly that of a template.
fn misspelt(directory: &Path, name: &str, templates: &BTreeMap<String, String>) -> Option<Diagnostic> {
    let is_used = prompt::template_names().any(|known| known == name)
        || templates.values().any(|text| text.contains(&format!("\"{name}\"")) || text.contains(&format!("'{name}'")));
    // `review.txt` is as near to `review.md` as `reviev.md` is.
    let stem = name.split('.').next().unwrap_or(name);
    let near = nearest(&format!("{}.md", stem.to_lowercase()), prompt::template_names()).filter(|_| !is_used)?;
    // Editors keep copies beside the file.
    let is_copy = !name.ends_with(".md") && templates.contains_key(near);
    let help = format!("did you mean `{near}`?");
    (!is_copy).then(|| fault(Severity::Warning, &directory.join(name), "no prompt uses this template", &help))
}

/// What is wrong with the templates for the prompts of `plan`.
pub(crate) fn check(plan: &Plan, directory: &Path) -> Vec<Diagnostic> {
    let (severity, errors) = match prompt::check(plan) {
        Ok(warnings) => (Severity::Warning, warnings),
        Err(error) => (Severity::Error, vec![error]),
    };
    let diagnostic = |PromptError { template, line, offset, reason }: PromptError| {
        let path = directory.join(&template).to_string_lossy().into_owned();
        let text = plan.prompts.get(&template).map_or("", String::as_str);
        match offset {
            Some(offset) => Diagnostic::at_offset(severity, &path, text, offset, &reason, HELP),
            None => Diagnostic::at_line(severity, &path, text, line, &reason, HELP),
        }
    };
    errors.into_iter().map(diagnostic).collect()
}

/// A fault of a file as a whole.
fn fault(severity: Severity, path: &Path, message: &str, help: &str) -> Diagnostic {
    Diagnostic::at_line(severity, &path.to_string_lossy(), "", 1, message, help)
}
