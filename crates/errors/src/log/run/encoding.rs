//! Numbers and compressed parts of columns.

use zstd::bulk::{Compressor, Decompressor};

/// The format version, the first byte of each column.
const VERSION: u8 = 1;
/// The zstd level. Level 15 takes twice the time and saves 2% of the size. Level 19 takes six times
/// the time and saves no more.
const COMPRESSION_LEVEL: i32 = 12;

/// Minimum bytes of a zstd frame: a magic number, a header of two bytes and a block of three (RFC
/// 8878 §3.1.1).
const SMALLEST_FRAME: usize = 9;

/// A column that [`pack`](super::pack) did not write, or that is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a run is damaged: {0}")]
pub struct Damaged(pub(in crate::log) &'static str);

/// Writes columns.
pub(super) struct Encoder {
    /// `None` if parts are not compressed, or if zstd could not be started.
    zstd: Option<Compressor<'static>>,
}

impl Encoder {
    pub(super) fn new() -> Self {
        let compressor = Compressor::new(COMPRESSION_LEVEL).ok();
        let without_size = |mut zstd: Compressor<'static>| {
            // The column already stores the length.
            zstd.include_contentsize(false).ok().map(|()| zstd)
        };
        Self { zstd: compressor.and_then(without_size) }
    }

    pub(super) fn uncompressed() -> Self {
        Self { zstd: None }
    }

    /// Adds a part: the doubled length, plus one if the part is compressed, then the bytes.
    /// Compressed bytes follow their own length.
    pub(super) fn put_part(&mut self, part: &[u8], column: &mut Vec<u8>) {
        let zstd = self.zstd.as_mut().filter(|_| part.len() > SMALLEST_FRAME);
        let compressed = zstd.and_then(|zstd| zstd.compress(part).ok());
        if let Some(compressed) = compressed.filter(|it| it.len() + 1 < part.len()) {
            put_number(part.len() * 2 + 1, column);
            put_bytes(&compressed, column);
        } else {
            put_number(part.len() * 2, column);
            column.extend(part);
        }
    }
}

/// Returns a column that has only the format version.
pub(super) fn new_column() -> Vec<u8> {
    vec![VERSION]
}

/// The bit of a byte that marks a number with more bytes.
const CONTINUES: u8 = 0x80;
const TOO_LARGE: Damaged = Damaged("a number is too large");

/// Adds a number below 2^32 as LEB128 (DWARF 5 §7.6): seven bits per byte, the lowest first.
pub(in crate::log) fn put_number(number: usize, column: &mut Vec<u8>) {
    put_wide_number(number as u64, column);
}

/// Adds any number as LEB128.
pub(in crate::log) fn put_wide_number(mut number: u64, column: &mut Vec<u8>) {
    loop {
        let [low, ..] = (number & 0x7f).to_le_bytes();
        number >>= 7;
        if number == 0 {
            column.push(low);
            return;
        }
        column.push(low | CONTINUES);
    }
}

/// Adds bytes after their length.
pub(in crate::log) fn put_bytes(bytes: &[u8], column: &mut Vec<u8>) {
    put_number(bytes.len(), column);
    column.extend(bytes);
}

/// Reads columns. Reuse one decoder for many columns: starting zstd costs more than decoding a
/// small column.
pub struct Decoder {
    zstd: Option<Decompressor<'static>>,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Decoder").finish_non_exhaustive()
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// Returns a decoder.
    pub fn new() -> Self {
        Self { zstd: Decompressor::new().ok() }
    }

    fn decompress(&mut self, compressed: &[u8], length: usize) -> Result<Vec<u8>, Damaged> {
        let zstd = self.zstd.as_mut().ok_or(Damaged("zstd could not be started"))?;
        let part = zstd.decompress(compressed, length);
        let part = part.map_err(|_| Damaged("a part cannot be decompressed"))?;
        if part.len() == length { Ok(part) } else { Err(Damaged("a part is too short")) }
    }
}

/// The unread rest of a column or part.
#[derive(Debug, Clone, Copy)]
pub(in crate::log) struct Unread<'c>(&'c [u8]);

impl<'c> Unread<'c> {
    /// Returns the bytes of a column after the format version.
    pub(super) fn column(bytes: &'c [u8]) -> Result<Self, Damaged> {
        match bytes.split_first() {
            Some((&VERSION, rest)) => Ok(Self(rest)),
            Some(_) => Err(Damaged("a column has an unknown version")),
            None => Err(Damaged("a column is empty")),
        }
    }

    pub(in crate::log) fn part(bytes: &'c [u8]) -> Self {
        Self(bytes)
    }

