//! Pages of stored PDF files: their images, and where a text is on them.

use std::{env, path::PathBuf};

use actix_web::{http::Method, test::TestRequest};
use futures_util::future::join_all;
use lkr::files::FileTools;
use serde_json::{Value, json};

use crate::support::{Api, App, TestOptions, TestResponse, api, api_with};

/// A PDF file of two pages of 300 by 200 points with a line each, the second displayed on its side.
fn pdf() -> Vec<u8> {
    let content = |text: &str| format!("BT /F 12 Tf 40 120 Td ({text}) Tj ET");
    let page = |content: u32, turn: u32| {
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Rotate {turn} /Contents {content} 0 R \
             /Resources << /Font << /F 7 0 R >> >> >>"
        )
    };
    let stream = |text: String| format!("<< /Length {} >>\nstream\n{text}\nendstream", text.len());
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Count 2 /Kids [3 0 R 4 0 R] >>".to_owned(),
        page(5, 0),
        page(6, 90),
        stream(content("Europa hides an ocean.")),
        stream(content("Io has volcanoes.")),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    let mut file = String::from("%PDF-1.7\n");
    let mut offsets = String::new();
    for (number, object) in (1..).zip(&objects) {
        offsets.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.push_str(&format!("{number} 0 obj\n{object}\nendobj\n"));
    }
    let table = file.len();
    file.push_str(&format!("xref\n0 8\n0000000000 65535 f \n{offsets}trailer\n<< /Size 8 /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n"));
    file.into_bytes()
}

/// The tools with PDFium's library, if it is available.
fn pdfium() -> Option<FileTools> {
    let library = env::var_os("LKR_PDFIUM_LIBRARY").map(PathBuf::from);
    if library.is_none() {
        lkr_test_support::skip("LKR_PDFIUM_LIBRARY does not name PDFium's library");
    }
    library.map(|library| FileTools { pdfium: Some(library), ..FileTools::default() })
}

/// Uploads a file to a space, and returns the path of its document.
async fn add<S: App>(api: &Api<S>, name: &str, bytes: &[u8], space: &str) -> String {
    let admin = api.admin().await;
    let accepted =
        api.upload(&admin, &[("file", Some(name), bytes), ("space", None, space.as_bytes())]).await;
    let task = api.ended(&admin, accepted.data()["task_id"].as_str().unwrap()).await;
    assert_eq!(task["status"], "done", "{task}");
    format!("/api/v1/documents/{}", task["doc_id"].as_str().unwrap())
}

