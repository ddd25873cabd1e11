//! From what was asked for to what is done with a plan: begun, gone on with, put back, passed over.

use std::path::{Path, PathBuf};

use super::chain::Ended;
use super::plan_file::{PlanFile, PlanText};
use super::resume::{self, Latest, Remark, resume};
use super::site::Site;
use super::{claims, start};
use crate::cli::args::{Intent, ReadingArgs};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::Options;
use crate::cli::rollback;
use crate::cli::runs::half_done;
use crate::model::LaneId;
use crate::plan_source;
use crate::settings::{Layers, Settings};

/// What stays the same for every phase of a chain.
pub(super) struct Course<'a> {
    pub(super) context: &'a Context,
    pub(super) site: Site,
    pub(super) layers: Layers,
    pub(super) reading: &'a ReadingArgs,
    pub(super) options: &'a dyn Fn(Settings) -> Options,
    /// Phases that are done already are passed over.
    pub(super) passes_over: bool,
}

impl Course<'_> {
    /// Does with a plan what was asked for; `next` is what comes after it. Only the `first` plan of a chain may have had
    /// a run and lanes named for it.
    pub(super) fn begin(&self, path: &Path, next: Option<Vec<PathBuf>>, first: bool) -> Result<Ended, CliError> {
        let context = self.context;
        let general = self.layers.resolve(None);
        let state = self.site.state(&general);
        let text = PlanText::open(path)?;
        let (whole, rest) = text.whole_and_rest(&general, self.reading, &|plan| half_done(&state, plan))?;
        let whole = text.accept(context, plan_source::Reading { diagnostics: told_of(&whole, &rest), ..whole })?;
        let mut options = Options { plan: path.to_owned(), ..(self.options)(self.layers.resolve(Some(&whole.plan))) };
        options.next_phases.clone_from(&next);
        if !first {
            (options.run_id, options.lanes) = (None, Vec::new());
        }
        let resumes = options.intent == Intent::Resume;
        if options.intent == Intent::Rollback {
            let run = resume::latest_of(&self.site, &options, &whole)?;
            let status = rollback::roll_back(context, &self.site, &run, &options.lanes.clone(), &options.into())?;
            return Ok(Ended { status, next: None });
        }
        let latest = resume::latest(&self.site, &options, &whole)?;
        if let (true, Latest::Unfinished(run)) = (resumes, &latest) {
            return Ok(resume(context, &self.site, run, &options.into(), &Remark::default())?.or_else(next));
        }
        let begins = self.passes_over || (next.is_some() && !(first && matches!(latest, Latest::None)));
        if resumes && !begins {
            let run = resume::latest_of(&self.site, &options, &whole)?;
            return Ok(resume(context, &self.site, &run, &options.into(), &Remark::default())?.or_else(next));
        }
        let plan = match rest {
            Some(reading) => text.accept(context, reading)?,
            None if begins || next.is_some() => return done_before(context, &whole, next),
            None => return Err(nothing_left(&whole)),
        };
        if options.dry_run {
            return Ok(Ended { status: start::dry_run(context, &plan)?, next: None });
        }
        if begins && (self.passes_over || resumes) {
            let base = start::base_branch(&self.site, &options)?;
            let merged = claims::merged_before(&state, &plan, &base)?;
            let (before, left): (Vec<LaneId>, Vec<LaneId>) =
                plan.plan.lanes.iter().map(|lane| lane.id.clone()).partition(|lane| merged.contains(lane));
            match (before.is_empty(), left.is_empty()) {
                (true, _) => {}
                (false, true) => return done_before(context, &plan, next),
                (false, false) => (options.lanes, options.merged_before) = (left, before),
            }
        }
        Ok(Ended { status: start::start(context, &self.site, &options, plan)?, next })
    }
}

/// What is to be said of a plan before the rest of it is read, which says the same again.
fn told_of(whole: &plan_source::Reading, rest: &Option<plan_source::Reading>) -> Vec<plan_source::Diagnostic> {
    if whole.plan.is_some() && rest.is_some() { Vec::new() } else { whole.diagnostics.clone() }
}

/// A phase of a chain in which nothing is left to do.
fn done_before(context: &Context, plan: &PlanFile, next: Option<Vec<PathBuf>>) -> Result<Ended, CliError> {
    context.printer.note(format!("Phase {} is complete.", plan.plan.phase));
    Ok(Ended { status: ExitStatus::Done, next })
}

fn nothing_left(plan: &PlanFile) -> CliError {
    let message = format!("every plan of phase {} is done: there is a summary of each", plan.plan.phase);
    CliError::new(ExitStatus::InvalidOperation, message).hint("to do them again: the same with --redo")
}
