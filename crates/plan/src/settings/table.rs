//! The table of settings: one entry for each, and everything else is made from it.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lanewright_agents::runner::Catalogue;
use lanewright_model::ownership::RUN_LOG_DIRECTORY;
use lanewright_model::plan::{SPECIALIST_TIME_LIMIT, SharedFiles, TASK_TIME_LIMIT};
use lanewright_model::retry::{FALLBACK_AFTER, OUTAGE_LIMIT};
use lanewright_model::runner::RunnerText;
use lanewright_model::{
    Ci, Dollars, ExecutorSettings, Follow, ForgeChoice, GitDirectory, LaneOrder, LaneSplit, MergeChoice, MustHavesRule,
    OnOrphan, OutsideChanges, PublishMode, SandboxChoice, Sign, SignOff, SnapshotRules, Submodules, Timeouts,
};

use super::key::Key;
use super::render::Row;
use super::value::{self, SettingValue, Size, Webhook};
use super::{Invocation, OnLockConflict, Origin, Progress, Setting};

macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty {
        $read:expr, $(flags [$($flag:literal),+],)? $(aliases [$($alias:literal),+],)?
        default $default:literal = $value:expr
    })*) => {
        /// Every setting, resolved.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Settings {
            $($(#[doc = $doc])+ pub $name: Setting<$type>,)*
            /// Those that the configuration files describe, by name.
            pub runners: BTreeMap<String, Setting<RunnerText>>,
            /// The engines of clusters that the configuration files describe, by name.
            pub executors: BTreeMap<String, Setting<ExecutorSettings>>,
        }

        /// The settings of one source.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Layer {
            $($(#[doc = $doc])+ pub $name: Option<Setting<$type>>,)*
            pub runners: BTreeMap<String, Setting<RunnerText>>,
            pub executors: BTreeMap<String, Setting<ExecutorSettings>>,
        }

        /// Every setting but the runners and the executors, in the order in which they are shown.
        pub const KEYS: &[Key] = &[$(Key {
            name: stringify!($name),
            kind: <$type as SettingValue>::KIND,
            aliases: &[$($($alias),+)?],
            flags: &[$($($flag),+)?],
            default: $default,
            doc: concat!($($doc),+).trim_ascii(),
        },)*];

        impl Layer {
            /// This layer, with the values of `weaker` for what it leaves open.
            pub fn or(self, weaker: Self) -> Self {
                let (mut runners, mut executors) = (weaker.runners, weaker.executors);
                runners.extend(self.runners);
                executors.extend(self.executors);
                Self { $($name: self.$name.or(weaker.$name),)* runners, executors }
            }

            /// Reads `text` as the value of the setting called `key`.
            pub(super) fn set(&mut self, key: &str, text: &str, origin: Origin) -> Result<(), String> {
                match key {
                    $(stringify!($name) => self.$name = Some(Setting::new($read(text)?, origin)),)*
                    _ => return Err(format!("there is no setting `{key}`")),
                }
                Ok(())
            }

            /// This layer, with `defaults` for what it leaves open.
            pub(super) fn complete(self, defaults: Settings) -> Settings {
                let Self { runners, executors, .. } = self;
                Settings { $($name: self.$name.unwrap_or(defaults.$name),)* runners, executors }
            }
        }

        impl Settings {
            /// The value of every setting that no source names.
            pub(super) fn defaults(invocation: &Invocation) -> Self {
                $(let $name: fn(&Invocation) -> $type = $value;)*
                Self {
                    $($name: Setting::new($name(invocation), Origin::Default),)*
                    runners: BTreeMap::new(),
                    executors: BTreeMap::new(),
                }
            }

            /// The runners that a plan can name: those of the configuration files, and those that come along.
            pub fn catalogue(&self) -> Catalogue {
                Catalogue::new(self.runners.iter().map(|(name, text)| (name.clone(), text.value.clone())))
            }

            /// Every value with its origin, runners and executors last.
            pub fn rows(&self) -> Vec<Row> {
                let values = [$((self.$name.value.to_json(), &self.$name.origin),)*];
                let keyed = KEYS.iter().zip(values).map(|(key, (value, origin))| Row::new(key, value, origin));
                let runners = self.runners.iter().map(|(name, text)| Row::described(format!("runners.{name}"), text));
                let executors = self.executors.iter().map(|(name, text)| Row::described(format!("executors.{name}"), text));
                keyed.chain(runners).chain(executors).collect()
            }
        }
    };
}

settings! {
    /// The integration branch: lanes start from it and are merged into it.
    base: Option<String> { some(value::branch), flags ["--base"], default "the current branch" = |_| None }
    /// How many agents may work at once.
    max_parallel: NonZeroU32 {
        value::count, flags ["--max-parallel"],
        default "twice the number of processors, at least 4" = Invocation::agents_at_once
    }
    /// The runner of agents for which the plan names neither a runner nor a command. As a flag or a variable: of all
    /// agents without a command of their own.
    runner: Option<String> { some(value::runner), flags ["--runner"], default "the plan's" = |_| None }
    /// How often a failed attempt is repeated. As a flag or a variable it overrides what the lanes say.
    retries: Option<u32> { some(value::number), flags ["--retries"], default "each lane's own" = |_| None }
    /// Whether the implementation agents of all plans may change no file.
    allow_empty: bool { value::boolean, default "false" = |_| false }
    /// How a finished lane reaches the integration branch.
    merge: MergeChoice { value::choice, flags ["--merge"], default "local" = |_| MergeChoice::Local }
    /// The template of messages of commits that are made of agents' work.
    commit_message: Option<String> {
        some(value::commit_message), default "the lane's id, and the titles of the lane and the task" = |_| None
    }
    /// Whether commits and merges are signed, as git signs commits in the repository.
    sign: Sign { value::choice, default "auto" = |_| Sign::Auto }
    /// Whether commits and merges end with your sign-off (`Signed-off-by`), as `format.signOff` says or otherwise.
    sign_off: SignOff { value::choice, default "auto" = |_| SignOff::Auto }
    /// Globs of new files that are committed although lanes leave such files out.
    take: Option<Vec<String>> { some(value::globs), default "none" = |_| None }
    /// The size of the largest new file that is committed, or `none`.
    max_file_size: Option<Size> { value::file_size_limit, default "50MiB" = |_| Some(Size(50 << 20)) }
    /// Globs of ignored files of the checkout that are copied into each new worktree of lanes that say nothing of it.
    copy: Option<Vec<String>> { some(value::globs), default "none" = |_| None }
    /// How much is copied into a worktree at most, or `none`.
    copy_limit: Option<Size> { value::file_size_limit, default "10GiB" = |_| Some(Size(10 << 30)) }
    /// Shell lines that run in each new worktree before anything else, in lanes that say nothing of it.
    setup: Option<Vec<String>> { some(value::shell_lines), default "none" = |_| None }
    /// Shell lines that must pass on a lane's branch before it is merged, in lanes for which the plan has no tests.
    tests: Option<Vec<String>> { some(value::shell_lines), default "none" = |_| None }
    /// Globs of files that no lane changes without your approval of its changes.
    protect: Option<Vec<String>> { some(value::globs), default "none" = |_| None }
    /// Whether new worktrees get the files of submodules, from the copies that the checkout has.
    submodules: Submodules { value::choice, default "off" = |_| Submodules::Off }
    /// What the names of the branches of lanes and agents begin with, before `lane/` and `lane-agent/`.
    branch_prefix: Option<String> { some(value::branch_prefix), default "none" = |_| None }
    /// The commands that make files again, such as lock files, where a merge conflicts in nothing else: a table by globs.
    regenerate: Option<BTreeMap<String, String>> { some(value::lines_of_files), default "none" = |_| None }
    /// The directory that holds the worktrees.
    worktree_root: PathBuf {
        value::path, flags ["--worktree-root"],
        default "`<repository>.lanes`, beside the repository" = |at| at.sibling(".lanes")
    }
    /// The directory that holds the repository's own templates of prompts.
    prompts: PathBuf { value::path, default "`.lanewright/prompts`" = |at| at.repository.join(".lanewright/prompts") }
    /// The file that holds the checkpoint records.
    checkpoint_path: PathBuf {
        value::path, flags ["--checkpoint-path"],
        default "`.claude/ai-dev-kit/run-logs/checkpoints.json`"
            = |at| at.repository.join(RUN_LOG_DIRECTORY).join("checkpoints.json")
    }
    /// The file that is the run log.
    log_path: Option<PathBuf> {
        some(value::path), flags ["--log-path"], default "`.claude/ai-dev-kit/run-logs/<run-id>.jsonl`" = |_| None
    }
    /// How a run shows its progress.
    progress: Progress { value::choice, flags ["--progress"], default "auto" = |_| Progress::Auto }
    /// Whether the first failed lane stops all others; otherwise independent lanes continue.
    fail_fast: bool { value::boolean, flags ["--fail-fast", "--keep-going"], default "false" = |_| false }
    /// Whether the merge that broke a lane's tests or the final gate is searched, by running them on earlier merges.
    bisect_merges: bool { value::boolean, flags ["--bisect-merges"], default "false" = |_| false }
    /// Whether a lane that no command judges, one that can fail, is an error instead of a warning.
    require_gates: bool { value::boolean, default "false" = |_| false }
    /// The shell line that `hook post-tool-use` runs in an agent's worktree after a tool that edits files, and whose
    /// failure goes back to the agent; `gates.edit` in a file, and in plans.
    gates_edit: Option<String> { some(value::shell_line), default "none" = |_| None }
    /// What becomes of a lane whose work lacks what the plan says it must have.
    must_haves: MustHavesRule { value::choice, default "paths" = |_| MustHavesRule::Paths }
    /// What becomes of lanes without an order that own the same files: `exclude` keeps them apart in time, `merge` lets them
    /// run side by side and merges what they changed, `auto` merges where the tests of both lanes judge what is merged.
    shared_files: Option<SharedFiles> {
        some(value::choice), flags ["--shared-files"], default "the plan's, else by its format" = |_| None
    }
    /// What orders the lanes of a task list: what it says of dependencies, or `file`, where they run one after the other in
    /// the order of the list; `lists.order` in a file.
    lists_order: LaneOrder {
        value::choice, flags ["--order"], default "dependencies" = |_| LaneOrder::Dependencies
    }
    /// Which tasks of a task list are lanes of their own: with `p` those of Spec Kit's first phases that are marked `[P]`,
    /// follow each other and name different files; `lists.split` in a file.
    lists_split: LaneSplit { value::choice, flags ["--split"], default "none" = |_| LaneSplit::None }
    /// Whether the tasks of a task list that only a person can do are left out; `lists.skip_manual` in a file.
    lists_skip_manual: bool { value::boolean, flags ["--skip-manual"], default "false" = |_| false }
    /// Whether a person approves what was done at each checkpoint of a task list; `lists.stop_at_checkpoints` in a file.
    lists_stop_at_checkpoints: bool { value::boolean, flags ["--stop-at-checkpoints"], default "false" = |_| false }
    /// What becomes of an attempt whose agent changed another checkout of the repository by git commands.
    outside_changes: OutsideChanges { value::choice, default "fail" = |_| OutsideChanges::Fail }
    /// How long the whole run may take, or `none`.
    timeout: Option<Duration> { value::limit, flags ["--timeout"], default "none" = |_| None }
    /// How many US dollars the agents of a run may cost before no more are started, or `none`.
    max_cost: Option<Dollars> { value::dollars_limit, flags ["--max-cost"], default "none" = |_| None }
    /// How many tokens the agents of a run may use before no more are started, or `none`.
    max_tokens: Option<u64> { value::count_limit, flags ["--max-tokens"], default "none" = |_| None }
    /// How long a program has from SIGTERM to SIGKILL.
    kill_after: Duration { value::duration, default "10s" = |_| Timeouts::default().kill_after }
    /// How long the first retry waits; the wait doubles with each further one.
    backoff: Duration { value::duration, default "1s" = |_| Duration::from_secs(1) }
    /// How long a network or a service's quota may be out before the lane fails; meanwhile it is tried again and again.
    outage_limit: Duration { value::duration, default "1day" = |_| OUTAGE_LIMIT }
    /// How long a runner must be paused before one of its `fallback` takes its place.
    fallback_after: Duration { value::duration, default "5m" = |_| FALLBACK_AFTER }
    /// How long one attempt at a task may take where the plan does not say, in the implementation round.
    task_timeout: Duration { value::positive_duration, default "30m" = |_| TASK_TIME_LIMIT }
    /// How long an agent of the requirements or the review round may take where the plan does not say.
    specialist_timeout: Duration {
        value::positive_duration, aliases ["SPECIALIST_TIMEOUT"], default "5m" = |_| SPECIALIST_TIME_LIMIT
    }
    /// What becomes of running agents when Lanewright dies.
    on_orphan: OnOrphan { value::choice, default "continue" = |_| OnOrphan::Continue }
    /// Whether the worktrees of the pool outlive the run.
    keep_pool: bool { value::boolean, default "false" = |_| false }
    /// Whether ignored files, such as build caches, stay in a worktree that is reused.
    keep_caches: bool { value::boolean, default "false" = |_| false }
    /// Whether an agent has a git directory of its own while it works, so that nothing that it does with git reaches the
    /// repository except its branch, or works in that of the repository.
    git_directory: GitDirectory { value::choice, default "private" = |_| GitDirectory::Private }
    /// Whether snapshots are tags `checkpoint/…` instead of refs that `git tag` does not list.
    checkpoint_tags: bool { value::boolean, default "false" = |_| false }
    /// How often an agent's worktree is kept in a snapshot while the agent works, or `none`.
    checkpoint_every: Option<Duration> { value::limit, default "15m" = |_| Some(SnapshotRules::INTERVAL) }
    /// After how many tool calls of an agent its worktree is kept in a snapshot, where they are reported; 0: never.
    checkpoint_every_tool_calls: u32 { value::number, default "10" = |_| SnapshotRules::TOOL_CALLS }
    /// Regular expressions of risky operations, in capitals or not: a tool call that one matches has the worktree kept.
    checkpoint_before: Option<Vec<String>> {
        some(value::patterns), default "deletions, hard resets, forced pushes, dropped tables, migrations" = |_| None
    }
    /// How many snapshots of a lane the end of a run and `checkpoints prune` leave.
    checkpoint_keep: Option<NonZeroU32> { some(value::count), default "all" = |_| None }
    /// Whether Lanewright writes GSD's `ROADMAP.md` and `STATE.md` when it merges a plan; `gsd.tracking` in a file.
    gsd_tracking: bool { value::boolean, default "false" = |_| false }
    /// Regular expressions of secrets, which are kept out of everything that is stored.
    redact: Option<Vec<String>> { some(value::patterns), default "none" = |_| None }
    /// Names of variables that agents and gates get although they are on the list of those that push, with `*` for any text.
    pass_env: Option<Vec<String>> { some(value::variable_names), default "none" = |_| None }
    /// Whether agents, gates and set-up run in a sandbox: `auto` builds the best one that this machine can, `on` starts no run without one.
    sandbox: SandboxChoice { value::choice, flags ["--sandbox"], default "off" = |_| SandboxChoice::Off }
    /// What jobs may write in a sandbox besides their worktree: absolute paths, or `~/…`.
    sandbox_write: Option<Vec<String>> { some(value::places), default "none" = |_| None }
    /// What jobs cannot read in a sandbox: absolute paths, or `~/…`. An empty list hides nothing.
    sandbox_deny_read: Option<Vec<String>> {
        some(value::places), default "keys and tokens that push: `~/.ssh`, `~/.netrc`, `~/.config/gh` and others" = |_| None
    }
    /// Whether jobs in a sandbox reach other machines.
    sandbox_network: bool { value::boolean, default "true" = |_| true }
    /// How much of the disk the output of one attempt or gate may take, or `none`; of more, the middle is left out.
    output_limit: Option<Size> { value::size_limit, default "1GiB" = |_| Some(Size::GIB) }
    /// How often a supervisor writes a sign of life.
    heartbeat: Duration { value::positive_duration, default "5s" = |_| Duration::from_secs(5) }
    /// Whether keys that are not known, in native plans and in configuration files, are ignored with a warning.
    allow_unknown: bool { value::boolean, flags ["--allow-unknown"], default "false" = |_| false }
    /// The session that owns what is started.
    session_id: Option<String> {
        some(value::session), flags ["--session-id"], aliases ["CLAUDE_SESSION_ID", "CLAUDE_CODE_SESSION_ID"],
        default "a new UUID" = |_| None
    }
    /// What to do when a live session holds the run, the lane or the plan.
    on_lock_conflict: OnLockConflict {
        value::choice, flags ["--on-lock-conflict"], default "fail" = |_| OnLockConflict::Fail
    }
    /// The remote that the run's state is pushed to while it is worked on.
    state_remote: Option<String> { some(value::remote), flags ["--state-remote"], default "none" = |_| None }
    /// The executor of lanes that name none.
    executor: Option<String> {
        some(value::runner), flags ["--executor"], default "none, they are worked on here" = |_| None
    }
    /// The git remote, by name or address, through which runs reach executors and return.
    exchange: Option<String> {
        some(value::exchange), flags ["--exchange"], default "that of `state_remote`" = |_| None
    }
    /// The CI service that a run tells of itself when it ends.
    ci: Ci { value::choice, flags ["--ci"], default "auto" = |_| Ci::Auto }
    /// The program and its arguments that get each notification, as JSON on standard input.
    notify_command: Option<Vec<String>> { some(value::arguments), default "none" = |_| None }
    /// The address that each notification is posted to as JSON, or `$NAME`, the variable that holds it.
    notify_webhook: Option<Webhook> { some(value::webhook), default "none" = |_| None }
    /// Whether notifications are shown on the desktop.
    notify_desktop: bool { value::boolean, default "false" = |_| false }
    /// How `publish` brings the work of a run to the remote's branch.
    publish: PublishMode { value::choice, default "auto" = |_| PublishMode::Auto }
    /// What opens pull requests.
    forge: ForgeChoice { value::choice, default "auto" = |_| ForgeChoice::Auto }
    /// The program and its arguments that open pull requests instead of `gh` and `glab`.
    pull_request_command: Option<Vec<String>> { some(value::arguments), default "none" = |_| None }
    /// How long pull requests are followed after they were opened, with `merge = "pr"`: failed checks and comments go to the
    /// lane's agents; or `none`.
    follow: Option<Duration> { value::limit, flags ["--follow"], default "none" = |_| None }
    /// How often a lane continues after its pull request was opened before it waits for you.
    follow_rounds: u32 { value::number, default "3" = |_| Follow::ROUNDS }
    /// Whether pull requests that are followed are merged when their checks passed and their reviews are complete.
    auto_merge: bool { value::boolean, default "false" = |_| false }
    /// Who may comment on pull requests besides those who may write to the repository, programs such as `name[bot]` included.
    reviewers: Option<Vec<String>> { some(value::arguments), default "none" = |_| None }
    /// The program and its arguments that print what became of a pull request as JSON, with `pull_request_command`.
    pull_request_status_command: Option<Vec<String>> { some(value::arguments), default "none" = |_| None }
    /// The remote that branches are pushed to, with `merge = "pr"` and by `publish`.
    remote: Option<String> {
        some(value::remote), default "the remote that the base branch follows, else `origin`" = |_| None
    }
}

fn some<T>(read: impl Fn(&str) -> Result<T, String>) -> impl Fn(&str) -> Result<Option<T>, String> {
    move |text| read(text).map(Some)
}

impl Layer {
    /// The same with its paths as `place` makes them of what was written.
    pub fn place_paths(mut self, place: impl Fn(&Path) -> PathBuf) -> Self {
        for setting in [&mut self.worktree_root, &mut self.prompts, &mut self.checkpoint_path].into_iter().flatten() {
            setting.value = place(&setting.value);
        }
        if let Some(path) = self.log_path.as_mut().and_then(|setting| setting.value.as_mut()) {
            *path = place(path);
        }
        self
    }
}
