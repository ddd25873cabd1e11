//! Resolves a name on the command line to plans: one, or those of a roadmap's phases in order.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use lanewright_files::regular_file;
use lanewright_plan::places::{self, Candidate};
use lanewright_plan::roadmap::{self, RoadmapPhase, normal};
use lanewright_plan::settings::absolute;
use lanewright_plan::{MAX_TEXT, PlanFormat, decode, gsd_plans_beside, is_gsd_plan_name};

use super::places::{Disk, several, wanted_features};
use crate::cli::{Context, ExitStatus, Hint, Result};

/// The name that `plan new` gives a plan.
const NATIVE: &str = "plan.toml";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PhaseSequence {
    /// In order; one at least.
    pub(crate) plans: Vec<PathBuf>,
    /// Whether they are a roadmap's phases: what is done already is skipped.
    pub(crate) of_roadmap: bool,
    /// For the user, for example which phase has no plan.
    pub(crate) notes: Vec<String>,
}

impl PhaseSequence {
    fn of_one(plan: &Path) -> Self {
        Self { plans: vec![plan.to_owned()], of_roadmap: false, notes: Vec::new() }
    }
}

/// The plans of `path`, as the user named it: a plan's file, the directory of a GSD phase, a roadmap, a directory with a
/// roadmap or phases in it, or one with plans of other programs; phases that are done only with `redo`.
pub(crate) fn phase_sequence(context: &Context, path: &Path, redo: bool) -> Result<PhaseSequence> {
    let shown = |path: &Path| path.strip_prefix(&context.directory).unwrap_or(path).to_owned();
    sequence(&absolute(&context.directory, path), redo, &|| wanted_features(context), &shown)
}

/// The one plan that `path` means, where a command takes one.
pub(crate) fn single_plan(context: &Context, path: &Path) -> Result<PathBuf> {
    let found = phase_sequence(context, path, true)?;
    match found.plans.as_slice() {
        [plan] if !found.of_roadmap => Ok(plan.clone()),
        _ => Ok(absolute(&context.directory, path)),
    }
}

fn sequence(
    path: &Path,
    redo: bool,
    wanted: &dyn Fn() -> Vec<String>,
    shown: &dyn Fn(&Path) -> PathBuf,
) -> Result<PhaseSequence> {
    if !path.is_dir() {
        let phases = phases_in(path);
        return if phases.is_empty() { Ok(PhaseSequence::of_one(path)) } else { of_roadmap(path, &phases, redo) };
    }
    if names_in(path).iter().any(|name| is_gsd_plan_name(name)) {
        return Ok(PhaseSequence::of_one(path));
    }
    let planning = if path.join(".planning").is_dir() { path.join(".planning") } else { path.to_owned() };
    let directories = phase_directories(&planning);
    let directories = if directories.is_empty() { phase_directories(&planning.join("phases")) } else { directories };
    match candidates(path, &planning, &directories, wanted).as_slice() {
        [] if directories.is_empty() => return Ok(PhaseSequence::of_one(path)),
        [] => {}
        [only] if only.format == PlanFormat::Gsd => {}
        [only] => return Ok(PhaseSequence::of_one(&only.path)),
        found => return Err(several(path, found, shown)),
    }
    let open: Vec<PathBuf> = directories.into_iter().filter(|directory| redo || is_open(directory)).collect();
    chain(path, open, Vec::new(), None)
}

/// The plans of a directory that is not itself a GSD phase; those that are done only if all are.
fn candidates(path: &Path, planning: &Path, phases: &[PathBuf], wanted: &dyn Fn() -> Vec<String>) -> Vec<Candidate> {
    let mut found = places::find(&Disk, path, wanted);
    if !phases.is_empty() {
        let is_open = phases.iter().any(|phase| is_open(phase));
        found.push(Candidate::new(PlanFormat::Gsd, planning.to_owned(), is_open));
    }
    let native = path.join(NATIVE);
    if native.is_file() {
        found.push(Candidate::new(PlanFormat::Toml, native, true));
    }
    places::open_ones(found)
}

