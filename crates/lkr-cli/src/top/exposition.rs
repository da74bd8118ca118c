//! Reads Prometheus' text format.

use std::iter::Peekable;
use std::str::Chars;

use anyhow::{Context, Result, bail};

/// One value of a metric.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) value: f64,
}

/// The values that a server exposed at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Samples(Vec<Sample>);

impl Sample {
    /// The value of a label; empty if it has none.
    pub(crate) fn label(&self, name: &str) -> &str {
        let label = self.labels.iter().find(|(key, _)| key == name);
        label.map_or("", |(_, value)| value.as_str())
    }
}

impl Samples {
    /// Reads all samples of a text.
    ///
    /// # Errors
    /// The first line that is no sample.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let samples = lines.map(|line| sample(line).with_context(|| format!("not a metric: {line:?}")));
        Ok(Self(samples.collect::<Result<_>>()?))
    }

    /// The samples of a metric.
    pub(crate) fn of(&self, name: &str) -> impl Iterator<Item = &Sample> {
        self.0.iter().filter(move |sample| sample.name == name)
    }

    /// The value of a metric without labels; `None` if it was not exposed.
    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        self.of(name).next().map(|sample| sample.value)
    }

    /// The sum of the samples of a metric that `keep` accepts.
    pub(crate) fn sum(&self, name: &str, keep: impl Fn(&Sample) -> bool) -> f64 {
        self.of(name).filter(|sample| keep(sample)).map(|sample| sample.value).sum()
    }
}

/// A line: a name, labels in braces, a value, and perhaps a time, which is ignored.
fn sample(line: &str) -> Result<Sample> {
    let end = line.find(['{', ' ', '\t']).context("it has no value")?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(labels) => self::labels(labels)?,
        None => (Vec::new(), rest.to_owned()),
    };
    let value = rest.split_whitespace().next().context("it has no value")?;
    let value = value.parse().with_context(|| format!("{value:?} is no number"))?;
    Ok(Sample { name: name.to_owned(), labels, value })
}

/// The labels up to the closing brace, and what follows it.
fn labels(text: &str) -> Result<(Vec<(String, String)>, String)> {
    let (mut labels, mut chars) = (Vec::new(), text.chars().peekable());
    loop {
        while chars.next_if(|c| matches!(c, ',' | ' ')).is_some() {}
        if chars.next_if_eq(&'}').is_some() {
            return Ok((labels, chars.collect()));
        }
        let mut name = String::new();
        while let Some(c) = chars.next_if(|c| *c != '=') {
            name.push(c);
        }
        if chars.next().is_none() || chars.next() != Some('"') {
            bail!("label {name:?} has no value");
        }
        labels.push((name.trim().to_owned(), quoted(&mut chars)?));
    }
}

/// A value up to its closing quotation mark.
fn quoted(chars: &mut Peekable<Chars<'_>>) -> Result<String> {
    let mut value = String::new();
    loop {
        match chars.next().context("a label's value does not end")? {
            '"' => return Ok(value),
            '\\' => match chars.next().context("a label's value does not end")? {
                'n' => value.push('\n'),
                escaped => value.push(escaped),
            },
            c => value.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_with_labels_escapes_and_times() {
        let text = "# HELP a b\n# TYPE a counter\na{x=\"1\",y=\"q\\\"\\\\\\n}, z\"} 2.5\na 3 1700000000\n\n\
            h_bucket{le=\"+Inf\"} 7\ng NaN\n";
        let samples = Samples::parse(text).unwrap();
        let first = samples.of("a").next().unwrap();
        assert_eq!((first.label("x"), first.label("y"), first.value), ("1", "q\"\\\n}, z", 2.5));
        assert!((samples.sum("a", |_| true) - 5.5).abs() < 1e-9);
        assert_eq!(samples.of("h_bucket").next().unwrap().label("le"), "+Inf");
        assert!(samples.value("g").unwrap().is_nan());
        assert_eq!((samples.value("nope"), first.label("nope")), (None, ""));
    }

    #[test]
    fn line_that_is_no_sample_is_named() {
        for line in ["a", "a{", "a{x} 1", "a{x=1} 1", "a{x=\"1} 1", "a b", "<html>", "a{x=\"1\"}"] {
            let error = Samples::parse(&format!("ok 1\n{line}\n")).unwrap_err();
            assert!(error.to_string().contains("not a metric"), "{line}: {error}");
        }
    }
}
