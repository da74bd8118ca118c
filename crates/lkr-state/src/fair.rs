//! The order in which tasks of several flows are served: start-time fair queueing.
//!
//! Goyal, Vin and Cheng, "Start-time Fair Queueing" (SIGCOMM 1996): each task gets a start tag, the larger of the virtual
//! time and the finish tag of the task before it in its flow. The finish tag is the start tag plus the cost. Tasks are
//! served in the order of their start tags, and the virtual time is the start tag of the task served last. Flows that
//! always have tasks waiting are served costs that differ by at most the cost of one task, and a flow that was idle is
//! served next, however much the others have queued. Unlike deficit round robin it needs no rounds: the tag is the key of
//! the order, so a store keeps the whole order in one sorted index.

use std::collections::HashMap;

use crate::{Lane, Work};

/// What every task costs beside its bytes. See docs/studies.md#fair-queueing.
pub const BASE_COST: u64 = 16 * 1024;

/// The end of the start tags of a lane; the tags of the short lane begin at 0, those of the long lane at this.
const LANE_TAGS: u64 = 1 << 49;

/// The number of flows beyond which those are forgotten that have nothing queued. See docs/studies.md#fair-queueing.
const MIN_FLOWS: usize = 64;

/// The virtual clocks of a queue's two lanes.
#[derive(Debug, Default)]
pub struct FairTags {
    short: LaneClock,
    long: LaneClock,
}

#[derive(Debug, Default)]
struct LaneClock {
    /// The start tag of the task that was served last.
    now: u64,
    /// The finish tag of each flow's last task.
    finished: HashMap<String, u64>,
    /// The number of flows at which those are forgotten that have nothing queued.
    forget_at: usize,
}

impl FairTags {
    /// The end of all start tags. Microseconds since 1970 are larger.
    pub const END: u64 = 2 * LANE_TAGS;

    /// The start tags of a lane.
    #[must_use]
    pub const fn range(is_long: bool) -> std::ops::Range<u64> {
        if is_long { LANE_TAGS..Self::END } else { 0..LANE_TAGS }
    }

    /// The lanes that `lane` selects, in the order in which they are looked at.
    #[must_use]
    pub const fn lanes(lane: Lane) -> &'static [bool] {
        match lane {
            Lane::Any => &[false, true],
            Lane::Short | Lane::Spare => &[false],
            Lane::Long => &[true],
        }
    }

    /// The start tag of a task that becomes claimable now.
    pub fn tag(&mut self, work: &Work) -> u64 {
        let first = Self::range(work.is_long).start;
        self.clock(work.is_long).tag(work).min(LANE_TAGS - 1) + first
    }

    /// Notes that the task with this start tag is served.
    pub fn serve(&mut self, tag: u64) {
        let is_long = tag >= LANE_TAGS;
        let tag = tag - Self::range(is_long).start;
        let clock = self.clock(is_long);
        clock.now = clock.now.max(tag);
    }

    /// The clocks of a queue with these waiting tasks and their start tags.
    #[must_use]
    pub fn restore(waiting: impl IntoIterator<Item = (u64, Work)>) -> Self {
        let mut tags = Self::default();
        let mut first = [None::<u64>; 2];
        for (tag, work) in waiting {
            let tag = tag.saturating_sub(Self::range(work.is_long).start);
            let [short, long] = &mut first;
            let lowest = if work.is_long { long } else { short };
            *lowest = Some(lowest.map_or(tag, |lowest| lowest.min(tag)));
            let finish = tag.saturating_add(work.charge());
            let finished = tags.clock(work.is_long).finished.entry(work.flow).or_default();
            *finished = finish.max(*finished);
        }
        let [short, long] = first.map(Option::unwrap_or_default);
        (tags.short.now, tags.long.now) = (short, long);
        tags
    }

    const fn clock(&mut self, is_long: bool) -> &mut LaneClock {
        if is_long { &mut self.long } else { &mut self.short }
    }
}

impl LaneClock {
    fn tag(&mut self, work: &Work) -> u64 {
        if self.finished.len() > self.forget_at.max(MIN_FLOWS) {
            let now = self.now;
            self.finished.retain(|_, finish| *finish > now);
            self.forget_at = 2 * self.finished.len();
        }
        let start = self.finished.get(&work.flow).map_or(self.now, |finish| self.now.max(*finish));
        self.finished.insert(work.flow.clone(), start.saturating_add(work.charge()));
        start
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Flows that always have tasks waiting are served costs that differ by at most one task and its base cost.
        #[test]
        fn backlogged_flows_are_served_costs_that_differ_by_at_most_one_task(
            costs in prop::collection::vec(prop::collection::vec(0u64..1_000_000, 60), 2..6),
            claims in 1usize..60,
            is_long: bool,
        ) {
            let work = |flow: usize, cost| Work { flow: flow.to_string(), cost, is_long };
            let mut tags = FairTags::default();
            let mut queues: Vec<VecDeque<(u64, u64)>> = Vec::new();
            for (flow, costs) in costs.iter().enumerate() {
                queues.push(costs.iter().map(|&cost| (tags.tag(&work(flow, cost)), cost)).collect());
            }
            let mut served = vec![0; queues.len()];
            for _ in 0..claims {
                let next = (0..queues.len()).min_by_key(|&flow| queues[flow][0].0).unwrap();
                let (tag, cost) = queues[next].pop_front().unwrap();
                tags.serve(tag);
                served[next] += cost + BASE_COST;
            }
            let (least, most) = (served.iter().min().unwrap(), served.iter().max().unwrap());
            let largest = costs.iter().flatten().max().unwrap() + BASE_COST;
            prop_assert!(most - least <= largest, "{served:?}, the largest task costs {largest}");
        }
    }
}
