//! `plan check|show|graph|convert|schema|new`: reading a plan; nothing of it is ever run here.

mod new;

use std::path::Path;

use lanewright_agents::prompt::{self, Prompt};
use lanewright_model::text::{counted, headline};
use lanewright_model::{CommandLine, Lane, Plan, UNSET_RUNNER};
use lanewright_plan::settings::Settings;
use lanewright_plan::{Diagnostic, Origin, Reading, explain, native_toml};
use lanewright_store::lock::is_held;
use lanewright_view::graph::{Graph, SvgStyle, TextForm};
use lanewright_view::report::ExecutionReport;
use lanewright_view::status::lane_graph::lane_graph;
use lanewright_view::status::summary::SummaryContext;

use super::args::{Format, GraphLanguage, Plan as PlanCommand, PlanFile, PlanGraph, PlanShow, ReadingArgs};
use super::repository_gates::{proposed_gates, remedy};
use super::run::{PlanText, invalid, phase_sequence, report};
use super::runs::{beginning, read_begun_log, state};
use super::select::Selector;
use super::{Context, ExitStatus, Hint, Result, local_now};
use crate::cli::printer::screen;

type What<'a> = dyn Fn(&Settings, &Path) -> Result<ExitStatus> + 'a;

pub(crate) fn run(context: &Context, command: &PlanCommand) -> Result<ExitStatus> {
    let (file, what): (&PlanFile, &What<'_>) = match command {
        PlanCommand::Schema => {
            return context.printer.json(&lanewright_plan::schema::json_schema()).map(|()| ExitStatus::Done);
        }
        PlanCommand::New(new) => return new::run(context, new),
        PlanCommand::Check(file) => (file, &|settings, path| check(context, settings, path, &file.reading)),
        PlanCommand::Show(show) if show.prompts => {
            (&show.file, &|settings, path| prompts(context, settings, path, &show.file.reading))
        }
        PlanCommand::Show(asked) => (&asked.file, &|settings, path| show(context, settings, path, asked)),
        PlanCommand::Graph(graph) => (&graph.file, &|settings, path| draw(context, settings, path, graph)),
        PlanCommand::Convert(file) => (file, &|settings, path| convert(context, settings, path, &file.reading)),
    };
    // Those of the repository; outside of one, none.
    let settings = context.layers_anywhere(file.progress.layer().or(file.reading.layer()))?.resolve(None);
    let found = phase_sequence(context, &file.plan, file.reading.redo)?;
    found.notes.iter().for_each(|note| context.printer.warning(note, &[]));
    match found.plans.as_slice() {
        [plan] if !found.of_roadmap => {
            let is_named = *plan == lanewright_plan::settings::absolute(&context.directory, &file.plan);
            let below = plan.strip_prefix(&context.directory).unwrap_or(plan);
            let path = if is_named { &file.plan } else { below };
            let _reading = context.activity(&settings, format_args!("Reading {}", path.display()), None);
            what(&settings, path)
        }
        plans if plans.len() > 1 && matches!(command, PlanCommand::Convert(_)) => {
            let names: Vec<_> = plans.iter().map(|plan| plan.display().to_string()).collect();
            let message = format!("{} is several plans, and a native plan is one phase", file.plan.display());
            Err(ExitStatus::Usage.error(message).hint(format!("convert them one by one: {}", names.join(", "))))
        }
        // Every plan of a roadmap is reported; the first error decides the exit code.
        plans => {
            let reading = context.activity(&settings, "Reading plans", Some(plans.len()));
            let each = plans.iter().map(|plan| (what(&settings, plan), reading.advance()).0);
            each.fold(Ok(ExitStatus::Done), Result::and)
        }
    }
}

fn show(context: &Context, settings: &Settings, path: &Path, asked: &PlanShow) -> Result<ExitStatus> {
    let (text, plan, reading) = valid(context, settings, path, &asked.file.reading)?;
    report(context, &ungated(context, settings, &text, Some(&plan)));
    let explanation = explain::explain(&plan).with_sharing(reading.sharing);
    let mut json = serde_json::json!(explanation);
    let mut text = explanation.to_string();
    if asked.explain {
        let origins: Vec<Origin> = reading.origins.into_iter().chain(origins_of_tests(settings, &plan)).collect();
        json["origins"] = serde_json::json!(origins);
        text.push('\n');
        origins.iter().for_each(|origin| text.push_str(&format!("{origin}\n")));
    }
    context.printer.print(&text, &json)
}

/// Where the settings say the tests of lanes for which the plan has none.
fn origins_of_tests(settings: &Settings, plan: &Plan) -> Vec<Origin> {
    let tested = plan.lanes.iter().filter(|lane| lane.has_usual_tests);
    let tests = tested.flat_map(|lane| lane.tests.iter().map(move |test| (lane, test)));
    let origin = |(lane, test): (&Lane, &CommandLine)| Origin {
        lane: lane.id.to_string(),
        what: format!("gate `{}`", headline(&test.to_string(), 120)),
        place: settings.tests.origin.to_string(),
        text: "`tests` of all lanes without their own".to_owned(),
    };
    tests.map(origin).collect()
}

fn prompts(context: &Context, settings: &Settings, path: &Path, how: &ReadingArgs) -> Result<ExitStatus> {
    let (_, plan, _) = valid(context, settings, path, how)?;
    let prompts = prompt::preview(&plan)?;
    let title = |it: &Prompt<'_>| format!("==> {} · {} · task {} <==", it.lane, it.agent, it.task);
    let text: Vec<String> = prompts.iter().map(|it| format!("{}\n\n{}", title(it), it.text)).collect();
    context.printer.print(text.join("\n"), &serde_json::json!(prompts))
}

