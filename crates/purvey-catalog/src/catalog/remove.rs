//! Deleting, and what still points at a deleted Collection.

use super::{Precondition, Written};
use crate::error::Error;
use crate::store::{Put, References, Write, hold};
use purvey_odp::identity::ResourceType;
use serde_json::Value;

/// Deletes a record. A Collection that something points at is only deleted with `detach`, which takes those edges out in the same
/// transaction. `candidates` calls its argument with the ids of Offerings that may be members, until that answers `false`;
/// it may name too many, and need not name those that changed after change `covered`.
pub(super) fn remove(
    write: &mut Write<'_>,
    kind: ResourceType,
    id: &str,
    precondition: Precondition,
    detach: bool,
    covered: u64,
    candidates: impl FnOnce(&mut dyn FnMut(&str) -> bool),
) -> Result<Written, Error> {
    let present = write.live_revision(kind, id)?;
    hold(precondition, present)?;
    if present.is_none() {
        return Err(Error::NotFound);
    }
    if kind == ResourceType::Collection {
        let children = write.tree()?.children(id);
        let members = members(write, id, detach, covered, candidates)?;
        let in_use = !children.is_empty() || !members.is_empty();
        if in_use && !detach {
            return Err(Error::Conflict {
                detail: format!(
                    "The Collection {id} still has {}; detach them, or remove them first.",
                    if members.is_empty() {
                        "child Collections"
                    } else {
                        "member Offerings"
                    }
                ),
            });
        }
        for child in &children {
            cut(write, ResourceType::Collection, child, "parent_ids", id)?;
        }
        for member in &members {
            cut(write, ResourceType::Offering, member, "collection_ids", id)?;
        }
    }
    let seq = write.advance();
    write.remove(kind, id)?;
    Ok(Written {
        generation: seq,
        revision: seq,
        created: false,
        warnings: Vec::new(),
    })
}

/// Members of a Collection as they are inside the transaction, each once: all of them, or one when that is enough.
fn members(
    write: &Write<'_>,
    collection: &str,
    all: bool,
    covered: u64,
    candidates: impl FnOnce(&mut dyn FnMut(&str) -> bool),
) -> Result<Vec<String>, Error> {
    let mut members = Vec::new();
    write.changes(ResourceType::Offering, covered, |row| {
        if let Some(body) = row.body
            && (all || members.is_empty())
            && points_at(&References::read(row.id, body)?, collection)
        {
            members.push(row.id.to_owned());
        }
        Ok(())
    })?;
    let mut failure = None;
    candidates(&mut |id| {
        if !all && !members.is_empty() {
            return false;
        }
        match write.references(ResourceType::Offering, id) {
            Ok(Some((_, references))) if points_at(&references, collection) => {
                members.push(id.to_owned());
                true
            }
            Ok(_) => true,
            Err(error) => {
                failure = Some(error);
                false
            }
        }
    });
    if let Some(error) = failure {
        return Err(error);
    }
    members.sort_unstable();
    members.dedup();
    Ok(members)
}

fn points_at(references: &References, collection: &str) -> bool {
    references.collection_ids.iter().any(|id| id == collection)
}

/// Takes `target` out of the list `member` of a stored record; an emptied list goes, since no list may be empty.
fn cut(
    write: &mut Write<'_>,
    kind: ResourceType,
    id: &str,
    member: &str,
    target: &str,
) -> Result<(), Error> {
    let Some((body, references)) = write.references(kind, id)? else {
        return Ok(());
    };
    let corrupt = |detail: String| Error::Corrupt {
        path: crate::store::FILE.into(),
        detail: format!("record {id}: {detail}"),
    };
    let mut record: Value = serde_json::from_slice(&body).map_err(|e| corrupt(e.to_string()))?;
    let Some(object) = record.as_object_mut() else {
        return Err(corrupt("is not an object".to_owned()));
    };
    if let Some(Value::Array(list)) = object.get_mut(member) {
        list.retain(|entry| entry != target);
        if list.is_empty() {
            object.shift_remove(member);
        }
    }
    let mut references = match kind {
        ResourceType::Collection => references.parent_ids,
        ResourceType::Offering => references.collection_ids,
    };
    references.retain(|entry| entry != target);
    let body = serde_json::to_vec(&record).map_err(|e| corrupt(e.to_string()))?;
    write.advance();
    write.store(&Put {
        kind,
        id: id.to_owned(),
        body,
        references,
    })
}
