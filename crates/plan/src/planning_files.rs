//! The planning files of a GSD project after a lane is merged (SPEC §3.2): `ROADMAP.md`, `STATE.md` and a SUMMARY. Pure text
//! to text; a line that is not understood stays as it is.

use std::collections::BTreeMap;

use lanewright_model::{MergedPlan, PlanningFiles};

use super::roadmap::{normal, number_of};
use super::{gsd_plan_is_done, gsd_plans_beside};

fn summary(plan: &str) -> String {
    format!("{plan}-SUMMARY.md")
}

/// What the planning files hold once `merged` is done.
pub fn planning_files(merged: &MergedPlan<'_>) -> PlanningFiles {
    let [of_head, of_branch] = merged.names;
    let beside = [of_branch, of_head].concat();
    let plans = gsd_plans_beside(&beside);
    let own = plans.iter().find(|plan| merged.file.map_or(plan.id == merged.lane, |file| plan.name == file));
    let plan = own.map_or_else(|| merged.lane.to_owned(), |own| own.id.clone());
    let has_summary = of_head.contains(&summary(&plan)) || own.is_some_and(|own| gsd_plan_is_done(&own.name, of_head));
    let mut is_done: BTreeMap<String, bool> = plans.iter().map(|plan| (plan.id.clone(), plan.is_done)).collect();
    if merged.file.is_none() {
        for lane in merged.lanes {
            is_done.entry(lane.clone()).or_insert_with(|| beside.contains(&summary(lane)));
        }
    }
    is_done.insert(plan.clone(), true);
    // One file alone does not show how many plans there are.
    let counts = merged.directory.is_some() && (own.is_some() || merged.file.is_none());
    let in_phase = !merged.directory.into_iter().flatten().any(|part| part == "quick");
    let done = DonePlan {
        plan: &plan,
        phase: number_of(merged.phase).filter(|_| in_phase),
        count: counts.then(|| (is_done.values().filter(|done| **done).count(), is_done.len())),
        date: merged.date,
    };
    let [roadmap, state] = merged.texts;
    let state = state.map(|text| with_errors(done.in_state(text), &plan, merged));
    let texts = [roadmap.map(|text| done.in_roadmap(text)), state];
    let is_asked = merged.tracking || own.is_some() && asks_for_summary(merged.prompt);
    let is_missing = merged.directory.is_some() && !has_summary && is_asked;
    PlanningFiles { texts, summary: is_missing.then(|| (summary(&plan), summary_text(&plan, merged))) }
}

/// The state with what failed in the lane, below its heading `Errors`, which is added at the end where there is none.
fn with_errors(state: String, plan: &str, merged: &MergedPlan<'_>) -> String {
    let line = |error: &String| format!("- {}: plan {plan}, {error}", merged.date);
    let lines: Vec<String> = merged.errors.iter().map(line).filter(|line| !state.contains(line.as_str())).collect();
    if lines.is_empty() {
        return state;
    }
    let added = lines.join("\n") + "\n";
    let is_heading = |line: &str| line.starts_with('#') && line.trim_matches(['#', ' ']).eq_ignore_ascii_case("errors");
    let mut at = 0;
    for line in state.split_inclusive('\n') {
        at += line.len();
        if is_heading(line.trim_end()) {
            let (before, after) = state.split_at(at);
            let gap = if before.ends_with('\n') { "" } else { "\n" };
            return format!("{before}{gap}{added}{}", after.strip_prefix('\n').unwrap_or(after));
        }
    }
    format!("{}\n\n## Errors\n\n{added}", state.trim_end())
}

/// Whether the section about the output of a plan, in the prompt of its last task, speaks of a SUMMARY.
fn asks_for_summary(prompt: &str) -> bool {
    let output = prompt.lines().skip_while(|line| *line != "## Output").skip(1);
    output.take_while(|line| !line.starts_with("## ")).any(|line| line.contains("SUMMARY"))
}

/// How many files a summary names.
const NAMED: usize = 100;

