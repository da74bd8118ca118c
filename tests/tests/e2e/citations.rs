//! Citations over HTTP: the text between the offsets equals the chunk, for all kinds of text.

use lkr_tests::Server;
use serde_json::json;

const TEXTS: [&str; 5] = [
    "\u{feff}# Ünïcödé\r\n\r\nDie „Sieben Schwestern“ 🏔️ stürzen.\r\n\r\n## Zwei 👩‍👩‍👧\r\n\r\nNoch ein Satz. Und noch einer!",
    "東京は日本の首都である。人口は約千四百万人。\n\n大阪は西日本の中心だ。たこ焼きが有名である。",
    "水星是太阳系中最小的行星。它没有卫星。金星的自转方向与其他行星相反。",
    "Setext title\n============\n\nA line\twith\u{a0}odd\u{2003}spaces.\n\nSecond\n------\n\n```\n# not a heading\n```\n\n- a\n- b\n",
    "e\u{301}e\u{301}e\u{301} combining marks stay apart. \u{202e}reversed\u{202c} text \u{0007} bell.",
];

#[test]
fn chunk_and_result_texts_equal_the_text_between_their_offsets() {
    let server = Server::start();
    let mut ids: Vec<String> = TEXTS.iter().map(|text| server.add(&json!({"text": text}))).collect();
    let long: String = TEXTS.iter().cycle().take(300).map(|text| format!("{text}\n\n")).collect();
    ids.push(server.add(&json!({"text": long})));
    for (doc_id, sent) in ids.iter().zip(TEXTS.iter().copied().chain([long.as_str()])) {
        let text =
            server.get(&format!("/documents/{doc_id}/text")).data()["text"].as_str().unwrap().to_owned();
        assert_eq!(text, sent, "JSON text is stored unchanged");
        let characters: Vec<char> = text.chars().collect();
        let cut = |item: &serde_json::Value| {
            let at = |key: &str| item[key].as_u64().unwrap() as usize;
            characters[at("char_start")..at("char_end")].iter().collect::<String>()
        };
        let chunks = server.list_all(&format!("/documents/{doc_id}/chunks"));
        assert!(!chunks.is_empty());
        for chunk in &chunks {
            assert_eq!(cut(chunk), chunk["text"].as_str().unwrap());
        }
        for query in ["Sieben Schwestern", "日本の首都", "行星", "odd spaces", "combining marks"] {
            let found =
                server.search(&json!({"query": query, "top_k": 100, "filters": {"doc_ids": [doc_id]}}));
            for result in found["results"].as_array().unwrap() {
                assert_eq!(cut(result), result["text"].as_str().unwrap());
                check_highlights(result);
            }
        }
    }
}

/// Checks that highlights are ordered, disjoint ranges of the result's text.
fn check_highlights(result: &serde_json::Value) {
    let length = result["text"].as_str().unwrap().chars().count() as u64;
    let mut last = 0;
    for range in result["highlights"].as_array().unwrap() {
        let (start, end) = (range[0].as_u64().unwrap(), range[1].as_u64().unwrap());
        assert!(last <= start && start < end && end <= length, "{range} of {length}");
        last = end;
    }
}
