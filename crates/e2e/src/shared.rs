//! Test material that lies beside the project and is no part of it: the protocol's published schemas and examples, a large
//! table.

use std::path::{Path, PathBuf};

/// `relative` below the directory `shared` that lies beside the project, or beside a directory around it.
///
/// `None` when there is none: the test says so and ends. In CI (`CI=true`) that is a failure instead, because there the
/// material is always at hand and a test that looks at nothing must not pass.
#[must_use]
pub fn shared(relative: &str) -> Option<PathBuf> {
    let found = project()
        .ancestors()
        .skip(1)
        .map(|directory| directory.join("shared").join(relative))
        .find(|path| path.exists());
    if found.is_none() {
        assert!(
            std::env::var_os("CI").is_none_or(|ci| ci != "true"),
            "../shared/{relative} is absent"
        );
        eprintln!("skipped: ../shared is absent ({relative})");
    }
    found
}

/// The project's root directory.
#[must_use]
pub fn project() -> &'static Path {
    // crates/e2e
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("a workspace around this crate")
}
