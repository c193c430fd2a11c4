//! The local stack: an embedded DynamoDB with the tables of `template.yaml`, demo data, and
//! `cargo lambda watch` in front of the functions. `make run`, the tests and the benchmarks all
//! start from here.

pub mod demo;
pub mod engine;
pub mod environment;
pub mod examples;
pub mod runtime_api;
pub mod template;
pub mod watch;
