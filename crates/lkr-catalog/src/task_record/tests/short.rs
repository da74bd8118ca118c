//! The short records of tasks about one document that are done or cancelled. Those in `v2/` are as the first release wrote them that
//! had this form.

use super::*;

const DONE: &str = include_str!("../v2/ingest_done.json");
const CANCELLED: &str = include_str!("../v2/ingest_cancelled.json");

/// A task as it is read again.
fn shortened(task: Task) -> Task {
    Task { input: task.input.of_ended(), ..task }
}

fn cancelled() -> Task {
    ingest_failed("02", FailureReason::Cancelled, "cancelled", Stage::Queued)
}

/// A task as nearly all are, of an account, without anything that may be absent.
fn usual() -> Task {
    let task_id: TaskId = "019ac8f2a1b37c3d8e9f0a1b2c3d4e01".parse().unwrap();
    let title = "Granite in the north".to_owned();
    Task {
        task_id,
        subject: TaskSubject::Document("019ac8f2a1b37a11b2345678c0ffee00".parse().unwrap()),
        created_at: datetime!(2025-11-28 05:00:30.123456789 UTC),
        updated_at: datetime!(2025-11-28 05:00:31.5 UTC),
        created_by: Creator { name: "admin".to_owned(), id: "5f0c2e9b8a7d6c5b4a39281706f5e4d3".to_owned() },
        input: TaskInput { revision: 1, title: title.clone(), ..TaskInput::default() },
        result: Some(TaskResult::Document(DocumentResult {
            title,
            duplicate_of: None,
            category: String::new(),
            language: "en".to_owned(),
            counts: Counts { l1: 1, l2: 3, l3: 5, chunks: 6 },
            embedded: 15,
            usage: ModelUsage::default(),
            warnings: Vec::new(),
            elapsed_ms: 1_234,
        })),
        ..ingest_done()
    }
}

fn with_result(task: Task, change: impl Fn(&mut DocumentResult)) -> Task {
    let mut result = task.result.clone().and_then(TaskResult::document).unwrap();
    change(&mut result);
    Task { result: Some(TaskResult::Document(result)), ..task }
}

/// Tasks that differ from the usual one in each of the fields that may be absent.
fn unusual() -> Vec<Task> {
    let usual = usual();
    let doc_id = usual.subject.record_id();
    let input = |change: &dyn Fn(&mut TaskInput)| {
        let mut input = usual.input.clone();
        change(&mut input);
        Task { input, ..usual.clone() }
    };
    let original = |path: String| Original {
        path,
        file_name: "granite \"1\".pdf".to_owned(),
        size_bytes: 9,
        sha256: Some("ab".repeat(32)),
    };
    vec![
        Task { space: SpaceName::new("team"), ..usual.clone() },
        Task { kind: TaskKind::Replace, ..usual.clone() },
        Task { stage: Stage::Embed, ..usual.clone() },
        Task { progress: Progress { done: 3, total: 9 }, ..usual.clone() },
        Task { attempts: 0, ..usual.clone() },
        Task { subject: TaskSubject::Document(DocId::from_bytes([0xff; 16])), ..usual.clone() },
        Task { created_by: Creator::from("anna"), ..usual.clone() },
        Task { created_by: Creator { name: "\u{1}é=".to_owned(), id: "=x".to_owned() }, ..usual.clone() },
        Task { created_at: datetime!(1970-01-01 0:00 UTC), ..usual.clone() },
        Task { updated_at: datetime!(1999-12-31 23:59:59.999999999 UTC), ..usual.clone() },
        input(&|input| input.revision = u64::MAX),
        input(&|input| input.title.clear()),
        input(&|input| input.original = Some(original(format!("2025/11/{doc_id}_granite.pdf")))),
        input(&|input| input.original = Some(original("2025/11/another.pdf".to_owned()))),
        input(&|input| input.origin = Some("00-0a-0b-01".to_owned())),
        with_result(usual.clone(), |result| result.title = "Another".to_owned()),
        with_result(usual.clone(), |result| result.title.clear()),
        with_result(usual.clone(), |result| result.duplicate_of = Some(Duplicate { doc_id, distance: 0 })),
        with_result(usual.clone(), |result| result.category = "geology".to_owned()),
        with_result(usual.clone(), |result| result.language.clear()),
        with_result(usual.clone(), |result| result.usage.tokens = 5),
        with_result(usual.clone(), |result| result.warnings = vec!["page 3 has no text".to_owned()]),
        with_result(usual.clone(), |result| result.elapsed_ms = u64::MAX),
        usual.clone().into_cancelled(),
        Task { stage: Stage::Queued, progress: Progress::default(), attempts: 0, ..usual }.into_cancelled(),
        ingest_done(),
        cancelled(),
    ]
}

