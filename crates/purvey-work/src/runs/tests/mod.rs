//! The life of a run over a store, at moments that the tests choose.

/// Each of these functions as a test on each store.
macro_rules! on_each_store {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[test] fn $name() { super::$name(); })*
        }
        mod postgres {
            $(#[test] fn $name() { crate::runs::tests::world::on_postgres(super::$name); })*
        }
    };
}
use on_each_store;

mod admission;
mod budgets;
mod dequeue;
mod keys;
mod leases;
mod simulation;
mod together;
mod world;
