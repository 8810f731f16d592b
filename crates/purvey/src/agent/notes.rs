//! What is said beside the data: on standard error.

use crate::{failure::say, text};
use purvey_agent::Issue;

/// Says what could not be used; the rest could.
pub(super) fn issues(about: &str, issues: &[Issue]) {
    for issue in issues {
        say(format_args!("{}", issue_line(about, issue)));
    }
}

fn issue_line(about: &str, issue: &Issue) -> String {
    let place = match issue.pointer.as_str() {
        "" => about.to_owned(),
        pointer => format!("{about} {pointer}"),
    };
    let cause = issue.cause.as_ref().and_then(|error| error.url());
    let cause = cause.map_or_else(String::new, |url| format!(", {url}"));
    let line = format!("{place}: {} ({}{cause})", issue.message, issue.code);
    format!("note: {}", text::line(&line))
}

/// Issues as JSON.
pub(super) fn issues_json(issues: &[Issue]) -> serde_json::Value {
    let one = |issue: &Issue| {
        serde_json::json!({
            "pointer": issue.pointer,
            "code": issue.code.as_str(),
            "message": issue.message,
        })
    };
    issues.iter().map(one).collect()
}
