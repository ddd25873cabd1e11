//! Real phase plans: what the reader takes from each is what another way of counting finds, and what a person counted.
//!
//! The plans are not part of the project: `LANEWRIGHT_CORPUS` names their directory, by default `../shared/corpus`
//! beside the manifest's directory or one further up. Without it the tests have nothing to do and say so.
//! `LANEWRIGHT_FUZZ_SECONDS` makes the mutator run for that long.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may fail and says what it leaves out")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lanewright_model::ownership::Ownership;
use lanewright_model::{CommandLine, LaneIndex, Plan};
use lanewright_plan::{Fallbacks, PlanFormat, ReadOptions, Reading, Source, SourceFile, read};

fn corpus() -> Option<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let beside = manifest.ancestors().skip(3).take(2).map(|parent| parent.join("shared/corpus"));
    let given = std::env::var_os("LANEWRIGHT_CORPUS").map(PathBuf::from);
    let found = given.into_iter().chain(beside).map(|root| root.join("lanes")).find(|root| root.is_dir());
    if found.is_none() {
        eprintln!("skipped: there is no corpus; LANEWRIGHT_CORPUS names one");
    }
    found
}

/// Every Markdown file below `directory`, with its path from there.
fn documents(directory: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                open.push(entry);
            } else if entry.extension().is_some_and(|ending| ending == "md") {
                let name = entry.strip_prefix(directory).unwrap().to_string_lossy().into_owned();
                found.push((name, fs::read_to_string(&entry).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn plans(directory: &Path) -> Vec<(String, String)> {
    let mut documents = documents(directory);
    documents.retain(|(name, _)| name.contains("/plans/") && !name.contains("/detailed-"));
    documents
}

fn read_as(path: &str, text: &str, format: Option<PlanFormat>) -> Reading {
    let runners = |name: &str| (name == "claude").then(|| CommandLine::Shell("claude".to_owned()));
    let fallbacks = Fallbacks { runner: Some("claude"), ..Default::default() };
    let options = ReadOptions::default();
    let source = Source { files: &[SourceFile { path, text }], format, fallbacks, options, ..Source::default() };
    read(&source, &|_| Err(String::new()), &runners)
}

fn plan(name: &str, text: &str) -> Plan {
    let reading = read_as(name, text, None);
    let errors: Vec<String> =
        reading.diagnostics.iter().filter(|fault| fault.is_error()).map(|fault| fault.to_string()).collect();
    reading.plan.unwrap_or_else(|| panic!("{name}: {errors:?}"))
}

/// What a crude scan of the lines finds: no fences, no fields, no spans.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    lanes: BTreeSet<String>,
    /// `SL-1 < SL-2`: by `Depends on` and by `Blocks`.
    edges: BTreeSet<String>,
    tasks: usize,
}

fn crude_count(text: &str) -> Count {
    let mut count = Count::default();
    let (mut section, mut lane) = ("", String::new());
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = if title.contains("Lane Index") {
                "index"
            } else if title.ends_with("Lanes") {
                "lanes"
            } else {
                ""
            };
        }
        let bare = line.trim().trim_start_matches("- ");
        if section == "index" {
            if let Some(id) = bare.starts_with("SL-").then(|| bare.split([' ', ';']).next().unwrap()) {
                lane = id.to_owned();
                count.lanes.insert(lane.clone());
            }
            for part in without_parentheses(bare).split(';') {
                let Some((key, value)) = part.split_once(':') else { continue };
                for other in value.split([',', ' ']).filter(|word| word.starts_with("SL-")) {
                    match key.trim() {
                        "Depends on" => count.edges.insert(format!("{other} < {lane}")),
                        "Blocks" => count.edges.insert(format!("{lane} < {other}")),
                        _ => false,
                    };
                }
            }
        }
        let cell = line.split('|').nth(2).unwrap_or("").trim();
        let is_row = line.starts_with("| ") && ["test", "impl", "verify", "docs"].contains(&cell);
        let is_bullet =
            ["test:", "impl:", "verify:"].iter().any(|kind| bare.starts_with(kind)) && line.starts_with("  - ");
        let is_box = line.starts_with("- [ ] P") && line.contains("-SL-");
        count.tasks += usize::from(section == "lanes" && (is_row || is_bullet || is_box));
    }
    count
}

