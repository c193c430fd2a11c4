//! The local stack: an embedded DynamoDB with the tables of `template.yaml`, demo data, the
//! functions under `cargo lambda watch`, and a gateway. `make run`, the tests and the benchmarks
//! use it.

pub mod demo;
pub mod engine;
pub mod environment;
pub mod examples;
pub mod gateway;
pub mod guard;
pub mod instance;
pub mod messages;
pub mod runtime_api;
pub mod template;
pub mod watch;
