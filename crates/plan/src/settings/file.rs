//! Configuration files: `lanewright.toml` and `lanewright/config.toml`, which have the same keys.

use std::borrow::Cow;
use std::ops::Range;
use std::path::PathBuf;

use lanewright_agents::runner::Catalogue;
use lanewright_model::runner::RunnerText;
use lanewright_model::{CommandLine, ExecutorSettings};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::key::Key;
use super::table::{KEYS, Layer};
use super::{Fault, FilePosition, Invocation, Origin, Setting, nearest, value};

#[derive(Debug, Clone)]
pub struct ConfigFile {
    pub path: PathBuf,
    pub text: String,
}

/// Settings that belong to one run, one session or one command.
pub(super) const NOT_IN_FILES: &[&str] = &["log_path", "allow_unknown", "session_id"];

/// The setting of that name, if files may have it.
pub(crate) fn in_files(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name && !NOT_IN_FILES.contains(&key.name))
}

/// The layer that `file` makes, and what is wrong with it, in the order of the file. With `allow_unknown`, keys that are
/// not known are warnings. The names are those of runners in `fallback`, which another file may describe.
pub(super) fn read(
    file: &ConfigFile,
    invocation: &Invocation,
    allow_unknown: bool,
) -> (Layer, Vec<(String, Origin)>, Vec<Fault>) {
    let mut reader = Reader { file, allow_unknown, layer: Layer::default(), fallbacks: Vec::new(), faults: Vec::new() };
    let (table, errors) = DeTable::parse_recoverable(&file.text);
    for (key, value) in table.get_ref() {
        reader.entry(key, value);
    }
    let found = std::mem::take(&mut reader.faults);
    for error in errors {
        reader.error(error.span().unwrap_or_default(), error.message());
    }
    // What the parser made of a broken line is a guess, and faults in it would be noise.
    let broken: Vec<_> = reader.faults.iter().map(|fault| position(fault).0).collect();
    reader.faults.extend(found.into_iter().filter(|fault| !broken.contains(&position(fault).0)));
    reader.faults.sort_by_key(position);
    (reader.layer.place_paths(|path| invocation.path_in_file(path)), reader.fallbacks, reader.faults)
}

/// Settings that may be written in a table of their own.
const GROUPS: &[&str] = &["gsd", "gates", "lists"];

fn group<'t, 'i>(name: &str, value: &'t SpannedValue<'i>) -> Option<(&'static str, &'t DeTable<'i>)> {
    let group = GROUPS.iter().copied().find(|group| *group == name)?;
    Some((group, value.get_ref().as_table()?))
}

fn position(fault: &Fault) -> (usize, usize) {
    match &fault.origin {
        Origin::File(place) => (place.line, place.column),
        _ => (0, 0),
    }
}

/// How the kind of an executor is written.
const KINDS: &str = "`kind = \"slurm\"` or `kind = \"kubernetes\"`";

type SpannedKey<'i> = Spanned<Cow<'i, str>>;
type SpannedValue<'i> = Spanned<DeValue<'i>>;

struct Reader<'f> {
    file: &'f ConfigFile,
    allow_unknown: bool,
    layer: Layer,
    fallbacks: Vec<(String, Origin)>,
    faults: Vec<Fault>,
}

