//! Finding the end of the plain part of a string, eight bytes at a time.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// How many bytes at the start of `bytes` are neither `"`, `\` nor a control character.
pub(super) fn plain(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let special = special(u64::from_le_bytes(*word));
        if special != 0 {
            return i * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let special = rest
        .iter()
        .position(|&b| b < 0x20 || matches!(b, b'"' | b'\\'));
    words.len() * 8 + special.unwrap_or(rest.len())
}

/// A word whose lowest set bit lies in the first (lowest) byte of `word` that ends the plain part; zero when none does. Borrows
/// may set bits above it, never below.
fn special(word: u64) -> u64 {
    let zero_byte = |w: u64| w.wrapping_sub(ONES) & !w;
    let quote = zero_byte(word ^ (ONES * b'"' as u64));
    let backslash = zero_byte(word ^ (ONES * b'\\' as u64));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & HIGHS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_byte_at_every_place() {
        for length in 0..40 {
            for at in 0..length {
                for b in 0..=u8::MAX {
                    let mut bytes = vec![b'a'; length];
                    bytes[at] = b;
                    let ends = b < 0x20 || b == b'"' || b == b'\\';
                    assert_eq!(plain(&bytes), if ends { at } else { length });
                }
            }
        }
    }

    proptest! {
        #[test]
        fn as_byte_by_byte(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let expected = bytes.iter().take_while(|&&b| b >= 0x20 && b != b'"' && b != b'\\').count();
            prop_assert_eq!(plain(&bytes), expected);
        }
    }
}
