//! Identifiers: a UUIDv7 in hexadecimal behind a prefix that names the kind (Work §11). Their order as text is the order of their making.

use crate::clock::{Chance, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{fmt, str::FromStr};
use uuid::Uuid;

/// A text that is not an identifier of the kind asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be {prefix} and 32 lower-case hexadecimal digits")]
pub struct InvalidId {
    prefix: &'static str,
}

macro_rules! ids {
    ($($name:ident $prefix:literal $what:literal;)*) => {$(
        #[doc = concat!("The identifier of ", $what, ": `", $prefix, "` and 32 hexadecimal digits.")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// What it begins with.
            pub const PREFIX: &'static str = $prefix;

            /// A new one, made at `now`.
            #[must_use]
            pub fn new(now: Timestamp, chance: &dyn Chance) -> Self {
                Self(make(now, chance))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0.simple())
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                read(text, $prefix).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

ids! {
    OrganizationId "org_" "an organization";
    WorkspaceId "ws_" "a workspace";
    UserId "usr_" "a user";
    AgentId "agt_" "an agent";
    RunId "run_" "a run";
    ThreadId "thr_" "a thread";
    TurnId "trn_" "a turn of a thread";
    TriggerId "trg_" "a trigger";
    ArtifactId "art_" "an artifact";
    TokenId "tok_" "a token";
}

fn make(now: Timestamp, chance: &dyn Chance) -> Uuid {
    let mut random = [0; 10];
    chance.fill(&mut random);
    let millis = u64::try_from(now.millis()).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
}

fn read(text: &str, prefix: &'static str) -> Result<Uuid, InvalidId> {
    let invalid = InvalidId { prefix };
    let digits = text.strip_prefix(prefix).ok_or(invalid)?;
    let plain = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if digits.len() != 32 || !digits.bytes().all(plain) {
        return Err(invalid);
    }
    Uuid::try_parse(digits).map_err(|_| invalid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemChance;

    #[test]
    fn one_spelling_only() {
        let id: RunId = "run_0198f2b47c8e7d3a9b1c2d3e4f506172".parse().unwrap();
        assert_eq!(id.to_string(), "run_0198f2b47c8e7d3a9b1c2d3e4f506172");
        for bad in [
            "",
            "run_",
            "0198f2b47c8e7d3a9b1c2d3e4f506172",
            "agt_0198f2b47c8e7d3a9b1c2d3e4f506172",
            "run_0198F2B47C8E7D3A9B1C2D3E4F506172",
            "run_0198f2b4-7c8e-7d3a-9b1c-2d3e4f506172",
            "run_0198f2b47c8e7d3a9b1c2d3e4f50617",
        ] {
            assert!(bad.parse::<RunId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn later_ones_sort_later() {
        let at = |millis| RunId::new(Timestamp::from_millis(millis), &SystemChance).to_string();
        assert!(at(1_000) < at(2_000));
    }
}
