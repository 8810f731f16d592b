//! How Collections lie under each other: a directed acyclic graph of at most 32 edges in a row (ODP §4).

use crate::identity::LocalId;
use crate::limits;
use crate::report::{Invalid, Place, Report};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;

/// Why an edge from a Collection to a parent cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdgeFault {
    /// The Collection names itself.
    SelfParent,
    /// There is no such Collection.
    MissingParent,
    /// The edge closes a cycle.
    Cycle,
    /// The edge makes a path of more than 32 edges.
    TooDeep,
}

impl fmt::Display for EdgeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SelfParent => "Must not name the Collection itself.",
            Self::MissingParent => "Must name a Collection that exists.",
            Self::Cycle => "Must not close a cycle.",
            Self::TooDeep => "Must not lie more than 32 edges below a root.",
        })
    }
}

/// An edge that a Service must not publish and an Agent ignores.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BrokenEdge {
    /// Index of the Collection among those given.
    pub collection: usize,
    /// Index in its `parent_ids`.
    pub edge: usize,
    /// The parent that is named.
    pub parent: LocalId,
    /// What is wrong with the edge.
    pub fault: EdgeFault,
}

/// The graph of the Collections, without its broken edges.
#[derive(Clone, Debug, Default)]
pub struct Hierarchy {
    ids: Vec<LocalId>,
    by_id: HashMap<LocalId, usize>,
    parents: Vec<Vec<usize>>,
    children: Vec<Vec<usize>>,
    broken: Vec<BrokenEdge>,
}

impl Hierarchy {
    /// The hierarchy of `collections`, each with its `parent_ids`. An id that occurs again is ignored, and so is a parent that
    /// is named again.
    ///
    /// Which edge of a cycle is the broken one follows from the order: the one that closes it when the Collections and their
    /// parents are visited in the order given.
    pub fn new(collections: impl IntoIterator<Item = (LocalId, Vec<LocalId>)>) -> Self {
        let mut this = Self::default();
        let mut named = Vec::new();
        let mut given_at = Vec::new();
        for (given, (id, parents)) in collections.into_iter().enumerate() {
            if this.by_id.contains_key(&id) {
                continue;
            }
            this.by_id.insert(id.clone(), this.ids.len());
            this.ids.push(id);
            named.push(parents);
            given_at.push(given);
        }
        let mut edges = Vec::with_capacity(named.len());
        for (node, parents) in named.iter().enumerate() {
            let mut sound: Vec<Edge> = Vec::new();
            for (at, parent) in parents.iter().enumerate() {
                let target = this.by_id.get(parent).copied();
                let fault = match target {
                    Some(target) if target == node => EdgeFault::SelfParent,
                    Some(target) => {
                        if !sound.iter().any(|edge| edge.to == target) {
                            sound.push(Edge { to: target, at });
                        }
                        continue;
                    }
                    None => EdgeFault::MissingParent,
                };
                this.broken.push(BrokenEdge {
                    collection: node,
                    edge: at,
                    parent: parent.clone(),
                    fault,
                });
            }
            edges.push(sound);
        }
        this.parents = vec![Vec::new(); edges.len()];
        this.children = vec![Vec::new(); edges.len()];
        this.walk(&edges);
        for broken in &mut this.broken {
            if let Some(&given) = given_at.get(broken.collection) {
                broken.collection = given;
            }
        }
        this.broken
            .sort_by_key(|broken| (broken.collection, broken.edge));
        this
    }

    /// Goes through the graph depth first, parents before children, and keeps the edges that are sound. An explicit stack: a
    /// chain can be as long as an Agent is made to read.
    fn walk(&mut self, edges: &[Vec<Edge>]) {
        let mut state = vec![State::New; edges.len()];
        for start in 0..edges.len() {
            if !matches!(state.get(start), Some(State::New)) {
                continue;
            }
            // A node, its next edge, and the length of the longest path from it so far.
            let mut stack = vec![(start, 0_usize, 0_usize)];
            set(&mut state, start, State::Open);
            while let Some((node, next, depth)) = stack.last_mut() {
                let node = *node;
                let Some(&edge) = edges.get(node).and_then(|edges| edges.get(*next)) else {
                    set(&mut state, node, State::Done { depth: *depth });
                    stack.pop();
                    continue;
                };
                match state.get(edge.to).copied() {
                    Some(State::New) => {
                        set(&mut state, edge.to, State::Open);
                        stack.push((edge.to, 0, 0));
                        continue;
                    }
                    Some(State::Done { depth: above }) if above < limits::HIERARCHY_EDGES => {
                        *depth = (*depth).max(above + 1);
                        *next += 1;
                        self.keep(node, edge.to);
                    }
                    state => {
                        *next += 1;
                        self.broken.push(BrokenEdge {
                            collection: node,
                            edge: edge.at,
                            parent: match self.ids.get(edge.to) {
                                Some(id) => id.clone(),
                                None => continue,
                            },
                            fault: match state {
                                Some(State::Done { .. }) => EdgeFault::TooDeep,
                                _ => EdgeFault::Cycle,
                            },
                        });
                    }
                }
            }
        }
    }