fn without_parentheses(text: &str) -> String {
    let mut depth = 0usize;
    let keep = |c: &char| {
        match c {
            '(' => depth += 1,
            ')' => {
                depth = depth.saturating_sub(1);
                return false;
            }
            _ => {}
        }
        depth == 0
    };
    text.chars().filter(keep).collect()
}

fn count_of(plan: &Plan) -> Count {
    let id = |lane: LaneIndex| plan.lane(lane).id.to_string();
    let gates: BTreeSet<String> = plan
        .added_edges
        .iter()
        .filter(|edge| !matches!(edge.origin, lanewright_model::plan::EdgeOrigin::Blocks))
        .map(|edge| format!("{} < {}", id(edge.on), id(edge.lane)))
        .collect();
    let edges = plan.indices().flat_map(|lane| plan.lane(lane).depends_on.iter().map(move |&on| (on, lane)));
    let edges: BTreeSet<String> = edges.map(|(on, lane)| format!("{} < {}", id(on), id(lane))).collect();
    let described = plan.lanes.iter().flat_map(|lane| &lane.agents).flat_map(|agent| &agent.tasks);
    Count {
        lanes: plan.lanes.iter().map(|lane| lane.id.to_string()).collect(),
        edges: edges.difference(&gates).cloned().collect(),
        tasks: described.count() + only_tested(plan),
    }
}

/// The tasks that are none because they only run a test of their lane.
fn only_tested(plan: &Plan) -> usize {
    let of_lane = |lane: &lanewright_model::Lane| {
        let tasks = || lane.agents.iter().flat_map(|agent| &agent.tasks);
        lane.tests.iter().filter(|test| !tasks().any(|task| task.verify.contains(test))).count()
    };
    plan.lanes.iter().map(of_lane).sum()
}

#[test]
fn lanes_edges_and_tasks_match_line_scan() {
    let Some(corpus) = corpus() else { return };
    let plans = plans(&corpus);
    assert!(plans.len() >= 40, "{}", plans.len());
    for (name, text) in plans {
        assert_eq!(count_of(&plan(&name, &text)), crude_count(&text), "{name}");
    }
}

/// The backticked paths of the lines that begin with `Owned files`, and the lines below that are list items.
fn crude_owned(text: &str) -> BTreeSet<String> {
    let mut owned = BTreeSet::new();
    let mut open = false;
    for line in text.lines() {
        let bare = line.trim();
        let label = bare.trim_start_matches("- ").to_lowercase();
        if label.starts_with("**owned files") || label.starts_with("**files owned") {
            open = !label.contains(": none");
        } else if bare.contains("**") || bare.starts_with('#') || bare.starts_with('|') {
            open = false;
        }
        if open {
            let outside = without_parentheses(bare);
            let mut pieces: Vec<&str> = outside.split('`').skip(1).step_by(2).collect();
            if let Some(item) = outside.strip_prefix("- ").filter(|item| !item.contains('`') && !item.contains("**")) {
                pieces.push(item.split(' ').next().unwrap());
            }
            owned.extend(pieces.into_iter().map(str::to_owned));
        }
    }
    owned
}

#[test]
fn owned_files_are_declared_or_task_files() {
    let Some(corpus) = corpus() else { return };
    for (name, text) in plans(&corpus) {
        let plan = plan(&name, &text);
        let owned: BTreeSet<String> = plan.lanes.iter().flat_map(|lane| lane.owns.iter().cloned()).collect();
        let declared = crude_owned(&text);
        let missing: Vec<&String> = declared.iter().filter(|path| !owned.contains(*path)).collect();
        assert!(missing.is_empty(), "{name}: {missing:?}");
        for glob in owned.difference(&declared) {
            // `docs/` owns `docs/**`.
            let written = glob.strip_suffix("**").unwrap_or(glob);
            assert!(text.contains(written), "{name}: {glob}");
            assert!(glob.contains(['/', '.']) && !glob.contains(' '), "{name}: {glob}");
        }
    }
}

