//! The grammar of RFC 8259 by recursive descent; the depth bound bounds the recursion.

use super::{DecodeError, scan};
use crate::limits;
use crate::pointer::push_token;
use serde_json::{Map, Number, Value};

/// The value of `text`, which holds nothing else.
pub(super) fn parse(text: &str, depth: usize) -> Result<Value, DecodeError> {
    let mut parser = Parser {
        text,
        at: 0,
        left: depth,
        duplicates: Vec::new(),
    };
    let value = parser.document().map_err(|fault| match *fault {
        Fault::TooDeep => DecodeError::TooDeep { limit: depth },
        Fault::Syntax(reason) => parser.syntax(reason),
    })?;
    match parser.duplicates.as_slice() {
        [] => Ok(value),
        duplicates => Err(DecodeError::DuplicateKeys {
            pointers: pointers(duplicates),
        }),
    }
}

/// The pointers that these tokens make, each once.
#[cold]
fn pointers(duplicates: &[Vec<String>]) -> Vec<String> {
    let mut pointers: Vec<String> = Vec::new();
    for tokens in duplicates {
        let mut pointer = String::new();
        for token in tokens.iter().rev() {
            push_token(&mut pointer, token);
        }
        if !pointers.contains(&pointer) {
            pointers.push(pointer);
        }
    }
    pointers
}

/// Small, so that results are: a fault ends the parse, so its cost does not matter.
enum Fault {
    TooDeep,
    /// The fault is where the parser stands.
    Syntax(&'static str),
}

type Parsed<T> = Result<T, Box<Fault>>;

#[cold]
fn fault<T>(reason: &'static str) -> Parsed<T> {
    Err(Box::new(Fault::Syntax(reason)))
}

struct Parser<'t> {
    text: &'t str,
    /// Bytes read; always on a character boundary when a string is cut.
    at: usize,
    /// Containers that may still be opened inside the present one.
    left: usize,
    /// Members that their object had before: the tokens of the pointer within what is open, innermost first.
    duplicates: Vec<Vec<String>>,
}

