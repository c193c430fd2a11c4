//! The form of facts and signatures in items: compressed JSON.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum bytes of the JSON text. The limits of replays keep texts below it.
const MAX_BYTES: usize = 16 << 20;
/// zstd's default level.
const COMPRESSION_LEVEL: i32 = 3;

/// Packs a value.
///
/// # Errors
/// If the value has no JSON form.
pub(crate) fn pack(value: &impl Serialize) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(&serde_json::to_vec(value)?, COMPRESSION_LEVEL)
}

/// Unpacks the output of [`pack`].
pub(crate) fn unpack<T: DeserializeOwned>(packed: &[u8]) -> Option<T> {
    let text = zstd::bulk::decompress(packed, MAX_BYTES).ok()?;
    serde_json::from_slice(&text).ok()
}
