//! The page on errors and retries, sentence by sentence, through HTTP and on both stores ; the client's policy apart.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

/// Runs each of these tests on SQLite and on PostgreSQL.
macro_rules! on_each_store {
    ($($test:ident),* $(,)?) => {
        mod sqlite {
            $(#[test] fn $test() { crate::stage::on_sqlite(super::$test); })*
        }
        mod postgres {
            $(#[test] fn $test() { crate::stage::on_postgres(super::$test); })*
        }
    };
}

/// The same with the bytes of artifacts in an S3-speaking store as well.
macro_rules! on_each_store_of_bytes {
    ($($test:ident),* $(,)?) => {
        on_each_store! { $($test),* }
        mod s3 {
            $(#[test] fn $test() { crate::stage::on_s3(super::$test); })*
        }
    };
}

mod budgets;
mod bursts;
mod dequeue;
mod joint;
mod keys;
mod model;
mod objects;
mod outcomes;
#[path = "../../../purvey-work/tests/support/postgres.rs"]
mod postgres;
mod produced;
mod provider_limits;
mod queue;
mod refusals;
mod stage;
mod statuses;
mod stopping;
mod time;
mod uploads;
