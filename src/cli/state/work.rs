//! `work`: works on a run that another process offered on a git remote, until it ends or is withdrawn.
//!
//! The command of a job of any queue. It claims exactly the state that it was given, so of two jobs for one offer the
//! second does nothing, and every state that it pushes replaces its own last one, so a job that was given up cannot
//! disturb the one after it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lanewright_engine::state_sync::{
    Claim, LocalRun, OwnPushes, Probe, ProbeAnswer, ReceivedState, Source, StateSyncError, claim, fetch_offer, keep,
    release, send,
};
use lanewright_files::directory::{create_directory, entries};
use lanewright_files::lock::exclusively;
use lanewright_git::{self as git, Remote, Repository};
use lanewright_model::digest::sha256;
use lanewright_model::retry::backoff;
use lanewright_model::{CommitId, RunId};
use lanewright_plan::settings::environment::{HOME, XDG_CACHE_HOME};
use lanewright_plan::settings::{ConfigFile, Layer, Origin, Setting, absolute};
use lanewright_store::RunLock;

use super::{clones, pull};
use crate::cli::args::{self, Offered};
use crate::cli::context::{REPOSITORY_CONFIG, path_or_address};
use crate::cli::look::logs::while_working;
use crate::cli::repository_context::Claimed;
use crate::cli::run::resume_claimed;
use crate::cli::signals::Signals;
use crate::cli::{CliError, Context, ExitStatus, Hint, RepositoryContext, Result, host, now};

/// What the remote is called in the clone.
const EXCHANGE: &str = "exchange";

pub(crate) fn run(context: &Context, arguments: &args::Work) -> Result<ExitStatus> {
    git::require_version()?;
    let exchange = Exchange::open(context, arguments)?;
    match &arguments.reference {
        Offered::Run(run) => work_on(context, &exchange, run, arguments),
        Offered::Probe(reference) => answer(&exchange, reference.clone(), &arguments.offer),
    }
}

/// Answers a probe with what this machine has.
fn answer(exchange: &Exchange, reference: String, offer: &CommitId) -> Result<ExitStatus> {
    let probe = Probe::at(&exchange.mirror, &exchange.remote, reference);
    let lanewright = env!("CARGO_PKG_VERSION").to_owned();
    let answered = probe.answer(offer, &ProbeAnswer { host: host(), lanewright, git: git::version()? }, now());
    probe.forget()?;
    if answered? { Ok(ExitStatus::Done) } else { Err(ExitStatus::NotOffered.error("the probe was withdrawn")) }
}

fn work_on(context: &Context, exchange: &Exchange, run: &RunId, arguments: &args::Work) -> Result<ExitStatus> {
    let (mirror, remote) = (&exchange.mirror, &exchange.remote);
    let ours = Claim::new(host(), now());
    let offered = while_unreachable(context, || fetch_offer(mirror, remote, (run, &arguments.offer), &ours))?;
    refuse_done(&offered)?;
    let claimed = while_unreachable(context, || claim(mirror, remote, &offered, &ours))?;
    keep(mirror, &claimed)?;
    let pushes = OwnPushes::default();
    pushes.add(&claimed.commit);
    let pushing = Claimed { claim: ours, pushes, push_every: arguments.push_every };
    let (worked, is_new) = match exchange.clone_for(context, &claimed, pushing) {
        Ok(clone) => (clone.work(context, &claimed), clone.is_new),
        Err(error) => (Err(error), true),
    };
    if worked.is_err() && is_new && release(remote, &offered, &claimed).unwrap_or(false) {
        let message = format!("run {run} was not begun here, and is offered again as it was");
        context.printer.warning(message, &[]);
    }
    if let Err(error) = clones::remove_forgotten(mirror, remote, &exchange.clones) {
        tracing::warn!("what earlier runs left in the cache is not removed: {error:#}");
    }
    worked
}

fn refuse_done(offered: &ReceivedState) -> Result<()> {
    match offered.manifest.is_done() {
        false => Ok(()),
        true => {
            let message = format!("run {} is complete; there is nothing to work on", offered.manifest.run_id);
            Err(ExitStatus::InvalidOperation.error(message).hint("to have it here: lanewright state pull"))
        }
    }
}

/// What this node keeps of an exchange. The clones of the runs borrow the objects of the mirror, so only the first fetch
/// takes the whole history, and are apart otherwise: two runs may have the same branches.
struct Exchange {
    address: String,
    mirror: Repository,
    remote: Remote,
    clones: PathBuf,
}

impl Exchange {
    fn open(context: &Context, arguments: &args::Work) -> Result<Self> {
        let address = address(context, &arguments.exchange)?;
        let place = cache(context, arguments.cache.as_deref())?.join(directory_name(&address));
        create_directory(&place)?;
        exclusively(&place.join("lock"), |_| {
            let mirror = Repository::open_or_create(&place.join("mirror"), (EXCHANGE, &address), None)?;
            let remote = Remote::named(&mirror, EXCHANGE)?;
            Ok(Self { address, mirror, remote, clones: place.join("clones") })
        })?
    }

    /// The clone in which an earlier job left the run, if it has all that was claimed and no process works there, else a
    /// new one. Those that are left are removed: the remote has what counts.
    fn clone_for(&self, context: &Context, claimed: &ReceivedState, pushing: Claimed) -> Result<RunClone> {
        let clones = self.clones.join(claimed.manifest.run_id.as_str());
        create_directory(&clones)?;
        let mut number = 0;
        for place in entries(&clones)? {
            number = number.max(place.file_name().and_then(|name| name.to_str()?.parse().ok()).unwrap_or(0));
            let Ok(clone) = RunClone::open(context, self, place.clone(), claimed, pushing.clone()) else { continue };
            if pull::found(&clone.within, claimed)? == LocalRun::UpToDate {
                return Ok(RunClone { is_new: false, ..clone });
            }
            clone.remove(&claimed.manifest.run_id);
        }
        // Another job may take the same number at the same moment.
        (number + 1..)
            .take(1000)
            .find_map(|number: u32| {
                let place = clones.join(number.to_string());
                std::fs::create_dir(&place).ok()?;
                Some(RunClone::open(context, self, place, claimed, pushing.clone()))
            })
            .unwrap_or_else(|| Err(ExitStatus::Blocked.error("no directory for the run can be made in the cache")))
    }
}

