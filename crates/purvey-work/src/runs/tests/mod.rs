//! The life of a run over a store, at moments that the tests choose.

mod admission;
mod budgets;
mod dequeue;
mod keys;
mod leases;
mod simulation;
mod world;
