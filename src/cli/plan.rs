//! `plan check|show|graph|convert|schema`: reading a plan; nothing of it is ever run here.

use std::path::Path;

use super::args::{Format, GraphLanguage, Plan as PlanCommand};
use super::context::Context;
use super::error::{CliError, ExitStatus};
use super::execution::{read, tell};
use crate::model::CommandLine;
use crate::model::text::counted;
use crate::plan_source::{self, Reading, explain, graph, native_toml};
use crate::settings::{Layer, Settings};

/// `plan …`.
pub(super) fn run(context: &Context, command: &PlanCommand) -> Result<ExitStatus, CliError> {
    let printer = context.printer;
    match command {
        PlanCommand::Schema => printer.json(&plan_source::schema::json_schema())?,
        PlanCommand::Check(file) => return check(context, &file.plan),
        PlanCommand::Show(file) => {
            let explanation = explain::explain(&valid(context, &file.plan)?.1);
            match printer.format() {
                Format::Text => printer.out(explanation)?,
                Format::Json => printer.json(&serde_json::json!(explanation))?,
            }
        }
        PlanCommand::Graph(graph) => {
            let plan = valid(context, &graph.plan)?.1;
            printer.out(match graph.language {
                GraphLanguage::Dot => graph::dot(&plan),
                GraphLanguage::Mermaid => graph::mermaid(&plan),
            })?;
        }
        PlanCommand::Convert(file) => {
            let (settings, plan) = valid(context, &file.plan)?;
            printer.out(native_toml::write(&plan, &|name| runner(&settings, name)))?;
        }
    }
    Ok(ExitStatus::Done)
}

fn check(context: &Context, path: &Path) -> Result<ExitStatus, CliError> {
    let reading = read_here(context, path)?.1;
    if context.printer.format() == Format::Json {
        let value = serde_json::json!({
            "valid": reading.plan.is_some(),
            "sha256": reading.sha256,
            "diagnostics": reading.diagnostics,
        });
        context.printer.json(&value)?;
    } else {
        tell(context, &reading.diagnostics);
    }
    match &reading.plan {
        Some(plan) if context.printer.format() == Format::Text => {
            let (phase, lanes) = (&plan.phase, counted(plan.lanes.len(), "lane"));
            context.printer.out(format_args!("{}: valid: phase {phase}, {lanes}\n", path.display()))?;
            Ok(ExitStatus::Done)
        }
        Some(_) => Ok(ExitStatus::Done),
        None => Err(invalid(path, &reading)),
    }
}

/// A plan that is valid; every fault is told.
fn valid(context: &Context, path: &Path) -> Result<(Settings, crate::model::Plan), CliError> {
    let (settings, mut reading) = read_here(context, path)?;
    tell(context, &reading.diagnostics);
    match reading.plan.take() {
        Some(plan) => Ok((settings, plan)),
        None => Err(invalid(path, &reading)),
    }
}

/// Reads a plan with the settings of the repository; outside of one, without settings.
fn read_here(context: &Context, path: &Path) -> Result<(Settings, Reading), CliError> {
    let settings = context.layers_anywhere(Layer::default())?.resolve(None);
    let reading = read(&crate::settings::absolute(&context.directory, path), &settings)?;
    Ok((settings, reading))
}

fn runner(settings: &Settings, name: &str) -> Option<CommandLine> {
    settings.runners.get(name).map(|runner| runner.value.clone())
}

fn invalid(path: &Path, reading: &Reading) -> CliError {
    let errors = reading.diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    CliError::new(ExitStatus::Usage, format!("{} is no valid plan ({})", path.display(), counted(errors, "error")))
}
