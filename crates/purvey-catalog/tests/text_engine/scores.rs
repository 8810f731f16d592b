//! What ranks before what.

use super::{NONE, PLAIN, close};
use crate::text_common::{Indexed, config, index, texts};

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
fn what_is_dead_has_no_part_in_any_score() {
    // "alpha" is the rarer word, until four dead documents make it the more frequent one; they are long, too.
    let mut docs = vec!["alpha x", "beta x", "beta y", "alpha and beta z"];
    let dead_text = "alpha and alphabet in a long text of many words that nobody sees any more";
    docs.extend([dead_text; 4]);
    let config = config(PLAIN, &[1.0]);
    let dead = [4, 5, 6, 7];
    let living = Indexed::new(&config, &texts(&docs[..4]), &[4]);
    for lens in [&[8][..], &[3, 2, 3]] {
        let mixed = Indexed::without(&config, &texts(&docs), lens, &dead);
        for query in ["alpha", "beta", "alpha beta", "bet", "alp", "x alp", "and"] {
            assert_eq!(mixed.best(query, 9), living.best(query, 9), "{query}");
            assert_eq!(mixed.matching(query), living.matching(query), "{query}");
        }
    }
    let words = living.search.query("alpha").unwrap().words().unwrap();
    assert_eq!(words[0].documents, 2);
}

#[test]
fn a_word_is_explained() {
    let docs = ["running shoes", "a run", "runner", "left-pad", "leftpad"];
    let config = config("en", &[1.0]);
    let index = Indexed::without(&config, &texts(&docs), &[3, 2], &[1]);
    let explain = |text: &str| {
        let words = index.search.query(text).unwrap().words().unwrap();
        let words = words.into_iter();
        let words = words.map(|w| (w.word, w.forms.join(" "), w.is_prefix, w.documents));
        words.collect::<Vec<_>>()
    };
    let word = |word: &str, forms: &str, is_prefix, documents| {
        (word.to_owned(), forms.to_owned(), is_prefix, documents)
    };
    // The dead one has the stem too.
    assert_eq!(explain("running"), [word("running", "run", true, 1)]);
    assert_eq!(
        explain("the running"),
        [word("running", "run therunning therun", true, 1)]
    );
    assert_eq!(explain("run"), [word("run", "", true, 2)]);
    assert_eq!(
        explain("left-pad"),
        [
            word("left", "leftpad", false, 2),
            word("pad", "leftpad", true, 2)
        ]
    );
    assert_eq!(explain("1.2.3"), [word("1.2.3", "", false, 0)]);
    assert_eq!(explain("..."), []);
}
