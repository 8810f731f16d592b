//! Which generation last changed what a caller sees.
//!
//! While only what is hidden from a caller changes, the caller goes on being answered from the generation that was current before: the numbers in
//! continuations, and so entity tags, stay. Visible changes are noted by audience, so that this needs no state for each caller.

use crate::access::Access;
use crate::segment::codec::{Decoder, put_text};
use std::collections::{BTreeMap, BTreeSet};

/// Audiences that are told apart. Beyond that, those that changed longest ago count as changed when the latest of them did.
const AUDIENCES: usize = 1_024;

/// The newest generation that changed what everybody sees, and for each audience what only it sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changed {
    everybody: u64,
    audiences: BTreeMap<String, u64>,
    /// That of audiences not named above.
    others: u64,
}

impl Changed {
    /// Everything changed in this generation.
    pub(super) fn all(number: u64) -> Self {
        Self {
            everybody: number,
            ..Self::default()
        }
    }

    /// The newest generation in which anything changed that the caller sees.
    pub(super) fn of(&self, access: &Access) -> u64 {
        let of = |name| self.audiences.get(name).copied().unwrap_or(self.others);
        let audiences = access.audiences().iter().map(of);
        audiences.fold(self.everybody, u64::max)
    }

    /// That of generation `number`, which comes after this one and in which `touched` changed.
    pub(super) fn followed_by(&self, number: u64, touched: &Touched) -> Self {
        if touched.everybody {
            return Self::all(number);
        }
        let mut next = self.clone();
        for audience in &touched.audiences {
            next.audiences.insert(audience.clone(), number);
        }
        if let Some(excess) = next.audiences.len().checked_sub(AUDIENCES + 1) {
            let mut numbers: Vec<u64> = next.audiences.values().copied().collect();
            let (_, latest, _) = numbers.select_nth_unstable(excess);
            next.others = *latest;
            let others = next.others;
            next.audiences.retain(|_, number| *number > others);
        }
        next
    }

    /// `None` when it is too large for its fields.
    pub(super) fn encode(&self, out: &mut Vec<u8>) -> Option<()> {
        out.extend(self.everybody.to_le_bytes());
        out.extend(self.others.to_le_bytes());
        out.extend(u32::try_from(self.audiences.len()).ok()?.to_le_bytes());
        for (audience, number) in &self.audiences {
            put_text(out, audience)?;
            out.extend(number.to_le_bytes());
        }
        Some(())
    }

    pub(super) fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        let (everybody, others) = (decoder.u64()?, decoder.u64()?);
        let mut audiences = BTreeMap::new();
        for _ in 0..decoder.u32()? {
            audiences.insert(decoder.text()?.to_owned(), decoder.u64()?);
        }
        Some(Self {
            everybody,
            audiences,
            others,
        })
    }
}

/// Who sees what a generation in the making changes.
#[derive(Debug, Default)]
pub(super) struct Touched {
    everybody: bool,
    audiences: BTreeSet<String>,
}

impl Touched {
    /// Something that everybody sees.
    pub(super) fn add_everybody(&mut self) {
        self.everybody = true;
    }

    /// A document of these audiences; of none, everybody sees it.
    pub(super) fn add<'a>(&mut self, audiences: impl IntoIterator<Item = &'a str>) {
        let mut any = false;
        for audience in audiences {
            any = true;
            if !self.audiences.contains(audience) {
                self.audiences.insert(audience.to_owned());
            }
        }
        self.everybody |= !any;
    }

    pub(super) fn is_everybody(&self) -> bool {
        self.everybody
    }

    /// Whether a change of a document of these audiences is noted already.
    pub(super) fn covers(&self, audiences: &[&str]) -> bool {
        let is_noted = |audience: &&str| self.audiences.contains(*audience);
        self.everybody || (!audiences.is_empty() && audiences.iter().all(is_noted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(changed: &Changed, audiences: &[&str]) -> u64 {
        let names = audiences.iter().map(|name| (*name).to_owned());
        changed.of(&Access::new(names).unwrap())
    }

    fn touched(audiences: &[&str]) -> Touched {
        let mut touched = Touched::default();
        touched.add(audiences.iter().copied());
        touched
    }

    #[test]
    fn a_caller_is_changed_by_what_everybody_sees_and_by_its_own() {
        let changed = Changed::all(3).followed_by(5, &touched(&["staff", "trade"]));
        let changed = changed.followed_by(8, &touched(&["trade"]));
        let changed = changed.followed_by(9, &Touched::default());
        assert_eq!(of(&changed, &[]), 3);
        assert_eq!(of(&changed, &["nobody"]), 3);
        assert_eq!(of(&changed, &["staff"]), 5);
        assert_eq!(of(&changed, &["staff", "trade"]), 8);
        let mut bytes = Vec::new();
        changed.encode(&mut bytes).unwrap();
        assert_eq!(Changed::decode(&mut Decoder(&bytes)), Some(changed.clone()));
        let changed = changed.followed_by(11, &touched(&[]));
        assert_eq!(of(&changed, &["trade"]), 11);
        assert_eq!(changed, Changed::all(11));
    }

    #[test]
    fn of_too_many_audiences_the_oldest_are_not_told_apart() {
        let mut changed = Changed::all(1);
        for n in 2..=1_100 {
            changed = changed.followed_by(n, &touched(&[&n.to_string()]));
        }
        // 1,099 were named: the 75 oldest, up to 76, are forgotten.
        assert_eq!(changed.audiences.len(), 1_024);
        assert_eq!(of(&changed, &["2"]), 76);
        assert_eq!(of(&changed, &["never"]), 76);
        assert_eq!(of(&changed, &["77"]), 77);
        assert_eq!(of(&changed, &[]), 1);
    }
}
