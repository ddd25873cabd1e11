//! GSD phases of real repositories, checked against counts that are made another way.
//!
//! They are looked for in the directory that `LANEWRIGHT_CORPUS` names, else in `../shared/corpus`; without them
//! only the mutated plans are read. `LANEWRIGHT_FUZZ_SECONDS` has the mutated plans read for that long.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lanewright_model::{CommandLine, Lane, Plan};
use lanewright_plan::{
    Fallbacks, PlanFormat, ReadOptions, Reading, Source, SourceFile, decode, is_gsd_plan_name, read,
};

/// The directory of the corpus; `None`, which is said, where there is none.
fn corpus() -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let directory = std::env::var_os("LANEWRIGHT_CORPUS").map_or(default, PathBuf::from).join("gsd");
    if directory.is_dir() {
        return Some(directory);
    }
    #[expect(clippy::print_stdout, reason = "a test that checks nothing says so")]
    {
        println!("skipped: there is no corpus at {}", directory.display());
    }
    None
}

/// A phase: its directory, its plans by name, and the names of all its files.
struct Phase {
    directory: PathBuf,
    plans: Vec<(String, String)>,
    names: Vec<String>,
}

fn phases() -> Vec<Phase> {
    corpus().map(|directory| phases_in(&directory)).unwrap_or_default()
}

/// Every directory with plans below `root`.
fn phases_in(root: &Path) -> Vec<Phase> {
    let mut found = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        let mut names = Vec::new();
        for entry in fs::read_dir(&directory).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if entry.path().is_dir() { directories.push(entry.path()) } else { names.push(name) }
        }
        names.sort();
        let text = |name: &String| {
            let bytes = fs::read(directory.join(name)).unwrap();
            (name.clone(), decode(name, &bytes).unwrap().to_owned())
        };
        let plans: Vec<(String, String)> = names.iter().filter(|name| is_gsd_plan_name(name)).map(text).collect();
        if !plans.is_empty() {
            found.push(Phase { directory, plans, names });
        }
    }
    found.sort_by(|one, other| one.directory.cmp(&other.directory));
    found
}

fn runner(_: &str) -> Option<CommandLine> {
    Some(CommandLine::Arguments(vec!["agent".to_owned()]))
}

fn read_plans(directory: &str, plans: &[(String, String)], beside: &[String], redo: bool) -> Reading {
    let paths: Vec<String> = plans.iter().map(|(name, _)| format!("{directory}/{name}")).collect();
    let files: Vec<SourceFile<'_>> =
        paths.iter().zip(plans).map(|(path, (_, text))| SourceFile { path, text }).collect();
    let fallbacks = Fallbacks { runner: Some("agent"), ..Default::default() };
    let options = ReadOptions { redo, ..ReadOptions::default() };
    let source =
        Source { files: &files, beside, format: Some(PlanFormat::Gsd), fallbacks, options, ..Source::default() };
    read(&source, &|_| Err(String::new()), &runner)
}

fn whole(phase: &Phase) -> Plan {
    let reading = read_plans(&phase.directory.to_string_lossy(), &phase.plans, &phase.names, true);
    reading.plan.unwrap_or_else(|| panic!("{}: {:?}", phase.directory.display(), reading.diagnostics))
}

/// The lines of `text` that stand in no code fence, by toggling at every line that begins with one.
fn outside_fences(text: &str) -> Vec<&str> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        let fence = line.trim_start().starts_with("```");
        if !fenced && !fence {
            lines.push(line);
        }
        fenced ^= fence;
    }
    lines
}

/// How many tasks a person would count, as far as a few rules can tell.
fn crude_tasks(text: &str) -> usize {
    let is_tag = |line: &&&str| line.trim_start().starts_with("<task>") || line.trim_start().starts_with("<task ");
    let lines = outside_fences(text);
    let tags = lines.iter().filter(is_tag).count();
    let is_heading = |line: &&&str| line.starts_with("## Task ") || line.starts_with("### Task ");
    let headings =
        if text.contains("<task>") || text.contains("<task ") { 0 } else { lines.iter().filter(is_heading).count() };
    tags.max(headings).max(1)
}

