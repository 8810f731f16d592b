//! How many bytes and containers a value takes as JSON, without writing it.

use serde_json::{Map, Value};

/// Bytes of the compact JSON text, and nested containers, the value itself counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) bytes: usize,
    pub(super) depth: usize,
}

impl Size {
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::leaf(4),
            Value::Bool(flag) => Self::leaf(if *flag { 4 } else { 5 }),
            Value::Number(number) => Self::leaf(number.as_str().len()),
            Value::String(text) => Self::leaf(string(text)),
            Value::Array(items) => Self::container(items.len(), items.iter().map(Self::of)),
            Value::Object(map) => Self::object(map.iter()),
        }
    }

    /// At least the size of `value` with the members of `patch` merged into it: nothing replaced is taken off.
    pub(super) fn of_patched(value: &Value, patch: &Map<String, Value>) -> Self {
        let (value, patch) = (Self::of(value), Self::object(patch.iter()));
        Self {
            bytes: value.bytes + patch.bytes,
            depth: value.depth.max(patch.depth),
        }
    }

    /// The larger of each.
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.max(other.bytes),
            depth: self.depth.max(other.depth),
        }
    }

    fn leaf(bytes: usize) -> Self {
        Self { bytes, depth: 0 }
    }

    fn object<'a>(members: impl ExactSizeIterator<Item = (&'a String, &'a Value)>) -> Self {
        let count = members.len();
        let sizes = members.map(|(name, value)| {
            let size = Self::of(value);
            Self {
                bytes: string(name) + 1 + size.bytes,
                depth: size.depth,
            }
        });
        Self::container(count, sizes)
    }

    fn container(count: usize, sizes: impl Iterator<Item = Self>) -> Self {
        let inside = sizes.fold(Self::leaf(0), |sum, size| Self {
            bytes: sum.bytes + size.bytes,
            depth: sum.depth.max(size.depth),
        });
        Self {
            bytes: inside.bytes + 2 + count.saturating_sub(1),
            depth: inside.depth + 1,
        }
    }
}

fn string(text: &str) -> usize {
    let escapes: usize = text
        .bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
            0..0x20 => 5,
            _ => 0,
        })
        .sum();
    text.len() + 2 + escapes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_compact_text() {
        for text in [
            r#"{"a":[1,2.50,-3e7],"b":{"c":null,"d":[true,false,{}]},"é":"\"\\\n\u0001ü\b\f\r\t"}"#,
            "[]",
            r#""plain""#,
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(Size::of(&value).bytes, value.to_string().len(), "{text}");
        }
    }

    #[test]
    fn depth_counts_containers() {
        let depth = |text| Size::of(&serde_json::from_str::<Value>(text).unwrap()).depth;
        assert_eq!(depth("1"), 0);
        assert_eq!(depth("{}"), 1);
        assert_eq!(depth(r#"{"a":[{"b":[]}],"c":1}"#), 4);
    }
}
