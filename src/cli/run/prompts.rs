//! The repository's own templates of prompts: read, and checked with the plan that uses them.

use std::collections::BTreeMap;
use std::path::Path;

use super::plan_file::names_in;
use crate::fs::regular_file::{self, Links};
use crate::model::Plan;
use crate::plan::{Diagnostic, MAX_TEXT, Severity};
use crate::prompt;
use crate::settings::nearest;

const HELP: &str = "see docs/prompts.md; `lanekeeper plan show PLAN --prompts` prints every prompt";

/// The templates of a directory by name, and what is wrong with their files.
pub(super) fn read(directory: &Path) -> (BTreeMap<String, String>, Vec<Diagnostic>) {
    let (mut templates, mut faults) = (BTreeMap::new(), Vec::new());
    for name in names_in(directory).into_iter().filter(|name| name.ends_with(".md")) {
        let path = directory.join(&name);
        match regular_file::read_text_with(&path, Links::Follow, MAX_TEXT as u64) {
            Ok(text) => drop(templates.insert(name, text)),
            Err(error) => faults.push(fault(Severity::Error, &path, "", 1, &format!("cannot be read: {error}"), HELP)),
        }
    }
    faults.extend(templates.keys().filter_map(|name| misspelt(directory, name, &templates)));
    (templates, faults)
}

/// A template that nothing includes and whose name is nearly that of one that is used.
fn misspelt(directory: &Path, name: &str, templates: &BTreeMap<String, String>) -> Option<Diagnostic> {
    let is_used = prompt::template_names().any(|known| known == name)
        || templates.values().any(|text| text.contains(&format!("\"{name}\"")) || text.contains(&format!("'{name}'")));
    let near = nearest(name, prompt::template_names()).filter(|_| !is_used)?;
    let help = format!("did you mean `{near}`?");
    Some(fault(Severity::Warning, &directory.join(name), &templates[name], 1, "no prompt uses this template", &help))
}

/// What is wrong with the templates for the prompts of `plan`.
pub(super) fn check(plan: &Plan, directory: &Path) -> Option<Diagnostic> {
    let error = prompt::check(plan).err()?;
    let text = plan.prompts.get(&error.template).map_or("", String::as_str);
    Some(fault(Severity::Error, &directory.join(&error.template), text, error.line, &error.reason, HELP))
}

fn fault(severity: Severity, path: &Path, text: &str, line: usize, message: &str, help: &str) -> Diagnostic {
    Diagnostic::at_line(severity, &path.to_string_lossy(), text, line, message, help)
}
