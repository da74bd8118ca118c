//! `lkr compare`: compares two evaluations query by query.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    io::Write,
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Result, bail};
use lkr_eval::Comparison;

use crate::{
    eval::{JudgedQuery, Target, read_per_query},
    stats::mean,
};

/// The arguments of `lkr compare`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The earlier file of `lkr eval --per-query`.
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// The later file of `lkr eval --per-query`.
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    /// Show this many of the most changed queries of each system and target.
    #[arg(long, value_name = "N", default_value_t = 5)]
    show: usize,
}

/// Compares two files and prints the differences.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let (before, after) = (read_per_query(&args.before)?, read_per_query(&args.after)?);
    let Some(text) = compare(&before, &after, args.show) else {
        bail!("{} and {} have no query in common", args.before.display(), args.after.display());
    };
    write!(std::io::stdout(), "{text}")?;
    Ok(ExitCode::SUCCESS)
}

/// The differences in nDCG@10 by target and system; `None` if the files have no query in common.
fn compare(before: &[JudgedQuery], after: &[JudgedQuery], show: usize) -> Option<String> {
    let key = |judged: &JudgedQuery| (judged.target, judged.system.clone(), judged.query.clone());
    let earlier: HashMap<_, &JudgedQuery> = before.iter().map(|judged| (key(judged), judged)).collect();
    let mut groups: BTreeMap<(Target, &str), Vec<(&JudgedQuery, &JudgedQuery)>> = BTreeMap::new();
    for later in after {
        if let Some(&earlier) = earlier.get(&key(later)) {
            groups.entry((later.target, &later.system)).or_default().push((earlier, later));
        }
    }
    let mut text = String::new();
    for ((target, system), pairs) in &mut groups {
        // Writing to a string never fails.
        let _ = write_group(&mut text, *target, system, pairs, show);
    }
    (!groups.is_empty()).then_some(text)
}

fn write_group(
    text: &mut String,
    target: Target,
    system: &str,
    pairs: &mut [(&JudgedQuery, &JudgedQuery)],
    show: usize,
) -> std::fmt::Result {
    let of = |judged: &JudgedQuery| judged.measures.ndcg_at_10;
    let change = |&(before, after): &(&JudgedQuery, &JudgedQuery)| of(after) - of(before);
    let figures: Vec<(f64, f64)> = pairs.iter().map(|(before, after)| (of(after), of(before))).collect();
    let Comparison { queries, difference, standard_error, p, better, worse } = Comparison::of(&figures);
    let (mean_before, mean_after) =
        (mean(pairs.iter().map(|pair| of(pair.0))), mean(pairs.iter().map(|pair| of(pair.1))));
    writeln!(
        text,
        "{}, {system}, {queries} queries: nDCG@10 {mean_before:.4} to {mean_after:.4}, {difference:+.4} \
         (s.e. {standard_error:.4}), p = {p:.5}, {better} better, {worse} worse",
        target.name()
    )?;
    pairs.sort_by(|a, b| change(b).abs().total_cmp(&change(a).abs()));
    let changed = pairs.iter().filter(|pair| change(pair) != 0.0);
    changed.take(show).try_for_each(|(before, after)| {
        writeln!(text, "  {}: {:.3} to {:.3}", after.query, of(before), of(after))?;
        writeln!(text, "    before {}", before.first.join(", "))?;
        writeln!(text, "    after  {}", after.first.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use lkr_eval::Measures;

    use super::*;

    fn judged(query: &str, system: &str, ndcg_at_10: f64) -> JudgedQuery {
        let measures = Measures { ndcg_at_10, ..Measures::default() };
        JudgedQuery {
            query: query.to_owned(),
            system: system.to_owned(),
            target: Target::Documents,
            measures,
            first: vec![format!("{query} at {ndcg_at_10}")],
        }
    }

    #[test]
    fn queries_are_compared_by_id_system_and_target() {
        let before = [judged("a", "flat", 0.5), judged("b", "flat", 1.0), judged("gone", "flat", 1.0)];
        let after = [judged("b", "flat", 0.25), judged("a", "flat", 0.75), judged("a", "new", 1.0)];
        let text = compare(&before, &after, 1).unwrap();
        assert!(text.starts_with("documents, flat, 2 queries: nDCG@10 0.7500 to 0.5000, -0.2500"), "{text}");
        assert!(text.contains("1 better, 1 worse") && text.contains("b: 1.000 to 0.250"), "{text}");
        assert!(!text.contains("a: 0.500") && text.contains("before b at 1\n    after  b at 0.25"), "{text}");
        assert_eq!(compare(&before, &[judged("z", "flat", 1.0)], 1), None);
    }
}
