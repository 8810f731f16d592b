//! Content codings, undone while the body arrives (ODP §7).
//!
//! What comes in and what goes out of each coding is counted, so that neither a bomb nor an endless stream takes more than the
//! limit.

use brotli::{BrotliDecompressStream, BrotliResult, BrotliState, HeapAlloc, HuffmanCode};
use flate2::write::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use http::{HeaderMap, header};
use std::io::{self, Write};
use zstd::stream::raw::{DParameter, Operation as _};

/// Codings that may follow each other. Nobody needs more than one; each further one multiplies the work.
const MAX_CODINGS: usize = 2;
/// Bytes that a coding may add to a body that does not shrink.
const OVERHEAD: usize = 65_536;
/// Largest zstd window, as a power of two: what RFC 9659 lets a content coding use.
const ZSTD_WINDOW_LOG: u32 = 23;

/// Why a body is not to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// More bytes than the limit.
    TooLarge,
    /// A coding that was not offered.
    Unknown(String),
    /// More codings than anybody needs.
    TooMany,
    /// What the coding made is not well formed, ends early, or goes on after its end.
    Corrupt(&'static str),
}

/// Takes a body's bytes as they come and keeps them without their codings.
pub(super) struct Decoder {
    stages: Vec<Stage>,
    received: usize,
    input_limit: usize,
    body: Bounded,
}

struct Stage {
    coder: Box<dyn Coder>,
    out: Bounded,
}

/// Undoes one coding.
trait Coder: Send {
    /// Takes the next bytes.
    fn push(&mut self, piece: &[u8], out: &mut Bounded) -> Result<(), Fault>;

    /// Learns that there are no more, and says whether that is the right place to end.
    fn finish(&mut self, out: &mut Bounded) -> Result<(), Fault>;
}

/// Bytes, and how many more there may be.
struct Bounded {
    bytes: Vec<u8>,
    left: usize,
}

impl Bounded {
    fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            left: limit,
        }
    }

    fn put(&mut self, piece: &[u8]) -> Result<(), Fault> {
        self.left = self.left.checked_sub(piece.len()).ok_or(Fault::TooLarge)?;
        self.bytes.extend_from_slice(piece);
        Ok(())
    }
}

impl Decoder {
    /// A decoder for the codings that `Content-Encoding` lists; at most `limit` bytes come out.
    pub(super) fn new(headers: &HeaderMap, limit: usize) -> Result<Self, Fault> {
        let mut stages = codings(headers)?
            .iter()
            .map(|name| Stage::new(name, limit.saturating_add(OVERHEAD)))
            .collect::<Result<Vec<_>, _>>()?;
        // The last one applied is the first one undone.
        stages.reverse();
        let input_limit = match stages.is_empty() {
            true => limit,
            false => limit.saturating_add(OVERHEAD),
        };
        Ok(Self {
            stages,
            received: 0,
            input_limit,
            body: Bounded::new(limit),
        })
    }

    /// Whether a body that will have `length` bytes, codings included, cannot fit.
    pub(super) fn refuses(&self, length: u64) -> bool {
        usize::try_from(length).map_or(true, |length| length > self.input_limit)
    }

    pub(super) fn push(&mut self, piece: &[u8]) -> Result<(), Fault> {
        self.received = self.received.saturating_add(piece.len());
        if self.received > self.input_limit {
            return Err(Fault::TooLarge);
        }
        feed(&mut self.stages, piece, &mut self.body)
    }

    pub(super) fn finish(mut self) -> Result<Vec<u8>, Fault> {
        // Responses without a body may still name the coding that it would have.
        if self.received > 0 {
            finish(&mut self.stages, &mut self.body)?;
        }
        // It may be stored for long, and is counted by its length then.
        self.body.bytes.shrink_to_fit();
        Ok(self.body.bytes)
    }
}

/// Passes bytes through the codings.
fn feed(stages: &mut [Stage], piece: &[u8], body: &mut Bounded) -> Result<(), Fault> {
    let Some((stage, rest)) = stages.split_first_mut() else {
        return body.put(piece);
    };
    stage.coder.push(piece, &mut stage.out)?;
    stage.pass_on(rest, body)
}

fn finish(stages: &mut [Stage], body: &mut Bounded) -> Result<(), Fault> {
    let Some((stage, rest)) = stages.split_first_mut() else {
        return Ok(());
    };
    stage.coder.finish(&mut stage.out)?;
    stage.pass_on(rest, body)?;
    finish(rest, body)
}

