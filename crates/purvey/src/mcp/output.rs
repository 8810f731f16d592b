//! Results: bounded, clean, and what came from a Service apart from what we say.

use crate::text::harmless;
use purvey_agent::{Code, Error, Issue};
use purvey_odp::problem;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};

/// Member under which everything stands that a Service said.
pub(super) const UNTRUSTED: &str = "untrusted";
/// The code that stands for every problem that the protocol does not define.
const UNKNOWN_PROBLEM: &str = "UNKNOWN_PROBLEM";
/// Most bytes of one sentence about an error or an issue.
const SENTENCE: usize = 300;

/// Bytes of a value as JSON.
pub(super) fn size(value: &Value) -> usize {
    value.to_string().len()
}

/// A successful result.
pub(super) fn success(value: Value) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(clean(value).to_string())])
}

/// A failed operation, with what a caller can do about it, in at most `bytes` bytes or so: parameters go first.
pub(super) fn failure(error: &Error, bytes: usize) -> Box<CallToolResult> {
    let mut params: Vec<Value> = error
        .invalid_params()
        .iter()
        .map(|param| {
            json!({
                "in": param.location(),
                "name": param.name(),
                "reason": sentence(param.reason()),
            })
        })
        .collect();
    let mut told = Map::new();
    told.insert("code".to_owned(), json!(code(error)));
    told.insert("retryable".to_owned(), json!(error.retryable()));
    if let Some(wait) = error.retry_after() {
        told.insert("retry_after_seconds".to_owned(), json!(wait.as_secs()));
    }
    if let Some(status) = error.status() {
        told.insert("status".to_owned(), json!(status));
    }
    let mut said = Map::new();
    if code(error) == UNKNOWN_PROBLEM {
        said.insert("code".to_owned(), json!(error.code().as_str()));
    }
    said.insert("message".to_owned(), json!(sentence(error.message())));
    if let Some(id) = error.request_id() {
        said.insert("request_id".to_owned(), json!(id));
    }
    let demands: Vec<_> = error
        .demands()
        .iter()
        .map(|demand| demand.as_str())
        .collect();
    if !demands.is_empty() {
        said.insert("demands".to_owned(), json!(demands));
    }
    let mut left = bytes.saturating_sub(size(&json!(told)) + size(&json!(said)) + 64);
    params.retain(|param| {
        let size = size(&clean(param.clone())) + 1;
        let fits = size <= left;
        left = left.saturating_sub(size);
        fits
    });
    if !params.is_empty() {
        said.insert("invalid_params".to_owned(), params.into());
    }
    failed(json!({"error": told, UNTRUSTED: said}))
}

/// The code of a failure in words of the protocol or of ours: those of a Service can spell anything.
fn code(error: &Error) -> &str {
    match error.code() {
        Code::Problem(problem::Code::Other(_)) => UNKNOWN_PROBLEM,
        code => code.as_str(),
    }
}

/// A call that cannot be carried out as it is.
pub(super) fn refused(code: &str, message: &str) -> Box<CallToolResult> {
    let message = sentence(message);
    failed(json!({"error": {"code": code, "retryable": false, "message": message}}))
}

fn failed(value: Value) -> Box<CallToolResult> {
    let text = ContentBlock::text(clean(value).to_string());
    Box::new(CallToolResult::error(vec![text]))
}

/// Issues as a model can use them, as many as fit into `bytes`.
pub(super) fn issues(issues: &[Issue], bytes: usize) -> Vec<Value> {
    let mut left = bytes;
    let told = issues.iter().map(|issue| {
        clean(json!({
            "code": issue.code.as_str(),
            "pointer": issue.pointer,
            "message": sentence(&issue.message),
        }))
    });
    told.take_while(|issue| {
        let size = size(issue) + 1;
        let fits = size <= left;
        left = left.saturating_sub(size);
        fits
    })
    .collect()
}

/// At most so much of a sentence.
fn sentence(text: &str) -> String {
    let mut text = text.to_owned();
    if text.len() > SENTENCE {
        text.truncate(text.floor_char_boundary(SENTENCE));
        text.push('…');
    }
    text
}

