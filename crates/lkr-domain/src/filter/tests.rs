use ::time::macros::datetime;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{Counts, DocId, Original, SpaceName};

fn document() -> Document {
    Document {
        doc_id: DocId::from_bytes([0x12; 16]),
        space: SpaceName::default(),
        revision: 1,
        title: "Über alles".to_owned(),
        source: "/reports/2026/a.pdf".to_owned(),
        summary: String::new(),
        keywords: Vec::new(),
        category: String::new(),
        language: "de".to_owned(),
        metadata: crate::Metadata::from([
            ("price".to_owned(), "12.50".to_owned()),
            ("due".to_owned(), "2026-03-01".to_owned()),
            ("a.b".to_owned(), "x".to_owned()),
            ("empty".to_owned(), String::new()),
        ]),
        counts: Counts::default(),
        char_count: 1,
        content_sha256: String::new(),
        created_at: datetime!(2026-01-02 03:04:05.123456789 UTC),
        updated_at: datetime!(2026-02-02 03:04:05 UTC),
        created_by: "alice".into(),
        category_by_hand: false,
        original: Some(Original {
            path: "2026/01/x_a.PDF".to_owned(),
            file_name: "a.PDF".to_owned(),
            size_bytes: 1_234,
            sha256: None,
        }),
        fingerprint: None,
    }
}

fn parse(json: &Value) -> FilterExpr {
    FilterExpr::parse("where", json).unwrap()
}

fn refused(json: &Value) -> (String, String) {
    let error = FilterExpr::parse("where", json).unwrap_err();
    (error.place, error.problem)
}

#[test]
fn comparison_of_a_field_follows_the_type_of_the_operand() {
    let cases = [
        (json!({"field": "metadata.price", "eq": 12.5}), true),
        (json!({"field": "metadata.price", "eq": "12.5"}), false),
        (json!({"field": "metadata.price", "eq": "12.50"}), true),
        (json!({"field": "metadata.price", "in": ["x", 12.5, "2026-01-01"]}), true),
        (json!({"field": "metadata.price", "gt": 9}), true),
        (json!({"field": "metadata.price", "gt": "9"}), false),
        (json!({"field": "metadata.price", "gte": 12.5, "lt": 13}), true),
        (json!({"field": "metadata.price", "gt": 12.5}), false),
        (json!({"field": "metadata.price", "lt": "2026-01-01"}), false),
        (json!({"field": "metadata.due", "eq": "2026-03-01T01:00:00+01:00"}), true),
        (json!({"field": "metadata.due", "gt": "2026-02-28", "lte": "2026-03-01"}), true),
        (json!({"field": "metadata.due", "prefix": "2026-03"}), true),
        (json!({"field": "metadata.due", "lt": 9999}), false),
        (json!({"field": "metadata.a.b", "eq": "x"}), true),
        (json!({"field": "metadata.a", "exists": true}), false),
        (json!({"field": "metadata.original_size_bytes", "gte": 1_234}), true),
        (json!({"field": "metadata.original_filename", "eq": "a.PDF"}), true),
        (json!({"field": "title", "prefix": "Ü"}), true),
        (json!({"field": "title", "prefix": "ü"}), false),
        (json!({"field": "title", "prefix": ""}), true),
        (json!({"field": "title", "gte": "Z"}), true),
        (json!({"field": "source", "prefix": "/reports/"}), true),
        (json!({"field": "content_type", "eq": "application/pdf"}), true),
        (json!({"field": "space", "eq": "default"}), true),
        (json!({"field": "created_by", "in": ["bob", "alice"]}), true),
        (json!({"field": "doc_id", "prefix": "1212"}), true),
        (json!({"field": "created_at", "gte": "2026-01-02", "lt": "2026-01-03"}), true),
        (json!({"field": "created_at", "eq": "2026-01-02T03:04:05.123456Z"}), true),
        (json!({"field": "updated_at", "eq": "2026-02-02T03:04:05Z"}), true),
    ];
    for (json, expected) in cases {
        assert_eq!(parse(&json).matches(&document()), expected, "{json}");
        assert_eq!(parse(&json!({"not": json})).matches(&document()), !expected, "not {json}");
    }
}

