//! Diagnostics: what `tracing` writes to standard error.

use std::io;

use lanewright_files::timing::{Listener, TARGET, Timings};
use lanewright_plan::settings::Environment;
use lanewright_plan::settings::environment::LOG;
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use super::args::{Format, GlobalArgs};
use super::printer::Diagnostics;
use super::{ExitStatus, Hint, Result};

/// Starts writing what `-v` or else `LANEWRIGHT_LOG` ask for; otherwise warnings only.
pub(super) fn start(global: &GlobalArgs, environment: &Environment, timings: Option<Timings>) -> Result<()> {
    let variable = environment.get(LOG).map(|value| value.to_string_lossy()).unwrap_or_default();
    let directives = match global.verbose {
        // What the client of Kubernetes reports is also in its errors.
        0 if variable.is_empty() => "warn,kube_client=off",
        0 => &variable,
        1 => "warn,kube_client=off,lanewright=info",
        _ => "warn,lanewright=debug",
    };
    let filter = EnvFilter::try_new(directives).map_err(|error| {
        ExitStatus::Usage
            .error(format!("`{LOG}` cannot be understood: {error}"))
            .hint("write a level such as `info`, or `target=level` pairs such as `lanewright_git=debug`")
    })?;
    let colour = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
    let written = tracing_subscriber::fmt::layer().with_writer(|| Diagnostics).with_ansi(colour);
    // It would report to standard error that standard error takes nothing, and panic because it takes nothing.
    let written = written.log_internal_errors(false);
    let written = match global.log_format {
        Format::Text => written.boxed(),
        Format::Json => written.json().boxed(),
    };
    // Where the time goes has a file of its own.
    let written = written.with_filter(filter.and(filter_fn(|metadata| metadata.target() != TARGET)));
    let listener =
        timings.map(|timings| Listener::new(timings).with_filter(filter_fn(|metadata| metadata.target() == TARGET)));
    tracing_subscriber::registry().with(written).with(listener).init();
    Ok(())
}
