//! `plan new`: writes a plan to start from.

mod issues;

use std::io;
use std::path::Path;

use anyhow::Context as _;
use lanewright_files::atomic;
use lanewright_model::text::shell_line;
use lanewright_model::{LaneId, PhaseId, PlanFormat};
use lanewright_plan::settings::{Layer, Settings};
use lanewright_plan::{Diagnostic, ReadOptions, starter_prompt};

use crate::cli::args::{NewPlan, PlanSource};
use crate::cli::confirm::can_ask;
use crate::cli::repository_gates::{proposed_gates, sources};
use crate::cli::run::PlanText;
use crate::cli::{Context, ExitStatus, Hint, Result};

/// What the plan is to say.
#[derive(Clone)]
struct Answers {
    phase: String,
    /// The id of each lane, and what it is called.
    lanes: Vec<(String, String)>,
    runner: String,
    tests: Tests,
}

/// Shell lines that must pass before a lane is merged.
#[derive(Clone, Default)]
struct Tests {
    lines: Vec<String>,
    /// The files that name them, where the user did not.
    source: Option<String>,
}

impl Tests {
    /// Those of the repository, unless the plan need not name them.
    fn proposed(context: &Context, settings: &Settings) -> Self {
        let found = proposed_gates(context, settings);
        found.faults.iter().for_each(|fault| context.printer.note(fault));
        let source = Some(sources(&found)).filter(|sources| !sources.is_empty());
        Self { lines: found.gates.into_iter().map(|gate| gate.command).collect(), source }
    }

    /// All of them in one.
    fn line(&self) -> String {
        self.lines.join(" && ")
    }

    /// What the user wrote, which may be what was proposed.
    fn of(line: &str, proposed: &Self) -> Self {
        match line {
            "" => Self::default(),
            line if line == proposed.line() => proposed.clone(),
            line => Self { lines: vec![line.to_owned()], source: None },
        }
    }
}

pub(crate) fn run(context: &Context, arguments: &NewPlan) -> Result<ExitStatus> {
    let path = lanewright_plan::settings::absolute(&context.directory, &arguments.file);
    refuse_target(&path, arguments)?;
    if let Some(PlanSource::Issues) = arguments.from {
        return issues::write(context, arguments, &path);
    }
    let settings = context.layers_anywhere(Layer::default())?.resolve(None);
    let runner = settings.runner.value.clone().unwrap_or_else(|| "claude".to_owned());
    let proposed = Tests::proposed(context, &settings);
    let answers = if arguments.says_nothing() && can_ask(context) {
        asked(context, &settings, &runner, &proposed)?
    } else {
        Answers {
            phase: arguments.phase.as_ref().map_or_else(|| "P1".to_owned(), PhaseId::to_string),
            lanes: lanes(&arguments.lanes)?,
            runner: arguments.runner.clone().unwrap_or(runner),
            tests: Tests::of(arguments.test.as_deref().unwrap_or(&proposed.line()), &proposed),
        }
    };
    for warning in check(&settings, &answers)? {
        context.printer.warning(&warning.message, warning.help.as_slice());
    }
    if let Err(error) = context.main_worktree() {
        context.printer.warning(error, &["lanewright runs plans in a git repository; create one: git init".to_owned()]);
    }
    atomic::rewrite(&path, plan_text(&answers, starter_prompt).as_bytes())?;
    written(context, arguments, "Write the prompts, then:")
}

/// Says that the plan is written, and what to type.
fn written(context: &Context, arguments: &NewPlan, next: &str) -> Result<ExitStatus> {
    let file = arguments.file.display().to_string();
    context.printer.out(format!(
        "Wrote {file}. {next}\n  {}\n  {}\n",
        shell_line(["lanewright", "plan", "check", &file]),
        shell_line(["lanewright", "run", &file])
    ))?;
    Ok(ExitStatus::Done)
}

/// The warnings about the plan, once its prompts are written. Its faults have no place, because the file is not written
/// yet.
fn check(settings: &Settings, answers: &Answers) -> Result<Vec<Diagnostic>> {
    let text = plan_text(answers, str::to_owned);
    let reading =
        PlanText::of(Path::new("/plan.toml"), &text).read(settings, &ReadOptions::default(), Some(PlanFormat::Toml));
    if reading.plan.is_some() {
        return Ok(reading.diagnostics);
    }
    let errors: Vec<Diagnostic> = reading.diagnostics.into_iter().filter(Diagnostic::is_error).collect();
    let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
    let help = errors.iter().find_map(|error| error.help.clone());
    let error = ExitStatus::Usage.error(messages.join("\n"));
    Err(match help {
        Some(help) => error.hint(help),
        None => error,
    })
}

