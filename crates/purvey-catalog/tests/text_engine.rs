//! The text engine: what matches, what ranks before what, and that neither depends on how documents lie in files.
//!
//! Random catalogs are compared with an oracle; `TEXT_CASES` sets how many there are.
#![allow(clippy::unwrap_used, reason = "tests with helpers")]

mod text_common;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError};
use purvey_catalog::Error;
use purvey_catalog::fs::Durability;
use purvey_catalog::search::{Bitset, TextMatch};
use purvey_catalog::text::{Analyzer, TextIndex, TextSearch, TextWriter};
use std::sync::Arc;
use text_common::oracle::Oracle;
use text_common::{Doc, Indexed, config, index, texts, write};

/// What no stemmer is for.
const PLAIN: &str = "pl";

const NONE: [usize; 0] = [];

fn close(a: f32, b: f64) -> bool {
    (f64::from(a) - b).abs() <= 1e-4 * b.abs().max(1.0)
}

#[test]
fn scores_are_those_of_bm25() {
    let index = index(PLAIN, &["alpha", "alpha beta gamma delta epsilon"]);
    // ln(1 + 0.5 / 2.5) * 2.2 / (1 + 1.2 (0.25 + 0.75 * length / 3)), lengths being 1 and 5.
    let best = index.best("alpha", 10);
    assert_eq!(best.iter().map(|b| b.1).collect::<Vec<_>>(), [0, 1]);
    assert!(close(best[0].0, 0.250_692_1), "{best:?}");
    assert!(close(best[1].0, 0.143_252_7), "{best:?}");
    // ln 2 each: 0.693147 * 0.785714 each for being there, 0.25 * (0.693147 + 0.693147) for being neighbours.
    let best = index.best("gamma delta", 10);
    assert_eq!(best.len(), 1);
    assert!(close(best[0].0, 1.435_805_8), "{best:?}");
    // Not in this order, and not next to each other.
    assert!(close(index.best("delta gamma", 10)[0].0, 1.089_231_7));
    assert!(close(index.best("beta delta", 10)[0].0, 1.089_231_7));
}

#[test]
fn rarer_words_more_occurrences_and_shorter_texts_rank_first() {
    let docs = [
        "common common common rare five words more",
        "common one two three four five six",
        "common common two three four five six",
        "common",
        "common other two three four five six seven eight nine ten",
    ];
    let index = index(PLAIN, &docs);
    // 2.2 f / (f + norm) with an average length of 33 / 5: 1.551, 1.532, 1.353, 0.977, 0.805.
    assert_eq!(index.order("common"), [0, 3, 2, 1, 4]);
    assert_eq!(index.order("rare common"), [0]);
}

#[test]
fn every_word_must_match_in_any_field_and_weights_decide() {
    let doc = |name: &str, text: &str| vec![vec![name.to_owned()], vec![text.to_owned()]];
    let docs = [
        doc("green lamp", "for the desk and the wall of a house"),
        doc("red desk", "goes with any lamp that you may have"),
        doc("chair", "neither this nor that but something else here"),
    ];
    let by = |weights: &[f32]| Indexed::new(&config(PLAIN, weights), &docs, &[3]);
    assert_eq!(by(&[3.0, 1.0]).order("desk lamp").len(), 2);
    assert_eq!(by(&[3.0, 1.0]).order("lamp"), [0, 1]);
    assert_eq!(by(&[1.0, 9.0]).order("lamp"), [1, 0]);
    assert_eq!(by(&[3.0, 1.0]).order("desk lamp chair"), NONE);
    assert_eq!(by(&[3.0, 1.0]).order("green wall"), [0]);
}

