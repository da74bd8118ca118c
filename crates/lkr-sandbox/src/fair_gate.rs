//! Places for files, shared between accounts.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use crate::{
    Error, ErrorKind, Result,
    error::{OPERATION, internal},
};

/// The places beyond the configured ones, for the first file of an account while others occupy the rest. See
/// docs/studies.md#fair-file-readers.
const SPARE_PLACES: usize = 1;

/// Lets a bounded number of files in. Accounts whose files wait take turns (round robin), and within an account the
/// earliest file is next.
#[derive(Debug)]
pub(crate) struct FairGate {
    places: usize,
    max_waiting: usize,
    state: Mutex<GateState>,
}

#[derive(Debug, Default)]
struct GateState {
    inside: usize,
    inside_by: HashMap<String, usize>,
    /// The waiting files of each account; the account at the front is next.
    waiting: VecDeque<(String, VecDeque<oneshot::Sender<GatePermit>>)>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct GatePermit {
    gate: Arc<FairGate>,
    account: String,
}

impl FairGate {
    pub(crate) fn new(places: usize, max_waiting: usize) -> Arc<Self> {
        Arc::new(Self { places: places.max(1), max_waiting, state: Mutex::default() })
    }

    /// Waits for a place.
    ///
    /// # Errors
    /// `Overloaded` if too many files wait already.
    pub(crate) async fn enter(self: &Arc<Self>, account: &str) -> Result<GatePermit> {
        let place = {
            let mut state = self.lock();
            state.forget_cancelled();
            if self.has_place(&state, account) {
                return Ok(self.occupy(&mut state, account));
            }
            self.check_room(&state, account)?;
            state.wait(account)
        };
        place.await.map_err(internal)
    }

    // A poisoned lock is safe to use: no panic can happen between two changes that belong together.
    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_place(&self, state: &GateState, account: &str) -> bool {
        let is_first = !state.inside_by.contains_key(account);
        state.inside < self.places + if is_first { SPARE_PLACES } else { 0 }
    }

    fn occupy(self: &Arc<Self>, state: &mut GateState, account: &str) -> GatePermit {
        state.inside += 1;
        *state.inside_by.entry(account.to_owned()).or_default() += 1;
        GatePermit { gate: Arc::clone(self), account: account.to_owned() }
    }

    /// Refuses a file if the waiting places are full. Then an account may still wait with a quarter as many files, so
    /// that no account can take all places from the others.
    fn check_room(&self, state: &GateState, account: &str) -> Result<()> {
        let all: usize = state.waiting.iter().map(|(_, files)| files.len()).sum();
        let own = state.waiting.iter().find(|(name, _)| name == account).map_or(0, |(_, files)| files.len());
        if all < self.max_waiting || (own < self.max_waiting.div_ceil(4) && all < 2 * self.max_waiting) {
            return Ok(());
        }
        let reason = format!("{} files are being read or waiting", state.inside + all);
        Err(Error::new(ErrorKind::Overloaded, OPERATION, reason))
    }

    /// Gives free places to waiting files.
    fn let_in(self: &Arc<Self>) {
        loop {
            let mut state = self.lock();
            state.forget_cancelled();
            let next = state.waiting.iter().position(|(account, _)| self.has_place(&state, account));
            let Some((account, mut files)) = next.and_then(|next| state.waiting.remove(next)) else { return };
            let permit = files.pop_front().map(|file| (file, self.occupy(&mut state, &account)));
            if !files.is_empty() {
                state.waiting.push_back((account, files));
            }
            // A permit that nobody receives is dropped, which takes the lock.
            drop(state);
            if let Some((file, permit)) = permit {
                drop(file.send(permit));
            }
        }
    }
}

impl GateState {
    fn wait(&mut self, account: &str) -> oneshot::Receiver<GatePermit> {
        let (file, place) = oneshot::channel();
        match self.waiting.iter_mut().find(|(name, _)| name == account) {
            Some((_, files)) => files.push_back(file),
            None => self.waiting.push_back((account.to_owned(), VecDeque::from([file]))),
        }
        place
    }

    fn forget_cancelled(&mut self) {
        for (_, files) in &mut self.waiting {
            files.retain(|file| !file.is_closed());
        }
        self.waiting.retain(|(_, files)| !files.is_empty());
    }
}

impl Drop for GatePermit {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.inside = state.inside.saturating_sub(1);
        if let Some(inside) = state.inside_by.get_mut(&self.account) {
            *inside -= 1;
            if *inside == 0 {
                state.inside_by.remove(&self.account);
            }
        }
        drop(state);
        self.gate.let_in();
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    type Entering = std::pin::Pin<Box<dyn Future<Output = Result<GatePermit>>>>;

    fn enter(gate: &Arc<FairGate>, account: &'static str) -> Entering {
        let gate = Arc::clone(gate);
        let mut entering: Entering = Box::pin(async move { gate.enter(account).await });
        assert!(poll(&mut entering).is_none(), "the file must wait");
        entering
    }

    fn poll(entering: &mut Entering) -> Option<Result<GatePermit>> {
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        match entering.as_mut().poll(&mut cx) {
            Poll::Ready(entered) => Some(entered),
            Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn first_file_of_another_account_enters_beside_a_flood() {
        let gate = FairGate::new(2, 64);
        let _inside = [gate.enter("flood").await.unwrap(), gate.enter("flood").await.unwrap()];
        let _waiting: Vec<_> = (0..64).map(|_| enter(&gate, "flood")).collect();
        assert_eq!(gate.enter("flood").await.unwrap_err().kind(), ErrorKind::Overloaded);
        let _other = gate.enter("other").await.unwrap();
        let _waits = enter(&gate, "third");
    }

    #[tokio::test]
    async fn waiting_accounts_take_turns() {
        let gate = FairGate::new(1, 8);
        let inside = gate.enter("flood").await.unwrap();
        let spare = gate.enter("spare").await.unwrap();
        let (mut first, mut second) = (enter(&gate, "flood"), enter(&gate, "flood"));
        let mut other = enter(&gate, "other");
        drop(inside);
        let _first = poll(&mut first).unwrap().unwrap();
        assert!(poll(&mut other).is_none());
        drop(spare);
        let _other = poll(&mut other).unwrap().unwrap();
        assert!(poll(&mut second).is_none(), "the flood had its turn");
    }

    #[tokio::test]
    async fn cancelled_waiting_file_takes_no_place() {
        let gate = FairGate::new(1, 1);
        let inside = gate.enter("one").await.unwrap();
        drop(enter(&gate, "one"));
        let mut waiting = enter(&gate, "one");
        drop(inside);
        let entered = poll(&mut waiting).unwrap().unwrap();
        drop(entered);
        drop(gate.enter("one").await.unwrap());
        assert_eq!(gate.lock().inside, 0);
    }
}