/// The same value, perhaps longer, without characters that hide or turn text: a person has to be able to see what a model reads. Line breaks
/// and tabs stay, since JSON escapes them.
pub(super) fn clean(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(clean_text(&text)),
        Value::Array(items) => Value::Array(items.into_iter().map(clean).collect()),
        Value::Object(map) => {
            let members = map.into_iter();
            Value::Object(
                members
                    .map(|(name, value)| (clean_text(&name), clean(value)))
                    .collect(),
            )
        }
        other => other,
    }
}

fn clean_text(text: &str) -> String {
    let kept = |c: char| matches!(c, '\n' | '\t');
    text.split_inclusive(kept)
        .map(|line| match line.strip_suffix(kept) {
            Some(start) => {
                let end = line.get(start.len()..).unwrap_or_default();
                harmless(start) + end
            }
            None => harmless(line),
        })
        .collect()
}

/// As much of `value` as fits into `bytes`, by whole members and items; what is left out is listed by its pointer.
pub(super) fn fit(
    value: Value,
    bytes: usize,
    pointer: &str,
    omitted: &mut Vec<String>,
) -> Option<Value> {
    if size(&value) <= bytes {
        return Some(value);
    }
    let mut left = bytes.saturating_sub(2);
    match value {
        Value::Object(map) => {
            let mut kept = Map::new();
            let before = omitted.len();
            for (name, member) in map {
                let at = child(pointer, &name);
                // The name, its quotes, a colon and a comma.
                let room = left.saturating_sub(name.len() + 4);
                if let Some(member) = fit(member, room, &at, omitted) {
                    left = room.saturating_sub(size(&member));
                    kept.insert(name, member);
                }
            }
            (!kept.is_empty())
                .then_some(Value::Object(kept))
                .or_else(|| {
                    omitted.truncate(before);
                    omitted.push(pointer.to_owned());
                    None
                })
        }
        Value::Array(items) => {
            let mut kept = Vec::new();
            for (i, item) in items.into_iter().enumerate() {
                let room = left.saturating_sub(1);
                let size = size(&item);
                if size > room {
                    // Later items keep their places: an array is cut, never thinned out.
                    omitted.push(child(pointer, &i.to_string()));
                    break;
                }
                left = room - size;
                kept.push(item);
            }
            Some(Value::Array(kept)).filter(|_| bytes > 2)
        }
        _ => {
            omitted.push(pointer.to_owned());
            None
        }
    }
}

fn child(pointer: &str, name: &str) -> String {
    let mut child = pointer.to_owned();
    purvey_odp::pointer::push_token(&mut child, name);
    child
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(value: Value, bytes: usize) -> (Option<Value>, Vec<String>) {
        let mut omitted = Vec::new();
        let value = fit(value, bytes, "", &mut omitted);
        (value, omitted)
    }

    #[test]
    fn what_fits_stays_whole() {
        let value = json!({"id": "a", "tags": [1, 2]});
        assert_eq!(fitted(value.clone(), 100), (Some(value), vec![]));
    }

    #[test]
    fn what_does_not_fit_is_listed() {
        let value = json!({"id": "a", "text": "x".repeat(100), "n": 1});
        let (kept, omitted) = fitted(value, 40);
        assert_eq!(kept, Some(json!({"id": "a", "n": 1})));
        assert_eq!(omitted, ["/text"]);
        let value = json!({"a": {"b/c": "x".repeat(100), "d": 1}});
        let (kept, omitted) = fitted(value, 40);
        assert_eq!(kept, Some(json!({"a": {"d": 1}})));
        assert_eq!(omitted, ["/a/b~1c"]);
    }

    #[test]
    fn arrays_are_cut_at_their_end() {
        let (kept, omitted) = fitted(json!([1, "x".repeat(50), 2]), 20);
        assert_eq!(kept, Some(json!([1])));
        assert_eq!(omitted, ["/1"]);
    }

    #[test]
    fn hidden_text_is_made_visible() {
        let value = json!({"a\u{202e}": "b\u{e0041}\nc\u{200b}"});
        assert_eq!(
            clean(value),
            json!({"a\\u{202e}": "b\\u{e0041}\nc\\u{200b}"})
        );
    }
}