#[test]
fn equal_scores_are_ordered_by_ordinal() {
    let docs = ["same"; 5];
    let whole = index(PLAIN, &docs);
    assert_eq!(whole.order("same"), [0, 1, 2, 3, 4]);
    assert_eq!(whole.best("same", 2).len(), 2);
    assert_eq!(whole.best("same", 2)[1].1, 1);
    let split = Indexed::new(&config(PLAIN, &[1.0]), &texts(&docs), &[2, 0, 3]);
    assert_eq!(split.best("same", 9), whole.best("same", 9));
}

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
fn of_many_completions_the_most_frequent_count() {
    // 70 words that begin alike; the last six are in two documents each.
    let mut docs: Vec<String> = (0..70).map(|n| format!("pre{n:02}")).collect();
    docs.extend((64..70).map(|n| format!("pre{n:02}")));
    let docs: Vec<&str> = docs.iter().map(String::as_str).collect();
    let expected: Vec<usize> = (0..58).chain(64..76).collect();
    for lens in [vec![76], vec![30, 40, 6]] {
        let index = Indexed::new(&config(PLAIN, &[1.0]), &texts(&docs), &lens);
        assert_eq!(index.matching("pre"), expected);
    }
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
    for query in ["v1.2.3", "v1", "v1-2-3", "2.3"] {
        assert_eq!(sorted(query), [5], "{query}");
    }
    assert_eq!(sorted("camelcasename"), [6]);
    assert_eq!(sorted("camel"), [6], "as a beginning");
    assert_eq!(sorted("case"), NONE);
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
fn neighbours_rank_first_and_do_not_span_texts() {
    let docs = vec![
        vec![vec!["data at one base or another place".to_owned()]],
        vec![vec!["data base at one or another place".to_owned()]],
        vec![vec![
            "one or another place at data".to_owned(),
            "base".to_owned(),
        ]],
    ];
    let index = Indexed::new(&config(PLAIN, &[1.0]), &docs, &[3]);
    assert_eq!(index.order("data base")[0], 1);
    let scores = index.best("data base", 3);
    assert!(
        scores[1].0 < scores[0].0 && (scores[1].0 - scores[2].0).abs() < 0.2,
        "{scores:?}"
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

#[test]
fn statistics_are_those_of_all_segments() {
    let docs: Vec<String> = (0..60)
        .map(|n| format!("common word{} {} filler", n % 7, "x ".repeat(n % 5)))
        .collect();
    let docs: Vec<&str> = docs.iter().map(String::as_str).collect();
    let config = config(PLAIN, &[2.0]);
    let whole = Indexed::new(&config, &texts(&docs), &[60]);
    let split = Indexed::new(&config, &texts(&docs), &[1, 0, 30, 29]);
    for query in ["common", "word3 filler", "wor", "x common", "filler common"] {
        assert_eq!(whole.best(query, 60), split.best(query, 60), "{query}");
    }
}

#[test]
fn reopened_it_answers_the_same() {
    let docs: Vec<String> = (0..300)
        .map(|n| format!("thing{} of kind{}", n % 17, n % 5))
        .collect();
    let docs: Vec<&str> = docs.iter().map(String::as_str).collect();
    let mut index = Indexed::new(&config("en", &[1.0]), &texts(&docs), &[200, 100]);
    let before = index.best("thing3 kind", 300);
    assert!(!before.is_empty());
    index.reopen();
    assert_eq!(index.best("thing3 kind", 300), before);
}

#[test]
fn digests_tell_what_must_be_built_again() {
    let digest = |language, weights: &[f32]| config(language, weights).digest();
    assert_eq!(digest("en", &[1.0, 2.0]), digest("en-US", &[3.0, 4.0]));
    assert_eq!(digest("nb", &[1.0]), digest("nn", &[1.0]));
    assert_eq!(digest("pl", &[1.0]), digest("ja", &[1.0]));
    assert_ne!(digest("en", &[1.0]), digest("de", &[1.0]));
    assert_ne!(digest("en", &[1.0]), digest("pl", &[1.0]));
    assert_ne!(digest("en", &[1.0]), digest("en", &[1.0, 1.0]));
}

#[test]
fn an_empty_index_and_one_without_text() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.text");
    let config = config("en", &[1.0, 1.0]);
    write(&path, &config, &[]);
    let index = Arc::new(TextIndex::open(&path).unwrap());
    assert_eq!(index.documents(), 0);
    index.verify().unwrap();
    let search = TextSearch::new(vec![index], &config);
    let query = search.query("word").unwrap();
    assert_eq!(query.matching(0).unwrap().len(), 0);
    assert_eq!(query.best(0, &Bitset::new(0), None, 5).unwrap(), []);
    assert_eq!(query.best(7, &Bitset::new(0), None, 5).unwrap(), []);
    let blank: Vec<Doc> = vec![vec![vec![], vec![String::new()]]; 3];
    write(&path, &config, &blank);
    let index = Arc::new(TextIndex::open(&path).unwrap());
    assert_eq!(index.documents(), 3);
    let search = TextSearch::new(vec![index], &config);
    assert_eq!(
        search.query("word").unwrap().matching(0).unwrap(),
        Bitset::new(3)
    );
}

#[test]
fn a_document_has_the_fields_of_the_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.text");
    let config = config("en", &[1.0]);
    let mut writer = TextWriter::create(&path, &config, Durability::Full).unwrap();
    let document = Analyzer::new(&config).prepare(&[vec!["a"], vec!["b"]]);
    assert!(matches!(writer.push(document), Err(Error::Conflict { .. })));
    drop(writer);
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "nothing is left behind"
    );
}

