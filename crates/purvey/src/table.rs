//! Tables for people.

use crate::{
    output::{self, Style},
    text,
};
use comfy_table::{ColumnConstraint, Width, presets};

/// Spaces between two columns.
const GAP: u16 = 2;

/// No column is made narrower than this to fit a terminal.
const NARROWEST: u16 = 6;

/// Rows under a header, rendered in portions as they come. Cells may hold anything: each becomes one harmless line, which is
/// wrapped when the terminal is narrower than the table.
pub(crate) struct Table {
    header: Vec<&'static str>,
    /// What the first portion needs: on a terminal all others have the same, elsewhere none is narrower.
    widths: Vec<u16>,
    /// Columns at the beginning that keep their width as long as the others can be narrower.
    kept: usize,
    style: Style,
    width: Option<u16>,
}

impl Table {
    pub(crate) fn new(header: &[&'static str]) -> Self {
        Self {
            header: header.to_vec(),
            widths: Vec::new(),
            kept: 1,
            style: Style::detect(),
            width: output::width(),
        }
    }

    /// The same, where so many columns at the beginning are identifiers: they are to be copied, and wrapped last.
    pub(crate) fn keeping(self, kept: usize) -> Self {
        Self { kept, ..self }
    }

    /// The next rows as text; the header comes with the first ones.
    pub(crate) fn portion(&mut self, rows: impl IntoIterator<Item = Vec<String>>) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        let first = self.widths.is_empty();
        let headed = first && !self.header.is_empty();
        if headed {
            table.set_header(&self.header);
        }
        for row in rows {
            table.add_row(row.iter().map(|cell| text::line(cell)));
        }
        if first {
            self.widths = fitting(table.column_max_content_widths(), self.kept, self.width);
        }
        for (column, width) in table.column_iter_mut().zip(&self.widths) {
            let width = Width::Fixed(width.saturating_add(GAP));
            column.set_padding((0, GAP));
            column.set_constraint(match self.width {
                Some(_) => ColumnConstraint::Absolute(width),
                None => ColumnConstraint::LowerBoundary(width),
            });
        }
        let mut out = String::new();
        for (i, line) in table.lines().enumerate() {
            let line = line.trim_end();
            match headed && i == 0 {
                true => out.push_str(&self.style.bold(line)),
                false => out.push_str(line),
            }
            out.push('\n');
        }
        out
    }
}

/// These widths, the widest made narrower until all columns fit; the first `kept` columns last.
fn fitting(mut widths: Vec<u16>, kept: usize, width: Option<u16>) -> Vec<u16> {
    let Some(width) = width else {
        return widths;
    };
    let total =
        |widths: &[u16]| -> u32 { widths.iter().map(|w| u32::from(*w) + u32::from(GAP)).sum() };
    for from in [kept, 0] {
        while total(&widths) > u32::from(width) + u32::from(GAP) {
            match widths.iter_mut().skip(from).max() {
                Some(widest) if *widest > NARROWEST => *widest -= 1,
                _ => break,
            }
        }
    }
    widths
}

/// Names and what belongs to them, below each other.
pub(crate) fn fields<'a>(fields: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let rows = fields
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| vec![name.to_owned(), value]);
    let mut rows = rows.peekable();
    match rows.peek() {
        Some(_) => Table::new(&[]).portion(rows),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(width: Option<u16>) -> Table {
        Table {
            width,
            ..Table::new(&["ID", "NAME"])
        }
    }

    fn row(cells: [&str; 2]) -> Vec<String> {
        cells.map(str::to_owned).to_vec()
    }

    #[test]
    fn portions_line_up_and_the_header_comes_once() {
        let mut table = table(None);
        assert_eq!(
            table.portion([row(["a-long-id", "A"]), row(["b", "B\n\x1b[2J"])]),
            "ID         NAME\na-long-id  A\nb          B \\u{1b}[2J\n"
        );
        assert_eq!(table.portion([row(["c", "C"])]), "c          C\n");
    }

    #[test]
    fn cells_wrap_within_the_terminal() {
        let mut table = table(Some(20));
        let text = table.portion([row(["lamp", "A lamp that stands on a desk"])]);
        assert!(
            text.lines().all(|line| line.chars().count() <= 20),
            "{text}"
        );
        assert!(text.lines().count() > 2, "{text}");
    }

    #[test]
    fn identifiers_are_made_narrower_last() {
        assert_eq!(fitting(vec![20, 30, 9], 1, Some(50)), [20, 17, 9]);
        assert_eq!(fitting(vec![20, 30, 9], 1, Some(34)), [18, 6, 6]);
        assert_eq!(fitting(vec![20, 30, 9], 1, None), [20, 30, 9]);
        // There is a terminal too narrow for anything.
        assert_eq!(fitting(vec![20, 30, 9], 1, Some(3)), [6, 6, 6]);
    }

    #[test]
    fn empty_fields_are_left_out() {
        let shown = fields([
            ("price", "free".to_owned()),
            ("images", String::new()),
            ("id", "lamp".to_owned()),
        ]);
        assert_eq!(shown, "price  free\nid     lamp\n");
        assert_eq!(fields([("images", String::new())]), "");
    }
}
