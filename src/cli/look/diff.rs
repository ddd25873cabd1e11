//! `diff`: what a lane or an agent changed, shown by git.

use std::ffi::OsString;

use lanewright_git::{self as git, FileChange};
use lanewright_model::text::listed;
use lanewright_model::{AgentName, CommitId, LaneId};
use lanewright_plan::settings::Layer;
use lanewright_view::history::LaneState;
use lanewright_view::history::changes::{AgentWork, LaneWork};
use serde_json::json;

use super::worktree::{held_slot, own_agent};
use crate::cli::args::{Diff, Format};
use crate::cli::runs::{RunRecords, beginning, candidate, command, require_plan};
use crate::cli::select::{Selector, Target};
use crate::cli::{Context, ExitStatus, Hint, RepositoryContext, Result};

pub(crate) fn run(context: &Context, arguments: &Diff) -> Result<ExitStatus> {
    let within = RepositoryContext::open(context, Layer::default())?;
    let mut target = Selector::new(context, &within.state).agent_target(&arguments.target.names())?;
    if let (Some(_), Some(agent)) = (arguments.candidate, &target.agent) {
        let error = ExitStatus::Usage.error(format!("both the agent {agent} and a candidate are named"));
        return Err(error.hint("name one of them"));
    }
    if let Some(number) = arguments.candidate {
        let plan = require_plan(&target.run, &within.state.run(&target.run))?;
        target.agent = Some(candidate(&plan, target.lane("diff")?, number)?.1);
    }
    let lane = target.lane("diff")?;
    let change = change(&within, &target, lane)?;
    if context.printer.format() == Format::Json {
        let files = within.repository.changes(change.from.as_str(), &change.to)?;
        return context.printer.print("", &as_json(&target, &change, &files));
    }
    if !change.left_out.is_empty() {
        let files = listed(&change.left_out, NAMED);
        context.printer.note(format!("not committed, so not merged when the changes are approved: {files}"));
    }
    match git::run_for_user(&context.directory, &words(arguments, &change))? {
        // None: the reader of a pager may leave before its end.
        Some(0) | None => Ok(ExitStatus::Done),
        Some(code) => Err(ExitStatus::Failed.error(format!("git ended with exit code {code}"))),
    }
}

/// How many files are named.
const NAMED: usize = 4;

/// What is compared: a commit, and a commit or a tree.
pub(crate) struct Change {
    pub(crate) from: CommitId,
    pub(crate) to: String,
    /// Files with changes that are not committed, and so not merged when the changes are approved.
    left_out: Vec<String>,
}

impl Change {
    fn between(from: CommitId, to: String) -> Self {
        Self { from, to, left_out: Vec::new() }
    }
}

/// What the lane or the agent changed: up to its merge, else up to now, with what is not committed.
pub(crate) fn change(within: &RepositoryContext, target: &Target, lane: &LaneId) -> Result<Change> {
    let run = RunRecords::read(&within.context, &within.state, target.run.clone())?;
    let mut work = LaneWork::of(lane, &run.records);
    match own_agent(&run, target, lane)? {
        None => of_lane(within, &run, lane, &work),
        Some(agent) => {
            let its = work.agents.remove(agent).unwrap_or_default();
            of_agent(within, &run, (lane, agent), &its, &work)
        }
    }
    .and_then(|change| change.ok_or_else(|| nothing(within, target, &run)))
}

fn of_lane(within: &RepositoryContext, run: &RunRecords, lane: &LaneId, work: &LaneWork) -> Result<Option<Change>> {
    if let Some((from, to)) = &work.merged {
        return Ok(Some(Change::between(from.clone(), to.to_string())));
    }
    let Some((head, to)) = tip(within, run, (lane, None), &work.branch, work.snapshot.as_ref())? else {
        return Ok(None);
    };
    let integration = within.repository.branch_commit(&run.started()?.base_branch)?;
    let from = within.repository.starting_point(&head, work.base.as_ref(), integration.as_ref())?;
    let files = if work.asked { within.repository.changes(head.as_str(), &to)? } else { Vec::new() };
    Ok(Some(Change { left_out: files.into_iter().map(|file| file.path).collect(), ..Change::between(from, to) }))
}

