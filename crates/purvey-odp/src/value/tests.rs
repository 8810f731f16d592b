use super::*;
use proptest::prelude::*;
use serde_json::json;
use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash, Hasher};

fn number(text: &str) -> Decimal {
    Decimal::parse(text).unwrap_or_else(|| panic!("{text} is a number"))
}

fn instant(text: &str) -> DateTime {
    DateTime::parse(text).unwrap_or_else(|| panic!("{text} is a date-time"))
}

fn key(scalar: &Scalar) -> Vec<u8> {
    let mut out = Vec::new();
    scalar.order_key(&mut out);
    out
}

fn hash(scalar: &Scalar) -> u64 {
    let mut hasher = DefaultHasher::new();
    scalar.hash(&mut hasher);
    hasher.finish()
}

/// Every law that ties `Eq`, `Ord`, `Hash` and the order key together, for one pair.
fn agree(a: &Scalar, b: &Scalar) {
    let order = a.cmp(b);
    assert_eq!(order == Ordering::Equal, a == b, "{a:?} {b:?}");
    assert_eq!(b.cmp(a), order.reverse(), "{a:?} {b:?}");
    assert_eq!(key(a).cmp(&key(b)), order, "{a:?} {b:?}");
    if a == b {
        assert_eq!(hash(a), hash(b), "{a:?} {b:?}");
    } else {
        assert!(!key(b).starts_with(&key(a)), "{a:?} {b:?}");
    }
}

#[test]
fn numbers_in_strict_order() {
    let ascending = [
        "-1e100000000000000000000",
        "-1e99999999999999999999",
        "-1e1000000000",
        "-18446744073709551617",
        "-18446744073709551616",
        "-9007199254740993",
        "-9007199254740992",
        "-10",
        "-1.01",
        "-1",
        "-0.5",
        "-1e-1000000000",
        "-1e-99999999999999999999",
        "0",
        "1e-100000000000000000000",
        "1e-99999999999999999999",
        "1e-1000000000",
        "1e-127",
        "1e-126",
        "0.09",
        "0.1",
        "0.11",
        "0.2",
        "1",
        "1.0000000000000000000000000000000000000001",
        "1.01",
        "9.9",
        "10",
        "9007199254740992",
        "9007199254740993",
        "18446744073709551616",
        "18446744073709551617",
        "1e125",
        "1e126",
        "1e1000000000",
        "1.5e1000000000",
        "1e1000000001",
        "1e99999999999999999999",
        "1e100000000000000000000",
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            let (a, b) = (Scalar::Number(number(a)), Scalar::Number(number(b)));
            assert_eq!(a.cmp(&b), i.cmp(&j), "{a:?} {b:?}");
            agree(&a, &b);
        }
    }
}

#[test]
fn one_number_in_many_spellings() {
    let one = [
        "1",
        "1.0",
        "1e0",
        "1E+00",
        "10e-1",
        "0.01e2",
        "0.0000000001e10",
        "1000e-3",
    ];
    let zero = [
        "0",
        "-0",
        "0.00",
        "-0.0e5",
        "0e99999999999999999999999999",
        "-0e-7",
    ];
    let huge = [
        "1e1000000000000000000",
        "10e999999999999999999",
        "0.1e1000000000000000001",
    ];
    let tiny = [
        "1e-1000000000000000000",
        "0.1e-999999999999999999",
        "10e-1000000000000000001",
    ];
    // The exponent's own arithmetic carries through nines and borrows through zeros.
    let carried = [
        "100e99999999999999999998",
        "1e100000000000000000000",
        "0.001e100000000000000000003",
    ];
    for spellings in [&one[..], &zero, &huge, &tiny, &carried] {
        for a in spellings {
            for b in spellings {
                let (a, b) = (Scalar::Number(number(a)), Scalar::Number(number(b)));
                assert_eq!(a, b);
                agree(&a, &b);
            }
        }
    }
    assert_ne!(
        number("1e1000000000000000000"),
        number("1e1000000000000000001")
    );
}

#[test]
fn other_texts_are_no_numbers() {
    for text in [
        "", "-", "+1", "01", "-01", "00", ".5", "1.", "1.e2", "1e", "1e+", "1e+-2", "1e2.0", "1 ",
        " 1", "0x1", "1_0", "NaN", "Infinity", "--1", "1.2.3", "１",
    ] {
        assert_eq!(Decimal::parse(text), None, "{text}");
    }
    for text in ["1e0", "1E5", "01", "1.", ".1", "+1", "-", "1,5", ""] {
        assert_eq!(Decimal::parse_plain(text), None, "{text}");
    }
}

