//! Notifications, handed on while a run is worked on.

use std::io;

use lanewright_model::event::Record;
use lanewright_view::RunHistory;
use lanewright_view::messages::notification::{Notification, Notifications};

use super::Reporter;

/// Gives every new notification to `send`, which must not wait for anybody.
pub(crate) struct Notifier<F> {
    notifications: Notifications,
    send: F,
}

impl<F: FnMut(&Notification)> Notifier<F> {
    pub(crate) fn new(notifications: Notifications, send: F) -> Self {
        Self { notifications, send }
    }
}

impl<F: FnMut(&Notification)> Reporter for Notifier<F> {
    fn record(&mut self, record: &Record, history: &RunHistory) -> io::Result<()> {
        self.notifications.after(record, history).iter().for_each(&mut self.send);
        Ok(())
    }
}