#[test]
fn task_files_are_owned_by_the_lane() {
    let Some(corpus) = corpus() else { return };
    for (name, text) in plans(&corpus) {
        for lane in &plan(&name, &text).lanes {
            let allowed = Ownership::allowed_to(lane).unwrap();
            for file in lane.agents.iter().flat_map(|agent| &agent.tasks).flat_map(|task| &task.files) {
                assert!(allowed.allows(file) || lane.owns.contains(file), "{name} {}: {file}", lane.id);
            }
        }
    }
}

/// Counted by hand: file, phase, lanes, edges, tasks, commands that gate, gates that a lane of the plan closes.
const BY_HAND: &[(&str, &str, usize, usize, usize, usize, usize)] = &[
    ("P6-integration.md", "P6", 2, 1, 13, 7, 0),
    ("P1-foundation.md", "P1", 2, 1, 19, 11, 5),
    ("P20-pypi-install.md", "P20", 4, 5, 13, 8, 0),
    ("graphbase/plans/P1.md", "P1", 6, 12, 18, 0, 0),
    ("v7-CONCURR.md", "CONCURR", 4, 6, 28, 7, 1),
    ("v7-MANIFEST.md", "MANIFEST", 4, 3, 31, 7, 1),
    ("v1-WORKTREE.md", "WORKTREE", 3, 3, 9, 3, 1),
    ("v1-BOOTCORE.md", "BOOTCORE", 6, 15, 18, 6, 1),
    ("v1-TRANSPORT.md", "TRANSPORT", 6, 14, 18, 6, 1),
    ("v1-CLI.md", "CLI", 4, 5, 12, 4, 1),
    ("v6-hostsoak.md", "HOSTSOAK", 6, 14, 60, 19, 0),
    ("v11-P1.md", "P1", 3, 2, 12, 5, 1),
    ("v11-P6CLEAN.md", "P6CLEAN", 2, 1, 7, 1, 0),
    ("v8-COMPLETE.md", "COMPLETE", 3, 2, 22, 6, 1),
    ("v5-clihint.md", "CLIHINT", 3, 2, 23, 8, 0),
    ("v1-config.md", "CONFIG", 4, 5, 25, 6, 0),
];

#[test]
fn lane_counts_match_manual_counts() {
    let Some(corpus) = corpus() else { return };
    for &(file, phase, lanes, edges, tasks, commands, gates) in BY_HAND {
        let (name, text) = plans(&corpus).into_iter().find(|(name, _)| name.ends_with(file)).unwrap();
        let plan = plan(&name, &text);
        let all = || plan.lanes.iter().flat_map(|lane| &lane.agents).flat_map(|agent| &agent.tasks);
        let found = (
            plan.phase.to_string(),
            plan.lanes.len(),
            plan.lanes.iter().map(|lane| lane.depends_on.len()).sum::<usize>(),
            all().count() + only_tested(&plan),
            all().map(|task| task.verify.len()).sum::<usize>() + only_tested(&plan),
            plan.interfaces.iter().filter(|gate| gate.provider.is_some()).count(),
        );
        assert_eq!(found, (phase.to_owned(), lanes, edges, tasks, commands, gates), "{file}");
    }
}

