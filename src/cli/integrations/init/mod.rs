//! `init`: sets a repository up for agents: settings, slash commands, hooks, the MCP server (SPEC §12). What is to be
//! written is shown first.

mod claude;
mod commands;
mod files;
mod gates;
mod json_text;
mod programs;
mod server;
mod setting;
mod worktrees;

use std::path::Path;

use files::{Change, write_all};
use lanewright_plan::settings;
use programs::Program;
use serde_json::{Value, json};
use similar::TextDiff;

use crate::cli::args::{CiService, Format, Init};
use crate::cli::confirm::{can_ask, confirms};
use crate::cli::context::REPOSITORY_CONFIG;
use crate::cli::{Context, ExitStatus, Hint, Result};

/// Shows what is missing, and writes it where that is wanted.
pub(crate) fn run(context: &Context, arguments: &Init) -> Result<ExitStatus> {
    let root = context.main_worktree()?;
    let programs = programs::chosen(&root, &arguments.programs);
    let all = changes(context, &root, arguments, &programs)?;
    let needed: Vec<&Change> = all.iter().filter(|change| change.is_needed()).collect();
    if context.printer.format() == Format::Text {
        let announced = programs::announced(&arguments.programs, &programs);
        context.printer.out(format!("{announced}{}", shown(&root, &all, &needed)))?;
    }
    let wanted = !needed.is_empty()
        && !arguments.dry_run
        && (arguments.yes || can_ask(context) && confirms(context, "Write this?")?);
    if wanted {
        write_all(&root, &needed)?;
    }
    finish(context, arguments, &root, &programs, &needed, wanted)?;
    check_left(&all)
}

/// Names the files of the user that were left as they are although something was to be written into them.
fn check_left(all: &[Change]) -> Result<ExitStatus> {
    let left = all.iter().filter_map(|change| Some(format!("{}: {}", change.name, change.left.as_ref()?)));
    match left.collect::<Vec<_>>().as_slice() {
        [] => Ok(ExitStatus::Done),
        left => Err(ExitStatus::Usage.error(format!("these files were not changed:\n{}", left.join("\n")))),
    }
}

/// Every file that was asked for, whether or not it has to change.
fn changes(context: &Context, root: &Path, arguments: &Init, programs: &[Program]) -> Result<Vec<Change>> {
    let Init { config, worktrees, gates, commands, hooks, mcp, ci, .. } = arguments;
    let usual = !(*config || *worktrees || *gates || *commands || *hooks || *mcp) && ci.is_empty();
    let mut all = Vec::new();
    // Settings and workflows that are there are the user's own.
    if usual || *config || *worktrees || *gates {
        let mut lines = if *worktrees { worktrees::lines(root)? } else { Vec::new() };
        let is_new = !root.join(REPOSITORY_CONFIG).exists();
        if *gates || is_new && (usual || *config) {
            lines.extend(gates::line(context, root, *gates));
        }
        let kept = |old: Option<&str>| {
            let template = || if usual || *config { settings::template() } else { String::new() };
            setting::entered(&lines, &old.map_or_else(template, str::to_owned))
        };
        all.push(Change::of(root, REPOSITORY_CONFIG, kept)?);
    }
    for (_, name, text) in WORKFLOWS.iter().filter(|(service, ..)| ci.contains(service)) {
        all.push(Change::of(root, name, |old| Ok(old.map_or_else(|| workflow(text), str::to_owned)))?);
    }
    if *hooks {
        programs::check_hooks(programs)?;
    }
    for program in programs {
        if usual || *commands {
            for (name, text) in (program.commands)() {
                all.push(Change::of(root, name, |old| command(old, text, arguments.force))?);
            }
            if let Some((name, text)) = program.rules {
                all.push(Change::of(root, name, |old| Ok(old.map_or_else(text, str::to_owned)))?);
            }
        }
        let entries = [program.hooks.filter(|_| usual || *hooks), Some(program.server).filter(|_| usual || *mcp)];
        for (name, entry) in entries.into_iter().flatten() {
            all.push(Change::of(root, name, |old| entered(entry, old.unwrap_or_default()))?);
        }
    }
    Ok(all)
}

/// The text of a command's file. One of the user's own is not replaced.
fn command(old: Option<&str>, new: String, force: bool) -> Result<String, String> {
    match old {
        Some(old) if !force && !commands::is_earlier(old, &new) => {
            Err("Lanewright did not write it; rename it, or replace it with --force".to_owned())
        }
        _ => Ok(new),
    }
}