#[test]
fn nothing_but_the_file_is_left_in_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    write(
        &dir.path().join("a.text"),
        &config("en", &[1.0]),
        &texts(&["a", "b"]),
    );
    let names: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["a.text"]);
}

/// Everything that a reader does with a file.
fn use_all(path: &std::path::Path) -> Result<(), Error> {
    let index = Arc::new(TextIndex::open(path)?);
    let verified = index.verify();
    let config = config("en", &[1.0]);
    let search = TextSearch::new(vec![Arc::clone(&index)], &config);
    let ask = |text: &str| {
        let query = search.query(text)?;
        query.matching(0)?;
        query.best(0, &Bitset::full(index.documents()), None, 3)
    };
    for text in ["thing3 kind", "thing", "of kind1", "often"] {
        ask(text)?;
    }
    verified
}

#[test]
fn damage_is_an_error_wherever_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.text");
    let docs: Vec<String> = (0..400)
        .map(|n| {
            format!(
                "thing{} of kind{} number{n} and oftentimes more",
                n % 17,
                n % 5
            )
        })
        .collect();
    let docs: Vec<&str> = docs.iter().map(String::as_str).collect();
    write(&path, &config("en", &[1.0]), &texts(&docs));
    use_all(&path).unwrap();
    let good = std::fs::read(&path).unwrap();
    let is_detected = |result: Result<(), Error>| {
        matches!(result, Err(Error::Corrupt { .. } | Error::Format { .. }))
    };
    let step = good.len() / 1_500 + 1;
    for at in (0..64)
        .chain((64..good.len()).step_by(step))
        .chain(good.len() - 64..good.len())
    {
        // Padding of the header is looked at by the checksums alone.
        let mut bad = good.clone();
        bad[at] ^= 0x41;
        std::fs::write(&path, &bad).unwrap();
        let result = use_all(&path);
        assert!(is_detected(result), "byte {at} of {}", good.len());
    }
    for len in (0..200).chain((200..good.len()).step_by(step * 4)) {
        std::fs::write(&path, &good[..len]).unwrap();
        assert!(is_detected(use_all(&path)), "cut to {len}");
    }
    std::fs::write(&path, [good.as_slice(), b"x"].concat()).unwrap();
    assert!(is_detected(use_all(&path)), "longer");
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(use_all(&path), Err(Error::Io { .. })));
}

/// How many parts a file has: each has a file of the index library with this name.
fn parts(path: &std::path::Path) -> usize {
    let bytes = std::fs::read(path).unwrap();
    let name = b"meta.json";
    bytes.windows(name.len()).filter(|at| at == name).count()
}