#[test]
fn huge_exponents_cost_nothing() {
    let huge = number("1e1000000000");
    let mut out = Vec::new();
    huge.order_key(&mut out);
    assert!(out.len() < 16);
    assert_eq!(huge.to_string(), "1e1000000000");
    assert_eq!(number("-12.5e-1000000000").to_string(), "-1.25e-999999999");
    assert!(huge.is_integer() && !number("1e-1000000000").is_integer());
    assert_eq!(huge.to_u64(), None);
}

#[test]
fn numbers_are_written_exactly() {
    for (text, written) in [
        ("-0", "0"),
        ("1.50", "1.5"),
        ("-0.00120", "-0.0012"),
        ("12e2", "1200"),
        (
            "123456789012345678901234567890",
            "123456789012345678901234567890",
        ),
        ("1e20", "100000000000000000000"),
        ("1e21", "1e21"),
        ("1e-20", "0.00000000000000000001"),
        ("1e-21", "1e-21"),
        ("-1.25e30", "-1.25e30"),
    ] {
        assert_eq!(number(text).to_string(), written);
    }
    let long = format!("{}.5", "9".repeat(400));
    assert_eq!(
        Scalar::Decimal(Decimal::parse_plain(&long).unwrap()).to_value(),
        json!(long)
    );
    let padded = format!("1{}", "0".repeat(60));
    assert_eq!(
        Scalar::Decimal(Decimal::parse_plain(&padded).unwrap()).to_value(),
        json!(padded)
    );
}

#[test]
fn small_integers_come_back() {
    for (text, value) in [
        ("0", Some(0)),
        ("-0.0", Some(0)),
        ("1", Some(1)),
        ("1e2", Some(100)),
        ("20.0", Some(20)),
        ("18446744073709551615", Some(u64::MAX)),
        ("18446744073709551616", None),
        ("1e20", None),
        ("-1", None),
        ("1.5", None),
    ] {
        assert_eq!(number(text).to_u64(), value, "{text}");
    }
    assert_eq!(Decimal::from(-12i64), number("-12"));
    assert_eq!(Decimal::from(u64::MAX), number("18446744073709551615"));
}

