//! `log-event`: records events of scripts and agents in the log of a run (seed 000).

use lanewright_store::Request;
use serde_json::json;

use crate::cli::args::LogEvent;
use crate::cli::control::ask::record;
use crate::cli::json_argument;
use crate::cli::runs::{RunRecords, require_lane, require_plan};
use crate::cli::secrets::redactor_of_run;
use crate::cli::select::Selector;
use crate::cli::{Context, ExitStatus, RepositoryContext, Result};
use lanewright_plan::settings::Layer;

/// Has the process that works on the run record the event, or records it if there is none.
pub(crate) fn run(context: &Context, arguments: &LogEvent) -> Result<ExitStatus> {
    let within = RepositoryContext::open(context, Layer::default())?;
    let run = Selector::new(context, &within.state).run(arguments.run.run.as_ref())?;
    let known = RunRecords::read(context, &within.state, run.clone())?;
    known.started()?;
    let plan = require_plan(&run, &known.directory)?;
    arguments.lane.as_ref().map(|lane| require_lane(&plan, lane)).transpose()?;
    let redactor = redactor_of_run(&within.settings, &known.directory);
    let data = arguments.data.as_deref().map(|text| json_argument::read("--data", text, &redactor)).transpose()?;
    let (name, lane) = (arguments.name.clone(), arguments.lane.clone());
    record(&within, &run, redactor, Request::Log { lane, name, data })?;
    let LogEvent { name, lane, .. } = arguments;
    context.printer.print(
        format_args!("Recorded {name} in {}\n", known.directory.log().display()),
        &json!({"run_id": run, "name": name, "lane": lane, "path": known.directory.log()}),
    )
}
