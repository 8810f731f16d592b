//! What matches.

use super::{NONE, PLAIN};
use crate::text_common::index;

#[test]
fn the_last_word_may_be_a_beginning() {
    let index = index(
        PLAIN,
        &["javascript", "java", "jav", "lava script now and then"],
    );
    assert_eq!(index.order("java"), [1, 0], "the word itself first");
    assert_eq!(index.order("ja"), NONE, "too short");
    assert_eq!(index.order("jav"), [2, 0, 1]);
    assert_eq!(index.order("jav script"), NONE);
    assert_eq!(index.order("script lav"), [3]);
}

#[test]
fn identifiers_match_in_parts_and_as_one_word() {
    let docs = [
        "left-pad",
        "Left Pad",
        "leftpad",
        "@scope/pkg.name",
        "foo-bar_baz",
        "v1.2.3",
        "camelCaseName",
        "a text of more words that says left pad somewhere",
    ];
    let index = index(PLAIN, &docs);
    let sorted = |query| {
        let mut found = index.order(query);
        found.sort_unstable();
        assert_eq!(found, index.matching(query));
        found
    };
    assert_eq!(sorted("left-pad"), [0, 1, 2, 7]);
    assert_eq!(sorted("left pad"), [0, 1, 2, 7]);
    assert_eq!(sorted("leftpad"), [0, 1, 2]);
    assert_eq!(sorted("LEFT_PAD"), [0, 1, 2, 7]);
    for query in [
        "@scope/pkg.name",
        "scope",
        "pkg",
        "name pkg",
        "pkgname",
        "scopepkgname",
        "scope/pkg",
    ] {
        assert_eq!(sorted(query), [3], "{query}");
    }
    for query in [
        "foo-bar_baz",
        "foobar",
        "barbaz",
        "foobarbaz",
        "foo.bar",
        "foo baz",
        "baz/foo",
    ] {
        assert_eq!(sorted(query), [4], "{query}");
    }
    for query in ["v1.2.3", "1.2.3", "v1", "v1-2-3", "2.3", "V1.2"] {
        assert_eq!(sorted(query), [5], "{query}");
    }
    assert_eq!(sorted("camelcasename"), [6]);
    assert_eq!(sorted("camel"), [6], "as a beginning");
    assert_eq!(sorted("case"), NONE);
}

#[test]
fn numbers_of_several_parts_are_one_thing() {
    let docs = [
        "release v1.2.3",
        "release 1.2.3",
        "1.2.30",
        "1 of 2 and 3",
        "11.2.3",
        "python3.11",
        "for Python 3.11 and later, in a text of more words",
        "1.2.3.4",
        "on 2024-01-15",
        "on 2024/01/15",
        "in January 2024 at 15:01",
        "call 555-1234",
        "call 5551234",
        "1.3.6.1.4.1.311",
        "1.2.3-beta.4",
    ];
    let index = index(PLAIN, &docs);
    for (query, found) in [
        ("1.2.3", &[0, 1, 7, 14][..]),
        ("v1.2.3", &[0, 1, 7, 14]),
        ("V1.2.3", &[0, 1, 7, 14]),
        ("1-2-3", &[0, 1, 7, 14]),
        ("1.2", &[0, 1, 2, 7, 14]),
        ("2.3", &[0, 1, 4, 7, 14]),
        ("1.3", &[13]),
        ("release 1.2", &[0, 1]),
        ("3.11", &[5, 6]),
        ("python 3.11", &[5, 6]),
        ("python3.11", &[5]),
        ("2024-01-15", &[8, 9]),
        ("2024.01.15", &[8, 9]),
        ("01/15", &[8, 9]),
        ("2024", &[8, 9, 10]),
        ("20240115", &[8]),
        ("555-1234", &[11, 12]),
        ("5551234", &[11, 12]),
        ("1234", &[11]),
        ("3.6.1.4.1.311", &[13]),
        ("1.3.6.1.4.1.312", &[]),
        ("1.2.3-beta.4", &[14]),
        ("beta 1.2.3", &[14]),
    ] {
        assert_eq!(index.matching(query), found, "{query}");
    }
    assert_eq!(index.matching("1 2 3"), [1, 3, 7, 14], "apart, as words");
}

