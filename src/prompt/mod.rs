//! The prompts of agents: templates, which a repository can replace, and the values that they are filled with. Pure.

mod commit;
mod past;
mod preview;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, ErrorKind, Template, UndefinedBehavior};

use crate::model::Round;

pub use commit::{CommitValues, check_commit_message, commit_message};
pub use past::PastFailures;
pub use preview::{Prompt, check, preview};
pub use values::{ReportValues, Values};

/// The templates that Lanekeeper includes, by name. Those of the rounds include the others.
const INCLUDED: [(&str, &str); 6] = [
    ("history.md", include_str!("../../templates/prompts/history.md")),
    ("implementation.md", include_str!("../../templates/prompts/implementation.md")),
    ("macros.md", include_str!("../../templates/prompts/macros.md")),
    ("requirements.md", include_str!("../../templates/prompts/requirements.md")),
    ("review.md", include_str!("../../templates/prompts/review.md")),
    ("scope.md", include_str!("../../templates/prompts/scope.md")),
];

/// The names of the templates that Lanekeeper includes.
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
    pub reason: String,
}

impl From<minijinja::Error> for PromptError {
    fn from(error: minijinja::Error) -> Self {
        let (template, line) = (error.name().unwrap_or("template").to_owned(), error.line().unwrap_or(1));
        let inner = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<minijinja::Error>());
        match inner.filter(|_| error.kind() == ErrorKind::BadInclude) {
            Some(inner) => Self {
                template: inner.name().unwrap_or(&template).to_owned(),
                line: inner.line().unwrap_or(line),
                reason: reason(inner),
            },
            None => Self { reason: reason(&error), template, line },
        }
    }
}

fn reason(error: &minijinja::Error) -> String {
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    format!("{}{detail}", error.kind())
}

/// The templates of a run: those that Lanekeeper includes, and those that the repository puts in their place or adds.
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
        let template = self.environment.get_template(&format!("{round}.md"))?;
        let text = template.render(minijinja::Value::from(Serde(values)))?;
        Ok(format!("{}\n", text.trim()))
    }

    /// What is wrong with the prompts of an agent of `round`, whatever happens to it: a variable that does not exist, or
    /// a retry that gets the same prompt as its first attempt.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self, round: Round, first: &Values<'_>) -> Result<(), PromptError> {
        let known = names(first);
        let check = |template: &Template<'_, '_>| check_variables(&self.environment, template, &known);
        self.environment.templates().try_for_each(|(_, template)| check(&template))?;
        let failures = ["what failed".to_owned()];
        let second = Values { attempt: 2, failures: &failures, ..first.clone() };
        let last = Values { salvaged: Some("refs/x"), remarks: &failures, last_chance: true, ..second.clone() };
        self.render(round, &last)?;
        if self.render(round, first)? != self.render(round, &second)? {
            return Ok(());
        }
        let reason = "a retry gets the same prompt as the first attempt: include `history.md`, or use `failures`";
        Err(PromptError { template: format!("{round}.md"), line: 1, reason: reason.to_owned() })
    }
}

/// Where templates are made: text stays as it is, and what does not exist is an error.
fn environment<'t>() -> Environment<'t> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
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
    let line = template.source().lines().position(|line| line.contains(name)).map_or(1, |at| at + 1);
    let reason = format!("`{name}` is none of {}", known.iter().cloned().collect::<Vec<_>>().join(", "));
    Err(PromptError { template: template.name().to_owned(), line, reason })
}

/// The names that templates can use.
fn names(values: &impl serde::Serialize) -> BTreeSet<String> {
    match serde_json::to_value(values) {
        Ok(serde_json::Value::Object(fields)) => fields.into_iter().map(|(name, _)| name).collect(),
        _ => BTreeSet::new(),
    }
}

/// A command as Markdown: a line of code, indented if it has several lines.
fn code(command: String) -> String {
    command.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
