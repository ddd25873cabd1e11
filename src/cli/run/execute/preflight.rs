//! Before anything begins: whether the programs and credentials that the agents need exist.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::resume_unwind;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lanewright_agents::shell::{Shell, shell_of};
use lanewright_engine::executor::Surroundings;
use lanewright_git::{self as git, ChangedSetting, CleanCheckout, GitError, INCLUDE_FILE, Publication, Repository};
use lanewright_model::event::{AGENT_BRANCHES, LANE_BRANCHES};
use lanewright_model::ownership::Ownership;
use lanewright_model::plan::OwnershipRule;
use lanewright_model::text::{counted, headline, listed, shell_line};
use lanewright_model::{
    Agent, Budget, CommandLine, Lane, LaneId, LaneIndex, MergeMode, PhaseId, Plan, PlanFormat, Runner, SandboxChoice,
    Submodules, UNSET_RUNNER, WallBuilder, user_setup,
};
use lanewright_plan::explain;
use lanewright_plan::settings::Origin;
use lanewright_plan::settings::environment::HOME;
use lanewright_programs::process::find_program;
use lanewright_programs::wall;

use crate::cli::repository_gates::{lanes_without_gate, proposed_gates, remedy};
use crate::cli::worktree_needs::{
    CopiedPaths, Need, cargo_workspace_around, files_naming_checkout, has_submodules, needs,
};
use crate::cli::{Context, ExitStatus, Hint, RepositoryContext, Result};

/// Refuses to begin where the runner of an agent in one of `lanes` cannot work.
pub(crate) fn check(context: &Context, plan: &Plan, lanes: impl Iterator<Item = LaneIndex>) -> Result<()> {
    let works = |agent: &&Agent| agent.runs_its_command();
    let (mut missing, mut unset, mut fallbacks) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
    for lane in lanes.map(|lane| plan.lane(lane)) {
        let is_unset = |agent: &Agent| agent.runner == UNSET_RUNNER;
        unset.extend(lane.agents.iter().filter(works).any(is_unset).then(|| lane.id.to_string()));
        for agent in lane.agents.iter().filter(works) {
            let others = agent.tasks.iter().flat_map(|task| plan.fallback(agent, task));
            for (name, runner) in others.filter_map(|name| plan.runners.get_key_value(name)) {
                let setting = Setting { context, lane, agent: &plan.with_runner(agent, Some(name)) };
                fallbacks.entry(name).or_insert_with(|| setting.problem(runner).map(|it| (agent.runner.clone(), it)));
            }
            let Some(runner) = plan.runner(agent).filter(|runner| runner.command == agent.command) else { continue };
            let setting = Setting { context, lane, agent };
            if let Some(problem) = setting.problem(runner) {
                missing.entry(agent.runner.clone()).or_insert(problem);
            }
        }
    }
    if !unset.is_empty() {
        let message = format!("no runner is set for {}: {}", counted(unset.len(), "lane"), listed(&unset, NAMED));
        return Err(ExitStatus::Usage
            .error(message)
            .hint("choose one for this run: --runner claude (or codex, gemini, opencode, aider, or one of your own)")
            .hint("or for all runs: `runner = \"claude\"` in lanewright.toml"));
    }
    for (own, (what, remedy)) in fallbacks.into_values().flatten() {
        context.printer.warning(format!("{what}; it cannot take the place of {own}"), &[remedy]);
    }
    let Some((_, (what, remedy))) = missing.pop_first() else { return Ok(()) };
    let error = ExitStatus::Blocked.error(what).hint(remedy);
    Err(missing.into_values().fold(error, |error, (what, remedy)| error.hint(format!("{what}; {remedy}"))))
}

