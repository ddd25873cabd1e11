//! The settings of task lists, which a run records together.

use lanewright_model::ListOptions;

use super::{Layer, Origin, Setting, Settings};

/// In place of a flag, where a run recorded the value.
const RECORDED: &str = "the run";

impl Settings {
    pub fn list_options(&self) -> ListOptions {
        ListOptions {
            order: self.lists_order.value,
            split: self.lists_split.value,
            skip_manual: self.lists_skip_manual.value,
            stop_at_checkpoints: self.lists_stop_at_checkpoints.value,
            shared_files: self.shared_files.value.filter(|_| self.shared_files.origin.outranks_plan()),
        }
    }

    /// The flags of this call that only task lists know.
    pub fn flags_of_lists(&self) -> Vec<&'static str> {
        let origins = [
            &self.lists_order.origin,
            &self.lists_split.origin,
            &self.lists_skip_manual.origin,
            &self.lists_stop_at_checkpoints.origin,
        ];
        let flag = |origin: &Origin| if let Origin::Flag(name) = origin { Some(*name) } else { None };
        origins.into_iter().filter_map(flag).filter(|name| *name != RECORDED).collect()
    }

    /// These settings with what a run recorded.
    pub fn with_list_options(self, recorded: &ListOptions) -> Self {
        let (runners, executors) = (self.runners.clone(), self.executors.clone());
        Layer { runners, executors, ..Layer::of_list_options(recorded) }.complete(self)
    }
}

impl Layer {
    /// What a run recorded; it outranks the settings of now.
    pub fn of_list_options(recorded: &ListOptions) -> Self {
        fn setting<T>(value: T) -> Option<Setting<T>> {
            Some(Setting::new(value, Origin::Flag(RECORDED)))
        }
        Self {
            lists_order: setting(recorded.order),
            lists_split: setting(recorded.split),
            lists_skip_manual: setting(recorded.skip_manual),
            lists_stop_at_checkpoints: setting(recorded.stop_at_checkpoints),
            shared_files: recorded.shared_files.and_then(|rule| setting(Some(rule))),
            ..Self::default()
        }
    }
}
