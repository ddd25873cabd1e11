//! The settings of task lists, which a run records together.

use lanewright_model::ListOptions;

use super::{Layer, Origin, Setting, Settings};

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
            Some(Setting::new(value, Origin::Flag("the run")))
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