#[test]
fn marks_make_other_words() {
    let docs = [
        "C++ compiler",
        "C# compiler",
        "C compiler",
        "F# and F",
        ".NET runtime",
        "ASP.NET Core",
        "fishing net",
        "C++11 and c#.",
        "i+++j",
        "issue c#12",
        "wait...net",
    ];
    let index = index("en", &docs);
    for (query, found) in [
        ("c++", &[0, 7][..]),
        ("C++", &[0, 7]),
        ("c#", &[1, 7]),
        ("c", &[0, 1, 2, 7, 9]),
        ("c compiler", &[0, 1, 2]),
        ("c++ compiler", &[0]),
        ("compiler c#", &[1]),
        ("f#", &[3]),
        ("f", &[3]),
        (".net", &[4, 5]),
        (".NET core", &[5]),
        (".ne", &[4, 5]),
        ("net", &[4, 5, 6, 10]),
        ("asp.net", &[5]),
        ("...net", &[4, 5, 6, 10]),
        ("c++11", &[7]),
        ("i++", &[]),
        ("+c +compiler", &[0, 1, 2]),
        ("c#12", &[9]),
    ] {
        assert_eq!(index.matching(query), found, "{query}");
    }
}

#[test]
fn accents_case_and_spellings_do_not_count() {
    let docs = [
        "Café CRÈME",
        "straße",
        "Ærøskøbing",
        "Łódź",
        "ＦＵＬＬ　ｗｉｄｔｈ",
        "e\u{301}tude",
        "ΣΊΣΥΦΟΣ",
        "ёлка",
        "йод",
        "\u{ad}soft\u{ad}hyphen",
    ];
    let index = index(PLAIN, &docs);
    for (query, found) in [
        ("cafe creme", 0),
        ("CAFÉ", 0),
        ("strasse", 1),
        ("STRASSE", 1),
        ("STRAẞE", 1),
        ("aeroskobing", 2),
        ("lodz", 3),
        ("full width", 4),
        ("étude", 5),
        ("etude", 5),
        ("σίσυφος", 6),
        ("σισυφοσ", 6),
        ("елка", 7),
        ("йод", 8),
        ("softhyphen", 9),
    ] {
        assert_eq!(index.order(query), [found], "{query}");
    }
    assert_eq!(index.order("иод"), NONE, "another letter");
}

#[test]
fn stems_and_stop_words_follow_the_language() {
    let docs = [
        "running shoes",
        "he runs in a shoe",
        "The Who",
        "who knows the way to a house",
    ];
    let english = index("en-GB", &docs);
    assert_eq!(english.order("running shoe").len(), 2);
    assert_eq!(english.order("running"), [0, 1], "the form itself first");
    assert_eq!(
        english.order("shoes for running").len(),
        2,
        "a stop word is passed over"
    );
    assert_eq!(english.order("the"), [2, 3], "unless there is nothing else");
    assert_eq!(english.order("a the").len(), 1);
    assert_eq!(english.order("the who").first(), Some(&2));
    let plain = index(PLAIN, &docs);
    assert_eq!(plain.order("run shoes"), NONE);
    assert_eq!(plain.order("shoes for running"), NONE);
    let german = index("de", &["Häuser am See", "ein Haus"]);
    assert_eq!(german.matching("haus"), [0, 1]);
    assert_eq!(german.matching("hauser"), [0, 1]);
    let french = index("fr", &["développements récents d'une idée"]);
    assert_eq!(french.matching("développement"), [0]);
    assert_eq!(french.matching("developpement"), [0]);
    let russian = index("ru", &["красивые дома"]);
    assert_eq!(russian.matching("красивый"), [0]);
}

#[test]
fn parts_of_compounds_are_no_stop_words() {
    let english = index("en", &["to-do list", "do it", "vitamin-a", "vitamin-b"]);
    assert_eq!(english.matching("to-do"), [0]);
    assert_eq!(english.matching("vitamin-a"), [2]);
    assert_eq!(english.matching("todo"), [0]);
}

