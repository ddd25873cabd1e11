//! `doctor --executor`: whether jobs of an executor of the settings reach the exchange and answer through it.

mod report;
mod requests;

use std::time::{Duration, Instant};

use lanewright_engine::state_sync::{Probe, ProbeAnswer};
use lanewright_model::text::last_lines;
use lanewright_model::time::{exact, short};
use lanewright_model::{CommitId, ExecutorSettings};
use lanewright_plan::settings::{Layer, Origin, Setting};
use lanewright_programs::cluster::{Cancel, Check, Cluster, ClusterError, Ending, Order, OrderName, Sighting};
use report::{Line, Outcome};
use requests::Request;

use crate::cli::executors::{engine, exchange, exchange_of, named};
use crate::cli::signals::Signals;
use crate::cli::{CliError, Context, ExitStatus, Hint, RepositoryContext, Result, args, now};

/// Between two looks at the exchange and the engine.
const PAUSE: Duration = Duration::from_secs(2);

/// So long a job must be stuck until its answer is not waited for any more.
const STUCK: Duration = Duration::from_secs(10);

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn run(context: &Context, arguments: &args::Doctor, name: &str) -> Result<ExitStatus> {
    let flag = arguments.exchange.clone();
    let flag = flag.map(|exchange| Setting::new(Some(exchange), Origin::Flag("--exchange")));
    let layer = Layer { exchange: flag, executor: requests::default_of_lanes(arguments, name), ..Layer::default() };
    let within = RepositoryContext::open_for_work(context, layer)?;
    let settings = named(&within, name)?;
    let (remote, address) = exchange(&within)?;
    let requests = requests::of(&within, arguments, name)?;
    let (cluster, signals) = (engine(context, name, settings)?, Signals::watch()?);
    let preflight = |request| {
        let probe = Probe::new(&within.repository, &remote);
        Preflight {
            settings,
            cluster: cluster.as_ref(),
            order: OrderName::of(&[&address, probe.reference()]),
            address: &address,
            probe,
            request,
            wait: arguments.wait,
            signals: &signals,
        }
    };
    let preflights: Vec<Preflight<'_>> = requests.into_iter().map(preflight).collect();
    report::report(context, name, &exchange_of(&within)?, &carry_out(&preflights)?)
}

/// An error only where a signal ended it; everything is removed again then, too.
fn carry_out(preflights: &[Preflight<'_>]) -> Result<Vec<Line>> {
    let mut lines: Vec<Line> = Vec::new();
    for preflight in preflights {
        // Another request changes only what is said of its submission.
        let is_other = |line: &Line| line.name == "submission" || lines.iter().all(|it| it.name != line.name);
        let new: Vec<Line> = preflight.check_engine().into_iter().filter(is_other).collect();
        lines.extend(new);
    }
    lines.extend(preflights.first().map(Preflight::check_exchange));
    let is_ready = lines.iter().all(|line| line.outcome == Outcome::Ok);
    for preflight in preflights.iter().take(if is_ready { usize::MAX } else { 1 }) {
        let tried = if is_ready { preflight.try_job() } else { Ok(vec![skipped()]) };
        let removed = preflight.remove(is_ready);
        lines.extend(tried?);
        lines.extend(removed.err().map(|error| failed("removal", error)));
    }
    Ok(lines)
}

struct Preflight<'a> {
    settings: &'a ExecutorSettings,
    cluster: &'a dyn Cluster,
    /// What jobs reach the exchange by.
    address: &'a str,
    probe: Probe<'a>,
    order: OrderName,
    request: Request,
    wait: Duration,
    signals: &'a Signals,
}

