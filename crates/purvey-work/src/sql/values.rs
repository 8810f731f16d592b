//! Many rows for one statement.

use super::Param;
use std::fmt::Write as _;

/// Most rows of one statement.
pub(crate) const ROWS: usize = 64;

/// Parts of `rows` whose sizes are few, for statements in which no row may be there twice: [`values`] fills none of them up.
pub(crate) fn parts<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let most = rows.len().min(ROWS);
        let size = if most == 0 { 0 } else { 1 << most.ilog2() };
        let (part, rest) = rows.split_at_checked(size).filter(|_| size > 0)?;
        rows = rest;
        Some(part)
    })
}

/// `(VALUES …)` of at most [`ROWS`] rows, at least one, with columns named `column1`, `column2` and so on; what they hold is put behind
/// `params`. `types` are what PostgreSQL would not guess, as it takes everything for text. The last row is repeated up to a power of two, so
/// that there are few statements to prepare: a row that is there twice must do no harm.
pub(crate) fn values<'a, const N: usize>(
    types: [&str; N],
    rows: &[[Param<'a>; N]],
    params: &mut Vec<Param<'a>>,
) -> String {
    let mut sql = String::from("(VALUES ");
    let Some(last) = rows.last() else { return sql };
    let padding = rows.len().next_power_of_two() - rows.len();
    let rows = rows.iter().chain(std::iter::repeat_n(last, padding));
    for (index, row) in rows.enumerate() {
        sql.push_str(if index == 0 { "(" } else { ", (" });
        for (column, (param, name)) in row.iter().zip(types).enumerate() {
            params.push(*param);
            let (comma, at) = (if column == 0 { "" } else { ", " }, params.len());
            let _ = match name {
                "" => write!(sql, "{comma}${at}"),
                name => write!(sql, "{comma}CAST(${at} AS {name})"),
            };
        }
        sql.push(')');
    }
    sql.push(')');
    sql
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_powers_of_two() {
        let sizes = |count| {
            let rows = vec![(); count];
            parts(&rows).map(<[()]>::len).collect::<Vec<_>>()
        };
        assert_eq!(sizes(0), [0; 0]);
        assert_eq!(sizes(11), [8, 2, 1]);
        assert_eq!(sizes(130), [64, 64, 2]);
    }

    #[test]
    fn rows_are_filled_up_to_a_power_of_two() {
        let mut params = vec![Param::Null];
        let rows = [1, 2, 3].map(|n| [Param::Text("a"), Param::Int(n)]);
        let sql = values(["", "BIGINT"], &rows, &mut params);
        assert_eq!(
            sql,
            "(VALUES ($2, CAST($3 AS BIGINT)), ($4, CAST($5 AS BIGINT)), ($6, CAST($7 AS BIGINT)), ($8, CAST($9 AS BIGINT)))"
        );
        assert_eq!(params.len(), 9);
        assert!(matches!(params[8], Param::Int(3)));
    }
}
