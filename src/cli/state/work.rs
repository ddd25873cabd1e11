//! `work`: works on a run that another process offered on a git remote, until it ends or is withdrawn.
//!
//! The command of a job of any queue. It claims exactly the state that it was given, so of two jobs for one offer the
//! second does nothing, and every state that it pushes replaces its own last one, so a job that was given up cannot
//! disturb the one after it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::pull;
use crate::cli::args::{self, Offered};
use crate::cli::clean::forget_run;
use crate::cli::context::REPOSITORY_CONFIG;
use crate::cli::repository_context::Claimed;
use crate::cli::run::resume_claimed;
use crate::cli::signals::Signals;
use crate::cli::wait_policy::retry_while_held;
use crate::cli::{CliError, Context, ExitStatus, Hint, RepositoryContext, Result, host, now};
use crate::fs::directory::create_directory;
use crate::git::{self, GitError, Remote, Repository};
use crate::model::digest::sha256;
use crate::model::retry::backoff;
use crate::model::{CommitId, RunId};
use crate::settings::environment::{HOME, XDG_CACHE_HOME};
use crate::settings::{ConfigFile, Layer, OnLockConflict, Origin, Setting, absolute};
use crate::state_sync::{Claim, Probe, ProbeAnswer, ReceivedState, Source, claim, fetch_offer, send};
use crate::store::lock;

/// What the remote is called in the clone.
const EXCHANGE: &str = "exchange";

pub(super) fn run(context: &Context, arguments: &args::Work) -> Result<ExitStatus> {
    git::require_version()?;
    let clone = Clone::open(context, arguments)?;
    match &arguments.reference {
        Offered::Run(run) => work_on(context, &clone, run, arguments),
        Offered::Probe(reference) => answer(&clone, reference.clone(), &arguments.offer),
    }
}

/// Answers a probe with what this machine has.
fn answer(clone: &Clone, reference: String, offer: &CommitId) -> Result<ExitStatus> {
    let probe = Probe::at(&clone.repository, &clone.remote, reference);
    let lanekeeper = env!("CARGO_PKG_VERSION").to_owned();
    let answered = probe.answer(offer, &ProbeAnswer { host: host(), lanekeeper, git: git::version()? }, now());
    probe.forget()?;
    if answered? { Ok(ExitStatus::Done) } else { Err(ExitStatus::NotOffered.error("the probe was withdrawn")) }
}

fn work_on(context: &Context, clone: &Clone, run: &RunId, arguments: &args::Work) -> Result<ExitStatus> {
    let remote = &clone.remote;
    let ours = Claim::new(host(), now());
    let offer = (run, &arguments.offer);
    let offered = while_unreachable(context, || fetch_offer(&clone.repository, remote, offer, &ours))?;
    let claimed = while_unreachable(context, || claim(&clone.repository, remote, &offered, &ours))?;
    let pushing = Claimed { claim: ours.clone(), push_every: arguments.push_every };
    let within = clone.context(context, &claimed, pushing)?;
    retry_while_held(context, &within.settings, || restore(&within, remote, &claimed))?;
    let ended = resume_claimed(&within, run);
    let source = Source {
        repository: within.repository.clone(),
        directory: within.state.run(run),
        run: run.clone(),
        host: host(),
        claim: Some(ours),
    };
    let sent = while_unreachable(context, || send(&source, remote, false))?;
    if sent.manifest.outcome.is_some() {
        // The remote has all of it.
        forget_run(&within, run).unwrap_or_else(|error| {
            let message = format!("the files of run {run} are left here: {}", CliError::from(error).message);
            context.printer.warning(message, &[]);
        });
    }
    ended
}

/// The clone in which the runs of one exchange are worked on.
struct Clone {
    repository: Repository,
    remote: Remote,
    worktrees: PathBuf,
}

impl Clone {
    fn open(context: &Context, arguments: &args::Work) -> Result<Self> {
        let exchange = context.path_or_address(&arguments.exchange);
        let place = cache(context, arguments.cache.as_deref())?.join(directory_name(&exchange));
        create_directory(&place)?;
        let repository = place.join("repository");
        lock::exclusively(&place.join("lock"), || {
            let repository = match repository.join(".git").exists() {
                true => Repository::locate(&repository)?,
                false => Repository::create(&repository)?,
            };
            let remote = Remote::at(&repository, EXCHANGE, &exchange)?;
            Ok(Self { repository, remote, worktrees: place.join("worktrees") })
        })?
    }

