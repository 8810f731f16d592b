//! Tokens: what a caller presents to belong to audiences.
//!
//! A token is `pvc_` and 32 random bytes in base64url. Only its SHA-256 is kept, in a small file of its own, so that tokens can be made and
//! revoked while an import holds the record store.

use crate::access::{self, Access};
use crate::catalog::Options;
use crate::clock::Clock;
use crate::error::Error;
use crate::fs::{Durability, read};
use crate::segment::codec::{Frame, corrupt};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use purvey_odp::report::{Invalid, Place, Report};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most tokens of one catalog, expired ones included.
pub const TOKENS: usize = 10_000;
/// Longest name of a token, in code points.
pub const NAME_CHARS: usize = 128;
/// What every token begins with, so that a leaked one can be recognised.
pub const PREFIX: &str = "pvc_";

const FRAME: Frame = Frame {
    magic: *b"PURVTOKN",
    format: 1,
};
const SECRET_BYTES: usize = 32;
/// Characters of a digest that name its token; four billion tokens would have to be made for two of one name.
const ID_CHARS: usize = 12;
/// The file is read again after this time even if it looks unchanged: its times are coarser than writes can be fast.
const TRUST: Duration = Duration::from_secs(1);

/// A token to make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewToken {
    /// What it is for, at most [`NAME_CHARS`]; no two tokens have the same.
    pub name: Option<String>,
    /// The audiences that its bearer belongs to: 1 to [`access::AUDIENCES`] distinct names.
    pub audiences: Vec<String>,
    /// How long it works from now; `None`: until it is revoked.
    pub lifetime: Option<Duration>,
}

/// What is known of a token; never the token itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Token {
    /// Names it, for revoking: the beginning of its SHA-256.
    pub id: String,
    /// What it is for.
    pub name: Option<String>,
    /// The audiences that its bearer belongs to.
    pub audiences: Vec<String>,
    /// Unix seconds when it was made.
    pub created: u64,
    /// Unix seconds from which it no longer works.
    pub expires: Option<u64>,
    /// Its last four characters.
    pub ending: String,
}

/// A token just made. Its text is nowhere else.
#[derive(Clone, PartialEq, Eq)]
pub struct Issued {
    /// What is kept of it.
    pub token: Token,
    /// The text that the bearer presents.
    pub secret: String,
}

impl std::fmt::Debug for Issued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issued")
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

/// A token as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    /// In base64url.
    sha256: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    audiences: Vec<String>,
    created: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<u64>,
    ending: String,
}

/// The tokens of one data directory. Several processes may have them open.
pub struct Tokens {
    dir: PathBuf,
    clock: Arc<dyn Clock>,
    durability: Durability,
    seen: Mutex<Option<Seen>>,
}

/// The file as it was read last.
struct Seen {
    stamp: Option<Stamp>,
    at: Instant,
    bearers: Arc<HashMap<[u8; 32], Bearer>>,
}

struct Bearer {
    access: Access,
    expires: Option<u64>,
}

/// What changes whenever the file is replaced.
#[derive(PartialEq, Eq)]
struct Stamp([i64; 6]);

impl Stamp {
    fn of(file: &Metadata) -> Self {
        let (inode, size) = (file.ino() as i64, file.size() as i64);
        Self([
            inode,
            size,
            file.mtime(),
            file.mtime_nsec(),
            file.ctime(),
            file.ctime_nsec(),
        ])
    }
}