fn summary_text(plan: &str, merged: &MergedPlan<'_>) -> String {
    let MergedPlan { name, date, source: (run, head), .. } = merged;
    let name = name.map(|name| format!(": {name}")).unwrap_or_default();
    let mut text = format!(
        "# Plan {plan}{name}\n\nDone on {date}. The agent left no summary of its own; Lanewright merged its work ({head}) in run {run}.\n"
    );
    let mut list = |heading: &str, items: &[String]| {
        let shown: String = items.iter().take(NAMED).map(|item| format!("- {item}\n")).collect();
        let more = items.len().saturating_sub(NAMED);
        let more = if more > 0 { format!("- and {more} more\n") } else { String::new() };
        if !items.is_empty() {
            text.push_str(&format!("\n## {heading}\n\n{shown}{more}"));
        }
    };
    list("Tasks", merged.tasks);
    list("Files changed", merged.changed);
    text
}

/// A plan of a phase that was just done.
struct DonePlan<'a> {
    /// Its id, for example `01-02`.
    plan: &'a str,
    /// The number at the beginning of its directory's name, for example `01` or `02.1`; `None`: there is none.
    phase: Option<&'a str>,
    /// How many plans of the phase are done, this one included, and how many there are; `None`: unknown.
    count: Option<(usize, usize)>,
    /// `2026-01-31`.
    date: &'a str,
}

impl DonePlan<'_> {
    fn completes_phase(&self) -> bool {
        self.count.is_some_and(|(done, of)| done >= of)
    }

    fn is_phase(&self, number: &str) -> bool {
        self.phase.is_some_and(|phase| normal(number.trim_end_matches('.')) == normal(phase))
    }

    /// What the roadmap calls the plan: `07-01` for the plan `01` of phase 7. `None`: it is the phase's only one, or the
    /// number before it is another phase's.
    fn name(&self) -> Option<String> {
        let Some((first, _)) = self.plan.split_once('-') else {
            let phase = self.phase.filter(|_| self.plan != "PLAN")?;
            return Some(format!("{phase}-{}", self.plan));
        };
        let foreign = self.phase.is_some() && number_of(first) == Some(first) && !self.is_phase(first);
        (!foreign).then(|| self.plan.to_owned())
    }

    /// `ROADMAP.md` with the plan ticked, the phase too once it is complete, and its row of the progress table.
    fn in_roadmap(&self, text: &str) -> String {
        lines(text, |line| self.ticked(line).or_else(|| self.progress_row(line)))
    }

    /// `STATE.md` with the plan as the last activity, and how many of the phase's plans are done.
    fn in_state(&self, text: &str) -> String {
        let position = text.lines().find_map(|line| field(line, "Phase:"));
        let number = position.map(|(_, value)| value.trim().split([' ', '(']).next().unwrap_or_default());
        let count = self.count.filter(|_| number.is_some_and(|number| self.is_phase(number)));
        let name = self.name().unwrap_or_else(|| self.plan.to_owned());
        lines(text, |line| {
            if let Some((before, _)) = field(line, "Last activity:") {
                return Some(format!("{before} {} — plan {name} is done", self.date));
            }
            let ((before, _), (done, of)) = (field(line, "Plan:")?, count?);
            Some(format!("{before} {done} of {of} in current phase"))
        })
    }

    fn ticked(&self, line: &str) -> Option<String> {
        let item = line.trim_start().strip_prefix("- [ ]")?.trim_start().trim_start_matches(['*', '`', '_']);
        let ends = |rest: &str| {
            let rest = rest.strip_prefix('.').unwrap_or(rest);
            !rest.starts_with(char::is_alphanumeric)
        };
        let is_plan = self.name().is_some_and(|name| item.strip_prefix(&name).is_some_and(ends));
        let phase = item.strip_prefix("Phase ").and_then(|rest| rest.split([':', ' ', '*']).next());
        let is_phase = phase.is_some_and(|number| self.is_phase(number)) && self.completes_phase();
        let ticked = line.replacen("[ ]", "[x]", 1);
        match (is_plan, is_phase) {
            (true, _) => Some(ticked),
            (_, true) => Some(format!("{} (completed {})", ticked.trim_end(), self.date)),
            _ => None,
        }
    }

    /// `| 1. Foundation | 1/3 | In Progress | - |`
    fn progress_row(&self, line: &str) -> Option<String> {
        let cells: Vec<&str> = line.trim().strip_prefix('|')?.strip_suffix('|')?.split('|').collect();
        let (number, (done, of)) = (number_of(cells.first()?.trim())?, self.count?);
        let is_count = |cell: &str| cell.split_once('/').is_some_and(|(done, _)| done.trim().parse::<u32>().is_ok());
        if cells.len() != 4 || !self.is_phase(number) || !is_count(cells[1]) {
            return None;
        }
        let status = if self.completes_phase() { "Complete" } else { "In Progress" };
        let date = if self.completes_phase() { self.date } else { cells[3].trim() };
        Some(format!("|{}| {done}/{of} | {status} | {date} |", cells[0]))
    }
}