    fn keep(&mut self, child: usize, parent: usize) {
        if let (Some(parents), Some(children)) =
            (self.parents.get_mut(child), self.children.get_mut(parent))
        {
            parents.push(parent);
            children.push(child);
        }
    }

    /// The edges that are left out, by Collection and edge.
    pub fn broken(&self) -> &[BrokenEdge] {
        &self.broken
    }

    /// Whether a Service may publish the hierarchy as it was given.
    ///
    /// # Errors
    /// One violation for each broken edge, at `/{collection}/parent_ids/{edge}`.
    pub fn check(&self) -> Result<(), Invalid> {
        let mut report = Report::new();
        for broken in &self.broken {
            let collection = Place::ROOT.index(broken.collection);
            let parents = collection.key("parent_ids");
            report.add(&parents.index(broken.edge), broken.fault.to_string());
        }
        report.finish(Some(()))
    }

    /// Whether there is a Collection `id`.
    pub fn contains(&self, id: &LocalId) -> bool {
        self.by_id.contains_key(id)
    }

    /// The Collections without parents, in the order given.
    pub fn roots(&self) -> impl Iterator<Item = &LocalId> {
        let without = self.parents.iter().map(Vec::is_empty);
        self.ids
            .iter()
            .zip(without)
            .filter_map(|(id, root)| root.then_some(id))
    }

    /// The parents of the Collection `id`, in the order given; none when it does not exist.
    pub fn parents(&self, id: &LocalId) -> impl Iterator<Item = &LocalId> {
        self.neighbours(&self.parents, id)
    }

    /// The direct children of the Collection `id`; none when it does not exist.
    pub fn children(&self, id: &LocalId) -> impl Iterator<Item = &LocalId> {
        self.neighbours(&self.children, id)
    }

    fn neighbours<'a>(
        &'a self,
        of: &'a [Vec<usize>],
        id: &LocalId,
    ) -> impl Iterator<Item = &'a LocalId> {
        let node = self.by_id.get(id).copied();
        let found = node.and_then(|node| of.get(node)).map(Vec::as_slice);
        found
            .unwrap_or_default()
            .iter()
            .filter_map(|&node| self.ids.get(node))
    }

    /// Every Collection below `id`, each once, nearest first, without `id` itself; none when it does not exist.
    pub fn descendants(&self, id: &LocalId) -> Vec<&LocalId> {
        let mut found = Vec::new();
        let Some(&start) = self.by_id.get(id) else {
            return found;
        };
        let mut seen = HashSet::from([start]);
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            for &child in self.children.get(node).into_iter().flatten() {
                if seen.insert(child) {
                    found.extend(self.ids.get(child));
                    queue.push_back(child);
                }
            }
        }
        found
    }
}

/// An edge to an existing other Collection, and its index in `parent_ids`.
#[derive(Clone, Copy)]
struct Edge {
    to: usize,
    at: usize,
}

#[derive(Clone, Copy)]
enum State {
    New,
    /// On the stack: an edge to it closes a cycle.
    Open,
    /// `depth` is the length of the longest path from it.
    Done {
        depth: usize,
    },
}