#[test]
fn parts_of_a_file_answer_as_one() {
    let words = [
        "library",
        "libraries",
        "run",
        "running",
        "runs",
        "parser",
        "parse",
        "parsing",
        "web",
        "react",
        "reaction",
        "component",
        "components",
        "left-pad",
        "leftpad",
        "for",
    ];
    let mut state = 7_usize;
    let mut random = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(99);
        (state >> 33) % below
    };
    let docs: Vec<Doc> = (0..5_000)
        .map(|n| {
            let mut text = |most: usize| {
                let words = (0..=random(most)).map(|_| words[random(words.len())]);
                words.collect::<Vec<_>>().join(" ")
            };
            let (name, mut summary) = (text(2), text(9));
            if n % 600 == 3 {
                summary.push_str(" rarely react component");
            }
            vec![vec![name], vec![summary]]
        })
        .collect();
    let config = config("en", &[3.0, 1.0]);
    let mut dirs = Vec::new();
    let mut open = |bytes: Option<usize>| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.text");
        let mut writer = TextWriter::create(&path, &config, Durability::Off).unwrap();
        if let Some(bytes) = bytes {
            writer = writer.with_part_bytes(bytes);
        }
        let analyzer = Analyzer::new(&config);
        for doc in &docs {
            let fields: Vec<Vec<&str>> = doc.iter().map(|texts| vec![texts[0].as_str()]).collect();
            writer.push(analyzer.prepare(&fields)).unwrap();
        }
        writer.finish().unwrap();
        let index = Arc::new(TextIndex::open(&path).unwrap());
        assert_eq!(index.documents(), 5_000);
        index.verify().unwrap();
        dirs.push(dir);
        (parts(&path), TextSearch::new(vec![index], &config))
    };
    // Parts that are as small as they can be, 64 documents, have neither whole blocks of postings nor several windows.
    let (small, parted) = open(Some(0));
    assert_eq!(small, 79);
    let (one, whole) = open(None);
    assert_eq!(one, 1);
    let all = Bitset::full(5_000);
    let mut third = Bitset::new(5_000);
    (0..5_000)
        .filter(|n| n % 3 == 0)
        .for_each(|n| third.insert(n));
    for text in [
        "library",
        "libraries",
        "running",
        "rea",
        "component libraries",
        "running parser web",
        "rarely react component",
        "components rarely",
        "left pad",
        "leftpad parsing",
        "react compon",
        "parse lib",
    ] {
        let (a, b) = (whole.query(text).unwrap(), parted.query(text).unwrap());
        let matching = a.matching(0).unwrap();
        assert_eq!(matching, b.matching(0).unwrap(), "{text}");
        assert!(matching.count() > 0, "{text}");
        for among in [&all, &third] {
            let every = a.best(0, among, None, 5_000).unwrap();
            let mut ordinals: Vec<u32> = every.iter().map(|(_, ordinal)| *ordinal).collect();
            ordinals.sort_unstable();
            let mut expected = matching.clone();
            expected.and(among);
            assert_eq!(ordinals, expected.iter().collect::<Vec<_>>(), "{text}");
            for limit in [1, 7, 50, 1_000] {
                let first = &every[..limit.min(every.len())];
                assert_eq!(a.best(0, among, None, limit).unwrap(), first, "{text}");
                assert_eq!(b.best(0, among, None, limit).unwrap(), first, "{text}");
                let Some((score, last)) = first.last() else {
                    continue;
                };
                let resume = Some(purvey_catalog::search::Resume {
                    score: *score,
                    next: last + 1,
                });
                let second = &every[first.len()..(2 * limit).min(every.len())];
                assert_eq!(a.best(0, among, resume, limit).unwrap(), second, "{text}");
                assert_eq!(b.best(0, among, resume, limit).unwrap(), second, "{text}");
            }
        }
    }
}

#[test]
fn of_more_completions_than_are_looked_at_the_first_count() {
    let word = |n: usize| format!("pre{n:05}");
    let several = |numbers: std::ops::Range<usize>| numbers.map(word).collect::<Vec<_>>().join(" ");
    let mut docs: Vec<String> = (0..70)
        .map(|n| several(n * 1_000..(n + 1) * 1_000))
        .collect();
    docs.push(several(0..64));
    docs.push(word(69_000));
    docs.push(word(69_000));
    let docs: Vec<&str> = docs.iter().map(String::as_str).collect();
    let index = index(PLAIN, &docs);
    assert_eq!(
        index.matching("pre"),
        [0, 70],
        "the first 64 are in two each"
    );
    assert_eq!(
        index.matching("pre69"),
        (69..73).filter(|n| *n != 70).collect::<Vec<_>>()
    );
    // Shorter texts first.
    assert_eq!(index.order("pre"), [70, 0]);
    assert_eq!(index.order("pre69"), [71, 72, 69]);
}

const WORDS: [&str; 16] = [
    "left", "pad", "leftpad", "padleft", "foo", "bar", "foobar", "x1", "12", "34", "1234", "東京",
    "京都", "東", "left12", "barfoo",
];
const BETWEEN: [&str; 12] = [
    " ", " ", " ", "-", "_", ".", "/", " - ", ", ", "@", "--", "",
];

fn text(words: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let word = (
        prop::sample::select(&WORDS[..]),
        prop::sample::select(&BETWEEN[..]),
    );
    prop::collection::vec(word, words).prop_map(|words| {
        words
            .iter()
            .map(|(word, between)| format!("{word}{between}"))
            .collect()
    })
}

fn doc() -> impl Strategy<Value = Doc> {
    (
        prop::collection::vec(text(0..4), 0..2),
        prop::collection::vec(text(0..8), 0..3),
    )
        .prop_map(|(names, texts)| vec![names, texts])
}

