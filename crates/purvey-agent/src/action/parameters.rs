//! Parameters of an operation, written into its request.

use super::input::RESERVED;
use super::openapi::{Location, OpenApi, Parameter};
use super::{refused, unsupported};
use crate::issue::{IssueCode, Scope};
use crate::{Code, Error};
use http::{HeaderMap, HeaderName, HeaderValue};
use purvey_odp::problem::InvalidParam;
use serde_json::Value;
use url::Url;

/// The URL of an operation with these parameters; those that are fields are added to `headers`.
pub(super) fn target(
    operation: &OpenApi,
    values: &[(String, Value)],
    headers: &mut HeaderMap,
) -> Result<Url, Error> {
    for (name, _) in values {
        let mut known = operation.parameters.iter();
        let known = known.any(|p| p.name == *name && p.location != Location::Elsewhere);
        if !known || values.iter().filter(|(other, _)| other == name).count() > 1 {
            return Err(refused(format!(
                "The parameter {name:?} is not one of the operation's, or there twice."
            )));
        }
    }
    let mut url = operation.url.clone();
    let mut query = Vec::new();
    for parameter in &operation.parameters {
        let value = values.iter().find(|(name, _)| *name == parameter.name);
        let Some((name, value)) = value else {
            if parameter.required || parameter.location == Location::Path {
                return Err(invalid(parameter, "Is needed."));
            }
            continue;
        };
        let texts = texts(parameter, value)?;
        match parameter.location {
            Location::Path => {
                let text = path_segment(parameter, &texts)?;
                url = url.replace(&format!("{{{name}}}"), &text);
            }
            Location::Query => query.extend(pairs(parameter, &texts)),
            Location::Header => {
                let field = field(parameter, &texts.join(","))?;
                headers.insert(field.0, field.1);
            }
            Location::Elsewhere => {}
        }
    }
    let mut url = Url::parse(&url).map_err(|_| refused("The operation has no usable URL."))?;
    if !query.is_empty() {
        url.set_query(Some(&query.join("&")));
    }
    Ok(url)
}

fn field(parameter: &Parameter, value: &str) -> Result<(HeaderName, HeaderValue), Error> {
    let name = HeaderName::from_bytes(parameter.name.as_bytes()).ok();
    let name = name.filter(|name| !RESERVED.contains(&name.as_str()));
    name.zip(HeaderValue::from_str(value).ok())
        .ok_or_else(|| invalid(parameter, "Cannot be a field of the request."))
}

/// Holds the values of parameters to their schemas.
pub(super) async fn check(operation: &OpenApi, values: &[(String, Value)]) -> Result<(), Error> {
    for parameter in &operation.parameters {
        let value = values.iter().find(|(name, _)| *name == parameter.name);
        let (Some((_, value)), Some(at)) = (value, &parameter.schema) else {
            continue;
        };
        let schema = operation.schema(at).map_err(unsupported)?;
        let mut first = None;
        for reading in readings(operation, at, value) {
            match schema.check(Scope::Action, "", reading).await {
                Ok(()) => {
                    first = None;
                    break;
                }
                Err(issue) if issue.code == IssueCode::Mismatch => {
                    first.get_or_insert(issue);
                }
                Err(issue) => return Err(Error::new(Code::UnsupportedSchema, issue.message)),
            }
        }
        if let Some(issue) = first {
            let reason = match issue.pointer.as_str() {
                "" => issue.message,
                pointer => format!("At {pointer}: {}", issue.message),
            };
            return Err(invalid(parameter, &reason));
        }
    }
    Ok(())
}

/// What a value can mean to whoever receives it, the likeliest first: it is sent as text, whatever it was given as, and its
/// schema says what that text is.
fn readings(operation: &OpenApi, schema: &str, value: &Value) -> Vec<Value> {
    let (types, items) = operation.types(schema);
    let fits = meanings(value).into_iter().find(|v| is_of(&types, v));
    match (value, fits) {
        (Value::Array(values), _) => lists(operation, &items, values),
        (_, Some(fitting)) => vec![fitting],
        // One element is a list too.
        (scalar, None) if types.contains(&"array") => {
            lists(operation, &items, std::slice::from_ref(scalar))
        }
        (scalar, None) if types.is_empty() => meanings(scalar),
        (scalar, None) => vec![scalar.clone()],
    }
}

fn lists(operation: &OpenApi, items: &str, values: &[Value]) -> Vec<Value> {
    let (types, _) = operation.types(items);
    let list = |meaning: fn(Vec<Value>) -> Option<Value>| -> Value {
        let each = values.iter().map(|value| {
            let mut meanings = meanings(value);
            let fitting = meanings.iter().position(|v| is_of(&types, v));
            match fitting {
                Some(index) => meanings.swap_remove(index),
                None => meaning(meanings).unwrap_or_default(),
            }
        });
        each.collect()
    };
    let first = list(|meanings| meanings.into_iter().next());
    match types.is_empty() {
        true => vec![first, list(|mut meanings| meanings.pop())],
        false => vec![first],
    }
}

/// A value, and the other that is the same text.
fn meanings(value: &Value) -> Vec<Value> {
    let other = match value {
        Value::String(text) => match text.parse() {
            Ok(flag) => Some(Value::Bool(flag)),
            Err(_) => serde_json::from_str(text).ok().map(Value::Number),
        },
        Value::Number(_) | Value::Bool(_) => Some(value.to_string().into()),
        _ => None,
    };
    std::iter::once(value.clone()).chain(other).collect()
}

fn is_of(types: &[&str], value: &Value) -> bool {
    types.iter().any(|name| match *name {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" | "number" => value.is_number(),
        _ => false,
    })
}

fn invalid(parameter: &Parameter, reason: &str) -> Error {
    let param = match parameter.location {
        Location::Path => InvalidParam::path,
        Location::Header => InvalidParam::header,
        Location::Query | Location::Elsewhere => InvalidParam::query,
    };
    let message = format!("The parameter {:?}: {reason}", parameter.name);
    refused(message).with_invalid_param(param(&parameter.name, reason))
}

/// The texts of a scalar or an array of scalars.
fn texts(parameter: &Parameter, value: &Value) -> Result<Vec<String>, Error> {
    let items = match value {
        Value::Array(items) if !items.is_empty() => items.as_slice(),
        scalar => std::slice::from_ref(scalar),
    };
    items
        .iter()
        .map(|item| match item {
            Value::String(text) => Ok(text.clone()),
            Value::Number(_) | Value::Bool(_) => Ok(item.to_string()),
            _ => Err(invalid(
                parameter,
                "Must be a string, a number, a boolean or an array of them.",
            )),
        })
        .collect()
}

fn path_segment(parameter: &Parameter, texts: &[String]) -> Result<String, Error> {
    let encoded: Vec<String> = texts.iter().map(|text| encode(text)).collect();
    let segment = encoded.join(",");
    if matches!(segment.as_str(), "" | "." | "..") {
        return Err(invalid(parameter, &format!("Cannot be {segment:?}.")));
    }
    Ok(segment)
}

fn pairs(parameter: &Parameter, texts: &[String]) -> Vec<String> {
    let name = encode(&parameter.name);
    let encoded = texts.iter().map(|text| encode(text));
    if parameter.explode {
        return encoded.map(|text| format!("{name}={text}")).collect();
    }
    let encoded: Vec<String> = encoded.collect();
    vec![format!("{name}={}", encoded.join(","))]
}

/// Percent-encodes everything but the unreserved characters (RFC 3986 §2.3).
fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
