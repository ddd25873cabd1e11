//! Tests that need the types of the whole program.

mod schemas;
