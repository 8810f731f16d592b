//! Columns come back as they were stored, damage is noticed, and merging gives what building anew would.
#![allow(clippy::unwrap_used, reason = "tests with helpers")]

mod search_common;

use proptest::prelude::*;
use purvey_catalog::Error;
use purvey_catalog::search::{Column, ColumnName, ColumnWriter, Columns};
use purvey_odp::identity::CapabilityId;
use purvey_odp::sort::Direction;
use purvey_odp::value::{Scalar, ScalarType};
use search_common::Catalog;
use search_common::values::Random;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

fn column(scalar_type: ScalarType, documents: &[&[Value]]) -> Column {
    let mut writer = ColumnWriter::new(scalar_type);
    for values in documents {
        let values: Vec<Scalar> = values
            .iter()
            .map(|v| scalar_type.scalar(v).unwrap())
            .collect();
        writer.push(&values).unwrap();
    }
    writer.finish().unwrap()
}

/// The JSON texts of every document's values.
fn texts(column: &Column) -> Vec<Vec<String>> {
    let of = |ordinal| {
        column
            .codes(ordinal)
            .map(|code| String::from_utf8(column.text(code).to_vec()).unwrap())
    };
    (0..column.documents())
        .map(|ordinal| of(ordinal).collect())
        .collect()
}

fn number(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn values_are_sorted_and_counted_once_for_each_document() {
    let column = column(
        ScalarType::Integer,
        &[
            &[number("10"), number("9"), number("1e1")],
            &[],
            &[number("9007199254740993"), number("9007199254740992")],
            &[number("9.0")],
        ],
    );
    assert_eq!(
        texts(&column),
        [
            vec!["9", "10"],
            vec![],
            vec!["9007199254740992", "9007199254740993"],
            vec!["9"]
        ]
    );
    assert_eq!(column.totals(), [2, 1, 1, 1]);
    let selected = |direction| [0, 1, 2, 3].map(|ordinal| column.selected(ordinal, direction));
    assert_eq!(
        selected(Direction::Ascending),
        [Some(0), None, Some(2), Some(0)]
    );
    assert_eq!(
        selected(Direction::Descending),
        [Some(1), None, Some(3), Some(0)]
    );
    assert_eq!(column.find(column.key(1)), Ok(1));
    let mut key = Vec::new();
    ScalarType::Integer
        .scalar(&json!(11))
        .unwrap()
        .order_key(&mut key);
    assert_eq!(column.find(&key), Err(2));
}

/// Around the number of values at which codes become wider; the largest code of a single-valued column stands for no value.
#[test]
fn every_width_holds_its_largest_code() {
    for values in [1, 255, 256, 257, 65_535, 65_536] {
        for second in [false, true] {
            let mut writer = ColumnWriter::new(ScalarType::Integer);
            let scalar = |n: u32| ScalarType::Integer.scalar(&json!(n)).unwrap();
            for n in 0..values {
                writer.push(&[scalar(n)]).unwrap();
            }
            writer.push(&[]).unwrap();
            if second {
                writer.push(&[scalar(0), scalar(values - 1)]).unwrap();
            }
            let columns = single(writer.finish().unwrap());
            let columns = Columns::decode(Path::new("x"), &columns.encode().unwrap()).unwrap();
            let column = columns.get(&name()).unwrap();
            assert_eq!(column.values(), values);
            let codes = |ordinal| column.codes(ordinal).collect::<Vec<_>>();
            assert_eq!(codes(values - 1), [values - 1]);
            assert_eq!(codes(values), [0_u32; 0]);
            if second && values > 1 {
                assert_eq!(codes(values + 1), [0, values - 1]);
            }
        }
    }
}

fn name() -> ColumnName {
    ColumnName::new(None, &CapabilityId::parse("f").unwrap())
}

fn single(column: Column) -> Columns {
    Columns::new(column.documents(), [(name(), Arc::new(column))])
}

#[test]
fn damage_and_newer_formats_are_refused() {
    let column = column(
        ScalarType::String,
        &[&[json!("a"), json!("b")], &[], &[json!("c")]],
    );
    let bytes = single(column).encode().unwrap();
    let path = Path::new("columns");
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let error = Columns::decode(path, &damaged).unwrap_err();
        assert!(
            matches!(error, Error::Corrupt { .. } | Error::Format { .. }),
            "{at}: {error}"
        );
        assert!(Columns::decode(path, &bytes[..at]).is_err(), "{at}");
    }
    let mut newer = bytes;
    newer[8] = 2;
    let error = Columns::decode(path, &newer).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Format {
                found: 2,
                supported: 1,
                ..
            }
        ),
        "{error}"
    );
}

/// Bytes that pass the checksum but are no columns do no harm.
#[test]
fn nonsense_under_a_right_checksum_is_refused_or_harmless() {
    let column = column(
        ScalarType::Integer,
        &[&[json!(1), json!(2)], &[], &[json!(3)], &[json!(2)]],
    );
    let bytes = single(column).encode().unwrap();
    let end = bytes.len() - 8;
    let mut read = 0;
    for at in 12..end {
        for change in [1, 0x80, 0xff] {
            let mut nonsense = bytes[..end].to_vec();
            nonsense[at] ^= change;
            let sum = xxhash_rust::xxh3::xxh3_64(&nonsense);
            nonsense.extend(sum.to_le_bytes());
            if let Ok(columns) = Columns::decode(Path::new("x"), &nonsense) {
                for (_, column) in columns.iter() {
                    (0..column.documents()).for_each(|ordinal| {
                        column.codes(ordinal).for_each(|code| {
                            let _ = (column.key(code), column.text(code));
                        });
                    });
                }
                read += 1;
            }
        }
    }
    assert!(read > 0, "some bytes are free, such as those of texts");
}

proptest! {
    #[test]
    fn columns_are_stored_and_merged(seed in any::<u64>(), documents in 0..80_usize, segments in 1..5_usize) {
        let mut random = Random(seed);
        let catalog = Catalog::random(&mut random, documents, segments);
        let sources: Vec<Columns> = (0..segments).map(|at| {
            let bytes = catalog.columns(at).encode().unwrap();
            let columns = Columns::decode(Path::new("x"), &bytes).unwrap();
            assert_eq!(columns.encode().unwrap(), bytes);
            columns
        }).collect();
        let live = catalog.live();
        let places: Vec<(u32, u32)> = live.keys().map(|id| {
            let segment = catalog.segments.iter().rposition(|records| records.contains_key(*id)).unwrap();
            let ordinal = catalog.segments[segment].keys().position(|known| known == id).unwrap();
            (segment as u32, ordinal as u32)
        }).collect();
        let merged = Columns::merge(&sources.iter().collect::<Vec<_>>(), &places).unwrap();
        let anew = Catalog {
            segments: vec![live.iter().map(|(id, record)| ((*id).to_owned(), (*record).clone())).collect()],
            removed: Default::default(),
        };
        prop_assert_eq!(merged.encode().unwrap(), anew.columns(0).encode().unwrap());
    }
}