/// The width and the height in the header of a PNG file.
fn png_size(png: &[u8]) -> (u32, u32) {
    assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

async fn with_header<S: App>(api: &Api<S>, path: &str, header: (&str, &str)) -> TestResponse {
    api.send(TestRequest::get().uri(path).insert_header(header)).await
}

#[actix_web::test]
async fn page_is_an_image_with_boxes_of_its_text() {
    let Some(tools) = pdfium() else { return };
    let api = api_with(TestOptions { tools, ..TestOptions::default() }).await;
    let document = add(&api, "moons.pdf", &pdf(), "default").await;
    let detail = api.get(&document).await.data();
    assert_eq!((&detail["pages"], &detail["page_images"]), (&json!(2), &json!(true)));
    let image = api.get(&format!("{document}/pages/1?width=600")).await;
    assert_eq!((image.status.as_u16(), png_size(&image.body)), (200, (600, 400)));
    let header = |name| image.header(name).map(str::to_owned);
    assert_eq!(header("content-type").as_deref(), Some("image/png"));
    assert_eq!(header("cache-control").as_deref(), Some("private, no-cache"));
    assert_eq!(header("x-content-type-options").as_deref(), Some("nosniff"));
    assert_eq!(png_size(&api.get(&format!("{document}/pages/2")).await.body), (1_000, 1_500));

    let text = api.get(&format!("{document}/text")).await.data()["text"].as_str().unwrap().to_owned();
    let start = text.chars().position(|c| c == 'h').unwrap();
    let range = |start: usize, end: usize| format!("char_start={start}&char_end={end}");
    let hides = api.get(&format!("{document}/pages/1/boxes?{}", range(start, start + 5))).await.data();
    assert_eq!((&hides["width"], &hides["height"]), (&json!(300.0), &json!(200.0)));
    assert_eq!(hides["boxes"].as_array().unwrap().len(), 1, "{hides}");
    let edges: Vec<f64> =
        hides["boxes"][0].as_array().unwrap().iter().map(|edge| edge.as_f64().unwrap()).collect();
    let [left, upper, right, lower] = edges[..] else { panic!("{hides}") };
    assert!((40.0 + 40.0..40.0 + 50.0).contains(&left) && right - left < 40.0, "{hides}");
    assert!((65.0..80.0).contains(&upper) && (80.0..88.0).contains(&lower), "{hides}");

    let elsewhere = api.get(&format!("{document}/pages/2/boxes?{}", range(start, start + 5))).await.data();
    assert_eq!(elsewhere, json!({ "width": 200.0, "height": 300.0, "boxes": [] }));
    let io = text.chars().count() - 10;
    let upright = api.get(&format!("{document}/pages/2/boxes?{}", range(io, io + 5))).await.data();
    assert_eq!(upright["boxes"].as_array().unwrap().len(), 1, "{upright}");
}

#[actix_web::test]
async fn image_that_the_client_has_is_not_sent_again() {
    let Some(tools) = pdfium() else { return };
    let api = api_with(TestOptions { tools, ..TestOptions::default() }).await;
    let document = add(&api, "moons.pdf", &pdf(), "default").await;
    let page = format!("{document}/pages/1");
    let first = api.get(&page).await;
    let etag = first.header("etag").unwrap();
    let second = with_header(&api, &page, ("if-none-match", etag)).await;
    assert_eq!((second.status.as_u16(), second.body.len()), (304, 0));
    for other in [format!("{page}?width=500"), format!("{document}/pages/2")] {
        assert_eq!(with_header(&api, &other, ("if-none-match", etag)).await.status.as_u16(), 200, "{other}");
    }
    assert_eq!(api.get(&page).await.body, first.body, "from the cache");
}

#[actix_web::test]
async fn wrong_page_requests_are_refused_with_the_reason() {
    let Some(tools) = pdfium() else { return };
    let api = api_with(TestOptions { tools, ..TestOptions::default() }).await;
    let document = add(&api, "moons.pdf", &pdf(), "default").await;
    for (query, code, status, reason) in [
        (
            "/pages/1?width=199",
            1001,
            400,
            "width is wrong: \"199\", expected a whole number from 200 to 2000",
        ),
        ("/pages/1?width=2001", 1001, 400, "width is wrong"),
        ("/pages/1?width=1e3", 1001, 400, "width is wrong"),
        ("/pages/1?scale=2", 1001, 400, "unknown query parameter \"scale\""),
        ("/pages/3", 1004, 404, "there is no page 3: the file has 2 pages"),
        ("/pages/0", 1004, 404, "pages count from 1"),
        ("/pages/99999999999", 1004, 404, "pages count from 1"),
        ("/pages/one", 1004, 404, "pages count from 1"),
        ("/pages/1/boxes?char_start=1", 1001, 400, "char_end: is missing"),
        ("/pages/1/boxes?char_start=-1&char_end=2", 1001, 400, "char_start is wrong"),
        ("/pages/1/boxes?char_start=9&char_end=4", 1001, 400, "char_end: 4 is before char_start, which is 9"),
        ("/pages/3/boxes?char_start=1&char_end=4", 1004, 404, "there is no page 3: the file has 2 pages"),
    ] {
        let message = api.get(&format!("{document}{query}")).await.expect_error(code, status);
        assert!(message.contains(reason), "{query}: {message}");
    }
}

#[actix_web::test]
async fn document_without_a_pdf_file_has_no_pages() {
    let api = api().await;
    let admin = api.admin().await;
    let text = api.add(&admin, json!({ "text": "Io has volcanoes." })).await;
    let text = format!("/api/v1/documents/{text}");
    let (markdown, pdf) = (
        add(&api, "a.md", b"Callisto has craters.", "default").await,
        add(&api, "a.pdf", &pdf(), "default").await,
    );
    for (document, pages, reason) in [
        (&text, Value::Null, "the document has no stored file"),
        (&markdown, Value::Null, "the document's file is not a PDF file"),
        (&pdf, json!(2), "LKR_PDFIUM_LIBRARY"),
    ] {
        let detail = api.get(document).await.data();
        assert_eq!((&detail["pages"], &detail["page_images"]), (&pages, &json!(false)), "{document}");
        for path in ["/pages/1", "/pages/1/boxes?char_start=0&char_end=4"] {
            let message = api.get(&format!("{document}{path}")).await.expect_error(1004, 404);
            assert!(message.contains(reason), "{message}");
        }
    }
    let unknown = format!("/api/v1/documents/{}/pages/1", "0".repeat(32));
    api.get(&unknown).await.expect_error(1004, 404);
}

/// The cache is warm when the caller without the right asks.
#[actix_web::test]
async fn pages_of_a_space_are_shown_to_its_members_alone() {
    let Some(tools) = pdfium() else { return };
    let api = api_with(TestOptions { tools, ..TestOptions::default() }).await;
    let admin = api.admin().await;
    api.post("/api/v1/spaces", &admin, json!({ "space": "legal" })).await.data();
    let document = add(&api, "moons.pdf", &pdf(), "legal").await;
    let other = api.user("rita").await;
    for path in ["/pages/1", "/pages/1/boxes?char_start=0&char_end=4"] {
        let path = format!("{document}{path}");
        let shown = api.call(Method::GET, &path, &admin, None).await;
        assert_eq!(shown.status.as_u16(), 200);
        for token in [other.as_str(), ""] {
            api.call(Method::GET, &path, token, None).await.expect_error(1004, 404);
        }
        let etag = shown.header("etag").unwrap_or("*").to_owned();
        assert_eq!(with_header(&api, &path, ("if-none-match", &etag)).await.status.as_u16(), 404);
    }
}

#[actix_web::test]
async fn pages_beyond_the_quota_of_a_client_are_refused() {
    let Some(tools) = pdfium() else { return };
    let api = api_with(TestOptions { tools, ..TestOptions::default() }).await;
    let document = add(&api, "moons.pdf", &pdf(), "default").await;
    let widths = 1_000..1_016;
    let paths: Vec<String> = widths.map(|width| format!("{document}/pages/1?width={width}")).collect();
    let answers = join_all(paths.iter().map(|path| api.get(path))).await;
    let shown = answers.iter().filter(|answer| answer.status.as_u16() == 200).count();
    assert!((8..16).contains(&shown), "{shown}");
    for refused in answers.iter().filter(|answer| answer.status.as_u16() != 200) {
        assert!(refused.expect_error(1010, 503).contains("too many pages"));
        assert!(refused.header("retry-after").is_some());
    }
    assert_eq!(api.get(&paths[15]).await.status.as_u16(), 200, "the places are free again");
}
