//! The library's answers: plans as they are read, real plans, outputs of tools, streams of agents, and the layers of `src`.

mod corpus_gsd;
mod corpus_lanes;
mod diagnosis;
mod gsd_plans;
mod lane_plans;
mod layering;
mod native_plans;
mod plan_strategy;
mod runner_streams;
