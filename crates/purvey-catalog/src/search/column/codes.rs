//! Dictionary codes, packed as narrow as they fit.

use crate::segment::codec::Decoder;

/// One packed code.
pub(crate) trait Code: Copy + Ord {
    /// The code, widened.
    fn get(self) -> u32;
    /// The code, narrowed; the caller knows that it fits.
    fn of(code: u32) -> Self;
}

impl Code for u8 {
    fn get(self) -> u32 {
        self.into()
    }

    fn of(code: u32) -> Self {
        code as Self
    }
}

impl Code for u16 {
    fn get(self) -> u32 {
        self.into()
    }

    fn of(code: u32) -> Self {
        code as Self
    }
}

impl Code for u32 {
    fn get(self) -> u32 {
        self
    }

    fn of(code: u32) -> Self {
        code
    }
}

/// Codes of one width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Codes {
    U8(Box<[u8]>),
    U16(Box<[u16]>),
    U32(Box<[u32]>),
}

/// Evaluates `$body` with `$slice` bound to the codes in their own width.
macro_rules! with_codes {
    ($codes:expr, $slice:ident => $body:expr) => {
        match $codes {
            $crate::search::column::codes::Codes::U8($slice) => $body,
            $crate::search::column::codes::Codes::U16($slice) => $body,
            $crate::search::column::codes::Codes::U32($slice) => $body,
        }
    };
}
pub(crate) use with_codes;

impl Codes {
    /// Packs codes that are all at most `largest`.
    pub(super) fn pack(codes: &[u32], largest: u32) -> Self {
        match largest {
            0..=0xff => Self::U8(codes.iter().map(|code| Code::of(*code)).collect()),
            0x100..=0xffff => Self::U16(codes.iter().map(|code| Code::of(*code)).collect()),
            _ => Self::U32(codes.into()),
        }
    }

    pub(super) fn get(&self, at: usize) -> u32 {
        with_codes!(self, codes => codes[at].get())
    }

    pub(super) fn max(&self) -> Option<u32> {
        with_codes!(self, codes => codes.iter().copied().max().map(Code::get))
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        with_codes!(self, codes => size_of_val(&**codes))
    }

    /// Appends the codes, their width in front.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::U8(codes) => {
                out.push(1);
                out.extend(codes);
            }
            Self::U16(codes) => {
                out.push(2);
                out.extend(codes.iter().flat_map(|code| code.to_le_bytes()));
            }
            Self::U32(codes) => {
                out.push(4);
                put_u32s(out, codes);
            }
        }
    }

    pub(super) fn decode(decoder: &mut Decoder<'_>, len: usize) -> Option<Self> {
        Some(match decoder.u8()? {
            1 => Self::U8(decoder.bytes(len)?.into()),
            2 => {
                let (codes, _) = decoder.bytes(len.checked_mul(2)?)?.as_chunks();
                Self::U16(codes.iter().map(|code| u16::from_le_bytes(*code)).collect())
            }
            4 => Self::U32(u32s(decoder, len)?),
            _ => return None,
        })
    }
}

pub(super) fn put_u32s(out: &mut Vec<u8>, numbers: &[u32]) {
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

pub(super) fn u32s(decoder: &mut Decoder<'_>, len: usize) -> Option<Box<[u32]>> {
    let (numbers, _) = decoder.bytes(len.checked_mul(4)?)?.as_chunks();
    Some(numbers.iter().map(|n| u32::from_le_bytes(*n)).collect())
}

/// Which of up to 64 codes hold, the first in the lowest bit.
pub(crate) fn mask<C: Code>(codes: &[C], holds: impl Fn(C) -> bool) -> u64 {
    match codes.try_into() {
        Ok(codes) => mask_of_all(codes, holds),
        Err(_) => {
            let places = codes.iter().take(64).enumerate();
            places.fold(0, |mask, (at, code)| mask | u64::from(holds(*code)) << at)
        }
    }
}

/// As [`mask`]. The compiler uses vector instructions wherever it puts this when the number is part of the type, and when `holds` has its
/// bounds by value and compares without branches.
fn mask_of_all<C: Code>(codes: &[C; 64], holds: impl Fn(C) -> bool) -> u64 {
    /// Gathers the lowest bits of eight bytes in the top byte: bit 8i meets the factor's bit 56 - 7i.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let mut flags = [0_u8; 64];
    for (flag, code) in flags.iter_mut().zip(codes) {
        *flag = u8::from(holds(*code));
    }
    let (eights, _) = flags.as_chunks();
    let gathered = eights
        .iter()
        .map(|eight| u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56);
    gathered
        .enumerate()
        .fold(0, |mask, (at, byte)| mask | byte << (at * 8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_mask_has_a_bit_for_every_code(codes in prop::collection::vec(0..5_u16, 0..=64), wanted in 0..5_u16) {
            let expected = (0..64).filter(|i| codes.get(*i) == Some(&wanted)).map(|i| 1_u64 << i).sum::<u64>();
            prop_assert_eq!(mask(&codes, |code| code == wanted), expected);
        }
    }

    #[test]
    fn widths() {
        assert_eq!(Codes::pack(&[255], 255).bytes(), 1);
        assert_eq!(Codes::pack(&[0], 256).bytes(), 2);
        assert_eq!(Codes::pack(&[0], 65_535).bytes(), 2);
        assert_eq!(Codes::pack(&[0], 65_536).bytes(), 4);
    }
}