impl<'t> Parser<'t> {
    fn document(&mut self) -> Parsed<Value> {
        if self.text.starts_with('\u{feff}') {
            return fault("A byte order mark is not part of JSON.");
        }
        let value = self.value()?;
        self.space();
        match self.peek() {
            None => Ok(value),
            Some(_) => fault("There is more after the value."),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// The next byte that is not white space, without taking it.
    fn token(&mut self) -> Option<u8> {
        self.space();
        self.peek()
    }

    fn value(&mut self) -> Parsed<Value> {
        match self.token() {
            Some(b'"') => Ok(Value::String(self.string()?)),
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(_) => fault("A value must begin here."),
            None => fault("The document ends where a value must begin."),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Parsed<Value> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(value)
        } else {
            fault("A value must begin here.")
        }
    }

    /// Enters a container.
    fn open(&mut self) -> Parsed<()> {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => return Err(Box::new(Fault::TooDeep)),
        }
        self.at += 1;
        Ok(())
    }

    /// Leaves a container.
    fn close(&mut self) {
        self.left += 1;
        self.at += 1;
    }

    fn array(&mut self) -> Parsed<Value> {
        self.open()?;
        let mut items = Vec::new();
        if self.token() == Some(b']') {
            self.close();
            return Ok(Value::Array(items));
        }
        loop {
            let known = self.duplicates.len();
            let item = self.value()?;
            self.within(known, || items.len().to_string());
            items.push(item);
            match self.token() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.close();
                    return Ok(Value::Array(items));
                }
                Some(_) => return fault("A comma or ] must follow an element."),
                None => return fault("The document ends inside an array."),
            }
        }
    }

    fn object(&mut self) -> Parsed<Value> {
        self.open()?;
        let mut map = Map::new();
        if self.token() == Some(b'}') {
            self.close();
            return Ok(Value::Object(map));
        }
        let here = self.duplicates.len();
        loop {
            match self.token() {
                Some(b'"') => {}
                Some(_) => return fault("A member name in double quotes must begin here."),
                None => return fault("The document ends inside an object."),
            }
            let name = self.string()?;
            match self.token() {
                Some(b':') => self.at += 1,
                Some(_) => return fault("A colon must follow a member name."),
                None => return fault("The document ends inside an object."),
            }
            match map.entry(name) {
                serde_json::map::Entry::Occupied(member) => {
                    self.duplicate(here, member.key());
                    let known = self.duplicates.len();
                    self.value()?;
                    self.within(known, || member.key().clone());
                }
                serde_json::map::Entry::Vacant(member) => {
                    let known = self.duplicates.len();
                    let value = self.value()?;
                    self.within(known, || member.key().clone());
                    member.insert(value);
                }
            }
            match self.token() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.close();
                    return Ok(Value::Object(map));
                }
                Some(_) => return fault("A comma or } must follow a member."),
                None => return fault("The document ends inside an object."),
            }
        }
    }

    /// Notes that the open object, before which `here` duplicates were known, has this member again.
    #[cold]
    fn duplicate(&mut self, here: usize, key: &str) {
        let of_object = self.duplicates.get(here..).unwrap_or_default();
        let is_known = of_object.iter().any(|tokens| tokens.as_slice() == [key]);
        if !is_known && self.duplicates.len() < limits::INVALID_PARAMS {
            self.duplicates.push(vec![key.to_owned()]);
        }
    }

    /// Notes that the duplicates found since `known` are inside a member or element.
    fn within(&mut self, known: usize, token: impl Fn() -> String) {
        for tokens in self.duplicates.iter_mut().skip(known) {
            tokens.push(token());
        }
    }

    /// A string, from its opening quote on.
    fn string(&mut self) -> Parsed<String> {
        self.at += 1;
        let plain = self.plain()?;
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(plain.to_owned());
        }
        let mut out = plain.to_owned();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(_) => return fault("A control character must be escaped."),
                None => return fault("The document ends inside a string."),
            }
            out.push_str(self.plain()?);
        }
    }

    /// Takes what comes before the next quote, backslash or control character.
    fn plain(&mut self) -> Parsed<&'t str> {
        let from = self.at;
        self.at += scan::plain(self.text.as_bytes().get(from..).unwrap_or_default());
        match self.text.get(from..self.at) {
            Some(plain) => Ok(plain),
            // Cannot be: a plain part begins after and ends before an ASCII character.
            None => fault("The string is not well formed."),
        }
    }

    /// An escape sequence, from its backslash on.
    fn escape(&mut self) -> Parsed<char> {
        self.at += 1;
        let c = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode_escape();
            }
            Some(_) => return fault("This character cannot be escaped."),
            None => return fault("The document ends inside a string."),
        };
        self.at += 1;
        Ok(c)
    }

    /// The four digits after `\u`, and the other half of a surrogate pair.
    fn unicode_escape(&mut self) -> Parsed<char> {
        const LONE: &str = "A surrogate must be one of a pair.";
        let first = self.hex4()?;
        if !(0xd800..0xe000).contains(&first) {
            return char::from_u32(first).map_or_else(|| fault(LONE), Ok);
        }
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if first >= 0xdc00 || !rest.starts_with(b"\\u") {
            return fault(LONE);
        }
        self.at += 2;
        let second = self.hex4()?;
        if !(0xdc00..0xe000).contains(&second) {
            return fault(LONE);
        }
        let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        char::from_u32(code).map_or_else(|| fault(LONE), Ok)
    }

    fn hex4(&mut self) -> Parsed<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|b| char::from(b).to_digit(16));
            let Some(digit) = digit else {
                return fault("\\u must be followed by four hexadecimal digits.");
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }

    fn number(&mut self) -> Parsed<Value> {
        let from = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return fault("A digit must follow the minus sign."),
        }
        if let Some(b'0'..=b'9') = self.peek() {
            return fault("A number must not begin with a zero.");
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        let text = self.text.get(from..self.at).unwrap_or_default();
        // The only way to a number that keeps its text: parsing would rewrite `1E5` as `1e+5`.
        Ok(Value::Number(Number::from_string_unchecked(
            text.to_owned(),
        )))
    }

    fn digits(&mut self) -> Parsed<()> {
        let from = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == from {
            return fault("A digit must be here.");
        }
        Ok(())
    }

    #[cold]
    fn syntax(&self, reason: &'static str) -> DecodeError {
        let before = self.text.as_bytes().get(..self.at).unwrap_or_default();
        let line_start = before
            .iter()
            .rposition(|&b| b == b'\n')
            .map_or(0, |newline| newline + 1);
        // Bytes that continue a character do not count as columns.
        let characters = |bytes: &[u8]| bytes.iter().filter(|&&b| b & 0xc0 != 0x80).count();
        DecodeError::Syntax {
            offset: self.at,
            line: 1 + before.iter().filter(|&&b| b == b'\n').count(),
            column: 1 + characters(before.get(line_start..).unwrap_or_default()),
            reason,
        }
    }
}