/// Refuses to begin where no sandbox can be built and one must be; reports which one is used where that is not the best.
pub(super) fn check_sandbox(within: &RepositoryContext) -> Result<()> {
    let choice = within.settings.sandbox.value;
    if choice == SandboxChoice::Off {
        return Ok(());
    }
    let wall::Choice { builder, refused } = wall::available();
    let reasons: Vec<&str> = refused.iter().map(|refusal| refusal.reason.as_str()).collect();
    let reasons = reasons.join("; ");
    let mut remedies = refused.iter().map(|refusal| refusal.remedy.clone());
    match builder {
        None if choice == SandboxChoice::On => {
            let error = ExitStatus::Blocked.error(format!("no sandbox can be built: {reasons}"));
            let error = remedies.by_ref().take(1).fold(error, |error, remedy| error.hint(remedy));
            return Err(error.hint("or run without one: `sandbox = \"auto\"` or `\"off\"`"));
        }
        None => {
            let message = format!("no sandbox can be built, so jobs run without one: {reasons}");
            within.context.printer.warning(message, &remedies.take(1).collect::<Vec<_>>());
        }
        Some(WallBuilder::Landlock) => {
            let message = format!("jobs run behind Landlock, which hides nothing that they read: {reasons}");
            within.context.printer.warning(message, &remedies.take(1).collect::<Vec<_>>());
        }
        Some(WallBuilder::Bubblewrap(_)) => {}
    }
    Ok(())
}

/// Refuses to begin where a branch of the user's is in the way of those of the lanes: git cannot make `lane/P1/A` beside a
/// branch `lane`. `prefix`: what their names begin with.
pub(super) fn check_branches(within: &RepositoryContext, prefix: &str, phase: &PhaseId) -> Result<()> {
    for names in [LANE_BRANCHES, AGENT_BRANCHES] {
        let whole = format!("{prefix}{names}/{phase}/");
        for (end, _) in whole.match_indices('/') {
            let taken = &whole[..end];
            if within.repository.branch_commit(taken)?.is_some() {
                let message =
                    format!("the branch `{taken}` is in the way: git cannot have branches `{taken}/…` beside it");
                return Err(ExitStatus::Blocked
                    .error(message)
                    .hint(format!("rename it: git branch -m {taken} NEW-NAME")));
            }
        }
    }
    Ok(())
}

/// How many lanes are named.
const NAMED: usize = 8;

/// A scan of the user's checkout of a branch, which takes long in a large one, while the start checks other things.
pub(super) struct CheckoutScan(JoinHandle<(Option<CleanCheckout>, Instant)>);

impl CheckoutScan {
    /// After a longer time the user may have changed it.
    const OLD: Duration = Duration::from_secs(1);

    pub(super) fn begin(within: &RepositoryContext, branch: &str) -> Self {
        let (repository, branch) = (within.repository.clone(), branch.to_owned());
        // What prevents it is reported where the result is needed.
        let scan = move || (git::clean_checkout(&repository, &branch).ok().flatten(), Instant::now());
        Self(thread::spawn(scan))
    }

    fn clean(self) -> Option<CleanCheckout> {
        let (clean, at) = self.0.join().unwrap_or_else(|panic| resume_unwind(panic));
        clean.filter(|_| at.elapsed() < Self::OLD)
    }
}

/// Reports what is in the user's checkout of `branch` and would block the merge of one of `lanes`, before agents are paid.
pub(super) fn report_obstacles(
    within: &RepositoryContext,
    branch: &str,
    scan: CheckoutScan,
    plan: &Plan,
    lanes: impl Iterator<Item = LaneIndex>,
) -> Result<()> {
    let (context, repository) = (&within.context, &within.repository);
    let Some(tip) = repository.branch_commit(branch)? else { return Ok(()) };
    if let Some(Publication::CheckedOutDirty { worktree, blockers }) =
        git::publish_blocker(repository, branch, &tip, &tip)?
    {
        let (place, paths) = (worktree.display(), blockers.paths.join(", "));
        let message =
            format!("no lane can be merged into {branch}, which is checked out in {place}, because of {paths}");
        context.printer.warning(message, std::slice::from_ref(&blockers.remedy));
        // Index and files there differ by what was left behind: no commit or stash of that may be advised.
        if git::first_stale_checkout(repository, branch)?.is_some() {
            return Ok(());
        }
    }
    let Some((place, changed)) =
        git::changes_where_checked_out(repository, branch, scan.clean().as_ref())?.filter(|it| !it.1.is_empty())
    else {
        return Ok(());
    };
    let place = place.display();
    let (owning, other): (Vec<LaneIndex>, Vec<LaneIndex>) = lanes
        .filter(|lane| plan.lane(*lane).ownership != OwnershipRule::Nothing)
        .partition(|lane| !plan.lane(*lane).owns.is_empty());
    for lane in owning.into_iter().map(|lane| plan.lane(lane)) {
        let Ok(owns) = Ownership::new(&lane.owns) else { continue };
        let owned: Vec<&str> = changed.iter().filter(|path| owns.allows(path)).map(String::as_str).collect();
        if !owned.is_empty() {
            let files = headline(&owned.join(", "), LISTED);
            let message = format!("{} owns files with uncommitted changes in {place}: {files}", lane.id);
            context.printer.warning(message, &["commit or stash them before the lane starts".to_owned()]);
        }
    }
    let tracked = git::tracked_changes_where_checked_out(repository, branch)?.map(|(_, paths)| paths);
    // In a checkout that is behind its branch git also lists what the user did not change.
    let tracked = tracked.map(|paths| paths.into_iter().filter(|path| changed.contains(path)).collect::<Vec<_>>());
    let tracked = tracked.filter(|paths| !other.is_empty() && !paths.is_empty());
    if let Some(paths) = tracked {
        let files = headline(&paths.join(", "), LISTED);
        let message = format!("files with uncommitted changes in {place}: {files}");
        let hint = "a lane that changes one of them is not merged before they are committed or stashed";
        context.printer.warning(message, &[hint.to_owned()]);
    }
    Ok(())
}

