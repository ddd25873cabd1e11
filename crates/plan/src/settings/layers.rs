//! The sources of settings in their order: flags, environment, plan, files, defaults.

use std::num::NonZeroU32;

use lanewright_agents::runner::Catalogue;
use lanewright_model::{Plan, SnapshotRules, Timeouts};

use super::fault::{Fault, Faults, nearest};
use super::file::ConfigFile;
use super::invocation::{Environment, Invocation};
use super::origin::{Origin, Setting};
use super::table::{Layer, Settings};
use super::{Severity, environment, file};

impl Settings {
    /// Patterns of secrets, besides what the environment says.
    pub fn redacted_patterns(&self) -> &[String] {
        self.redact.value.as_deref().unwrap_or_default()
    }

    /// When a running agent's worktree is saved as a snapshot. An error only where `checkpoint_before` was not read by
    /// [`patterns`](super::value::patterns).
    pub fn snapshot_rules(&self) -> Result<SnapshotRules, regex::Error> {
        let usual = || SnapshotRules::RISKY.iter().map(|&pattern| pattern.to_owned()).collect();
        let risky: Vec<String> = self.checkpoint_before.value.clone().unwrap_or_else(usual);
        SnapshotRules::new(self.checkpoint_every.value, self.checkpoint_every_tool_calls.value, &risky)
    }
}

/// All sources but the plan, checked.
#[derive(Debug, Clone)]
pub struct Layers {
    above_plan: Layer,
    below_plan: Layer,
    defaults: Settings,
    /// Faults that are no errors.
    pub warnings: Vec<Fault>,
}

impl Layers {
    /// Reads the environment and `files` (strongest first) below `flags`. One error in any source fails with all faults of
    /// all sources.
    pub fn read(
        flags: Layer,
        variables: &Environment,
        files: &[ConfigFile],
        invocation: &Invocation,
    ) -> Result<Self, Faults> {
        let (environment, mut faults) = environment::read(variables, invocation);
        let above_plan = flags.or(environment);
        let allow_unknown = above_plan.allow_unknown.as_ref().is_some_and(|setting| setting.value);
        let (mut below_plan, mut fallbacks) = (Layer::default(), Vec::new());
        for file in files {
            let (layer, names, more) = file::read(file, invocation, allow_unknown);
            below_plan = below_plan.or(layer);
            fallbacks.extend(names);
            faults.extend(more);
        }
        // What is wrong with a runner's description leaves it unknown, and is reported already.
        if !faults.iter().any(|fault| fault.severity == Severity::Error) {
            let described = below_plan.runners.iter().map(|(name, text)| (name.clone(), text.value.clone()));
            let catalogue = Catalogue::new(described);
            let unknown = fallbacks.into_iter().filter(|(name, _)| catalogue.get(name).is_none());
            faults.extend(unknown.map(|(name, origin)| {
                let known = catalogue.names();
                let help = match nearest(&name, known.iter().copied()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("known runners: {}", known.join(", ")),
                };
                Fault::error(origin, format!("`fallback` names `{name}`, and there is no such runner")).help(help)
            }));
        }
        if faults.iter().any(|fault| fault.severity == Severity::Error) {
            return Err(Faults(faults));
        }
        let defaults = Settings::defaults(invocation);
        Ok(Self { above_plan, below_plan, defaults, warnings: faults })
    }

    /// The settings that hold for `plan`, or where no plan is involved.
    pub fn resolve(&self, plan: Option<&Plan>) -> Settings {
        let plan = plan.map(plan_layer).unwrap_or_default();
        self.above_plan.clone().or(plan).or(self.below_plan.clone()).complete(self.defaults.clone())
    }
}

fn plan_layer(plan: &Plan) -> Layer {
    // A plan's `kill_after` is never absent, so the default value may also be an absent one.
    let kill_after = plan.timeouts.kill_after;
    let said = (kill_after != Timeouts::default().kill_after).then_some(kill_after);
    Layer {
        base: plan.base_branch.clone().map(|base| Setting::new(Some(base), Origin::Plan)),
        max_parallel: plan.max_parallel.and_then(NonZeroU32::new).map(|count| Setting::new(count, Origin::Plan)),
        merge: plan.merge.map(|merge| Setting::new(merge, Origin::Plan)),
        commit_message: plan.commit_message.clone().map(|text| Setting::new(Some(text), Origin::Plan)),
        kill_after: said.map(|duration| Setting::new(duration, Origin::Plan)),
        ..Layer::default()
    }
}
