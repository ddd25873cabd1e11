//! Gates that run a script of a package: `npm run check` in the directory whose package.json has that script.
//!
//! A list says what to run, and its reader knows where. In the root such a gate would fail every attempt.

use std::collections::{BTreeMap, BTreeSet};

use lanewright_agents::shell::parse;
use lanewright_model::CommandLine;

use super::command::is_in;
use super::draft::{LaneDraft, PlanDraft, TaskDraft};
use super::faults::{Faults, quoted};
use super::markdown::as_code;
use super::source_text::Span;

const FILE: &str = "package.json";

/// How many packages a message names.
const MAX_NAMED: usize = 5;

/// The scripts of one package.json.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Its directory, relative to the repository's root; empty for the root.
    directory: String,
    scripts: BTreeSet<String>,
}

impl Package {
    /// `None`: the text is not JSON.
    pub fn read(directory: &str, text: &str) -> Option<Self> {
        let value: serde_json::Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()?;
        let scripts = value["scripts"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
        Some(Self { directory: directory.to_owned(), scripts: scripts.collect() })
    }
}

/// Whether a text may name a script of a package.
pub fn names_scripts(text: &str) -> bool {
    ["npm ", "pnpm ", "yarn ", "bun "].iter().any(|program| text.contains(program))
}

/// Where a gate runs.
enum Place<'p> {
    Here,
    Below(&'p str),
    /// In one of several packages, or in none that has all its scripts.
    Unknown {
        script: String,
        packages: Vec<&'p str>,
    },
}

/// Has gates run where their scripts are. One that may be of several packages is none.
pub(super) fn locate_gates(draft: &mut PlanDraft, packages: &[Package], faults: &Faults<'_>) {
    let owns = |wanted: &dyn Fn(&str) -> bool| {
        draft.lanes.iter().flat_map(|lane| lane.owns.iter().flatten()).any(|glob| wanted(&glob.value))
    };
    // A lane may write the script.
    if owns(&|glob| glob == FILE) {
        return;
    }
    // Where the root is no package, it may become one: packages that the plan is not about have other scripts.
    let has_root = packages.iter().any(|package| package.directory.is_empty());
    let is_meant = |package: &&Package| has_root || owns(&|glob| is_below(glob, &package.directory));
    let packages: Vec<&Package> = packages.iter().filter(is_meant).collect();
    let mut locator = Locator { packages: &packages, faults, reported: BTreeSet::new(), moved: BTreeMap::new() };
    for lane in &mut draft.lanes {
        locator.lane(lane);
    }
    let span = draft.lanes.first().map_or(Span::default(), |lane| lane.span);
    for gates in [&mut draft.gates.atomic, &mut draft.gates.checkpoint, &mut draft.gates.last] {
        locator.gates(gates, span);
    }
}

/// Whether a glob names something in a directory.
fn is_below(glob: &str, directory: &str) -> bool {
    glob.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

struct Locator<'p, 'f> {
    packages: &'p [&'p Package],
    faults: &'f Faults<'f>,
    /// The gates that a message is about.
    reported: BTreeSet<String>,
    moved: BTreeMap<String, String>,
}

impl Locator<'_, '_> {
    fn lane(&mut self, lane: &mut LaneDraft) {
        let places: BTreeMap<String, Span> = lane.gate_places.iter().cloned().collect();
        if let Some(tests) = &mut lane.tests {
            let place = tests.iter().find_map(|test| places.get(&test.to_string()).copied());
            let had = !tests.is_empty();
            self.gates(tests, place.unwrap_or(lane.span));
            if had && tests.is_empty() {
                lane.tests = None;
            }
        }
        let agents = lane.agents.iter_mut().flatten().flat_map(|agent| agent.tasks.iter_mut().flatten());
        for task in lane.tasks.iter_mut().flatten().chain(agents) {
            self.task(task);
        }
        lane.gate_places.iter_mut().for_each(|(gate, _)| {
            if let Some(moved) = self.moved.get(gate) {
                gate.clone_from(moved);
            }
        });
    }

    fn task(&mut self, task: &mut TaskDraft) {
        self.gates(&mut task.verify, task.span);
        let Some(prompt) = &mut task.prompt.text else { return };
        for (gate, moved) in &self.moved {
            let [listed, moved] = [gate, moved].map(|gate| format!("\n{}\n", as_code(&[gate])));
            prompt.value = prompt.value.replace(&listed, &moved);
        }
    }

