//! Rebuilds the binary when a file of the page changes: cargo does not see the files that a derive
//! macro reads.

#![allow(missing_docs, clippy::print_stdout)] // Cargo reads the standard output.

fn main() {
    println!("cargo::rerun-if-changed=built");
}