/// A clone for one run, which no other process uses.
struct RunClone {
    place: PathBuf,
    within: RepositoryContext,
    remote: Remote,
    is_new: bool,
    _lock: RunLock,
}

impl RunClone {
    fn open(
        context: &Context,
        exchange: &Exchange,
        place: PathBuf,
        claimed: &ReceivedState,
        pushing: Claimed,
    ) -> Result<Self> {
        let remote = (EXCHANGE, exchange.address.as_str());
        let repository = Repository::open_or_create(&place.join("repository"), remote, Some(&exchange.mirror))?;
        let remote = Remote::named(&repository, EXCHANGE)?;
        let within = settings(context, repository, &place, claimed, pushing)?;
        let lock = RunLock::acquire(&place.join("lock"), &within.holder(&claimed.manifest.run_id))?;
        Ok(Self { place, within, remote, is_new: true, _lock: lock })
    }

    /// Works on the run until it ends and the remote has its end.
    fn work(&self, context: &Context, claimed: &ReceivedState) -> Result<ExitStatus> {
        let run = &claimed.manifest.run_id;
        pull::restore(&self.within, &self.remote, claimed)?;
        let ended = while_working(&self.within, run, || resume_claimed(&self.within, run));
        if ended.is_err() && self.is_new {
            return ended;
        }
        let source = Source {
            repository: self.within.repository.clone(),
            directory: self.within.state.run(run),
            run: run.clone(),
            host: host(),
            claim: self.within.claimed.as_ref().map(|claimed| claimed.claim.clone()),
            pushes: self.within.pushes(),
        };
        let sent = while_unreachable(context, || send(&source, &self.remote, false))?;
        if sent.manifest.outcome.is_some() {
            self.remove(run);
        }
        // What an earlier job had finished here and not pushed is pushed now.
        if sent.manifest.is_done() { Ok(ExitStatus::Done) } else { ended }
    }

    fn remove(&self, run: &RunId) {
        clones::remove(&self.place, &self.within.state.run(run));
    }
}

/// The settings of the repository's own configuration file as it is in the run's integration branch, below those that a
/// claimed run has whatever the files say. Its notifications are sent where its state is looked at.
fn settings(
    context: &Context,
    repository: Repository,
    place: &Path,
    claimed: &ReceivedState,
    pushing: Claimed,
) -> Result<RepositoryContext> {
    fn setting<T>(value: T) -> Option<Setting<T>> {
        Some(Setting::new(value, Origin::Flag("work")))
    }
    let layer = Layer {
        worktree_root: setting(place.join("worktrees")),
        state_remote: setting(Some(EXCHANGE.to_owned())),
        notify_command: setting(None),
        notify_webhook: setting(None),
        notify_desktop: setting(false),
        ..Layer::default()
    };
    let main = repository.main_worktree().to_owned();
    let path = main.join(REPOSITORY_CONFIG);
    let text = repository.file_in(&claimed.manifest.integration, REPOSITORY_CONFIG)?;
    let file = text.map(|text| ConfigFile { path, text: String::from_utf8_lossy(&text).into_owned() });
    let settings = context.layers_above(main, file, layer)?.resolve(None);
    Ok(RepositoryContext { claimed: Some(pushing), ..RepositoryContext::new(context, repository, settings) })
}

/// A path becomes absolute; a URL stays what it is. What can only be a path and leads to no repository is refused: it
/// would not be there in an hour either.
fn address(context: &Context, exchange: &str) -> Result<String> {
    let path = absolute(&context.directory, Path::new(exchange));
    let is_repository = !exchange.is_empty() && [".git", "HEAD"].iter().any(|name| path.join(name).exists());
    match exchange.contains(':') || is_repository {
        true => Ok(path_or_address(&context.directory, exchange)),
        false => Err(ExitStatus::Usage.error(format!("`{exchange}` is not a git repository"))),
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
    let usual = || of(XDG_CACHE_HOME).or_else(|| Some(of(HOME)?.join(".cache"))).map(|cache| cache.join("lanewright"));
    let cache = named.map(|named| absolute(&context.directory, named)).or_else(usual);
    cache.ok_or_else(|| {
        ExitStatus::Usage.error("there is no home directory to keep clones in").hint("name one with --cache DIR")
    })
}

/// How long an exchange that cannot be reached is tried again.
const LONGEST_OUTAGE: Duration = Duration::from_secs(3600);

/// Repeats `attempt` while the remote cannot be reached. A signal ends the wait.
fn while_unreachable<T>(context: &Context, mut attempt: impl FnMut() -> Result<T, StateSyncError>) -> Result<T> {
    let (began, signals) = (Instant::now(), Signals::watch()?);
    for number in 1.. {
        let error = match attempt() {
            Err(error) if error.is_outage() && began.elapsed() < LONGEST_OUTAGE => error,
            done => return Ok(done?),
        };
        if number == 1 {
            context.printer.note(format!("{}; trying again", CliError::from(anyhow::Error::from(error)).message));
        }
        signals.pause(backoff(Duration::from_secs(2), EXCHANGE, number), |name| format!("stopped by {name}"))?;
    }
    unreachable!("the loop has no end")
}