fn of_agent(
    within: &RepositoryContext,
    run: &RunRecords,
    (lane, agent): (&LaneId, &AgentName),
    its: &AgentWork,
    work: &LaneWork,
) -> Result<Option<Change>> {
    if let Some((from, to)) = &its.merged {
        return Ok(Some(Change::between(from.clone(), to.to_string())));
    }
    let Some((head, to)) = tip(within, run, (lane, Some(agent)), &its.branch, its.snapshot.as_ref())? else {
        return Ok(None);
    };
    let lane_head = work.head.as_ref().map(|lane| within.repository.merge_base(&head, lane)).transpose()?.flatten();
    Ok(Some(Change::between(lane_head.unwrap_or_else(|| head.clone()), to)))
}

/// The commit of the newest state, and the same with what is not committed: of the worktree, else of the branch or the last
/// snapshot. The snapshot of an agent that is made of its branch has what was not committed, too.
fn tip(
    within: &RepositoryContext,
    run: &RunRecords,
    (lane, agent): (&LaneId, Option<&AgentName>),
    branch: &str,
    snapshot: Option<&CommitId>,
) -> Result<Option<(CommitId, String)>> {
    let options = &run.started()?.options;
    let pool = within.pool(&options.worktree_root, options.keep_caches);
    if let Some(slot) = held_slot(&pool, &run.run, (lane, agent))? {
        return Ok(Some((git::head_of(&slot.path)?.commit, git::present_tree(&within.repository, &slot.path)?)));
    }
    let repository = &within.repository;
    let branch = if branch.is_empty() { None } else { repository.branch_commit(branch)? };
    let kept = snapshot.filter(|commit| repository.has_commit(commit).unwrap_or(false)).cloned();
    let is_behind = match (agent, &branch, &kept) {
        (Some(_), Some(branch), Some(kept)) => repository.is_ancestor(branch, kept)?,
        _ => false,
    };
    let newest = if is_behind { kept } else { branch.or(kept) };
    Ok(newest.map(|commit| (commit.clone(), commit.to_string())))
}

fn nothing(within: &RepositoryContext, target: &Target, run: &RunRecords) -> anyhow::Error {
    let history = beginning(&run.directory).after(&run.records);
    let lane = target.lane.as_ref().and_then(|lane| history.lane(lane));
    let rolled_back = lane.is_some_and(|lane| lane.state == LaneState::RolledBack);
    let why = match lane.and_then(|lane| lane.elsewhere()) {
        _ if rolled_back => "it was rolled back".to_owned(),
        Some(placement) => format!("{placement}; none of its work has been copied yet"),
        None => "it has not started".to_owned(),
    };
    let message = format!("{} has no work in run {}: {why}", target.place(), target.run);
    let error = ExitStatus::InvalidState.error(message);
    match rolled_back {
        true => error
            .hint(format!("its saved work: {}", command(&within.state, &["checkpoints", "list", target.run.as_str()]))),
        false => error.hint(format!("to see its state: {}", command(&within.state, &["status", target.run.as_str()]))),
    }
}

/// The words after `git`.
fn words(arguments: &Diff, change: &Change) -> Vec<OsString> {
    let mut words = vec![if arguments.tool { "difftool" } else { "diff" }.to_owned()];
    match anstream::ColorChoice::global() {
        _ if arguments.tool => {}
        anstream::ColorChoice::Always | anstream::ColorChoice::AlwaysAnsi => words.push("--color=always".to_owned()),
        anstream::ColorChoice::Never => words.push("--color=never".to_owned()),
        anstream::ColorChoice::Auto => {}
    }
    words.extend(arguments.stat.then(|| "--stat".to_owned()));
    words.extend(arguments.name_only.then(|| "--name-only".to_owned()));
    words.extend([change.from.to_string(), change.to.clone()]);
    words.into_iter().map(OsString::from).chain(arguments.git.iter().cloned()).collect()
}

fn as_json(target: &Target, change: &Change, files: &[FileChange]) -> serde_json::Value {
    let file = |file: &FileChange| json!({"path": file.path, "added": file.added, "removed": file.removed});
    json!({
        "run_id": target.run, "lane": target.lane, "agent": target.agent, "from": change.from, "to": change.to,
        "files": files.iter().map(file).collect::<Vec<_>>(),
    })
}
