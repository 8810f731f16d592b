//! The records as every engine gets them.

use crate::Outcome;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// One package of the table `id registry name version updated downloads download_rank summary`.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub id: String,
    pub registry: String,
    pub name: String,
    pub summary: String,
    pub version: String,
    /// The leading number of the version.
    pub major: Option<i64>,
    /// `YYYY-MM-DD`.
    pub updated: Option<String>,
    pub downloads: Option<i64>,
}

/// Longest name that a catalog takes, in code points.
const NAME: usize = 128;

/// Reads the table, compressed with zstd, without what a catalog would reject.
pub(crate) fn each(path: &Path, mut take: impl FnMut(Package) -> Outcome<()>) -> Outcome<()> {
    let reader = BufReader::new(zstd::Decoder::new(std::fs::File::open(path)?)?);
    for line in reader.lines().skip(1) {
        let line = line?;
        let mut cells = line.split('\t');
        let mut cell = || cells.next().unwrap_or_default().to_owned();
        let (id, registry, name, version) = (cell(), cell(), cell(), cell());
        let (updated, downloads, _rank, summary) = (cell(), cell(), cell(), cell());
        if name.chars().count() > NAME {
            continue;
        }
        take(Package {
            id,
            registry,
            name,
            summary,
            major: major(&version),
            version,
            updated: Some(updated).filter(|text| !text.is_empty()),
            downloads: downloads.parse().ok(),
        })?;
    }
    Ok(())
}

fn major(version: &str) -> Option<i64> {
    let digits = version.strip_prefix('v').unwrap_or(version);
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    digits.get(..end)?.parse().ok()
}

/// Days since 1970 of `YYYY-MM-DD`, for engines without dates of their own.
pub(crate) fn days(date: &str) -> Option<i64> {
    let mut parts = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    // Counted from March on, leap days come last.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}
