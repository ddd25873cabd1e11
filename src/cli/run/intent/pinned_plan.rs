//! The plan that a run pinned when it began, and its source, the plan's file.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use lanewright_engine::at_resume::agent_names::with_recorded_names;
use lanewright_engine::at_resume::{PlanOnRecord, pinned_text, replay};
use lanewright_model::digest::sha256;
use lanewright_model::event::{Event, Record, RunStarted};
use lanewright_model::text::headline;
use lanewright_model::{LaneId, Plan, PlanParts, RunId};
use lanewright_plan::settings::Settings;
use lanewright_plan::{PlanFormat, Reading};
use lanewright_schedule::RunState;
use lanewright_store::RunDirectory;

use super::plan_changes::differences;
use super::plan_file::PlanText;
use super::replaced_parts::{carried_over, plan_of, replaced_parts, with_merged};
use super::request::Adoption;
use crate::cli::error::SEE_DOCTOR;
use crate::cli::runs::command;
use crate::cli::secrets::with_secrets;
use crate::cli::{ExitStatus, Hint, RepositoryContext};

/// The plan of a run, and what its log adds up to with it.
pub(crate) struct Pinned {
    pub(crate) plan: Arc<Plan>,
    pub(crate) state: RunState,
    /// What `plan.json` is to hold.
    pub(crate) text: Vec<u8>,
    /// Whether another program changed `plan.json`, and that is accepted.
    pub(crate) edited: bool,
    /// The SHA-256 of the plan's file, where that is accepted in place of `plan.json`.
    pub(crate) accepted: Option<String>,
}

/// A run whose plan is read.
pub(crate) struct Pinning<'a> {
    pub(crate) within: &'a RepositoryContext,
    pub(crate) adoption: &'a Adoption,
    pub(crate) started: &'a RunStarted,
    pub(crate) records: &'a [Record],
}

