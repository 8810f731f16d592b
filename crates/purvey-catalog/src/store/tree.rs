//! The Collection hierarchy of the store, kept while a transaction changes it: one new edge is checked by walking from it, not
//! by checking everything again.

use purvey_odp::limits;
use purvey_odp::report::{Invalid, Place, Report};
use std::collections::{HashMap, HashSet};

/// Which Collections there are, and their parents and children.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    parents: HashMap<String, Vec<String>>,
    children: HashMap<String, HashSet<String>>,
}

impl Tree {
    /// Whether the Collection exists.
    pub fn contains(&self, id: &str) -> bool {
        self.parents.contains_key(id)
    }

    /// Every Collection with its parents, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.parents
            .iter()
            .map(|(id, parents)| (id.as_str(), parents.as_slice()))
    }

    /// Every Collection after its parents, in an order that depends on nothing else.
    pub fn parents_first(&self) -> Vec<String> {
        let mut heights = HashMap::new();
        let mut ids: Vec<(usize, &str)> = self
            .parents
            .keys()
            .map(|id| {
                let above = longest(id, &|id| self.direct_parents(id), &mut heights);
                (above, id.as_str())
            })
            .collect();
        ids.sort_unstable();
        ids.into_iter().map(|(_, id)| id.to_owned()).collect()
    }

    /// Direct children of a Collection, in id order.
    pub fn children(&self, id: &str) -> Vec<String> {
        let mut children: Vec<_> = self
            .children
            .get(id)
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        children.sort_unstable();
        children
    }

    /// Adds a Collection or gives it other parents; nothing is checked.
    pub fn insert(&mut self, id: &str, parents: Vec<String>) {
        self.unlink(id);
        for parent in &parents {
            self.children
                .entry(parent.clone())
                .or_default()
                .insert(id.to_owned());
        }
        self.parents.insert(id.to_owned(), parents);
    }

    /// Takes a Collection out.
    pub fn remove(&mut self, id: &str) {
        self.unlink(id);
        self.parents.remove(id);
    }

    fn unlink(&mut self, id: &str) {
        for parent in self.parents.get(id).into_iter().flatten() {
            if let Some(children) = self.children.get_mut(parent) {
                children.remove(id);
            }
        }
    }

    /// Whether `id` may have these parents: each exists, none is `id` or below it, and no path is longer than 32 edges (ODP §4).
    ///
    /// # Errors
    /// The broken edges, at `/parent_ids/…`.
    pub fn check(&self, id: &str, parents: &[String]) -> Result<(), Invalid> {
        let mut report = Report::new();
        let root = Place::ROOT;
        let list = root.key("parent_ids");
        let below = longest(id, &|id| self.direct_children(id), &mut HashMap::new());
        let mut heights = HashMap::new();
        for (i, parent) in parents.iter().enumerate() {
            let place = list.index(i);
            if parent == id {
                report.add(&place, "Must not be the Collection itself.");
            } else if !self.contains(parent) {
                let reason = format!("Must be a Collection of this catalog; there is no {parent}.");
                report.add(&place, reason);
            } else if self.is_below(parent, id) {
                let reason = format!("Must not be below the Collection itself; {parent} is.");
                report.add(&place, reason);
            } else {
                let above = longest(parent, &|id| self.direct_parents(id), &mut heights);
                if 1 + above + below > limits::HIERARCHY_EDGES {
                    let most = limits::HIERARCHY_EDGES;
                    report.add(
                        &place,
                        format!("Must keep every path at most {most} edges long."),
                    );
                }
            }
        }
        report.finish(Some(()))
    }

    fn direct_parents(&self, id: &str) -> Vec<&str> {
        let parents = self.parents.get(id).into_iter().flatten();
        parents.map(String::as_str).collect()
    }

    fn direct_children(&self, id: &str) -> Vec<&str> {
        let children = self.children.get(id).into_iter().flatten();
        children.map(String::as_str).collect()
    }

    /// Whether `id` has `ancestor` above it.
    fn is_below(&self, id: &str, ancestor: &str) -> bool {
        let mut seen = HashSet::new();
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            for parent in self.direct_parents(id) {
                if parent == ancestor {
                    return true;
                }
                if seen.insert(parent) {
                    open.push(parent);
                }
            }
        }
        false
    }
}

/// Edges of the longest path that starts at `id`. The hierarchy has no cycle and is 32 edges deep at most, so this recurses no
/// deeper.
fn longest<'a>(
    id: &'a str,
    next: &dyn Fn(&str) -> Vec<&'a str>,
    known: &mut HashMap<&'a str, usize>,
) -> usize {
    if let Some(length) = known.get(id) {
        return *length;
    }
    let ahead = next(id).into_iter();
    let length = ahead
        .map(|id| 1 + longest(id, next, known))
        .max()
        .unwrap_or(0);
    known.insert(id, length);
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(edges: &[(&str, &[&str])]) -> Tree {
        let mut tree = Tree::default();
        for (id, parents) in edges {
            tree.insert(id, owned(parents));
        }
        tree
    }

    fn owned(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    fn pointers(result: Result<(), Invalid>) -> Vec<String> {
        let violations = result.unwrap_err().into_violations();
        violations.into_iter().map(|v| v.pointer).collect()
    }

    #[test]
    fn every_broken_edge_is_named() {
        let tree = tree(&[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
        assert_eq!(tree.check("d", &owned(&["a", "c"])), Ok(()));
        assert_eq!(
            pointers(tree.check("a", &owned(&["a", "nobody", "c"]))),
            ["/parent_ids/0", "/parent_ids/1", "/parent_ids/2"]
        );
        // A new parent for b that is above it already, and one beside it, are no cycles.
        assert_eq!(tree.check("b", &owned(&["a"])), Ok(()));
    }

    #[test]
    fn depth_counts_what_is_above_and_below() {
        let mut tree = Tree::default();
        tree.insert("n0", Vec::new());
        for i in 1..=32 {
            let parent = owned(&[&format!("n{}", i - 1)]);
            assert_eq!(tree.check(&format!("n{i}"), &parent), Ok(()));
            tree.insert(&format!("n{i}"), parent);
        }
        // 32 edges lie between n32 and n0.
        assert!(tree.check("n33", &owned(&["n32"])).is_err());
        assert_eq!(tree.check("n33", &owned(&["n31"])), Ok(()));
        tree.insert("top", Vec::new());
        assert!(tree.check("n0", &owned(&["top"])).is_err());
        assert_eq!(tree.check("n1", &owned(&["top"])), Ok(()));
    }

    #[test]
    fn removing_and_moving_keeps_children_right() {
        let mut tree = tree(&[("a", &[]), ("b", &["a"]), ("c", &["a", "b"])]);
        assert_eq!(tree.children("a"), ["b", "c"]);
        tree.insert("c", owned(&["b"]));
        assert_eq!(tree.children("a"), ["b"]);
        tree.remove("b");
        assert!(tree.children("a").is_empty());
        assert!(!tree.contains("b"));
    }
}
