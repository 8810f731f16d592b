//! Runs in the hands of an engine, over a store on disk, with a scripted provider and a clock that only tests move.

mod bench;
mod ends;
mod pauses;
mod steps;
mod stops;