/// Reports lists of the plan in which merges will not tick what lanes did. Beads records that itself.
pub(super) fn note_lists(
    within: &RepositoryContext,
    branch: &str,
    plan: &Plan,
    format: Option<PlanFormat>,
) -> Result<()> {
    let (context, repository) = (&within.context, &within.repository);
    if plan.lists.is_empty() || format == Some(PlanFormat::Beads) {
        return Ok(());
    }
    let Some(tip) = repository.branch_commit(branch)? else { return Ok(()) };
    let directories: BTreeSet<&Path> = plan.lists.iter().filter_map(|list| Path::new(list).parent()).collect();
    let mut committed = BTreeSet::new();
    for directory in directories {
        let names = repository.names_in(&tip, &directory.to_string_lossy())?;
        committed.extend(names.into_iter().map(|name| directory.join(name).to_string_lossy().into_owned()));
    }
    let edited =
        git::tracked_changes_where_checked_out(repository, branch)?.map(|(_, paths)| paths).unwrap_or_default();
    let (known, unknown): (Vec<String>, Vec<String>) =
        plan.lists.iter().cloned().partition(|it| committed.contains(it));
    let edited: Vec<String> = known.into_iter().filter(|list| edited.contains(list)).collect();
    let (mut ignored, mut new) = (Vec::new(), Vec::new());
    for list in unknown {
        if git::is_ignored(repository.main_worktree(), &list)? { ignored.push(list) } else { new.push(list) }
    }
    let line =
        |words: &[&str], lists: &[String]| shell_line(words.iter().copied().chain(lists.iter().map(String::as_str)));
    let commit = |lists: &[String]| line(&["git", "commit", "-m", "Plan", "--"], lists);
    for (lists, why, remedy) in [
        (&edited, "uncommitted changes".to_owned(), format!("commit them first: {}", commit(&edited))),
        (
            &new,
            format!("not committed on {branch}"),
            format!("{} && {}", line(&["git", "add", "--"], &new), commit(&new)),
        ),
        (&ignored, "ignored by git".to_owned(), "mark there by hand what was merged".to_owned()),
    ] {
        if !lists.is_empty() {
            let message = format!("what lanes do will not be ticked in {}: {why}", listed(lists, NAMED));
            context.printer.warning(message, &[remedy]);
        }
    }
    Ok(())
}

/// How much of a list of files is shown, in characters.
const LISTED: usize = 400;

/// Reports that git has no identity of the user's that it takes, before the run commits and merges in Lanewright's name.
pub(super) fn note_identity(within: &RepositoryContext) {
    let roles = git::roles_without_identity(&within.repository);
    if let [first, others @ ..] = roles.as_slice() {
        let role = if others.is_empty() { format!(" for the {}", first.word()) } else { String::new() };
        let message = format!("no git identity is set{role}: this run commits as {}", git::fallback_identity());
        let set = "git config --global user.name 'Your Name' && git config --global user.email you@example.com";
        within.context.printer.warning(message, &[format!("to commit in your name: {set}")]);
    }
}

