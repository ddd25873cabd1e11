//! Plans as they are read: files of every format, good and bad, and real ones.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests read the files of fixtures")]

mod corpus_gsd;
mod corpus_lanes;
mod corpus_lists;
mod corpus_speckit;
mod corpus_trackers;
mod gsd_plans;
mod lane_plans;
mod mutated_plans;
mod native_plans;
mod plan_strategy;
mod tracker_plans;
