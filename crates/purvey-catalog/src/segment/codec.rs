//! Little-endian encoding with bounds, and the frame that every small file has: magic, format, contents, checksum.

use crate::Error;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// Reads from the front of bytes; every method is `None` past the end.
pub(crate) struct Decoder<'a>(pub(crate) &'a [u8]);

impl<'a> Decoder<'a> {
    pub(crate) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Bytes with their length (u32) in front.
    pub(crate) fn block(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()?;
        self.bytes(usize::try_from(len).ok()?)
    }

    /// Text with its length (u16) in front.
    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let len = self.u16()?;
        std::str::from_utf8(self.bytes(len.into())?).ok()
    }

    /// Succeeds at the end only.
    pub(crate) fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Appends text with its length (u16) in front; `None` when it is longer than 65,535 bytes.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) -> Option<()> {
    out.extend(u16::try_from(text.len()).ok()?.to_le_bytes());
    out.extend(text.as_bytes());
    Some(())
}

/// Appends bytes with their length (u32) in front; `None` when there are more than 4 GiB.
pub(crate) fn put_block(out: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
    out.extend(u32::try_from(bytes.len()).ok()?.to_le_bytes());
    out.extend(bytes);
    Some(())
}

/// What a framed file is: its magic and the newest format that this version reads and writes.
pub(crate) struct Frame {
    pub(crate) magic: [u8; 8],
    pub(crate) format: u32,
}

impl Frame {
    /// Puts contents into the frame.
    pub(crate) fn wrap(&self, contents: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(contents.len() + 20);
        out.extend(self.magic);
        out.extend(self.format.to_le_bytes());
        out.extend(contents);
        let sum = xxh3_64(&out);
        out.extend(sum.to_le_bytes());
        out
    }

    /// Takes contents out of the frame.
    pub(crate) fn unwrap<'a>(&self, path: &Path, bytes: &'a [u8]) -> Result<&'a [u8], Error> {
        let mut decoder = Decoder(bytes);
        self.head(path, &mut decoder)?;
        let contents = decoder
            .0
            .len()
            .checked_sub(8)
            .and_then(|len| decoder.bytes(len));
        let (Some(contents), Some(sum)) = (contents, decoder.u64()) else {
            return Err(corrupt(path, "it is cut short"));
        };
        if xxh3_64(&bytes[..bytes.len() - 8]) != sum {
            return Err(corrupt(path, "its checksum does not match"));
        }
        Ok(contents)
    }

    /// Reads magic and format. The format is judged before any checksum: a newer one may compute it otherwise.
    pub(crate) fn head(&self, path: &Path, decoder: &mut Decoder<'_>) -> Result<(), Error> {
        self.head_since(self.format, path, decoder).map(|_| ())
    }

    /// As [`Self::head`] for files whose formats from `oldest` on are read; returns the format.
    pub(crate) fn head_since(
        &self,
        oldest: u32,
        path: &Path,
        decoder: &mut Decoder<'_>,
    ) -> Result<u32, Error> {
        if decoder.bytes(8) != Some(&self.magic) {
            return Err(corrupt(path, "it does not begin as such a file does"));
        }
        match decoder.u32() {
            Some(found) if found > self.format => Err(Error::Format {
                path: path.to_owned(),
                found,
                supported: self.format,
            }),
            Some(found) if found >= oldest => Ok(found),
            Some(_) => Err(corrupt(path, "no such format was ever written")),
            None => Err(corrupt(path, "it is cut short")),
        }
    }
}

pub(crate) fn corrupt(path: &Path, detail: impl Into<String>) -> Error {
    Error::Corrupt {
        path: path.to_owned(),
        detail: detail.into(),
    }
}
