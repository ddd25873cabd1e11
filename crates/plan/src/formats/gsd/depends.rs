//! What a plan means by the plans that it depends on.

use std::collections::HashMap;

use crate::faults::{Faults, quoted};
use crate::markdown::inline::is_nothing;
use crate::roadmap::{normal, number_of};
use crate::source_text::At;

use super::names::{canonical, file_and_directory, stem};
use super::plan_file::PlanFile;

/// All plans that can be meant, by every spelling of their names.
pub(super) struct PlanIndex<'a> {
    by_name: HashMap<String, &'a str>,
    /// By their number in the phase alone; `None`: two plans have it.
    by_number: HashMap<String, Option<&'a str>>,
    phases: Vec<String>,
    /// Plans that are done, or stand in the same directory and are.
    done: Vec<String>,
}

enum Target<'a> {
    Lane(&'a str),
    /// One that is done.
    Done,
    /// One of this phase that is not there.
    Missing,
    /// One of another phase.
    Outside,
    /// No plan at all: `none`.
    Nothing,
}

impl<'a> PlanIndex<'a> {
    /// `plans` will run; `done` are the names of the files of those that need not.
    pub(super) fn new(plans: &'a [PlanFile<'a>], done: &[String]) -> Self {
        let mut known = Self {
            by_name: HashMap::new(),
            by_number: HashMap::new(),
            phases: Vec::new(),
            done: done.iter().filter_map(|name| stem(name)).flat_map(spellings).collect(),
        };
        for plan in plans {
            let (name, directory) = file_and_directory(plan.file.path);
            let stem = stem(name).unwrap_or_else(|| plan.id.clone());
            let number = number(&stem);
            known.phases.extend(phase_of(&stem).map(normal));
            known.phases.extend(directory.map(normal));
            known.phases.extend(directory.and_then(number_of).map(normal));
            for spelling in spellings(stem).into_iter().chain([normal(&plan.id)]) {
                known.by_name.entry(spelling).or_insert(&plan.id);
            }
            let own = plan.header.plan.as_ref().map(|plan| normal(&plan.value));
            for number in number.into_iter().chain(own).collect::<std::collections::BTreeSet<_>>() {
                let entry = known.by_number.entry(number).or_insert(Some(&plan.id));
                *entry = entry.filter(|id| *id == plan.id);
            }
        }
        known
    }

    fn resolve(&self, written: &str) -> Target<'a> {
        let (name, directory) = file_and_directory(written.trim_matches(['`', '"', '\'', ' ']));
        let name = name.trim();
        if is_nothing(name) {
            return Target::Nothing;
        }
        let elsewhere = directory.is_some_and(|directory| {
            let number = number_of(directory).map(normal);
            number.is_some_and(|number| !self.phases.contains(&number))
        });
        if elsewhere {
            return Target::Outside;
        }
        let stem = reference_stem(name);
        for spelling in spellings(stem.clone()) {
            if let Some(lane) = self.by_name.get(&spelling) {
                return Target::Lane(lane);
            }
            if self.done.contains(&spelling) {
                return Target::Done;
            }
        }
        if let Some(Some(lane)) = self.by_number.get(&normal(&stem)) {
            return Target::Lane(lane);
        }
        let bare = number_of(&stem).is_some_and(|number| number.len() == stem.len());
        let ours = phase_of(&stem).map(normal).is_some_and(|phase| self.phases.contains(&phase));
        let done_number = |done: &String| number(done).is_some_and(|own| own == normal(&stem));
        if bare && self.done.iter().any(done_number) {
            return Target::Done;
        }
        if ours || bare { Target::Missing } else { Target::Outside }
    }

    /// The lanes that `plan` waits for. `alone` says that it was asked for by itself, without its phase.
    pub(super) fn lanes(&self, plan: &PlanFile<'_>, alone: bool, faults: &Faults<'_>) -> Vec<At<String>> {
        let mut lanes: Vec<At<String>> = Vec::new();
        for reference in &plan.header.depends_on {
            let name = quoted(&reference.value);
            let span = reference.span;
            match self.resolve(&reference.value) {
                Target::Lane(lane) if lane == plan.id => {
                    let message = format!("the plan {} depends on itself", quoted(&plan.id));
                    faults.warning(span, message, "name another plan, or leave it out; it is ignored");
                }
                Target::Lane(lane) if lanes.iter().any(|known| known.value == lane) => {}
                Target::Lane(lane) => lanes.push(At::new(lane.to_owned(), span)),
                Target::Done | Target::Nothing => {}
                Target::Missing if alone => {
                    let message = format!("the plan {name} is not part of what is run, and has no SUMMARY");
                    faults.warning(span, message, "run the whole phase, or make sure that its work is there");
                }
                Target::Missing => {
                    let message = format!("there is no plan {name} in this phase");
                    faults.warning(span, message, "write the number of a plan as in its file's name; it is ignored");
                }
                Target::Outside => {
                    let message = format!("the plan {name} is not in this phase");
                    faults.warning(span, message, "it is taken to be done; make sure that its work is there");
                }
            }
        }
        lanes
    }
}

/// `01-02` for `01-02-PLAN.md`, `Plan 01-02`, `01-02-SUMMARY` and `01-02 (schema)`.
fn reference_stem(name: &str) -> String {
    let without_word = ["plan ", "plan-", "Plan ", "Plan-", "PLAN "].iter().find_map(|word| name.strip_prefix(word));
    let name = without_word.unwrap_or(name);
    let name = name.split(['(', ' ', ':']).next().unwrap_or(name).trim();
    let base = name.strip_suffix(".md").unwrap_or(name);
    let base = base.strip_suffix("-SUMMARY").unwrap_or(base);
    stem(&format!("{base}.md")).filter(|stem| !stem.is_empty()).unwrap_or_else(|| base.to_owned())
}

/// All ways to write a stem, normal.
fn spellings(stem: String) -> Vec<String> {
    let short = canonical(&stem).map(normal);
    std::iter::once(normal(&stem)).chain(short).collect()
}

/// The number of a plan in its phase: `2` for `01-02-setup`, for `02` and for `auth-02`.
fn number(stem: &str) -> Option<String> {
    let short = canonical(stem).unwrap_or(stem);
    let last = short.rsplit('-').next()?;
    last.starts_with(|c: char| c.is_ascii_digit()).then(|| normal(last))
}

/// `01` of `01-02`.
fn phase_of(stem: &str) -> Option<&str> {
    canonical(stem).and_then(|short| short.rsplit_once('-')).map(|(phase, _)| phase)
}
