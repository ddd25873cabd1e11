//! Values as text: how each kind of value is read from a flag, a variable or a file, and how it is shown.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use lanewright_agents::prompt::check_commit_message;
use lanewright_model::plan::SharedFiles;
use lanewright_model::redact::has_password;
use lanewright_model::{
    AgentName, Ci, Dollars, ForgeChoice, GitDirectory, HERE, LaneOrder, LaneSplit, MergeChoice, MustHavesRule,
    OnOrphan, OutsideChanges, PublishMode, SandboxChoice, Sign, SignOff, Submodules, Word,
};
use serde_json::{Value, json};

use super::key::Kind;
use super::{Progress, nearest};

lanewright_model::word_enum! {
    /// What to do when a live session holds the run, the lane or the plan.
    OnLockConflict {
        /// Report who holds it and exit with 4.
        Fail = "fail",
        /// `execute-lane`: work on another lane that is ready; everywhere else as `fail`.
        Next = "next",
        /// Wait until it is free.
        Wait = "wait",
    }
}

lanewright_model::word_enum! {
    /// What a resume does about files that were changed while nothing of the run was at work.
    #[derive(Default)]
    OnConflict {
        /// Refuse, and list them.
        #[default]
        Fail = "fail",
        /// Save them as snapshots and resume with them.
        Override = "override",
    }
}

/// The words of a choice.
pub fn words<T: Word>() -> Vec<&'static str> {
    T::all().iter().map(|value| value.word()).collect()
}

/// Reads one of the words of `T`.
pub fn choice<T: Word>(text: &str) -> Result<T, String> {
    T::all().iter().copied().find(|value| value.word() == text).ok_or_else(|| {
        let meant = nearest(text, words::<T>()).map(|word| format!(", did you mean `{word}`?"));
        format!("`{text}` is none of them{}", meant.unwrap_or_default())
    })
}

/// Reads a branch name. Whether git takes it is for git to say, except that none begins with `-` (SPEC §13).
pub fn branch(text: &str) -> Result<String, String> {
    one_word(text).ok_or_else(|| format!("{text:?} is no branch name"))
}

/// Reads what a branch name may begin with.
pub fn branch_prefix(text: &str) -> Result<String, String> {
    let is_sound = |part: &str| !part.starts_with('.') && !part.ends_with(".lock");
    let parts: Vec<&str> = text.split('/').collect();
    let inner = parts.split_last().map_or(&[][..], |(_, inner)| inner);
    let is_odd = text.contains(['~', '^', ':', '?', '*', '[', '\\']) || text.contains("..") || text.contains("@{");
    let is_sound = !is_odd && parts.iter().all(|part| is_sound(part)) && inner.iter().all(|part| !part.is_empty());
    let reason = || format!("{text:?} is nothing that a branch name can begin with, as `bot/` is");
    one_word(text).filter(|_| is_sound).ok_or_else(reason)
}

/// A word that no program takes for an option.
fn one_word(text: &str) -> Option<String> {
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    (!text.is_empty() && !text.starts_with('-') && !text.contains(is_odd)).then(|| text.to_owned())
}

/// Reads a template of commit messages.
pub fn commit_message(text: &str) -> Result<String, String> {
    check_commit_message(text).map(|()| text.to_owned()).map_err(|error| error.reason)
}

/// Reads the name of a git remote. Whether there is one of that name is for git to say.
pub fn remote(text: &str) -> Result<String, String> {
    one_word(text).ok_or_else(|| format!("{text:?} is no name of a remote"))
}

/// Reads an executor's name.
pub fn executor(text: &str) -> Result<String, String> {
    match text {
        HERE => Err("it stands for this machine".to_owned()),
        _ => runner(text),
    }
}

/// Reads a git repository that others reach, too: the name of a remote, a URL or a path.
pub fn exchange(text: &str) -> Result<String, String> {
    if has_password(text) && one_word(text).is_some() {
        return Err("it has a password in it; use ssh or a credential helper instead".to_owned());
    }
    one_word(text).ok_or_else(|| format!("{text:?} is neither a remote nor an address"))
}

/// Reads a runner's name, which an agent may be named after.
pub fn runner(text: &str) -> Result<String, String> {
    AgentName::new(text).map(String::from).map_err(|error| error.to_string())
}

/// The address of a webhook, whose path is a secret, or `$NAME`.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook(String);

impl Webhook {
    pub fn address(&self) -> &str {
        &self.0
    }

