//! The prompts of a lane's tasks: each has all that its agent must know of the feature, for each task runs by itself.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use lanewright_model::CommandLine;
use regex::Regex;

use super::Feature;
use super::lane::OpenTask;
use super::phases::{Kind, Phase, Task};
use super::references::stories;
use crate::formats::shared::companions::{INLINE, add, add_paths, companion, companions, quote};
use crate::markdown::inline::{dedent, one_line};
use crate::markdown::{Document, Fence, as_code, clean, paragraph, section};
use crate::{Source, SourceFile};

/// How much text all prompts of a feature may repeat, in bytes.
pub(super) const REPEATED_TEXT: usize = 16 * 1024 * 1024;

/// The parts of a plan that agents need.
const PLAN_SECTIONS: [&str; 3] = ["summary", "technical context", "project structure"];

pub(super) struct Place {
    /// From 0.
    pub(super) number: usize,
    pub(super) count: usize,
    /// The lane has nothing but commands, and this stands for all of them.
    pub(super) is_only_check: bool,
}

/// What every prompt of a lane contains.
pub(super) fn common(feature: &Feature<'_>, at: usize, source: &Source<'_>, tests: &[CommandLine]) -> String {
    let phase = &feature.phases[at];
    let mut text = String::new();
    let of =
        if feature.title.is_empty() { "a feature".to_owned() } else { format!("the feature “{}”", feature.title) };
    paragraph(&mut text, &format!("# {}\n\nThis is a part of {of}; other lanes do the rest.", heading(phase)));
    section(&mut text, "About this part", &introduction(feature, phase));
    section(&mut text, "Done already", &done(feature, phase));
    if !tests.is_empty() {
        let body = format!("This part is merged once these succeed:\n\n{}", as_code(tests));
        section(&mut text, "Commands that must pass", &body);
    }
    if let Some(spec) = companion(source, "spec.md") {
        specification(&mut text, phase, spec);
    }
    if let Some(plan) = companion(source, "plan.md") {
        technical_plan(&mut text, plan);
    }
    if let Some(file) = companion(source, "constitution.md") {
        add(&mut text, "Rules of the project", file);
    }
    let quoted = ["spec.md", "plan.md", "constitution.md", "tasks.md"];
    let other = |path: &str| !quoted.iter().any(|name| path.ends_with(name));
    add_paths(&mut text, "More about the feature", companions(source, other));
    text
}

/// The tasks below the heading of a phase, also those that are another lane's.
fn below<'f, 'a>(feature: &'f Feature<'a>, phase: &Phase<'_>) -> impl Iterator<Item = &'f Task<'a>> {
    let lines = phase.lines.clone();
    let is_below = move |own: &&Phase<'_>| own.lines == lines;
    feature.phases.iter().filter(is_below).flat_map(|phase| &phase.tasks)
}

fn heading<'p>(phase: &'p Phase<'_>) -> &'p str {
    if phase.name.is_empty() { &phase.id } else { &phase.name }
}

/// The text of a phase without its tasks: its goal, its independent test, its checkpoint.
fn introduction(feature: &Feature<'_>, phase: &Phase<'_>) -> String {
    let document = &feature.document;
    let mut text = String::new();
    let mut hidden: BTreeSet<usize> = BTreeSet::new();
    for task in below(feature, phase) {
        let end = task.check_box.body.end;
        let lines = (task.check_box.line..phase.lines.end).take_while(|&line| document.range(line).start < end);
        hidden.extend(lines);
    }
    let is_ruler = |line: &str| matches!(line.trim(), "---" | "***" | "___");
    for line in phase.lines.clone().filter(|line| !hidden.contains(line)) {
        let own = document.line(line);
        // A heading of tasks says nothing without them.
        if document.fence(line) == Fence::Outside && (document.heading_at(line).is_some() || is_ruler(own)) {
            continue;
        }
        if !(own.trim().is_empty() && (text.is_empty() || text.ends_with("\n\n"))) {
            text.push_str(own);
            text.push('\n');
        }
    }
    clean(text.trim())
}

static CRITERION: LazyLock<Regex> = pattern!(
    r"(?i)^[>\s*_-]*(?:independent test|checkpoint|acceptance|独立(?:した)?テスト|独立测试|チェックポイント|检查点|检验点|teste independente|prueba independiente|punto de control)"
);

