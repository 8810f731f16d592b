//! Runs in the hands of an engine, over each store, with a scripted provider and a clock that only tests move.

/// Each of these functions as a test on each store.
macro_rules! on_each_store {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test] async fn $name() { super::$name().await; })*
        }
        mod postgres {
            $(#[tokio::test] async fn $name() { crate::engine::tests::bench::on_postgres(super::$name()).await; })*
        }
    };
}
use on_each_store;

mod bench;
mod ends;
mod pauses;
mod steps;
mod stops;
