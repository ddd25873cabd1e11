//! Sentences of the seed documents that no other test holds the program to: one file for each seed, and one test for
//! each sentence, named after its row in the list of them.

mod commands;
mod design;
mod gsd_plans;
mod long_tasks;
mod points;
mod recovery_contract;
mod resumption;
mod table;
mod task_protocol;