impl Stage {
    fn new(name: &str, limit: usize) -> Result<Self, Fault> {
        let coder: Box<dyn Coder> = match name {
            "gzip" | "x-gzip" => Box::new(Gzip::new(limit)),
            "deflate" => Box::new(Deflate::default()),
            "br" => Box::new(Brotli::new()),
            "zstd" => Box::new(Zstd::new()?),
            _ => return Err(Fault::Unknown(name.to_owned())),
        };
        Ok(Self {
            coder,
            out: Bounded::new(limit),
        })
    }

    fn pass_on(&mut self, rest: &mut [Self], body: &mut Bounded) -> Result<(), Fault> {
        let mut made = std::mem::take(&mut self.out.bytes);
        feed(rest, &made, body)?;
        made.clear();
        self.out.bytes = made;
        Ok(())
    }
}

/// The codings of a response in the order applied, in lower case.
fn codings(headers: &HeaderMap) -> Result<Vec<String>, Fault> {
    let mut names = Vec::new();
    for field in headers.get_all(header::CONTENT_ENCODING) {
        let field = field
            .to_str()
            .map_err(|_| Fault::Unknown("(not ASCII)".to_owned()))?;
        for name in field.split(',').map(|name| name.trim_matches([' ', '\t'])) {
            if name.is_empty() || name.eq_ignore_ascii_case("identity") {
                continue;
            }
            if names.len() == MAX_CODINGS {
                return Err(Fault::TooMany);
            }
            names.push(name.to_ascii_lowercase());
        }
    }
    Ok(names)
}

/// `gzip`, one member or several.
struct Gzip(MultiGzDecoder<Bounded>);

impl Gzip {
    fn new(limit: usize) -> Self {
        Self(MultiGzDecoder::new(Bounded::new(limit)))
    }

    /// Moves what was decoded; the limit is the reason for a failure once it is reached.
    fn settle(&mut self, result: io::Result<()>, out: &mut Bounded) -> Result<(), Fault> {
        let made = self.0.get_mut();
        let full = made.left == 0;
        let bytes = std::mem::take(&mut made.bytes);
        match result {
            Ok(()) => out.put(&bytes),
            Err(error) if full || error.kind() == io::ErrorKind::StorageFull => {
                Err(Fault::TooLarge)
            }
            Err(_) => Err(Fault::Corrupt("gzip")),
        }
    }
}

impl Write for Bounded {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.put(piece)
            .map_err(|_| io::Error::from(io::ErrorKind::StorageFull))?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Coder for Gzip {
    fn push(&mut self, piece: &[u8], out: &mut Bounded) -> Result<(), Fault> {
        let result = self.0.write_all(piece).and_then(|()| self.0.flush());
        self.settle(result, out)
    }

    fn finish(&mut self, out: &mut Bounded) -> Result<(), Fault> {
        let result = self.0.try_finish();
        self.settle(result, out)
    }
}

/// `deflate`: with the zlib header that RFC 9110 asks for, or without it as some servers send.
#[derive(Default)]
struct Deflate {
    /// The first two bytes, until they have told which of both it is.
    head: Vec<u8>,
    inflate: Option<Decompress>,
    ended: bool,
}

const FLATE: Fault = Fault::Corrupt("deflate");

impl Coder for Deflate {
    fn push(&mut self, piece: &[u8], out: &mut Bounded) -> Result<(), Fault> {
        if let Some(inflate) = &mut self.inflate {
            return inflate_into(inflate, piece, &mut self.ended, out);
        }
        self.head.extend_from_slice(piece);
        let [first, second, ..] = *self.head else {
            return Ok(());
        };
        let zlib = first & 0x0f == 8 && u16::from_be_bytes([first, second]) % 31 == 0;
        let head = std::mem::take(&mut self.head);
        let inflate = self.inflate.insert(Decompress::new(zlib));
        inflate_into(inflate, &head, &mut self.ended, out)
    }

