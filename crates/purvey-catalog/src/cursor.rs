//! Sealed continuations.
//!
//! A cursor is everything that the next page depends on, sealed with AES-SIV: nobody but this Service can make or change one, and the same page
//! always gives the same text, so that ETags stay. Text: base64url of format (1 byte), key id (1 byte), and the sealed contents.

mod keys;

use crate::Error;
use crate::fs::{Durability, read};
use crate::segment::codec::{Decoder, put_block, put_text};
use aes_siv::KeyInit;
use aes_siv::siv::Aes256Siv;
use arc_swap::ArcSwap;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use keys::{Key, Loaded, encode_keys, load, stamp};
use purvey_odp::language::LanguageTag;
use purvey_odp::limits;
use purvey_odp::offering::Representation;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Expiries are rounded up to this: pages handed out around the same time are the same bytes.
pub const EXPIRY_STEP_SECONDS: u64 = 900;

/// Format of continuations that need nothing but an id, and of those of a search.
const FORMAT: u8 = 1;
const SEARCH_FORMAT: u8 = 2;
/// Longest text that is looked at; the longest `next` is shorter.
const TEXT_BYTES: usize = limits::NEXT_CHARS;
/// How long servers may take to notice that the keys were rotated, in seconds: until then they seal with the old one.
const NOTICE_SECONDS: u64 = 600;
/// Most keys in the file; an id is one byte.
const MOST_KEYS: usize = 200;

/// What a continuation goes on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// The protocol's name of the operation.
    pub operation: String,
    /// The Collection that the operation is about, if it is.
    pub scope: Option<String>,
    /// Whom the sequence is for; 0 is the anonymous public.
    pub access: u64,
    /// Terse or Full.
    pub representation: Representation,
    /// Languages in order of preference.
    pub preferred: Vec<LanguageTag>,
    /// Items on each page.
    pub limit: u32,
    /// The generation that the sequence comes from.
    pub generation: u64,
    /// The id after which to go on.
    pub last_id: String,
    /// Unix seconds from which it no longer works.
    pub expires: u64,
    /// What a search goes on with; nothing for lists.
    pub search: Option<SearchPlace>,
}

/// What a continuation of a search has beside the last id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPlace {
    /// The request.
    pub request: Request,
    /// The bits of the last item's score.
    pub score: u32,
    /// The place of the last item's segment in the generation.
    pub segment: u32,
    /// Its ordinal there.
    pub ordinal: u32,
}

/// The request of a search, without what concerns the first page alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// As JSON text.
    Inline(Vec<u8>),
    /// Kept by the Service under this digest.
    Kept(u128),
}

/// What a request may resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected<'a> {
    /// The protocol's name of the operation.
    pub operation: &'a str,
    /// The Collection that the operation is about, if it is.
    pub scope: Option<&'a str>,
    /// Who asks.
    pub access: u64,
}

/// When a continuation issued at `now` expires: an hour from the next quarter.
pub fn expiry(now: u64) -> u64 {
    now.checked_next_multiple_of(EXPIRY_STEP_SECONDS)
        .unwrap_or(now)
        .saturating_add(limits::CONTINUATION_SECONDS)
}

/// The keys that seal cursors: the last one seals, all of them open. Follows the file when another process rotates them.
pub struct CursorKeys {
    path: PathBuf,
    durability: Durability,
    loaded: ArcSwap<Loaded>,
}

impl CursorKeys {
    /// Reads the keys of the data directory `dir`, making the first one when there is none. The file is readable by its owner only.
    ///
    /// # Errors
    /// [`Error::Io`], also when the system has no random bytes; [`Error::Format`]; [`Error::Corrupt`].
    pub fn open(dir: &Path, durability: &Durability) -> Result<Self, Error> {
        let keys = durability.create_dir(dir, "keys")?;
        let path = keys.join("cursor");
        if read(&path)?.is_some() {
            // Whoever made it may have been killed before it synced the names.
            durability.sync_dir(&keys)?;
            durability.sync_dir(dir)?;
        } else {
            // Another process may be faster: what is in the file counts.
            let first = Key::fresh(&path, 0)?;
            durability.write_secret_once(&path, &encode_keys(&[first]))?;
        }
        Ok(Self {
            loaded: ArcSwap::from_pointee(load(&path)?),
            durability: durability.clone(),
            path,
        })
    }

