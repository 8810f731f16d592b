//! Media types and their negotiation (ODP §1; RFC 9110 §8.3.1 and §12.5.1).

/// ODP documents.
pub const ODP: &str = "application/odp+json";
/// Problem Details.
pub const PROBLEM: &str = "application/problem+json";
/// Attribute schemas.
pub const SCHEMA: &str = "application/schema+json";
/// OpenAPI documents; the parameter `version` must be there and `3.1` (ODP §4).
pub const OPENAPI: &str = "application/vnd.oai.openapi+json";

/// The `type/subtype` of a `Content-Type` field in lower case. Parameters must be well formed and mean nothing.
///
/// Nothing for a malformed field; two fields joined by a comma are one.
pub fn essence(content_type: &str) -> Option<String> {
    let mut cursor = Cursor(content_type);
    cursor.space();
    let (kind, subtype) = cursor.media()?;
    while let Some(parameter) = cursor.parameter() {
        parameter.ok()?;
    }
    // A wildcard is a media range, not a media type.
    let whole = cursor.0.is_empty() && kind != "*" && subtype != "*";
    whole.then(|| format!("{kind}/{subtype}").to_ascii_lowercase())
}

/// The value of the parameter `name` (compared without case) of a `Content-Type` field; a quoted one without its quotes and
/// escapes.
///
/// Nothing when the field is malformed, or the parameter is not there or there twice.
pub fn parameter(content_type: &str, name: &str) -> Option<String> {
    essence(content_type)?;
    let mut cursor = Cursor(content_type);
    cursor.space();
    cursor.media()?;
    let mut found = None;
    while let Some(parameter) = cursor.parameter() {
        let (key, value) = parameter.ok()?;
        if key.eq_ignore_ascii_case(name) && found.replace(unescaped(value)).is_some() {
            return None;
        }
    }
    found
}

/// The text of a quoted string's inside.
fn unescaped(inner: &str) -> String {
    let mut chars = inner.chars();
    let mut text = String::with_capacity(inner.len());
    while let Some(c) = chars.next() {
        // An escape at the very end cannot be: the parser takes it for the quote's.
        text.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    text
}

/// Whether an `Accept` field permits the media type `essence` (lower case, no parameters). An absent or empty field permits
/// everything; the most specific range decides; weight zero excludes.
pub fn accepts(accept: Option<&str>, essence: &str) -> bool {
    quality(accept, essence) > 0
}

/// The weight, in thousandths, that an `Accept` field gives to the media type `essence`; see [`accepts`].
///
/// Malformed elements are skipped. Parameters of a range are ignored, since ODP's media types have none.
pub fn quality(accept: Option<&str>, essence: &str) -> u16 {
    let mut cursor = Cursor(accept.unwrap_or_default());
    let (kind, subtype) = essence.split_once('/').unwrap_or((essence, ""));
    let mut best: Option<(u8, u16)> = None;
    let mut empty = true;
    while let Some(element) = cursor.element() {
        empty = false;
        let Some(range) = element else {
            continue;
        };
        let specificity = match (range.kind, range.subtype) {
            ("*", "*") => 0,
            (k, "*") if k.eq_ignore_ascii_case(kind) => 1,
            (k, s) if k.eq_ignore_ascii_case(kind) && s.eq_ignore_ascii_case(subtype) => 2,
            _ => continue,
        };
        best = best.max(Some((specificity, range.weight)));
    }
    match best {
        Some((_, weight)) => weight,
        None if empty => 1000,
        None => 0,
    }
}

/// A `qvalue` in thousandths.
pub(crate) fn weight(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let thousandths = format!("{fraction:0<3}").parse().ok()?;
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(1000),
        _ => None,
    }
}

struct Range<'f> {
    kind: &'f str,
    subtype: &'f str,
    weight: u16,
}

/// What is left of a field.
struct Cursor<'f>(&'f str);

impl<'f> Cursor<'f> {
    fn space(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn take(&mut self, c: char) -> bool {
        match self.0.strip_prefix(c) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn token(&mut self) -> Option<&'f str> {
        let end = self
            .0
            .bytes()
            .position(|b| !is_token(b))
            .unwrap_or(self.0.len());
        let (token, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        (!token.is_empty()).then_some(token)
    }

    fn media(&mut self) -> Option<(&'f str, &'f str)> {
        let kind = self.token()?;
        let subtype = self.take('/').then(|| self.token()).flatten()?;
        Some((kind, subtype))
    }

    /// The next `; name=value`, with what stands around it; nothing when no semicolon follows. An empty one is fine
    /// (RFC 9110 §5.6.6). A quoted value comes without its quotes, escapes kept.
    fn parameter(&mut self) -> Option<Result<(&'f str, &'f str), Malformed>> {
        self.space();
        if !self.take(';') {
            return None;
        }
        self.space();
        if self.0.is_empty() || self.0.starts_with([';', ',']) {
            return Some(Ok(("", "")));
        }
        let parameter = self.token().and_then(|name| {
            self.take('=').then_some(())?;
            let value = if self.0.starts_with('"') {
                self.quoted()
            } else {
                self.token()
            };
            Some((name, value?))
        });
        self.space();
        Some(parameter.ok_or(Malformed))
    }

    fn quoted(&mut self) -> Option<&'f str> {
        let inner = self.0.strip_prefix('"')?;
        let mut escaped = false;
        for (at, c) in inner.char_indices() {
            match c {
                _ if c.is_ascii_control() && c != '\t' => return None,
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => {
                    self.0 = inner.get(at + 1..)?;
                    return inner.get(..at);
                }
                _ => {}
            }
        }
        None
    }

    /// The next non-empty element of a list of media ranges, `Some(None)` for a malformed one; nothing at the end.
    fn element(&mut self) -> Option<Option<Range<'f>>> {
        self.0 = self.0.trim_start_matches([' ', '\t', ',']);
        if self.0.is_empty() {
            return None;
        }
        let range = self.range();
        self.space();
        let ended = self.0.is_empty() || self.0.starts_with(',');
        if !ended {
            // Whatever is wrong here ends at the next comma.
            let (_, rest) = self.0.split_once(',').unwrap_or_default();
            self.0 = rest;
        }
        Some(range.filter(|_| ended))
    }