impl Reader<'_> {
    fn entry(&mut self, name: &SpannedKey<'_>, value: &SpannedValue<'_>) {
        let text = name.get_ref().as_ref();
        if text == "runners" {
            self.tables("runner", value, value::runner, Self::runner);
        } else if text == "executors" {
            self.tables("executor", value, value::executor, Self::executor);
        } else if NOT_IN_FILES.contains(&text) {
            self.error(name.span(), format!("`{text}` cannot be set in a file"));
        } else if let Some(key) = KEYS.iter().find(|key| key.name == text) {
            self.setting(key, value);
        } else if let Some((group, entries)) = group(text, value) {
            self.group(group, entries);
        } else {
            let known = KEYS.iter().map(|key| key.name).filter(|known| !NOT_IN_FILES.contains(known));
            self.unknown(name, known.chain(["runners", "executors"]));
        }
    }

    /// `[gsd]` and `tracking = true` below it say the same as `gsd_tracking = true`, and so does `edit` below `[gates]`.
    fn group(&mut self, group: &str, entries: &DeTable<'_>) {
        let of_group = |key: &&Key| key.name.strip_prefix(group).is_some_and(|rest| rest.starts_with('_'));
        for (name, value) in entries {
            let full = format!("{group}_{}", name.get_ref());
            match KEYS.iter().find(|key| key.name == full) {
                Some(key) => self.setting(key, value),
                None => self.unknown(name, KEYS.iter().filter(of_group).map(|key| &key.name[group.len() + 1..])),
            }
        }
    }

    fn setting(&mut self, key: &Key, value: &SpannedValue<'_>) {
        let Some(text) = key.kind.text_of(value.get_ref()) else {
            let found = value.get_ref().type_str();
            return self.error(value.span(), format!("`{}` is {}, not of type {found}", key.name, key.kind));
        };
        if let Err(message) = self.layer.set(key.name, &text, self.origin(value.span())) {
            self.error(value.span(), format!("`{}` is {}: {message}", key.name, key.kind));
        }
    }

    /// The tables below `[runners]` or `[executors]`: `what` of each, whose name `check` reads.
    fn tables(
        &mut self,
        what: &str,
        value: &SpannedValue<'_>,
        check: fn(&str) -> Result<String, String>,
        read: fn(&mut Self, String, &SpannedKey<'_>, &SpannedValue<'_>),
    ) {
        let Some(tables) = value.get_ref().as_table() else {
            return self.error(value.span(), format!("`{what}s` holds tables: write `[{what}s.NAME]`"));
        };
        for (name, description) in tables {
            match check(name.get_ref()) {
                Ok(text) => read(self, text, name, description),
                Err(message) => self.error(name.span(), format!("`{}` is no {what}'s name: {message}", name.get_ref())),
            }
        }
    }

    /// The entries of `table` whose keys are `known`; the others are reported.
    fn known<'i>(&mut self, table: &DeTable<'i>, known: &[&str]) -> DeTable<'i> {
        let is_known = |key: &SpannedKey<'i>| known.contains(&key.get_ref().as_ref());
        for key in table.keys().filter(|key| !is_known(key)) {
            self.unknown(key, known.iter().copied());
        }
        table.clone().into_iter().filter(|(key, _)| is_known(key)).collect()
    }

    fn runner(&mut self, text: String, name: &SpannedKey<'_>, description: &SpannedValue<'_>) {
        let Some(entries) = description.get_ref().as_table() else {
            return self.error(description.span(), format!("write `[runners.{text}]` and `command = […]` below it"));
        };
        let keys = RunnerText::keys();
        let known = self.known(entries, &keys.iter().map(String::as_str).collect::<Vec<_>>());
        let (read, command) = (runner_text(description.span(), known.clone()), entries.get("command"));
        match (read, command, command.map(|value| command_line(value.get_ref()))) {
            (_, Some(value), Some(None)) => {
                let remedy = "the program and its arguments as a list of strings, or a shell line as a string";
                self.error(value.span(), format!("the `command` of `{text}` is {remedy}"));
            }
            (Err((span, message)), _, _) => self.error(span, format!("the runner `{text}`: {message}")),
            (Ok(read), None, _) if read.like.is_none() && Catalogue::default().get(&text).is_none() => {
                let message = format!("the runner `{text}` has no `command`, and no other runner that it is `like`");
                self.error(name.span(), message);
            }
            (Ok(read), command, line) => {
                let span = command.map_or(name.span(), SpannedValue::span);
                let read = RunnerText { command: line.flatten(), ..read };
                if let Err(message) = lanewright_agents::runner::check(&read) {
                    let span = span_at_fault(known, &message).unwrap_or(span);
                    return self.error(span, format!("the runner `{text}`: {message}"));
                }
                let named = entries.get("fallback").map(|value| self.names_in(value));
                self.fallbacks.extend(named.into_iter().flatten());
                self.layer.runners.insert(text, Setting::new(read, self.origin(span)));
            }
        }
    }

    /// The texts of a list, or the only one, with their places.
    fn names_in(&self, value: &SpannedValue<'_>) -> Vec<(String, Origin)> {
        let items = value.get_ref().as_array().map_or(std::slice::from_ref(value), |items| &items[..]);
        let names =
            items.iter().filter_map(|item| Some((item.get_ref().as_str()?.to_owned(), self.origin(item.span()))));
        names.collect()
    }

    fn executor(&mut self, text: String, name: &SpannedKey<'_>, description: &SpannedValue<'_>) {
        let Some(entries) = description.get_ref().as_table() else {
            return self.error(description.span(), format!("write `[executors.{text}]` and {KINDS} below it"));
        };
        let known = self.known(entries, ExecutorSettings::KEYS);
        if entries.get("kind").is_none() {
            return self.error(name.span(), format!("the executor `{text}` has no `kind`; write {KINDS}"));
        }
        let value = ValueDeserializer::from(Spanned::new(description.span(), DeValue::Table(known)));
        match ExecutorSettings::deserialize(value) {
            Err(error) => {
                let span = error.span().unwrap_or(description.span());
                self.error(span, format!("the executor `{text}`: {}", error.message()));
            }
            Ok(read) => {
                for (key, message) in read.faults() {
                    let span = entries.get(key).map_or(name.span(), SpannedValue::span);
                    self.error(span, format!("the `{key}` of the executor `{text}`: {message}"));
                }
                self.layer.executors.insert(text, Setting::new(read, self.origin(name.span())));
            }
        }
    }

    fn unknown<'k>(&mut self, name: &SpannedKey<'_>, known: impl IntoIterator<Item = &'k str>) {
        let text = name.get_ref();
        if text.starts_with("x-") {
            return;
        }
        let (origin, message) = (self.origin(name.span()), format!("unknown key `{text}`"));
        let fault = if self.allow_unknown { Fault::warning(origin, message) } else { Fault::error(origin, message) };
        let meant = nearest(&text.to_ascii_lowercase().replace('-', "_"), known);
        self.faults.push(match meant {
            Some(meant) => fault.help(format!("did you mean `{meant}`?")),
            None => fault.help("--allow-unknown ignores keys of newer versions"),
        });
    }

    fn error(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.faults.push(Fault::error(self.origin(span), message));
    }

    fn origin(&self, span: Range<usize>) -> Origin {
        Origin::File(FilePosition::at(&self.file.path, &self.file.text, span.start))
    }
}

