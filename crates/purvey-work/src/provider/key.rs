//! A key that cannot be shown.

use std::fmt;

/// A provider's API key. It can be sent, and neither printed nor serialised.
#[derive(Clone)]
pub struct ApiKey(String);

impl ApiKey {
    /// Takes the key: visible ASCII, at least one character.
    #[must_use]
    pub fn new(key: &str) -> Option<Self> {
        let visible = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
        visible.then(|| Self(key.to_owned()))
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_does_not_print_itself() {
        let key = ApiKey::new("sk-secret").unwrap();
        assert_eq!(
            format!("{key:?} {:?}", Some(&key)),
            "ApiKey(…) Some(ApiKey(…))"
        );
        assert!(ApiKey::new("").is_none());
        assert!(ApiKey::new("two words").is_none());
        assert!(ApiKey::new("line\n").is_none());
    }
}