/// Reports merge drivers of the user's that git is too old to run.
pub(super) fn note_merge_drivers(within: &RepositoryContext) -> Result<()> {
    let entries = within.repository.configuration_entries()?;
    let is_driver = |name: &str| name.starts_with("merge.") && name.ends_with(".driver");
    let Some(driver) = entries.iter().map(|entry| &entry.name).find(|name| is_driver(name)) else { return Ok(()) };
    if !git::merges_with_drivers()? {
        let message =
            format!("git {} does not run {driver} for merges of lanes: files are merged as text", git::version()?);
        within.context.printer.warning(message, &["install git 2.41 or newer".to_owned()]);
    }
    Ok(())
}

/// Refuses to begin where git signs commits and cannot: lanes would be blocked after their agents were paid.
pub(super) fn check_signing(repository: &Repository, base: &str) -> Result<()> {
    let Some(tip) = repository.branch_commit(base)? else { return Ok(()) };
    Ok(repository.check_signing(&tip)?)
}

/// Names settings of git's, such as `user.name`, that are in the repository and are not as they were when the run started.
pub(super) fn note_changed_settings(context: &Context, repository: &Repository) -> Result<()> {
    for ChangedSetting { name, before, now } in repository.changed_settings_of_commits()? {
        let shown = |value: &Option<String>| value.as_ref().map_or("not set".to_owned(), |value| format!("`{value}`"));
        let (was, is) = (shown(&before), shown(&now));
        let message = format!(
            "git's setting {name} of this repository was {was} when the run started, and is {is}: the run's commits use what it was"
        );
        let words = match &before {
            None => shell_line(["git", "config", "--unset-all", &name]),
            Some(value) => shell_line(["git", "config", &name, value]),
        };
        context.printer.warning(message, &[format!("if an agent changed it, restore it: {words}")]);
    }
    Ok(())
}

/// Shows that executable bits which agents set are not committed.
pub(super) fn note_file_mode(within: &RepositoryContext) -> Result<()> {
    if within.repository.ignores_modes()? {
        within.context.printer.note(
            "core.fileMode is false: git does not record that an agent made a file executable; `git add --chmod=+x FILE` \
             does, or `git config core.fileMode true` for all files, where the file system has modes",
        );
    }
    Ok(())
}

/// Shows that cargo will take packages in worktrees for members of a workspace of the checkout, and refuse them.
pub(super) fn note_cargo_workspace(within: &RepositoryContext) {
    let root = &within.settings.worktree_root.value;
    if let Some((manifest, below)) = cargo_workspace_around(within.repository.main_worktree(), root) {
        let message = format!(
            "the worktrees in {} lie in the cargo workspace of {}: cargo refuses packages there that are in no workspace of \
             their worktree",
            root.display(),
            manifest.display()
        );
        let hint = format!("add {below:?} to `exclude` in its [workspace], or name another place with `worktree_root`");
        within.context.printer.warning(message, &[hint]);
    }
}

/// Shows which variables lead into a checkout of the user's, where lanes do not work.
pub(super) fn note_surroundings(within: &RepositoryContext) -> Result<()> {
    let surroundings = Surroundings::of_process(&within.repository)?;
    let names = surroundings.names();
    if !names.is_empty() {
        let (names, lead) = (names.join(", "), if names.len() == 1 { "leads" } else { "lead" });
        let place = within.repository.main_worktree().display();
        within.context.printer.note(format!(
            "{names} {lead} into {place}: lanes get the same places of their own worktrees, where these exist"
        ));
    }
    if let Some(workspace) = surroundings.go_workspace() {
        within.context.printer.note(format!(
            "{} has {} as a module: lanes get GOWORK=off, because `go` would use the packages there",
            workspace.display(),
            within.repository.main_worktree().display()
        ));
    }
    if let Some(python) = surroundings.python() {
        within.context.printer.note(python.note());
    }
    let shared = surroundings.shared_names();
    if !shared.is_empty() {
        within.context.printer.note(format!(
            "{}: each worktree gets a directory of its own there, because a gate would judge what another lane built",
            shared.join(", ")
        ));
    }
    Ok(())
}