#[test]
fn a_type_takes_its_values_only() {
    use ScalarType as T;
    let parse = |text| serde_json::from_str::<Value>(text).unwrap();
    for (scalar_type, text, taken) in [
        (T::String, r#""""#, true),
        (T::String, "1", false),
        (T::Boolean, "false", true),
        (T::Boolean, r#""true""#, false),
        (T::Boolean, "0", false),
        (T::Integer, "1", true),
        (T::Integer, "1.0", true),
        (T::Integer, "1e3", true),
        (T::Integer, "1.5", false),
        (T::Integer, "1e-1", false),
        (T::Integer, r#""1""#, false),
        (T::Integer, "-36893488147419103233", true),
        (T::Number, "1.5", true),
        (T::Number, r#""1.5""#, false),
        (T::Decimal, r#""-12.50""#, true),
        (T::Decimal, r#""1e2""#, false),
        (T::Decimal, r#""007""#, false),
        (T::Decimal, "1.5", false),
        (T::Date, r#""2024-02-29""#, true),
        (T::Date, r#""2023-02-29""#, false),
        (T::Date, r#""2024-02-29T00:00:00Z""#, false),
        (T::DateTime, r#""2024-02-29T00:00:00Z""#, true),
        (T::DateTime, r#""2024-02-29""#, false),
        (T::String, "null", false),
        (T::String, "[]", false),
        (T::Number, "{}", false),
    ] {
        let mut report = Report::new();
        let scalar = scalar_type.read(&mut report, &Place::ROOT, &parse(text));
        assert_eq!(scalar.is_some(), taken, "{scalar_type} {text}");
        assert_eq!(report.len(), usize::from(!taken));
    }
    for scalar_type in T::ALL {
        assert_eq!(T::parse(scalar_type.as_str()), Some(scalar_type));
    }
    assert_eq!(T::parse("datetime"), None);
}

#[test]
fn dates_follow_the_calendar() {
    for text in [
        "0000-02-29",
        "1900-02-28",
        "2000-02-29",
        "9999-12-31",
        "2024-04-30",
    ] {
        assert_eq!(Date::parse(text).unwrap().to_string(), text);
    }
    for text in [
        "1900-02-29",
        "2023-02-29",
        "2024-04-31",
        "2024-00-10",
        "2024-13-01",
        "2024-01-00",
        "2024-01-32",
        "24-01-01",
        "2024-1-1",
        "12024-01-01",
        "-024-01-01",
        "2024/01/01",
        "2024-01-01 ",
        "2024-01-0１",
    ] {
        assert_eq!(Date::parse(text), None, "{text}");
    }
    let dates = [
        "0000-01-01",
        "1999-12-31",
        "2000-01-01",
        "2000-01-31",
        "2000-02-01",
        "9999-12-31",
    ];
    for (i, a) in dates.iter().enumerate() {
        for (j, b) in dates.iter().enumerate() {
            let (a, b) = (
                Scalar::Date(Date::parse(a).unwrap()),
                Scalar::Date(Date::parse(b).unwrap()),
            );
            assert_eq!(a.cmp(&b), i.cmp(&j));
            agree(&a, &b);
        }
    }
}

#[test]
fn date_times_are_instants() {
    let same = [
        "2024-03-10T12:00:00Z",
        "2024-03-10t12:00:00z",
        "2024-03-10T12:00:00.000Z",
        "2024-03-10T13:30:00+01:30",
        "2024-03-10T00:00:00-12:00",
        "2024-03-11T11:59:00+23:59",
        "2024-03-10T12:00:00-00:00",
    ];
    for a in same {
        for b in same {
            let (a, b) = (Scalar::DateTime(instant(a)), Scalar::DateTime(instant(b)));
            assert_eq!(a, b);
            agree(&a, &b);
        }
        assert_eq!(instant(a).to_string(), "2024-03-10T12:00:00Z");
    }
    let ascending = [
        "0000-01-01T00:00:00+23:59",
        "0000-01-01T00:00:00Z",
        "2016-12-31T23:59:59.999999999999999999999999999999Z",
        "2017-01-01T00:59:60+01:00",
        "2016-12-31T23:59:60.25Z",
        "2016-12-31T23:59:60.250000000000000000000000000001Z",
        "2017-01-01T00:00:00Z",
        "2017-01-01T00:00:00.1Z",
        "2017-01-01T00:00:00.10000000000000000001Z",
        "2017-01-01T00:00:00.11Z",
        "2017-01-01T00:00:01Z",
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-23:59",
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            let (a, b) = (Scalar::DateTime(instant(a)), Scalar::DateTime(instant(b)));
            assert_eq!(a.cmp(&b), i.cmp(&j), "{a:?} {b:?}");
            agree(&a, &b);
        }
    }
}

#[test]
fn every_instant_can_be_written() {
    for (text, written) in [
        ("0000-01-01T00:00:00+00:01", "0000-01-01T23:58:00+23:59"),
        ("9999-12-31T23:59:59-00:01", "9999-12-31T00:01:59-23:59"),
        ("0000-01-01T00:59:60+01:00", "0000-01-01T23:58:60+23:59"),
        ("1972-06-30T23:59:60.50Z", "1972-06-30T23:59:60.5Z"),
    ] {
        let read = instant(text);
        assert_eq!(read.to_string(), written);
        assert_eq!(instant(written), read);
    }
}

#[test]
fn other_texts_are_no_date_times() {
    for text in [
        "2024-03-10",
        "2024-03-10T12:00Z",
        "2024-03-10T12:00:00",
        "2024-03-10 12:00:00Z",
        "2024-03-10T24:00:00Z",
        "2024-03-10T12:60:00Z",
        "2024-03-10T12:00:61Z",
        "2024-03-10T12:00:00.Z",
        "2024-03-10T12:00:00,5Z",
        "2024-03-10T12:00:00+24:00",
        "2024-03-10T12:00:00+01:60",
        "2024-03-10T12:00:00+0100",
        "2024-03-10T12:00:00ZZ",
        "2023-02-29T12:00:00Z",
        // No leap second can be there.
        "2024-03-10T12:00:60Z",
        "2016-12-31T23:59:60+01:00",
        "2016-12-30T23:59:60Z",
        "",
    ] {
        assert_eq!(DateTime::parse(text), None, "{text}");
    }
}

#[test]
fn strings_compare_by_scalar_values() {
    let ascending = [
        "", "\0", "\0\0", "\0a", "\u{1}", "\u{2}", "A", "a", "a\0", "ab", "e\u{301}", "é",
        "\u{ffff}", "𝄞",
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            let (a, b) = (Scalar::String((*a).into()), Scalar::String((*b).into()));
            assert_eq!(a.cmp(&b), i.cmp(&j), "{a:?} {b:?}");
            agree(&a, &b);
        }
    }
    agree(&Scalar::Boolean(false), &Scalar::Boolean(true));
    assert!(Scalar::Boolean(false) < Scalar::Boolean(true));
}

fn number_text() -> impl Strategy<Value = String> {
    (
        "-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
        prop::option::of("-?[0-9]{17,21}"),
    )
        .prop_map(|(text, exponent)| match exponent {
            Some(exponent) if !text.contains(['e', 'E']) => format!("{text}e{exponent}"),
            _ => text,
        })
}

fn instant_text() -> impl Strategy<Value = String> {
    (0..=9999u16, 1..=12u8, 1..=31u8, 0..=23u8, 57..=59u8, 58..=60u8, "(\\.[05]{1,3})?", "(Z|[+-]0[0-2]:0[01])").prop_map(
        |(year, month, day, hour, minute, second, fraction, offset)| {
            format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}{offset}")
        },
    )
}

fn scalar() -> impl Strategy<Value = Scalar> {
    prop_oneof![
        "[\0\u{1}\u{2}ab\u{e9}\u{10000}]{0,4}".prop_map(Scalar::String),
        any::<bool>().prop_map(Scalar::Boolean),
        number_text().prop_map(|text| Scalar::Number(number(&text))),
        "-?(0|[1-9][0-9]{0,2})(\\.[0-9]{1,2})?"
            .prop_map(|text| Scalar::Decimal(Decimal::parse_plain(&text).unwrap())),
        (0..20u16, 1..=12u8, 1..=28u8)
            .prop_map(|(y, m, d)| Scalar::Date(Date::new(y, m, d).unwrap())),
        instant_text().prop_filter_map("calendar", |text| DateTime::parse(&text)
            .map(Scalar::DateTime)),
    ]
}

proptest! {
    #[test]
    fn comparison_is_a_total_order(a in scalar(), b in scalar(), c in scalar()) {
        agree(&a, &a);
        agree(&a, &b);
        agree(&b, &c);
        if a <= b && b <= c {
            prop_assert!(a <= c);
        }
    }

    #[test]
    fn numbers_compare_as_scaled_integers(a in -99_999i64..99_999, b in -99_999i64..99_999, p in 0u32..6, q in 0u32..6) {
        // a / 10^p against b / 10^q, the reference in integers.
        let reference = (i128::from(a) * 10i128.pow(q)).cmp(&(i128::from(b) * 10i128.pow(p)));
        let (x, y) = (number(&format!("{a}e-{p}")), number(&format!("{b}e-{q}")));
        prop_assert_eq!(x.cmp(&y), reference);
        agree(&Scalar::Number(x), &Scalar::Number(y));
    }

    #[test]
    fn what_is_written_reads_back(a in scalar()) {
        let value = a.to_value();
        // Through bytes, as on the wire.
        let value: Value = serde_json::from_str(&value.to_string()).unwrap();
        prop_assert_eq!(a.scalar_type().scalar(&value), Some(a));
    }

    #[test]
    fn days_agree_with_a_calendar_library(days in 0i64..3_652_425) {
        let start = jiff::civil::date(0, 1, 1);
        let expected = start.checked_add(jiff::Span::new().days(i32::try_from(days).unwrap())).unwrap();
        let text = format!("{:04}-{:02}-{:02}", expected.year(), expected.month(), expected.day());
        let read = instant(&format!("{text}T00:00:00Z"));
        prop_assert_eq!(read.to_string(), format!("{text}T00:00:00Z"));
        let next = instant(&format!("{text}T23:59:59.5-00:01"));
        prop_assert!(next > read);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,24}") {
        let _ = Decimal::parse(&text);
        let _ = Date::parse(&text);
        let _ = DateTime::parse(&text);
    }
}
