//! The functions of sources, from the field `scopes` of a map (ECMA-426, proposal "Scopes").
//!
//! The field is a list of items. An item is a tag and numbers, in the digits of `mappings`. The
//! original scopes of the sources come first, nested, with positions relative to the previous item.
//! Items of other tags, such as the ranges of generated code, are skipped.

use crate::MAX_MAPPINGS;

const NO_SCOPES: u32 = 0;
const SCOPE_START: u32 = 1;
const SCOPE_END: u32 = 2;

/// Numbers of an item that count: those of a scope's start up to its name.
const MAX_NUMBERS: usize = 5;

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
            match read_numbers(item)?.as_slice() {
                _ if count >= MAX_MAPPINGS => return None,
                [NO_SCOPES, ..] => sources.push(Vec::new()),
                [SCOPE_START, flags, lines, columns, more @ ..] => {
                    at = moved(at, *lines, *columns)?;
                    if flags & HAS_NAME != 0 {
                        name = name.checked_add_signed(signed(*more.first()?)?)?;
                    }
                    let own_name = (flags & HAS_NAME != 0).then_some(name);
                    let outer = open.last().copied().flatten();
                    let function = if flags & IS_FUNCTION != 0 { own_name } else { outer };
                    open.push(function);
                    changes.push((at, function));
                }
                [SCOPE_END, lines, columns, ..] => {
                    open.pop()?;
                    at = moved(at, *lines, *columns)?;
                    changes.push((at, open.last().copied().flatten()));
                    if open.is_empty() {
                        sources.push(std::mem::take(&mut changes));
                        at = (0, 0);
                    }
                }
                [] | [SCOPE_START | SCOPE_END, ..] => return None,
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

/// Reads the first unsigned numbers of an item: five bits per digit, the lowest first.
fn read_numbers(item: &str) -> Option<Vec<u32>> {
    let (mut numbers, mut number, mut bits) = (Vec::new(), 0_u64, 0);
    let mut digits = item.bytes();
    while numbers.len() < MAX_NUMBERS
        && let Some(byte) = digits.next()
    {
        let digit = DIGITS.iter().position(|digit| *digit == byte)? as u64;
        number |= (digit & 31) << bits;
        bits += 5;
        if digit < 32 {
            numbers.push(u32::try_from(number).ok()?);
            (number, bits) = (0, 0);
        } else if bits == 35 {
            return None;
        }
    }
    (bits == 0).then_some(numbers)
}

/// Returns the signed number whose lowest bit is the sign.
fn signed(number: u32) -> Option<i32> {
    let size = i32::try_from(number >> 1).ok()?;
    Some(if number & 1 == 1 { -size } else { size })
}

/// Returns a position relative to the previous one: a column is absolute in another line.
fn moved((line, column): (u32, u32), lines: u32, columns: u32) -> Option<(u32, u32)> {
    let from = if lines == 0 { column } else { 0 };
    Some((line.checked_add(lines)?, from.checked_add(columns)?))
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
        for text in
            ["", "B", "BA", "BAAA", "CAA", "BAAA,CAA,CAA", "BAA*", "BFAAD,CAA", "B_A", "BAAg,CAA"]
        {
            assert!(Functions::read(text).is_none(), "{text}");
        }
        // Positions and numbers of 32 bits, and beyond.
        assert!(Functions::read("BA//////DA,CAA").is_some());
        for text in ["BA//////HA,CAA", "BA////////A,CAA", "BA//////DA,BA//////DA,CAA,CAA"] {
            assert!(Functions::read(text).is_none(), "{text}");
        }
    }
}