impl Preflight<'_> {
    fn check_engine(&self) -> Vec<Line> {
        let checks = self.cluster.check(&self.order("0".repeat(40).as_str()));
        let line = |check: Check| match check.outcome {
            Ok(seen) => Line::new(check.name, Outcome::Ok, seen),
            Err(error) => refused(check.name, &error),
        };
        let about =
            |line: Line| if line.name == "submission" { line.about(self.request.lanes.as_deref()) } else { line };
        checks.into_iter().map(line).map(about).collect()
    }

    fn check_exchange(&self) -> Line {
        let name = "exchange";
        match self.probe.push_two(now()) {
            Ok(true) => Line::new(name, Outcome::Ok, format!("{} takes atomic pushes", self.address)),
            Ok(false) => Line::new(name, Outcome::Failed, "refs of the probe were changed by another process".into())
                .remedy("check what changes refs below refs/lanewright there, then repeat".into()),
            Err(error) if error.to_string().contains("atomic") => {
                let message = format!("{} does not take pushes of several refs at once", self.address);
                let remedy = "use a bare repository of your own, with `git config receive.advertiseAtomic true`";
                Line::new(name, Outcome::Failed, message).remedy(remedy.into())
            }
            Err(error) => failed(name, error),
        }
    }

    fn program(&self) -> &str {
        self.settings.program.as_deref().unwrap_or("lanewright")
    }

    fn order(&self, offer: &str) -> Order {
        let command = [self.program(), "work", self.address, self.probe.reference(), offer].map(str::to_owned);
        let cache = self
            .settings
            .node_cache()
            .into_iter()
            .flat_map(|cache| ["--cache".to_owned(), cache.display().to_string()]);
        Order {
            name: self.order.clone(),
            comment: "lanewright doctor".to_owned(),
            command: command.into_iter().chain(cache).collect(),
            resources: self.request.resources.clone(),
        }
    }

    fn try_job(&self) -> Result<Vec<Line>> {
        let offer = match self.probe.offer(now()) {
            Ok(offer) => offer,
            Err(error) => return Ok(vec![failed("exchange", error)]),
        };
        let submitted = self.cluster.submit(&[self.order(offer.as_str())]).remove(0);
        match submitted {
            Ok(_) => {
                Ok(self.follow(&offer)?.into_iter().map(|line| line.about(self.request.lanes.as_deref())).collect())
            }
            Err(error) => Ok(vec![refused("job", &error).about(self.request.lanes.as_deref())]),
        }
    }

    /// Waits for the answer. What an engine says of a job counts only where git has no answer.
    fn follow(&self, offer: &CommitId) -> Result<Vec<Line>> {
        let (began, mut last, mut stuck) = (Instant::now(), Ok(None), None);
        loop {
            let jobs = self.cluster.survey(std::slice::from_ref(&self.order));
            // Looked at after the engine: a job that is over has answered before.
            if let Ok(Some(answer)) = self.probe.answered(offer) {
                return Ok(self.answered(&answer, began.elapsed()));
            }
            let seen = jobs.map(|mut jobs| jobs.remove(&self.order).map(|job| job.sighting));
            if let Ok(Some(Sighting::Over(ending))) = &seen {
                let node = match &last {
                    Ok(Some(Sighting::Running { node })) => Some(node.as_str()),
                    _ => None,
                };
                return Ok(vec![self.not_answered(ending, node)]);
            }
            let cause = seen.as_ref().ok().and_then(Option::as_ref).and_then(Sighting::stuck).cloned();
            stuck = cause.map(|cause| (cause, stuck.map_or_else(Instant::now, |(_, since)| since)));
            if let Some((cause, since)) = &stuck
                && since.elapsed() >= STUCK
            {
                return Ok(vec![
                    Line::new("job", Outcome::Failed, format!("no answer: it waits: {}", cause.said))
                        .remedy(format!("that may last until somebody acts: {}", cause.remedy)),
                ]);
            }
            // An engine may forget a job, but not where it was.
            if !matches!(seen, Ok(None)) {
                last = seen;
            }
            if began.elapsed() >= self.wait {
                return Ok(vec![self.too_late(&last)]);
            }
            let stopped = |name: &str| format!("stopped by {name}; the job and the refs of the probe were removed");
            self.signals.pause(PAUSE, stopped)?;
        }
    }

    fn too_late(&self, last: &Result<Option<Sighting>, ClusterError>) -> Line {
        let (last, remedy) = match last {
            Err(error) => (error.to_string(), error.remedy()),
            Ok(sighting) => {
                let said = match sighting {
                    Some(Sighting::Running { node }) => format!("it runs on {node}"),
                    other => match other.as_ref().and_then(Sighting::waits_for) {
                        Some(reason) => format!("it waits: {reason}"),
                        None => "it is unknown to the engine".to_owned(),
                    },
                };
                (said, self.cluster.remedy(&self.order, sighting.as_ref()))
            }
        };
        let message = format!("the job did not answer within {}; {last}", exact(self.wait));
        Line::new("job", Outcome::Failed, message).remedy(format!("{remedy}; or wait longer with --wait DURATION"))
    }

    fn answered(&self, answer: &ProbeAnswer, took: Duration) -> Vec<Line> {
        let ProbeAnswer { host, lanewright, git } = answer;
        let job = Line::new("job", Outcome::Ok, format!("answered after {}", short(took)));
        let node = format!("{host} has Lanewright {lanewright} and git {git}");
        let node = match lanewright == VERSION {
            true => Line::new("node", Outcome::Ok, node),
            false => Line::new("node", Outcome::Warning, format!("{node}; this machine has Lanewright {VERSION}"))
                .remedy("install the same version on both".into()),
        };
        vec![job, node]
    }

    fn not_answered(&self, ending: &Ending, node: Option<&str>) -> Line {
        let printed = self.cluster.output(&self.order, 0).ok().flatten();
        let printed = printed.map(|bytes| last_lines(&String::from_utf8_lossy(&bytes), 5).join("; "));
        let output = match &printed {
            Some(said) if !said.is_empty() => format!("; it printed: {said}"),
            _ => String::new(),
        };
        let program = self.program();
        let remedy = match ending {
            Ending::Exited(126 | 127) => format!(
                "install Lanewright on the nodes, or set `program` to its path there: the shell of the job cannot run \
                 `{program}`"
            ),
            Ending::Exited(2) if output.contains("no ref of a run") => {
                format!("install Lanewright {VERSION} on the nodes; `{program}` is older there")
            }
            Ending::Exited(_) if printed.is_none() => {
                let node = node.map_or_else(|| "its node".to_owned(), |node| format!("node {node}"));
                format!("read what it printed, on {node}: {}", self.cluster.by_hand(&self.order).output)
            }
            Ending::Exited(_) => {
                "fix what it names; the node needs git and access to the exchange without a prompt".into()
            }
            _ => self.cluster.remedy(&self.order, Some(&Sighting::Over(ending.clone()))),
        };
        Line::new("job", Outcome::Failed, format!("no answer: the job {ending}{output}")).remedy(remedy)
    }

    /// Removes, where a ref was `pushed`, the job, its output if that is on this machine, and the refs.
    fn remove(&self, pushed: bool) -> Result<()> {
        if !pushed {
            return Ok(self.probe.forget()?);
        }
        let withdrawn = self.probe.withdraw();
        let names = std::slice::from_ref(&self.order);
        for job in self.cluster.survey(names).unwrap_or_default().into_values() {
            let how = match job.sighting {
                Sighting::Over(_) => continue,
                Sighting::Running { .. } => Cancel::Ask,
                Sighting::Waiting(_) | Sighting::Stuck(_) => Cancel::Kill,
            };
            self.cluster.cancel(&[job.ticket], how).map_err(|error| {
                let end = self.cluster.by_hand(&self.order).end;
                ExitStatus::Blocked.error(format!("the job was not ended: {error}")).hint(end)
            })?;
        }
        let forgotten = self.cluster.forget(names);
        forgotten.map_err(|error| ExitStatus::Blocked.error(error.to_string()).hint(error.remedy()))?;
        Ok(withdrawn?)
    }
}

fn skipped() -> Line {
    Line::new("job", Outcome::Skipped, "no job was submitted, because of what failed before".into())
}

fn refused(name: &'static str, error: &ClusterError) -> Line {
    Line::new(name, Outcome::Failed, error.to_string()).remedy(error.remedy())
}

fn failed(name: &'static str, error: impl Into<anyhow::Error>) -> Line {
    let error = CliError::from(error.into());
    Line::new(name, Outcome::Failed, error.message).remedy(error.hints.join("; "))
}