    fn range(&mut self) -> Option<Range<'f>> {
        let (kind, subtype) = self.media()?;
        let mut q = 1000;
        while let Some(parameter) = self.parameter() {
            let (name, value) = parameter.ok()?;
            if name.eq_ignore_ascii_case("q") {
                q = weight(value)?;
            }
        }
        Some(Range {
            kind,
            subtype,
            weight: q,
        })
    }
}

struct Malformed;

fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_essence_ignores_parameters_and_case() {
        for field in [
            "application/odp+json",
            "Application/ODP+JSON",
            " application/odp+json ",
            "application/odp+json;version=2.0",
            "application/odp+json ; charset=utf-8;a=\"b;\\\"c\"",
            "application/odp+json;",
            "application/odp+json; ; a=b",
        ] {
            assert_eq!(essence(field).as_deref(), Some(ODP), "{field}");
        }
        assert_eq!(
            essence("application/json").as_deref(),
            Some("application/json")
        );
        for field in [
            "",
            "application",
            "application/",
            "/odp+json",
            "application / odp+json",
            "application/odp+json charset=utf-8",
            "application/odp+json; charset",
            "application/odp+json; charset=",
            "application/odp+json; =x",
            "application/odp+json; a = b",
            "application/odp+json; a=\"b",
            "application/odp+json; a=\"b\"c",
            "application/odp+json, application/json",
            "*/*",
            "application/*",
            "application/\u{e9}",
        ] {
            assert_eq!(essence(field), None, "{field}");
        }
    }

    #[test]
    fn parameters() {
        let version = |field| parameter(field, "version");
        for field in [
            "application/vnd.oai.openapi+json;version=3.1",
            "application/vnd.oai.openapi+json; a=b; Version=\"3.1\"",
            "application/vnd.oai.openapi+json ;version=\"3\\.1\";",
        ] {
            assert_eq!(version(field).as_deref(), Some("3.1"), "{field}");
        }
        for field in [
            "application/vnd.oai.openapi+json",
            "application/vnd.oai.openapi+json;aversion=3.1",
            "application/vnd.oai.openapi+json;version=3.1;version=3.1",
            "application/vnd.oai.openapi+json;version=3.1;x",
            "application/vnd.oai.openapi+json;a=\";version=3.1\"",
            "version=3.1",
        ] {
            assert_eq!(version(field), None, "{field}");
        }
    }

    #[test]
    fn acceptable() {
        for field in [
            None,
            Some(""),
            Some(" , "),
            Some("application/odp+json"),
            Some("APPLICATION/odp+JSON"),
            Some("*/*"),
            Some("application/*;q=0.001"),
            Some("text/html, */*;q=0.1"),
            Some("application/odp+json;version=2.0"),
            Some("*/*;q=0, application/odp+json"),
            Some("application/*;q=0, application/odp+json;q=0.5"),
            Some("text/html;a=\"x, application/json;q=0\", application/odp+json"),
            Some("@@, application/odp+json"),
        ] {
            assert!(accepts(field, ODP), "{field:?}");
        }
        for field in [
            "application/json",
            "text/*",
            "application/odp+json;q=0",
            "application/odp+json;q=0.000, */*",
            "*/*, application/*;q=0",
            "application/odp+jsonx",
            "application/odp",
            "garbage",
            "application/odp+json;q=2",
            "text/html;a=\", application/odp+json\"",
        ] {
            assert!(!accepts(Some(field), ODP), "{field}");
        }
    }

    #[test]
    fn the_most_specific_range_gives_the_weight() {
        let field = Some("*/*;q=0.9, application/*;q=0.2;x=y, application/problem+json; Q=0.75");
        assert_eq!(quality(field, ODP), 200);
        assert_eq!(quality(field, PROBLEM), 750);
        assert_eq!(quality(field, "text/html"), 900);
    }

    #[test]
    fn weights() {
        for (text, thousandths) in [
            ("0", 0),
            ("0.", 0),
            ("0.5", 500),
            ("0.05", 50),
            ("0.999", 999),
            ("1", 1000),
            ("1.000", 1000),
        ] {
            assert_eq!(weight(text), Some(thousandths), "{text}");
        }
        for text in [
            "", ".5", "1.001", "2", "0.1234", "-0", "+1", "0.5 ", "1e0", "00",
        ] {
            assert_eq!(weight(text), None, "{text}");
        }
    }
}