    /// Without the parts that may be secret.
    fn shown(&self) -> String {
        let (scheme, rest) = self.0.split_once("://").unwrap_or(("https", &self.0));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        if self.0.starts_with('$') { self.0.clone() } else { format!("{scheme}://{host}/…") }
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

pub fn webhook(text: &str) -> Result<Webhook, String> {
    if text.is_empty() || text.contains(char::is_whitespace) {
        return Err("an address, or `$NAME` for a variable with one, is needed".to_owned());
    }
    Ok(Webhook(text.to_owned()))
}

pub fn session(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.contains(char::is_control) {
        return Err(format!("{text:?} names no session"));
    }
    Ok(text.to_owned())
}

pub fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() { Err("a path cannot be empty".to_owned()) } else { Ok(text.into()) }
}

/// Reads places of files and directories, one a line: absolute, or below the home directory.
pub fn places(text: &str) -> Result<Vec<String>, String> {
    let places: Vec<String> = text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    match places.iter().find(|place| *place != "~" && !place.starts_with(['/', '$']) && !place.starts_with("~/")) {
        Some(place) => Err(format!("`{place}` is relative; write an absolute path, or `~/…`")),
        None => Ok(places),
    }
}

/// Reads a number from 0.
pub fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("`{text}` is not a whole number from 0"))
}

/// Reads a number from 1.
pub fn count(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| format!("`{text}` is not a whole number from 1"))
}

pub fn boolean(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err(format!("`{text}` is neither")),
    }
}

/// Reads a duration: `90s`, `1h 30m`; a number without a unit is seconds, as for `timeout(1)`.
pub fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    humantime::parse_duration(text)
        .map_err(|_| format!("`{text}` is not a duration; write for example `90s`, `5m` or `1h 30m`"))
}

/// Reads a duration that is longer than nothing.
pub fn positive_duration(text: &str) -> Result<Duration, String> {
    duration(text).and_then(|read| if read.is_zero() { Err(format!("`{text}` is no time at all")) } else { Ok(read) })
}

/// Reads a limit: a duration that is longer than nothing, or `none`.
pub fn limit(text: &str) -> Result<Option<Duration>, String> {
    if text == "none" { Ok(None) } else { positive_duration(text).map(Some) }
}

/// Reads how much agents may cost in US dollars, or `none`.
pub fn dollars_limit(text: &str) -> Result<Option<Dollars>, String> {
    match text.parse() {
        _ if text == "none" => Ok(None),
        Ok(limit) if limit == Dollars::default() => Err(NO_BUDGET.to_owned()),
        read => read.map(Some),
    }
}

const NO_BUDGET: &str = "a budget is more than 0; `none` sets no limit";

/// Reads a number that is not to be passed, or `none`.
pub fn count_limit(text: &str) -> Result<Option<u64>, String> {
    match text.replace('_', "").parse() {
        Ok(0) => Err(NO_BUDGET.to_owned()),
        Ok(number) => Ok(Some(number)),
        Err(_) if text == "none" => Ok(None),
        Err(_) => Err(format!("`{text}` is not a whole number")),
    }
}

/// An amount of data, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

impl Size {
    pub const GIB: Self = Self(1 << 30);
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, factor): &&(&str, u64)| self.0 > 0 && self.0.is_multiple_of(*factor);
        match UNITS.iter().find(fits) {
            Some((unit, factor)) => write!(f, "{}{unit}", self.0 / factor),
            None => write!(f, "{}", self.0),
        }
    }
}

/// The largest first.
const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// The smallest limit of an output: less would leave too few lines to show what happened.
const LEAST_OUTPUT: Size = Size(1 << 20);

/// Reads the largest size of an output: `512MiB`, a number of bytes, or `none`.
pub fn size_limit(text: &str) -> Result<Option<Size>, String> {
    match file_size_limit(text)? {
        Some(size) if size.0 < LEAST_OUTPUT.0 => Err(format!("`{text}` is less than {LEAST_OUTPUT}")),
        size => Ok(size),
    }
}

/// Reads the largest size of a file: `512MiB`, a number of bytes, or `none`.
pub fn file_size_limit(text: &str) -> Result<Option<Size>, String> {
    if text == "none" {
        return Ok(None);
    }
    let unit = UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    let (number, factor) = unit.unwrap_or((text, &1));
    let size = number.trim_end().parse::<u64>().ok().and_then(|number| number.checked_mul(*factor)).map(Size);
    size.map(Some).ok_or_else(|| format!("`{text}` is not a size; write for example `512MiB` or `1GiB`"))
}

/// Reads globs of paths, one a line.
pub fn globs(text: &str) -> Result<Vec<String>, String> {
    let globs: Vec<String> = text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    for glob in &globs {
        lanewright_model::ownership::glob(glob)
            .map_err(|error| format!("`{glob}` is not a valid glob: {}", error.kind()))?;
        if glob.starts_with('!') {
            return Err(format!(
                "`{glob}` excludes nothing: write what is meant, or `\\!…` for a name that begins with `!`"
            ));
        }
        if glob.trim() != glob {
            return Err(format!("`{glob}` begins or ends with a blank, as no name of a file does: write it without"));
        }
        if glob.contains("//") || glob.contains("/./") {
            return Err(format!("`{glob}` matches nothing: write each directory once, with one `/` behind it"));
        }
        let mut after = glob.split('\\').skip(1);
        if after.any(|rest| rest.starts_with(|character: char| character.is_alphanumeric())) {
            return Err(format!("`{glob}` matches nothing: directories are separated by `/`"));
        }
        if glob.starts_with('/') || glob.split('/').any(|part| part == "..") {
            return Err(format!("`{glob}` matches nothing: paths are relative to the repository's root"));
        }
    }
    Ok(globs)
}

