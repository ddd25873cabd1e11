//! Every environment variable that is read, and the layer of settings that they make.

use super::table::{KEYS, Layer};
use super::{Environment, Fault, Invocation, Key, Origin, absolute, nearest};

/// Which diagnostics are written, where no `-v` says so: `info`, `lanewright_git=debug`.
pub const LOG: &str = "LANEWRIGHT_LOG";

/// The arguments of `ci`, which a workflow gives as variables.
pub const CI_PLAN: &str = "LANEWRIGHT_CI_PLAN";
pub const CI_APPROVE: &str = "LANEWRIGHT_CI_APPROVE";
pub const CI_REJECT: &str = "LANEWRIGHT_CI_REJECT";
pub const CI_RETRY: &str = "LANEWRIGHT_CI_RETRY";
pub const CI_MESSAGE: &str = "LANEWRIGHT_CI_MESSAGE";
pub const CI_ACCEPT_PLAN_CHANGE: &str = "LANEWRIGHT_CI_ACCEPT_PLAN_CHANGE";

/// Where the user's caches are; default `$HOME/.cache`.
pub const XDG_CACHE_HOME: &str = "XDG_CACHE_HOME";
/// Where the user's configuration directory is; default `$HOME/.config`.
pub const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";

pub const HOME: &str = "HOME";

/// Every variable that Lanewright reads itself.
pub(super) fn known() -> Vec<String> {
    let of_ci = [CI_PLAN, CI_APPROVE, CI_REJECT, CI_RETRY, CI_MESSAGE, CI_ACCEPT_PLAN_CHANGE];
    let others = [LOG, XDG_CONFIG_HOME, HOME].into_iter().chain(of_ci).map(str::to_owned);
    KEYS.iter().flat_map(Key::variables).chain(others).collect()
}

/// The layer that `variables` make. An empty variable counts as absent.
pub(super) fn read(variables: &Environment, invocation: &Invocation) -> (Layer, Vec<Fault>) {
    let mut layer = Layer::default();
    let mut faults = unknown(variables);
    for key in KEYS {
        let Some(name) = key.variables().into_iter().find(|name| is_set(variables, name)) else { continue };
        if let Err(message) = set(&mut layer, key, &name, variables) {
            faults.push(Fault::error(Origin::Environment(name), message));
        }
    }
    (layer.place_paths(|path| absolute(&invocation.directory, path)), faults)
}

fn is_set(variables: &Environment, name: &str) -> bool {
    variables.get(name).is_some_and(|value| !value.is_empty())
}

fn set(layer: &mut Layer, key: &Key, name: &str, variables: &Environment) -> Result<(), String> {
    let text = variables[name].to_str().ok_or_else(|| format!("`{name}` is not UTF-8"))?;
    let read = layer.set(key.name, text, Origin::Environment(name.to_owned()));
    read.map_err(|message| format!("`{name}` is {}: {message}", key.kind))
}

/// Variables that look like a misspelt one of Lanewright's. Others with its prefix are set for agents.
fn unknown(variables: &Environment) -> Vec<Fault> {
    let prefix = "LANEWRIGHT_";
    let known = known();
    let known = || known.iter().filter_map(|name| name.strip_prefix(prefix));
    let ours = variables.keys().filter_map(|name| name.strip_prefix(prefix));
    ours.filter(|name| !known().any(|other| other == *name))
        .filter_map(|name| Some((name, nearest(name, known())?)))
        .map(|(name, meant)| {
            let name = format!("{prefix}{name}");
            let message = format!("the variable `{name}` means nothing to Lanewright");
            Fault::warning(Origin::Environment(name), message).help(format!("did you mean `{prefix}{meant}`?"))
        })
        .collect()
}
