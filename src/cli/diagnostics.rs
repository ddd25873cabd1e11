//! Diagnostics: what `tracing` writes to standard error.

use std::io;

use tracing_subscriber::EnvFilter;

use super::args::{Format, GlobalArgs};
use super::error::{CliError, ExitStatus};
use crate::settings::Environment;
use crate::settings::environment::LOG;

/// Starts writing what `-v` or else `LANEKEEPER_LOG` ask for; otherwise warnings only.
///
/// # Errors
/// When the variable makes no sense.
pub(super) fn start(global: &GlobalArgs, environment: &Environment) -> Result<(), CliError> {
    let variable = environment.get(LOG).map(|value| value.to_string_lossy()).unwrap_or_default();
    let directives = match global.verbose {
        0 if variable.is_empty() => "warn",
        0 => &variable,
        1 => "warn,lanekeeper=info",
        _ => "warn,lanekeeper=debug",
    };
    let filter = EnvFilter::try_new(directives).map_err(|error| {
        CliError::new(ExitStatus::Usage, format!("`{LOG}` cannot be understood: {error}"))
            .hint("write a level such as `info`, or `target=level` pairs such as `lanekeeper::git=debug`")
    })?;
    let colour = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(colour);
    match global.log_format {
        Format::Text => subscriber.init(),
        Format::Json => subscriber.json().init(),
    }
    Ok(())
}
