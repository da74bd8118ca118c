//! Texts for people.

use console::measure_text_width;
use serde_json::Value;

/// The text of a field of a JSON object; empty if it is missing. Numbers and truth values are written out.
pub(crate) fn field(value: &Value, name: &str) -> String {
    match value.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// A text without control characters: those of a document or a file name could change what a terminal shows.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The date of a field with a timestamp, for a column whose header says the time zone.
pub(crate) fn day(value: &Value, name: &str) -> String {
    let text = field(value, name);
    text.get(..10).map(str::to_owned).unwrap_or(text)
}

/// The date and minute of a field with a timestamp, with the time zone: the server's times are in UTC.
pub(crate) fn moment(value: &Value, name: &str) -> String {
    let date = date(value, name);
    if date.is_empty() { date } else { format!("{date} UTC") }
}

/// The date and minute of a field with a timestamp, for a column whose header says the time zone.
pub(crate) fn date(value: &Value, name: &str) -> String {
    let text = field(value, name);
    text.get(..16).map(|minute| minute.replace('T', " ")).unwrap_or(text)
}

/// A count with its noun: `1 document`, `2 documents`.
pub(crate) fn plural(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A size in bytes in the unit that suits it.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => plural(bytes, "byte"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// Breaks a text into lines of at most `width` columns at spaces, or within a word that is longer, each after `indent`.
/// Line breaks and control characters of the text become spaces.
pub(crate) fn wrap(text: &str, width: usize, indent: &str) -> String {
    let room = width.saturating_sub(measure_text_width(indent)).max(20);
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in
        text.split(|c: char| c.is_whitespace() || (c.is_control() && c != '\x1b')).filter(|w| !w.is_empty())
    {
        for piece in pieces(word, room) {
            let used = measure_text_width(&line);
            let gap = usize::from(used > 0);
            if used + gap + measure_text_width(&piece) > room {
                lines.push(std::mem::take(&mut line));
            } else if gap > 0 {
                line.push(' ');
            }
            line.push_str(&piece);
        }
    }
    lines.push(line);
    let lines = lines.into_iter().filter(|line| !line.is_empty());
    lines.map(|line| format!("{indent}{line}\n")).collect()
}

/// A word in pieces of at most `room` columns. Text without spaces, such as Chinese, is one long word.
fn pieces(word: &str, room: usize) -> Vec<String> {
    if measure_text_width(word) <= room {
        return vec![word.to_owned()];
    }
    let (mut pieces, mut piece) = (Vec::new(), String::new());
    for c in word.chars() {
        piece.push(c);
        if measure_text_width(&piece) > room {
            piece.pop();
            pieces.push(std::mem::replace(&mut piece, c.to_string()));
        }
    }
    pieces.push(piece);
    pieces
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn wrap_breaks_at_spaces_and_within_long_words() {
        let text = "The moon pulls the sea\ntwice a day";
        assert_eq!(wrap(text, 24, "  "), "  The moon pulls the sea\n  twice a day\n");
        let wide = wrap(&"潮".repeat(30), 42, "  ");
        assert_eq!(wide.lines().count(), 2);
        assert!(wide.lines().all(|line| measure_text_width(line) <= 42), "{wide}");
        assert_eq!(wrap(" \n", 40, "  "), "");
    }

    #[test]
    fn sizes_and_counts_read_as_people_write_them() {
        assert_eq!(
            [size(1), size(999), size(1_500), size(2_000_000)],
            ["1 byte", "999 bytes", "1.5 kB", "2.0 MB"]
        );
        assert_eq!([plural(1, "document"), plural(0, "document")], ["1 document", "0 documents"]);
        let value = json!({"at": "2026-11-25T08:30:59Z", "n": 3, "none": null});
        assert_eq!(
            [date(&value, "at"), field(&value, "n"), field(&value, "none")],
            ["2026-11-25 08:30", "3", ""]
        );
        assert_eq!([moment(&value, "at"), moment(&value, "none")], ["2026-11-25 08:30 UTC", ""]);
    }
}