/// The description without its command, which has errors of its own.
fn runner_text(span: Range<usize>, mut table: DeTable<'_>) -> Result<RunnerText, (Range<usize>, String)> {
    table.remove("command");
    if let Some(fallback) = table.get_mut("fallback").filter(|value| value.get_ref().is_str()) {
        let only = std::mem::replace(fallback, Spanned::new(fallback.span(), DeValue::Boolean(false)));
        *fallback = Spanned::new(only.span(), DeValue::Array([only].into_iter().collect()));
    }
    let value = ValueDeserializer::from(Spanned::new(span.clone(), DeValue::Table(table)));
    RunnerText::deserialize(value).map_err(|error| (error.span().unwrap_or(span), error.message().to_owned()))
}

/// Where the entry is that has the fault by itself.
fn span_at_fault(table: DeTable<'_>, message: &str) -> Option<Range<usize>> {
    table.into_iter().find_map(|(key, value)| {
        let span = value.span();
        let read = runner_text(span.clone(), [(key, value)].into_iter().collect()).ok()?;
        (lanewright_agents::runner::check(&read).err()? == message).then_some(span)
    })
}

fn command_line(value: &DeValue<'_>) -> Option<CommandLine> {
    let command = match value {
        DeValue::String(line) => CommandLine::Shell(line.to_string()),
        DeValue::Array(words) => {
            let words = words.iter().map(|word| word.get_ref().as_str().map(str::to_owned));
            CommandLine::Arguments(words.collect::<Option<_>>()?)
        }
        _ => return None,
    };
    (!command.is_empty()).then_some(command)
}
