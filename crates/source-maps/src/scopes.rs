//! The functions of sources, from the field `scopes` of a map (ECMA-426, proposal "Scopes").
//!
//! The field is a list of items. An item is a tag and numbers, in the digits of `mappings`. The
//! original scopes of the sources come first, nested, with positions relative to the previous item.
//! Items of other tags, such as the ranges of generated code, are skipped.

use crate::MAX_MAPPINGS;

const NO_SCOPES: u32 = 0;
const SCOPE_START: u32 = 1;
const SCOPE_END: u32 = 2;

const HAS_NAME: u32 = 1;
const IS_FUNCTION: u32 = 4;

/// The digits of `mappings`.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A position in a source, and the index of the name of the function from there on.
type Change = ((u32, u32), Option<u32>);

/// The functions of each source.
#[derive(Debug, Default)]
pub(crate) struct Functions(Vec<Vec<Change>>);

impl Functions {
    /// Reads the field. Returns `None` if it is malformed or too long.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut sources = Vec::new();
        let mut changes: Vec<Change> = Vec::new();
        // The function of each open scope.
        let mut open: Vec<Option<u32>> = Vec::new();
        let (mut at, mut name) = ((0, 0), 0_u32);
        for (count, item) in text.split(',').enumerate() {
            let mut numbers = Numbers(item.as_bytes());
            match numbers.read()? {
                _ if count >= MAX_MAPPINGS => return None,
                NO_SCOPES => sources.push(Vec::new()),
                SCOPE_START => {
                    let flags = numbers.read()?;
                    at = numbers.moved(at)?;
                    let mut function = open.last().copied().flatten();
                    let has_name = flags & HAS_NAME != 0;
                    if has_name {
                        name = name.checked_add_signed(numbers.read_signed()?)?;
                    }
                    if flags & IS_FUNCTION != 0 {
                        function = has_name.then_some(name);
                    }
                    open.push(function);
                    changes.push((at, function));
                }
                SCOPE_END => {
                    open.pop()?;
                    at = numbers.moved(at)?;
                    changes.push((at, open.last().copied().flatten()));
                    if open.is_empty() {
                        sources.push(std::mem::take(&mut changes));
                        at = (0, 0);
                    }
                }
                _ => {}
            }
        }
        open.is_empty().then_some(Self(sources))
    }

    /// Returns the index of the name of the innermost function at a position of a source.
    pub(crate) fn at(&self, source: u32, line: u32, column: u32) -> Option<u32> {
        let changes = self.0.get(usize::try_from(source).ok()?)?;
        let next = changes.partition_point(|(at, _)| *at <= (line, column));
        changes.get(next.checked_sub(1)?)?.1
    }
}

/// Reads the numbers of an item.
struct Numbers<'t>(&'t [u8]);

impl Numbers<'_> {
    /// Reads an unsigned number: five bits per digit, the lowest first.
    fn read(&mut self) -> Option<u32> {
        let mut number = 0_u64;
        for shift in (0..35).step_by(5) {
            let (first, rest) = self.0.split_first()?;
            self.0 = rest;
            let digit = DIGITS.iter().position(|digit| digit == first)? as u64;
            number |= (digit & 31) << shift;
            if digit < 32 {
                return u32::try_from(number).ok();
            }
        }
        None
    }

    /// Reads a signed number, whose lowest bit is the sign.
    fn read_signed(&mut self) -> Option<i32> {
        let number = self.read()?;
        let size = i32::try_from(number >> 1).ok()?;
        Some(if number & 1 == 1 { -size } else { size })
    }

    /// Reads a position relative to the previous one: a column is absolute in another line.
    fn moved(&mut self, (line, column): (u32, u32)) -> Option<(u32, u32)> {
        let (lines, columns) = (self.read()?, self.read()?);
        let from = if lines == 0 { column } else { 0 };
        Some((line.checked_add(lines)?, from.checked_add(columns)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn innermost_functions_are_found() {
        // Source 0 has no scopes. Source 1 has function 0 from 1:16 to 3:1 with a block and an
        // anonymous function, and function 1 from 4:0 to 6:1.
        let text = "A,BAAA,BFBQA,DA,BABC,BEAC,CAC,CAB,CBB,BHBACA,CCB,CBA,EAA,FA,ZZ";
        let functions = Functions::read(text).unwrap();
        for (source, line, column, function) in [
            (0, 1, 16, None),
            (1, 0, 0, None),
            (1, 1, 15, None),
            (1, 1, 16, Some(0)),
            (1, 2, 3, Some(0)),
            (1, 2, 4, None),
            (1, 2, 5, None),
            (1, 2, 6, Some(0)),
            (1, 3, 0, Some(0)),
            (1, 3, 1, None),
            (1, 4, 0, Some(1)),
            (1, 6, 1, None),
            (1, 99, 0, None),
            (2, 0, 0, None),
        ] {
            assert_eq!(functions.at(source, line, column), function, "{source} {line}:{column}");
        }
    }

    #[test]
    fn malformed_scopes_are_rejected() {
        for text in ["", "B", "BA", "BAAA", "CAA", "BAAA,CAA,CAA", "BAA*", "BFAAD,CAA", "B_A"] {
            assert!(Functions::read(text).is_none(), "{text}");
        }
        // Positions and numbers of 32 bits, and beyond.
        assert!(Functions::read("BA//////DA,CAA").is_some());
        for text in ["BA//////HA,CAA", "BA////////A,CAA", "BA//////DA,BA//////DA,CAA,CAA"] {
            assert!(Functions::read(text).is_none(), "{text}");
        }
    }
}