/// Shows which lanes are merged without a gate, and that pipelines are judged by their last program without bash.
pub(super) fn note_gates(within: &RepositoryContext, plan: &Plan, runs: &dyn Fn(&LaneId) -> bool) {
    let (context, settings) = (&within.context, &within.settings);
    let without = explain::without_gate(plan).into_iter().filter(|lane| runs(lane)).collect::<Vec<_>>();
    if !without.is_empty() {
        let found = proposed_gates(context, settings);
        found.faults.iter().for_each(|fault| context.printer.note(fault));
        context.printer.warning(lanes_without_gate(&without), &[remedy(&found)]);
    }
    let all = plan.lanes.iter().filter(|lane| runs(&lane.id)).flat_map(|lane| lane.own_gates());
    let gates = all.chain(plan.gates.all());
    let mut pipelines = gates.filter(|gate| matches!(gate, CommandLine::Shell(line) if shell_of(line) != Shell::Posix));
    let path = context.environment.get("PATH").map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    if let Some(gate) = pipelines.next().filter(|_| find_program(&path, "bash").is_none()) {
        let message =
            format!("there is no bash: of gates with a pipeline, such as `{gate}`, only the last program is judged");
        context.printer.warning(message, &["install bash".to_owned()]);
    }
}

/// Shows which runners a limit in dollars does not stop, because they report no cost, where no limit of tokens does.
pub(super) fn note_budgets(within: &RepositoryContext, plan: &Plan, runs: &dyn Fn(&LaneId) -> bool) {
    let settings = &within.settings;
    let of_run = Budget { cost: settings.max_cost.value, tokens: settings.max_tokens.value };
    let unpriced = |(lane, agent): (&Lane, &Agent)| {
        let fallback = agent.tasks.iter().flat_map(|task| plan.fallback(agent, task));
        let names = std::iter::once(agent.runner.as_str()).chain(fallback);
        let is_unlimited = |name: &&str| {
            plan.runners.get(*name).is_some_and(|runner| {
                let limit = of_run.and(lane.budget).and(runner.budget);
                limit.cost.is_some() && limit.tokens.is_none() && !runner.reports_cost()
            })
        };
        names.filter(is_unlimited).map(|name| headline(name, NAME)).collect::<Vec<_>>()
    };
    let agents =
        plan.lanes.iter().filter(|lane| runs(&lane.id)).flat_map(|lane| lane.agents.iter().map(move |it| (lane, it)));
    let names: BTreeSet<String> = agents.filter(|(_, agent)| agent.runs_its_command()).flat_map(unpriced).collect();
    if !names.is_empty() {
        let names: Vec<String> = names.into_iter().collect();
        let message = format!("`max_cost` does not limit runners that report no cost: {}", listed(&names, NAMED));
        within
            .context
            .printer
            .warning(message, &["to limit their tokens, where they report these: `max_tokens`".to_owned()]);
    }
}

/// Shows which runners have a `fallback` that is paused whenever they are.
pub(super) fn note_fallbacks(context: &Context, plan: &Plan, runs: &dyn Fn(&LaneId) -> bool) {
    fn account<'a>(name: &'a str, runner: &'a Runner) -> &'a str {
        runner.account.as_deref().unwrap_or(name)
    }
    let agents = plan.lanes.iter().filter(|lane| runs(&lane.id)).flat_map(|lane| &lane.agents);
    let works = |agent: &&Agent| agent.runs_its_command() && agent.fallback.is_none();
    let used: BTreeSet<&str> = agents.filter(works).map(|agent| agent.runner.as_str()).collect();
    for (name, runner) in plan.runners.iter().filter(|(name, _)| used.contains(name.as_str())) {
        for other in &runner.fallback {
            let is_same = plan.runners.get(other).is_some_and(|known| account(other, known) == account(name, runner));
            let what = match other == name {
                true => "itself, which has no effect".to_owned(),
                false if is_same => {
                    format!("`{}`, whose account is the same, so limits pause both", headline(other, NAME))
                }
                false => continue,
            };
            let message = format!("`fallback` of the runner `{}` names {what}", headline(name, NAME));
            context.printer.warning(message, &["name a runner with another account there".to_owned()]);
        }
    }
}

/// Shows that the run is to follow pull requests and opens none.
pub(super) fn note_unused_follow(within: &RepositoryContext) {
    let settings = &within.settings;
    let is_asked = settings.follow.value.is_some() && matches!(settings.follow.origin, Origin::Flag(_));
    if is_asked && settings.merge.value.mode() != MergeMode::Pr {
        let message = "`--follow` has no effect, because this run opens no pull requests";
        within.context.printer.warning(message, &["to open them: --merge pr".to_owned()]);
    }
}

/// How much of a runner's name is shown.
const NAME: usize = 40;

