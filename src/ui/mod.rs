//! The terminal interface without the terminal: what it shows of a run, what keys change, and how it is drawn.
//!
//! Data flows one way: the fold over the run log ([`board`]) and what files hold ([`material`]) are drawn by [`view`];
//! keys change the [`state`] by [`update`], which returns what is to be done outside.

pub(crate) mod board;
mod comments;
pub(crate) mod decoder;
pub(crate) mod diff;
pub(crate) mod keys;
mod layout;
pub(crate) mod material;
pub(crate) mod scroll;
pub(crate) mod state;
mod styled;
pub(crate) mod update;
pub(crate) mod view;

#[cfg(test)]
mod tests;
