//! Texts about one thing that happened: the line of an event, a notification, a pull request.

pub mod line;
pub mod notification;
pub mod pull_request;