/// Shows that hooks of the repository do not run in lanes, because git does not have their directory.
pub(super) fn note_hooks(
    within: &RepositoryContext,
    base: &str,
    plan: &Plan,
    runs: &dyn Fn(&LaneId) -> bool,
) -> Result<()> {
    let Some(tip) = within.repository.branch_commit(base)? else { return Ok(()) };
    let Some(place) = within.repository.hooks_outside_of(&tip)? else { return Ok(()) };
    let is_bare = |lane: &&Lane| runs(&lane.id) && lane.setup.is_empty() && lane.copy.is_empty();
    let lanes: Vec<String> = plan.lanes.iter().filter(is_bare).map(|lane| lane.id.to_string()).collect();
    if !lanes.is_empty() {
        let (lanes, tool) = (listed(&lanes, NAMED), "the command that installs the hooks");
        let message =
            format!("core.hooksPath is {place}, which is not in git: no hooks run in the worktrees of {lanes}");
        let hint = format!("to have them there: `copy = [\"{place}/**\"]` in these lanes, or `setup` with {tool}");
        within.context.printer.warning(message, &[hint]);
    }
    Ok(())
}

/// Shows that hooks which judge commits do not run for those of Lanewright.
pub(super) fn note_commit_hooks(within: &RepositoryContext) -> Result<()> {
    let hooks = within.repository.hooks_among(&["pre-commit", "prepare-commit-msg", "commit-msg"])?;
    if !hooks.is_empty() {
        within.context.printer.note(format!(
            "{}: not run for commits that Lanewright makes of agents' work and of merges; gates can make the same checks, and \
             `commit_message` can meet rules for messages",
            hooks.join(", ")
        ));
    }
    Ok(())
}

/// Refuses a file of names for worktrees that leads out of the repository.
pub(super) fn check_include_file(within: &RepositoryContext) -> Result<()> {
    match git::check_include_file(&within.repository) {
        Err(error @ GitError::BadPattern { .. }) => Err(ExitStatus::Usage
            .error(error.to_string())
            .hint(format!("correct that line of {}", within.repository.main_worktree().join(INCLUDE_FILE).display()))),
        checked => Ok(checked.map(|_| ())?),
    }
}

/// Shows what the worktrees of lanes will lack that the checkout has, each with the setting that brings it.
pub(super) fn note_needs(
    within: &RepositoryContext,
    base: &str,
    plan: &Plan,
    runs: &dyn Fn(&LaneId) -> bool,
) -> Result<()> {
    let Some(tip) = within.repository.branch_commit(base)? else { return Ok(()) };
    let here = || plan.lanes.iter().filter(|lane| runs(&lane.id) && lane.executor.is_none());
    let fills = |lane: &Lane| lane.setup.iter().any(|line| line.to_string().contains("submodule"));
    let empty: Vec<String> = here().filter(|lane| !fills(lane)).map(|lane| lane.id.to_string()).collect();
    let is_filled = within.settings.submodules.value == Submodules::Init;
    if !is_filled && !empty.is_empty() && has_submodules(&within.repository, &tip)? {
        let message = format!("the worktrees of {} have empty submodules", listed(&empty, NAMED));
        let setting = "`submodules = \"init\"` in lanewright.toml fills them".to_owned();
        within.context.printer.warning(message, &[setting]);
    }
    for (path, line) in files_naming_checkout(&within.repository) {
        let place = within.repository.main_worktree().display();
        let message =
            format!("{path}:{line} names {place}: what reads it in a worktree works with your checkout there");
        within.context.printer.warning(message, &["write a relative path, or have `setup` write the file".to_owned()]);
    }
    let mut copied = CopiedPaths::of(&within.repository);
    let mut named = Vec::new();
    for need in needs(&within.repository, &tip)? {
        let mut lanes = Vec::new();
        for lane in here() {
            if !copied.bring(&need, lane)? {
                lanes.push(lane.id.to_string());
            }
        }
        // One set-up installs all packages of a workspace.
        let installed_with = need.setup.clone().map(|setup| (setup, lanes.clone()));
        if !lanes.is_empty() && (need.setup.is_none() || !named.contains(&installed_with)) {
            within.context.printer.warning(missing_in(&need, &listed(&lanes, NAMED)), &[]);
        }
        named.push(installed_with);
    }
    Ok(())
}

