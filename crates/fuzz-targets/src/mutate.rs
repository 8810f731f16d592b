//! Deterministic mutations: the same seed always makes the same inputs.

/// Pieces that formats are made of.
const TOKENS: [&[u8]; 26] = [
    b"\"",
    b"\\u0000",
    b"\\ud800",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"null",
    b"true",
    b"-0",
    b"1e400",
    b"18446744073709551616",
    b"\n",
    b"\n---\n",
    b"\"$ref\":\"#\"",
    b"\xc3\xa9",
    b"\xff",
    b"%2F",
    b"..",
    b"@",
    b"//",
    b"#",
    b"GMT",
    b"\"odp_version\":\"1.9\",",
];
/// Longest input that is made.
const BYTES: usize = 65_536;

/// The generator `splitmix64`.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator whose sequence `seed` decides.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 when there is none.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).unwrap_or(0)
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let from = self.below(length);
        from..(from + 1 + self.below(16)).min(length)
    }
}

/// `input` changed in one to four places, with parts of `other` among what is put in.
pub fn mutate(random: &mut Random, input: &[u8], other: &[u8]) -> Vec<u8> {
    let mut out = input.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(out.len() + 1);
        let range = random.range(out.len());
        match random.below(6) {
            0 if !range.is_empty() => out[range.start] ^= 1 << random.below(8),
            1 => drop(out.drain(range)),
            2 => {
                let copy = out[range].to_vec();
                out.splice(at..at, copy);
            }
            3 => {
                let from = random.range(other.len());
                out.splice(range, other[from].iter().copied());
            }
            4 => {
                let other = &other[random.below(other.len())..];
                out.truncate(at);
                out.extend_from_slice(other);
            }
            _ => {
                let token = TOKENS[random.below(TOKENS.len())];
                out.splice(at..at, token.iter().copied());
            }
        }
        out.truncate(BYTES);
    }
    out
}
