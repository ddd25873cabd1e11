//! The plans of other programs at the places that users name.

use std::path::{Path, PathBuf};

use lanewright_files::regular_file::{self, Links};
use lanewright_git::{EnclosingWorktree, Repository};
use lanewright_model::text::shell_line;
use lanewright_plan::places::{Candidate, Files, PlanFiles};
use lanewright_plan::{Diagnostic, Severity};

use super::phase_sequence::names_in;
use crate::cli::{Context, ExitStatus, Hint};

/// The longest companion that is read; prompts name longer ones, of which they quote nothing.
const MAX_COMPANION: u64 = 1024 * 1024;

/// How many companions of a plan are read.
const MAX_COMPANIONS: usize = 1000;

/// The variable by which Spec Kit is given the feature that is worked on.
const SPECIFY_FEATURE: &str = "SPECIFY_FEATURE";

pub(super) struct Disk;

impl Files for Disk {
    fn names(&self, path: &Path) -> Vec<String> {
        names_in(path)
    }

    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn text(&self, path: &Path) -> Option<String> {
        regular_file::read_text_with(path, Links::Follow, lanewright_plan::MAX_TEXT as u64).ok()
    }
}

/// The names that the current feature of Spec Kit may have, the best first.
pub(super) fn wanted_features(context: &Context) -> Vec<String> {
    let variable = context.environment.get(SPECIFY_FEATURE).and_then(|name| name.to_str()).map(str::to_owned);
    let repository = Repository::discover(&context.directory).ok();
    let branch = repository.and_then(|repository| repository.current_branch().ok().flatten());
    variable.into_iter().chain(branch).collect()
}

/// Several plans where one is meant, each with the command that names it.
pub(super) fn several(path: &Path, found: &[Candidate], shown: &dyn Fn(&Path) -> PathBuf) -> anyhow::Error {
    let error = ExitStatus::Usage.error(format!("{} has several plans; name the one that is meant", path.display()));
    found.iter().fold(error, |error, plan| {
        let command = shell_line(["lanewright", "run", &shown(&plan.path).to_string_lossy()]);
        error.hint(format!("{}: {command}", plan.format))
    })
}

/// The companions of a plan, each with its path below the repository's root and its text, and what cannot be read of them.
pub(super) fn companions(place: &PlanFiles) -> (Vec<(String, String)>, Vec<Diagnostic>) {
    let project = std::fs::canonicalize(&place.project).unwrap_or_else(|_| place.project.clone());
    let root = EnclosingWorktree::of(&place.project).map(|found| found.worktree);
    let below = root.and_then(|root| project.strip_prefix(root).map(Path::to_owned).ok()).unwrap_or_default();
    let (mut texts, mut faults) = (Vec::new(), Vec::new());
    for path in place.companions.iter().take(MAX_COMPANIONS) {
        let name = below.join(path.strip_prefix(&place.project).unwrap_or(path)).to_string_lossy().into_owned();
        match regular_file::read_text_with(path, Links::Follow, MAX_COMPANION) {
            Ok(text) => texts.push((name, text)),
            Err(error) => {
                let message = format!("{name} cannot be read: {error}; prompts do not mention it");
                let help = "make it a text file of at most 1 MiB";
                faults.push(Diagnostic::at_line(Severity::Warning, &name, "", 1, &message, help));
            }
        }
    }
    (texts, faults)
}
