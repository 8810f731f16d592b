//! The last word as a beginning: every document with a word that begins so matches, and no choice among such words is made.

use super::PLAIN;
use crate::text_common::{Indexed, config, index, texts};

/// What so many documents are called, one word each.
fn named(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("pre{n:03}")).collect()
}

fn slices(docs: &[String]) -> Vec<&str> {
    docs.iter().map(String::as_str).collect()
}

#[test]
fn of_more_words_than_anybody_counts_each_is_found() {
    let docs = named(500);
    let all: Vec<usize> = (0..500).collect();
    for lens in [&[500][..], &[1, 299, 200]] {
        let index = Indexed::new(&config(PLAIN, &[1.0]), &texts(&slices(&docs)), lens);
        assert_eq!(index.matching("pre"), all);
        // All of one length, so by number.
        assert_eq!(index.order("pre"), all);
        assert_eq!(index.matching("pre49"), (490..500).collect::<Vec<_>>());
    }
}

#[test]
fn what_is_hidden_takes_no_place_from_what_is_seen() {
    // Of two hundred words that begin alike, more frequent than the last, none is seen.
    let mut docs: Vec<String> = named(200);
    docs.extend(named(200));
    docs.push("prelude".to_owned());
    let dead: Vec<usize> = (0..400).collect();
    for lens in [&[401][..], &[399, 2], &[400, 1]] {
        let docs = texts(&slices(&docs));
        let index = Indexed::without(&config(PLAIN, &[1.0]), &docs, lens, &dead);
        assert_eq!(index.matching("pre"), [400]);
        assert_eq!(index.order("pre"), [400]);
        let alone = self::index(PLAIN, &["prelude"]);
        assert_eq!(index.best("pre", 1)[0].0, alone.best("pre", 1)[0].0);
    }
}

#[test]
fn completions_count_less_than_words_and_the_shorter_text_first() {
    let docs = [
        "prefix in a text of some length that has much to say",
        "prefix here",
        "pre",
        "prefix",
        "other",
    ];
    let index = index(PLAIN, &docs);
    assert_eq!(index.order("pre"), [2, 3, 1, 0]);
    // 0.5 * ln(1 + 1.5 / 4.5) * 2.2 / (1 + 1.2 (0.25 + 0.75 * length / 3.6)): lengths are 12, 3 ("prefixhere" too), 1, 1 and 1.
    let scores = index.best("pre", 10);
    assert!(super::close(scores[1].0, 0.204_161), "{scores:?}");
    assert!(super::close(scores[2].0, 0.154_366), "{scores:?}");
}

#[test]
fn the_same_beginning_asked_again_gives_the_same() {
    let docs = named(3_000);
    let index = index(PLAIN, &slices(&docs));
    let before: Vec<_> = (0..300)
        .map(|n| index.matching(&format!("pre{n:02}")))
        .collect();
    for (n, before) in before.iter().enumerate() {
        assert_eq!(index.matching(&format!("pre{n:02}")), *before);
    }
}