#[test]
fn every_task_reaches_exactly_one_agent() {
    let Some(corpus) = corpus() else { return };
    for (name, text) in plans(&corpus) {
        let plan = plan(&name, &text);
        let prompts: Vec<String> = plan
            .lanes
            .iter()
            .flat_map(|lane| &lane.agents)
            .flat_map(|agent| &agent.tasks)
            .map(|task| flat(&task.prompt))
            .collect();
        let bullets =
            text.lines().filter(|line| ["  - test: ", "  - impl: "].iter().any(|kind| line.starts_with(kind)));
        for bullet in bullets {
            let said = flat(bullet.split_once(": ").unwrap().1);
            let times = text.lines().filter(|line| line.ends_with(&said)).count();
            let told = prompts.iter().filter(|prompt| prompt.contains(&said)).count();
            assert_eq!(told, times.max(1), "{name}: {said}");
        }
    }
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn non_plan_gets_one_error_with_help() {
    let Some(corpus) = corpus() else { return };
    let plans: BTreeSet<String> = plans(&corpus).into_iter().map(|(name, _)| name).collect();
    let others: Vec<_> = documents(&corpus).into_iter().filter(|(name, _)| !plans.contains(name)).collect();
    assert!(others.len() >= 8, "{}", others.len());
    for (name, text) in others {
        let reading = read_as(&name, &text, None);
        assert_eq!((reading.plan.is_none(), reading.diagnostics.len()), (true, 1), "{name}");
        let words = if name.contains("detailed") { "detailed plan" } else { "roadmap" };
        let fault = &reading.diagnostics[0];
        assert!(fault.message.contains(words) && fault.help.is_some(), "{name}: {fault}");
    }
}

/// Numbers that look random and are the same every time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).unwrap()
    }

    fn place(&mut self, text: &str) -> usize {
        text.floor_char_boundary(self.below(text.len() + 1))
    }

    /// Some lines of the text.
    fn lines<'t>(&mut self, text: &'t str) -> &'t str {
        let start = text[..self.place(text)].rfind('\n').map_or(0, |at| at + 1);
        let end = text[start..].match_indices('\n').nth(self.below(12)).map_or(text.len(), |(at, _)| start + at + 1);
        &text[start..end]
    }

    fn mutated(&mut self, text: &str, other: &str) -> String {
        let tokens = [
            "`",
            "```\n",
            "|",
            "\\|",
            "(",
            ")",
            "SL-",
            "SL-1",
            "IF-0-P1-1",
            "; Blocks: ",
            "- ",
            "\n",
            "\r\n",
            "\0",
            "**",
            "---\n",
            "## Lanes\n",
            "### SL-1 - x\n",
            "\u{feff}",
            "é",
            "<task>",
            "..",
            "~",
        ];
        let mut text = text.to_owned();
        for _ in 0..=self.below(6) {
            let at = self.place(&text);
            match self.below(6) {
                0 => text.insert_str(at, tokens[self.below(tokens.len())]),
                1 => text.replace_range(at..text.ceil_char_boundary((at + self.below(40)).min(text.len())), ""),
                2 => text.truncate(at),
                3 => {
                    let lines = self.lines(other).to_owned();
                    text.insert_str(at, &lines);
                }
                4 => {
                    let lines = self.lines(&text).to_owned();
                    text = text.replacen(&lines, "", 1);
                }
                _ => {
                    let token = tokens[self.below(tokens.len())].repeat(self.below(300));
                    text.insert_str(at, &token);
                }
            }
        }
        text
    }
}

#[test]
fn mutated_lane_plans_never_panic_or_hang() {
    let mut seeds: Vec<String> =
        corpus().map(|corpus| plans(&corpus)).unwrap_or_default().into_iter().map(|(_, text)| text).collect();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/plans/lanes");
    seeds.extend(documents(&own).into_iter().map(|(_, text)| text));
    let seconds = std::env::var("LANEWRIGHT_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let (start, mut chance) = (Instant::now(), Chance(0x9e37_79b9_7f4a_7c15));
    let mut cases = 0;
    while seconds.map_or(cases < 300, |seconds| start.elapsed() < Duration::from_secs(seconds)) {
        let (one, other) = (chance.below(seeds.len()), chance.below(seeds.len()));
        let text = chance.mutated(&seeds[one], &seeds[other]);
        let format = [None, Some(PlanFormat::Lanes)][chance.below(2)];
        let reading = read_as("p.md", &text, format);
        assert_eq!(reading.plan.is_none(), reading.diagnostics.iter().any(|fault| fault.is_error()), "case {cases}");
        cases += 1;
    }
    eprintln!("{cases} mutated plans");
}