pub fn patterns(text: &str) -> Result<Vec<String>, String> {
    let patterns: Vec<String> = text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    for pattern in &patterns {
        regex::Regex::new(pattern).map_err(|error| {
            let reason = error.to_string();
            format!("`{pattern}` is no regular expression: {}", reason.lines().last().unwrap_or_default().trim())
        })?;
    }
    Ok(patterns)
}

/// Reads names of environment variables, one per line, in which `*` stands for any text.
pub fn variable_names(text: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    let is_name = |name: &str| name.chars().all(|sign| sign.is_ascii_alphanumeric() || "_*".contains(sign));
    match names.iter().find(|name| !is_name(name)) {
        Some(name) => Err(format!("`{name}` is not the name of a variable; write the name alone, such as GH_TOKEN")),
        None => Ok(names),
    }
}

/// Reads a line for the shell.
pub fn shell_line(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("it is empty".to_owned()),
        line if line.contains('\0') => Err("it holds a NUL character".to_owned()),
        line => Ok(line.to_owned()),
    }
}

/// Reads lines for the shell.
pub fn shell_lines(text: &str) -> Result<Vec<String>, String> {
    text.lines().filter(|line| !line.trim().is_empty()).map(shell_line).collect()
}

/// Reads shell lines by the globs of files that they make, one `GLOB = LINE` a line.
pub fn lines_of_files(text: &str) -> Result<BTreeMap<String, String>, String> {
    let entry = |line: &str| {
        let entry = line.split_once('=').map(|(glob, line)| (glob.trim(), line.trim()));
        let (glob, line) = entry.ok_or_else(|| format!("`{line}` is not `GLOB = COMMAND`"))?;
        globs(glob)?;
        let line = shell_line(line).map_err(|error| format!("the command of `{glob}`: {error}"))?;
        Ok((glob.to_owned(), line))
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(entry).collect()
}

/// Reads a program and its arguments, one a line.
pub fn arguments(text: &str) -> Result<Vec<String>, String> {
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    let has_program = words.first().is_some_and(|program| !program.is_empty());
    has_program.then_some(words).ok_or_else(|| "it names no program".to_owned())
}

/// A type of settings: what may be written for it, and how it is shown.
pub(super) trait SettingValue {
    const KIND: Kind;

    /// `null` where there is none.
    fn to_json(&self) -> Value;
}

macro_rules! setting_values {
    ($($name:ty = $kind:expr, |$value:ident| $json:expr;)*) => {$(
        impl SettingValue for $name {
            const KIND: Kind = $kind;

            fn to_json(&self) -> Value {
                let $value = self;
                $json
            }
        }
    )*};
}

setting_values! {
    bool = Kind::Boolean, |value| json!(value);
    u32 = Kind::Count, |value| json!(value);
    NonZeroU32 = Kind::Count, |value| json!(value);
    u64 = Kind::CountLimit, |value| json!(value);
    Dollars = Kind::Dollars, |value| json!(value);
    Size = Kind::Size, |value| value.to_string().into();
    Duration = Kind::Duration, |value| humantime::format_duration(*value).to_string().into();
    String = Kind::Text, |value| json!(value);
    Webhook = Kind::Text, |value| value.shown().into();
    PathBuf = Kind::Path, |value| value.to_string_lossy().into();
    Vec<String> = Kind::List, |value| json!(value);
    BTreeMap<String, String> = Kind::Table, |value| json!(value);
    Ci = Kind::Choice(words::<Self>), |value| json!(value);
    ForgeChoice = Kind::Choice(words::<Self>), |value| json!(value);
    LaneOrder = Kind::Choice(words::<Self>), |value| json!(value);
    LaneSplit = Kind::Choice(words::<Self>), |value| json!(value);
    MergeChoice = Kind::Choice(words::<Self>), |value| json!(value);
    MustHavesRule = Kind::Choice(words::<Self>), |value| json!(value);
    OnLockConflict = Kind::Choice(words::<Self>), |value| json!(value);
    OnOrphan = Kind::Choice(words::<Self>), |value| json!(value);
    OutsideChanges = Kind::Choice(words::<Self>), |value| json!(value);
    GitDirectory = Kind::Choice(words::<Self>), |value| json!(value);
    Progress = Kind::Choice(words::<Self>), |value| json!(value);
    PublishMode = Kind::Choice(words::<Self>), |value| json!(value);
    SharedFiles = Kind::Choice(words::<Self>), |value| json!(value);
    SandboxChoice = Kind::Choice(words::<Self>), |value| json!(value);
    Sign = Kind::Choice(words::<Self>), |value| json!(value);
    SignOff = Kind::Choice(words::<Self>), |value| json!(value);
    Submodules = Kind::Choice(words::<Self>), |value| json!(value);
}

impl<T: SettingValue> SettingValue for Option<T> {
    const KIND: Kind = T::KIND;

    fn to_json(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_json)
    }
}
