use std::sync::Arc;

use lkr_state::{Peers, StateStore, StateStoreExt};
use lkr_vectors::VectorStore;
use uuid::Uuid;

use crate::{
    Error, ErrorKind, MigrateOptions, Parts, Report, Result, Stores, copy,
    fingerprint::Fingerprint,
    marker::{self, Marker, PointsDone, Step},
    progress::{Meter, Phase, ProgressSink},
    retry::retried,
    target, verify,
};

/// A store of points.
type Vectors = Arc<dyn VectorStore>;

/// A migration from one set of stores to another. Nothing else may use them meanwhile.
#[derive(Debug, Clone)]
pub struct Migration {
    source: Stores,
    target: Stores,
    parts: Parts,
    options: MigrateOptions,
}

impl Migration {
    /// A migration of what both sides have.
    ///
    /// # Errors
    /// `Invalid` if one side lacks a store that the other one has, or if there is nothing to copy.
    pub fn new(source: Stores, target: Stores, options: MigrateOptions) -> Result<Self> {
        let parts = Parts::of(&source, &target, options.records)?;
        Ok(Self { source, target, parts, options })
    }

    /// What is copied.
    #[must_use]
    pub const fn parts(&self) -> Parts {
        self.parts
    }

    /// Copies everything, or what an earlier run left, and compares both sides. The target may be used when this has
    /// returned `Ok`, and not before.
    ///
    /// If the source changed since the earlier run, what that copied is removed, and the migration begins again.
    ///
    /// # Errors
    /// `NotEmpty` if the target has other data; `InUse` if a process uses either side; `Changed` if the source changed
    /// during this run; `Different` if the comparison finds a difference; `Invalid` if the target is marked by a migration
    /// of other parts, or the source by any; those of the stores. After any of them, another run goes on.
    pub async fn run(&self, sink: ProgressSink<'_>) -> Result<Report> {
        self.check_unused().await?;
        let fingerprint = self.fingerprint(sink).await?;
        let (mut marker, resumed) = self.begin(fingerprint).await?;
        loop {
            match marker.step() {
                Step::Clear => {
                    let meter = Meter::begin(sink, Phase::Clearing, None, 0);
                    target::clear(&self.target, self.parts, &self.options, &meter).await?;
                    marker.advance(Step::Points(PointsDone::default()), Vec::new()).await?;
                }
                Step::Points(_) => {
                    if let Some((source, target)) = self.vectors() {
                        copy::points::copy(source, target, &mut marker, &self.options, sink).await?;
                    }
                    marker.advance(Step::Blobs, Vec::new()).await?;
                }
                Step::Blobs => {
                    if self.has_blobs() {
                        let (source, target) = (&self.source, &self.target);
                        copy::blobs::copy(source, target, self.parts, &self.options, resumed, sink).await?;
                    }
                    marker.advance(Step::Records { after: None, done: 0 }, Vec::new()).await?;
                }
                Step::Records { .. } => {
                    if self.parts.records {
                        copy::records::copy(&self.source, &mut marker, &self.options, sink).await?;
                    }
                    marker.advance(Step::Verify, Vec::new()).await?;
                }
                Step::Verify => break,
            }
        }
        let compared = self.compare(marker.fingerprint(), sink).await;
        // A difference that follows from a change of the source is told as such.
        self.check_unused().await?;
        self.check_unchanged(&marker, sink).await?;
        let report = compared?;
        marker.remove().await?;
        Ok(report)
    }

    /// Compares both sides and changes nothing. A target that was used since it was filled differs.
    ///
    /// # Errors
    /// `Different`, with the first difference; those of the stores.
    pub async fn verify(&self, sink: ProgressSink<'_>) -> Result<Report> {
        let fingerprint = self.fingerprint(sink).await?;
        self.compare(&fingerprint, sink).await
    }

    /// Gives up an unfinished migration: removes what it copied to the target, and then its marker. Returns whether there
    /// was one. The source is not touched.
    ///
    /// # Errors
    /// `Invalid` if the unfinished migration is of other parts; those of the stores.
    pub async fn discard(&self, sink: ProgressSink<'_>) -> Result<bool> {
        let Some(mut marker) = Marker::read(&self.target, self.options.retry_for).await? else {
            return Ok(false);
        };
        self.check_same_parts(&marker)?;
        let fingerprint = marker.fingerprint().clone();
        marker.restart(fingerprint).await?;
        let meter = Meter::begin(sink, Phase::Clearing, None, 0);
        target::clear(&self.target, self.parts, &self.options, &meter).await?;
        marker.remove().await?;
        Ok(true)
    }

