//! Uploaded files: parsing, storing, serving and deleting them.

use std::{
    fs,
    io::Write,
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use lkr_tests::{ADMIN_PASSWORD, Server};
use serde_json::{Value, json};

#[test]
fn original_is_stored_and_deleted_with_its_document() {
    let server = Server::start();
    let detail =
        server.upload_and_wait("../Rote Grütze #1.txt", "Rote Grütze aus Johannisbeeren.".as_bytes());
    let path = detail["l1"]["metadata"]["raw_file_path"].as_str().unwrap();
    let stored = server.data_dir().join("uploads").join(path);
    assert!(path.ends_with("_Rote Grütze #1.txt"), "{path}");
    assert_eq!(fs::read_to_string(&stored).unwrap(), "Rote Grütze aus Johannisbeeren.");
    assert_eq!(detail["l1"]["metadata"]["original_filename"], "../Rote Grütze #1.txt");
    assert_eq!(detail["l1"]["title"], "Rote Grütze #1");
    let file = format!("/documents/{}/file", detail["l1"]["doc_id"].as_str().unwrap());
    let response = server.get(&file);
    assert_eq!((response.status, response.body.len()), (200, 32));
    assert_eq!(response.header("content-length"), Some("32"));
    let head = server.call("HEAD", &file, None, None);
    assert_eq!((head.status, head.header("content-length"), head.body.len()), (200, Some("32"), 0));
    let document = file.trim_end_matches("/file").to_owned();
    let deleted = server.call("DELETE", &document, None, Some(server.admin()));
    assert_eq!(deleted.data()["deleted"]["l1"], 1);
    assert!(!stored.exists(), "the file is removed when the delete returns");
    server.get(&file).assert_error(1004, 404);
}

#[test]
fn missing_or_symlinked_original_returns_not_found() {
    let server = Server::start();
    for damage in ["removed", "linked"] {
        let detail = server
            .upload_and_wait("a.txt", format!("Io has volcanoes, one of which is {damage}.").as_bytes());
        let path = detail["l1"]["metadata"]["raw_file_path"].as_str().unwrap();
        let stored = server.data_dir().join("uploads").join(path);
        fs::remove_file(&stored).unwrap();
        if damage == "linked" {
            std::os::unix::fs::symlink("/etc/hostname", &stored).unwrap();
        }
        let document = format!("/documents/{}", detail["l1"]["doc_id"].as_str().unwrap());
        server.get(&format!("{document}/file")).assert_error(1004, 404);
        assert_eq!(server.get(&document).data()["file"]["available"], false, "{damage}");
    }
}

#[test]
fn upload_is_ingested_although_its_original_cannot_be_stored() {
    let mut server = Server::start();
    let blocker = server.folder().join("blocker");
    fs::write(&blocker, "a file where a folder should be").unwrap();
    server.set("LKR_UPLOAD_DIR", &blocker.join("uploads").display().to_string());
    server.restart();
    let response = server.upload("a.txt", b"Io has volcanoes.");
    assert_eq!(response.data()["saved_path"], "");
    let task = server.wait_for_task(response.data()["task_id"].as_str().unwrap());
    assert_eq!(task["status"], "done", "{task}");
    let document = format!("/documents/{}", task["doc_id"].as_str().unwrap());
    let detail = server.get(&document).data().clone();
    assert_eq!((&detail["file"], &detail["l1"]["metadata"]), (&Value::Null, &json!({})));
    server.get(&format!("{document}/file")).assert_error(1004, 404);
    assert_eq!(server.search(&json!({"query": "volcanoes"}))["results"].as_array().unwrap().len(), 1);
}

#[test]
fn pdf_results_cite_page_and_heading_path() {
    let server = Server::start();
    let pages = [
        ["1 Moons", "Io has volcanoes that never rest.", "They colour its ground."],
        ["2 Rings", "Saturn has rings of ice.", "They are younger than their planet."],
        ["3 Tails", "A comet has two tails.", "Both point away from the sun."],
        ["4 Belts", "Asteroids are many and small.", "Most of them are far apart."],
    ];
    let detail = server.upload_and_wait("planets.pdf", &pdf(&pages));
    let doc_id = detail["l1"]["doc_id"].as_str().unwrap();
    let found = server.search(&json!({"query": "rings of ice", "top_k": 1}))["results"][0].clone();
    assert_eq!((&found["page_start"], &found["page_end"]), (&json!(2), &json!(2)), "{found}");
    assert_eq!(found["path"], json!(["2 Rings"]), "{found}");
    let text = server.get(&format!("/documents/{doc_id}/text")).data()["text"].as_str().unwrap().to_owned();
    let characters: Vec<char> = text.chars().collect();
    let at = |key: &str| found[key].as_u64().unwrap() as usize;
    let cut: String = characters[at("char_start")..at("char_end")].iter().collect();
    assert_eq!(cut, found["text"].as_str().unwrap());
    assert!(text.contains("ACME quarterly"), "page headers are part of the text");
    let chunks = server.list_all(&format!("/documents/{doc_id}/chunks"));
    assert!(
        chunks.iter().all(|chunk| !chunk["text"].as_str().unwrap().contains("ACME")),
        "page headers are not part of a chunk"
    );
}

#[test]
fn pdfium_plugin_parses_if_its_library_is_configured() {
    let Some(library) = std::env::var_os("LKR_PDFIUM_LIBRARY").map(PathBuf::from) else {
        return lkr_test_support::skip("LKR_PDFIUM_LIBRARY is not set");
    };
    let library = library.display().to_string();
    let server =
        Server::start_with(&[("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD), ("LKR_PDFIUM_LIBRARY", &library)]);
    set_parsers(&server, &json!({"pdf": {"plugin": "pdfium"}}));
    let detail =
        server.upload_and_wait("planets.pdf", &pdf(&[["1 Moons", "Io has volcanoes.", "They glow."]]));
    assert_eq!(detail["l2"][0]["page_start"], 1, "{detail}");
    let found = server.search(&json!({"query": "volcanoes", "top_k": 1}))["results"][0].clone();
    assert!(found["text"].as_str().unwrap().contains("Io has volcanoes."), "{found}");
}

#[test]
fn ocr_reads_images_if_tesseract_is_installed() {
    let server = Server::start();
    let schema = server.call("GET", "/settings/schema", None, Some(server.admin()));
    if schema.data()["ocr_plugins"] != json!(["none", "tesseract"]) {
        return lkr_test_support::skip("tesseract is not installed");
    }
    let scan = scanned();
    let rejected = server.upload("scan.pdf", &scan);
    rejected.assert_error(1001, 400);
    assert!(rejected.message().contains("its pages are pictures"), "{}", rejected.message());
    set_parsers(&server, &json!({"ocr": {"plugin": "tesseract", "languages": ["en"]}}));
    let detail = server.upload_and_wait("scan.pdf", &scan);
    let doc_id = detail["l1"]["doc_id"].as_str().unwrap();
    let text = server.get(&format!("/documents/{doc_id}/text")).data()["text"].as_str().unwrap().to_owned();
    assert!(text.to_uppercase().contains("HI"), "{text:?}");
    assert_eq!(server.list_all(&format!("/documents/{doc_id}/chunks"))[0]["page_start"], 1);
}

/// A server with a fake `tesseract` program that has these languages and sleeps for `seconds` for each image.
fn with_tesseract(languages: &str, seconds: u64) -> (Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("tesseract");
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --list-langs ]; then printf 'List:\\n{languages}\\n'; exit; fi\n\
         sleep {seconds}\necho 'Io has volcanoes.'\n"
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let server = Server::start_with(&[("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD), ("PATH", &path)]);
    (server, folder)
}

#[test]
fn ocr_languages_are_the_installed_ones() {
    let (server, programs) = with_tesseract("eng\\ndeu\\nosd", 0);
    let ocr = |languages: &[&str]| {
        let body = json!({"parsers": {"ocr": {"plugin": "tesseract", "languages": languages}}});
        server.call("PUT", "/settings", Some(&body), Some(server.admin()))
    };
    let rejected = ocr(&["fr", "en", "la"]);
    rejected.assert_error(1001, 400);
    let message = "parsers.ocr.languages has fr, la, not installed for tesseract; installed: de, en";
    assert!(rejected.message().ends_with(message), "{}", rejected.message());
    assert_eq!(ocr(&["de", "en"]).status, 200);
    assert!(!server.log().contains("parsers.ocr.languages"), "no language is missing yet");
    // One language is uninstalled.
    let script = fs::read_to_string(programs.path().join("tesseract")).unwrap();
    fs::write(programs.path().join("tesseract"), script.replace("\\ndeu", "")).unwrap();
    server.restart();
    let warned = server.log().lines().filter(|line| line.contains("parsers.ocr.languages")).count();
    assert_eq!(warned, 1, "{}", server.log());
    let response = server.upload("scan.pdf", &scanned());
    let task = server.wait_for_task(response.data()["task_id"].as_str().unwrap());
    assert_eq!(
        task["result"]["warnings"][0],
        "text in images is not recognised in de: tesseract has no data for the language"
    );
    let path = format!("/documents/{}/text", task["doc_id"].as_str().unwrap());
    assert!(server.get(&path).data()["text"].as_str().unwrap().contains("Io has volcanoes."));
}

#[cfg(target_os = "linux")]
#[test]
fn client_disconnect_ends_parsing_of_its_upload() {
    const SECONDS: u64 = 4_731;
    let (server, _programs) = with_tesseract("eng", SECONDS);
    set_parsers(&server, &json!({"ocr": {"plugin": "tesseract", "languages": ["en"]}}));
    let ocr_processes = || {
        let command_line = format!("sleep\0{SECONDS}\0");
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        lines.filter(|line| line == command_line.as_bytes()).count()
    };
    let scan = scanned();
    let body = [
        &b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"scan.pdf\"\r\n\r\n"[..],
        &scan,
        b"\r\n--b--\r\n",
    ]
    .concat();
    let head = format!(
        "POST /api/v1/documents/upload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {}\r\n\r\n",
        server.admin(),
        body.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.write_all(&[head.as_bytes(), &body].concat()).unwrap();
    wait_until(|| ocr_processes() == 1);
    drop(stream);
    wait_until(|| ocr_processes() == 0);
    assert_eq!(server.list_all("/documents/tasks").len(), 0, "no task was created");
}

/// Waits until `condition` holds, for less than the time limit of OCR.
fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "timed out");
        thread::sleep(Duration::from_millis(20));
    }
}

fn set_parsers(server: &Server, parsers: &Value) {
    let response = server.call("PUT", "/settings", Some(&json!({"parsers": parsers})), Some(server.admin()));
    assert_eq!(response.status, 200, "{}", response.message());
}

/// A PDF file; each page has a page header, a heading and two lines.
pub(crate) fn pdf(pages: &[[&str; 3]]) -> Vec<u8> {
    let content = |[heading, one, two]: &[&str; 3], number: usize| {
        format!(
            "BT /F 9 Tf 72 800 Td (ACME quarterly, page {number}) Tj ET BT /B 20 Tf 72 700 Td ({heading}) Tj ET \
             BT /F 11 Tf 72 660 Td ({one}) Tj 0 -14 Td ({two}) Tj ET"
        )
    };
    let font = |name| format!("<</Type/Font/Subtype/Type1/BaseFont/{name}>>");
    let mut objects = vec![
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        String::new(),
        font("Helvetica"),
        font("Helvetica-Bold"),
    ];
    let mut kids = Vec::new();
    for (at, page) in pages.iter().enumerate() {
        let content = content(page, at + 1);
        objects.push(format!("<</Length {}>>stream\n{content}\nendstream", content.len()));
        let resources = "/Resources<</Font<</F 3 0 R/B 4 0 R>>>>";
        let contents = objects.len();
        objects.push(format!(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]{resources}/Contents {contents} 0 R>>"
        ));
        kids.push(format!("{} 0 R", objects.len()));
    }
    objects[1] = format!("<</Type/Pages/Count {}/Kids[{}]>>", pages.len(), kids.join(" "));
    assemble(&objects.into_iter().map(String::into_bytes).collect::<Vec<_>>())
}

/// A PDF file with one page, an image of the letters `HI`.
fn scanned() -> Vec<u8> {
    let (width, height) = (400_u32, 300_u32);
    let black = |x: u32, y: u32| {
        let bar = |from: u32| (from..from + 16).contains(&x);
        let dash = (120..200).contains(&x) && (142..158).contains(&y);
        (100..200).contains(&y) && (bar(120) || bar(184) || bar(240) || dash)
    };
    let pixels = (0..width * height).map(|at| if black(at % width, at / width) { 0 } else { 255 });
    let head = format!(
        "<</Type/XObject/Subtype/Image/Width {width}/Height {height}/ColorSpace/DeviceGray/BitsPerComponent 8/Length {}>>\
         stream\n",
        width * height
    );
    let image = [head.as_bytes(), &pixels.collect::<Vec<u8>>(), b"\nendstream"].concat();
    let content = "q 144 0 0 108 0 0 cm /I Do Q";
    assemble(&[
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>".to_vec(),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 144 108]/Resources<</XObject<</I 5 0 R>>>>/Contents 4 0 R>>"
            .to_vec(),
        format!("<</Length {}>>stream\n{content}\nendstream", content.len()).into_bytes(),
        image,
    ])
}

fn assemble(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut offsets = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        offsets.push(file.len());
        file.extend_from_slice(format!("{} 0 obj\n", at + 1).as_bytes());
        file.extend_from_slice(object);
        file.extend_from_slice(b"\nendobj\n");
    }
    let start = file.len();
    let rows: String = offsets.iter().map(|offset| format!("{offset:010} 00000 n \n")).collect();
    let count = objects.len() + 1;
    let tail = format!(
        "xref\n0 {count}\n0000000000 65535 f \n{rows}trailer\n<</Size {count}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n"
    );
    file.extend_from_slice(tail.as_bytes());
    file
}

/// A file is verified against its stored checksum before it is served, and a file of up to 8 MiB also before a range of it is.
#[test]
fn corrupted_original_is_not_served() {
    let server = Server::start();
    let detail = server.upload_and_wait("moons.md", "# Io\n\nIo has volcanoes. ".repeat(100).as_bytes());
    let l1 = &detail["l1"];
    let path = format!("/api/v1/documents/{}/file", l1["doc_id"].as_str().unwrap());
    let range = [("Range", "bytes=2-5".to_owned())];
    let complete = server.try_send("GET", &path, &[], None).unwrap();
    assert_eq!((complete.status, complete.body.len()), (200, 2_400));
    assert_eq!(server.try_send("GET", &path, &range, None).unwrap().body, b"Io\n\n");
    let stored = l1["metadata"]["raw_file_path"].as_str().unwrap();
    let stored = server.data_dir().join("uploads").join(stored);
    let mut bytes = std::fs::read(&stored).unwrap();
    bytes[1_000] ^= 1;
    std::fs::write(&stored, &bytes).unwrap();
    let corrupted = server.try_send("GET", &path, &[], None);
    assert!(
        corrupted.is_err() || corrupted.is_ok_and(|response| response.status == 500),
        "the corrupted file was served"
    );
    server.try_send("GET", &path, &range, None).unwrap().assert_error(2000, 500);
}