#[test]
fn missing_or_empty_field_passes_exists_false_alone() {
    let tests = [
        json!({"eq": ""}),
        json!({"in": ["", 0]}),
        json!({"gte": ""}),
        json!({"lt": "z"}),
        json!({"lt": 1}),
        json!({"prefix": ""}),
        json!({"exists": true}),
    ];
    for field in ["category", "metadata.empty", "metadata.missing"] {
        for test in &tests {
            let mut json = test.clone();
            json["field"] = field.into();
            assert!(!parse(&json).matches(&document()), "{json}");
            assert!(parse(&json!({"not": json})).matches(&document()), "not {json}");
        }
        assert!(parse(&json!({"field": field, "exists": false})).matches(&document()));
    }
    let mut document = document();
    document.original = None;
    assert!(parse(&json!({"field": "content_type", "exists": false})).matches(&document));
}

#[test]
fn parse_names_the_place_of_an_error() {
    let title = json!({"field": "title", "eq": "x"});
    let deep = |levels| (0..levels).fold(title.clone(), |json, _| json!({"not": json}));
    let wide = |count: usize| json!({"or": vec![title.clone(); count]});
    for (json, place) in [
        (json!(null), "where"),
        (json!([]), "where"),
        (json!({}), "where"),
        (json!({"xor": []}), "where.xor"),
        (json!({"and": [title], "or": [title]}), "where.or"),
        (json!({"and": []}), "where.and"),
        (json!({"and": title}), "where.and"),
        (json!({"not": [title]}), "where.not"),
        (json!({"and": [title, title, {"field": "title", "gte": null}]}), "where.and[2].gte"),
        (json!({"or": [{"not": {"field": "nope", "eq": 1}}]}), "where.or[0].not.field"),
        (json!({"field": "metadata", "eq": 1}), "where.field"),
        (json!({"field": 1, "eq": 1}), "where.field"),
        (json!({"field": "title"}), "where"),
        (json!({"field": "title", "like": 1}), "where.like"),
        (json!({"field": "title", "and": []}), "where.and"),
        (json!({"field": "title", "eq": true}), "where.eq"),
        (json!({"field": "title", "eq": []}), "where.eq"),
        (json!({"field": "title", "in": "x"}), "where.in"),
        (json!({"field": "title", "in": []}), "where.in"),
        (json!({"field": "title", "in": ["x", null]}), "where.in[1]"),
        (json!({"field": "title", "in": vec!["x"; 1_001]}), "where.in"),
        (json!({"field": "title", "exists": 1}), "where.exists"),
        (json!({"field": "title", "prefix": 1}), "where.prefix"),
        (json!({"field": "title", "gt": 1, "gte": 1}), "where.gte"),
        (json!({"field": "title", "gt": 1, "eq": 1}), "where.gt"),
        (json!({"field": "title", "gt": 1, "lt": "x"}), "where.lt"),
        (json!({"field": "title", "gte": "2026-01-01", "lte": "x"}), "where.lte"),
        (json!({"field": "title", "gt": 1, "lt": 2, "lte": 2}), "where.lte"),
        (json!({"field": "created_at", "gt": "yesterday"}), "where.gt"),
        (json!({"field": "created_at", "eq": 5}), "where.eq"),
        (json!({"field": "updated_at", "prefix": "2026"}), "where.prefix"),
        (deep(8), "where.not.not.not.not.not.not.not.not"),
        (wide(64), "where.or[63]"),
    ] {
        assert_eq!(refused(&json).0, place, "{json}");
    }
    assert!(FilterExpr::parse("where", &deep(7)).is_ok());
    assert!(FilterExpr::parse("where", &wide(63)).is_ok());
    let values: Vec<String> = (0..1_000).map(|n| n.to_string()).collect();
    assert!(FilterExpr::parse("where", &json!({"field": "title", "in": values})).is_ok());
}

