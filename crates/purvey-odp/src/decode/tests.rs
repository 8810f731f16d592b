use super::*;
use proptest::prelude::*;
use serde_json::json;

const WIDE: Bounds = Bounds {
    bytes: 1 << 20,
    depth: 16,
};

fn read(text: &str) -> Result<Value, DecodeError> {
    decode(text.as_bytes(), WIDE)
}

fn reason(text: &str) -> (usize, usize, usize) {
    match read(text) {
        Err(DecodeError::Syntax {
            offset,
            line,
            column,
            ..
        }) => (offset, line, column),
        other => panic!("{text:?}: {other:?}"),
    }
}

#[test]
fn values() {
    assert_eq!(read(" null ").unwrap(), json!(null));
    assert_eq!(
        read("\t[ true , false,\"\" ]\r\n").unwrap(),
        json!([true, false, ""])
    );
    assert_eq!(
        read(r#"{"b":{"x":[]},"a":[{},[[]]]}"#).unwrap().to_string(),
        r#"{"b":{"x":[]},"a":[{},[[]]]}"#
    );
}

#[test]
fn strings() {
    assert_eq!(
        read(r#""\"\\\/\b\f\n\r\t\u0041\u00e9\u20AC\ud83d\ude00""#).unwrap(),
        json!("\"\\/\u{8}\u{c}\n\r\tA\u{e9}\u{20ac}\u{1f600}")
    );
    assert_eq!(
        read("\"caf\u{e9} \u{1f600}\u{7f}\"").unwrap(),
        json!("caf\u{e9} \u{1f600}\u{7f}")
    );
    assert_eq!(read(r#""\u0000""#).unwrap(), json!("\0"));
    for bad in [
        r#"""#,
        r#""abc"#,
        r#""\"#,
        r#""\x""#,
        r#""\u12""#,
        r#""\u12g4""#,
        r#""\u+123""#,
        r#""\ud83d""#,
        r#""\ud83dx""#,
        r#""\ud83d\n""#,
        r#""\ud83d\ud83d""#,
        r#""\ud83d\u0041""#,
        r#""\ude00""#,
        "\"\n\"",
        "\"\0\"",
        "'a'",
    ] {
        reason(bad);
    }
}

#[test]
fn numbers_keep_their_text() {
    for text in [
        "0",
        "-0",
        "1.10",
        "1E5",
        "1e+5",
        "-12.5e-7",
        "123456789012345678901234567890.000",
        "9007199254740993",
        "0e0",
    ] {
        assert_eq!(read(text).unwrap().to_string(), text);
        assert_eq!(
            read(&format!("[{text}]")).unwrap().to_string(),
            format!("[{text}]")
        );
    }
    for bad in [
        "-",
        "+1",
        "01",
        "-01",
        "1.",
        ".5",
        "1.e5",
        "1e",
        "1e+",
        "1e5.5",
        "0x10",
        "NaN",
        "Infinity",
        "-Infinity",
        "1_000",
        "--1",
        "00",
        "1 2",
    ] {
        reason(bad);
    }
}

#[test]
fn grammar() {
    for bad in [
        "",
        " ",
        "nul",
        "nulls",
        "True",
        "tru",
        "{",
        "[",
        "}",
        "]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{,}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{a:1}",
        "{\"a\":1 \"b\":2}",
        "[1]]",
        "{}{}",
        "[1}",
        "{\"a\":1]",
        "// x\n1",
        "1 /* x */",
        "\u{a0}1",
        "\u{feff}1",
        "[1,\u{c}2]",
    ] {
        reason(bad);
    }
}

#[test]
fn duplicate_keys_are_located() {
    let duplicate = |pointers: &[&str]| {
        Err(DecodeError::DuplicateKeys {
            pointers: pointers
                .iter()
                .map(|pointer| (*pointer).to_owned())
                .collect(),
        })
    };
    assert_eq!(read(r#"{"a":1,"b":2,"a":1}"#), duplicate(&["/a"]));
    assert_eq!(
        read(r#"{"x":[0,{"a/b":{"~":1,"\u007e":2}}]}"#),
        duplicate(&["/x/1/a~1b/~0"])
    );
    assert_eq!(read(r#"{"":0,"":0}"#), duplicate(&["/"]));
    // Each one, once, in the order of the document; in what occurs again too.
    assert_eq!(
        read(
            r#"{"a":1,"a":2,"b":{"a":1,"a":2,"a":3},"c":[{"d":1,"d":1},{"d":1,"d":1}],"a":{"e":1,"e":2}}"#
        ),
        duplicate(&["/a", "/b/a", "/c/0/d", "/c/1/d", "/a/e"])
    );
    assert_eq!(
        read(r#"{"a":{"x":1,"x":2},"a":{"x":1,"x":2}}"#),
        duplicate(&["/a/x", "/a"])
    );
    let many: String = (0..40).map(|n| format!(r#","k{n}":1,"k{n}":2"#)).collect();
    let Err(DecodeError::DuplicateKeys { pointers }) = read(&format!("{{\"a\":0{many}}}")) else {
        panic!("not refused");
    };
    assert_eq!(pointers.len(), 32);
    assert_eq!(
        (pointers[0].as_str(), pointers[31].as_str()),
        ("/k0", "/k31")
    );
    // What is no document has no members.
    assert!(matches!(
        read(r#"{"a":1,"a":2"#),
        Err(DecodeError::Syntax { .. })
    ));
    assert!(read(r#"{"a":{"a":1},"A":{"a":1}}"#).is_ok());
}

#[test]
fn depth_counts_containers() {
    let bounds = |depth| Bounds {
        bytes: 1 << 20,
        depth,
    };
    let too_deep = |limit| Err(DecodeError::TooDeep { limit });
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(decode(b"1", bounds(0)).is_ok());
    assert_eq!(decode(b"{}", bounds(0)), too_deep(0));
    for limit in [1, 8, 16] {
        assert_eq!(
            depth(&decode(nested(limit).as_bytes(), bounds(limit)).unwrap()),
            limit
        );
        assert_eq!(
            decode(nested(limit + 1).as_bytes(), bounds(limit)),
            too_deep(limit)
        );
    }
    assert!(decode(br#"[{"a":[]},{"a":[]},[[1]]]"#, bounds(3)).is_ok());
    assert_eq!(decode(br#"{"a":{"b":[0]}}"#, bounds(2)), too_deep(2));
    // Found at once, not after the whole of it was read; and no bound is large enough to exhaust the stack.
    let hostile = "[".repeat(1 << 20);
    assert_eq!(
        decode(hostile.as_bytes(), bounds(usize::MAX)),
        too_deep(128)
    );
    let hostile = "{\"a\":".repeat(100_000);
    assert_eq!(
        decode(hostile.as_bytes(), bounds(usize::MAX)),
        too_deep(128)
    );
    assert!(decode(nested(128).as_bytes(), bounds(usize::MAX)).is_ok());
}

#[test]
fn size_counts_bytes() {
    let bounds = Bounds { bytes: 5, depth: 1 };
    assert_eq!(decode(b"12345", bounds).unwrap().to_string(), "12345");
    assert_eq!(
        decode("\"\u{e9}\" ".as_bytes(), bounds).unwrap(),
        json!("\u{e9}")
    );
    assert_eq!(
        decode(b"12345 ", bounds),
        Err(DecodeError::TooLarge { limit: 5 })
    );
}

#[test]
fn utf8_is_required() {
    assert_eq!(
        decode(b"\"a\xff\"", WIDE),
        Err(DecodeError::Utf8 { offset: 2 })
    );
    // An encoded surrogate, an overlong form, and UTF-16.
    assert!(matches!(
        decode(b"\"\xed\xa0\x80\"", WIDE),
        Err(DecodeError::Utf8 { .. })
    ));
    assert!(matches!(
        decode(b"\"\xc0\xaf\"", WIDE),
        Err(DecodeError::Utf8 { .. })
    ));
    assert!(matches!(
        decode(b"\xff\xfe1\0", WIDE),
        Err(DecodeError::Utf8 { .. })
    ));
    assert!(decode(b"1\0", WIDE).is_err());
}

#[test]
fn a_fault_is_located() {
    assert_eq!(reason(""), (0, 1, 1));
    assert_eq!(reason("[1,\n 2,\n x]"), (9, 3, 2));
    assert_eq!(reason("\"\u{e9}\u{1f600}\" x"), (9, 1, 6));
    let error = read("{\"a\" 1}").unwrap_err();
    assert_eq!(
        error.to_string(),
        "Line 1, column 6: A colon must follow a member name."
    );
}

#[test]
fn pieces() {
    let bounds = Bounds {
        bytes: 12,
        depth: 2,
    };
    let mut decoder = Decoder::new(bounds);
    for piece in ["{\"a\"", "", ":[1", ",2]}"] {
        decoder.push(piece.as_bytes()).unwrap();
    }
    assert_eq!(decoder.finish().unwrap(), json!({"a": [1, 2]}));

    let too_large = DecodeError::TooLarge { limit: 12 };
    let mut decoder = Decoder::new(bounds);
    decoder.push(b"            ").unwrap();
    assert_eq!(decoder.push(b" "), Err(too_large.clone()));
    assert_eq!(decoder.push(b""), Err(too_large.clone()));
    assert_eq!(decoder.finish(), Err(too_large));

    assert!(Decoder::new(bounds).finish().is_err());
}

/// Numbers as serde_json writes them, so that its values and ours compare.
fn rewritten(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(number.as_str().parse().unwrap()),
        Value::Array(items) => items.into_iter().map(rewritten).collect(),
        Value::Object(map) => map.into_iter().map(|(k, v)| (k, rewritten(v))).collect(),
        other => other,
    }
}

/// Text made of what JSON is made of, so that a good part is valid or nearly so.
fn jsonish() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"b\":", "0", "1", "-", ".", "e", "E+",
        "null", "true", "fals", "e", " ", "\n", "\\", "\\u", "00e9", "d83d", "\\ude00", "\\n",
        "\u{e9}", "\u{1}", "12.50", "[]", "{}", "\"x\":1",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// serde_json is the second opinion: it differs only in keeping the last of duplicate members.
    #[test]
    fn agrees_with_another_reader(text in jsonish()) {
        match (read(&text), serde_json::from_str::<Value>(&text)) {
            (Ok(ours), Ok(theirs)) => prop_assert_eq!(rewritten(ours), theirs),
            (Err(DecodeError::DuplicateKeys { .. } | DecodeError::TooDeep { .. }), _) => {}
            (Err(_), Err(_)) => {}
            (ours, theirs) => prop_assert!(false, "{:?} {:?} {:?}", text, ours, theirs),
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        prop_assert_eq!(decode(&bytes, WIDE).is_ok(), serde_json::from_slice::<Value>(&bytes).is_ok());
    }

    #[test]
    fn what_was_written_is_read(value in any_value(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        prop_assert_eq!(read(&text).unwrap().to_string(), value.to_string());
    }

    /// A document cut short is never a document, and cutting never panics.
    #[test]
    fn nothing_partial(value in any_value(), at in any::<prop::sample::Index>()) {
        let text = json!([value]).to_string();
        let cut = at.index(text.len());
        prop_assert!(decode(&text.as_bytes()[..cut], WIDE).is_err());
    }
}
