//! Progress on the standard error, in a terminal only.

use std::{fmt::Write, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::terminal::{Output, clean, size};

/// How often a spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// A bar with rate and time left. The time left is what its owner estimates.
#[derive(Debug)]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// A bar over `total` items of this name, such as `files`.
    pub(crate) fn new(output: &Output, total: u64, noun: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), target(output));
        let template = format!("{{bar:24}} {{pos}} of {{len}} {noun}, {{msg}}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style.progress_chars("=> "));
        }
        let bar = Self(bar);
        bar.update(0, None);
        bar
    }

    /// Sets how many items are done, and the time left if it is known.
    pub(crate) fn update(&self, done: u64, left: Option<Duration>) {
        self.0.set_position(done);
        let rate = done as f64 / self.0.elapsed().as_secs_f64().max(1e-3);
        let left = left.map_or_else(String::new, |left| format!(", {} left", short(left)));
        self.0.set_message(format!("{rate:.1}/s{left}"));
    }

    /// Sets how many items there are.
    pub(crate) fn set_total(&self, total: u64) {
        self.0.set_length(total);
    }

    /// Prints a line above the bar.
    pub(crate) fn line(&self, text: &str) {
        self.suspend(|| {
            let _ =
                std::io::Write::write_all(&mut std::io::stderr(), format!("{}\n", clean(text)).as_bytes());
        });
    }

    /// Hides the bar while something else is printed.
    pub(crate) fn suspend(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }

    pub(crate) fn finish(self) {
        self.0.finish_and_clear();
    }
}

/// A spinner with a text, for work whose length is not known.
pub(crate) fn spinner(output: &Output, text: impl Into<String>) -> ProgressBar {
    let spinner = ProgressBar::with_draw_target(None, target(output));
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        spinner.set_style(style);
    }
    spinner.set_message(text.into());
    spinner.enable_steady_tick(TICK);
    spinner
}

/// A bar over bytes, which its readers and writers move, or a spinner with a rate if their number is not known.
pub(crate) fn bytes_bar(output: &Output, total: Option<u64>, what: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total, target(output));
    let template = match total {
        Some(_) => "{msg} {bar:24} {done} of {all}, {rate}, {left} left",
        None => "{spinner} {msg} {done}, {rate}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        let style = style
            .with_key("done", |state: &ProgressState, to: &mut dyn Write| shown(to, &size(state.pos())))
            .with_key("all", |state: &ProgressState, to: &mut dyn Write| {
                shown(to, &size(state.len().unwrap_or_default()));
            })
            .with_key("rate", |state: &ProgressState, to: &mut dyn Write| {
                shown(to, &format!("{}/s", size(state.per_sec() as u64)));
            })
            .with_key("left", |state: &ProgressState, to: &mut dyn Write| shown(to, &short(state.eta())));
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_message(what.to_owned());
    bar.enable_steady_tick(TICK);
    bar
}

/// Writes a part of a bar. A bar that cannot be drawn is no error.
fn shown(to: &mut dyn Write, text: &str) {
    let _ = to.write_str(text);
}

fn target(output: &Output) -> ProgressDrawTarget {
    if output.is_for_people() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}

/// A duration in two units at most.
fn short(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_over_bytes_counts_what_is_read_and_written() {
        let output = crate::terminal::OutputArgs::default().output();
        let bar = bytes_bar(&output, Some(10), "reading");
        let mut read = Vec::new();
        std::io::Read::read_to_end(&mut bar.wrap_read(&b"0123456789"[..]), &mut read).unwrap();
        assert_eq!((read.len(), bar.position()), (10, 10));
        let spinner = bytes_bar(&output, None, "writing");
        std::io::Write::write_all(&mut spinner.wrap_write(Vec::new()), &read).unwrap();
        assert_eq!(spinner.position(), 10);
    }

    #[test]
    fn durations_have_two_units_at_most() {
        let shown = [5, 65, 3_700].map(|seconds| short(Duration::from_secs(seconds)));
        assert_eq!(shown, ["5 s", "1 min 5 s", "1 h 1 min"]);
    }
}