impl Pinning<'_> {
    /// The plan of `plan.json`, or of the plan's file where that cannot be used and the change is accepted.
    pub(crate) fn read(&self) -> Result<Pinned> {
        self.pinned().or_else(|refusal| {
            let accepted = self.adoption.accept_plan_change.then(|| self.rebuilt_from_source()).flatten();
            accepted.ok_or(refusal)
        })
    }

    fn run(&self) -> &RunId {
        &self.started.run_id
    }

    fn pinned(&self) -> Result<Pinned> {
        let run = self.run();
        let directory = self.within.state.run(run);
        let (plan, text) = self.parse(&directory)?;
        let on_record = PlanOnRecord::of(self.records);
        let plan = Arc::new(with_secrets(&self.within.settings, self.started, &plan));
        let edited = on_record.is_foreign(&sha256(&text)) && !self.is_its_source(&plan, on_record);
        if edited && !self.adoption.accept_plan_change {
            let message =
                format!("{}, the plan of run {run}, was changed by another program", directory.plan().display());
            return Err(ExitStatus::Corrupted
                .error(message)
                .hint(format!(
                    "to write it again from the plan file, if that is as it was: lanewright doctor {run} --fix"
                ))
                .hint(accept_hint(run)));
        }
        for part in replaced_parts(&plan).filter(|_| edited) {
            let message = format!("{part} is what plan.json has, which another program changed");
            self.within.context.printer.warning(message, &[]);
        }
        let state = replay(run, &plan, self.records)?;
        Ok(Pinned { plan, state, text, edited, accepted: None })
    }

    fn parse(&self, directory: &RunDirectory) -> Result<(Plan, Vec<u8>)> {
        let (run, place) = (self.run(), directory.plan());
        let mut unknown = Vec::new();
        let mut parse = || -> Result<(Plan, Vec<u8>)> {
            let text = pinned_text(directory, self.records)?;
            let mut reader = serde_json::Deserializer::from_slice(&text);
            let plan = serde_ignored::deserialize(&mut reader, |key| unknown.push(key.to_string()))?;
            reader.end()?;
            Ok((plan, text))
        };
        let parsed = parse().map_err(|reason| {
            ExitStatus::Corrupted
                .error(format!("the plan that run {run} pinned, {}, cannot be read: {reason}", place.display()))
                .hint(SEE_DOCTOR)
                .hint(accept_hint(run))
        })?;
        // A newer version may ask in it for what this one does not know, an approval for example.
        if !unknown.is_empty() && !self.within.settings.allow_unknown.value {
            let message = format!(
                "the plan that run {run} pinned, {}, has keys that this version does not know: {}",
                place.display(),
                headline(&unknown.join(", "), 200)
            );
            return Err(ExitStatus::Usage
                .error(message)
                .hint("resume it with the Lanewright that began it, or ignore them: --allow-unknown"));
        }
        Ok(parsed)
    }

    /// The plan of its file as it is now; `None`: that is missing or invalid, or does not fit what the run did.
    fn rebuilt_from_source(&self) -> Option<Pinned> {
        let reading = self.read_source(self.records.iter().filter_map(|record| record.event.lane()), false).ok()?;
        let plan = Arc::new(with_recorded_names(reading.plan?, self.records));
        let state = replay(self.run(), &plan, self.records).ok()?;
        let text = plan_text(&plan, &self.within.settings).ok()?;
        Some(Pinned { plan, state, text, edited: false, accepted: Some(reading.sha256) })
    }

    /// Whether the pinned plan equals its unchanged source: the doctor writes it so.
    fn is_its_source(&self, pinned: &Plan, on_record: PlanOnRecord<'_>) -> bool {
        let source = self.read_source(ids(pinned), true).ok().filter(|source| source.sha256 == on_record.source);
        source.and_then(|source| source.plan).is_some_and(|plan| with_recorded_names(plan, self.records) == *pinned)
    }

    /// Reads the plan's file again.
    fn read_source<'l>(&self, lanes: impl Iterator<Item = &'l LaneId>, allow_unknown: bool) -> Result<Reading> {
        let lanes = lanes.map(LaneId::to_string).collect();
        PlanText::read_of_run(&self.within.settings, self.started, lanes, allow_unknown)
    }

    /// The plan that takes the place of the pinned one, because the plan's file changed and that is accepted.
    /// `state`: what the run's log adds up to with the pinned one; `edited`: that was changed by another program.
    pub(crate) fn changed(&self, state: &RunState, edited: bool) -> Result<Option<Pinned>> {
        let (pinned, merged) = (&**state.plan(), &merged_lanes(state));
        let (path, run) = (&self.started.plan_path, self.run());
        if !path.exists() {
            let message = format!("{} is gone; the plan as it was pinned is used", path.display());
            self.within.context.printer.warning(message, &[]);
            return Ok(None);
        }
        let reading = self.read_source(ids(pinned), false)?;
        let (changed, superseded) = match reading.plan {
            Some(plan) => {
                let records_done = reading.format.is_some_and(PlanFormat::records_done);
                let (plan, mut superseded) =
                    if records_done { with_merged(pinned, plan, merged)? } else { (plan, Vec::new()) };
                let (plan, more) = carried_over(pinned, plan, &self.begun_lanes())?;
                let mut parts = PlanParts::from(plan);
                self.take_runners_settings(&mut parts);
                superseded.extend(more);
                (Some(plan_of(parts)?), superseded)
            }
            None => (None, Vec::new()),
        };
        let is_unchanged = reading.sha256 == PlanOnRecord::of(self.records).source && !edited;
        match changed {
            Some(plan) if plan == *pinned => Ok(None),
            // Also where only the settings changed that a plan is read with.
            Some(plan) if self.adoption.accept_plan_change || is_same_work(&plan, pinned) => {
                superseded.iter().for_each(|message| self.within.context.printer.warning(message, &[]));
                self.replaced(plan, reading.sha256).map(Some)
            }
            // A user who changed only settings wants what worktrees lacked, or the right tests.
            Some(plan) if is_unchanged => match self.with_settings_of(pinned, &plan)? {
                plan if plan == *pinned => Ok(None),
                plan => self.replaced(plan, reading.sha256).map(Some),
            },
            _ if is_unchanged => Ok(None),
            changed => {
                let message = format!("{} has changed since run {run} started", path.display());
                let is_valid = changed.is_some();
                let mut differences = changed
                    .map(|plan| differences(pinned, &plan))
                    .unwrap_or_else(|| vec!["it is not a valid plan any more".into()]);
                differences.extend(superseded);
                let error = ExitStatus::Usage.error(format!("{message}:\n  {}", differences.join("\n  ")));
                if !is_valid {
                    let check = command(&self.within.state, &["plan", "check", &path.to_string_lossy()]);
                    return Err(error.hint(format!("restore the plan, or correct it: {check}")));
                }
                let accept = command(&self.within.state, &self.adoption.command(run, &["--accept-plan-change"]));
                Err(error.hint(format!("restore the plan, or continue with the new one: {accept}")))
            }
        }
    }

    /// The `pinned` plan with what `plan`, of the same text, has of the settings of now: what worktrees get, tests, what runners may
    /// use and what takes their place.
    fn with_settings_of(&self, pinned: &Plan, plan: &Plan) -> Result<Plan> {
        let mut parts = with_lanes_of(pinned, plan);
        self.take_runners_settings(&mut parts);
        plan_of(parts)
    }

    /// Also of runners that only a retry named.
    fn take_runners_settings(&self, parts: &mut PlanParts) {
        let catalogue = self.within.settings.catalogue();
        for (name, runner) in &mut parts.runners {
            if let Some(now) = catalogue.get(name) {
                (runner.budget, runner.fallback) = (now.budget, now.fallback);
            }
        }
        let others: BTreeSet<String> = parts.runners.values().flat_map(|runner| runner.fallback.clone()).collect();
        for name in others {
            if let (false, Some(runner)) = (parts.runners.contains_key(&name), catalogue.get(&name)) {
                parts.runners.insert(name, runner);
            }
        }
    }

    fn begun_lanes(&self) -> BTreeSet<LaneId> {
        let lane = |record: &Record| match &record.event {
            Event::WorktreeOpened { lane, .. } => Some(lane.clone()),
            _ => None,
        };
        self.records.iter().filter_map(lane).collect()
    }

    fn replaced(&self, plan: Plan, sha256: String) -> Result<Pinned> {
        let (plan, run) = (Arc::new(plan), self.run());
        let state = replay(run, &plan, self.records).map_err(|error| {
            ExitStatus::Usage
                .error(format!("the changed plan does not fit what run {run} did: {error}"))
                .hint("keep every lane that the run has begun, or restore the plan")
        })?;
        let text = plan_text(&plan, &self.within.settings)?;
        Ok(Pinned { plan, state, text, edited: false, accepted: Some(sha256) })
    }
}