    fn finish(&mut self, out: &mut Bounded) -> Result<(), Fault> {
        if let (None, [only]) = (&self.inflate, self.head.as_slice()) {
            inflate_into(&mut Decompress::new(false), &[*only], &mut self.ended, out)?;
        }
        if self.ended { Ok(()) } else { Err(FLATE) }
    }
}

fn inflate_into(
    inflate: &mut Decompress,
    mut piece: &[u8],
    ended: &mut bool,
    out: &mut Bounded,
) -> Result<(), Fault> {
    let mut buffer = [0; 8_192];
    loop {
        if *ended {
            return if piece.is_empty() { Ok(()) } else { Err(FLATE) };
        }
        let (before_in, before_out) = (inflate.total_in(), inflate.total_out());
        let status = inflate
            .decompress(piece, &mut buffer, FlushDecompress::None)
            .map_err(|_| FLATE)?;
        let taken = count(inflate.total_in() - before_in);
        let made = count(inflate.total_out() - before_out);
        piece = piece.get(taken..).ok_or(FLATE)?;
        out.put(buffer.get(..made).ok_or(FLATE)?)?;
        *ended = status == Status::StreamEnd;
        if !*ended && taken == 0 && made == 0 {
            // All was taken before; anything left over cannot be.
            return if piece.is_empty() { Ok(()) } else { Err(FLATE) };
        }
    }
}

fn count(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// `br`, with the windows of RFC 7932 alone.
struct Brotli {
    state: BrotliState<HeapAlloc<u8>, HeapAlloc<u32>, HeapAlloc<HuffmanCode>>,
    total: usize,
    ended: bool,
}

const BROTLI: Fault = Fault::Corrupt("br");

impl Brotli {
    fn new() -> Self {
        Self {
            state: BrotliState::new_strict(
                HeapAlloc::default(),
                HeapAlloc::default(),
                HeapAlloc::default(),
            ),
            total: 0,
            ended: false,
        }
    }
}

impl Coder for Brotli {
    fn push(&mut self, piece: &[u8], out: &mut Bounded) -> Result<(), Fault> {
        let mut buffer = [0; 8_192];
        let (mut left, mut at) = (piece.len(), 0);
        loop {
            if self.ended {
                return if left == 0 { Ok(()) } else { Err(BROTLI) };
            }
            let (mut room, mut made) = (buffer.len(), 0);
            let result = BrotliDecompressStream(
                &mut left,
                &mut at,
                piece,
                &mut room,
                &mut made,
                &mut buffer,
                &mut self.total,
                &mut self.state,
            );
            out.put(buffer.get(..made).ok_or(BROTLI)?)?;
            match result {
                BrotliResult::NeedsMoreInput => return Ok(()),
                BrotliResult::NeedsMoreOutput => {}
                BrotliResult::ResultSuccess => self.ended = true,
                BrotliResult::ResultFailure => return Err(BROTLI),
            }
        }
    }

    fn finish(&mut self, _: &mut Bounded) -> Result<(), Fault> {
        if self.ended { Ok(()) } else { Err(BROTLI) }
    }
}

/// `zstd`, one frame or several.
struct Zstd {
    decoder: zstd::stream::raw::Decoder<'static>,
    /// Whether the last frame is whole.
    ended: bool,
}

const ZSTD: Fault = Fault::Corrupt("zstd");

impl Zstd {
    fn new() -> Result<Self, Fault> {
        let mut decoder = zstd::stream::raw::Decoder::new().map_err(|_| ZSTD)?;
        decoder
            .set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG))
            .map_err(|_| ZSTD)?;
        Ok(Self {
            decoder,
            ended: false,
        })
    }
}

impl Coder for Zstd {
    fn push(&mut self, mut piece: &[u8], out: &mut Bounded) -> Result<(), Fault> {
        let mut buffer = [0; 8_192];
        loop {
            let status = self
                .decoder
                .run_on_buffers(piece, &mut buffer)
                .map_err(|_| ZSTD)?;
            piece = piece.get(status.bytes_read..).ok_or(ZSTD)?;
            out.put(buffer.get(..status.bytes_written).ok_or(ZSTD)?)?;
            let moved = status.bytes_read > 0 || status.bytes_written > 0;
            if moved {
                self.ended = status.remaining == 0;
            }
            let drained = status.bytes_written < buffer.len();
            if piece.is_empty() && drained {
                return Ok(());
            }
            if !moved {
                return Err(ZSTD);
            }
        }
    }

    fn finish(&mut self, _: &mut Bounded) -> Result<(), Fault> {
        if self.ended { Ok(()) } else { Err(ZSTD) }
    }
}

#[cfg(test)]
mod tests;
