//! Files, and how documents lie in them.

use crate::text_common::{self, Doc, Indexed, config, texts, write};
use purvey_catalog::Error;
use purvey_catalog::fs::Durability;
use purvey_catalog::search::{Bitset, TextMatch};
use purvey_catalog::text::{Analyzer, TextIndex, TextWriter};
use std::sync::Arc;

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
    let search = text_common::search(index, &config);
    let query = search.query("word").unwrap();
    assert_eq!(query.matching(0).unwrap().len(), 0);
    assert_eq!(query.best(0, &Bitset::new(0), None, 5).unwrap(), []);
    assert_eq!(query.best(7, &Bitset::new(0), None, 5).unwrap(), []);
    let blank: Vec<Doc> = vec![vec![vec![], vec![String::new()]]; 3];
    write(&path, &config, &blank);
    let index = Arc::new(TextIndex::open(&path).unwrap());
    assert_eq!(index.documents(), 3);
    let search = text_common::search(index, &config);
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
    let search = text_common::search(Arc::clone(&index), &config);
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
        (parts(&path), text_common::search(index, &config))
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
