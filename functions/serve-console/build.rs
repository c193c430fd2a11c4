//! Has the files of the page read again when one of them was built anew: what a derive macro reads,
//! cargo does not see.

#![allow(missing_docs, clippy::print_stdout)] // Cargo reads the standard output.

fn main() {
    println!("cargo::rerun-if-changed=built");
}
