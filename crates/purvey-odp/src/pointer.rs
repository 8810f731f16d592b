//! JSON Pointers (RFC 6901).

use crate::report::Invalid;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::fmt;

/// A JSON Pointer in its string form (never the URI fragment form). Compared as text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pointer {
    text: Box<str>,
    tokens: Box<[Box<str>]>,
}

impl Pointer {
    /// The pointer written as `text`; `""` is the whole document.
    ///
    /// # Errors
    /// When `text` is neither empty nor begins with `/`, or holds a `~` that is not followed by `0` or `1`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let mut tokens = text.split('/');
        if tokens.next() != Some("") {
            return Err(Invalid::one("", "Must be empty or begin with a slash."));
        }
        let tokens: Option<Box<[Box<str>]>> = tokens.map(unescape).collect();
        match tokens {
            Some(tokens) => Ok(Self {
                text: text.into(),
                tokens,
            }),
            None => Err(Invalid::one("", "Must have every ~ followed by 0 or 1.")),
        }
    }

    /// The pointer as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The member names and array indexes on the way, unescaped.
    pub fn tokens(&self) -> impl ExactSizeIterator<Item = &str> + DoubleEndedIterator {
        self.tokens.iter().map(|token| &**token)
    }

    /// The value in `root` that the pointer identifies, if there is one.
    pub fn resolve<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        let mut at = root;
        for token in &self.tokens {
            at = match at {
                Value::Object(map) => map.get(&**token)?,
                Value::Array(items) => items.get(index(token)?)?,
                _ => return None,
            };
        }
        Some(at)
    }

    /// Every string, number and boolean at the pointer, in document order. An array stands for its elements, at the end of the
    /// pointer and on the way (unless the token is an index); null and objects at the end give nothing.
    pub fn values<'v>(&self, root: &'v Value) -> Vec<&'v Value> {
        let mut found = Vec::new();
        collect(root, &self.tokens, &mut found);
        found
    }
}

/// Appends the scalars of `at` under `tokens`. Each step goes one level down, so the work is bounded by the document's size and
/// the recursion by its depth.
fn collect<'v>(at: &'v Value, tokens: &[Box<str>], found: &mut Vec<&'v Value>) {
    match (at, tokens.split_first()) {
        (Value::Array(items), Some((token, rest))) if index(token).is_some() => {
            if let Some(item) = index(token).and_then(|i| items.get(i)) {
                collect(item, rest, found);
            }
        }
        (Value::Array(items), _) => {
            for item in items {
                collect(item, tokens, found);
            }
        }
        (Value::Object(map), Some((token, rest))) => {
            if let Some(member) = map.get(&**token) {
                collect(member, rest, found);
            }
        }
        (Value::String(_) | Value::Number(_) | Value::Bool(_), None) => found.push(at),
        _ => {}
    }
}

/// An array index: `0`, or decimal digits without a leading zero.
fn index(token: &str) -> Option<usize> {
    let plain = token == "0" || (!token.starts_with('0') && !token.is_empty());
    (plain && token.bytes().all(|b| b.is_ascii_digit()))
        .then(|| token.parse().ok())
        .flatten()
}

fn unescape(token: &str) -> Option<Box<str>> {
    if !token.contains('~') {
        return Some(token.into());
    }
    let mut out = String::with_capacity(token.len());
    let mut chars = token.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '~' => match chars.next() {
                Some('0') => '~',
                Some('1') => '/',
                _ => return None,
            },
            c => c,
        });
    }
    Some(out.into_boxed_str())
}

/// Appends `/` and `token`, escaped, to the pointer in `out`.
pub fn push_token(out: &mut String, token: &str) {
    out.push('/');
    for c in token.chars() {
        match c {
            '~' => out.push_str("~0"),
            '/' => out.push_str("~1"),
            c => out.push(c),
        }
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl AsRef<str> for Pointer {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl Serialize for Pointer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pointer(text: &str) -> Pointer {
        Pointer::parse(text).unwrap()
    }

    #[test]
    fn the_examples_of_rfc_6901() {
        let document = json!({
            "foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, "k\"l": 6, " ": 7, "m~n": 8
        });
        let at = |text| pointer(text).resolve(&document).cloned();
        assert_eq!(at(""), Some(document.clone()));
        assert_eq!(at("/foo"), Some(json!(["bar", "baz"])));
        assert_eq!(at("/foo/0"), Some(json!("bar")));
        assert_eq!(at("/"), Some(json!(0)));
        assert_eq!(at("/a~1b"), Some(json!(1)));
        assert_eq!(at("/c%d"), Some(json!(2)));
        assert_eq!(at("/e^f"), Some(json!(3)));
        assert_eq!(at("/g|h"), Some(json!(4)));
        assert_eq!(at("/i\\j"), Some(json!(5)));
        assert_eq!(at("/k\"l"), Some(json!(6)));
        assert_eq!(at("/ "), Some(json!(7)));
        assert_eq!(at("/m~0n"), Some(json!(8)));
        for none in [
            "/foo/2", "/foo/-", "/foo/00", "/foo/+1", "/foo/", "/x", "/foo/0/0",
        ] {
            assert_eq!(at(none), None, "{none}");
        }
    }

    #[test]
    fn syntax() {
        for text in ["a", "#/a", "/~", "/~2", "/a~", " /a"] {
            assert!(Pointer::parse(text).is_err(), "{text}");
        }
        let tilde = pointer("/~01/~10");
        assert_eq!(tilde.tokens().collect::<Vec<_>>(), ["~1", "/0"]);
        let mut text = String::new();
        tilde
            .tokens()
            .for_each(|token| push_token(&mut text, token));
        assert_eq!(text, "/~01/~10");
    }

    #[test]
    fn values_descend_into_arrays() {
        let document = json!({
            "one": 1, "none": null, "object": {"a": 1}, "empty": [],
            "tags": ["x", ["y", null, {"z": 1}], true],
            "items": [{"n": 1}, {"n": [2, 3]}, {"m": 4}, 5, [{"n": 6}]]
        });
        let at = |text| -> Vec<Value> {
            pointer(text)
                .values(&document)
                .into_iter()
                .cloned()
                .collect()
        };
        assert_eq!(at("/one"), [json!(1)]);
        assert_eq!(at("/tags"), [json!("x"), json!("y"), json!(true)]);
        assert_eq!(at("/tags/1"), [json!("y")]);
        assert_eq!(at("/items/n"), [json!(1), json!(2), json!(3), json!(6)]);
        assert_eq!(at("/items/1/n"), [json!(2), json!(3)]);
        for nothing in [
            "/none", "/object", "/empty", "/missing", "/one/x", "/tags/9",
        ] {
            assert_eq!(at(nothing), Vec::<Value>::new(), "{nothing}");
        }
    }
}
