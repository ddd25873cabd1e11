//! The table of settings: one entry for each, and everything else is made from it.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::environment as env;
use super::key::{Key, Kind};
use super::render::Row;
use super::value::{self, ToJson, words};
use super::{OnLockConflict, Origin, Progress, Setting, Surroundings};
use crate::model::ownership::RUN_LOG_DIRECTORY;
use crate::model::plan::{SPECIALIST_TIME_LIMIT, TASK_TIME_LIMIT};
use crate::model::retry::OUTAGE_LIMIT;
use crate::model::runner::RunnerText;
use crate::model::{Ci, Dollars, ForgeChoice, MergeMode, MustHavesRule, OnOrphan, SnapshotRules, Timeouts};
use crate::runner::Catalogue;

macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty {
        $kind:expr, $read:expr, flags $flags:expr, variables $variables:expr, default $default:literal
    })*) => {
        /// Every setting, resolved.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Settings {
            $($(#[doc = $doc])+ pub $name: Setting<$type>,)*
            /// The runners that the configuration files describe, by name.
            pub runners: BTreeMap<String, Setting<RunnerText>>,
        }

        /// What one source says; most sources say little.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Layer {
            $($(#[doc = $doc])+ pub $name: Option<Setting<$type>>,)*
            /// The runners that it describes, by name.
            pub runners: BTreeMap<String, Setting<RunnerText>>,
        }

        /// Every setting but the runners, in the order in which they are shown.
        pub const KEYS: &[Key] = &[$(Key {
            name: stringify!($name),
            kind: $kind,
            variables: &$variables,
            flags: &$flags,
            default: $default,
            doc: concat!($($doc),+).trim_ascii(),
        },)*];

        impl Layer {
            /// What this layer says, and what `weaker` says of the rest.
            pub fn or(self, weaker: Self) -> Self {
                let mut runners = weaker.runners;
                runners.extend(self.runners);
                Self { $($name: self.$name.or(weaker.$name),)* runners }
            }

            /// Reads `text` as the value of the setting called `key`.
            pub(super) fn set(&mut self, key: &str, text: &str, origin: Origin) -> Result<(), String> {
                match key {
                    $(stringify!($name) => self.$name = Some(Setting::new($read(text)?, origin)),)*
                    _ => return Err(format!("there is no setting `{key}`")),
                }
                Ok(())
            }

            /// What this layer says, and `defaults` for the rest.
            pub(super) fn complete(self, defaults: Settings) -> Settings {
                Settings { $($name: self.$name.unwrap_or(defaults.$name),)* runners: self.runners }
            }
        }

        impl Settings {
            /// The runners that a plan can name: those of the configuration files, and those that come along.
            pub fn catalogue(&self) -> Catalogue {
                Catalogue::new(self.runners.iter().map(|(name, text)| (name.clone(), text.value.clone())))
            }

            /// Every value with its origin, runners last.
            pub fn rows(&self) -> Vec<Row> {
                let values = [$((self.$name.value.to_json(), &self.$name.origin),)*];
                let keyed = KEYS.iter().zip(values).map(|(key, (value, origin))| Row::new(key, value, origin));
                keyed.chain(self.runners.iter().map(|(name, text)| Row::runner(name, text))).collect()
            }
        }
    };
}

settings! {
    /// The integration branch: lanes start from it and are merged into it.
    base: Option<String> {
        Kind::Text, some(value::branch), flags ["--base"], variables [env::BASE],
        default "the current branch"
    }
    /// How many agents may work at once.
    max_parallel: NonZeroU32 {
        Kind::Count, value::count, flags ["--max-parallel"], variables [env::MAX_PARALLEL],
        default "the number of processors, at least 2"
    }
    /// The runner of agents for which the plan names neither a runner nor a command. As a flag or a variable: of all
    /// agents without a command of their own.
    runner: Option<String> {
        Kind::Text, some(value::runner), flags ["--runner"], variables [env::RUNNER],
        default "the plan's"
    }
    /// How often a failed attempt is repeated. As a flag or a variable it overrides what the lanes say.
    retries: Option<u32> {
        Kind::Count, some(value::number), flags ["--retries"], variables [env::RETRIES],
        default "each lane's own"
    }
    /// Whether the implementation agents of all plans may change no file.
    allow_empty: bool {
        Kind::Boolean, value::boolean, flags [], variables [env::ALLOW_EMPTY],
        default "false"
    }
    /// How a finished lane reaches the integration branch.
    merge: MergeMode {
        Kind::Choice(words::<MergeMode>), value::choice, flags ["--merge"], variables [env::MERGE],
        default "local"
    }
    /// The directory that holds the worktrees.
    worktree_root: PathBuf {
        Kind::Path, value::path, flags ["--worktree-root"], variables [env::WORKTREE_ROOT],
        default "`<repository>.lanes`, beside the repository"
    }
    /// The file that holds the checkpoint records.
    checkpoint_path: PathBuf {
        Kind::Path, value::path, flags ["--checkpoint-path"], variables [env::CHECKPOINT_PATH],
        default "`.claude/ai-dev-kit/run-logs/checkpoints.json`"
    }
    /// The file that is the run log.
    log_path: Option<PathBuf> {
        Kind::Path, some(value::path), flags ["--log-path"], variables [env::LOG_PATH],
        default "`.claude/ai-dev-kit/run-logs/<run-id>.jsonl`"
    }
    /// How a run shows its progress.
    progress: Progress {
        Kind::Choice(words::<Progress>), value::choice, flags ["--progress"], variables [env::PROGRESS],
        default "auto"
    }
    /// Whether the first failed lane stops all others; otherwise independent lanes go on.
    fail_fast: bool {
        Kind::Boolean, value::boolean, flags ["--fail-fast", "--keep-going"], variables [env::FAIL_FAST],
        default "false"
    }
    /// Whether the merge that broke a lane's tests or the final gate is searched, by running them on earlier merges.
    bisect_merges: bool {
        Kind::Boolean, value::boolean, flags ["--bisect-merges"], variables [env::BISECT_MERGES],
        default "false"
    }
    /// What becomes of a lane whose work lacks what the plan says it must have.
    must_haves: MustHavesRule {
        Kind::Choice(words::<MustHavesRule>), value::choice, flags [], variables [env::MUST_HAVES],
        default "report"
    }
    /// How long the whole run may take, or `none`.
    timeout: Option<Duration> {
        Kind::Duration, value::limit, flags ["--timeout"], variables [env::TIMEOUT],
        default "none"
    }
    /// How many US dollars the agents of a run may cost before none is set to work any more, or `none`.
    max_cost: Option<Dollars> {
        Kind::Dollars, value::dollars_limit, flags ["--max-cost"], variables [env::MAX_COST],
        default "none"
    }
    /// How many tokens the agents of a run may use before none is set to work any more, or `none`.
    max_tokens: Option<u64> {
        Kind::CountLimit, value::count_limit, flags ["--max-tokens"], variables [env::MAX_TOKENS],
        default "none"
    }
    /// How long a program has from SIGTERM to SIGKILL.
    kill_after: Duration {
        Kind::Duration, value::duration, flags [], variables [env::KILL_AFTER],
        default "10s"
    }
    /// How long the first retry waits; the wait doubles with each further one.
    backoff: Duration {
        Kind::Duration, value::duration, flags [], variables [env::BACKOFF],
        default "1s"
    }
    /// How long a network or a service's quota may be out before the lane fails; meanwhile it is tried again and again.
    outage_limit: Duration {
        Kind::Duration, value::duration, flags [], variables [env::OUTAGE_LIMIT],
        default "1h"
    }
    /// How long one attempt at a task may take where the plan does not say, in the implementation round.
    task_timeout: Duration {
        Kind::Duration, value::positive_duration, flags [], variables [env::TASK_TIMEOUT],
        default "10m"
    }
    /// How long an agent of the requirements or the review round may take where the plan does not say.
    specialist_timeout: Duration {
        Kind::Duration, value::positive_duration, flags [],
        variables [env::SPECIALIST_TIMEOUT, env::SPECIALIST_TIMEOUT_SEED],
        default "5m"
    }
    /// What becomes of running agents when Lanekeeper dies.
    on_orphan: OnOrphan {
        Kind::Choice(words::<OnOrphan>), value::choice, flags [], variables [env::ON_ORPHAN],
        default "continue"
    }
    /// Whether the worktrees of the pool outlive the run.
    keep_pool: bool {
        Kind::Boolean, value::boolean, flags [], variables [env::KEEP_POOL],
        default "false"
    }
    /// Whether ignored files, such as build caches, stay in a worktree that is taken over.
    keep_caches: bool {
        Kind::Boolean, value::boolean, flags [], variables [env::KEEP_CACHES],
        default "false"
    }
    /// Whether snapshots are tags `checkpoint/…` instead of refs that `git tag` does not list.
    checkpoint_tags: bool {
        Kind::Boolean, value::boolean, flags [], variables [env::CHECKPOINT_TAGS],
        default "false"
    }
    /// How often an agent's worktree is kept in a snapshot while the agent works, or `none`.
    checkpoint_every: Option<Duration> {
        Kind::Duration, value::limit, flags [], variables [env::CHECKPOINT_EVERY],
        default "15m"
    }
    /// After how many tool calls of an agent its worktree is kept in a snapshot, where they are reported; 0: never.
    checkpoint_every_tool_calls: u32 {
        Kind::Count, value::number, flags [], variables [env::CHECKPOINT_EVERY_TOOL_CALLS],
        default "10"
    }
    /// Regular expressions of risky operations, in capitals or not: a tool call that one matches has the worktree kept.
    checkpoint_before: Option<Vec<String>> {
        Kind::List, some(value::patterns), flags [], variables [env::CHECKPOINT_BEFORE],
        default "deletions, hard resets, forced pushes, dropped tables, migrations"
    }
    /// How many snapshots of a lane `checkpoints prune` leaves.
    checkpoint_keep: Option<NonZeroU32> {
        Kind::Count, some(value::count), flags [], variables [env::CHECKPOINT_KEEP],
        default "all"
    }
    /// Whether Lanekeeper writes GSD's `ROADMAP.md` and `STATE.md` when it merges a plan; `gsd.tracking` in a file.
    gsd_tracking: bool {
        Kind::Boolean, value::boolean, flags [], variables [env::GSD_TRACKING],
        default "false"
    }
    /// Regular expressions of secrets, which are kept out of everything that is stored.
    redact: Option<Vec<String>> {
        Kind::List, some(value::patterns), flags [], variables [env::REDACT],
        default "none"
    }
    /// How often a supervisor writes a sign of life.
    heartbeat: Duration {
        Kind::Duration, value::positive_duration, flags [], variables [env::HEARTBEAT],
        default "5s"
    }
    /// Whether keys that are not known, in native plans and in configuration files, are ignored with a warning.
    allow_unknown: bool {
        Kind::Boolean, value::boolean, flags ["--allow-unknown"], variables [env::ALLOW_UNKNOWN],
        default "false"
    }
    /// The session that owns what is started.
    session_id: Option<String> {
        Kind::Text, some(value::session), flags ["--session-id"],
        variables [env::SESSION_ID, env::CLAUDE_SESSION_ID, env::CLAUDE_CODE_SESSION_ID],
        default "a new UUID"
    }
    /// What to do when a live session holds the run, the lane or the plan.
    on_lock_conflict: OnLockConflict {
        Kind::Choice(words::<OnLockConflict>), value::choice, flags ["--on-lock-conflict"],
        variables [env::ON_LOCK_CONFLICT],
        default "fail"
    }
    /// The remote that the run's state is pushed to while it is worked on.
    state_remote: Option<String> {
        Kind::Text, some(value::remote), flags ["--state-remote"], variables [env::STATE_REMOTE],
        default "none"
    }
    /// The CI service that a run tells of itself when it ends.
    ci: Ci {
        Kind::Choice(words::<Ci>), value::choice, flags ["--ci"], variables [env::CI],
        default "auto"
    }
    /// What opens pull requests with `merge = "pr"`.
    forge: ForgeChoice {
        Kind::Choice(words::<ForgeChoice>), value::choice, flags [], variables [env::FORGE],
        default "auto"
    }
    /// The program and its arguments that open pull requests instead of `gh` and `glab`.
    pull_request_command: Option<Vec<String>> {
        Kind::List, some(value::arguments), flags [], variables [env::PULL_REQUEST_COMMAND],
        default "none"
    }
    /// The remote that branches are pushed to with `merge = "pr"`.
    remote: Option<String> {
        Kind::Text, some(value::remote), flags [], variables [env::REMOTE],
        default "the remote that the base branch follows, else `origin`"
    }
}

fn some<T>(read: impl Fn(&str) -> Result<T, String>) -> impl Fn(&str) -> Result<Option<T>, String> {
    move |text| read(text).map(Some)
}

impl Layer {
    /// The same with its paths as `place` makes them of what was written.
    pub fn place_paths(mut self, place: impl Fn(&Path) -> PathBuf) -> Self {
        for setting in [&mut self.worktree_root, &mut self.checkpoint_path].into_iter().flatten() {
            setting.value = place(&setting.value);
        }
        if let Some(path) = self.log_path.as_mut().and_then(|setting| setting.value.as_mut()) {
            *path = place(path);
        }
        self
    }
}

impl Settings {
    /// What holds when nobody says anything.
    pub(super) fn defaults(surroundings: &Surroundings) -> Self {
        fn unsaid<T>(value: T) -> Setting<T> {
            Setting::new(value, Origin::Default)
        }
        Self {
            base: unsaid(None),
            max_parallel: unsaid(surroundings.cores_at_least_two()),
            runner: unsaid(None),
            retries: unsaid(None),
            allow_empty: unsaid(false),
            merge: unsaid(MergeMode::Local),
            worktree_root: unsaid(surroundings.sibling(".lanes")),
            checkpoint_path: unsaid(surroundings.repository.join(RUN_LOG_DIRECTORY).join("checkpoints.json")),
            log_path: unsaid(None),
            progress: unsaid(Progress::Auto),
            fail_fast: unsaid(false),
            bisect_merges: unsaid(false),
            must_haves: unsaid(MustHavesRule::Report),
            timeout: unsaid(None),
            max_cost: unsaid(None),
            max_tokens: unsaid(None),
            kill_after: unsaid(Timeouts::default().kill_after),
            backoff: unsaid(Duration::from_secs(1)),
            outage_limit: unsaid(OUTAGE_LIMIT),
            task_timeout: unsaid(TASK_TIME_LIMIT),
            specialist_timeout: unsaid(SPECIALIST_TIME_LIMIT),
            on_orphan: unsaid(OnOrphan::Continue),
            keep_pool: unsaid(false),
            keep_caches: unsaid(false),
            checkpoint_tags: unsaid(false),
            checkpoint_every: unsaid(Some(SnapshotRules::INTERVAL)),
            checkpoint_every_tool_calls: unsaid(SnapshotRules::TOOL_CALLS),
            checkpoint_before: unsaid(None),
            checkpoint_keep: unsaid(None),
            gsd_tracking: unsaid(false),
            redact: unsaid(None),
            heartbeat: unsaid(Duration::from_secs(5)),
            allow_unknown: unsaid(false),
            session_id: unsaid(None),
            on_lock_conflict: unsaid(OnLockConflict::Fail),
            state_remote: unsaid(None),
            ci: unsaid(Ci::Auto),
            forge: unsaid(ForgeChoice::Auto),
            pull_request_command: unsaid(None),
            remote: unsaid(None),
            runners: BTreeMap::new(),
        }
    }
}