impl Tokens {
    /// The tokens of the data directory `dir`, which must exist.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(dir: &Path, options: &Options) -> Result<Self, Error> {
        let durability = options.durability.clone();
        Ok(Self {
            dir: durability.create_dir(dir, "keys")?,
            clock: Arc::clone(&options.clock),
            durability,
            seen: Mutex::default(),
        })
    }

    /// Makes a token; durable when it returns, and known to running servers within a second.
    ///
    /// # Errors
    /// [`Error::Invalid`] at `/name` or `/audiences`; [`Error::Conflict`] when there are [`TOKENS`] already; [`Error::Io`], also when the
    /// system has no random bytes; [`Error::Format`]; [`Error::Corrupt`].
    pub fn create(&self, new: NewToken) -> Result<Issued, Error> {
        let _lock = self.lock()?;
        let mut entries = self.read()?;
        check(&new, &entries)?;
        if entries.len() >= TOKENS {
            return Err(Error::Conflict {
                detail: format!("there are {TOKENS} tokens already: revoke some"),
            });
        }
        let mut bytes = [0; SECRET_BYTES];
        getrandom::fill(&mut bytes)
            .map_err(|error| Error::io(&self.dir)(std::io::Error::other(error)))?;
        let secret = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
        let created = self.clock.now();
        let entry = Entry {
            sha256: URL_SAFE_NO_PAD.encode(digest(&secret)),
            name: new.name,
            audiences: Access::new(new.audiences)?.audiences().to_vec(),
            created,
            expires: new
                .lifetime
                .map(|lifetime| created.saturating_add(lifetime.as_secs())),
            ending: secret.chars().skip(secret.len() - 4).collect(),
        };
        let token = entry.token();
        entries.push(entry);
        self.write(&entries)?;
        Ok(Issued { token, secret })
    }

    /// All tokens, the oldest first, expired ones too.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`]; [`Error::Corrupt`].
    pub fn list(&self) -> Result<Vec<Token>, Error> {
        Ok(self.read()?.iter().map(Entry::token).collect())
    }

    /// Ends a token, named by its id, its name or its own text. Durable when it returns; running servers refuse it within a second.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Io`]; [`Error::Format`]; [`Error::Corrupt`].
    pub fn revoke(&self, which: &str) -> Result<Token, Error> {
        let _lock = self.lock()?;
        let mut entries = self.read()?;
        let sha256 = URL_SAFE_NO_PAD.encode(digest(which));
        // What names one token exactly goes before what another is merely called.
        let at = entries
            .iter()
            .position(|entry| entry.sha256 == sha256 || entry.id() == which)
            .or_else(|| {
                entries
                    .iter()
                    .position(|entry| entry.name.as_deref() == Some(which))
            })
            .ok_or(Error::NotFound)?;
        let token = entries.remove(at).token();
        self.write(&entries)?;
        Ok(token)
    }

    /// The context of whoever presents `secret`; `None` when it is no token, was revoked or has expired. What other processes change counts
    /// within a second.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`]; [`Error::Corrupt`]: nobody is let in on the strength of a file that cannot be read.
    pub fn authenticate(&self, secret: &str) -> Result<Option<Access>, Error> {
        let bearers = self.bearers()?;
        // Found by its digest, which nobody can choose: how long that takes tells nothing of any token.
        let bearer = bearers.get(&digest(secret));
        let alive = bearer.filter(|bearer| bearer.expires.is_none_or(|end| self.clock.now() < end));
        Ok(alive.map(|bearer| bearer.access.clone()))
    }

    fn bearers(&self) -> Result<Arc<HashMap<[u8; 32], Bearer>>, Error> {
        let path = self.path();
        let stamp = match std::fs::metadata(&path) {
            Ok(metadata) => Some(Stamp::of(&metadata)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io(&path)(error)),
        };
        let mut seen = self.seen.lock();
        if let Some(seen) = seen.as_ref()
            && seen.stamp == stamp
            && seen.at.elapsed() < TRUST
        {
            return Ok(Arc::clone(&seen.bearers));
        }
        let at = Instant::now();
        let mut bearers = HashMap::new();
        for entry in self.read()? {
            let digest = URL_SAFE_NO_PAD.decode(&entry.sha256).ok();
            let digest = digest.and_then(|digest| digest.try_into().ok());
            let digest: [u8; 32] = digest.ok_or_else(|| corrupt(&path, "a digest is damaged"))?;
            let access = Access::new(entry.audiences)
                .map_err(|invalid| corrupt(&path, invalid.to_string()))?;
            let expires = entry.expires;
            bearers.insert(digest, Bearer { access, expires });
        }
        let bearers = Arc::new(bearers);
        *seen = Some(Seen {
            stamp,
            at,
            bearers: Arc::clone(&bearers),
        });
        Ok(bearers)
    }

    fn path(&self) -> PathBuf {
        self.dir.join("tokens")
    }

    /// The right to change the file, across processes; ends when dropped.
    fn lock(&self) -> Result<File, Error> {
        let path = self.dir.join("tokens.lock");
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.map_err(Error::io(&path))?;
        file.lock().map_err(Error::io(&path))?;
        Ok(file)
    }

    fn read(&self) -> Result<Vec<Entry>, Error> {
        let path = self.path();
        let Some(bytes) = read(&path)? else {
            return Ok(Vec::new());
        };
        let contents = FRAME.unwrap(&path, &bytes)?;
        serde_json::from_slice(contents).map_err(|error| corrupt(&path, error.to_string()))
    }

    fn write(&self, entries: &[Entry]) -> Result<(), Error> {
        let path = self.path();
        let contents = serde_json::to_vec(entries)
            .map_err(|error| Error::io(&path)(std::io::Error::other(error)))?;
        self.durability.write_secret(&path, &FRAME.wrap(&contents))
    }
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tokens({})", self.dir.display())
    }
}

impl Entry {
    fn id(&self) -> String {
        let digest = URL_SAFE_NO_PAD.decode(&self.sha256).unwrap_or_default();
        let hex = digest.iter().map(|byte| format!("{byte:02x}"));
        hex.take(ID_CHARS / 2).collect()
    }

    fn token(&self) -> Token {
        Token {
            id: self.id(),
            name: self.name.clone(),
            audiences: self.audiences.clone(),
            created: self.created,
            expires: self.expires,
            ending: self.ending.clone(),
        }
    }
}

fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

fn check(new: &NewToken, entries: &[Entry]) -> Result<(), Invalid> {
    let mut report = Report::new();
    let root = Place::ROOT;
    if let Some(name) = &new.name {
        let place = root.key("name");
        let sized = !name.trim().is_empty() && name.chars().count() <= NAME_CHARS;
        if !sized || name.chars().any(char::is_control) {
            report.add(
                &place,
                format!(
                    "Must have 1 to {NAME_CHARS} characters, none of them a control character."
                ),
            );
        }
        if entries
            .iter()
            .any(|entry| entry.name.as_ref() == Some(name))
        {
            report.add(
                &place,
                "Must not be the name of another token: revoke that one, or choose another name.",
            );
        }
    }
    access::read(
        &mut report,
        &root.key("audiences"),
        new.audiences.clone().into(),
    );
    report.finish(Some(()))
}