    /// Makes a new key, which seals from `now` (Unix seconds) on. The others open what they sealed for as long as that may live, and
    /// for a day more say that it has expired; then they are dropped. Servers on the same directory notice within a second.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`]; [`Error::Conflict`] after more than 200 rotations in a day.
    pub fn rotate(&self, now: u64) -> Result<(), Error> {
        self.rewrite(now, |keys| {
            if keys.len() >= MOST_KEYS {
                return Err(Error::Conflict {
                    detail: "there were too many rotations in one day; wait".to_owned(),
                });
            }
            let mut id = keys.last().map_or(0, |last| last.id);
            while keys.iter().any(|key| key.id == id) {
                id = id.wrapping_add(1);
            }
            for key in keys.iter_mut().filter(|key| key.until.is_none()) {
                key.until = Some(expiry(now.saturating_add(NOTICE_SECONDS)));
            }
            keys.push(Key::fresh(&self.path, id)?);
            Ok(())
        })
    }

    /// How many keys there are, the one that seals included.
    pub fn count(&self) -> usize {
        self.loaded.load().keys.len()
    }

    /// Drops keys whose time is over at `now`.
    ///
    /// # Errors
    /// As [`CursorKeys::rotate`].
    pub(crate) fn purge(&self, now: u64) -> Result<(), Error> {
        if self.loaded.load().keys.iter().all(|key| key.kept(now)) {
            return Ok(());
        }
        self.rewrite(now, |_| Ok(()))
    }

    /// Reads the file again when it is another one.
    ///
    /// # Errors
    /// As [`CursorKeys::open`].
    pub(crate) fn refresh(&self) -> Result<(), Error> {
        if stamp(&self.path)? != self.loaded.load().stamp {
            self.loaded.store(Arc::new(load(&self.path)?));
        }
        Ok(())
    }

    /// Changes the file's keys while nobody else does.
    fn rewrite(
        &self,
        now: u64,
        change: impl FnOnce(&mut Vec<Key>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let lock = self.path.with_extension("lock");
        let file = File::options()
            .create(true)
            .append(true)
            .open(&lock)
            .map_err(Error::io(&lock))?;
        file.lock().map_err(Error::io(&lock))?;
        let mut keys = load(&self.path)?.keys;
        keys.retain(|key| key.kept(now));
        change(&mut keys)?;
        self.durability
            .write_secret(&self.path, &encode_keys(&keys))?;
        self.refresh()
    }

    /// The text of a cursor, in characters that need no escaping in a URL.
    ///
    /// # Errors
    /// [`Error::Conflict`] when it would be longer than a `next` may be; only oversized ids or languages do that.
    pub fn seal(&self, cursor: &Cursor) -> Result<String, Error> {
        let loaded = self.loaded.load();
        let sealed = encode(cursor).and_then(|plain| {
            let key = loaded.keys.last()?;
            let format = match cursor.search {
                None => FORMAT,
                Some(_) => SEARCH_FORMAT,
            };
            let head = [format, key.id];
            let sealed = Aes256Siv::new(&key.bytes.into())
                .encrypt([head], &plain)
                .ok()?;
            Some([head.as_slice(), &sealed].concat())
        });
        let text = sealed.map(|sealed| URL_SAFE_NO_PAD.encode(sealed));
        text.filter(|text| text.len() < TEXT_BYTES)
            .ok_or_else(|| Error::Conflict {
                detail: "the continuation is too long".to_owned(),
            })
    }

    /// Reads a cursor that this Service issued for the expected operation and context.
    ///
    /// # Errors
    /// [`Error::CursorInvalid`] when it is not one; [`Error::CursorExpired`] when it is, and its time is over at `now`.
    pub fn open_cursor(
        &self,
        text: &str,
        expected: &Expected<'_>,
        now: u64,
    ) -> Result<Cursor, Error> {
        let cursor = self.unseal(text, now).ok_or(Error::CursorInvalid)?;
        let same = cursor.operation == expected.operation
            && cursor.scope.as_deref() == expected.scope
            && cursor.access == expected.access;
        if !same {
            return Err(Error::CursorInvalid);
        }
        // The clock shows whole seconds: only after that one has passed was it a whole hour since any moment of the first.
        if now > cursor.expires {
            return Err(Error::CursorExpired);
        }
        Ok(cursor)
    }

    fn unseal(&self, text: &str, now: u64) -> Option<Cursor> {
        if text.len() > TEXT_BYTES {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (head, sealed) = bytes.split_first_chunk::<2>()?;
        let [format @ (FORMAT | SEARCH_FORMAT), id] = *head else {
            return None;
        };
        let mut loaded = self.loaded.load();
        let mut key = loaded.keys.iter().find(|key| key.id == id);
        if key.is_none() && self.refresh().is_ok() {
            // Another process may have sealed it a moment after it rotated.
            loaded = self.loaded.load();
            key = loaded.keys.iter().find(|key| key.id == id);
        }
        let key = key.filter(|key| key.kept(now))?;
        let plain = Aes256Siv::new(&key.bytes.into())
            .decrypt([head], sealed)
            .ok()?;
        let cursor = decode(format, &plain)?;
        // A key that no longer seals cannot have sealed what outlives it: somebody else has it.
        let genuine = key.until.is_none_or(|until| cursor.expires <= until);
        genuine.then_some(cursor)
    }
}

impl std::fmt::Debug for CursorKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the keys themselves.
        write!(f, "CursorKeys({})", self.loaded.load().keys.len())
    }
}