/// The phases of a roadmap; none where `path` is something else. Only a regular file is looked into: what comes out of a
/// pipe comes once, and the reader of plans wants it.
fn phases_in(path: &Path) -> Vec<RoadmapPhase> {
    let is_text = |about: &std::fs::Metadata| about.is_file() && about.len() <= MAX_TEXT as u64;
    let bytes = std::fs::metadata(path).ok().filter(is_text).and_then(|_| regular_file::read(path).ok());
    let name = path.to_string_lossy();
    bytes.and_then(|bytes| decode(&name, &bytes).ok().map(roadmap::phases)).unwrap_or_default()
}

/// The phases of a roadmap that are not done, up to the first one without a plan. Those before the first one that has a
/// plan are passed over: their directories were put away.
fn of_roadmap(path: &Path, phases: &[RoadmapPhase], redo: bool) -> Result<PhaseSequence> {
    let home = path.parent().unwrap_or(Path::new("/"));
    let directories = phase_directories(&home.join("phases"));
    let files = plan_files(home);
    let (mut plans, mut notes) = (Vec::new(), Vec::new());
    let plan_of = |phase: &RoadmapPhase, notes: &mut Vec<String>| {
        let directory = directory_of(phase, &directories, notes);
        directory.or_else(|| files.iter().find(|file| is_plan_of(file, path, phase)))
    };
    let first = phases.iter().position(|phase| plan_of(phase, &mut Vec::new()).is_some());
    let mut stop = None;
    for (at, phase) in phases.iter().enumerate().filter(|(_, phase)| redo || !phase.done) {
        match plan_of(phase, &mut notes) {
            Some(directory) if directory.is_dir() && !redo && !is_open(directory) => {}
            Some(plan) => plans.push(plan.clone()),
            None if first.is_some_and(|first| at < first) => {
                notes.push(format!("phase {} ({}) has no plan and is passed over", phase.number, phase.title));
            }
            None => {
                let (number, title) = (&phase.number, &phase.title);
                stop = Some(format!("phase {number} ({title}) has no plan: the chain ends before it"));
                break;
            }
        }
    }
    chain(path, plans, notes, stop)
}

/// The directory of a phase: of those with its number, the one with the most similar name.
fn directory_of<'d>(phase: &RoadmapPhase, directories: &'d [PathBuf], notes: &mut Vec<String>) -> Option<&'d PathBuf> {
    let number = Some(normal(&phase.number));
    let mut found: Vec<&PathBuf> = directories.iter().filter(|directory| number_of(directory) == number).collect();
    found.sort_by_cached_key(|directory| {
        let (common, more) = roadmap::resemblance(name_of(directory), &phase.title);
        (Reverse(common), more)
    });
    let (taken, others) = found.split_first()?;
    for other in others.iter().filter(|other| is_open(other)) {
        let (number, title) = (&phase.number, &phase.title);
        let (taken, other) = (name_of(taken), name_of(other));
        notes.push(format!(
            "{other} has the number of phase {number} ({title}), too, and is left out: {taken} is taken"
        ));
    }
    Some(*taken)
}

fn chain(path: &Path, plans: Vec<PathBuf>, mut notes: Vec<String>, stop: Option<String>) -> Result<PhaseSequence> {
    if plans.is_empty() {
        let reason = stop.or_else(|| notes.pop()).unwrap_or_else(|| "every phase of it is done".to_owned());
        let error = ExitStatus::Usage.error(format!("{} has no phase to run: {reason}", path.display()));
        return Err(error.hint("name the plan of a phase, or its directory; --redo runs what is done again"));
    }
    notes.extend(stop);
    Ok(PhaseSequence { plans, of_roadmap: true, notes })
}

/// The directories with plans below `place`, in the order of their numbers.
fn phase_directories(place: &Path) -> Vec<PathBuf> {
    let directories = names_in(place).into_iter().map(|name| place.join(name));
    let has_plan = |directory: &PathBuf| names_in(directory).iter().any(|name| is_gsd_plan_name(name));
    let mut found: Vec<PathBuf> = directories.filter(|path| path.is_dir() && has_plan(path)).collect();
    found.sort_by_cached_key(|directory| (order(directory), directory.clone()));
    found
}