fn merged_lanes(state: &RunState) -> BTreeSet<LaneId> {
    let plan = state.plan();
    let merged = plan.indices().filter(|lane| state.lane(*lane).is_merged());
    merged.map(|lane| plan.lane(lane).id.clone()).collect()
}

/// Whether agents get the same from both; what was replaced by retries may have become part of the plan file.
fn is_same_work(plan: &Plan, pinned: &Plan) -> bool {
    let work = |plan: &Plan| PlanParts { replaced: Vec::new(), ..PlanParts::from(plan.clone()) };
    work(plan) == work(pinned)
}

/// The `pinned` plan with what worktrees get and the tests of `plan`, which is of the same text.
fn with_lanes_of(pinned: &Plan, plan: &Plan) -> PlanParts {
    let mut parts = PlanParts::from(pinned.clone());
    for lane in &mut parts.lanes {
        if let Some(now) = plan.find(&lane.id).map(|found| plan.lane(found)) {
            lane.setup.clone_from(&now.setup);
            lane.copy.clone_from(&now.copy);
            lane.tests.clone_from(&now.tests);
            lane.has_usual_tests = now.has_usual_tests;
        }
    }
    parts
}

fn ids(plan: &Plan) -> impl Iterator<Item = &LaneId> {
    plan.lanes.iter().map(|lane| &lane.id)
}

fn accept_hint(run: &RunId) -> String {
    format!(
        "to continue with the plan file as it is now, or with plan.json if there is no plan file: lanewright resume {run} \
         --accept-plan-change (rollback takes the flag, too)"
    )
}

/// The plan as it is pinned for the run's whole life, without its secrets.
pub(crate) fn plan_text(plan: &Plan, settings: &Settings) -> Result<Vec<u8>> {
    let plan = plan.without_secrets(settings.redacted_patterns());
    serde_json::to_vec_pretty(&plan).context("cannot write the plan as JSON")
}