fn entered(entry: programs::Entry, old: &str) -> Result<String, String> {
    entry(old).map_err(|fault| match entry("") {
        Ok(snippet) => format!("{fault}; add this by hand:\n{}", snippet.trim_end()),
        Err(_) => fault,
    })
}

/// The workflows, each with its place in a repository. GitLab reads one file only, which may be there for other jobs.
const WORKFLOWS: &[(CiService, &str, &str)] = &[
    (CiService::Github, ".github/workflows/lanewright.yml", include_str!("../../../../templates/ci/github.yml")),
    (CiService::Gitlab, GITLAB, include_str!("../../../../templates/ci/gitlab.yml")),
];

const GITLAB: &str = ".gitlab/lanewright.yml";

/// A workflow that installs this version: from its release, or by cargo where the program knows no place of releases.
fn workflow(template: &str) -> String {
    let (version, repository) = (env!("CARGO_PKG_VERSION"), env!("CARGO_PKG_REPOSITORY"));
    let releases = match repository.trim_end_matches('/') {
        "" => String::new(),
        repository => format!("{repository}/releases/download/v{version}"),
    };
    template.replace("{{VERSION}}", version).replace("{{RELEASES}}", &releases)
}

/// The needed changes of `all` as a unified diff, which `git apply` takes.
fn shown(root: &Path, all: &[Change], needed: &[&Change]) -> String {
    if all.iter().all(|change| change.left.is_none() && !change.is_needed()) {
        return format!("Everything is in place in {}.\n", root.display());
    }
    needed.iter().map(|change| diff(change)).collect()
}

fn diff(change: &Change) -> String {
    let from = change.old.as_ref().map_or_else(|| "/dev/null".to_owned(), |_| format!("a/{}", change.name));
    let old = change.old.as_deref().unwrap_or_default();
    let diff = TextDiff::from_lines(old, &change.new);
    diff.unified_diff().header(&from, &format!("b/{}", change.name)).to_string()
}

fn finish(
    context: &Context,
    arguments: &Init,
    root: &Path,
    programs: &[Program],
    needed: &[&Change],
    written: bool,
) -> Result<()> {
    if context.printer.format() == Format::Json {
        let files: Vec<Value> =
            needed.iter().map(|change| json!({"path": root.join(change.name), "diff": diff(change)})).collect();
        context.printer.json(&json!({"repository": root, "files": files, "written": written}))?;
    }
    match written {
        true => report_written(context, root, programs, needed)?,
        false if needed.is_empty() || arguments.dry_run || can_ask(context) => {}
        false => {
            let error = ExitStatus::Usage.error("nothing written: cannot ask for confirmation without a terminal");
            return Err(error.hint("to write what is shown: lanewright init --yes, with the same flags"));
        }
    }
    Ok(())
}

fn report_written(context: &Context, root: &Path, programs: &[Program], written: &[&Change]) -> Result<()> {
    if context.printer.format() == Format::Text {
        let names: Vec<&str> = written.iter().map(|change| change.name).collect();
        let mut text = format!("\nWritten in {}:\n  {}\n", root.display(), names.join("\n  "));
        let workflows = WORKFLOWS.iter().filter(|(_, name, _)| names.contains(name));
        let is_for_programs = names.len() > workflows.clone().count();
        if is_for_programs {
            text += "Commit the files your team should share.\n";
            text.extend(programs.iter().map(|program| format!("{} {}\n", program.name, program.note)));
        }
        text.extend(workflows.map(|(service, ..)| next_step_of(*service)));
        context.printer.out(text)?;
    }
    Ok(())
}

/// What is left to do by hand for a workflow.
fn next_step_of(service: CiService) -> String {
    match service {
        CiService::Github => "GitHub Actions: add what your agents need to the workflow, with their keys as secrets of the \
                              repository. Commit it to the default branch and push; then Actions > Phase > Run workflow, or \
                              gh workflow run lanewright.yml -f plan=plan.toml\n"
            .to_owned(),
        CiService::Gitlab => format!(
            "GitLab CI: add what your agents need to the job, with their keys as masked variables of the project, and a project \
             access token that may write the repository as LANEWRIGHT_TOKEN. GitLab reads the file once .gitlab-ci.yml says\n  \
             include:\n    - local: {GITLAB}\nCommit both and push; then Build > Pipelines > New pipeline.\n"
        ),
    }
}
