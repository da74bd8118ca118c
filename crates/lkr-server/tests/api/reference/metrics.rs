//! docs/metrics.md, from the families that the server registers.

use lkr_server::{MetricFamily, MetricGroup, MetricLabel, metric_groups};

use super::check;

const HEAD: &str = "\
# Metrics

This page is generated from the families that the server registers; the meanings are the help texts of the exposition.

`GET /metrics` answers in Prometheus' text format, without a login. No label has a value that a client can invent, so the
number of series is bounded by the figures below; a test sends ten thousand different requests and counts them. A metric with
labels is shown once it was used.
";

#[test]
fn reference_of_the_metrics_lists_every_family() {
    check("metrics.md", &render(metric_groups()));
}

fn render(groups: &[MetricGroup]) -> String {
    let mut text = HEAD.to_owned();
    for group in groups {
        text += &format!("\n## {}\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n", group.title);
        text.extend(group.families.iter().map(row));
    }
    text += "\n## Labels\n\n| label | of | values |\n|---|---|---|\n";
    let families: Vec<&MetricFamily> = groups.iter().flat_map(|group| group.families).collect();
    let mut listed: Vec<MetricLabel> = Vec::new();
    for label in families.iter().flat_map(|family| family.labels) {
        if !listed.contains(label) {
            listed.push(*label);
        }
    }
    text.extend(listed.iter().map(|label| label_row(label, &families)));
    text
}

fn row(family: &MetricFamily) -> String {
    let MetricFamily { name, kind, labels, help } = family;
    let labels: Vec<String> = labels.iter().map(|label| format!("`{}`", label.name)).collect();
    format!("| `{name}` | {} | {} | {help} |\n", kind.name(), labels.join(", "))
}

fn label_row(label: &MetricLabel, families: &[&MetricFamily]) -> String {
    let of: Vec<String> = families
        .iter()
        .filter(|family| family.labels.contains(label))
        .map(|family| format!("`{}`", family.name))
        .collect();
    format!("| `{}` | {} | {} |\n", label.name, of.join(", "), label.values)
}
