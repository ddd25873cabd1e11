//! Which plans a name on the command line stands for: one, or those of a roadmap's phases in order.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use super::plan_file::names_in;
use crate::cli::error::{CliError, ExitStatus};
use crate::plan_source::roadmap::normal;
use crate::plan_source::{is_gsd_plan_name, roadmap};

/// Plans that follow each other.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) struct Itinerary {
    /// In order; one at least.
    pub(in crate::cli) plans: Vec<PathBuf>,
    /// Whether they are a roadmap's phases: what is done already is passed over.
    pub(in crate::cli) of_roadmap: bool,
    /// What people should know: which phase has no plan.
    pub(in crate::cli) notes: Vec<String>,
}

impl Itinerary {
    fn of_one(plan: &Path) -> Self {
        Self { plans: vec![plan.to_owned()], of_roadmap: false, notes: Vec::new() }
    }
}

/// The plans that `path`, absolute, stands for: a plan's file, the directory of a GSD phase, a roadmap, or a directory
/// with a roadmap or phases in it.
///
/// # Errors
/// A roadmap without a phase that could be run.
pub(in crate::cli) fn itinerary(path: &Path) -> Result<Itinerary, CliError> {
    if !path.is_dir() {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let phases = roadmap::phases(&text);
        return if phases.is_empty() { Ok(Itinerary::of_one(path)) } else { of_roadmap(path, &phases) };
    }
    if names_in(path).iter().any(|name| is_gsd_plan_name(name)) {
        return Ok(Itinerary::of_one(path));
    }
    let planning = if path.join(".planning").is_dir() { path.join(".planning") } else { path.to_owned() };
    let directories = phase_directories(&planning);
    let directories = if directories.is_empty() { phase_directories(&planning.join("phases")) } else { directories };
    if directories.is_empty() {
        return Ok(Itinerary::of_one(path));
    }
    let open: Vec<PathBuf> = directories.into_iter().filter(|directory| is_open(directory)).collect();
    chain(path, open, Vec::new())
}

/// The phases of a roadmap that are not done, up to the first one without a plan.
fn of_roadmap(path: &Path, phases: &[roadmap::RoadmapPhase]) -> Result<Itinerary, CliError> {
    let home = path.parent().unwrap_or(Path::new("/"));
    let directories = phase_directories(&home.join("phases"));
    let files = plan_files(home);
    let (mut plans, mut notes) = (Vec::new(), Vec::new());
    for phase in phases.iter().filter(|phase| !phase.done) {
        let directory = directories.iter().find(|directory| number_of(directory) == Some(normal(&phase.number)));
        match directory.or_else(|| files.iter().find(|file| is_plan_of(file, path, phase))) {
            Some(directory) if directory.is_dir() && !is_open(directory) => {}
            Some(plan) => plans.push(plan.clone()),
            None => {
                notes.push(format!("phase {} ({}) has no plan: nothing goes on from there", phase.number, phase.title));
                break;
            }
        }
    }
    chain(path, plans, notes)
}

fn chain(path: &Path, plans: Vec<PathBuf>, notes: Vec<String>) -> Result<Itinerary, CliError> {
    if plans.is_empty() {
        let reason = notes.first().map_or_else(|| "every phase of it is done".to_owned(), Clone::clone);
        let error = CliError::new(ExitStatus::Usage, format!("{} has no phase to run: {reason}", path.display()));
        return Err(error.hint("name the plan of a phase, or its directory; --redo runs what is done again"));
    }
    Ok(Itinerary { plans, of_roadmap: true, notes })
}

/// The directories with plans below `place`, in the order of their numbers.
fn phase_directories(place: &Path) -> Vec<PathBuf> {
    let directories = names_in(place).into_iter().map(|name| place.join(name));
    let has_plan = |directory: &PathBuf| names_in(directory).iter().any(|name| is_gsd_plan_name(name));
    let mut found: Vec<PathBuf> = directories.filter(|path| path.is_dir() && has_plan(path)).collect();
    found.sort_by(|one, other| by_number(number_of(one).as_deref(), number_of(other).as_deref()).then(one.cmp(other)));
    found
}

/// Whether a GSD phase has a plan without a summary.
fn is_open(directory: &Path) -> bool {
    let names = names_in(directory);
    let is_done = |plan: &String| names.contains(&plan.replace("PLAN", "SUMMARY"));
    names.iter().filter(|name| is_gsd_plan_name(name)).any(|plan| !is_done(plan))
}

/// `24.1` of `24.1-user-forms`.
fn number_of(directory: &Path) -> Option<String> {
    let name = directory.file_name()?.to_str()?;
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(name.len());
    name.starts_with(|c: char| c.is_ascii_digit()).then(|| normal(&name[..end]))
}

/// Part by part, `9` before `10` and `2` before `2.1`; what has no number comes last.
fn by_number(one: Option<&str>, other: Option<&str>) -> Ordering {
    let parts = |number: &str| -> Vec<(u64, String)> {
        let part = |part: &str| {
            let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            (part[..end].parse().unwrap_or(u64::MAX), part[end..].to_owned())
        };
        number.split('.').map(part).collect()
    };
    match (one, other) {
        (Some(one), Some(other)) => parts(one).cmp(&parts(other)),
        (one, other) => other.is_some().cmp(&one.is_some()),
    }
}

