//! `plan new`: writes a plan to start from.

use std::io;
use std::path::Path;

use anyhow::Context as _;

use super::args::NewPlan;
use super::confirm::can_ask;
use super::run::{PlanText, invalid, report};
use super::{Context, ExitStatus, Hint, Result};
use crate::fs::atomic;
use crate::model::text::shell_line;
use crate::model::{LaneId, PhaseId, PlanFormat};
use crate::plan::ReadOptions;
use crate::settings::Layer;

/// What the plan is to say.
struct Answers {
    phase: String,
    /// The id of each lane, and what it is called.
    lanes: Vec<(String, String)>,
    runner: String,
    test: Option<String>,
}

pub(super) fn run(context: &Context, arguments: &NewPlan) -> Result<ExitStatus> {
    let path = crate::settings::absolute(&context.directory, &arguments.file);
    refuse_existing(&path, arguments)?;
    let settings = context.layers_anywhere(Layer::default())?.resolve(None);
    let runner = settings.runner.value.clone().unwrap_or_else(|| "claude".to_owned());
    let answers = if arguments.says_nothing() && can_ask(context) {
        asked(context, runner)?
    } else {
        Answers {
            phase: arguments.phase.as_ref().map_or_else(|| "P1".to_owned(), PhaseId::to_string),
            lanes: lanes(&arguments.lanes)?,
            runner: arguments.runner.clone().unwrap_or(runner),
            test: arguments.test.clone(),
        }
    };
    let text = plan_text(&answers);
    let reading = PlanText::of(&path, &text).read(&settings, &ReadOptions::default(), Some(PlanFormat::Toml));
    if reading.plan.is_none() {
        report(context, &reading.diagnostics);
        return Err(invalid(&path, &reading.diagnostics));
    }
    atomic::rewrite(&path, text.as_bytes())?;
    let file = arguments.file.display().to_string();
    context.printer.out(format!(
        "Wrote {file}. Write the prompts, then:\n  {}\n  {}\n",
        shell_line(["lanekeeper", "plan", "check", &file]),
        shell_line(["lanekeeper", "run", &file])
    ))?;
    Ok(ExitStatus::Done)
}

fn refuse_existing(path: &Path, arguments: &NewPlan) -> Result<()> {
    if arguments.force || std::fs::symlink_metadata(path).is_err() {
        return Ok(());
    }
    let name = arguments.file.display();
    Err(ExitStatus::Usage.error(format!("{name} exists already")).hint("name another file, or replace it: --force"))
}

/// Asks for each value; an empty answer takes what is proposed.
fn asked(context: &Context, runner: String) -> Result<Answers> {
    let ask = |question: &str, proposed: &str| -> Result<String> {
        let shown = if proposed.is_empty() { String::new() } else { format!(" [{proposed}]") };
        context.printer.out(format!("{question}{shown}: "))?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).context("cannot read the answer")?;
        Ok(Some(answer.trim()).filter(|answer| !answer.is_empty()).unwrap_or(proposed).to_owned())
    };
    let phase = ask("Id of the phase", "P1")?;
    PhaseId::new(&phase).map_err(|error| ExitStatus::Usage.error(error.to_string()))?;
    let mut names = Vec::new();
    loop {
        let name = ask(if names.is_empty() { "Name of a lane" } else { "Another lane, or nothing" }, "")?;
        if name.is_empty() {
            break;
        }
        names.push(name);
    }
    let runner = ask("Runner of the agents", &runner)?;
    let test = Some(ask("Command that must pass before a lane is merged, or nothing", "")?);
    Ok(Answers { phase, lanes: lanes(&names)?, runner, test: test.filter(|test| !test.is_empty()) })
}

/// An id for each name; without names one lane.
fn lanes(names: &[String]) -> Result<Vec<(String, String)>> {
    if names.is_empty() {
        return Ok(vec![("SL-1".to_owned(), "First lane".to_owned())]);
    }
    let mut lanes: Vec<(String, String)> = Vec::new();
    for name in names {
        let id = id_of(name);
        if LaneId::new(&id).is_err() {
            return Err(ExitStatus::Usage.error(format!("no id can be made of the lane's name `{name}`")));
        }
        if lanes.iter().any(|(known, _)| *known == id) {
            return Err(ExitStatus::Usage.error(format!("two lanes would have the id `{id}`")));
        }
        lanes.push((id, name.clone()));
    }
    Ok(lanes)
}

/// The name where it is an id; else its letters and digits, with a hyphen for everything between.
fn id_of(name: &str) -> String {
    if LaneId::new(name).is_ok() {
        return name.to_owned();
    }
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let text = words.map(str::to_lowercase).collect::<Vec<_>>().join("-");
    text.chars().take(40).collect::<String>().trim_end_matches('-').to_owned()
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn plan_text(answers: &Answers) -> String {
    let test = match &answers.test {
        Some(test) => format!("tests = [{}]    # must pass before a lane is merged\n", quoted(test)),
        None => "# tests = [\"make test\"]    # must pass before a lane is merged\n".to_owned(),
    };
    let head = format!(
        "# A plan for `lanekeeper run`. Every key: docs/plans.md, and `lanekeeper plan schema` for editors.\n\
         phase = {}\n\
         # base_branch = \"main\"    # default: the branch that is checked out\n\
         # max_parallel = 4        # agents at once\n\
         # merge = \"squash\"        # or rebase, ff, pr, none; default: a merge commit\n\n\
         [defaults]                # for every lane that does not say otherwise\n\
         runner = {}\n{test}\
         # approval = [\"changes\"]  # wait for a person before the merge\n\n\
         # [gates]\n\
         # final = [\"make test\"]   # after the last lane, on the integration branch\n",
        quoted(&answers.phase),
        quoted(&answers.runner),
    );
    let lanes = answers.lanes.iter().enumerate().map(|(at, (id, name))| {
        let first = &answers.lanes[0].0;
        let after = if at == 0 { String::new() } else { format!("# depends_on = [{}]\n", quoted(first)) };
        format!(
            "\n[[lane]]\nid = {}\nname = {}\n{after}\
             # owns = [{}]    # only this lane changes these files\n\
             prompt = {}\n",
            quoted(id),
            quoted(name),
            quoted(&format!("src/{id}/**")),
            quoted(&format!("Describe here what `{name}` is to do, and how one sees that it is done."))
        )
    });
    head + &lanes.collect::<String>()
}
