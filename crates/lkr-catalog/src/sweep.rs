//! Agreement between the processes that accept documents and the one that removes what was stored and not accepted.

use lkr_state::{Expect, StateStoreExt, Write};

use crate::{Catalog, Result, key};

impl Catalog {
    /// Begins to remove what was stored and is not referred to. Steps that contain an earlier
    /// [`no_sweep`](Self::no_sweep) fail from now on.
    ///
    /// # Errors
    /// Those of the state store.
    pub async fn begin_sweep(&self) -> Result<()> {
        Ok(self.state.apply(vec![Write::increment(key::SWEEPS)]).await?)
    }

    /// The check that no sweep begins from now on. Read it before the content is stored, and put it into the step that refers
    /// to the content: so either the step comes first and the sweep sees the reference, or the step fails.
    ///
    /// # Errors
    /// Those of the state store.
    pub async fn no_sweep(&self) -> Result<Write> {
        let sweeps = self.state.get(key::SWEEPS).await?;
        Ok(Write::check(key::SWEEPS, sweeps.map_or(Expect::Absent, |record| Expect::Version(record.version))))
    }
}