/// Markdown files that may be plans of a roadmap that lies in `home`: beside it, and in a directory `plans` beside it or
/// one up.
fn plan_files(home: &Path) -> Vec<PathBuf> {
    let places = [home.to_owned(), home.join("plans"), home.parent().unwrap_or(home).join("plans")];
    let files = places.iter().flat_map(|place| names_in(place).into_iter().map(move |name| place.join(name)));
    files.filter(|file| file.extension().is_some_and(|extension| extension == "md")).collect()
}

/// Whether `file` is the plan of a roadmap's phase by its name: `phase-plan-v1-CONTRACT.md` of `phase-plans-v1.md`,
/// `P3.md`, `P3-pattern-engine.md`.
fn is_plan_of(file: &Path, roadmap: &Path, phase: &roadmap::RoadmapPhase) -> bool {
    let stem = |path: &Path| path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_lowercase();
    let (name, roadmap) = (stem(file), stem(roadmap));
    let by_number = name.strip_prefix(&format!("p{}", normal(&phase.number)));
    if by_number.is_some_and(|rest| rest.is_empty() || rest.starts_with('-')) {
        return true;
    }
    let version = roadmap.strip_prefix("phase-plans-").map(|version| format!("phase-plan-{version}-"));
    let prefix = version.unwrap_or_else(|| "phase-plan-".to_owned());
    let rest = name.strip_prefix(&prefix);
    let called = [phase.alias.clone(), Some(format!("p{}", normal(&phase.number)))];
    called.iter().flatten().any(|called| rest == Some(called.to_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn scratch(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(path, text).expect("a file");
        }
        directory
    }

    fn told(directory: &tempfile::TempDir, name: &str) -> (Vec<String>, Vec<String>) {
        let found = itinerary(&directory.path().join(name)).expect("an itinerary");
        let below = |path: &PathBuf| path.strip_prefix(directory.path()).expect("below").display().to_string();
        (found.plans.iter().map(below).collect(), found.notes)
    }

    #[test]
    fn a_roadmap_is_its_open_phases_in_order_up_to_one_without_a_plan() {
        let roadmap = "# Roadmap\n- [x] **Phase 1: A**\n- [ ] **Phase 2: B**\n- [ ] **Phase 2.1: C**\n\
                       - [ ] **Phase 10: D**\n- [ ] **Phase 11: E**\n- [ ] **Phase 12: F**\n";
        let directory = scratch(&[
            (".planning/ROADMAP.md", roadmap),
            (".planning/phases/01-a/01-01-PLAN.md", ""),
            (".planning/phases/02-b/02-01-PLAN.md", ""),
            (".planning/phases/02-b/02-01-SUMMARY.md", ""),
            (".planning/phases/02.1-c/02.1-01-PLAN.md", ""),
            (".planning/phases/10-d/10-01-PLAN.md", ""),
            (".planning/phases/12-f/12-01-PLAN.md", ""),
        ]);
        let (plans, notes) = told(&directory, ".planning/ROADMAP.md");
        assert_eq!(plans, [".planning/phases/02.1-c", ".planning/phases/10-d"]);
        assert_eq!(notes, ["phase 11 (E) has no plan: nothing goes on from there"]);
    }

    #[test]
    fn a_directory_is_a_phase_or_the_phases_in_it() {
        let directory = scratch(&[
            (".planning/phases/10-j/10-01-PLAN.md", ""),
            (".planning/phases/9-i/09-01-PLAN.md", ""),
            (".planning/phases/notes/README.md", ""),
        ]);
        for name in ["", ".planning", ".planning/phases"] {
            assert_eq!(told(&directory, name).0, [".planning/phases/9-i", ".planning/phases/10-j"], "{name}");
        }
        assert_eq!(told(&directory, ".planning/phases/9-i").0, [".planning/phases/9-i"]);
        assert_eq!(told(&directory, ".planning/phases/notes").0, [".planning/phases/notes"]);
    }

    #[test]
    fn a_roadmap_of_phase_plans_finds_them_by_number_or_short_name() {
        let roadmap = "# Phase roadmap v2\n### Phase 1 — One (FIRST)\n### Phase 2 — Two\n### Phase 3 — Three\n";
        let directory = scratch(&[
            ("specs/phase-plans-v2.md", roadmap),
            ("plans/phase-plan-v1-first.md", "an older one"),
            ("plans/phase-plan-v2-first.md", ""),
            ("plans/P2-two.md", ""),
            ("plans/phase-plan-v2-p3.md", ""),
        ]);
        let found = ["plans/phase-plan-v2-first.md", "plans/P2-two.md", "plans/phase-plan-v2-p3.md"];
        assert_eq!(told(&directory, "specs/phase-plans-v2.md").0, found);
    }

    #[test]
    fn a_roadmap_with_nothing_to_run_says_why() {
        let directory = scratch(&[("ROADMAP.md", "# Roadmap\n- [ ] Phase 1: A\n")]);
        let error = itinerary(&directory.path().join("ROADMAP.md")).expect_err("no plan");
        assert!(error.message.contains("phase 1 (A) has no plan"), "{}", error.message);
    }
}
