//! Rows of CSV and TSV. TSV has no quoting. An empty cell is an absent value in both.

use purvey_odp::report::Invalid;
use std::borrow::Cow;
use std::collections::HashMap;

/// How cells are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quoting {
    /// Every byte means itself; cells are separated by tabs.
    None,
    /// RFC 4180 quotes; cells are separated by commas.
    Csv,
}

/// A table's column names.
#[derive(Debug)]
pub struct Header {
    text: String,
    columns: HashMap<String, usize>,
}

impl Header {
    pub(super) fn read(bytes: &[u8], quoting: Quoting) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "the header is not UTF-8".to_owned())?;
        let mut columns = HashMap::new();
        for (i, name) in cells(text, quoting)?.into_iter().enumerate() {
            if columns.contains_key(name.as_ref()) {
                return Err(format!("the header names column {name:?} twice"));
            }
            columns.insert(name.into_owned(), i);
        }
        let text = text.to_owned();
        Ok(Self { text, columns })
    }

    /// The header as it stands in the table, without the end of the line.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the table has this column.
    pub fn has(&self, column: &str) -> bool {
        self.columns.contains_key(column)
    }
}

/// One row: a cell for every column.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    header: &'a Header,
    cells: Vec<Cow<'a, str>>,
}

impl<'a> Row<'a> {
    pub(super) fn read(
        bytes: &'a [u8],
        header: &'a Header,
        quoting: Quoting,
    ) -> Result<Self, Invalid> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            Invalid::one(
                "",
                format!("Must be UTF-8; byte {} is not.", error.valid_up_to()),
            )
        })?;
        let cells = cells(text, quoting).map_err(|reason| Invalid::one("", reason))?;
        if cells.len() != header.columns.len() {
            return Err(Invalid::one(
                "",
                format!(
                    "Must have {} cells like the header, not {}.",
                    header.columns.len(),
                    cells.len()
                ),
            ));
        }
        Ok(Self { header, cells })
    }

    /// The cell of a column; `None` when it is empty or there is no such column.
    pub fn get(&self, column: &str) -> Option<&str> {
        let cell = self.cells.get(*self.header.columns.get(column)?)?;
        (!cell.is_empty()).then_some(cell)
    }
}

fn cells(text: &str, quoting: Quoting) -> Result<Vec<Cow<'_, str>>, String> {
    if quoting == Quoting::None {
        return Ok(text.split('\t').map(Cow::Borrowed).collect());
    }
    let mut out = Vec::new();
    let mut rest = text;
    loop {
        let (cell, after) = match rest.strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                let (cell, after) = rest.split_at(end);
                (Cow::Borrowed(cell), after)
            }
        };
        out.push(cell);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(out),
            None => return Err("A quoted cell must end at a comma.".to_owned()),
        }
    }
}

/// The cell whose opening quote was taken off, and what follows its closing quote.
fn unquote(quoted: &str) -> Result<(Cow<'_, str>, &str), String> {
    let mut doubled = false;
    let mut from = 0;
    while let Some(at) = quoted[from..].find('"').map(|at| from + at) {
        if quoted[at + 1..].starts_with('"') {
            doubled = true;
            from = at + 2;
            continue;
        }
        let cell = &quoted[..at];
        let cell = if doubled {
            Cow::Owned(cell.replace("\"\"", "\""))
        } else {
            Cow::Borrowed(cell)
        };
        return Ok((cell, &quoted[at + 1..]));
    }
    Err("A quoted cell has no closing quote.".to_owned())
}
