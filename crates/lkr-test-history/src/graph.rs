//! Which operation must have happened before which, and cycles in that order.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
};

use crate::Operation;

/// The number of operations of a component from which the shortest cycle is looked for.
const MOST_STARTS: usize = 64;

/// Why one operation happened before another. The numbers are those of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// It ended before the other one began.
    RealTime,
    /// The other one read what it wrote.
    WriteRead(usize),
    /// The other one wrote a later version.
    WriteWrite(usize),
    /// The other one replaced what it read.
    ReadWrite(usize),
}

impl Reason {
    /// The key on which the two operations met.
    pub(crate) const fn key(self) -> Option<usize> {
        match self {
            Self::RealTime => None,
            Self::WriteRead(key) | Self::WriteWrite(key) | Self::ReadWrite(key) => Some(key),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RealTime => "ended before the next one began",
            Self::WriteRead(_) => "wrote what the next one read of",
            Self::WriteWrite(_) => "wrote an earlier version than the next one of",
            Self::ReadWrite(_) => "read what the next one replaced of",
        })
    }
}

/// A directed graph over the operations of a history, by their numbers.
pub(crate) struct Graph {
    edges: Vec<BTreeMap<usize, Reason>>,
}

impl Graph {
    pub(crate) fn new(operations: usize) -> Self {
        Self { edges: vec![BTreeMap::new(); operations] }
    }

    /// Notes that `from` happened before `to`. Of several reasons the first is kept.
    pub(crate) fn add(&mut self, from: usize, to: usize, reason: Reason) {
        if from != to
            && let Some(edges) = self.edges.get_mut(from)
        {
            edges.entry(to).or_insert(reason);
        }
    }

    /// Adds the order in time. An operation gets edges only from the last ones before it; the others follow, because those
    /// ended before these began.
    pub(crate) fn add_real_time(&mut self, operations: &[Operation], takes_part: impl Fn(usize) -> bool) {
        let mut events = Vec::new();
        for (number, operation) in operations.iter().enumerate().filter(|(number, _)| takes_part(*number)) {
            // At equal times beginnings come first: such operations may have overlapped.
            events.push((operation.start, false, number));
            events.extend(operation.end.map(|end| (end, true, number)));
        }
        events.sort_unstable();
        let mut last: Vec<(u64, usize)> = Vec::new();
        for (_, is_end, number) in events {
            let Some(operation) = operations.get(number) else { continue };
            if is_end {
                last.retain(|(end, _)| *end >= operation.start);
                last.push((operation.latest(), number));
            } else {
                last.iter().for_each(|(_, before)| self.add(*before, number, Reason::RealTime));
            }
        }
    }

    /// A short cycle in each strongly connected component, as operations with the reason why each comes before the next.
    pub(crate) fn cycles(&self) -> Vec<Vec<(usize, Reason)>> {
        let components = self.components();
        let mut of = vec![usize::MAX; self.edges.len()];
        for (component, members) in components.iter().enumerate() {
            for member in members {
                if let Some(of) = of.get_mut(*member) {
                    *of = component;
                }
            }
        }
        let shortest = components.iter().filter(|members| members.len() > 1).filter_map(|members| {
            let starts = members.iter().take(MOST_STARTS);
            starts.filter_map(|start| self.cycle_through(*start, &of)).min_by_key(Vec::len)
        });
        shortest.collect()
    }

    /// The shortest cycle through an operation, by breadth-first search within its component.
    fn cycle_through(&self, start: usize, component: &[usize]) -> Option<Vec<(usize, Reason)>> {
        let mut reached: BTreeMap<usize, (usize, Reason)> = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(at) = queue.pop_front() {
            for (next, reason) in self.edges.get(at)? {
                if component.get(*next) != component.get(start) || reached.contains_key(next) {
                    continue;
                }
                reached.insert(*next, (at, *reason));
                if *next == start {
                    return Some(path(&reached, start));
                }
                queue.push_back(*next);
            }
        }
        None
    }

    /// Strongly connected components by Tarjan's algorithm, with a stack of its own because paths are long.
    fn components(&self) -> Vec<Vec<usize>> {
        let mut search = Search::new(self.edges.len());
        for root in 0..self.edges.len() {
            if search.index.get(root) == Some(&0) {
                search.run(root, &self.edges);
            }
        }
        search.components
    }
}

/// The cycle from `start` back to it along the way by which a search came.
fn path(reached: &BTreeMap<usize, (usize, Reason)>, start: usize) -> Vec<(usize, Reason)> {
    let mut cycle = Vec::new();
    let mut at = start;
    while let Some((before, reason)) = reached.get(&at) {
        cycle.push((*before, *reason));
        at = *before;
        if at == start {
            break;
        }
    }
    cycle.reverse();
    cycle
}

/// The state of Tarjan's algorithm.
struct Search {
    /// The order in which nodes were reached, from 1; 0 for those that were not.
    index: Vec<usize>,
    low: Vec<usize>,
    is_open: Vec<bool>,
    open: Vec<usize>,
    count: usize,
    components: Vec<Vec<usize>>,
}

#[expect(clippy::indexing_slicing, reason = "all numbers are those of nodes")]
impl Search {
    fn new(nodes: usize) -> Self {
        Self {
            index: vec![0; nodes],
            low: vec![0; nodes],
            is_open: vec![false; nodes],
            open: Vec::new(),
            count: 0,
            components: Vec::new(),
        }
    }

    fn run(&mut self, root: usize, edges: &[BTreeMap<usize, Reason>]) {
        self.reach(root);
        let mut path = vec![(root, edges[root].keys())];
        while let Some((node, rest)) = path.last_mut() {
            let node = *node;
            match rest.next() {
                Some(&next) if self.index[next] == 0 => {
                    self.reach(next);
                    path.push((next, edges[next].keys()));
                }
                Some(&next) if self.is_open[next] => self.low[node] = self.low[node].min(self.index[next]),
                Some(_) => {}
                None => {
                    path.pop();
                    if let Some((parent, _)) = path.last() {
                        self.low[*parent] = self.low[*parent].min(self.low[node]);
                    }
                    self.leave(node);
                }
            }
        }
    }

    fn reach(&mut self, node: usize) {
        self.count += 1;
        self.index[node] = self.count;
        self.low[node] = self.count;
        self.is_open[node] = true;
        self.open.push(node);
    }

    /// Ends a component if `node` is its root.
    fn leave(&mut self, node: usize) {
        if self.low[node] != self.index[node] {
            return;
        }
        let mut component = Vec::new();
        while let Some(member) = self.open.pop() {
            self.is_open[member] = false;
            component.push(member);
            if member == node {
                break;
            }
        }
        self.components.push(component);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
        let mut graph = Graph::new(6);
        edges.iter().for_each(|(from, to)| graph.add(*from, *to, Reason::RealTime));
        let mut found: Vec<Vec<usize>> = Vec::new();
        for cycle in graph.cycles() {
            let mut members: Vec<usize> = cycle.into_iter().map(|(member, _)| member).collect();
            members.sort_unstable();
            found.push(members);
        }
        found.sort();
        found
    }

    #[test]
    fn shortest_cycle_of_each_component_is_found() {
        assert_eq!(cycles(&[(0, 1), (1, 2), (0, 2), (2, 3)]), [[0; 0]; 0]);
        assert_eq!(cycles(&[(0, 1), (1, 2), (2, 0), (2, 3)]), [[0, 1, 2]]);
        assert_eq!(cycles(&[(0, 1), (1, 2), (2, 0), (2, 1), (3, 4), (4, 3)]), [[1, 2], [3, 4]]);
    }
}
