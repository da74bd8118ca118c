//! Log lines as JSON: one object a line.

use std::{fmt, io::Write as _};

use serde::Serialize;
use serde_json::{Map, Value};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id},
};
use tracing_subscriber::{Layer, fmt::MakeWriter, layer::Context, registry::LookupSpan};

/// The field that names the request of a line or a span.
const REQUEST_ID: &str = "request_id";

/// Writes each event as a JSON object and a line feed.
#[derive(Debug)]
pub(super) struct JsonLines<W> {
    writer: W,
}

/// A line.
#[derive(Debug, Serialize)]
struct Line {
    timestamp: String,
    level: &'static str,
    target: String,
    message: Value,
    /// The request that the line belongs to; null for none.
    request_id: Value,
    fields: Map<String, Value>,
}

/// The request that a span belongs to.
struct SpanRequestId(Value);

impl<W> JsonLines<W> {
    pub(super) const fn new(writer: W) -> Self {
        Self { writer }
    }
}

impl<S, W> Layer<S> for JsonLines<W>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: for<'writer> MakeWriter<'writer> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        if attributes.metadata().fields().field(REQUEST_ID).is_none() {
            return;
        }
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let (Some(span), Some(request_id)) = (cx.span(id), fields.0.remove(REQUEST_ID)) {
            span.extensions_mut().insert(SpanRequestId(request_id));
        }
    }

    fn on_event(&self, event: &Event<'_>, cx: Context<'_, S>) {
        let Fields(mut fields) = Fields::of(event);
        let of_span = || {
            let spans = cx.event_scope(event).into_iter().flatten();
            spans.into_iter().find_map(|span| Some(span.extensions().get::<SpanRequestId>()?.0.clone()))
        };
        let line = Line {
            timestamp: OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default(),
            level: event.metadata().level().as_str(),
            target: event.metadata().target().to_owned(),
            message: fields.remove("message").unwrap_or_default(),
            request_id: fields.remove(REQUEST_ID).or_else(of_span).unwrap_or_default(),
            fields,
        };
        let Ok(mut bytes) = serde_json::to_vec(&line) else { return };
        bytes.push(b'\n');
        // With stderr closed there is nowhere to report to.
        let _ = self.writer.make_writer_for(event.metadata()).write_all(&bytes);
    }
}

/// Collects fields as JSON values.
#[derive(Debug, Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn of(event: &Event<'_>) -> Self {
        let mut fields = Self::default();
        event.record(&mut fields);
        fields
    }

    fn set(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value);
    }

    /// A number beyond the range of JSON numbers becomes a string.
    fn record_u128(&mut self, field: &Field, value: u128) {
        self.set(field, u64::try_from(value).map_or_else(|_| Value::from(value.to_string()), Value::from));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use serde_json::json;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines that `work` logs.
    fn logged(work: impl FnOnce()) -> Vec<Value> {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let subscriber = tracing_subscriber::registry().with(JsonLines::new(move || writer.clone()));
        tracing::subscriber::with_default(subscriber, work);
        let bytes = buffer.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn line_is_one_object_with_typed_fields() {
        let lines = logged(|| {
            let error = "a \"quoted\"\nreason";
            tracing::warn!(task = 7, ok = true, ratio = 0.5, %error, took = 3_u128, "cannot\tgo on");
        });
        let [line] = &*lines else { panic!("{lines:?}") };
        assert_eq!(line["level"], "WARN");
        assert_eq!(line["message"], "cannot\tgo on");
        assert_eq!(line["target"], module_path!());
        assert_eq!(line["request_id"], Value::Null);
        let fields =
            json!({ "task": 7, "ok": true, "ratio": 0.5, "error": "a \"quoted\"\nreason", "took": 3 });
        assert_eq!(line["fields"], fields);
        let timestamp = line["timestamp"].as_str().unwrap();
        assert!(OffsetDateTime::parse(timestamp, &Rfc3339).is_ok(), "{timestamp}");
    }

    #[test]
    fn request_id_comes_from_the_line_or_from_its_spans() {
        let lines = logged(|| {
            tracing::error_span!("request", request_id = "r1").in_scope(|| {
                tracing::info!("outer");
                tracing::info_span!("search").in_scope(|| tracing::info!("inner"));
            });
            tracing::info!(request_id = "r2", status = 200, "request");
        });
        let ids: Vec<_> = lines.iter().map(|line| line["request_id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["r1", "r1", "r2"]);
        assert_eq!(lines[2]["fields"], json!({ "status": 200 }));
    }
}