#[test]
fn equal_expressions_have_one_form() {
    for (a, b) in [
        (
            json!({"field": "title", "in": ["b", 1, "a", "b"]}),
            json!({"field": "title", "in": [1.0, "a", "b"]}),
        ),
        (json!({"field": "title", "in": ["a"]}), json!({"field": "title", "eq": "a"})),
        (json!({"field": "title", "gt": -0.0}), json!({"field": "title", "gt": 0})),
        (
            json!({"field": "title", "gt": "2026-01-01"}),
            json!({"field": "title", "gt": "2026-01-01T01:00:00+01:00"}),
        ),
        (json!({"lt": 2, "gt": 1, "field": "title"}), json!({"field": "title", "gt": 1, "lt": 2})),
    ] {
        assert_eq!(parse(&a), parse(&b), "{a} {b}");
    }
    assert_ne!(parse(&json!({"field": "title", "gt": "1"})), parse(&json!({"field": "title", "gt": 1})));
}

fn operands() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-3i32..20).prop_map(|n| json!(f64::from(n) / 2.0)),
        (1u32..29).prop_map(|day| json!(format!("2026-02-{day:02}"))),
        "[a-c0-9.]{0,3}".prop_map(Value::from),
    ]
}

fn comparisons() -> impl Strategy<Value = Value> {
    let fields = prop_oneof![
        Just("title"),
        Just("category"),
        Just("source"),
        Just("metadata.price"),
        Just("metadata.due"),
        Just("metadata.none")
    ];
    let ops = prop_oneof![Just("eq"), Just("gt"), Just("gte"), Just("lt"), Just("lte")];
    prop_oneof![
        (fields.clone(), ops, operands()).prop_map(|(field, op, value)| json!({"field": field, op: value})),
        (fields.clone(), proptest::collection::vec(operands(), 1..5))
            .prop_map(|(field, values)| json!({"field": field, "in": values})),
        (fields.clone(), -3i32..9, 0i32..9)
            .prop_map(|(field, a, b)| json!({"field": field, "gt": a, "lte": a + b})),
        (fields.clone(), "[a-c0-9]{0,2}").prop_map(|(field, text)| json!({"field": field, "prefix": text})),
        (fields, any::<bool>()).prop_map(|(field, exists)| json!({"field": field, "exists": exists})),
    ]
}

pub(super) fn expressions() -> impl Strategy<Value = Value> {
    comparisons().prop_recursive(3, 24, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 1..4).prop_map(|all| json!({"and": all})),
            proptest::collection::vec(inner.clone(), 1..4).prop_map(|any| json!({"or": any})),
            inner.prop_map(|one| json!({"not": one})),
        ]
    })
}

proptest! {
    #[test]
    fn printed_expression_parses_as_the_same(json in expressions()) {
        let expr = parse(&json);
        let printed = expr.to_json();
        prop_assert_eq!(parse(&printed), expr);
    }

    #[test]
    fn combinations_follow_the_laws_of_logic(
        a in comparisons(),
        b in comparisons(),
        price in "[0-9]{0,2}(\\.[05])?|x",
        title in "[a-c]{0,3}",
    ) {
        let mut document = document();
        document.metadata.insert("price".to_owned(), price);
        document.title = title;
        let matches = |json: &Value| parse(json).matches(&document);
        let (both, either) = (matches(&json!({"and": [a, b]})), matches(&json!({"or": [a, b]})));
        prop_assert_eq!(both, matches(&a) && matches(&b));
        prop_assert_eq!(either, matches(&a) || matches(&b));
        prop_assert_eq!(matches(&json!({"not": {"not": a}})), matches(&a));
        let de_morgan = json!({"not": {"and": [{"not": a}, {"not": b}]}});
        prop_assert_eq!(matches(&de_morgan), either);
    }

    #[test]
    fn text_of_a_field_passes_the_same_tests_as_its_value(json in comparisons()) {
        let FilterExpr::Field(field, test) = parse(&json) else { unreachable!() };
        let document = document();
        let value = field.value_in(&document);
        prop_assert_eq!(value.passes(&test), test.passes(value.clone().into_text().as_deref()));
    }
}
