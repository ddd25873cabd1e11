//! `plan new --from issues`: a native plan of the open issues of the repository's forge.

use std::path::Path;

use lanewright_files::atomic;
use lanewright_git::Remote;
use lanewright_model::{CommandLine, Plan, PlanFormat, PlanParts, UNSET_RUNNER};
use lanewright_plan::settings::{Layer, Settings};
use lanewright_plan::{ReadOptions, native_toml};
use lanewright_programs::forge::{Forge, IssueFilter};

use super::{Tests, written};
use crate::cli::args::NewPlan;
use crate::cli::run::{PlanText, forge_settings, report};
use crate::cli::{Context, ExitStatus, Hint, RepositoryContext, Result};

pub(super) fn write(context: &Context, arguments: &NewPlan, path: &Path) -> Result<ExitStatus> {
    let within = RepositoryContext::open(context, Layer::default())?;
    let name = within.settings.remote.value.as_deref().unwrap_or("origin");
    let remote = Remote::named(&within.repository, name)?;
    let forge = Forge::ready(forge_settings(&within, &remote)?)?;
    let filter = IssueFilter { labels: &arguments.labels, milestone: arguments.milestone.as_deref() };
    let asked = context.activity(&within.settings, "Reading issues", None);
    let text = forge.issues(filter)?;
    drop(asked);
    let source = PlanText::of(Path::new("issues.json"), &text);
    let reading = source.read(&within.settings, &ReadOptions::default(), Some(PlanFormat::Issues));
    report(context, &reading.diagnostics);
    let Some(plan) = reading.plan else {
        let errors = reading.diagnostics.iter().filter(|fault| fault.is_error());
        let first = errors.map(|error| error.message.clone()).next().unwrap_or_default();
        return Err(ExitStatus::Usage
            .error(format!("no plan can be made of the issues of {name}: {first}"))
            .hint("ask for others: --label, --milestone"));
    };
    for left in plan.skipped.iter().filter(|left| left.reason.starts_with("it waits")) {
        context.printer.warning(format!("{} is left out: {}", left.lane, left.reason), &[]);
    }
    let plan = completed(context, arguments, &within.settings, plan)?;
    let catalogue = within.settings.catalogue();
    let text = native_toml::write(&plan, &|runner| catalogue.get(runner).map(|runner| runner.command));
    atomic::rewrite(path, text.as_bytes())?;
    let lanes = lanewright_model::text::counted(plan.lanes.len(), "issue");
    written(context, arguments, &format!("It has {lanes}; read the prompts, then:"))
}

/// The plan with its name, and with a runner and tests for what the issues say nothing of.
fn completed(context: &Context, arguments: &NewPlan, settings: &Settings, plan: Plan) -> Result<Plan> {
    let mut parts = PlanParts::from(plan);
    if let Some(phase) = &arguments.phase {
        parts.phase = phase.clone();
    }
    parts.title = arguments.milestone.clone().or(parts.title);
    let proposed = Tests::proposed(context, settings);
    let tests = Tests::of(arguments.test.as_deref().unwrap_or(&proposed.line()), &proposed);
    let name = arguments.runner.clone().or(settings.runner.value.clone()).unwrap_or_else(|| "claude".to_owned());
    let catalogue = settings.catalogue();
    let runner = catalogue.get(&name).ok_or_else(|| {
        ExitStatus::Usage.error(format!("there is no runner `{name}`")).hint(catalogue.names().join(", "))
    })?;
    for lane in &mut parts.lanes {
        if lane.tests.is_empty() {
            lane.tests = tests.lines.iter().cloned().map(CommandLine::Shell).collect();
        }
        for agent in lane.agents.iter_mut().filter(|agent| arguments.runner.is_some() || agent.runner == UNSET_RUNNER) {
            (agent.runner, agent.command) = (name.clone(), runner.command.clone());
        }
    }
    Plan::new(parts).map_err(|_| ExitStatus::Usage.error("issues wait for each other"))
}