/// By what reviewers judge the lane as a whole.
pub(super) fn criteria(feature: &Feature<'_>, phase: &Phase<'_>) -> Option<String> {
    let document = &feature.document;
    let lines = phase.lines.clone().filter(|&line| document.fence(line) == Fence::Outside);
    let found: Vec<&str> =
        lines.map(|line| document.line(line).trim()).filter(|line| CRITERION.is_match(line)).collect();
    Some(clean(&found.join("\n"))).filter(|text| !text.is_empty())
}

fn done(feature: &Feature<'_>, phase: &Phase<'_>) -> String {
    let done = below(feature, phase).filter(|task| feature.is_done(task));
    let line = |task: &super::Task<'_>| {
        let text = one_line(&feature.document.text[task.text.clone()]);
        format!("- {} {text}", task.number.unwrap_or_default())
    };
    clean(&done.map(line).collect::<Vec<_>>().join("\n"))
}

/// The sections of the specification on the stories of a phase; for a phase without one, the file by its path.
fn specification(text: &mut String, phase: &Phase<'_>, spec: &SourceFile<'_>) {
    let Kind::Stories(wanted) = &phase.kind else {
        return paragraph(text, &format!("The specification of the feature is in `{}`.", spec.path));
    };
    let document = Document::new(spec.text);
    let of_story = |at: &usize| {
        let own = stories(document.headings[*at].title);
        !own.is_empty() && own.is_subset(wanted)
    };
    let mut body = String::new();
    for at in (0..document.headings.len()).filter(of_story) {
        let lines = document.below(at);
        let bytes = document.bytes(document.headings[at].line..lines.end);
        paragraph(&mut body, dedent(&spec.text[bytes]).trim_end_matches(['-', '\n', ' ']));
    }
    if body.is_empty() {
        add(text, "Specification", spec);
    } else if body.len() > INLINE {
        paragraph(text, &format!("Read what `{}` says of this part.", spec.path));
    } else {
        paragraph(text, &format!("## Specification\n\nFrom `{}`:\n\n{}", spec.path, quote(&body)));
    }
}

/// What the plan says of the feature as a whole; all of it where it has no such sections.
fn technical_plan(text: &mut String, plan: &SourceFile<'_>) {
    let document = Document::new(plan.text);
    let mut body = String::new();
    for lines in document.sections(|title| PLAN_SECTIONS.iter().any(|wanted| title.starts_with(wanted))) {
        let bytes = document.bytes(lines.start - 1..lines.end);
        paragraph(&mut body, &clean(&plan.text[bytes]));
    }
    if body.is_empty() || body.len() > INLINE {
        add(text, "Technical plan", plan);
    } else {
        paragraph(text, &format!("## Technical plan\n\nFrom `{}`:\n\n{}", plan.path, quote(&body)));
    }
}

/// The prompt of one task.
pub(super) fn task(
    feature: &Feature<'_>,
    phase: &Phase<'_>,
    task: &OpenTask<'_, '_>,
    place: &Place,
    common: &str,
) -> String {
    let body = dedent(task.text);
    let number = task.task.number.unwrap_or("Task");
    if task.kind.is_human() {
        let mut text = format!("{number}: {body}");
        paragraph(&mut text, &criteria(feature, phase).unwrap_or_default());
        return text;
    }
    let mut text = String::new();
    match feature.budget.get().checked_sub(common.len()) {
        Some(left) => {
            feature.budget.set(left);
            paragraph(&mut text, common);
        }
        None => paragraph(&mut text, &format!("# {}\n\nRead the specification and the plan first.", heading(phase))),
    }
    if place.is_only_check {
        paragraph(&mut text, "# Task\n\nRun the commands that must pass, and fix what they find.");
    } else {
        paragraph(&mut text, &format!("# Task {number}\n\n{body}"));
    }
    if place.count > 1 {
        let position = format!(
            "This is task {} of {} of this part. Do this task only: each of the others is done by itself.",
            place.number + 1,
            place.count
        );
        paragraph(&mut text, &position);
    }
    if !place.is_only_check && !task.run.commands.gates.is_empty() {
        paragraph(&mut text, &format!("These commands must succeed:\n\n{}", as_code(&task.run.commands.gates)));
    }
    paragraph(&mut text, "Do not change `tasks.md`: Lanewright ticks what is merged.");
    text
}