fn missing_in(need: &Need, lanes: &str) -> String {
    let path = &need.path;
    let copy = format!("`copy = [\"{}\"]`", need.glob);
    match (&need.lock_file, &need.setup) {
        (Some(lock_file), Some(setup)) => {
            let copy = if need.is_ignored { format!(", {copy} copies it") } else { String::new() };
            format!(
                "the worktrees of {lanes} have no {path}, where the packages of {lock_file} are installed: \
                 `setup = [\"{setup}\"]` in lanewright.toml installs them{copy}"
            )
        }
        _ if need.is_ignored => {
            format!("{path} is not in git, so the worktrees of {lanes} lack it: {copy} in lanewright.toml copies it")
        }
        _ => format!(
            "{path} is not in git, so the worktrees of {lanes} lack it: commit it, or have git ignore it and write \
             {copy} in lanewright.toml"
        ),
    }
}

/// Shows what a person sets up before lanes start.
pub(super) fn note_setup(context: &Context, plan: &Plan, runs: &dyn Fn(&LaneId) -> bool) {
    for lane in plan.lanes.iter().filter(|lane| runs(&lane.id)) {
        let to_do = user_setup::to_do(&lane.user_setup, |_| true);
        if !to_do.is_empty() {
            context.printer.note(format!("To set up for {}: {}", lane.id, to_do.join("; ")));
        }
    }
}

/// What is missing, and what to do about it.
type Problem = (String, String);

/// Where an agent will run.
struct Setting<'a> {
    context: &'a Context,
    lane: &'a Lane,
    agent: &'a Agent,
}

impl Setting<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        let planned = self.agent.env.get(name).or_else(|| self.lane.env.get(name)).cloned();
        let ours = || self.context.environment.get(name).map(|value| value.to_string_lossy().into_owned());
        planned.or_else(ours).filter(|value| !value.is_empty())
    }

    /// Why an attempt with the runner cannot begin.
    fn problem(&self, runner: &Runner) -> Option<Problem> {
        self.missing_program(runner).or_else(|| self.missing_key(runner))
    }

    fn missing_program(&self, runner: &Runner) -> Option<Problem> {
        let program = match (&runner.program, &runner.command) {
            (Some(program), _) => program,
            (None, CommandLine::Arguments(arguments)) => arguments.first()?,
            (None, CommandLine::Shell(_)) => return None,
        };
        let path = self.variable("PATH").unwrap_or_default();
        // A path is seen from the agent's worktree, which is not there yet.
        if program.contains('/') || find_program(&path, program).is_some() {
            return None;
        }
        let name = &self.agent.runner;
        let remedy = match &runner.install {
            Some(install) => format!("to install it: {install}"),
            None => format!("install it, or correct the `command` of `[runners.{name}]` in lanewright.toml"),
        };
        let title = runner.title.as_ref().map(|title| format!(" ({title})")).unwrap_or_default();
        Some((format!("the runner `{name}`{title} needs the program `{program}`, which is not on the PATH"), remedy))
    }

    fn missing_key(&self, runner: &Runner) -> Option<Problem> {
        let key = &runner.key;
        let home = self.variable(HOME).unwrap_or_default();
        let exists = |file: &String| match file.split_once('/') {
            Some(("~", below)) => !home.is_empty() && Path::new(&home).join(below).exists(),
            Some((named, below)) if named.starts_with('$') => {
                self.variable(&named[1..]).is_some_and(|place| Path::new(&place).join(below).exists())
            }
            _ => self.context.main_worktree().is_ok_and(|root| root.join(file).exists()),
        };
        let there = key.variables.iter().any(|name| self.variable(name).is_some()) || key.files.iter().any(exists);
        if key.is_empty() || there {
            return None;
        }
        let name = &self.agent.runner;
        let named =
            |names: &[String], verb: &str| (!names.is_empty()).then(|| format!("{verb} one of: {}", names.join(", ")));
        let both = [named(&key.variables, "set"), named(&key.files, "create")];
        let both: Vec<String> = both.into_iter().flatten().collect();
        let what = format!("no credentials for runner `{name}`; {}", both.join("; or "));
        let otherwise = format!("set `key = {{}}` under `[runners.{name}]` in lanewright.toml if none is needed");
        let remedy = match key.obtain.as_str() {
            "" => otherwise,
            obtain => format!("get one with `{obtain}`, or {otherwise}"),
        };
        Some((what, remedy))
    }
}