fn set(states: &mut [State], node: usize, to: State) {
    if let Some(state) = states.get_mut(node) {
        *state = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use EdgeFault::{Cycle, MissingParent, SelfParent, TooDeep};

    fn id(text: &str) -> LocalId {
        LocalId::parse(text).unwrap()
    }

    fn hierarchy(collections: &[(&str, &[&str])]) -> Hierarchy {
        Hierarchy::new(
            collections
                .iter()
                .map(|(name, parents)| (id(name), parents.iter().map(|p| id(p)).collect())),
        )
    }

    fn faults(hierarchy: &Hierarchy) -> Vec<(usize, usize, &str, EdgeFault)> {
        hierarchy
            .broken()
            .iter()
            .map(|b| (b.collection, b.edge, b.parent.as_str(), b.fault))
            .collect()
    }

    fn names<'a>(ids: impl IntoIterator<Item = &'a LocalId>) -> Vec<&'a str> {
        ids.into_iter().map(LocalId::as_str).collect()
    }

    /// A chain of `edges` edges: `c0` is the root.
    fn chain(edges: usize) -> Hierarchy {
        let name = |i: usize| id(&format!("c{i}"));
        Hierarchy::new((0..=edges).rev().map(|i| {
            let parents = i.checked_sub(1).map(name).into_iter().collect();
            (name(i), parents)
        }))
    }

    #[test]
    fn several_roots_and_parents() {
        let h = hierarchy(&[
            ("compute", &[]),
            ("machine-learning", &[]),
            ("gpus", &["compute", "machine-learning"]),
        ]);
        assert!(h.check().is_ok());
        assert_eq!(names(h.roots()), ["compute", "machine-learning"]);
        assert_eq!(
            names(h.parents(&id("gpus"))),
            ["compute", "machine-learning"]
        );
        assert_eq!(names(h.children(&id("compute"))), ["gpus"]);
        assert_eq!(names(h.children(&id("none"))), Vec::<&str>::new());
        assert!(h.contains(&id("gpus")) && !h.contains(&id("GPUS")));
    }

    #[test]
    fn broken_edges_are_named_and_hurt_nothing_else() {
        let h = hierarchy(&[
            ("compute", &["compute"]),
            ("gpus", &["missing", "compute", "compute"]),
        ]);
        assert_eq!(
            faults(&h),
            [
                (0, 0, "compute", SelfParent),
                (1, 0, "missing", MissingParent)
            ]
        );
        assert_eq!(names(h.roots()), ["compute"]);
        assert_eq!(names(h.parents(&id("gpus"))), ["compute"]);
        let invalid = h.check().unwrap_err();
        let pointers: Vec<_> = invalid
            .violations()
            .iter()
            .map(|v| v.pointer.as_str())
            .collect();
        assert_eq!(pointers, ["/0/parent_ids/0", "/1/parent_ids/0"]);
    }

    #[test]
    fn the_edge_that_closes_a_cycle_goes() {
        let h = hierarchy(&[("compute", &["gpus"]), ("gpus", &["compute"])]);
        assert_eq!(faults(&h), [(1, 0, "compute", Cycle)]);
        assert_eq!(names(h.roots()), ["gpus"]);
        assert_eq!(names(h.descendants(&id("gpus"))), ["compute"]);

        let h = hierarchy(&[
            ("a", &["b"]),
            ("b", &["c", "root"]),
            ("c", &["a"]),
            ("root", &[]),
        ]);
        assert_eq!(faults(&h), [(2, 0, "a", Cycle)]);
        assert_eq!(names(h.descendants(&id("root"))), ["b", "a"]);
    }

    #[test]
    fn thirty_two_edges_and_no_more() {
        assert!(chain(32).check().is_ok());
        assert_eq!(chain(32).descendants(&id("c0")).len(), 32);
        let h = chain(33);
        assert_eq!(faults(&h), [(0, 0, "c32", TooDeep)]);
        assert_eq!(names(h.roots()), ["c33", "c0"]);
    }

    #[test]
    fn the_longest_path_counts() {
        // `leaf` reaches the root by one edge and by 33.
        let name = |i: usize| id(&format!("c{i}"));
        let mut collections: Vec<(LocalId, Vec<LocalId>)> =
            vec![(id("leaf"), vec![name(0), name(32)])];
        collections
            .extend((0..=32).map(|i| (name(i), i.checked_sub(1).map(name).into_iter().collect())));
        let h = Hierarchy::new(collections);
        assert_eq!(faults(&h), [(0, 1, "c32", TooDeep)]);
        assert_eq!(names(h.parents(&id("leaf"))), ["c0"]);
    }

    #[test]
    fn descendants_come_once_nearest_first() {
        let h = hierarchy(&[
            ("root", &[]),
            ("left", &["root"]),
            ("right", &["root"]),
            ("both", &["left", "right", "root"]),
            ("deep", &["both"]),
        ]);
        assert_eq!(
            names(h.descendants(&id("root"))),
            ["left", "right", "both", "deep"]
        );
        assert_eq!(names(h.descendants(&id("right"))), ["both", "deep"]);
        assert_eq!(names(h.descendants(&id("deep"))), Vec::<&str>::new());
        assert_eq!(names(h.descendants(&id("none"))), Vec::<&str>::new());
    }

    #[test]
    fn an_id_given_again_is_ignored_and_indexes_stay_those_given() {
        let h = hierarchy(&[("a", &[]), ("a", &["b"]), ("b", &["x"])]);
        assert_eq!(faults(&h), [(2, 0, "x", MissingParent)]);
        assert_eq!(names(h.roots()), ["a", "b"]);
    }

    #[test]
    fn a_hostile_chain_does_not_exhaust_the_stack() {
        let h = chain(200_000);
        assert_eq!(h.broken().len(), 200_000 / 33);
        assert!(h.broken().iter().all(|b| b.fault == TooDeep));
    }
}
