//! The formats of plans: detected from the content of a file, and read into a draft.

pub(super) mod backlog;
pub(super) mod beads;
pub(super) mod gsd;
pub(super) mod issues;
pub(super) mod kiro;
pub(super) mod lanes;
pub(super) mod native;
pub(super) mod openspec;
#[allow(dead_code, reason = "the readers that use it are not there yet")]
mod shared;
pub(super) mod speckit;
pub(super) mod taskmaster;

use std::collections::HashMap;

use lanewright_model::{LaneOrder, PlanFormat};

use super::draft::{self, LaneDraft, PlanDraft};
use super::faults::{Faults, quoted};
use super::packages::locate_gates;
use super::source_text::At;
use super::validate::Runners;
use super::{Source, SourceFile, tree, yaml};

pub(super) use shared::boxes::without_ticks;

/// The draft that the format's reader makes of the text, with its lanes in the order that is asked for.
pub(super) fn read<'a>(
    format: PlanFormat,
    source: &Source<'_>,
    faults: &'a Faults<'a>,
    runners: &Runners<'_>,
) -> Option<PlanDraft> {
    let mut draft = draft_of(format, source, faults, runners)?;
    if !format.is_native() {
        locate_gates(&mut draft, source.packages, faults);
    }
    if format.has_lists() && source.fallbacks.lists.order == LaneOrder::File {
        order_as_listed(&mut draft.lanes, faults);
    }
    Some(draft)
}

fn draft_of<'a>(
    format: PlanFormat,
    source: &Source<'_>,
    faults: &'a Faults<'a>,
    runners: &Runners<'_>,
) -> Option<PlanDraft> {
    let text = faults.source.text;
    let tree = match format {
        PlanFormat::Toml => native::toml_tree::parse(text, faults),
        PlanFormat::Yaml => yaml::parse(text, faults),
        PlanFormat::Json => native::json::parse(text, faults),
        PlanFormat::Gsd => return gsd::plan(source, faults),
        PlanFormat::Lanes => return lanes::plan(source, faults, runners),
        PlanFormat::SpecKit => return speckit::plan(source, faults),
        PlanFormat::OpenSpec => return openspec::plan(source, faults),
        PlanFormat::TaskMaster => return taskmaster::plan(source, faults),
        PlanFormat::Kiro => return kiro::plan(source, faults),
        PlanFormat::Backlog => return backlog::plan(source, faults),
        PlanFormat::Beads => return beads::plan(source, faults),
        PlanFormat::Issues => return issues::plan(source, faults),
    }?;
    tree::refuse_nul(&tree, faults);
    draft::from_tree(tree, faults)
}

/// Lets each lane wait for the one before it in the list, and for no other.
fn order_as_listed(lanes: &mut [LaneDraft], faults: &Faults<'_>) {
    let ids: Vec<At<String>> = lanes.iter().filter_map(|lane| lane.id.clone()).collect();
    let places: HashMap<&str, usize> = ids.iter().enumerate().map(|(at, id)| (id.value.as_str(), at)).collect();
    for (at, (lane, id)) in lanes.iter_mut().zip(&ids).enumerate() {
        lane.also_after.clear();
        let before = at.checked_sub(1).map(|before| At::new(ids[before].value.clone(), lane.span));
        for on in std::mem::replace(&mut lane.depends_on, before.into_iter().collect()) {
            if places.get(on.value.as_str()).is_some_and(|&place| place > at) {
                let message = format!(
                    "lane {} depends on {}, but comes before it in the list, whose order holds",
                    quoted(&id.value),
                    quoted(&on.value)
                );
                faults.warning(on.span, message, "swap them in the list, or leave out `--order file`");
            }
        }
    }
}

/// The format of a plan; `None` where it is none of them.
pub(super) fn detect(files: &[SourceFile<'_>]) -> Option<PlanFormat> {
    let first = files.first()?;
    let found = DETECTORS.iter().find(|(_, is_plan)| is_plan(first.path, first.text));
    if let Some((format, _)) = found {
        return Some(*format);
    }
    match files {
        [file] if lanes::is_plan(file.text) => Some(PlanFormat::Lanes),
        [file] if gsd::is_plan(file.path, file.text) => Some(PlanFormat::Gsd),
        [file] if lanes::not_a_plan(file.text).is_some() => None,
        [file] => detect_native(file.text),
        _ => Some(PlanFormat::Gsd),
    }
}

/// Whether a file is a plan of a format, by its path and its text.
type IsPlan = fn(&str, &str) -> bool;

/// Formats that a program other than Lanewright keeps, each with whether a file is one of its plans.
const DETECTORS: [(PlanFormat, IsPlan); 7] = [
    (PlanFormat::SpecKit, speckit::is_plan),
    (PlanFormat::OpenSpec, openspec::is_plan),
    (PlanFormat::TaskMaster, taskmaster::is_plan),
    (PlanFormat::Kiro, kiro::is_plan),
    (PlanFormat::Backlog, backlog::is_plan),
    (PlanFormat::Beads, beads::is_plan),
    (PlanFormat::Issues, issues::is_plan),
];

/// The format of `text` by its first line that says something.
fn detect_native(text: &str) -> Option<PlanFormat> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if let Some(inside) = text.strip_prefix('{') {
        let quoted = inside.trim_start().starts_with(['"', '}']) || inside.trim().is_empty();
        return Some(if quoted { PlanFormat::Json } else { PlanFormat::Yaml });
    }
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    line_format(lines.next()?)
}

/// TOML and YAML differ in what follows the first key.
fn line_format(line: &str) -> Option<PlanFormat> {
    if line.starts_with("---") || line.starts_with("%YAML") {
        return Some(PlanFormat::Yaml);
    }
    if line.starts_with('[') {
        return Some(PlanFormat::Toml);
    }
    let in_key = |c: char| c.is_alphanumeric() || "-_.$\"' \t".contains(c);
    match line.trim_start_matches(in_key).chars().next()? {
        '=' => Some(PlanFormat::Toml),
        ':' => Some(PlanFormat::Yaml),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_format_is_detected_from_first_line() {
        let cases = [
            ("# a\n\nphase = \"P1\"", Some(PlanFormat::Toml)),
            ("[defaults]\n", Some(PlanFormat::Toml)),
            ("\"phase\" = 1", Some(PlanFormat::Toml)),
            ("# a = b\nphase: P1 = x", Some(PlanFormat::Yaml)),
            ("---\n", Some(PlanFormat::Yaml)),
            ("{\n \"phase\"", Some(PlanFormat::Json)),
            ("{ phase: P1 }", Some(PlanFormat::Yaml)),
            ("", None),
            ("# Heading\n\nSome prose, and so on: more", None),
        ];
        for (text, format) in cases {
            assert_eq!(detect_native(text), format, "{text:?}");
        }
    }
}