fn refuse_target(path: &Path, arguments: &NewPlan) -> Result<()> {
    let name = arguments.file.display();
    let refused = |message: String, hint: String| Err(ExitStatus::Usage.error(message).hint(hint));
    if let Some(extension) = path.extension().filter(|it| ["json", "yaml", "yml", "md"].iter().any(|other| it == other))
    {
        let message = format!("{name} would be a plan in TOML, and its name ends with .{}", extension.display());
        return refused(message, format!("name it {}", arguments.file.with_extension("toml").display()));
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.is_dir()) {
        let create = shell_line(["mkdir", "-p", &parent.to_string_lossy()]);
        return refused(format!("there is no directory {}", parent.display()), format!("create it: {create}"));
    }
    if path.is_dir() {
        return refused(format!("{name} is a directory"), format!("name a file in it: {name}/plan.toml"));
    }
    if path.is_symlink() && !path.exists() {
        let message = format!("{name} is a symbolic link to a file that does not exist");
        return refused(message, "name another file, or remove the link".to_owned());
    }
    if path.exists() && !arguments.force {
        return refused(format!("{name} exists already"), "name another file, or replace it: --force".to_owned());
    }
    Ok(())
}

/// The answer that takes nothing although something is proposed.
const NONE: &str = "none";

/// Asks for each value; an empty answer takes what is proposed.
fn asked(context: &Context, settings: &Settings, runner: &str, proposed: &Tests) -> Result<Answers> {
    let phase = ask(context, "Id of the phase", "P1", |text| {
        PhaseId::new(text).map(|_| text.to_owned()).map_err(|error| ExitStatus::Usage.error(error.to_string()))
    })?;
    let mut names: Vec<String> = Vec::new();
    loop {
        let question = if names.is_empty() { "Name of a lane" } else { "Another lane, or nothing" };
        let name = ask(context, question, "", |name| {
            let all = names.iter().cloned().chain(Some(name.to_owned()).filter(|name| !name.is_empty()));
            lanes(&all.collect::<Vec<_>>()).map(|_| name.to_owned())
        })?;
        if name.is_empty() {
            break;
        }
        names.push(name);
    }
    let mut answers = Answers { phase, lanes: lanes(&names)?, runner: runner.to_owned(), tests: Tests::default() };
    answers.runner = ask(context, "Runner of the agents", runner, |name| {
        check(settings, &Answers { runner: name.to_owned(), ..answers.clone() }).map(|_| name.to_owned())
    })?;
    let nothing = if proposed.lines.is_empty() { "nothing" } else { NONE };
    let question = format!("Command that must pass before a lane is merged, or {nothing}");
    answers.tests = ask(context, &question, &proposed.line(), |line| {
        let tests = Tests::of(if line == NONE { "" } else { line }, proposed);
        check(settings, &Answers { tests: tests.clone(), ..answers.clone() }).map(|_| tests)
    })?;
    Ok(answers)
}

/// Asks until `accept` takes the answer.
fn ask<T>(context: &Context, question: &str, proposed: &str, accept: impl Fn(&str) -> Result<T>) -> Result<T> {
    let shown = if proposed.is_empty() { String::new() } else { format!(" [{proposed}]") };
    loop {
        context.printer.out(format!("{question}{shown}: "))?;
        let mut answer = String::new();
        if io::stdin().read_line(&mut answer).context("cannot read the answer")? == 0 {
            return Err(ExitStatus::Usage
                .error("no answer; nothing was written")
                .hint("flags answer the questions, too"));
        }
        let answer = Some(answer.trim()).filter(|answer| !answer.is_empty()).unwrap_or(proposed);
        match accept(answer) {
            Ok(accepted) => return Ok(accepted),
            Err(error) => context.printer.note(format!("{error}. Try again.")),
        }
    }
}

/// An id for each name, which commas separate, too; without names one lane.
fn lanes(names: &[String]) -> Result<Vec<(String, String)>> {
    let names: Vec<&str> = names.iter().flat_map(|name| parts_of(name)).map(str::trim).collect();
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
        lanes.push((id, name.to_owned()));
    }
    Ok(lanes)
}

/// The names between commas; the last comma may end the list.
fn parts_of(names: &str) -> impl Iterator<Item = &str> {
    names.strip_suffix(',').unwrap_or(names).split(',')
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

/// `prompt`: of a lane with that name.
fn plan_text(answers: &Answers, prompt: impl Fn(&str) -> String) -> String {
    let test = match (answers.tests.lines.as_slice(), &answers.tests.source) {
        (lines @ [_, ..], source) => {
            let lines = lines.iter().map(|line| quoted(line)).collect::<Vec<_>>().join(", ");
            let source = source.as_ref().map_or_else(String::new, |source| format!("; from {source}"));
            format!("tests = [{lines}]    # must pass before a lane is merged{source}\n")
        }
        ([], _) => "# tests = [\"make test\"]    # must pass before a lane is merged\n".to_owned(),
    };
    let head = format!(
        "# A plan for `lanewright run`. Every key: `lanewright plan schema`, also for editors, and\n\
         # lanewright-plan(5), which `lanewright man --dir DIR` writes.\n\
         phase = {}\n\
         # base_branch = \"main\"    # default: the branch that is checked out\n\
         # max_parallel = 4        # agents at once\n\
         # merge = \"squash\"        # or rebase, ff, pr, none; default: a merge commit\n\n\
         [defaults]                # for every lane that does not say otherwise\n\
         runner = {}\n\
         # command = 'my-agent --prompt-file \"$LANEWRIGHT_PROMPT_FILE\"'    # in place of a runner\n{test}\
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
            quoted(&prompt(name))
        )
    });
    head + &lanes.collect::<String>()
}
