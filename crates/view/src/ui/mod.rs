//! The terminal interface without the terminal: what it shows of a run, what keys change, and how it is drawn.
//!
//! Data flows one way: the fold over the run log ([`board`]) and what files hold ([`material`]) are drawn by [`view`];
//! keys change the [`state`] by [`update`], which returns what is to be done outside.

pub mod board;
mod comments;
pub mod decoder;
pub mod diff;
pub(crate) mod keys;
mod layout;
pub mod material;
pub mod scroll;
pub mod state;
mod styled;
pub mod update;
pub mod view;

#[cfg(test)]
mod tests;
