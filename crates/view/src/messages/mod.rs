//! Texts about one thing that happened: the line of an event, its form in the log of a CI service, a notification,
//! a pull request.

pub mod ci_log;
pub mod line;
pub mod notification;
pub mod pull_request;
