use lkr_domain::filter::{Instant, Number, Operand, Range, RangeEnd, ValueTest};

use super::{rng::Rng, support::*};
use crate::{Condition, Filter, Point, QueryVector, Tags};

const POINTS: u32 = 90;

/// Stored values that are close to each other: numbers, times and texts in several spellings, long texts that differ
/// behind the part that a store may keep in a key, and bytes that a key may reserve.
fn values() -> Vec<String> {
    let long = "long".repeat(100);
    let mut values: Vec<String> = [
        "",
        "0",
        "-0",
        "00",
        "1",
        "1.0",
        "01",
        "+1",
        "-1",
        "1e0",
        "1E0",
        "1.5",
        "10",
        "9",
        "1e300",
        "-1e300",
        "1e999",
        "2026-01-01",
        "2026-01-01T00:00:00Z",
        "2025-12-31T23:00:00-01:00",
        "2026-01-01T00:00:00.000000001Z",
        "1969-12-31T23:59:59Z",
        "0000-01-01",
        "9999-12-31",
        "2026-13-01",
        "a",
        "A",
        "aa",
        "ab",
        "b",
        "é",
        "e\u{301}",
        "\0",
        "\0\0",
        "a\0",
        "a\0b",
        "\u{1}",
        "\u{10ffff}",
        "\u{ffff}",
        "語",
    ]
    .map(str::to_owned)
    .into();
    let around = [60, 63, 64, 65, 80].map(|length| long.chars().take(length).collect::<String>());
    let behind = ["", "a", "b", "\0", "é"].map(|end| format!("{long}{end}"));
    values.extend(around);
    values.extend(behind);
    values.push("é".repeat(200));
    values.push(format!("{}z", "é".repeat(200)));
    values
}

fn operand(text: &str) -> Operand {
    let number = Number::parse(text).filter(|_| !text.starts_with('+')).map(Operand::Number);
    number
        .or_else(|| Instant::parse(text).map(Operand::Instant))
        .unwrap_or_else(|| Operand::Text(text.to_owned()))
}

fn pick<'v>(rng: &mut Rng, values: &'v [String]) -> &'v str {
    values.get(rng.below(values.len() as u64) as usize).map_or("", String::as_str)
}

fn random_operand(rng: &mut Rng, values: &[String]) -> Operand {
    let text = pick(rng, values);
    if rng.below(2) == 0 { operand(text) } else { Operand::Text(text.to_owned()) }
}

fn random_test(rng: &mut Rng, values: &[String]) -> ValueTest {
    let end = |rng: &mut Rng, operand| RangeEnd { operand, is_included: rng.below(2) == 0 };
    match rng.below(6) {
        0 => ValueTest::any_of((0..1 + rng.below(4)).map(|_| random_operand(rng, values))),
        1 => {
            let operand = random_operand(rng, values);
            ValueTest::Range(Range::From(end(rng, operand)))
        }
        2 => {
            let operand = random_operand(rng, values);
            ValueTest::Range(Range::To(end(rng, operand)))
        }
        3 => {
            let lower = random_operand(rng, values);
            let upper = random_operand(rng, values);
            if std::mem::discriminant(&lower) == std::mem::discriminant(&upper) {
                ValueTest::Range(Range::Between(end(rng, lower), end(rng, upper)))
            } else {
                ValueTest::Range(Range::From(end(rng, lower)))
            }
        }
        4 => {
            let text = pick(rng, values);
            let length = rng.below(text.chars().count() as u64 + 1) as usize;
            ValueTest::Prefix(text.chars().take(length).collect())
        }
        _ => ValueTest::Exists(rng.below(2) == 0),
    }
}

fn random_filter(rng: &mut Rng, values: &[String], depth: u32) -> Filter {
    let mut filter = Filter::all();
    for _ in 0..rng.below(3) {
        filter = filter.and(random_condition(rng, values, depth));
    }
    if rng.below(3) == 0 {
        filter = filter.and_not(random_condition(rng, values, depth));
    }
    filter
}

fn random_condition(rng: &mut Rng, values: &[String], depth: u32) -> Condition {
    if depth > 0 && rng.below(2) == 0 {
        return Condition::Any((0..rng.below(4)).map(|_| random_filter(rng, values, depth - 1)).collect());
    }
    match rng.below(8) {
        0 => Condition::Docs(vec![doc(rng.below(9) as u32)]),
        1 => Condition::Tag { key: "a".to_owned(), any: vec![pick(rng, values).to_owned()] },
        key => Condition::Value {
            key: if key % 2 == 0 { "a" } else { "b" }.to_owned(),
            test: random_test(rng, values),
        },
    }
}

fn random_tags(rng: &mut Rng, values: &[String]) -> Tags {
    let keys = ["a", "b"].into_iter().filter(|_| rng.below(8) > 0).collect::<Vec<_>>();
    keys.into_iter().map(|key| (key.to_owned(), pick(rng, values).to_owned())).collect()
}

/// Random filters over values of all types select the points that [`Filter::matches`] selects, in every read, after
/// writes, changes of tags and deletions.
pub async fn value_filters_match_the_reference(store: Store) {
    let name = create_collection(&store).await;
    let (values, mut rng) = (values(), Rng::new(39));
    let mut points: Vec<Point> = (0..POINTS)
        .map(|n| Point { tags: random_tags(&mut rng, &values), ..with_sparse(n, &[(1, 1.0)]) })
        .collect();
    store.upsert(&name, points.clone()).await.unwrap();
    for round in 0..4 {
        for _ in 0..150 {
            let filter = random_filter(&mut rng, &values, 2);
            let expected: Vec<u32> = points
                .iter()
                .filter(|point| filter.matches(point.id, &point.origin, &point.tags))
                .map(|point| point_number(point.id))
                .collect();
            let context = format!("round {round}: {filter:?}");
            assert_eq!(store.count(&name, &filter).await.unwrap(), expected.len() as u64, "{context}");
            let mut scrolled = scroll_all(&store, &name, &filter, 40).await;
            scrolled.sort_unstable();
            assert_eq!(scrolled, expected, "{context}");
            let query = QueryVector::Sparse(sparse(&[(1, 1.0)]));
            let mut hits = point_numbers(&search(&store, &name, query, &filter, 100).await.unwrap());
            hits.sort_unstable();
            assert_eq!(hits, expected, "{context}");
        }
        change_points(&store, &name, &mut points, &mut rng, &values).await;
    }
}

/// Deletes a tenth of the points, gives a tenth other tags, and stores a tenth again with other tags.
async fn change_points(
    store: &Store,
    name: &crate::Collection,
    points: &mut Vec<Point>,
    rng: &mut Rng,
    values: &[String],
) {
    let removed: Vec<_> = points.extract_if(.., |_| rng.below(10) == 0).map(|point| point.id).collect();
    store.delete(name, &Filter::only(Condition::Ids(removed))).await.unwrap();
    for point in points.iter_mut().filter(|point| point_number(point.id) % 10 < 2) {
        point.tags = random_tags(rng, values);
        if point_number(point.id).is_multiple_of(10) {
            store.upsert(name, vec![point.clone()]).await.unwrap();
        } else {
            let only = Filter::only(Condition::Ids(vec![point.id]));
            store.set_tags(name, &only, &point.tags).await.unwrap();
        }
    }
}