fn draw(context: &Context, settings: &Settings, path: &Path, arguments: &PlanGraph) -> Result<ExitStatus> {
    let (_, plan, _) = valid(context, settings, path, &arguments.file.reading)?;
    let mut graph = Graph::of_plan(&plan, &explain::critical_path(&plan));
    if let Some(run) = &arguments.run {
        let (state, _) = state(context)?;
        let directory = state.run(&Selector::new(context, &state).named(run)?);
        let history = beginning(&directory).after(&read_begun_log(context, &directory)?.records);
        let program = state.program();
        let held = is_held(&directory.lock());
        let summary = SummaryContext { now: local_now(), program: &program, held };
        let critical = ExecutionReport::of(&history, summary, 0).timeline.critical_path;
        graph = graph.as_in(&lane_graph(&history, held, &critical, |_| None));
    }
    if context.printer.format() == Format::Json {
        return context.printer.json(&serde_json::json!(graph.json())).map(|()| ExitStatus::Done);
    }
    context.printer.out(match arguments.language {
        GraphLanguage::Dot => graph.dot(),
        GraphLanguage::Mermaid => graph.mermaid(),
        GraphLanguage::Svg => graph.svg(&format!("Lanes of phase {}", plan.phase), SvgStyle::Own),
        GraphLanguage::Text => {
            let ascii = context.environment.get("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
            graph.text(TextForm { width: screen().1, ascii })
        }
    })?;
    Ok(ExitStatus::Done)
}

fn convert(context: &Context, settings: &Settings, path: &Path, how: &ReadingArgs) -> Result<ExitStatus> {
    let (_, plan, _) = valid(context, settings, path, how)?;
    if plan
        .lanes
        .iter()
        .flat_map(|lane| &lane.agents)
        .any(|agent| agent.runner == UNSET_RUNNER && agent.runs_its_command())
    {
        let hint = "set `runner` in `[defaults]` of the new plan, or in lanewright.toml";
        context.printer.warning("the plan names no runner for its agents", &[hint.to_owned()]);
    }
    context.printer.out(native_toml::write(&plan, &|name| runner(settings, name)))?;
    Ok(ExitStatus::Done)
}

fn check(context: &Context, settings: &Settings, path: &Path, how: &ReadingArgs) -> Result<ExitStatus> {
    let (text, mut reading, done) = read_here(context, settings, path, how)?;
    let long = reading.plan.as_ref().map(|plan| text.long_tasks(plan, settings, how.strict)).unwrap_or_default();
    reading.plan = reading.plan.filter(|_| !long.iter().any(Diagnostic::is_error));
    reading.diagnostics.extend(long);
    reading.diagnostics.extend(ungated(context, settings, &text, reading.plan.as_ref()));
    Diagnostic::sort(&mut reading.diagnostics);
    if context.printer.format() == Format::Json {
        let value = serde_json::json!({
            "valid": reading.plan.is_some(),
            "done": done,
            "sha256": reading.sha256,
            "diagnostics": reading.diagnostics,
        });
        context.printer.json(&value)?;
    } else {
        report(context, &reading.diagnostics);
    }
    match &reading.plan {
        Some(plan) if context.printer.format() == Format::Text => {
            let (phase, lanes) = (&plan.phase, counted(plan.lanes.len(), "lane"));
            let done = if done { ", all of it done" } else { "" };
            let shares = reading.sharing.side_by_side < reading.sharing.by_order;
            let side_by_side = if shares { format!(", side by side {}", reading.sharing) } else { String::new() };
            context
                .printer
                .out(format_args!("{}: valid: phase {phase}, {lanes}{done}{side_by_side}\n", path.display()))?;
            Ok(ExitStatus::Done)
        }
        Some(_) => Ok(ExitStatus::Done),
        None => Err(invalid(path, &reading.diagnostics)),
    }
}

/// Lanes without a gate, with what the repository is tested by, and what of that cannot be read.
fn ungated(context: &Context, settings: &Settings, text: &PlanText, plan: Option<&Plan>) -> Vec<Diagnostic> {
    let without = plan.map(explain::without_gate).unwrap_or_default();
    let Some(plan) = plan.filter(|_| !without.is_empty()) else { return Vec::new() };
    let found = proposed_gates(context, settings);
    let fault = text.without_gates(plan, &without, &remedy(&found));
    found.faults.into_iter().chain(fault).collect()
}

/// A valid plan; every fault is reported.
fn valid(context: &Context, settings: &Settings, path: &Path, how: &ReadingArgs) -> Result<(PlanText, Plan, Reading)> {
    let (text, mut reading, done) = read_here(context, settings, path, how)?;
    report(context, &reading.diagnostics);
    let Some(plan) = reading.plan.take() else { return Err(invalid(path, &reading.diagnostics)) };
    if done {
        context.printer.note(format!("Everything in {} is done; this is what --redo would do.", path.display()));
    }
    Ok((text, plan, reading))
}

/// Reads a plan. `true`: nothing is left to do, and the plan is the whole one.
fn read_here(
    context: &Context,
    settings: &Settings,
    path: &Path,
    how: &ReadingArgs,
) -> Result<(PlanText, Reading, bool)> {
    let text = PlanText::open(&lanewright_plan::settings::absolute(&context.directory, path))?;
    let (whole, rest) = text.whole_and_rest(settings, how, &|_| Ok(Vec::new()))?;
    let done = rest.is_none();
    Ok((text, rest.unwrap_or(whole), done))
}

fn runner(settings: &Settings, name: &str) -> Option<CommandLine> {
    settings.catalogue().get(name).map(|runner| runner.command)
}