fn encode(cursor: &Cursor) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(128);
    put_text(&mut out, &cursor.operation)?;
    out.push(cursor.scope.is_some().into());
    put_text(&mut out, cursor.scope.as_deref().unwrap_or_default())?;
    out.extend(cursor.access.to_le_bytes());
    out.push(match cursor.representation {
        Representation::Terse => 0,
        Representation::Full => 1,
    });
    out.push(u8::try_from(cursor.preferred.len()).ok()?);
    for language in &cursor.preferred {
        put_text(&mut out, language.as_str())?;
    }
    out.extend(cursor.limit.to_le_bytes());
    out.extend(cursor.generation.to_le_bytes());
    put_text(&mut out, &cursor.last_id)?;
    out.extend(cursor.expires.to_le_bytes());
    if let Some(search) = &cursor.search {
        out.extend(search.score.to_le_bytes());
        out.extend(search.segment.to_le_bytes());
        out.extend(search.ordinal.to_le_bytes());
        match &search.request {
            Request::Inline(text) => {
                out.push(0);
                put_block(&mut out, text)?;
            }
            Request::Kept(digest) => {
                out.push(1);
                out.extend(digest.to_le_bytes());
            }
        }
    }
    Some(out)
}

fn decode_search(decoder: &mut Decoder<'_>) -> Option<SearchPlace> {
    Some(SearchPlace {
        score: decoder.u32()?,
        segment: decoder.u32()?,
        ordinal: decoder.u32()?,
        request: match decoder.u8()? {
            0 => Request::Inline(decoder.block()?.to_vec()),
            1 => Request::Kept(u128::from_le_bytes(decoder.bytes(16)?.try_into().ok()?)),
            _ => return None,
        },
    })
}

fn decode(format: u8, plain: &[u8]) -> Option<Cursor> {
    let decoder = &mut Decoder(plain);
    let operation = decoder.text()?.to_owned();
    let scoped = decoder.u8()? == 1;
    let scope = decoder.text()?.to_owned();
    let access = decoder.u64()?;
    let representation = match decoder.u8()? {
        0 => Representation::Terse,
        1 => Representation::Full,
        _ => return None,
    };
    let mut preferred = Vec::new();
    for _ in 0..decoder.u8()? {
        preferred.push(LanguageTag::parse(decoder.text()?).ok()?);
    }
    let cursor = Cursor {
        operation,
        scope: scoped.then_some(scope),
        access,
        representation,
        preferred,
        limit: decoder.u32()?,
        generation: decoder.u64()?,
        last_id: decoder.text()?.to_owned(),
        expires: decoder.u64()?,
        search: match format {
            SEARCH_FORMAT => Some(decode_search(decoder)?),
            _ => None,
        },
    };
    decoder.end()?;
    Some(cursor)
}
