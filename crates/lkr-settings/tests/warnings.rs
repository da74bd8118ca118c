//! Warnings in the log: one line for each problem, and no secret.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::{
    io,
    sync::{Arc, Mutex},
};

use lkr_settings::{
    DedupChange, IfMatch, ModelEntryChange, ModelsChange, OcrChange, ParsersChange, PluginChange, Plugins,
    SealingKey, Settings, SettingsChange,
};
use lkr_state::{MemoryState, StateStore};

#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn plugins(pdf: &[&str]) -> Plugins {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    Plugins {
        pdf: names(pdf),
        docx: names(&["docx"]),
        html: names(&["html"]),
        ocr: names(&["none", "ocr"]),
        ocr_languages: None,
    }
}

#[tokio::test]
async fn each_problem_is_warned_about_once_without_secrets() {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::new());
    let first = Settings::open(Arc::clone(&state), SealingKey::generate(), plugins(&["a", "b"])).unwrap();
    let entry =
        ModelEntryChange { api_key: lkr_settings::KeyChange::Set("sk-planted".into()), ..Default::default() };
    let pdf = PluginChange { plugin: Some("b".to_owned()) };
    let languages = Some(vec!["de".to_owned(), "en".to_owned()]);
    let ocr = Some(OcrChange { plugin: Some("ocr".to_owned()), languages });
    let change = SettingsChange {
        models: Some(ModelsChange { rerank: Some(entry), ..Default::default() }),
        parsers: Some(ParsersChange { pdf: Some(pdf), ocr, ..Default::default() }),
        dedup: None,
    };

    let log = LogBuffer::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    first.update(&change, &IfMatch::Any, vec![]).await.unwrap();
    assert!(log.0.lock().unwrap().is_empty(), "no warning without a problem");

    let fewer = Plugins { ocr_languages: Some(vec!["en".to_owned()]), ..plugins(&["a"]) };
    let other = Settings::open(state, SealingKey::generate(), fewer).unwrap();
    for threshold in 0..3 {
        let dedup = DedupChange { simhash_threshold: Some(threshold), ..Default::default() };
        let change = SettingsChange { dedup: Some(dedup), ..Default::default() };
        other.update(&change, &IfMatch::Any, vec![]).await.unwrap();
    }
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert_eq!(text.lines().count(), 3, "{text}");
    let languages: Vec<&str> = text.lines().filter(|line| line.contains("parsers.ocr.languages")).collect();
    assert!(languages.len() == 1 && languages[0].contains("missing=\"de\""), "{text}");
    assert_eq!(text.matches("models.rerank.api_key").count(), 1, "{text}");
    assert_eq!(text.matches("parsers.pdf.plugin").count(), 1, "{text}");
    assert!(!text.contains("planted"), "{text}");
}
