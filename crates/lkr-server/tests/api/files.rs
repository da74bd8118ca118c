//! Uploads and downloads.

use std::io::{Cursor, Write};

use actix_web::{http::Method, test::TestRequest};
use serde_json::{Value, json};

use crate::support::{Api, App, MAX_UPLOAD_BYTES, TestOptions, TestResponse, api, api_with};

const UPLOAD: &str = "/api/v1/documents/upload";

/// A part of a form: its name, its file name and its bytes.
pub(crate) type Part<'a> = (&'a str, Option<&'a str>, &'a [u8]);

const BOUNDARY: &str = "----lkr-boundary";

fn form(parts: &[Part<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, file_name, bytes) in parts {
        let file_name = file_name.map(|name| format!("; filename=\"{name}\"")).unwrap_or_default();
        write!(body, "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"{file_name}\r\n\r\n")
            .unwrap();
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n");
    }
    write!(body, "--{BOUNDARY}--\r\n").unwrap();
    body
}

impl<S: App> Api<S> {
    async fn send_form(&self, token: &str, body: Vec<u8>) -> TestResponse {
        self.send_form_to(TestRequest::post().uri(UPLOAD), token, body).await
    }

    async fn send_form_to(&self, request: TestRequest, token: &str, body: Vec<u8>) -> TestResponse {
        let request = request
            .insert_header(("authorization", format!("Bearer {token}")))
            .insert_header(("content-type", format!("multipart/form-data; boundary={BOUNDARY}")))
            .set_payload(body);
        self.send(request).await
    }

    pub(crate) async fn upload(&self, token: &str, parts: &[Part<'_>]) -> TestResponse {
        self.send_form(token, form(parts)).await
    }

    /// Replaces a document with a file.
    pub(crate) async fn put_file(&self, token: &str, doc_id: &str, parts: &[Part<'_>]) -> TestResponse {
        let request = TestRequest::put().uri(&format!("/api/v1/documents/{doc_id}/file"));
        self.send_form_to(request, token, form(parts)).await
    }

    /// Uploads a file, waits for its task, and returns the accepted task and the document.
    async fn uploaded(&self, token: &str, parts: &[Part<'_>]) -> (Value, Value) {
        let accepted = self.upload(token, parts).await;
        assert_eq!(accepted.status.as_u16(), 202, "{}", accepted.json());
        let accepted = accepted.data();
        let task = self.ended(token, accepted["task_id"].as_str().unwrap()).await;
        let path = format!("/api/v1/documents/{}", task["doc_id"].as_str().unwrap());
        (accepted, self.get(&path).await.data())
    }

    async fn file(&self, doc_id: &Value, headers: &[(&str, &str)]) -> TestResponse {
        let path = format!("/api/v1/documents/{}/file", doc_id.as_str().unwrap());
        let request = TestRequest::get().uri(&path);
        self.send(headers.iter().fold(request, |request, pair| request.insert_header(*pair))).await
    }
}

fn docx(text: &str) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument";
    let space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
    let types = "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\">\
        <Default Extension=\"xml\" ContentType=\"application/xml\"/></Types>";
    for (name, content) in [
        ("[Content_Types].xml", types.to_owned()),
        (
            "_rels/.rels",
            format!(
                "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">\
            <Relationship Id=\"r\" Type=\"{relation}\" Target=\"word/document.xml\"/></Relationships>"
            ),
        ),
        (
            "word/document.xml",
            format!(
                "<w:document xmlns:w=\"{space}\"><w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p>\
            </w:body></w:document>"
            ),
        ),
    ] {
        zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[actix_web::test]
async fn uploaded_file_becomes_a_searchable_document() {
    let api = api().await;
    let token = api.admin().await;
    let text = b"# Moons\n\nIo has volcanoes.\n\n## Europa\n\nEuropa hides an ocean.\n";
    let (accepted, detail) = api.uploaded(&token, &[("file", Some("Moons of Jupiter.MD"), text)]).await;
    assert_eq!(accepted["status"], "pending");
    let (l1, path) = (&detail["l1"], accepted["saved_path"].as_str().unwrap());
    assert_eq!(
        (l1["title"].as_str(), l1["source"].as_str()),
        (Some("Moons of Jupiter"), Some("file:Moons of Jupiter.MD"))
    );
    let metadata = json!({
        "raw_file_path": path,
        "original_filename": "Moons of Jupiter.MD",
        "original_size_bytes": text.len().to_string(),
    });
    assert_eq!(l1["metadata"], metadata);
    let named = format!("{}_Moons of Jupiter.MD", l1["doc_id"].as_str().unwrap());
    let parts: Vec<&str> = path.split('/').collect();
    assert_eq!((parts[0].len(), parts[1].len(), parts[2]), (4, 2, named.as_str()), "{path}");
    let file = json!({
        "original_filename": "Moons of Jupiter.MD",
        "size_bytes": text.len(),
        "content_type": "text/markdown",
        "available": true,
    });
    assert_eq!(detail["file"], file);
    assert_eq!(detail["l2"][1]["title"], "Europa", "{detail}");
    let found = api.post("/api/v1/search", "", json!({ "query": "ocean" })).await.data();
    assert_eq!(found["results"][0]["path"], json!(["Moons", "Europa"]));
    let filters = json!({ "metadata": { "original_filename": "Moons of Jupiter.MD" } });
    let found = api.post("/api/v1/search", "", json!({ "query": "ocean", "filters": filters })).await.data();
    assert_eq!(found["results"].as_array().unwrap().len(), 1, "the filter by original_filename matches");
}

#[actix_web::test]
async fn uploaded_file_is_found_by_its_heading_and_by_its_name() {
    let api = api().await;
    let token = api.admin().await;
    api.add(&token, json!({ "text": "# Ebbs\n\nThe sea falls.", "title": "Ebbs" })).await;
    let text = b"# Tides\n\n## Spring\n\nThe moon and the sun pull together.\n".as_slice();
    let (_, detail) = api.uploaded(&token, &[("file", Some("scan-0417.md"), text)]).await;
    let doc_id = detail["l1"]["doc_id"].as_str().unwrap();
    let results = async |query: &str| -> Vec<Value> {
        let found = api.post("/api/v1/search", "", json!({ "query": query })).await.data();
        found["results"].as_array().unwrap().clone()
    };
    let check = async |queries: &[&str], title: &str| {
        for query in queries {
            let results = results(query).await;
            assert_eq!(results.len(), 1, "{query}: {results:?}");
            assert_eq!((&results[0]["doc_id"], &results[0]["title"]), (&json!(doc_id), &json!(title)));
            assert_eq!(results[0]["path"], json!(["Tides", "Spring"]));
        }
    };
    check(&["tides", "spring tides", "scan-0417", "0417"], "scan-0417").await;

    let replaced = api.put_file(&token, doc_id, &[("file", Some("moved.md"), text)]).await.data();
    api.ended(&token, replaced["task_id"].as_str().unwrap()).await;
    check(&["tides", "moved"], "moved").await;
    assert_eq!(results("scan-0417").await, [] as [Value; 0]);

    let path = format!("/api/v1/documents/{doc_id}");
    api.call(Method::PATCH, &path, &token, Some(json!({ "title": "Sea levels" }))).await.data();
    check(&["tides", "moved"], "Sea levels").await;
}

#[actix_web::test]
async fn html_docx_and_utf16_files_are_parsed() {
    let api = api().await;
    let token = api.admin().await;
    let page =
        b"<html><head><script>no()</script></head><body><h1>Io</h1><p>Io has volcanoes.</p></body></html>";
    let docx = docx("Io has volcanoes.");
    let wide: Vec<u8> = "Io has volcanoes.".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let wide = [b"\xff\xfe", &wide[..]].concat();
    for (name, bytes) in [("a.html", &page[..]), ("a.htm", page), ("a.docx", &docx), ("a.txt", &wide)] {
        let (_, detail) = api.uploaded(&token, &[("file", Some(name), bytes)]).await;
        let doc_id = detail["l1"]["doc_id"].as_str().unwrap();
        let text = api.get(&format!("/api/v1/documents/{doc_id}/text")).await.data()["text"].clone();
        let text = text.as_str().unwrap();
        assert!(text.contains("Io has volcanoes.") && !text.contains("no()"), "{name}: {text:?}");
    }
}

#[actix_web::test]
async fn upload_rules_are_checked_in_the_order_of_the_contract() {
    let api = api().await;
    let token = api.admin().await;
    let large = vec![b'a'; usize::try_from(MAX_UPLOAD_BYTES).unwrap() + 1];
    let cases: [(Part<'_>, u16, &str); 9] = [
        (
            ("file", Some("a.exe"), b"x"),
            400,
            "files that end with .exe may not be uploaded; allowed extensions: .txt",
        ),
        (("file", Some("a.exe"), &large), 400, "files that end with .exe"),
        (("file", None, b"x"), 400, "the file \"unnamed\" has no extension"),
        (("file", Some("noext"), b"x"), 400, "the file \"noext\" has no extension"),
        (("file", Some(".pdf"), b"x"), 400, "the file \".pdf\" has no extension"),
        (("file", Some("a.txt"), &large), 413, "a.txt is larger than 1 MB"),
        (
            ("file", Some("a.pdf"), b"\xff\xd8\xff\xe0\x00\x10JFIF\x00"),
            400,
            "a.pdf cannot be read: it is named as a PDF file but contains",
        ),
        (("file", Some("a.docx"), b"PK\x03\x04"), 400, "a.docx cannot be read: "),
        (("file", Some("a.txt"), b" \n\t "), 400, "a.txt has no text"),
    ];
    for (part, status, message) in cases {
        let error = api.upload(&token, &[part]).await.expect_error(1001, status);
        assert!(error.starts_with(message), "{error:?} does not start with {message:?}");
    }
    assert_eq!(api.get("/api/v1/documents/tasks").await.data()["items"], json!([]), "nothing was accepted");
    let largest = &large[1..];
    assert_eq!(api.upload(&token, &[("file", Some("a.txt"), largest)]).await.status.as_u16(), 202);
}

#[actix_web::test]
async fn upload_form_sets_title_source_and_metadata() {
    let api = api().await;
    let token = api.admin().await;
    let metadata = br#"{"a": 1, "b": [true], "raw_file_path": "/etc/passwd", "original_filename": "x"}"#;
    let parts: [Part<'_>; 4] = [
        ("title", None, "Über".as_bytes()),
        ("metadata", None, metadata),
        ("file", Some("a.txt"), b"words"),
        ("source", None, b"https://example.org/a"),
    ];
    let (accepted, detail) = api.uploaded(&token, &parts).await;
    let l1 = &detail["l1"];
    assert_eq!((l1["title"].as_str(), l1["source"].as_str()), (Some("Über"), Some("https://example.org/a")));
    let metadata = &l1["metadata"];
    assert_eq!((metadata["a"].as_str(), metadata["b"].as_str()), (Some("1"), Some("[true]")));
    assert_eq!(metadata["raw_file_path"], accepted["saved_path"], "lesson 22: the server's value wins");
    assert_eq!(metadata["original_filename"], "a.txt");
    let task = api.ended(&token, accepted["task_id"].as_str().unwrap()).await;
    let warnings = task["result"]["warnings"].to_string();
    assert!(
        warnings.contains("raw_file_path is reserved") && warnings.contains("original_filename"),
        "{warnings}"
    );
    for ignored in ["[1]", "{", "null", " "] {
        let force: Part<'_> = ("force", None, b"true");
        let parts = [("metadata", None, ignored.as_bytes()), ("file", Some("a.txt"), &b"words"[..]), force];
        let (_, detail) = api.uploaded(&token, &parts).await;
        assert_eq!(detail["l1"]["metadata"].as_object().unwrap().len(), 3, "{ignored}");
    }
}

#[actix_web::test]
async fn upload_with_an_invalid_form_is_refused() {
    let api = api().await;
    let token = api.admin().await;
    let file: Part<'_> = ("file", Some("a.txt"), b"words");
    let many = json!((0..65).map(|n| (n.to_string(), "x")).collect::<std::collections::BTreeMap<_, _>>())
        .to_string();
    let long = "x".repeat(4_097);
    for (parts, status, message) in [
        (vec![("title", None, &b"x"[..])], 400, "the form has no part named file"),
        (vec![file, file], 400, "the form has two parts named file"),
        (vec![file, ("title", None, b"a"), ("title", None, b"b")], 400, "the form has two parts named title"),
        (vec![file, ("colour", None, b"red")], 400, "unknown part \"colour\""),
        (vec![file, ("title", None, b"\xff")], 400, "title is not UTF-8"),
        (vec![file, ("title", None, long.as_bytes())], 400, "title has 4097 characters"),
        (vec![file, ("metadata", None, many.as_bytes())], 400, "metadata has 65 keys"),
    ] {
        let error = api.upload(&token, &parts).await.expect_error(1001, status);
        assert!(error.contains(message), "{error:?} does not contain {message:?}");
    }
    let cut = form(&[file]);
    let error = api.send_form(&token, cut[..cut.len() - 20].to_vec()).await.expect_error(1001, 400);
    assert!(error.starts_with("the form cannot be read"), "{error}");
    let json = api.post(UPLOAD, &token, json!({})).await.expect_error(1001, 415);
    assert!(json.contains("multipart/form-data"), "{json}");
    api.upload("", &[file]).await.expect_error(1005, 401);
}

#[actix_web::test]
async fn download_returns_the_file_or_a_range_with_safe_headers() {
    let api = api().await;
    let token = api.admin().await;
    let name = "Größe \u{202e}1.txt";
    let (_, detail) = api.uploaded(&token, &[("file", Some(name), b"0123456789")]).await;
    let doc_id = &detail["l1"]["doc_id"];
    let complete = api.file(doc_id, &[]).await;
    assert_eq!((complete.status.as_u16(), complete.body.as_slice()), (200, &b"0123456789"[..]));
    for (header, value) in [
        ("content-type", "text/plain"),
        ("content-length", "10"),
        ("accept-ranges", "bytes"),
        ("x-content-type-options", "nosniff"),
        (
            "content-disposition",
            "attachment; filename=\"Gr__e _1.txt\"; filename*=UTF-8''Gr%C3%B6%C3%9Fe%20_1.txt",
        ),
    ] {
        // The HTTP server sets the length of a streamed body.
        if header != "content-length" {
            assert_eq!(complete.header(header), Some(value));
        }
    }
    let etag = complete.header("etag").unwrap().to_owned();
    let part = api.file(doc_id, &[("range", "bytes=2-4")]).await;
    assert_eq!((part.status.as_u16(), part.body.as_slice()), (206, &b"234"[..]));
    assert_eq!(part.header("content-range"), Some("bytes 2-4/10"));
    let tail = api.file(doc_id, &[("range", "bytes=-3"), ("if-range", &etag)]).await;
    assert_eq!((tail.status.as_u16(), tail.body.as_slice()), (206, &b"789"[..]));
    let changed = api.file(doc_id, &[("range", "bytes=-3"), ("if-range", "\"other\"")]).await;
    assert_eq!((changed.status.as_u16(), changed.body.len()), (200, 10));
    let outside = api.file(doc_id, &[("range", "bytes=10-")]).await;
    outside.expect_error(1001, 416);
    assert_eq!(outside.header("content-range"), Some("bytes */10"));
    let known = api.file(doc_id, &[("if-none-match", &etag)]).await;
    assert_eq!((known.status.as_u16(), known.body.len()), (304, 0));
}

/// Browsers escape only the characters that would end the header.
#[actix_web::test]
async fn file_name_with_browser_escapes_is_unescaped() {
    let api = api().await;
    let token = api.admin().await;
    for (sent, name, title) in [
        ("say %22hi%22.txt", "say \"hi\".txt", "say \"hi\""),
        ("a%0D%0Ab%0a.txt", "a\r\nb%0a.txt", "a\r\nb%0a"),
        ("50%25 of %41.txt", "50%25 of %41.txt", "50%25 of %41"),
    ] {
        let (_, detail) = api.uploaded(&token, &[("file", Some(sent), name.as_bytes())]).await;
        assert_eq!(detail["file"]["original_filename"], name);
        assert_eq!(detail["l1"]["title"], title);
        let file = api.file(&detail["l1"]["doc_id"], &[]).await;
        assert_eq!(file.status.as_u16(), 200);
    }
}

/// Old programs send complete paths, and names in the encoding of their system.
#[actix_web::test]
async fn file_name_in_windows_1252_or_with_a_path_is_accepted() {
    let api = api().await;
    let token = api.admin().await;
    let (_, detail) = api.uploaded(&token, &[("file", Some("C:\\dir\\a.txt"), b"words")]).await;
    assert_eq!(detail["file"]["original_filename"], "C:\\dir\\a.txt");
    assert_eq!(detail["l1"]["title"], "a");
    let sent = form(&[("file", Some("Gr@.txt"), b"other w@rds")]);
    let sent = sent.into_iter().map(|byte| if byte == b'@' { 0xf6 } else { byte }).collect();
    let accepted = api.send_form(&token, sent).await;
    assert_eq!(accepted.status.as_u16(), 202, "{}", accepted.json());
    let task = api.ended(&token, accepted.data()["task_id"].as_str().unwrap()).await;
    let detail = api.get(&format!("/api/v1/documents/{}", task["doc_id"].as_str().unwrap())).await.data();
    assert_eq!(detail["file"]["original_filename"], "Gr\u{f6}.txt");
    let file = api.file(&detail["l1"]["doc_id"], &[]).await;
    assert_eq!(file.body, b"other w\xf6rds");
}

#[actix_web::test]
async fn form_with_oversized_preamble_or_headers_is_refused() {
    let api = api().await;
    let token = api.admin().await;
    let valid_form = form(&[("file", Some("a.txt"), b"words")]);
    let preamble = ["x".repeat(70_000).into_bytes(), b"\r\n".to_vec(), valid_form].concat();
    let long = form(&[("file", Some(&"x".repeat(70_000)), b"words")]);
    let headers = "X-A: b\r\n".repeat(40);
    let many = format!("--{BOUNDARY}\r\n{headers}\r\n\r\n--{BOUNDARY}--\r\n").into_bytes();
    for (body, message) in [(preamble, "64 KiB"), (long, "64 KiB"), (many, "32 headers")] {
        let error = api.send_form(&token, body).await.expect_error(1001, 413);
        assert!(error.contains(message), "{error}");
    }
}

#[actix_web::test]
async fn download_honours_if_match() {
    let api = api().await;
    let token = api.admin().await;
    let (_, detail) = api.uploaded(&token, &[("file", Some("a.txt"), b"0123456789")]).await;
    let doc_id = &detail["l1"]["doc_id"];
    let etag = api.file(doc_id, &[]).await.header("etag").unwrap().to_owned();
    assert_eq!(api.file(doc_id, &[("if-match", &etag)]).await.body, b"0123456789");
    let conflict = api.file(doc_id, &[("if-match", "\"other\""), ("range", "bytes=0-1")]).await;
    assert!(conflict.expect_error(1003, 409).contains(&etag));
}

#[actix_web::test]
async fn download_of_a_missing_file_is_not_found() {
    let api = api().await;
    let token = api.admin().await;
    let accepted = api.post("/api/v1/documents", &token, json!({ "text": "words" })).await.data();
    let task = api.ended(&token, accepted["task_id"].as_str().unwrap()).await;
    assert_eq!(
        api.file(&task["doc_id"], &[]).await.expect_error(1004, 404),
        "the document has no stored file"
    );
    assert_eq!(
        api.get(&format!("/api/v1/documents/{}", task["doc_id"].as_str().unwrap())).await.data()["file"],
        json!(null)
    );
    for unknown in ["0123456789abcdef0123456789abcdef", "no-id"] {
        assert_eq!(api.file(&json!(unknown), &[]).await.expect_error(1004, 404), "no such document");
    }
    let (_, detail) = api.uploaded(&token, &[("file", Some("a.txt"), b"words")]).await;
    let doc_id = &detail["l1"]["doc_id"];
    let path = format!("/api/v1/documents/{}", doc_id.as_str().unwrap());
    api.call(Method::DELETE, &path, &token, None).await.data();
    api.file(doc_id, &[]).await.expect_error(1004, 404);
}

#[actix_web::test]
async fn metadata_change_keeps_the_keys_of_the_stored_file() {
    let api = api().await;
    let token = api.admin().await;
    let (accepted, detail) = api.uploaded(&token, &[("file", Some("a.txt"), b"words")]).await;
    let path = format!("/api/v1/documents/{}", detail["l1"]["doc_id"].as_str().unwrap());
    let forged = json!({ "metadata": { "raw_file_path": "/etc/passwd" } });
    api.call(Method::PATCH, &path, &token, Some(forged)).await.expect_error(1001, 400);
    let change = json!({ "title": "New", "metadata": { "a": "b" } });
    let changed = api.call(Method::PATCH, &path, &token, Some(change)).await.data();
    assert_eq!((changed["title"].as_str(), changed["metadata"]["a"].as_str()), (Some("New"), Some("b")));
    assert_eq!(changed["metadata"]["raw_file_path"], accepted["saved_path"]);
}

#[actix_web::test]
async fn settings_select_the_parser_plugins() {
    let api = api().await;
    let token = api.admin().await;
    let schema = api.call(Method::GET, "/api/v1/settings/schema", &token, None).await.data();
    assert_eq!(schema["pdf_plugins"], json!(["pdf_oxide", "lopdf"]));
    assert_eq!(schema["docx_plugins"], json!(["zip_xml", "office_oxide"]));
    assert_eq!(schema["ocr_plugins"], json!(["none"]));
    let docx = docx("Io has volcanoes.");
    for plugin in ["office_oxide", "zip_xml"] {
        let settings = json!({ "parsers": { "docx": { "plugin": plugin } } });
        api.call(Method::PUT, "/api/v1/settings", &token, Some(settings)).await.data();
        api.uploaded(&token, &[("file", Some("a.docx"), &docx)]).await;
    }
    let unknown = json!({ "parsers": { "docx": { "plugin": "word" } } });
    api.call(Method::PUT, "/api/v1/settings", &token, Some(unknown)).await.expect_error(1001, 400);
}

#[actix_web::test]
async fn download_needs_a_login_if_reads_do() {
    let api = api_with(TestOptions { require_login_for_reads: true, ..TestOptions::default() }).await;
    api.file(&json!("0123456789abcdef0123456789abcdef"), &[]).await.expect_error(1005, 401);
}