/// The sorted names of the files in a directory; those that are not UTF-8 are left out.
pub(super) fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// Whether a GSD phase has a plan without a summary.
fn is_open(directory: &Path) -> bool {
    gsd_plans_beside(&names_in(directory)).iter().any(|plan| !plan.is_done)
}

/// `24.1` of `24.1-user-forms`.
fn number_of(directory: &Path) -> Option<String> {
    roadmap::number_of(name_of(directory)).map(normal)
}

fn name_of(directory: &Path) -> &str {
    directory.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Part by part, `9` before `10` and `2` before `2.1`; what has no number comes last.
fn order(directory: &Path) -> (bool, Vec<(u64, String)>) {
    let Some(number) = number_of(directory) else { return (true, Vec::new()) };
    let part = |part: &str| {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        (part[..end].parse().unwrap_or(u64::MAX), part[end..].to_owned())
    };
    (false, number.split('.').map(part).collect())
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
fn is_plan_of(file: &Path, roadmap: &Path, phase: &RoadmapPhase) -> bool {
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

    fn named(path: &Path, redo: bool) -> Result<PhaseSequence> {
        sequence(path, redo, &Vec::new, &Path::to_owned)
    }

    fn plans_and_notes(directory: &tempfile::TempDir, name: &str) -> (Vec<String>, Vec<String>) {
        let found = named(&directory.path().join(name), false).expect("a sequence");
        let below = |path: &PathBuf| path.strip_prefix(directory.path()).expect("below").display().to_string();
        (found.plans.iter().map(below).collect(), found.notes)
    }

    #[test]
    fn roadmap_ends_at_first_phase_without_plan() {
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
        let (plans, notes) = plans_and_notes(&directory, ".planning/ROADMAP.md");
        assert_eq!(plans, [".planning/phases/02.1-c", ".planning/phases/10-d"]);
        assert_eq!(notes, ["phase 11 (E) has no plan: the chain ends before it"]);
    }

    #[test]
    fn redo_includes_finished_phases() {
        let directory = scratch(&[
            (".planning/ROADMAP.md", "# Roadmap\n- [x] **Phase 1: A**\n- [ ] **Phase 2: B**\n"),
            (".planning/phases/01-a/01-01-PLAN.md", ""),
            (".planning/phases/01-a/01-01-SUMMARY.md", ""),
            (".planning/phases/02-b/02-01-PLAN.md", ""),
            (".planning/phases/02-b/02-01-SUMMARY.md", ""),
        ]);
        for name in [".planning/ROADMAP.md", ""] {
            let path = directory.path().join(name);
            assert!(named(&path, false).is_err(), "{name}");
            assert_eq!(named(&path, true).expect("a sequence").plans.len(), 2, "{name}");
        }
    }

    #[test]
    fn phase_is_open_if_a_plan_lacks_a_summary() {
        let directory = scratch(&[
            ("phases/01-a/01-01-plan.md", ""),
            ("phases/02-b/02-01-setup-PLAN.md", ""),
            ("phases/02-b/02-01-SUMMARY.md", ""),
            ("phases/03-c/PLAN.md", ""),
            ("phases/03-c/PLAN-SUMMARY.md", ""),
            ("phases/04-d/04-01-PLAN.md", ""),
        ]);
        assert_eq!(plans_and_notes(&directory, "phases").0, ["phases/01-a", "phases/04-d"]);
    }

    #[test]
    fn similar_name_wins_among_directories_of_a_number() {
        let roadmap = "# Roadmap\n- [ ] Phase 3: User forms\n- [ ] Phase 4: Z\n";
        let directory = scratch(&[
            ("ROADMAP.md", roadmap),
            ("phases/03-forms-of-old/03-01-PLAN.md", ""),
            ("phases/03-user-forms/03-01-PLAN.md", ""),
            ("phases/04-y/04-01-PLAN.md", ""),
            ("phases/04-y/04-01-SUMMARY.md", ""),
            ("phases/04-z/04-01-PLAN.md", ""),
        ]);
        let (plans, notes) = plans_and_notes(&directory, "ROADMAP.md");
        assert_eq!(plans, ["phases/03-user-forms", "phases/04-z"]);
        let note =
            "03-forms-of-old has the number of phase 3 (User forms), too, and is left out: 03-user-forms is taken";
        assert_eq!(notes, [note], "what is done is not missed");
    }

    #[test]
    fn archived_phases_are_passed_over_at_the_start_only() {
        let roadmap = "# Roadmap\n<details>\n### Phase 1: A\n</details>\n- [x] Phase 2: B\n- [ ] Phase 3: C\n\
                       - [ ] Phase 4: D\n- [ ] Phase 5: E\n";
        let files = [
            ("ROADMAP.md", roadmap),
            ("phases/03-c/03-01-PLAN.md", ""),
            ("phases/05-e/05-01-PLAN.md", ""),
            ("phases/02-b/02-01-PLAN.md", ""),
        ];
        let (plans, notes) = plans_and_notes(&scratch(&files[..3]), "ROADMAP.md");
        assert_eq!(plans, ["phases/03-c"]);
        let passed = "phase 1 (A) has no plan and is passed over";
        assert_eq!(notes, [passed, "phase 4 (D) has no plan: the chain ends before it"]);
        let later = scratch(&[files[0], files[3], files[2]]);
        let error = named(&later.path().join("ROADMAP.md"), false).expect_err("phase 2 has a plan, so 3 is to come");
        assert!(error.to_string().contains("phase 3 (C) has no plan: the chain ends"), "{error}");
    }

    #[test]
    fn pipe_is_not_read_as_roadmap() {
        let directory = scratch(&[("x", "")]);
        let pipe = directory.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
        let roadmap = "# Roadmap\n- [ ] Phase 1: A\n";
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::write(pipe, roadmap)
        });
        assert_eq!(named(&pipe, false).expect("a plan of its own").plans, std::slice::from_ref(&pipe));
        assert_eq!(fs::read_to_string(&pipe).expect("text"), roadmap, "it is still there for the reader");
        writer.join().expect("a thread").expect("written");
    }

    #[test]
    fn directory_is_a_phase_or_contains_phases() {
        let directory = scratch(&[
            (".planning/phases/10-j/10-01-PLAN.md", ""),
            (".planning/phases/9-i/09-01-PLAN.md", ""),
            (".planning/phases/notes/README.md", ""),
        ]);
        for name in ["", ".planning", ".planning/phases"] {
            assert_eq!(
                plans_and_notes(&directory, name).0,
                [".planning/phases/9-i", ".planning/phases/10-j"],
                "{name}"
            );
        }
        assert_eq!(plans_and_notes(&directory, ".planning/phases/9-i").0, [".planning/phases/9-i"]);
        assert_eq!(plans_and_notes(&directory, ".planning/phases/notes").0, [".planning/phases/notes"]);
    }

    #[test]
    fn roadmap_finds_phase_plans_by_number_or_alias() {
        let roadmap = "# Phase roadmap v2\n### Phase 1 — One (FIRST)\n### Phase 2 — Two\n### Phase 3 — Three\n";
        let directory = scratch(&[
            ("specs/phase-plans-v2.md", roadmap),
            ("plans/phase-plan-v1-first.md", "an older one"),
            ("plans/phase-plan-v2-first.md", ""),
            ("plans/P2-two.md", ""),
            ("plans/phase-plan-v2-p3.md", ""),
        ]);
        let found = ["plans/phase-plan-v2-first.md", "plans/P2-two.md", "plans/phase-plan-v2-p3.md"];
        assert_eq!(plans_and_notes(&directory, "specs/phase-plans-v2.md").0, found);
    }

    #[test]
    fn roadmap_without_open_phases_is_refused() {
        let directory = scratch(&[("ROADMAP.md", "# Roadmap\n- [ ] Phase 1: A\n")]);
        let error = named(&directory.path().join("ROADMAP.md"), false).expect_err("no plan");
        assert!(error.to_string().contains("phase 1 (A) has no plan"), "{error}");
    }
}
