//! Random catalogs find what the oracle finds; `TEXT_CASES` sets how many there are.

use super::{PLAIN, close};
use crate::text_common::oracle::Oracle;
use crate::text_common::{Doc, Indexed, config};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError};

const WORDS: [&str; 22] = [
    "left", "pad", "leftpad", "padleft", "foo", "bar", "foobar", "x1", "12", "34", "1234", "東京",
    "京都", "東", "left12", "barfoo", "v1", "2", "foo1", "c", "lef", "net",
];
const BETWEEN: [&str; 17] = [
    " ", " ", " ", "-", "-", "_", ".", "/", " - ", ", ", "@", "--", "", "++ ", "# ", " .", "++",
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
        prop::collection::btree_set(0..40_usize, 0..20),
    );
    let checked = runner.run(&case, |(docs, queries, cut, dead)| {
        let config = config(PLAIN, &[3.0, 1.0]);
        let cut = cut.min(docs.len());
        let dead: Vec<usize> = dead.into_iter().filter(|n| *n < docs.len()).collect();
        let index = Indexed::without(&config, &docs, &[cut, docs.len() - cut], &dead);
        let oracle = Oracle::new(&docs, &dead, &config.weights);
        for query in &queries {
            check(&index, &oracle, query)?;
        }
        Ok(())
    });
    checked.unwrap();
}

#[test]
fn what_was_found_at_random_matches_the_oracle() {
    let none: Doc = vec![vec![], vec![]];
    let texts =
        |texts: &[&str]| -> Doc { vec![vec![], texts.iter().map(ToString::to_string).collect()] };
    let named = vec![
        vec!["left.left ".to_owned()],
        vec!["left padleft ".to_owned()],
    ];
    // The end of a number and the word after it, joined as in another text of the same document, and the other way about; a word with its
    // mark, which the join that has it without does not stand for.
    for (doc, query) in [
        (texts(&["v1-1234 ", "1234 foo foo1 "]), "v1-1234 foo "),
        (texts(&["foo1 x", "12-34"]), "foo 12-34"),
        (named, "pad .left "),
    ] {
        let docs = [none.clone(), doc];
        let config = config(PLAIN, &[3.0, 1.0]);
        let index = Indexed::without(&config, &docs, &[2], &[]);
        check(&index, &Oracle::new(&docs, &[], &config.weights), query).unwrap();
    }
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
                let between = BETWEEN[random(BETWEEN.len())];
                format!("{}{between}", WORDS[random(most + 1)])
            });
            let mut text: String = words.collect();
            if n % 900 == 17 {
                text.push_str(" rare left");
            }
            vec![vec![name], vec![text]]
        })
        .collect();
    let config = config(PLAIN, &[3.0, 1.0]);
    // Few in the first segment, so that they are sought, and many in the last, which are gone through.
    let dead: Vec<usize> = (0..9_000)
        .filter(|n| n % 1_000 == 7 || *n > 8_100 && n % 3 == 0)
        .collect();
    let oracle = Oracle::new(&docs, &dead, &config.weights);
    let whole = Indexed::without(&config, &docs, &[9_000], &dead);
    let split = Indexed::without(&config, &docs, &[6_000, 2_100, 900], &dead);
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
        "v1.2",
        "foo1 2",
        "12-34",
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