fn check(index: &Indexed, oracle: &Oracle, query: &str) -> Result<(), TestCaseError> {
    let expected = oracle.scores(query);
    let numbers: Vec<usize> = expected.keys().copied().collect();
    prop_assert_eq!(index.matching(query), numbers, "{}", query);
    let all = index.best(query, 10_000);
    prop_assert_eq!(all.len(), expected.len(), "{}", query);
    for (score, number) in &all {
        let expected = expected[number];
        prop_assert!(
            close(*score, expected),
            "{}: {} scores {}, not {}",
            query,
            number,
            score,
            expected
        );
    }
    // Pages of several sizes are cut out of the whole, and so is what is left of it among some documents.
    for limit in [1, 3, 10] {
        let mut paged: Vec<(f32, usize)> = Vec::new();
        loop {
            let page = index.page(query, paged.last().copied(), limit, |_| true);
            paged.extend(&page);
            if page.len() < limit {
                break;
            }
        }
        prop_assert_eq!(&paged, &all, "{} by {}", query, limit);
        let some = |number: usize| number % 3 == 1 || number.is_multiple_of(50);
        let found = index.page(query, None, limit, some);
        let expected = all.iter().copied().filter(|(_, number)| some(*number));
        prop_assert_eq!(found, expected.take(limit).collect::<Vec<_>>(), "{}", query);
    }
    Ok(())
}

#[test]
fn random_catalogs_match_the_oracle() {
    let cases = std::env::var("TEXT_CASES")
        .ok()
        .and_then(|n| n.parse().ok());
    let mut runner = proptest::test_runner::TestRunner::new(Config {
        cases: cases.unwrap_or(48),
        failure_persistence: None,
        ..Config::default()
    });
    let case = (
        prop::collection::vec(doc(), 1..40),
        prop::collection::vec(text(1..5), 12),
        0..40_usize,
    );
    let checked = runner.run(&case, |(docs, queries, cut)| {
        let config = config(PLAIN, &[3.0, 1.0]);
        let cut = cut.min(docs.len());
        let index = Indexed::new(&config, &docs, &[cut, docs.len() - cut]);
        let oracle = Oracle::new(&docs, &config.weights);
        for query in &queries {
            check(&index, &oracle, query)?;
        }
        Ok(())
    });
    checked.unwrap();
}

#[test]
fn many_documents_match_the_oracle() {
    // So many that postings have several blocks, with short and long texts apart so that averages of segments differ.
    let mut state = 1_u64;
    let mut random = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let docs: Vec<Doc> = (0..9_000)
        .map(|n| {
            let most = if n < 6_000 { 3 } else { 12 };
            let name = WORDS[random(WORDS.len())].to_owned();
            let words = (0..=random(most)).map(|_| {
                let most = random(WORDS.len());
                WORDS[random(most + 1)]
            });
            let mut text = words.collect::<Vec<_>>().join(" ");
            if n % 900 == 17 {
                text.push_str(" rare left");
            }
            vec![vec![name], vec![text]]
        })
        .collect();
    let config = config(PLAIN, &[3.0, 1.0]);
    let oracle = Oracle::new(&docs, &config.weights);
    let whole = Indexed::new(&config, &docs, &[9_000]);
    let split = Indexed::new(&config, &docs, &[6_000, 2_100, 900]);
    for query in [
        "left",
        "pad left",
        "left-pad",
        "foo bar x1",
        "12",
        "lef",
        "bar 東京",
        "left pad leftpad foo",
        "barfoo",
        "rare left",
        "left rare",
        "rare lef",
    ] {
        let all = whole.best(query, 10_000);
        assert_eq!(all, split.best(query, 10_000), "{query}");
        let expected = oracle.scores(query);
        assert_eq!(all.len(), expected.len(), "{query}");
        assert!(
            all.iter().all(|(score, n)| close(*score, expected[n])),
            "{query}"
        );
        assert_eq!(
            whole.matching(query),
            expected.into_keys().collect::<Vec<_>>(),
            "{query}"
        );
        for limit in [1, 10, 51, 500] {
            let first = &all[..limit.min(all.len())];
            assert_eq!(whole.best(query, limit), first, "{query} by {limit}");
            assert_eq!(split.best(query, limit), first, "{query} by {limit}");
        }
        let mut paged: Vec<(f32, usize)> = Vec::new();
        while paged.len() < 400.min(all.len()) {
            let page = split.page(query, paged.last().copied(), 37, |_| true);
            paged.extend(page);
        }
        assert_eq!(paged, all[..paged.len()], "{query}");
    }
}
