//! The lane of an issue: what its agent reads, its gates, and the files that it names.

use super::graph::Graph;
use super::issue::Issue;
use crate::draft::{LaneDraft, PromptDraft, TaskDraft};
use crate::faults::Faults;
use crate::formats::shared::acceptance::{Judged, judged_by};
use crate::formats::shared::commands_in_text::only_checks;
use crate::formats::shared::items::{Repeated, Standing};
use crate::formats::shared::paths_in_text::{NamedPath, complete, globs, paths_in_text, retain_sure};
use crate::ids::as_id;
use crate::markdown::{paragraph, section};
use crate::source_text::At;

/// How many issues before it a prompt names.
const MAX_NAMED: usize = 50;

pub(super) struct Writer<'a> {
    issues: &'a [Issue],
    graph: &'a Graph<'a>,
    faults: &'a Faults<'a>,
    paths: Vec<Vec<NamedPath>>,
    repeated: Repeated,
}

impl<'a> Writer<'a> {
    pub(super) fn new(issues: &'a [Issue], graph: &'a Graph<'a>, faults: &'a Faults<'a>) -> Self {
        let named = |issue: &Issue| match issue.standing {
            Standing::Done(_) | Standing::Gone => Vec::new(),
            _ => paths_in_text(&format!("{}\n\n{}", issue.field("description", faults), issue.field("design", faults))),
        };
        let mut paths: Vec<Vec<NamedPath>> = issues.iter().map(named).collect();
        complete(paths.iter_mut().flatten());
        paths.iter_mut().for_each(|paths| retain_sure(paths, ".beads/"));
        Self { issues, graph, faults, paths, repeated: Repeated::new() }
    }

    /// The lane of issue number `at`, without its id, name and edges.
    pub(super) fn lane(&self, at: usize) -> LaneDraft {
        let issue = &self.issues[at];
        let span = issue.id.span;
        let mut description = issue.field("description", self.faults);
        let judged = issue.field("acceptance_criteria", self.faults);
        let Judged { gates, criteria } = judged_by(judged, &mut description, span, self.faults);
        let task = TaskDraft {
            span,
            id: as_id(&issue.id.value).map(|id| At::new(id, span)),
            name: Some(At::new(issue.title.clone(), span)).filter(|name| !name.value.is_empty()),
            prompt: PromptDraft::here(self.prompt(at, &description), span),
            acceptance_criteria: criteria.iter().map(|text| At::new(text.clone(), span)).collect(),
            allow_empty: only_checks(&issue.title) || self.graph.has_children(at),
            ..TaskDraft::default()
        };
        LaneDraft {
            owns: Some(globs(self.paths[at].iter(), |_| span)),
            tests: Some(gates).filter(|gates| !gates.is_empty()),
            criteria: Some(criteria.join("\n")).filter(|text| !text.is_empty()),
            tasks: Some(vec![task]),
            ..LaneDraft::default()
        }
    }

    fn prompt(&self, at: usize, description: &str) -> String {
        let issue = &self.issues[at];
        let kind = if issue.kind.is_empty() { "issue" } else { &issue.kind };
        let mut text = format!("# {} ({kind}): {}", issue.id.value, issue.title);
        paragraph(&mut text, description);
        for (title, field) in [("Design", "design"), ("Notes", "notes")] {
            section(&mut text, title, &issue.field(field, self.faults));
        }
        section(&mut text, "Issues that came before it", &self.before(issue));
        if let Some(above) = self.graph.parent(at) {
            let about = self.repeated.of(&above.field("description", self.faults));
            let title = format!("It is part of {}: {}", above.id.value, above.title);
            paragraph(&mut text, &format!("## {title}"));
            paragraph(&mut text, &about);
        }
        let rule = "Do not change files below `.beads/`, and do not close issues: Lanewright records what is done when the \
                    work is merged.";
        paragraph(&mut text, rule);
        text
    }

    fn before(&self, issue: &Issue) -> String {
        let others = issue.dependencies.iter().filter(|dependency| dependency.kind != "parent-child");
        let line = |dependency: &super::issue::Dependency| {
            let other = &self.issues[self.graph.position(&dependency.on.value)?];
            Some(format!("- {} ({}): {}", other.id.value, dependency.kind, other.title))
        };
        others.filter_map(line).take(MAX_NAMED).collect::<Vec<_>>().join("\n")
    }
}