impl Task {
    fn into_cancelled(self) -> Self {
        let now = self.updated_at;
        Self { result: None, ..self.cancelled(now) }
    }
}

fn written(task: &Task) -> Vec<u8> {
    write_task(task).unwrap()
}

fn again(task: &Task) -> Task {
    read_task(&Record { value: Bytes::from(written(task)), version: 1 }).unwrap()
}

#[test]
fn stored_short_records_are_read_completely_and_written_byte_for_byte() {
    for (json, task) in [(DONE, ingest_done()), (CANCELLED, cancelled())] {
        assert_eq!(read(json).unwrap(), shortened(task.clone()), "{json}");
        assert_eq!(String::from_utf8(written(&task)).unwrap(), json.trim_end());
    }
}

#[test]
fn each_field_of_an_ended_task_that_is_shown_is_read_again() {
    for task in unusual().into_iter().chain([usual()]) {
        assert!(ended::is_ended(&written(&task)), "{task:?}");
        assert_eq!(again(&task), shortened(task.clone()));
        // Reading it from the earlier form gives the same.
        let earlier = serde_json::to_string(&TaskV1::from(task.clone())).unwrap();
        assert_eq!(read(&earlier).unwrap(), shortened(task));
    }
}

#[test]
fn record_that_was_read_is_written_again_without_a_change() {
    for task in unusual() {
        assert_eq!(written(&again(&task)), written(&task));
    }
}

#[test]
fn short_record_takes_a_third_of_the_earlier_one() {
    let task = usual();
    let (short, earlier) = (written(&task).len(), serde_json::to_vec(&TaskV1::from(task)).unwrap().len());
    assert!(short * 3 < earlier, "{short} bytes, {earlier} before");
}

#[test]
fn tasks_that_have_no_short_record_are_written_as_before() {
    let usual = usual();
    let original = Original {
        path: "2025/11/a*b.pdf".to_owned(),
        file_name: "a*b.pdf".to_owned(),
        size_bytes: 1,
        sha256: None,
    };
    let model = ModelName { id: "sha256:0123".to_owned(), name: "all-MiniLM-L6-v2".to_owned() };
    let other_message = ingest_failed("02", FailureReason::Cancelled, "replaced", Stage::Queued);
    let tasks = [
        Task { input: TaskInput { original: Some(original), ..usual.input.clone() }, ..usual.clone() },
        Task { input: TaskInput { model: Some(model), ..usual.input.clone() }, ..usual.clone() },
        Task { key: Some("a key".to_owned()), ..usual.clone() },
        Task { created_at: datetime!(2525-01-01 0:00 UTC), ..usual.clone() },
        Task { updated_at: datetime!(1525-01-01 0:00 UTC), ..usual.clone() },
        Task { result: None, ..usual.clone() },
        other_message,
        reembed_done(),
    ];
    for task in tasks {
        assert!(!ended::is_ended(&written(&task)), "{task:?}");
        assert_eq!(again(&task), shortened(task));
    }
    for task in [
        Task { status: TaskStatus::Pending, result: None, ..usual.clone() },
        Task { status: TaskStatus::Running, result: None, ..usual },
        ingest_failed("04", FailureReason::Internal, "no model", Stage::Embed),
    ] {
        assert!(!ended::is_ended(&written(&task)), "{task:?}");
        assert_eq!(again(&task), task);
    }
}

#[test]
fn damaged_short_record_is_corrupt() {
    let (id, times) = ("1cWnUBqjyFOwV2XiiFKu1", "[11456676680456789,876543211]");
    let damages = [(id, "!"), (id, "=x"), (times, "[1]"), ("\"v\":2", "\"v\":2,\"v\":2"), ("geology", "\"")];
    for (intact, damaged) in damages {
        assert!(DONE.contains(intact), "{intact}");
        let error = read(&DONE.replace(intact, damaged)).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Corrupt, "{damaged}");
    }
}
