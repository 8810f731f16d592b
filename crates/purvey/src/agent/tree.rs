//! `purvey collections --tree`

use super::{fault, notes, progress::Progress};
use crate::{
    failure::{Failure, say},
    output, text,
};
use purvey_agent::{CollectionTree, Issue, Service};
use purvey_odp::collection::Collection;
use std::{collections::HashSet, process::ExitCode};

pub(super) async fn show(service: &Service, progress: &Progress) -> Result<ExitCode, Failure> {
    let tree = service.hierarchy().await;
    let tree = tree.map_err(|error| fault::failure(&error))?;
    progress.aside(|| {
        for issue in tree.issues() {
            let (about, issue) = of_collection(&tree, issue);
            notes::issues(&about, &[issue]);
        }
        if tree.collections().is_empty() {
            say(format_args!("nothing found"));
        }
        output::write(lines(&tree)).map(|_| ExitCode::SUCCESS)
    })
}

/// The issue, and the identifier of the Collection that it is about; its pointer begins with the Collection's index.
fn of_collection(tree: &CollectionTree, issue: &Issue) -> (String, Issue) {
    let pointer = issue.pointer.trim_start_matches('/');
    let (index, rest) = pointer.split_at(pointer.find('/').unwrap_or(pointer.len()));
    let index = index.parse::<usize>().ok();
    match index.and_then(|index| tree.collections().get(index)) {
        Some(collection) => {
            let pointer = rest.to_owned();
            let issue = issue.clone();
            (collection.id().to_string(), Issue { pointer, ..issue })
        }
        None => ("hierarchy".to_owned(), issue.clone()),
    }
}

/// Each Collection below each of its parents; what is below it, the first time only.
fn lines(tree: &CollectionTree) -> String {
    let mut out = String::new();
    let mut seen = HashSet::new();
    let mut left: Vec<(usize, &Collection)> = level(0, tree.roots());
    while let Some((depth, collection)) = left.pop() {
        let id = collection.id();
        let children = tree.children(id);
        let again = !seen.insert(id) && !children.is_empty();
        out.push_str(&"  ".repeat(depth));
        out.push_str(&format!("{id}  {}", text::line(collection.name().as_str())));
        out.push_str(if again { "  (see above)\n" } else { "\n" });
        if !again {
            left.extend(level(depth + 1, children));
        }
    }
    out
}

/// The next one last, since that is where it is taken from.
fn level(depth: usize, collections: Vec<&Collection>) -> Vec<(usize, &Collection)> {
    collections
        .into_iter()
        .rev()
        .map(|collection| (depth, collection))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use purvey_odp::offering::Placement;
    use serde_json::json;

    fn collection(id: &str, parents: &[&str]) -> Collection {
        let mut wire = json!({"id": id, "name": id.to_uppercase()});
        if !parents.is_empty() {
            wire["parent_ids"] = json!(parents);
        }
        Collection::validate(wire, Placement::Embedded).unwrap()
    }

    #[test]
    fn every_collection_is_below_each_parent_and_its_children_once() {
        let tree = CollectionTree::new(vec![
            collection("a", &[]),
            collection("b", &[]),
            collection("c", &["a", "b"]),
            collection("d", &["c"]),
            collection("e", &["b"]),
        ]);
        assert_eq!(
            lines(&tree),
            "a  A\n  c  C\n    d  D\nb  B\n  c  C  (see above)\n  e  E\n"
        );
    }
}
