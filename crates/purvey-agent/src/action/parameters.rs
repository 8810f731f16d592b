//! Parameters of an operation, written into its request.

use super::input::RESERVED;
use super::openapi::{Location, OpenApi, Parameter};
use super::refused;
use crate::Error;
use http::{HeaderMap, HeaderName, HeaderValue};
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
                return Err(refused(format!(
                    "The parameter {:?} is needed.",
                    parameter.name
                )));
            }
            continue;
        };
        let texts = texts(name, value)?;
        match parameter.location {
            Location::Path => {
                let text = path_segment(parameter, &texts)?;
                url = url.replace(&format!("{{{name}}}"), &text);
            }
            Location::Query => query.extend(pairs(parameter, &texts)),
            Location::Header => {
                let field = field(name, &texts.join(","))?;
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

fn field(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Error> {
    let name = HeaderName::from_bytes(name.as_bytes()).ok();
    let name = name.filter(|name| !RESERVED.contains(&name.as_str()));
    name.zip(HeaderValue::from_str(value).ok())
        .ok_or_else(|| refused("A parameter cannot be a field of the request."))
}

/// The texts of a scalar or an array of scalars.
fn texts(name: &str, value: &Value) -> Result<Vec<String>, Error> {
    let items = match value {
        Value::Array(items) if !items.is_empty() => items.as_slice(),
        scalar => std::slice::from_ref(scalar),
    };
    items
        .iter()
        .map(|item| match item {
            Value::String(text) => Ok(text.clone()),
            Value::Number(_) | Value::Bool(_) => Ok(item.to_string()),
            _ => Err(refused(format!(
                "The parameter {name:?} must be a string, a number, a boolean or an array of them."
            ))),
        })
        .collect()
}

fn path_segment(parameter: &Parameter, texts: &[String]) -> Result<String, Error> {
    let encoded: Vec<String> = texts.iter().map(|text| encode(text)).collect();
    let segment = encoded.join(",");
    if matches!(segment.as_str(), "" | "." | "..") {
        let message = format!("The parameter {:?} cannot be {segment:?}.", parameter.name);
        return Err(refused(message));
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
