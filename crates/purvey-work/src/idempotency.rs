//! Keys that name one start each (Work §3).
//!
//! A key belongs to a workspace, a principal (the user or the trigger, never the token) and a kind of request. What it named is found by a
//! fingerprint of the target and the canonical request: members sorted, numbers by their value however they were written.

use crate::{
    error::{Error, Fault, Place},
    id::WorkspaceId,
    sql::{Param, ROWS, Session, values},
};
use serde_json::{Number, Value};
use sha2::{Digest, Sha256};
use std::{collections::HashMap, fmt::Write as _};

/// The header that carries a key.
pub(crate) const HEADER: &str = "Idempotency-Key";

/// A key and the fingerprint of the request that it came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) fingerprint: [u8; 32],
}

/// What a key named before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) fingerprint: Vec<u8>,
    /// The run; it may have been pruned since.
    pub(crate) target: String,
}

impl Key {
    /// A key for a request to `target` with this body.
    ///
    /// # Errors
    /// A fault that names the header when the key is not 1 to 255 visible ASCII characters.
    pub(crate) fn new(text: &str, target: &str, body: &Value) -> Result<Self, Fault> {
        if text.is_empty() || text.len() > 255 || !text.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return Err(Fault {
                place: Place::Header(HEADER),
                reason: "must be 1 to 255 visible ASCII characters".into(),
            });
        }
        Ok(Self {
            text: text.into(),
            fingerprint: fingerprint(target, body),
        })
    }
}

/// SHA-256 over a target and the canonical form of a body.
pub(crate) fn fingerprint(target: &str, body: &Value) -> [u8; 32] {
    let mut text = String::with_capacity(256);
    // A target never holds this character, so the two cannot run into each other.
    let _ = writeln!(text, "{target}");
    canonical(body, &mut text);
    Sha256::digest(text.as_bytes()).into()
}

fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Number(number) => number_by_value(number, text),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                canonical(item, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (index, (name, member)) in members.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                let _ = write!(text, "{}:", Value::String(name.clone()));
                canonical(member, text);
            }
            text.push('}');
        }
        plain => {
            let _ = write!(text, "{plain}");
        }
    }
}

/// A number as its digits without zeros at either end, and an exponent: `1.50e2`, `150` and `15E1` are all `15e1`.
fn number_by_value(number: &Number, text: &mut String) {
    let written = number.to_string();
    let unsigned = written.trim_start_matches('-');
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        text.push('0');
        return;
    }
    let shift = (digits.len() - significant.len()) as i128 - fraction.len() as i128;
    let Some(exponent) = exponent
        .parse::<i128>()
        .ok()
        .and_then(|exponent| exponent.checked_add(shift))
    else {
        // No two spellings of a number this far out are worth telling to be equal.
        text.push_str(&written);
        return;
    };
    if written.starts_with('-') {
        text.push('-');
    }
    let _ = write!(text, "{significant}e{exponent}");
}

/// What starts with these keys named before in their workspaces, by workspace, principal and key.
///
/// # Errors
/// Those of the store.
pub(crate) fn named(
    session: &mut dyn Session,
    keys: &[(WorkspaceId, &str)],
) -> Result<HashMap<(WorkspaceId, String, String), Named>, Error> {
    let texts: Vec<_> = keys
        .iter()
        .map(|(workspace, key)| (workspace.to_string(), *key))
        .collect();
    let rows: Vec<_> = texts
        .iter()
        .map(|(workspace, key)| [Param::Text(workspace), Param::Text(key)])
        .collect();
    let mut found = HashMap::new();
    for rows in rows.chunks(ROWS) {
        let mut params = Vec::new();
        let wanted = values(["", ""], rows, &mut params);
        let rows = session.query(
            &format!(
                "SELECT k.workspace_id, k.principal, k.key, k.fingerprint, k.target_id
                 FROM {wanted} AS w JOIN keys k ON k.workspace_id = w.column1 AND k.kind = 'start' AND k.key = w.column2"
            ),
            &params,
        )?;
        for row in rows {
            let named = Named {
                fingerprint: row.bytes(3)?.to_vec(),
                target: row.text(4)?.into(),
            };
            let key = (row.parsed(0)?, row.text(1)?.into(), row.text(2)?.into());
            found.insert(key, named);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canon(json: &str) -> String {
        let mut text = String::new();
        canonical(&serde_json::from_str(json).unwrap(), &mut text);
        text
    }

    #[test]
    fn requests_that_mean_the_same_have_one_form() {
        assert_eq!(
            canon(r#"{"b":[1,true,null],"a":"é\n"}"#),
            canon(r#" { "a" : "\u00e9\n" , "b" : [ 1.0 , true , null ] }"#)
        );
        assert_eq!(
            canon(r#"{"b":1,"a":{"d":2,"c":3}}"#),
            r#"{"a":{"c":3e0,"d":2e0},"b":1e0}"#
        );
    }

    #[test]
    fn numbers_are_told_apart_by_value_alone() {
        for (written, form) in [
            ("0", "0"),
            ("-0", "0"),
            ("0.000", "0"),
            ("0e99", "0"),
            ("1", "1e0"),
            ("1.0", "1e0"),
            ("10e-1", "1e0"),
            ("150", "15e1"),
            ("1.50E+2", "15e1"),
            ("-0.015", "-15e-3"),
            (
                "123456789012345678901234567890",
                "12345678901234567890123456789e1",
            ),
            ("12345678901234567890.123", "12345678901234567890123e-3"),
            ("1e400", "1e400"),
        ] {
            assert_eq!(canon(written), form, "{written}");
        }
        assert_ne!(canon("9007199254740993"), canon("9007199254740992"));
        assert_ne!(canon("0.1"), canon("0.1000000000000000055511151231257827"));
    }

    #[test]
    fn texts_arrays_and_targets_count() {
        let body = serde_json::json!({"input": [1, 2]});
        assert_ne!(canon("[1,2]"), canon("[2,1]"));
        assert_ne!(canon("\"1\""), canon("1"));
        assert_eq!(fingerprint("agent a", &body), fingerprint("agent a", &body));
        assert_ne!(fingerprint("agent a", &body), fingerprint("agent b", &body));
    }

    #[test]
    fn a_key_is_visible_ascii() {
        let body = Value::Null;
        for good in ["a", "~!", &"k".repeat(255)] {
            assert!(Key::new(good, "t", &body).is_ok(), "{good}");
        }
        for bad in ["", " ", "a b", "é", "a\n", &"k".repeat(256)] {
            let fault = Key::new(bad, "t", &body).unwrap_err();
            assert_eq!(fault.place, Place::Header("Idempotency-Key"));
        }
    }
}