/// The raw text behind a key of the front matter, up to the next key.
fn raw_value(text: &str, key: &str) -> String {
    let key = format!("{key}:");
    let mut lines = text.lines().take(200).skip_while(|line| !line.starts_with(&key));
    let first = lines.next().map_or("", |line| &line[key.len()..]);
    let more = lines.take_while(|line| line.starts_with([' ', '-']) && !line.starts_with("---"));
    std::iter::once(first).chain(more).map(|line| line.split(" #").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// The numbers in a list of dependencies that end the names of plans: `2` for `01-02`, `'02'` and `01-02-PLAN.md`.
fn crude_edges(text: &str, own_phase: &str) -> Vec<u32> {
    let raw = raw_value(text, "depends_on").replace("-PLAN.md", "").replace("-PLAN-", "-").replace("-PLAN", "");
    let words = raw.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).map(|word| word.trim_matches('-'));
    let mut edges = Vec::new();
    for word in words.filter(|word| !word.is_empty()) {
        let (phase, plan) = word.split_once('-').unwrap_or((own_phase, word));
        if phase.trim_start_matches('0') == own_phase.trim_start_matches('0') {
            edges.push(plan.parse().unwrap());
        }
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The texts between `<action>` and `</action>` where both stand at the beginnings of lines.
fn crude_actions(text: &str) -> Vec<String> {
    let opens = text.match_indices("<action>").filter(|(at, _)| text[..*at].trim_end_matches(' ').ends_with('\n'));
    let action = |(at, tag): (usize, &str)| {
        let rest = &text[at + tag.len()..];
        rest.find("</action>").map(|end| squeezed(&rest[..end]))
    };
    opens.filter_map(action).collect()
}

fn prompts(lane: &Lane) -> Vec<String> {
    lane.agents[0].tasks.iter().map(|task| squeezed(&task.prompt)).collect()
}

#[test]
fn task_counts_match_crude_scan() {
    let (mut files, mut edges, mut tasks, mut fenced) = (0, 0, 0, Vec::new());
    for phase in phases() {
        let plan = whole(&phase);
        assert_eq!(plan.lanes.len(), phase.plans.len(), "{}", phase.directory.display());
        for (lane, (name, text)) in plan.lanes.iter().zip(&phase.plans) {
            let place = format!("{}/{name}", phase.directory.display());
            files += 1;
            let found = lane.agents[0].tasks.len();
            tasks += found;
            if found != crude_tasks(text) {
                // Toggling is wrong where a fence holds another; there may be few of them.
                fenced.push(place.clone());
            }
            if let Some((own_phase, _)) = lane.id.as_str().split_once('-').filter(|(own, _)| own.parse::<f64>().is_ok())
            {
                let number = |lane: &Lane| lane.id.as_str().rsplit('-').next().unwrap().parse::<u32>().unwrap();
                let mut on: Vec<u32> = lane.depends_on.iter().map(|&on| number(plan.lane(on))).collect();
                on.sort_unstable();
                assert_eq!(on, crude_edges(text, own_phase), "{place}");
                edges += on.len();
            }
        }
    }
    println!("{files} files, {tasks} tasks, {edges} edges; fences in fences: {fenced:?}");
    if files > 0 {
        assert!(files >= 40 && edges >= 40, "{files} files with {edges} edges are too few to tell anything");
        assert!(fenced.len() <= 3, "{fenced:?}");
    }
}

#[test]
fn every_action_reaches_exactly_one_task() {
    for phase in phases() {
        let plan = whole(&phase);
        for (lane, (name, text)) in plan.lanes.iter().zip(&phase.plans) {
            let prompts = prompts(lane);
            for action in crude_actions(text) {
                let count: usize = prompts.iter().map(|prompt| prompt.matches(&action).count()).sum();
                assert_eq!(count, 1, "{name}: {action}");
            }
            let criteria = lane.agents[0].tasks.iter().flat_map(|task| &task.acceptance_criteria);
            let told = prompts.iter().cloned().chain(criteria.map(|text| squeezed(text))).collect::<Vec<_>>().join(" ");
            for line in outside_fences(text).into_iter().filter(|line| line.starts_with("- ") && line.len() > 20) {
                let line = squeezed(line.trim_start_matches("- "));
                let in_header = text
                    .find("\n---\n")
                    .is_some_and(|end| text[..end].contains(&line[..15.min(line.floor_char_boundary(15))]));
                assert!(in_header || told.contains(&line), "{name} lost: {line}");
            }
        }
    }
}

#[test]
fn owned_files_come_from_front_matter() {
    let mut compared = 0;
    for phase in phases() {
        let plan = whole(&phase);
        for (lane, (name, text)) in plan.lanes.iter().zip(&phase.plans) {
            let raw = raw_value(text, "files_modified");
            let parts = raw
                .split(['\n', ','])
                .map(|part| part.trim().trim_start_matches("- ").trim_matches(['[', ']', '"', '\'', ' ']));
            let plain = |part: &&str| {
                part.contains('/') && !part.contains([' ', '(', '[', '*', ':']) && !part.starts_with(['.', '/', '#'])
            };
            for part in parts.filter(plain) {
                compared += 1;
                let glob = if part.ends_with('/') { format!("{part}**") } else { part.to_owned() };
                assert!(lane.owns.contains(&glob), "{name}: {part} is not in {:?}", lane.owns);
            }
            assert!(lane.owns.iter().all(|glob| !glob.starts_with(".planning")), "{name}");
        }
    }
    println!("{compared} files compared");
}

/// Repository, file, and: tasks, those that are a person's, gates, lanes that it waits for, truths, artifacts, as a
/// person counts them. What only Lanewright writes is neither a gate nor an artifact.
const COUNTED: [(&str, &str, [usize; 6]); 11] = [
    ("off-the-rails", "/05-mod-architecture/05-04-PLAN.md", [3, 0, 14, 1, 5, 3]),
    ("off-the-rails", "/archive/v1/phases/05-professions/05-02-PLAN.md", [3, 0, 0, 1, 5, 0]),
    ("MiceSign", "/33-e2e/33-05-PLAN.md", [6, 2, 2, 4, 4, 1]),
    ("xyzpan", "/06.1-01-PLAN.md", [5, 0, 0, 0, 7, 5]),
    ("BeamDrop", "/06-03-PLAN.md", [1, 0, 0, 0, 0, 0]),
    ("family-score", "/01-PLAN-03.md", [4, 2, 1, 2, 5, 2]),
    ("navision_gdpdu", "/05-01-PLAN.md", [5, 0, 1, 0, 6, 5]),
    ("navision_gdpdu", "/04-01-PLAN.md", [8, 0, 0, 0, 6, 2]),
    ("azureAI-sentinel", "/01-01-PLAN.md", [2, 1, 0, 0, 7, 2]),
    ("plan-build-run", "/auth-02b-PLAN.md", [1, 0, 0, 1, 1, 0]),
    ("chore-ganizer", "/06-user-management-profile/06-02-PLAN.md", [1, 0, 1, 1, 0, 0]),
];

#[test]
fn task_counts_match_manual_counts() {
    let mut counts = BTreeMap::new();
    for phase in phases() {
        let plan = whole(&phase);
        for (lane, (name, _)) in plan.lanes.iter().zip(&phase.plans) {
            let tasks = &lane.agents[0].tasks;
            let count = [
                tasks.len(),
                tasks.iter().filter(|task| task.kind.is_human()).count(),
                tasks.iter().map(|task| task.verify.len()).sum(),
                lane.depends_on.len(),
                lane.must_haves.truths.len(),
                lane.must_haves.artifacts.len(),
            ];
            counts.insert(format!("{}/{name}", phase.directory.display()), count);
        }
    }
    for (repository, file, expected) in COUNTED {
        let found = counts.iter().find(|(path, _)| path.contains(repository) && path.ends_with(file));
        if let Some((path, count)) = found {
            assert_eq!(*count, expected, "{path}");
        } else {
            assert!(counts.is_empty(), "{file} is missing");
        }
    }
}

#[test]
fn single_plans_are_detected_as_gsd() {
    for phase in phases() {
        for plan in &phase.plans {
            let directory = phase.directory.to_string_lossy();
            let reading = read_plans(&directory, std::slice::from_ref(plan), &phase.names, true);
            assert!(reading.plan.is_some(), "{}/{}: {:?}", directory, plan.0, reading.diagnostics);
            let path = format!("{directory}/{}", plan.0);
            let source = Source { files: &[SourceFile { path: &path, text: &plan.1 }], ..Source::default() };
            let format = read(&source, &|_| Err(String::new()), &runner).format;
            assert_eq!(format, Some(PlanFormat::Gsd), "{path}");
        }
        for name in phase.names.iter().filter(|name| name.ends_with("-SUMMARY.md") || name.contains("VERIFY")) {
            let text = fs::read_to_string(phase.directory.join(name)).unwrap();
            let source = Source { files: &[SourceFile { path: name, text: &text }], ..Source::default() };
            assert_ne!(read(&source, &|_| Err(String::new()), &runner).format, Some(PlanFormat::Gsd), "{name}");
        }
    }
}

#[test]
fn plans_with_summary_are_skipped() {
    for phase in phases() {
        let reading = read_plans(&phase.directory.to_string_lossy(), &phase.plans, &phase.names, false);
        let done = |plan: &str| {
            let id = plan.replace("-PLAN.md", "").replace("-PLAN-", "-").replace(".md", "");
            phase.names.contains(&format!("{id}-SUMMARY.md"))
        };
        let wanted = phase.plans.iter().filter(|(name, _)| !done(name)).count();
        let place = phase.directory.display();
        assert_eq!(reading.plan.as_ref().map_or(0, |plan| plan.lanes.len()), wanted, "{place}");
        assert_eq!(reading.plan.is_none(), wanted == 0, "{place}: {:?}", reading.diagnostics);
    }
}

/// A small generator of numbers, the same for the same seed.
pub struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit.max(1)
    }
}

/// Stretches that change the shape of a plan.
const SPICES: [&str; 22] = [
    "---\n",
    "<task>",
    "<task type=\"auto\">\n",
    "</task>\n",
    "</action>",
    "<action>",
    "```\n",
    "```sh\n",
    "~~~\n",
    "\0",
    "\r\n",
    "\u{feff}",
    "wave: 99999999999\n",
    "depends_on: [*a]\n",
    "- [",
    "\"",
    "\t",
    "é€😀",
    "<automated>",
    "<option id=\"",
    "## Task 1\n",
    "{{{{",
];

/// `text` with a few stretches of it removed, doubled, cut off, or spoilt by one of `spices`.
pub fn mutated(text: &str, spices: &[&str], chance: &mut Chance) -> String {
    let mut text = text.to_owned();
    for _ in 0..=chance.below(6) {
        let cut = |chance: &mut Chance| text.floor_char_boundary(chance.below(text.len() + 1));
        let (one, other) = (cut(chance), cut(chance));
        let (from, to) = (one.min(other), one.max(other).min(one.min(other) + 400));
        let to = text.floor_char_boundary(to);
        match chance.below(5) {
            0 => text.replace_range(from..to, ""),
            1 => text = [&text[..to], &text[from..]].concat(),
            2 => text.truncate(to),
            _ => text.insert_str(from, spices[chance.below(spices.len())]),
        }
    }
    text
}

#[test]
fn mutated_gsd_plans_never_panic() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/plans/gsd");
    let seeds: Vec<Phase> = phases_in(&own).into_iter().chain(phases()).collect();
    let seconds = std::env::var("LANEWRIGHT_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut chance = Chance(42);
    let mut cases = 0;
    while until.map_or(cases < 300, |until| Instant::now() < until) {
        let phase = &seeds[chance.below(seeds.len())];
        let victim = chance.below(phase.plans.len());
        let mut plans = [phase.plans[victim].clone(), phase.plans[chance.below(phase.plans.len())].clone()];
        plans[0].1 = mutated(&plans[0].1, &SPICES, &mut chance);
        let reading = read_plans("05-web", &plans[..1 + chance.below(2)], &phase.names, true);
        let any_error = reading.diagnostics.iter().any(|fault| fault.is_error());
        assert_eq!(reading.plan.is_none(), any_error, "{}", plans[0].1);
        cases += 1;
    }
    println!("{cases} mutated plans");
}
