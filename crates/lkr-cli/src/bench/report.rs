//! The report of `lkr bench speed`.

use std::{fmt, time::Duration};

use crate::bench::{
    ingest::{Cost, Ingestion},
    search::SearchCost,
};

/// The report of `lkr bench speed`.
#[derive(Debug)]
pub(super) struct SpeedReport {
    pub(super) ingestion: Ingestion,
    pub(super) search: SearchCost,
}

impl fmt::Display for SpeedReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ingestion { documents, passages, total, engine } = self.ingestion;
        writeln!(f, "ingestion  {documents} documents, {passages} passages")?;
        for (name, Cost { wall, cpu }) in [("whole ", total), ("engine", engine)] {
            let (wall, cpu) = (wall.as_secs_f64(), cpu.as_secs_f64());
            let rate = passages as f64 / wall;
            writeln!(f, "  {name}   {wall:.1} s, {rate:.1} passages a second, {cpu:.1} s of CPU")?;
        }
        let ratio = |of: fn(&Cost) -> Duration| of(&engine).as_secs_f64() / of(&total).as_secs_f64();
        let (wall, cpu) = (ratio(|cost| cost.wall), ratio(|cost| cost.cpu));
        writeln!(f, "  ratio    {wall:.3} of the engine's throughput, {cpu:.3} by CPU time")?;
        writeln!(f, "search     {} queries", self.search.queries)?;
        writeln!(f, "  whole    {}", self.search)
    }
}