    fn gates(&mut self, gates: &mut Vec<CommandLine>, span: Span) {
        gates.retain_mut(|gate| {
            let CommandLine::Shell(line) = gate else { return true };
            let is_new = self.reported.insert(line.clone());
            match place(line, self.packages) {
                Place::Here => true,
                Place::Below(directory) => {
                    let moved = format!("cd {directory} && {line}");
                    if is_new {
                        let message = format!(
                            "{} runs in {}, for the {FILE} of the root has no such script",
                            quoted(line),
                            quoted(&format!("{directory}/"))
                        );
                        self.faults.warning(span, message, format!("write `cd {directory} && …` to say so"));
                    }
                    self.moved.insert(line.clone(), moved.clone());
                    *line = moved;
                    true
                }
                Place::Unknown { script, packages } => {
                    if is_new {
                        let named = packages.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
                        let message = format!(
                            "{} is not a gate: the root has no script {}, but several packages do: {named}",
                            quoted(line),
                            quoted(&script)
                        );
                        self.faults.warning(span, message, "write where it runs: `cd DIRECTORY && …`");
                    }
                    false
                }
            }
        });
    }
}

fn place<'p>(line: &str, packages: &[&'p Package]) -> Place<'p> {
    let Some(scripts) = scripts_run(line) else { return Place::Here };
    let has = |package: &Package, script: &String| package.scripts.contains(script);
    let in_root = |script: &String| packages.iter().any(|package| package.directory.is_empty() && has(package, script));
    let Some(missing) = scripts.iter().find(|script| !in_root(script)) else { return Place::Here };
    let having = |all: &[String]| -> Vec<&'p str> {
        let below = packages.iter().filter(|package| !package.directory.is_empty());
        let with_all = below.filter(|package| all.iter().all(|script| has(package, script)));
        with_all.map(|package| package.directory.as_str()).collect()
    };
    match (having(&scripts).as_slice(), having(std::slice::from_ref(missing))) {
        // Work that is still to be done may write it.
        (_, packages) if packages.is_empty() => Place::Here,
        ([only], _) if is_plain(only) => Place::Below(only),
        (_, packages) => Place::Unknown { script: missing.clone(), packages },
    }
}

/// The scripts that a line runs in the directory where it begins; `None`: it runs other commands, too, or names a place.
fn scripts_run(line: &str) -> Option<Vec<String>> {
    let script = parse(line)?;
    let commands = script.commands();
    let scripts = commands.iter().map(|(command, _)| script_of(&command.texts()).map(str::to_owned));
    scripts.collect::<Option<Vec<_>>>().filter(|scripts| !scripts.is_empty())
}

/// Options that name another package than that of the directory.
const PLACES: &str = "--prefix -C --dir --cwd -w --workspace --workspaces -ws --filter -F -r --recursive";

fn script_of<'w>(words: &[&'w str]) -> Option<&'w str> {
    let (program, rest) = words.split_first()?;
    let own = rest.iter().position(|word| *word == "--").map_or(rest, |end| &rest[..end]);
    if own.iter().any(|word| is_in(PLACES, word.split('=').next().unwrap_or(word))) {
        return None;
    }
    let mut names = own.iter().filter(|word| !word.starts_with('-')).copied();
    match (*program, names.next()?) {
        ("npm" | "pnpm" | "yarn" | "bun", "run" | "run-script") => names.next(),
        ("npm" | "pnpm" | "yarn", "test" | "t") => Some("test"),
        ("pnpm" | "yarn", name) => Some(name),
        _ => None,
    }
}

/// Whether a shell takes the name as it is.
fn is_plain(directory: &str) -> bool {
    directory.chars().all(|c| c.is_alphanumeric() || "-_./@".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packages() -> Vec<Package> {
        let of = |directory: &str, scripts: &str| Package::read(directory, &format!("{{\"scripts\": {{{scripts}}}}}"));
        let all = [
            of("", "\"lint\": \"eslint .\""),
            of("web", "\"check\": \"tsc\", \"test\": \"vitest run\", \"lint\": \"eslint .\""),
            of("api", "\"test\": \"node --test\""),
        ];
        all.into_iter().map(|package| package.expect("JSON")).collect()
    }

    fn shown(line: &str) -> String {
        let packages = packages();
        match place(line, &packages.iter().collect::<Vec<_>>()) {
            Place::Here => "here".to_owned(),
            Place::Below(directory) => directory.to_owned(),
            Place::Unknown { script, packages } => format!("{script}: {}", packages.join(" ")),
        }
    }

    #[test]
    fn gate_runs_in_the_only_package_with_its_scripts() {
        for line in ["npm run check", "pnpm check", "yarn -s check", "bun run check", "npm run lint && npm run check"] {
            assert_eq!(shown(line), "web", "{line}");
        }
        assert_eq!(shown("npm test -- --run"), "test: web api");
        assert_eq!(shown("npm test && npm run check"), "web", "only one has both");
        for line in [
            "npm run lint",
            "npm run other",
            "cd web && npm run check",
            "npm --prefix web run check",
            "npm run check -w web",
            "pnpm --filter web check",
            "npm run check && cargo test",
            "bun test",
            "npm ci",
            "npx tsc",
        ] {
            assert_eq!(shown(line), "here", "{line}");
        }
        assert_eq!(Package::read("", "{"), None);
    }
}
