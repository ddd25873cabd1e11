//! `checkpoints show`.

use lanewright_model::cells::clean;
use lanewright_model::{AgentName, TaskId};
use serde_json::{Map, json};

use super::find::{named, ways_back};
use crate::cli::snapshots::Found;
use crate::cli::{ExitStatus, RepositoryContext, Result};

#[derive(Default)]
struct Contents {
    message: String,
    files: Vec<String>,
    stat: String,
}

pub(crate) fn run(within: &RepositoryContext, name: &str) -> Result<ExitStatus> {
    let found = named(within, name)?;
    let contents = if found.damage.is_none() { read_contents(within, &found)? } else { Contents::default() };
    within.context.printer.print(as_text(&found, &contents), &as_json(&found, &contents))
}

fn read_contents(within: &RepositoryContext, found: &Found) -> Result<Contents> {
    let (repository, commit) = (&within.repository, &found.snapshot.commit);
    let message = repository.message_of(commit)?;
    let Some(base) = &found.snapshot.base else {
        return Ok(Contents { message, ..Contents::default() });
    };
    let (files, stat) = (repository.changed_paths(base, commit)?, repository.diff_stat(base, commit)?);
    Ok(Contents { message, files, stat })
}

fn as_json(found: &Found, contents: &Contents) -> serde_json::Value {
    let restore: Map<_, _> = ["worktree", "directory", "branch"]
        .into_iter()
        .zip(ways_back(&found.snapshot.name))
        .map(|(key, (_, command))| (key.to_owned(), command.into()))
        .collect();
    json!({
        "run_id": found.run,
        "snapshot": found.snapshot,
        "message": contents.message,
        "changed_files": contents.files,
        "diff_stat": contents.stat,
        "damage": found.damage,
        "restore": restore,
    })
}

fn as_text(found: &Found, contents: &Contents) -> String {
    let it = &found.snapshot;
    let who = it.agent.as_ref().map_or("the lane itself", AgentName::as_str);
    let mut text = format!(
        "{}\n  run     {}\n  lane    {}\n  agent   {who}\n  task    {}\n  reason  {}\n  taken   {}\n  commit  {}\n  ref     {}\n",
        it.name,
        found.run,
        it.lane,
        it.task.as_ref().map_or("-", TaskId::as_str),
        it.reason,
        it.at,
        it.commit,
        it.reference,
    );
    if let Some(damage) = &found.damage {
        return text + &format!("DAMAGED, it cannot be restored: {damage}\n");
    }
    let next: Vec<String> = it.context.next_task.iter().map(ToString::to_string).collect();
    let sections: [(&str, Vec<String>); 6] = [
        ("Message", contents.message.lines().map(str::to_owned).collect()),
        ("Decisions", it.context.decisions.clone()),
        ("Blockers", it.context.blockers.clone()),
        ("Next task", next),
        ("Output, the end", it.context.tail.clone()),
        ("Changes since the lane's base", contents.stat.lines().map(str::to_owned).collect()),
    ];
    for (title, lines) in sections.into_iter().filter(|(_, lines)| !lines.is_empty()) {
        text += &format!("\n{title}\n");
        lines.iter().for_each(|line| text += &format!("  {}\n", clean(line)));
    }
    text += "\nTo restore it\n";
    ways_back(&it.name).iter().for_each(|(what, command)| text += &format!("  {what}:\n    {command}\n"));
    text
}
