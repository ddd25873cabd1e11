//! Processes and syncs by what causes them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::support::trace::{Argument, Call, texts_of};

/// How often each process was started, and each kind of file synced.
pub(super) struct Causes {
    processes: BTreeMap<String, u32>,
    syncs: BTreeMap<String, u32>,
    lanes: u32,
}

impl Causes {
    /// Of the calls of a run below `root`.
    pub(super) fn of(calls: &[Call], root: PathBuf, lanes: u32) -> Self {
        let (mut processes, mut syncs) = (BTreeMap::new(), BTreeMap::new());
        // The first is the run itself.
        for call in calls.iter().filter(|call| call.name == "execve" && call.result == 0).skip(1) {
            *processes.entry(command(call)).or_default() += 1;
        }
        for call in calls.iter().filter(|call| call.name != "execve") {
            let place = match call.arguments.first() {
                Some(Argument::File(_, path)) => kind(path.strip_prefix(&root).unwrap_or(path)),
                _ => "all".to_owned(),
            };
            *syncs.entry(format!("{} {place}", call.name)).or_default() += 1;
        }
        Self { processes, syncs, lanes }
    }

    pub(super) fn processes(&self) -> f64 {
        self.per_lane(self.processes.values().sum())
    }

    pub(super) fn syncs(&self) -> f64 {
        self.per_lane(self.syncs.values().sum())
    }

    fn per_lane(&self, count: u32) -> f64 {
        f64::from(count) / f64::from(self.lanes)
    }
}

impl fmt::Display for Causes {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, causes) in [("processes", &self.processes), ("syncs", &self.syncs)] {
            let mut causes: Vec<(&String, &u32)> = causes.iter().collect();
            causes.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            writeln!(to, "{title} a lane")?;
            for (cause, count) in causes {
                writeln!(to, "  {:6.2} {cause}", self.per_lane(*count))?;
            }
        }
        Ok(())
    }
}

/// `git read-tree`, `lanewright supervise`, `sh -c`.
fn command(call: &Call) -> String {
    let words = texts_of(call.word(1));
    let mut words = words.iter().map(|word| String::from_utf8_lossy(word).into_owned());
    let program = words.next().unwrap_or_default();
    let program = Path::new(&program).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-c" | "-C" if program == "git" => drop(words.next()),
            option if program == "git" && option.starts_with('-') => {}
            _ => return format!("{program} {word}"),
        }
    }
    program
}

/// The path with what differs from lane to lane left out.
fn kind(path: &Path) -> String {
    let is_name = |text: &str| text.len() >= 30 && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let is_fan_out = |text: &str| text.len() == 2 && text.chars().all(|c| c.is_ascii_hexdigit());
    let word = |word: &str| match is_name(word) || is_fan_out(word) {
        true => "…".to_owned(),
        false => word.chars().map(|c| if c.is_ascii_digit() { 'N' } else { c }).collect(),
    };
    let part =
        |part: &str| part.split('.').map(word).collect::<Vec<_>>().join(".").replace("NN", "N").replace("NN", "N");
    let parts: Vec<String> = path.components().map(|it| part(&it.as_os_str().to_string_lossy())).collect();
    parts.join("/")
}
