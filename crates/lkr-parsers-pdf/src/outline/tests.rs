use std::collections::HashMap;

use super::*;

/// The objects of a test.
struct Listed(HashMap<Id, Value>);

impl Objects for Listed {
    fn object(&self, id: Id) -> Option<Value> {
        self.0.get(&id).cloned()
    }

    fn catalog(&self) -> Option<Value> {
        self.object((1, 0))
    }
}

fn reference(number: u32) -> Value {
    Value::Reference((number, 0))
}

fn name(name: &str) -> Value {
    Value::Name(name.as_bytes().to_vec())
}

fn text(text: &str) -> Value {
    Value::Text(text.as_bytes().to_vec())
}

fn dictionary(entries: &[(&str, Value)]) -> Value {
    Value::Dictionary(entries.iter().map(|(key, value)| (key.as_bytes().to_vec(), value.clone())).collect())
}

/// Two pages, and an outline that begins with object 10 and has these entries.
fn document(entries: &[(u32, Value)]) -> Listed {
    let kids = Value::Array(vec![reference(3), reference(4)]);
    let named = Value::Array(vec![
        text("there"),
        dictionary(&[("D", Value::Array(vec![reference(4), name("Fit")]))]),
    ]);
    let fixed = [
        (
            1,
            dictionary(&[
                ("Pages", reference(2)),
                ("Outlines", reference(5)),
                ("Names", dictionary(&[("Dests", dictionary(&[("Names", named)]))])),
            ]),
        ),
        (2, dictionary(&[("Kids", kids)])),
        (3, dictionary(&[])),
        (4, dictionary(&[])),
        (5, dictionary(&[("First", reference(10))])),
    ];
    let all = fixed.into_iter().chain(entries.iter().cloned());
    Listed(all.map(|(number, value)| ((number, 0), value)).collect())
}

fn found(entries: &[(u32, Value)]) -> Vec<(String, u8, usize, Option<f32>)> {
    let entries = super::entries(&document(entries));
    entries.into_iter().map(|entry| (entry.title, entry.level, entry.page, entry.top)).collect()
}

#[test]
fn entries_resolve_every_kind_of_destination() {
    let target =
        Value::Array(vec![reference(3), name("XYZ"), Value::Other, Value::Number(700.0), Value::Other]);
    let wide = Value::Array(vec![Value::Number(1.0), name("FitH"), Value::Number(90.0)]);
    let entries = [
        (
            10,
            dictionary(&[
                ("Title", text("A")),
                ("Dest", target),
                ("First", reference(11)),
                ("Next", reference(12)),
            ]),
        ),
        (11, dictionary(&[("Title", text("B")), ("A", dictionary(&[("D", text("there"))]))])),
        (12, dictionary(&[("Title", text("C")), ("Dest", wide), ("Next", reference(13))])),
        (13, dictionary(&[("Title", text("nowhere")), ("Dest", text("absent"))])),
    ];
    let expected =
        [("A".into(), 1, 0, Some(700.0)), ("B".into(), 2, 1, None), ("C".into(), 1, 1, Some(90.0))];
    assert_eq!(found(&entries), expected);
}

#[test]
fn cyclic_outline_ends() {
    let target = Value::Array(vec![reference(3)]);
    let entry = |next, first| {
        dictionary(&[
            ("Title", text("A")),
            ("Dest", target.clone()),
            ("Next", reference(next)),
            ("First", reference(first)),
        ])
    };
    assert_eq!(found(&[(10, entry(10, 10))]).len(), 1);
    assert_eq!(found(&[(10, entry(11, 5)), (11, entry(10, 11))]).len(), 2);
}

#[test]
fn outline_depth_is_limited() {
    let target = Value::Array(vec![reference(3)]);
    let chain: Vec<(u32, Value)> = (10..200)
        .map(|at| {
            let entry = [("Title", text("A")), ("Dest", target.clone()), ("First", reference(at + 1))];
            (at, dictionary(&entry))
        })
        .collect();
    let found = found(&chain);
    assert_eq!((found.len(), found.last().map(|entry| entry.1)), (usize::from(MAX_DEPTH), Some(MAX_DEPTH)));
}
