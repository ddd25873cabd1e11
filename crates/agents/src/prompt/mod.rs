//! The prompts of agents: templates, which a repository can replace, and the values that they are filled with. Pure.

mod check;
mod commit;
mod past_failures;
mod preview;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, ErrorKind, Template, UndefinedBehavior};
use serde::Serialize;

use lanewright_model::Round;

pub use check::check;
pub use commit::{CommitValues, check_commit_message, commit_message};
pub use past_failures::PastFailures;
pub use preview::{Prompt, preview};
pub use values::{CandidateValues, ReportValues, Values};

/// The templates that Lanewright includes, by name. Those of the rounds include the others.
const INCLUDED: [(&str, &str); 7] = [
    ("history.md", include_str!("../../templates/prompts/history.md")),
    ("implementation.md", include_str!("../../templates/prompts/implementation.md")),
    ("judge.md", include_str!("../../templates/prompts/judge.md")),
    ("macros.md", include_str!("../../templates/prompts/macros.md")),
    ("requirements.md", include_str!("../../templates/prompts/requirements.md")),
    ("review.md", include_str!("../../templates/prompts/review.md")),
    ("scope.md", include_str!("../../templates/prompts/scope.md")),
];

/// The names of the templates that Lanewright includes.
pub fn template_names() -> impl Iterator<Item = &'static str> {
    INCLUDED.iter().map(|(name, _)| *name)
}

/// What is wrong with a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{template}:{line}: {reason}")]
pub struct PromptError {
    /// The template's name.
    pub template: String,
    /// From 1.
    pub line: usize,
    /// The byte of the template's text, where it is known.
    pub offset: Option<usize>,
    pub reason: String,
}

impl PromptError {
    /// A fault of a template as a whole.
    fn of(template: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { template: template.into(), line: 1, offset: None, reason: reason.into() }
    }
}

impl From<minijinja::Error> for PromptError {
    fn from(error: minijinja::Error) -> Self {
        let cause = cause(&error);
        let name = cause.name().or(error.name()).unwrap_or("template");
        let line = cause.line().or(error.line()).unwrap_or(1);
        Self { line, offset: cause.range().map(|range| range.start), ..Self::of(name, reason(cause)) }
    }
}

/// The error in the template that is included, however deeply.
fn cause(error: &minijinja::Error) -> &minijinja::Error {
    let inner = std::error::Error::source(error).and_then(|source| source.downcast_ref::<minijinja::Error>());
    inner.filter(|_| error.kind() == ErrorKind::BadInclude).map_or(error, cause)
}

fn reason(error: &minijinja::Error) -> String {
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    match error.kind() {
        ErrorKind::OutOfFuel => "the template takes too many steps, perhaps in a loop".to_owned(),
        ErrorKind::WriteFailure => format!("the template makes a text of more than {} MiB", MAX_TEXT >> 20),
        kind => format!("{kind}{detail}"),
    }
}

/// Steps of rendering one text; the library counts 64 bytes that are made as one, so this also limits the memory.
const MAX_STEPS: u64 = 2_000_000;

/// The most bytes of one text: as many as the text of a plan may have.
const MAX_TEXT: usize = 16 << 20;

/// A text that is being made.
struct Text(Vec<u8>);

impl io::Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_TEXT {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn render(template: &Template<'_, '_>, values: &impl Serialize) -> Result<String, PromptError> {
    let mut text = Text(Vec::new());
    template.render_captured_to(minijinja::Value::from(Serde(values)), &mut text)?;
    Ok(String::from_utf8_lossy(&text.0).into_owned())
}

/// The templates of a run: those that Lanewright includes, and those that the repository puts in their place or adds.
pub struct Templates<'t> {
    environment: Environment<'t>,
}

impl<'t> Templates<'t> {
    /// # Errors
    /// A template that cannot be parsed.
    pub fn new(own: &'t BTreeMap<String, String>) -> Result<Self, PromptError> {
        let mut environment = environment();
        environment.add_filter("code", code);
        for (name, text) in INCLUDED {
            environment.add_template(name, text)?;
        }
        for (name, text) in own {
            environment.add_template(name, text)?;
        }
        Ok(Self { environment })
    }

    /// The prompt of an agent of `round`.
    ///
    /// # Errors
    /// What the template does wrong with these values.
    pub fn render(&self, round: Round, values: &Values<'_>) -> Result<String, PromptError> {
        let text = render(&self.environment.get_template(&format!("{round}.md"))?, values)?;
        Ok(format!("{}\n", text.trim()))
    }

    /// # Errors
    /// A variable that does not exist, in any template.
    fn check_variables(&self, values: &Values<'_>) -> Result<(), PromptError> {
        let known = names(values);
        let check = |(_, template): (_, Template<'_, '_>)| check_variables(&self.environment, &template, &known);
        self.environment.templates().try_for_each(check)
    }
}

/// Where templates are made: text stays as it is, and what does not exist is an error.
fn environment<'t>() -> Environment<'t> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(MAX_STEPS));
    environment
}

fn check_variables(
    environment: &Environment<'_>,
    template: &Template<'_, '_>,
    known: &BTreeSet<String>,
) -> Result<(), PromptError> {
    let mut unknown: Vec<String> = template.undeclared_variables(false).into_iter().collect();
    unknown.retain(|name| !known.contains(name) && environment.globals().all(|(global, _)| global != *name));
    unknown.sort();
    let Some(name) = unknown.first() else { return Ok(()) };
    let offset = template.source().find(name.as_str());
    let line = offset.map_or(1, |offset| template.source()[..offset].matches('\n').count() + 1);
    let reason = format!("`{name}` is none of {}", known.iter().cloned().collect::<Vec<_>>().join(", "));
    Err(PromptError { line, offset, ..PromptError::of(template.name(), reason) })
}

/// The names that templates can use.
fn names(values: &impl Serialize) -> BTreeSet<String> {
    match serde_json::to_value(values) {
        Ok(serde_json::Value::Object(fields)) => fields.into_iter().map(|(name, _)| name).collect(),
        _ => BTreeSet::new(),
    }
}

/// A command as Markdown: a line of code, indented if it has several lines.
fn code(command: String) -> String {
    command.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