    async fn compare(&self, fingerprint: &Fingerprint, sink: ProgressSink<'_>) -> Result<Report> {
        let (options, mut report) = (&self.options, Report::default());
        if let Some((source, target)) = self.vectors() {
            let total = fingerprint.points.values().sum();
            let meter = Meter::begin(sink, Phase::VerifyingPoints, Some(total), 0);
            let (points, checksum) = verify::points::compare(source, target, options, &meter).await?;
            (report.points, report.points_checksum) = (points, Some(checksum));
        }
        if self.has_blobs() {
            let (source, target) = (&self.source, &self.target);
            let total = copy::blobs::count(source, self.parts, options, "list source files").await?;
            let meter = Meter::begin(sink, Phase::VerifyingBlobs, Some(total), 0);
            let blobs = verify::blobs::compare(source, target, self.parts, options, &meter).await?;
            (report.texts, report.originals, report.bytes) = (blobs.texts, blobs.originals, blobs.bytes);
            report.blobs_checksum = Some(blobs.checksum);
        }
        if self.parts.records {
            let meter = Meter::begin(sink, Phase::VerifyingRecords, Some(fingerprint.records), 0);
            let records = verify::records::compare(&self.source, &self.target, options, &meter).await?;
            (report.records, report.left_out) = (records.counts, records.left_out);
            report.records_checksum = Some(records.checksum);
        }
        Ok(report)
    }

    /// The marker of the earlier run, or a new one on an empty target, and whether there was an earlier run.
    async fn begin(&self, fingerprint: Fingerprint) -> Result<(Marker<'_>, bool)> {
        let retry_for = self.options.retry_for;
        if let Some(mut marker) = Marker::read(&self.target, retry_for).await? {
            self.check_same_parts(&marker)?;
            if fingerprint.is_unchanged_since(marker.fingerprint()) {
                // Another run that is still active is stopped by this write.
                let step = marker.step().clone();
                marker.advance(step, Vec::new()).await?;
            } else {
                tracing::warn!("the source changed since the last run; the migration begins again");
                marker.restart(fingerprint).await?;
            }
            return Ok((marker, true));
        }
        target::check_empty(&self.target, self.parts, &self.options).await?;
        let mut marker = Marker::new(&self.target, retry_for, self.parts, fingerprint);
        marker.advance(Step::Points(PointsDone::default()), Vec::new()).await?;
        Ok((marker, false))
    }

    fn check_same_parts(&self, marker: &Marker<'_>) -> Result<()> {
        let (theirs, ours) = (marker.parts(), self.parts);
        if theirs == ours {
            return Ok(());
        }
        let reason = format!(
            "the target has an unfinished migration of {}; this one is of {}",
            theirs.names(),
            ours.names()
        );
        Err(Error::new(ErrorKind::Invalid, "check the target", reason))
    }

    /// # Errors
    /// `InUse` if a process uses one of the sides; `Invalid` if the source is itself being filled.
    async fn check_unused(&self) -> Result<()> {
        for (side, state) in [("source", &self.source.state), ("target", &self.target.state)] {
            let running = || Peers::running_on(&**state);
            let running = retried(self.options.retry_for, "read the running servers", running).await?;
            if !running.is_empty() {
                let ids: Vec<String> = running.iter().map(ToString::to_string).collect();
                let reason = format!(
                    "{} servers use the {side} ({}); one that was killed counts for a minute",
                    ids.len(),
                    ids.join(", ")
                );
                return Err(Error::new(ErrorKind::InUse, "check the stores", reason));
            }
        }
        let marker = || self.source.state.get(marker::KEY);
        if self.parts.records
            && retried(self.options.retry_for, "read source records", marker).await?.is_some()
        {
            let reason = "the source is the target of an unfinished migration";
            return Err(Error::new(ErrorKind::Invalid, "check the source", reason));
        }
        Ok(())
    }

    async fn check_unchanged(&self, marker: &Marker<'_>, sink: ProgressSink<'_>) -> Result<()> {
        match self.fingerprint(sink).await?.is_unchanged_since(marker.fingerprint()) {
            true => Ok(()),
            false => {
                let reason = "the source changed while it was copied";
                Err(Error::new(ErrorKind::Changed, "check the source", reason))
            }
        }
    }

    async fn fingerprint(&self, sink: ProgressSink<'_>) -> Result<Fingerprint> {
        let meter = Meter::begin(sink, Phase::Inspecting, None, 0);
        Fingerprint::of(&self.source, self.parts, &self.options, &meter).await
    }

    /// The points of the source and of the target.
    fn vectors(&self) -> Option<(&Vectors, &Vectors)> {
        self.source.vectors.as_ref().zip(self.target.vectors.as_ref())
    }

    const fn has_blobs(&self) -> bool {
        self.parts.texts || self.parts.originals
    }
}

/// The servers that use a shared store. A server that was killed counts until its record expires, which is a minute. Servers
/// on the embedded store are not among them: its lock excludes them.
///
/// # Errors
/// Those of the store.
pub async fn is_in_use(state: &dyn StateStore) -> Result<Vec<Uuid>> {
    let running = Peers::running_on(state).await;
    Ok(running.map_err(|error| Error::store("read the running servers", error))?.into_iter().collect())
}