    /// With the settings of the repository's own configuration file as it is in the run's integration branch.
    fn context<'a>(
        &self,
        context: &'a Context,
        run: &ReceivedState,
        pushing: Claimed,
    ) -> Result<RepositoryContext<'a>> {
        let main = self.repository.main_worktree().to_owned();
        let path = main.join(REPOSITORY_CONFIG);
        let text = self.repository.file_in(&run.manifest.integration, REPOSITORY_CONFIG)?;
        let file = text.map(|text| ConfigFile { path, text: String::from_utf8_lossy(&text).into_owned() });
        let settings = context.layers_above(main, file, self.layer())?.resolve(None);
        let within = RepositoryContext::new(context, self.repository.clone(), settings);
        Ok(RepositoryContext { claimed: Some(pushing), ..within })
    }

    /// What a run that was claimed is worked on with, whatever the files say. Its notifications are sent where its state
    /// is looked at.
    fn layer(&self) -> Layer {
        fn setting<T>(value: T) -> Option<Setting<T>> {
            Some(Setting::new(value, Origin::Flag("work")))
        }
        Layer {
            worktree_root: setting(self.worktrees.clone()),
            state_remote: setting(Some(EXCHANGE.to_owned())),
            on_lock_conflict: setting(OnLockConflict::Wait),
            notify_command: setting(None),
            notify_webhook: setting(None),
            notify_desktop: setting(false),
            ..Layer::default()
        }
    }
}

/// The end of the address, for people, and a part of its SHA-256, so that no two are the same.
fn directory_name(exchange: &str) -> String {
    let end = exchange.trim_end_matches('/').trim_end_matches(".git").rsplit(['/', ':']).next().unwrap_or_default();
    let end: String = end.chars().filter(|letter| letter.is_ascii_alphanumeric() || "-_".contains(*letter)).collect();
    format!("{end}-{}", &sha256(exchange.as_bytes())[..8])
}

fn cache(context: &Context, named: Option<&Path>) -> Result<PathBuf> {
    let of = |name: &str| context.environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let usual = || of(XDG_CACHE_HOME).or_else(|| Some(of(HOME)?.join(".cache"))).map(|cache| cache.join("lanekeeper"));
    let cache = named.map(|named| absolute(&context.directory, named)).or_else(usual);
    cache.ok_or_else(|| {
        ExitStatus::Usage.error("there is no home directory to keep clones in").hint("name one with --cache DIR")
    })
}

/// Restores the claimed run. What an earlier job left of it here is continued if it is no older, else removed: the remote
/// has what counts.
fn restore(within: &RepositoryContext<'_>, remote: &Remote, claimed: &ReceivedState) -> Result<()> {
    let run = &claimed.manifest.run_id;
    if within.state.has(run) && !pull::is_here(within, claimed)? {
        forget_run(within, run)?;
    }
    pull::restore(within, remote, claimed).map(drop)
}

/// How long an exchange that cannot be reached is tried again.
const LONGEST_OUTAGE: Duration = Duration::from_secs(3600);

/// Repeats `attempt` while the remote cannot be reached. A signal ends the wait.
fn while_unreachable<T>(context: &Context, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    let (began, signals) = (Instant::now(), Signals::watch()?);
    for number in 1.. {
        let error = match attempt() {
            Err(error) if is_unreachable(&error) && began.elapsed() < LONGEST_OUTAGE => error,
            done => return done,
        };
        if number == 1 {
            context.printer.note(format!("{}; trying again", CliError::from(error).message));
        }
        let until = Instant::now() + backoff(Duration::from_secs(2), EXCHANGE, number);
        while Instant::now() < until {
            if let Some((status, name)) = signals.received() {
                return Err(status.error(format!("stopped by {name}")));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    unreachable!("the loop has no end")
}

fn is_unreachable(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(GitError::Remote { .. }))
}