/// A line's name and the text after it: `- **Status**: x` has the field `Status:`, too.
fn field<'l>(line: &'l str, name: &str) -> Option<(&'l str, &'l str)> {
    let start = line.len() - line.trim_start_matches([' ', '-', '*']).len();
    let colon = start + line[start..].find(':')? + 1;
    let said: String = line[start..colon].chars().filter(|c| *c != '*').collect();
    let behind = colon + line[colon..].chars().take_while(|c| *c == '*').count();
    said.eq_ignore_ascii_case(name).then(|| line.split_at(behind))
}

/// The text with every line that `change` knows changed; line ends stay.
fn lines(text: &str, change: impl Fn(&str) -> Option<String>) -> String {
    let changed = |whole: &str| {
        let line = whole.trim_end_matches(['\n', '\r']);
        change(line).map_or_else(|| whole.to_owned(), |new| new + &whole[line.len()..])
    };
    text.split_inclusive('\n').map(changed).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]

    use std::path::Path;

    use lanewright_model::{CommitId, RunId};

    use super::*;

    fn done(done: usize) -> DonePlan<'static> {
        DonePlan { plan: "01-02", phase: Some("01"), count: Some((done, 2)), date: "2026-01-31" }
    }

    fn merged<'a>(errors: &'a [String], texts: [Option<&'a str>; 2], run: &'a (RunId, CommitId)) -> MergedPlan<'a> {
        MergedPlan {
            lane: "01-02",
            name: Some("Base"),
            phase: "01-base",
            lanes: &[],
            directory: Some(Path::new(".planning/phases/01-base")),
            file: None,
            names: [&[], &[]],
            date: "2026-01-31",
            source: (&run.0, &run.1),
            prompt: "",
            tasks: &[],
            changed: &[],
            errors,
            tracking: true,
            texts,
        }
    }

    #[test]
    fn errors_of_a_lane_are_added_to_the_state_once() {
        let run = (RunId::new("r1").unwrap(), "a".repeat(40).parse().unwrap());
        let errors = ["task 1 (agent): exit code 1".to_owned()];
        let state = |text: &str| planning_files(&merged(&errors, [None, Some(text)], &run)).texts[1].clone().unwrap();
        let line = "- 2026-01-31: plan 01-02, task 1 (agent): exit code 1\n";
        assert_eq!(state("# State\n"), format!("# State\n\n## Errors\n\n{line}"));
        let below = state("### Errors\n- old\n\n## Next\n");
        assert_eq!(below, format!("### Errors\n{line}- old\n\n## Next\n"));
        assert_eq!(state(&below), below);
    }

    #[test]
    fn a_summary_is_added_where_the_plan_asks_for_one() {
        let run = (RunId::new("r1").unwrap(), "a".repeat(40).parse().unwrap());
        let names = ["01-02-PLAN.md".to_owned()];
        let (tasks, changed) = (["Write it".to_owned()], ["a.txt".to_owned()]);
        let of = |prompt, names| {
            let plan = merged(&[], [None, None], &run);
            let (tasks, changed) = (&tasks[..], &changed[..]);
            planning_files(&MergedPlan { prompt, names, tasks, changed, tracking: false, ..plan }).summary
        };
        let asks = "Do it.\n\n## Output\n\nAfter completion, create `01-02-SUMMARY.md`\n";
        let (name, text) = of(asks, [&names, &names]).expect("a summary");
        assert_eq!(name, "01-02-SUMMARY.md");
        for part in ["# Plan 01-02: Base", "## Tasks\n\n- Write it\n", "## Files changed\n\n- a.txt\n"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(of("@01-01-SUMMARY.md\n\n## Output\n\nA report.\n", [&names, &names]), None, "none is asked for");
        assert_eq!(of(asks, [&[], &[]]), None, "the plan is not committed");
        let done = ["01-02-PLAN.md".to_owned(), "01-02-SUMMARY.md".to_owned()];
        assert_eq!(of(asks, [&done, &names]), None, "the agent wrote it");
    }

    #[test]
    fn roadmap_ticks_plan_and_completed_phase() {
        let text = "- [ ] **Phase 1: Base** - x\n- [ ] Phase 10: Y\n  - [ ] 01-02-PLAN.md — z\r\n- [ ] 01-021: no\n\
                    - [ ] 01-02: short\n| 1. Base | 1/2 | In Progress | - |\n| 2. Next | 0/2 | - | - |\n";
        let half = "- [ ] **Phase 1: Base** - x\n- [ ] Phase 10: Y\n  - [x] 01-02-PLAN.md — z\r\n- [ ] 01-021: no\n\
                    - [x] 01-02: short\n| 1. Base | 1/2 | In Progress | - |\n| 2. Next | 0/2 | - | - |\n";
        assert_eq!(done(1).in_roadmap(text), half);
        let whole = done(2).in_roadmap(text);
        assert!(
            whole.starts_with("- [x] **Phase 1: Base** - x (completed 2026-01-31)\n- [ ] Phase 10: Y\n"),
            "{whole}"
        );
        assert!(whole.contains("| 1. Base | 2/2 | Complete | 2026-01-31 |\n| 2. Next | 0/2 | - | - |"), "{whole}");
        assert_eq!(done(2).in_roadmap(&whole), whole, "twice is once");
    }

    #[test]
    fn directory_number_selects_roadmap_lines() {
        let text = "- [ ] Phase 7: Q\n- [ ] Phase 1: A\n- [ ] 07-01-PLAN.md\n- [ ] 07-01.1-PLAN.md\n- [ ] 01-PLAN.md\n\
                    - [ ] 07-PLAN.md\n- [ ] 01-03-PLAN.md\n| 7. Q | 0/2 | - | - |\n| 7.1. R | 0/2 | - | - |\n";
        type Case = (&'static str, Option<&'static str>, Option<(usize, usize)>, &'static [usize]);
        let cases: &[Case] = &[
            ("01", Some("07"), Some((1, 2)), &[2, 7]),
            ("01", Some("07"), Some((2, 2)), &[0, 2, 7]),
            ("PLAN", Some("07"), Some((1, 1)), &[0, 7]),
            ("PLAN", Some("07"), None, &[]),
            ("01-03", Some("07"), Some((1, 2)), &[7]),
            ("01-03", None, Some((1, 1)), &[6]),
            ("01", None, Some((1, 1)), &[]),
            ("x", Some("07.1"), Some((1, 2)), &[8]),
        ];
        for &(plan, phase, count, expected) in cases {
            let new = DonePlan { plan, phase, count, date: "2026-01-31" }.in_roadmap(text);
            let pairs = text.lines().zip(new.lines()).enumerate();
            let changed: Vec<usize> = pairs.filter(|(_, (old, new))| old != new).map(|(at, _)| at).collect();
            assert_eq!(changed, expected, "{plan} of {phase:?} with {count:?}: {new}");
        }
    }

    #[test]
    fn state_gets_last_activity_and_plan_count() {
        let text = "Phase: 1 of 6 (Base)\nPlan: 1 of ? in current phase\nLast activity: 2025 -- old";
        let new = "Phase: 1 of 6 (Base)\nPlan: 2 of 2 in current phase\nLast activity: 2026-01-31 — plan 01-02 is done";
        assert_eq!(done(2).in_state(text), new);
        let other = "Phase: 2 of 6\nPlan: 1 of 3\n- **Last Activity**: y\n";
        let told = "Phase: 2 of 6\nPlan: 1 of 3\n- **Last Activity**: 2026-01-31 — plan 01-02 is done\n";
        assert_eq!(done(2).in_state(other), told);
        assert_eq!(done(1).in_state("nothing\n: of\nthe: sort"), "nothing\n: of\nthe: sort");
    }
}
