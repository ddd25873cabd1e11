//! Programs that Lanewright starts and that outlive it: agents and gates under their supervisors ([`process`]), and those
//! that it asks: the program of a forge ([`forge`]), and clusters on which lanes run ([`cluster`]).
//!
//! Each answers what it was asked about one program. Which one is started when, and what follows from its end, is decided
//! elsewhere.
//!
//! Begin with [`process::launch`] and [`process::observe`].

#![allow(missing_docs, reason = "names that say it all; only Lanewright's other crates use it")]

pub mod cluster;
pub mod forge;
pub mod process;
pub mod wall;
