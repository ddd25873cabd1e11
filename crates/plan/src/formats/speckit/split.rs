//! `--split p`: tasks marked `[P]` of the phases that all stories wait for, as lanes of their own.

use std::collections::BTreeMap;
use std::ops::Range;

use super::order::Order;
use super::phases::{Kind, Phase};
use crate::formats::shared::commands_in_text::only_checks;
use crate::formats::shared::paths_in_text::NamedPath;
use crate::markdown::Document;
use crate::source_text::Span;

/// Phases with the files that each of their tasks names.
pub(super) struct Split<'a> {
    pub(super) phases: Vec<Phase<'a>>,
    pub(super) paths: Vec<Vec<Vec<NamedPath>>>,
    /// The places in `phases` of the parts of each phase as it was. Those of one group may run side by side; they come after
    /// those of the group before.
    groups: Vec<Vec<Range<usize>>>,
}

impl<'a> Split<'a> {
    /// The parts are the same whatever is ticked, so that a lane keeps its id.
    pub(super) fn new(document: &Document<'a>, phases: &[Phase<'a>], paths: &[Vec<Vec<NamedPath>>]) -> Self {
        let mut split = Self { phases: Vec::new(), paths: Vec::new(), groups: Vec::new() };
        for (phase, paths) in phases.iter().zip(paths) {
            let runs = match phase.kind {
                Kind::Setup | Kind::Foundation => runs(document, phase, paths),
                _ => Vec::new(),
            };
            let mut groups: Vec<Vec<Range<usize>>> = Vec::new();
            let mut end = 0;
            for run in runs {
                if end < run.start {
                    groups.push(std::iter::once(end..run.start).collect());
                }
                groups.push(run.clone().map(|task| task..task + 1).collect());
                end = run.end;
            }
            if groups.is_empty() || end < phase.tasks.len() {
                groups.push(std::iter::once(end..phase.tasks.len()).collect());
            }
            let is_whole = groups.len() == 1 && groups[0].len() == 1;
            let mut places = Vec::with_capacity(groups.len());
            for group in groups {
                let first = split.phases.len();
                for tasks in group {
                    split.paths.push(paths[tasks.clone()].to_vec());
                    split.phases.push(if is_whole { phase.clone() } else { phase.part(document, tasks) });
                }
                places.push(first..split.phases.len());
            }
            split.groups.push(places);
        }
        split
    }

    /// The order of the parts, by that of the phases.
    pub(super) fn order(&self, order: &Order, span: &dyn Fn(Range<usize>) -> Span) -> Order {
        let mut parts: Order = vec![BTreeMap::new(); self.phases.len()];
        for (waits, groups) in order.iter().zip(&self.groups) {
            for (number, group) in groups.iter().enumerate() {
                for part in group.clone() {
                    let place = span(self.phases[part].at.clone());
                    let others = waits.iter().filter_map(|(&on, &place)| Some((self.groups[on].last()?, place)));
                    let before = match number.checked_sub(1) {
                        Some(before) => vec![(&groups[before], place)],
                        None => others.collect(),
                    };
                    let all = before.into_iter().flat_map(|(group, place)| group.clone().map(move |on| (on, place)));
                    parts[part].extend(all);
                }
            }
        }
        parts
    }
}

/// The runs of at least two tasks of a phase that are marked `[P]`, follow each other and name different files.
fn runs(document: &Document<'_>, phase: &Phase<'_>, paths: &[Vec<NamedPath>]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, task) in phase.tasks.iter().enumerate() {
        // A task that checks something is about the work of others.
        let is_work = task.is_parallel && !paths[at].is_empty() && !only_checks(&document.text[task.text.clone()]);
        let shares = |run: &Range<usize>| paths[run.clone()].iter().any(|other| meet(&paths[at], other));
        match runs.last_mut().filter(|run| run.end == at) {
            Some(run) if is_work && !shares(run) => run.end += 1,
            _ if is_work => runs.push(at..at + 1),
            _ => {}
        }
    }
    runs.retain(|run| run.len() > 1);
    runs
}

/// Whether two tasks name one file, or one a directory of the other's file.
fn meet(one: &[NamedPath], other: &[NamedPath]) -> bool {
    let is_in = |path: &str, directory: &str| {
        let rest = path.strip_prefix(directory.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let meets = |a: &NamedPath| other.iter().any(|b| is_in(&a.path, &b.path) || is_in(&b.path, &a.path));
    one.iter().any(meets)
}
