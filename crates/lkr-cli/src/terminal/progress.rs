//! Progress on the standard error, in a terminal only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal::{Output, clean};

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
        self.0.suspend(|| {
            let _ =
                std::io::Write::write_all(&mut std::io::stderr(), format!("{}\n", clean(text)).as_bytes());
        });
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
    fn durations_have_two_units_at_most() {
        let shown = [5, 65, 3_700].map(|seconds| short(Duration::from_secs(seconds)));
        assert_eq!(shown, ["5 s", "1 min 5 s", "1 h 1 min"]);
    }
}
