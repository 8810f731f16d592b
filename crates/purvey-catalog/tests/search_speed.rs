//! How long searches take over 1.1 million generated Offerings. By hand, optimised:
//! `cargo test --release -p purvey-catalog --test search_speed -- --ignored --nocapture`
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::needless_pass_by_value,
    clippy::semicolon_if_nothing_returned,
    reason = "a program for people"
)]

mod search_common;

use purvey_catalog::search::{
    After, Bitset, ColumnName, ColumnWriter, Columns, FilterCache, Ids, Members, Order, Plan,
    Query, SearchIndex, SearchSegment,
};
use purvey_odp::filter::{FilterDefinition, FilterExpression};
use purvey_odp::identity::CapabilityId;
use purvey_odp::sort::{Direction, Missing, SortKey};
use purvey_odp::value::ScalarType;
use roaring::RoaringBitmap;
use search_common::values::Random;
use serde_json::{Value, json};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Filters: identifier, type, distinct values.
const FILTERS: [(&str, ScalarType, usize); 8] = [
    ("registry", ScalarType::String, 9),
    ("major", ScalarType::Integer, 60),
    ("license", ScalarType::String, 40),
    ("tag", ScalarType::String, 2_000),
    ("downloads", ScalarType::Integer, 300_000),
    ("day", ScalarType::Date, 3_650),
    ("name", ScalarType::String, usize::MAX),
    ("price", ScalarType::Decimal, 5_000),
];

fn definition(id: &str) -> FilterDefinition {
    let base = id.split('.').next().unwrap();
    let scalar_type = FILTERS.iter().find(|f| f.0 == base).unwrap().1;
    let mut operators = vec!["eq", "in", "exists"];
    if scalar_type.is_ordered() {
        operators.extend(["gte", "lte"]);
    }
    FilterDefinition::validate(json!({
        "id": id, "title": "T", "description": "D.", "type": scalar_type.as_str(),
        "operators": operators, "refinable": true
    }))
    .unwrap()
}

/// Small numbers are much more frequent than large ones.
fn skewed(random: &mut Random, bound: usize) -> usize {
    let unit = random.below(1 << 30) as f64 / f64::from(1 << 30);
    ((bound as f64).powf(unit) - 1.0) as usize
}

fn value(filter: &str, n: usize) -> Value {
    match filter {
        "downloads" | "major" => json!(n),
        "price" => json!(format!("{}.{:02}", n / 100, n % 100)),
        "day" => json!(format!(
            "20{:02}-{:02}-{:02}",
            n / 365 + 10,
            n % 12 + 1,
            n % 28 + 1
        )),
        _ => json!(format!("{filter}-{n:07}")),
    }
}

struct Numbered {
    ids: Vec<String>,
}

impl Ids for Numbered {
    fn id(&self, ordinal: u32) -> &str {
        &self.ids[ordinal as usize]
    }

    fn find(&self, id: &str) -> Option<u32> {
        self.ids
            .binary_search_by(|known| known.as_str().cmp(id))
            .ok()
            .map(|at| at as u32)
    }

    fn seek_after(&self, id: &str) -> u32 {
        self.ids.partition_point(|known| known.as_str() <= id) as u32
    }
}

fn segment(first: usize, documents: usize, random: &mut Random) -> SearchSegment {
    let mut columns = Vec::new();
    for (filter, scalar_type, distinct) in FILTERS {
        for copy in 0..2 {
            let mut writer = ColumnWriter::new(scalar_type);
            for at in 0..documents {
                let n = match filter {
                    "tag" => random.below(5),
                    _ => usize::from(!random.chance(3)),
                };
                let values: Vec<_> = (0..n)
                    .map(|_| match filter {
                        "name" => first + at,
                        "day" => random.below(distinct),
                        _ => skewed(random, distinct),
                    })
                    .map(|n| scalar_type.scalar(&value(filter, n)).unwrap())
                    .collect();
                writer.push(&values).unwrap();
            }
            let id = if copy == 0 {
                filter.to_owned()
            } else {
                format!("{filter}.2")
            };
            let name = ColumnName::new(None, &CapabilityId::parse(&id).unwrap());
            columns.push((name, Arc::new(writer.finish().unwrap())));
        }
    }
    let columns = Columns::new(documents as u32, columns);
    println!(
        "{documents} documents: {} MB of columns",
        columns.bytes() >> 20
    );
    let ids = Numbered {
        ids: (first..first + documents)
            .map(|n| format!("o{n:08}"))
            .collect(),
    };
    let dead: RoaringBitmap = (0..documents as u32).filter(|n| n % 997 == 5).collect();
    SearchSegment::new(Arc::new(columns), Arc::new(ids), &dead)
}

fn expression(id: &str, operator: &str, value: Value) -> FilterExpression {
    FilterExpression::validate(
        json!({"id": id, "operator": operator, "value": value}),
        &definition(id),
    )
    .unwrap()
}

fn key(id: &str, direction: Direction) -> SortKey {
    SortKey::new(CapabilityId::parse(id).unwrap(), direction, Missing::Last)
}

fn measure(name: &str, runs: usize, mut run: impl FnMut()) {
    run();
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    let ms = |at: usize| times[at.min(runs - 1)].as_secs_f64() * 1e3;
    println!(
        "{name:58} p50 {:8.3} ms   p95 {:8.3} ms",
        ms(runs / 2),
        ms(runs * 95 / 100)
    );
}

