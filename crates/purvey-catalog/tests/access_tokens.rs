//! Tokens: made once, kept as digests, refused when revoked, expired or unknown.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod catalog_support;

use catalog_support::{options, pointers};
use purvey_catalog::catalog::{Catalog, Options};
use purvey_catalog::clock::ManualClock;
use purvey_catalog::tokens::{NewToken, Tokens};
use purvey_catalog::{Access, Error};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn open(dir: &Path) -> Tokens {
    Tokens::open(dir, &options()).unwrap()
}

fn new(name: Option<&str>, audiences: &[&str]) -> NewToken {
    NewToken {
        name: name.map(str::to_owned),
        audiences: audiences.iter().map(|name| (*name).to_owned()).collect(),
        lifetime: None,
    }
}

#[test]
fn a_token_lets_its_bearer_in_until_it_is_revoked() {
    let dir = tempfile::tempdir().unwrap();
    // Two processes, say: one serves, the other makes and revokes.
    let catalog = Catalog::open(dir.path(), options()).unwrap();
    let tokens = open(dir.path());
    assert_eq!(catalog.authenticate("pvc_nothing").unwrap(), None);
    let staff = tokens.create(new(Some("Jo"), &["staff", "trade"])).unwrap();
    let trade = tokens.create(new(None, &["trade"])).unwrap();
    // The prefix, and 32 bytes in base64url.
    assert_eq!(staff.secret.len(), 4 + 43);
    assert!(staff.secret.starts_with("pvc_"));
    assert_ne!(staff.secret, trade.secret);
    let access =
        |names: &[&str]| Some(Access::new(names.iter().map(|name| (*name).to_owned())).unwrap());
    let whose = |secret: &str| catalog.authenticate(secret).unwrap();
    assert_eq!(whose(&staff.secret), access(&["staff", "trade"]));
    assert_eq!(whose(&trade.secret), access(&["trade"]));
    let mut cut = staff.secret.clone();
    cut.pop();
    for wrong in ["", "pvc_", cut.as_str(), staff.token.id.as_str(), "Jo"] {
        assert_eq!(whose(wrong), None, "{wrong}");
    }
    let listed = tokens.list().unwrap();
    assert_eq!(listed, [staff.token.clone(), trade.token.clone()]);
    assert_eq!(listed[0].name.as_deref(), Some("Jo"));
    assert!(staff.secret.ends_with(&listed[0].ending));

    assert_eq!(tokens.revoke("Jo").unwrap(), staff.token);
    assert_eq!(whose(&staff.secret), None);
    assert_eq!(whose(&trade.secret), access(&["trade"]));
    assert!(matches!(tokens.revoke("Jo"), Err(Error::NotFound)));
    tokens.revoke(&trade.token.id).unwrap();
    assert_eq!(whose(&trade.secret), None);
    let third = tokens.create(new(None, &["staff"])).unwrap();
    tokens.revoke(&third.secret).unwrap();
    assert_eq!(tokens.list().unwrap(), []);
}

#[test]
fn the_file_holds_no_secret_and_is_its_owners_alone() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = open(dir.path());
    let made = tokens.create(new(Some("Jo"), &["staff"])).unwrap();
    let path = dir.path().join("keys/tokens");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
    assert!(text.contains("Jo"));
    assert!(!text.contains(made.secret.trim_start_matches("pvc_")));
    assert!(!format!("{made:?} {tokens:?}").contains(&made.secret));
    // Damage lets nobody in, and is said.
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let damaged = open(dir.path());
    assert!(matches!(
        damaged.authenticate(&made.secret),
        Err(Error::Corrupt { .. })
    ));
    assert!(matches!(damaged.list(), Err(Error::Corrupt { .. })));
}

#[test]
fn a_token_works_for_its_lifetime() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(1_000));
    let options = Options {
        clock: clock.clone(),
        ..options()
    };
    let tokens = Tokens::open(dir.path(), &options).unwrap();
    let made = tokens.create(NewToken {
        lifetime: Some(Duration::from_secs(60)),
        ..new(None, &["staff"])
    });
    let made = made.unwrap();
    assert_eq!(
        (made.token.created, made.token.expires),
        (1_000, Some(1_060))
    );
    clock.advance(59);
    assert!(tokens.authenticate(&made.secret).unwrap().is_some());
    clock.advance(1);
    assert_eq!(tokens.authenticate(&made.secret).unwrap(), None);
    assert_eq!(tokens.list().unwrap(), [made.token]);
}

#[test]
fn what_a_token_cannot_be_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = open(dir.path());
    tokens.create(new(Some("Jo"), &["staff"])).unwrap();
    let faults = |token: NewToken| pointers(&tokens.create(token).unwrap_err());
    assert_eq!(faults(new(None, &[])), ["/audiences"]);
    assert_eq!(faults(new(None, &["a b"])), ["/audiences/0"]);
    assert_eq!(faults(new(Some("Jo"), &["staff"])), ["/name"]);
    assert_eq!(faults(new(Some(" "), &["staff"])), ["/name"]);
    assert_eq!(faults(new(Some("a\u{1b}[31m"), &["staff"])), ["/name"]);
    assert_eq!(faults(new(Some(&"x".repeat(129)), &["staff"])), ["/name"]);
    assert_eq!(tokens.list().unwrap().len(), 1);
}