    pub(in crate::log) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in crate::log) fn take(&mut self, length: usize) -> Result<&'c [u8], Damaged> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Damaged("bytes are missing"))?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads bytes after their length.
    pub(in crate::log) fn bytes(&mut self) -> Result<&'c [u8], Damaged> {
        let length = self.length()?;
        self.take(length)
    }

    pub(in crate::log) fn length(&mut self) -> Result<usize, Damaged> {
        self.number().map(|number| number as usize)
    }

    pub(super) fn number(&mut self) -> Result<u32, Damaged> {
        u32::try_from(self.wide_number()?).map_err(|_| TOO_LARGE)
    }

    pub(in crate::log) fn wide_number(&mut self) -> Result<u64, Damaged> {
        // Most numbers have one byte.
        if let Some((&byte @ ..CONTINUES, rest)) = self.0.split_first() {
            self.0 = rest;
            return Ok(u64::from(byte));
        }
        let mut number = 0;
        for place in 0..10 {
            let byte = self.take(1)?.first().copied().unwrap_or_default();
            let bits = u64::from(byte & !CONTINUES);
            let shifted = bits << (7 * place);
            if shifted >> (7 * place) != bits {
                return Err(TOO_LARGE);
            }
            number |= shifted;
            if byte & CONTINUES == 0 {
                return Ok(number);
            }
        }
        Err(TOO_LARGE)
    }

    /// Reads a part of exactly `length` bytes.
    pub(super) fn part_of(
        &mut self,
        length: usize,
        decoder: &mut Decoder,
    ) -> Result<Vec<u8>, Damaged> {
        let part = self.part_up_to(length, decoder)?;
        if part.len() == length { Ok(part) } else { Err(Damaged("a part has another length")) }
    }

    /// Reads a part of at most `most` bytes. Allocates nothing for a part that claims a larger
    /// length.
    pub(super) fn part_up_to(
        &mut self,
        most: usize,
        decoder: &mut Decoder,
    ) -> Result<Vec<u8>, Damaged> {
        let head = self.length()?;
        let (length, is_compressed) = (head / 2, head % 2 == 1);
        if length > most {
            return Err(Damaged("a part is too long"));
        }
        if is_compressed {
            decoder.decompress(self.bytes()?, length)
        } else {
            self.take(length).map(<[u8]>::to_vec)
        }
    }

    pub(super) fn end(self) -> Result<(), Damaged> {
        if self.0.is_empty() { Ok(()) } else { Err(Damaged("there are bytes after the end")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_decode_unchanged(number in prop_oneof![0_u32..300, 0_u32..1 << 28]) {
            let mut bytes = Vec::new();
            put_number(number as usize, &mut bytes);
            let mut unread = Unread::part(&bytes);
            prop_assert_eq!(unread.number(), Ok(number));
            prop_assert_eq!(unread.end(), Ok(()));
        }

        #[test]
        fn wide_numbers_decode_unchanged(number in prop_oneof![0_u64..300, any::<u64>(), Just(u64::MAX)]) {
            let mut bytes = Vec::new();
            put_wide_number(number, &mut bytes);
            let mut unread = Unread::part(&bytes);
            prop_assert_eq!(unread.wide_number(), Ok(number));
            prop_assert_eq!(unread.end(), Ok(()));
        }

        #[test]
        fn parts_decode_unchanged(part in proptest::collection::vec(0_u8..4, 0..400)) {
            let mut bytes = Vec::new();
            Encoder::new().put_part(&part, &mut bytes);
            let mut decoder = Decoder::new();
            prop_assert_eq!(Unread::part(&bytes).part_of(part.len(), &mut decoder), Ok(part.clone()));
            prop_assert!(Unread::part(&bytes).part_of(part.len() + 1, &mut decoder).is_err());
            if let Some(less) = part.len().checked_sub(1) {
                prop_assert!(Unread::part(&bytes).part_up_to(less, &mut decoder).is_err());
            }
        }
    }

    #[test]
    fn unterminated_numbers_are_rejected() {
        assert!(Unread::part(&[0xff; 12]).number().is_err());
        assert!(Unread::part(&[0x80]).number().is_err());
        assert!(Unread::part(&[]).number().is_err());
        assert!(Unread::part(&[0xff; 12]).wide_number().is_err());
        let beyond_64_bits = [&[0xff; 9][..], &[2]].concat();
        assert!(Unread::part(&beyond_64_bits).wide_number().is_err());
    }

    #[test]
    fn parts_claiming_a_huge_length_are_rejected() {
        let mut bytes = Vec::new();
        put_number((1 << 27) + 1, &mut bytes);
        put_number(0, &mut bytes);
        let found = Unread::part(&bytes).part_up_to(1_000, &mut Decoder::new());
        assert_eq!(found, Err(Damaged("a part is too long")));
    }
}
