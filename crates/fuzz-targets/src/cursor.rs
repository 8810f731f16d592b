//! Any bytes as a continuation, as what a continuation holds, and as what somebody does to one.

use purvey_catalog::Error;
use purvey_catalog::cursor::{Cursor, CursorKeys, Expected, Request, SearchPlace};
use purvey_catalog::fs::Durability;
use purvey_odp::language::LanguageTag;
use purvey_odp::offering::Representation;
use std::sync::LazyLock;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const LANGUAGES: [&str; 4] = ["en", "de-AT", "zh-Hant-TW", "x-private"];
/// Text of this many bytes still fits a continuation, beside everything else that one holds.
const SURELY_FITS: usize = 512;

/// Fresh keys; the file is read once, so that the directory may go.
fn keys() -> CursorKeys {
    let directory = tempfile::tempdir().expect("a temporary directory");
    CursorKeys::open(directory.path(), &Durability::Off).expect("keys")
}

static OURS: LazyLock<CursorKeys> = LazyLock::new(keys);
static FOREIGN: LazyLock<CursorKeys> = LazyLock::new(keys);

/// What was sealed comes back to whom it was for, until its time is over. Nothing else opens.
pub fn holds(input: &[u8]) {
    let expected = Expected {
        operation: "list-offerings",
        scope: None,
        access: 0,
    };
    if let Ok(text) = std::str::from_utf8(input) {
        refused(&OURS, text, &expected);
    }
    let mut bytes = Bytes(input);
    let cursor = cursor(&mut bytes);
    let length = cursor.operation.len()
        + cursor.scope.as_ref().map_or(0, String::len)
        + cursor.last_id.len();
    let kept = match cursor.search.as_ref().map(|place| &place.request) {
        Some(Request::Inline(text)) => text.len(),
        _ => 0,
    };
    let text = match OURS.seal(&cursor) {
        Ok(text) => text,
        Err(error) => return assert!(length + kept > SURELY_FITS, "{error}"),
    };
    let expected = Expected {
        operation: &cursor.operation,
        scope: cursor.scope.as_deref(),
        access: cursor.access,
    };
    let opened = OURS
        .open_cursor(&text, &expected, cursor.expires)
        .expect("our own continuation");
    assert_eq!(opened, cursor);
    assert_eq!(OURS.seal(&opened).expect("what was sealed before"), text);
    if let Some(late) = cursor.expires.checked_add(1) {
        let late = OURS.open_cursor(&text, &expected, late);
        assert!(matches!(late, Err(Error::CursorExpired)));
    }
    refused(&FOREIGN, &text, &expected);
    let access = cursor.access.wrapping_add(1);
    refused(&OURS, &text, &Expected { access, ..expected });
    refused(
        &OURS,
        &text,
        &Expected {
            operation: "another",
            ..expected
        },
    );
    let scope = match cursor.scope {
        Some(_) => None,
        None => Some(""),
    };
    refused(&OURS, &text, &Expected { scope, ..expected });
    let tampered = tampered(&mut bytes, &text);
    if tampered != text {
        refused(&OURS, &tampered, &expected);
    }
}

fn refused(keys: &CursorKeys, text: &str, expected: &Expected<'_>) {
    let opened = keys.open_cursor(text, expected, 0);
    assert!(
        matches!(opened, Err(Error::CursorInvalid)),
        "{text}: {opened:?}"
    );
}

/// Reads fields until there is no more, then zeros.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn number(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    fn word(&mut self) -> u32 {
        (0..4).fold(0, |number, _| number << 8 | u32::from(self.byte()))
    }

    /// Up to 1,020 bytes.
    fn block(&mut self) -> Vec<u8> {
        let length = usize::from(self.byte()) * 4;
        let (block, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        block.to_vec()
    }

    fn text(&mut self) -> String {
        String::from_utf8_lossy(&self.block()).into_owned()
    }
}

fn cursor(bytes: &mut Bytes<'_>) -> Cursor {
    let flags = bytes.byte();
    let languages = LANGUAGES.iter().cycle().take(usize::from(flags >> 4));
    Cursor {
        operation: bytes.text(),
        scope: (flags & 1 != 0).then(|| bytes.text()),
        access: bytes.number(),
        representation: match flags & 2 {
            0 => Representation::Terse,
            _ => Representation::Full,
        },
        preferred: languages
            .map(|tag| LanguageTag::parse(tag).expect("a tag"))
            .collect(),
        limit: bytes.word(),
        generation: bytes.number(),
        last_id: bytes.text(),
        expires: bytes.number(),
        search: (flags & 4 != 0).then(|| SearchPlace {
            request: match flags & 8 {
                0 => Request::Inline(bytes.block()),
                _ => Request::Kept(u128::from(bytes.number()) << 64 | u128::from(bytes.number())),
            },
            score: bytes.word(),
            segment: bytes.word(),
            ordinal: bytes.word(),
        }),
    }
}

/// `text` with up to four characters replaced, left out or put in.
fn tampered(bytes: &mut Bytes<'_>, text: &str) -> String {
    let mut text = text.as_bytes().to_vec();
    for _ in 0..=bytes.byte() % 4 {
        let character = ALPHABET[usize::from(bytes.byte() % 64)];
        let at = bytes.word() as usize % (text.len() + 1);
        match bytes.byte() % 3 {
            0 => text.insert(at, character),
            1 if at < text.len() => drop(text.remove(at)),
            _ => text
                .iter_mut()
                .skip(at)
                .take(1)
                .for_each(|old| *old = character),
        }
    }
    String::from_utf8(text).expect("characters of the alphabet")
}