#[test]
fn scripts_without_spaces_match_by_pairs_and_single_characters() {
    let docs = [
        "東京都庁",
        "京都",
        "東の京",
        "日本語テスト",
        "서울특별시",
        "ภาษาไทย",
        "東京tower",
    ];
    let index = index("ja", &docs);
    assert_eq!(index.matching("東京"), [0, 6]);
    assert_eq!(index.matching("京都"), [0, 1]);
    assert_eq!(index.matching("東京都"), [0]);
    // Of 3, 4, 5 and 7 forms.
    assert_eq!(index.order("京"), [1, 6, 2, 0]);
    assert_eq!(index.matching("庁"), [0]);
    assert_eq!(index.matching("テスト"), [3]);
    assert_eq!(index.matching("ﾃｽﾄ"), [3], "of half the width");
    assert_eq!(index.matching("특별"), [4]);
    assert_eq!(index.matching("ไทย"), [5]);
    assert_eq!(index.matching("tower 東京"), [6]);
    assert_eq!(index.matching("東京tow"), [6]);
}

#[test]
fn nothing_but_punctuation_matches_nothing() {
    let index = index("en", &["a - b", "...", ""]);
    for query in [
        "",
        " ",
        "---",
        "\"()\" +-!",
        "🎉",
        "\u{301}",
        "、。",
        "*",
        "\0",
    ] {
        let asked = index.search.query(query).unwrap();
        assert!(asked.is_empty(), "{query:?}");
        assert_eq!(index.matching(query), NONE, "{query:?}");
        assert_eq!(index.order(query), NONE, "{query:?}");
    }
    assert!(!index.search.query("a").unwrap().is_empty());
}

#[test]
fn a_query_is_data() {
    let docs = [
        "cats AND dogs or not field x",
        "cats and birds sing in the trees",
        "dogs and wolves run in the woods",
    ];
    let index = index(PLAIN, &docs);
    for query in [
        "cats AND dogs",
        "+cats +dogs",
        "\"cats dogs\"",
        "(cats) && (dogs)",
        "cats~2 dogs^4",
        "cats\\dogs",
        "[cats TO dogs]x",
        "{cats dogs}",
        "NOT cats dogs",
        "cats OR dogs",
    ] {
        let expected: &[usize] = if query.contains("TO") || query.contains("~2") {
            &[]
        } else {
            &[0]
        };
        assert_eq!(index.matching(query), expected, "{query}");
    }
    assert_eq!(index.matching("-dogs cats"), [0], "not without dogs");
    assert_eq!(index.matching("field:x"), [0]);
    assert_eq!(index.matching("c*ts"), NONE);
    assert_eq!(index.matching("*"), NONE);
    assert_eq!(index.matching("cats /.*/"), [0, 1]);
}

#[test]
fn the_longest_queries_are_bounded() {
    let index = index("en", &["a b c d 1 1.1 x-y 東京", "lamp"]);
    for unit in [
        "a ",
        "1-",
        "x-",
        "東",
        "京都東",
        "ab",
        "é",
        "é̂",
        "++",
        ".a",
        "the ",
        "\u{301}",
    ] {
        let text = unit.repeat(65_536 / unit.len());
        let found = index.order(&text);
        assert_eq!(
            found,
            index.order(&text[..text.floor_char_boundary(8_000)]),
            "{unit}"
        );
    }
    let tail = format!("lamp {}nothing", " ".repeat(3_000));
    assert_eq!(
        index.order(&tail),
        [1],
        "what follows the first 2,048 characters is passed over"
    );
}

#[test]
fn long_queries_and_long_words_are_bounded() {
    let words: Vec<String> = (0..200).map(|n| format!("w{n}x")).collect();
    let first = words[..32].join(" ");
    let all = words.join(" ");
    let long = "y".repeat(1_000);
    let index = index(PLAIN, &[&first, &all, &long]);
    assert_eq!(
        index.matching(&all),
        [0, 1],
        "words after the 32nd are passed over"
    );
    assert_eq!(index.matching(&words[..33].join(" ")), [0, 1]);
    assert_eq!(index.matching(&long), [2]);
    assert_eq!(index.matching(&"y".repeat(128)), [2]);
    assert_eq!(
        index.matching(&"y".repeat(999)),
        [2],
        "all beyond 128 characters is cut"
    );
    assert_eq!(index.matching(&format!("{} a", "y".repeat(127))), NONE);
    assert_eq!(index.matching("w1x w1x W1X w199x"), [1]);
}
