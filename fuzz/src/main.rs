//! Runs the target that `FUZZ_TARGET` names under libFuzzer.

#![no_main]

use std::sync::LazyLock;

use fuzz_targets::{TARGETS, Target};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a target");
    TARGETS.iter().find(|target| target.name == name).expect("the target exists")
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));
