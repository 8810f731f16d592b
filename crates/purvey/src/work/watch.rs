//! Following a run live.

use super::{connect::Connect, fault, show};
use crate::{
    failure::{Failure, say},
    output, text,
};
use futures_util::StreamExt;
use serde_json::Value;
use std::{pin::pin, process::ExitCode};

/// Whether a run has ended.
pub(super) fn ended(run: &Value) -> bool {
    matches!(
        run["status"].as_str(),
        Some("succeeded" | "failed" | "cancelled")
    )
}

/// What a command that waited for this run exits with.
pub(super) fn exit(run: &Value) -> ExitCode {
    match run["status"].as_str() {
        Some("succeeded") => ExitCode::SUCCESS,
        _ => ExitCode::from(fault::RUN_FAILED),
    }
}

/// Shows each event as it comes; the run itself at the end.
pub(super) async fn run(path: &str, connect: &Connect) -> Result<ExitCode, Failure> {
    let client = connect.client()?;
    let mut events = pin!(client.events(&format!("{path}/events")));
    while let Some(event) = events.next().await {
        let event = event.map_err(|error| fault::failure(&error))?;
        let data: Value = serde_json::from_str(&event.data)
            .map_err(|error| Failure::new(format_args!("an event cannot be read: {error}")))?;
        if connect.json {
            let line = serde_json::json!({ "event": event.kind, "data": data });
            if output::write(output::json_line(&line))?.is_break() {
                return Ok(ExitCode::SUCCESS);
            }
        } else {
            say(format_args!("{}", text::line(&told(&event.kind, &data))));
        }
    }
    let run = connect.get(path).await?;
    if !connect.json {
        show::one(&run, false)?;
    }
    Ok(exit(&run))
}

/// An event in a line.
fn told(kind: &str, data: &Value) -> String {
    let member = |name: &str| show::cell(&data[name]);
    match kind {
        "status" => {
            let mut line = format!("status {}", member("status"));
            let waiting = &data["waiting_for"];
            if waiting.is_object() {
                line += &format!(
                    ", waits for {}, position {}",
                    show::cell(&waiting["reason"]),
                    show::cell(&waiting["position"])
                );
            }
            let resets = &data["limit_detail"]["resets_at"];
            if resets.is_string() {
                line += &format!(", goes on at {}", show::cell(resets));
            }
            let code = member("error_code");
            if !code.is_empty() {
                line += &format!(", {code}: {}", member("error_detail"));
            }
            line
        }
        "step" => format!(
            "step {} {} {} {}, {} cents",
            member("seq"),
            member("kind"),
            member("name"),
            member("state"),
            member("cost_cents")
        ),
        "output" => format!("output {}", data["output"]),
        other => format!("{other} {data}"),
    }
}
