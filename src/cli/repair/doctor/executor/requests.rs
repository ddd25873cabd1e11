//! What the jobs of an executor are to ask for.

use std::num::NonZeroU32;

use lanewright_model::Resources;
use lanewright_model::text::listed;
use lanewright_plan::ReadOptions;
use lanewright_plan::settings::{Origin, Setting};

use crate::cli::run::{PlanText, invalid, report, single_plan};
use crate::cli::{ExitStatus, Hint, RepositoryContext, Result, args};

/// How many lanes of a request are named.
const NAMED: usize = 3;

pub(crate) struct Request {
    pub(super) resources: Resources,
    /// What is asked for, and the lanes of the plan that do.
    pub(super) lanes: Option<String>,
}

/// As `--executor` of a run: the executor of lanes that name none.
pub(super) fn default_of_lanes(arguments: &args::Doctor, name: &str) -> Option<Setting<Option<String>>> {
    arguments.plan.as_ref().map(|_| Setting::new(Some(name.to_owned()), Origin::Flag("--executor")))
}

/// Each request of the plan's lanes on the executor once; without a plan a small one.
pub(crate) fn of(within: &RepositoryContext, arguments: &args::Doctor, name: &str) -> Result<Vec<Request>> {
    let Some(path) = &arguments.plan else {
        let (memory_mib, time) = (NonZeroU32::new(256), Some(arguments.wait));
        return Ok(vec![Request { resources: Resources { memory_mib, time, ..Resources::default() }, lanes: None }]);
    };
    let text = PlanText::open(&single_plan(&within.context, path)?)?;
    let reading = text.read(&within.settings, &ReadOptions { redo: true, ..ReadOptions::default() }, None);
    report(&within.context, &reading.diagnostics);
    let Some(plan) = reading.plan else { return Err(invalid(path, &reading.diagnostics)) };
    let mut asked: Vec<(&Resources, Vec<String>)> = Vec::new();
    for lane in plan.lanes.iter().filter(|lane| lane.executor.as_deref() == Some(name)) {
        match asked.iter_mut().find(|(resources, _)| **resources == lane.resources) {
            Some((_, lanes)) => lanes.push(lane.id.to_string()),
            None => asked.push((&lane.resources, vec![lane.id.to_string()])),
        }
    }
    if asked.is_empty() {
        let error = ExitStatus::Usage.error(format!("no lane of {} is for the executor `{name}`", path.display()));
        return Err(error.hint("leave --plan out, or name an executor of its lanes"));
    }
    let request = |(resources, lanes): (&Resources, Vec<String>)| Request {
        lanes: Some(format!("{resources} ({})", listed(&lanes, NAMED))),
        resources: resources.clone(),
    };
    Ok(asked.into_iter().map(request).collect())
}
