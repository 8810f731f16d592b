//! `If-Match` and `If-None-Match` of writes.

use super::problem::Fault;
use crate::etag::{Tag, Tags};
use http::{
    HeaderMap,
    header::{IF_MATCH, IF_NONE_MATCH},
};
use purvey_catalog::{
    Error,
    catalog::{Catalog, Precondition, Written},
};
use purvey_odp::identity::ResourceType;

/// What the caller asks of the record before it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// Nothing.
    None,
    /// `If-None-Match: *`: it must not exist.
    Absent,
    /// `If-Match: *`: it must exist.
    Present,
    /// `If-Match` with tags: it must be at one of these revisions.
    At(Vec<u64>),
}

impl Condition {
    pub(super) fn read(headers: &HeaderMap, faults: &mut Vec<Fault>) -> Self {
        let tags = |name| {
            let values = headers.get_all(name).iter();
            values.flat_map(|value| Tags(value.as_bytes()))
        };
        let absent = headers.contains_key(IF_NONE_MATCH);
        if absent && !tags(IF_NONE_MATCH).eq([Tag::Any]) {
            faults.push(Fault::header("If-None-Match", "Must be * on a write."));
        }
        if !headers.contains_key(IF_MATCH) {
            return if absent { Self::Absent } else { Self::None };
        }
        if absent {
            faults.push(Fault::header(
                "If-Match",
                "Must not be combined with If-None-Match.",
            ));
        }
        if tags(IF_MATCH).eq([Tag::Any]) {
            return Self::Present;
        }
        let mut revisions = Vec::new();
        for tag in tags(IF_MATCH) {
            match tag {
                // Weak tags never match here, nor do tags that we did not make.
                Tag::Strong(quoted) => revisions.extend(revision(quoted)),
                Tag::Weak(_) => {}
                Tag::Any | Tag::Malformed => {
                    faults.push(Fault::header(
                        "If-Match",
                        "Must be * or a list of quoted entity tags.",
                    ));
                    break;
                }
            }
        }
        Self::At(revisions)
    }

    /// Writes under this condition: `write` is called with what the catalog checks in the transaction itself.
    pub(super) fn hold(
        &self,
        catalog: &Catalog,
        kind: ResourceType,
        id: &str,
        mut write: impl FnMut(Precondition) -> Result<Written, Error>,
    ) -> Result<Written, Error> {
        match self {
            Self::None => return write(Precondition::None),
            Self::Absent => return write(Precondition::IfAbsent),
            Self::At(revisions) => {
                if let [one] = revisions[..] {
                    return write(Precondition::IfMatch(one));
                }
            }
            Self::Present => {}
        }
        // Any of several: pinned to the present one, and again if somebody wrote in between.
        let mut attempts = 0;
        loop {
            let present = catalog.revision(kind, id)?;
            let fits = match (self, present) {
                (Self::At(revisions), Some(present)) => revisions.contains(&present),
                (_, present) => present.is_some(),
            };
            let Some(revision) = present.filter(|_| fits) else {
                return Err(Error::PreconditionFailed { revision: present });
            };
            attempts += 1;
            match write(Precondition::IfMatch(revision)) {
                Err(Error::PreconditionFailed { .. }) if attempts < 16 => {}
                result => return result,
            }
        }
    }
}

fn revision(quoted: &[u8]) -> Option<u64> {
    let inner = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    std::str::from_utf8(inner).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn read(fields: &[(HeaderName, &'static str)]) -> (Condition, usize) {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, HeaderValue::from_static(value));
        }
        let mut faults = Vec::new();
        (Condition::read(&headers, &mut faults), faults.len())
    }

    #[test]
    fn conditions_are_read() {
        assert_eq!(read(&[]), (Condition::None, 0));
        assert_eq!(read(&[(IF_NONE_MATCH, "*")]), (Condition::Absent, 0));
        assert_eq!(read(&[(IF_MATCH, " * ")]), (Condition::Present, 0));
        assert_eq!(
            read(&[(IF_MATCH, "\"7\", W/\"8\", \"x\""), (IF_MATCH, "\"9\"")]),
            (Condition::At(vec![7, 9]), 0)
        );
    }

    #[test]
    fn malformed_conditions_are_faults() {
        assert_eq!(read(&[(IF_NONE_MATCH, "\"7\"")]).1, 1);
        assert_eq!(read(&[(IF_MATCH, "7")]).1, 1);
        assert_eq!(read(&[(IF_MATCH, "*, \"7\"")]).1, 1);
        assert_eq!(read(&[(IF_MATCH, "*"), (IF_NONE_MATCH, "*")]).1, 1);
    }
}