fn run(name: &str, segments: Vec<SearchSegment>) {
    println!("-- {name}");
    let cache = Arc::new(FilterCache::default());
    let warm = SearchIndex::new(segments, Arc::clone(&cache));
    let defined =
        |ids: &[&str]| -> Vec<FilterDefinition> { ids.iter().map(|id| definition(id)).collect() };
    let registry = expression(
        "registry",
        "in",
        json!(["registry-0000001", "registry-0000003"]),
    );
    let downloads = expression("downloads", "gte", json!(100));
    let two = [registry, downloads];
    let most = [key("downloads", Direction::Descending)];
    let by_name = [key("name", Direction::Descending)];
    let three = [
        key("major", Direction::Descending),
        key("tag", Direction::Ascending),
        key("day", Direction::Descending),
    ];
    let blank = Query {
        filters: &[],
        collection: None,
        scope: None,
        text: None,
        order: Order::Id,
        after: None,
        limit: 20,
        refinements: &[],
        plan: None,
    };
    let search = |query: &Query<'_>| {
        black_box(warm.search(query).unwrap());
    };
    let facets = defined(&["registry", "major"]);
    let combined = Query {
        filters: &two,
        order: Order::Keys(&most),
        refinements: &facets,
        ..blank
    };
    measure("2 filters, sort, 2 refinements", 51, || search(&combined));
    let turn = std::cell::Cell::new(0);
    measure(
        "2 filters never seen before, sort, 2 refinements",
        51,
        || {
            turn.set(turn.get() + 1);
            let fresh = [
                expression(
                    "registry",
                    "in",
                    json!([
                        "registry-0000001",
                        "registry-0000003",
                        format!("none-{}", turn.get())
                    ]),
                ),
                expression("downloads", "gte", json!(100 + turn.get())),
            ];
            search(&Query {
                filters: &fresh,
                ..combined
            });
        },
    );
    measure("the same, a later page", 51, || {
        search(&Query {
            after: Some(After {
                id: "o00500000",
                score: 0.0,
                place: None,
            }),
            refinements: &[],
            ..combined
        });
    });
    let four = defined(&["registry", "major", "license", "tag"]);
    let nearly_all = [expression("price", "exists", json!(true))];
    let loose = Query {
        filters: &nearly_all,
        refinements: &four,
        ..blank
    };
    measure("a filter that 97 % match, 4 refinements", 31, || {
        search(&loose)
    });
    for plan in [Plan::Iterate, Plan::Complement, Plan::Scan] {
        measure(&format!("  forced: {plan:?}"), 31, || {
            search(&Query {
                plan: Some(plan),
                ..loose
            })
        });
    }
    let half = [expression("day", "gte", json!("2015-01-01"))];
    let half = Query {
        filters: &half,
        refinements: &four,
        ..blank
    };
    measure("a filter that half match, 4 refinements", 31, || {
        search(&half)
    });
    for plan in [Plan::Iterate, Plan::Complement, Plan::Scan] {
        measure(&format!("  forced: {plan:?}"), 31, || {
            search(&Query {
                plan: Some(plan),
                ..half
            })
        });
    }
    measure("nothing narrows, 4 refinements", 31, || {
        search(&Query {
            refinements: &four,
            ..blank
        })
    });
    measure("everything by downloads", 31, || {
        search(&Query {
            order: Order::Keys(&most),
            ..blank
        })
    });
    measure("everything by name, descending (ids backwards)", 31, || {
        search(&Query {
            order: Order::Keys(&by_name),
            ..blank
        })
    });
    measure("everything by three keys, one many-valued", 31, || {
        search(&Query {
            order: Order::Keys(&three),
            ..blank
        })
    });
    let sets = warm.segments().iter().map(|segment| {
        let mut set = Bitset::new(segment.live().len());
        segment
            .live()
            .iter()
            .filter(|n| n % 5 == 0)
            .for_each(|n| set.insert(n));
        set
    });
    let members = Members::new(sets.collect());
    measure("a fifth, 2 filters, sort, 4 refinements", 31, || {
        search(&Query {
            scope: Some(&members),
            refinements: &four,
            ..combined
        });
    });
    let names = defined(&["name", "downloads"]);
    measure("2 filters, refinements of names and downloads", 11, || {
        search(&Query {
            refinements: &names,
            ..combined
        })
    });
    let ids: Vec<String> = FILTERS
        .iter()
        .flat_map(|f| [f.0.to_owned(), format!("{}.2", f.0)])
        .collect();
    let all: Vec<&str> = ids.iter().map(String::as_str).collect();
    let all = defined(&all);
    let turn = std::cell::Cell::new(0);
    measure(
        "worst: 32 sets of 100 values, 16 refinements, 3 keys",
        5,
        || {
            turn.set(turn.get() + 1);
            let worst: Vec<_> = ids
                .iter()
                .flat_map(|id| [(id, 0), (id, 1)])
                .map(|(id, more)| {
                    let base = id.split('.').next().unwrap();
                    let mut values: Vec<Value> = Vec::new();
                    for n in 0..300 {
                        let value = value(base, n + more);
                        if values.len() < 99 && !values.contains(&value) {
                            values.push(value);
                        }
                    }
                    values.push(value(base, 300_000 + turn.get() * 12 * 28 + more));
                    values.dedup();
                    expression(id, "in", Value::Array(values))
                })
                .collect();
            search(&Query {
                filters: &worst,
                order: Order::Keys(&three),
                refinements: &all,
                limit: 100,
                ..blank
            });
        },
    );
    println!("cache: {} MB", cache.bytes() >> 20);
}

#[test]
#[ignore = "a measurement"]
fn speed() {
    let mut random = Random(7);
    let large = || segment(0, 1_100_000, &mut Random(3));
    run("one segment of 1,100,000", vec![large()]);
    let mut segments = vec![large()];
    let mut first = 1_100_000;
    for documents in [10_000; 8].into_iter().chain([1_000; 8]).chain([50; 8]) {
        segments.push(segment(first, documents, &mut random));
        first += documents;
    }
    run("one large segment and 24 small ones", segments);
}
