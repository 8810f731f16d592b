//! `purvey invoke`

use super::{
    connect::Connect,
    fault::{self, NOT_THERE, Typed},
    notes,
    row::joined,
};
use crate::{
    failure::{FAILED, Failure, say},
    output, text,
};
use http::{HeaderName, HeaderValue};
use purvey_agent::{Answer, EnrichedOffering, Input, ResolvedAction};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io::{IsTerminal, Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Fields of an answer that say what it is and what comes next.
const SHOWN_FIELDS: [&str; 7] = [
    "content-type",
    "content-language",
    "content-disposition",
    "location",
    "link",
    "retry-after",
    "x-request-id",
];
/// Most bytes of an input.
const INPUT_BYTES: u64 = 16 << 20;

/// What to do, and with what.
#[derive(Debug, clap::Args)]
pub(crate) struct Invoke {
    /// The Service
    #[arg(value_name = "ORIGIN")]
    origin: String,
    /// Identifier of the Offering
    #[arg(value_name = "ID")]
    id: String,
    /// Identifier of the Action, as `purvey actions` lists it
    #[arg(value_name = "ACTION")]
    action: String,
    /// File with the body of the request; - is standard input
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Media type of the input [default: the Action's first, or application/json]
    #[arg(long, value_name = "TYPE", requires = "input")]
    content_type: Option<String>,
    /// A parameter that the Action's OpenAPI document defines; the same name again makes a list
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    param: Vec<(String, String)>,
    /// A further field of the request, such as Idempotency-Key
    #[arg(long, value_name = "NAME: VALUE", value_parser = field)]
    header: Vec<(HeaderName, HeaderValue)>,
    /// Do not ask whether to do it
    #[arg(long)]
    yes: bool,
    /// Write the answer's body to this file
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    output: Option<PathBuf>,
    /// Print the answer as JSON: status, fields, body
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: Connect,
}

fn pair(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("a parameter is NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn field(text: &str) -> Result<(HeaderName, HeaderValue), &'static str> {
    const WRONG: &str = "a field is NAME: VALUE in printable ASCII characters";
    let (name, value) = text.split_once(':').ok_or(WRONG)?;
    let name = HeaderName::try_from(name.trim()).map_err(|_| WRONG)?;
    let value = HeaderValue::try_from(value.trim()).map_err(|_| WRONG)?;
    Ok((name, value))
}

impl Invoke {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        let body = self.body()?;
        let (service, progress) = self.connect.service(&self.origin).await?;
        let found = service.get_offering(&self.id).await;
        let found = found.map_err(|error| fault::failure(&error))?;
        drop(progress);
        let action = self.action(&found)?;
        let size = body.as_ref().map(Vec::len);
        let input = self.request(action, body);
        if !self.yes && !self.can_ask() {
            return Err(Failure::usage("nobody can be asked whether to do it")
                .hint("say that you mean it with --yes"));
        }
        if !self.yes && !confirmed(action, size).await? {
            say(format_args!("nothing was sent"));
            return Ok(ExitCode::from(FAILED));
        }
        let answer = service.invoke(action, input).await;
        let typed = Typed {
            action: true,
            ..Typed::default()
        };
        let answer = answer.map_err(|error| fault::failure_of(&error, &typed))?;
        self.show(&answer)
    }

    /// Whether the question and its answer have a terminal.
    fn can_ask(&self) -> bool {
        let input_is_body = self.input.as_deref().is_some_and(is_standard_input);
        !input_is_body && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }

    fn body(&self) -> Result<Option<Vec<u8>>, Failure> {
        let Some(path) = &self.input else {
            return Ok(None);
        };
        let read = |from: &mut dyn Read| {
            let mut bytes = Vec::new();
            from.take(INPUT_BYTES + 1)
                .read_to_end(&mut bytes)
                .map(|_| bytes)
        };
        let bytes = match is_standard_input(path) {
            true => read(&mut std::io::stdin().lock()),
            false => std::fs::File::open(path).and_then(|mut file| read(&mut file)),
        };
        let named = |why: &dyn std::fmt::Display| {
            Failure::usage(format_args!("--input {}: {why}", path.display()))
        };
        let bytes = bytes.map_err(|error| named(&error))?;
        match bytes.len() as u64 > INPUT_BYTES {
            true => Err(named(&"is larger than 16 MiB")),
            false => Ok(Some(bytes)),
        }
    }

    /// The Action that is meant, if it can be invoked.
    fn action<'a>(&self, found: &'a EnrichedOffering) -> Result<&'a ResolvedAction, Failure> {
        if let Some(action) = found.action(&self.action) {
            return Ok(action);
        }
        notes::issues(&self.id, &found.issues);
        let failure = Failure::new(text::line(&format!(
            "{} has no action {} that can be invoked",
            self.id, self.action
        )));
        let ids = joined(
            found
                .actions
                .iter()
                .map(|action| action.action().id.as_str()),
        );
        Err(match ids.is_empty() {
            true => failure,
            false => failure.hint(format_args!("it has {}", text::line(&ids))),
        }
        .exit_code(NOT_THERE))
    }

    fn request(&self, action: &ResolvedAction, body: Option<Vec<u8>>) -> Input {
        let mut input = Input::new();
        if let Some(bytes) = body {
            let types = action.content_types();
            let own = types.first().copied().unwrap_or("application/json");
            input = input.bytes(self.content_type.as_deref().unwrap_or(own), bytes);
        }
        for (name, value) in self.parameters() {
            input = input.parameter(name, value);
        }
        for (name, value) in &self.header {
            input = input.header(name.clone(), value.clone());
        }
        input
    }

    /// The parameters; those that are there several times are lists.
    fn parameters(&self) -> BTreeMap<&str, Value> {
        let mut parameters = BTreeMap::new();
        for (name, value) in &self.param {
            let value = Value::from(value.as_str());
            match parameters.get_mut(name.as_str()) {
                None => {
                    parameters.insert(name.as_str(), value);
                }
                Some(Value::Array(values)) => values.push(value),
                Some(first) => *first = json!([first.take(), value]),
            }
        }
        parameters
    }

    fn show(&self, answer: &Answer) -> Result<ExitCode, Failure> {
        if self.json {
            return output::write(output::json_line(&document(answer))).map(|_| ExitCode::SUCCESS);
        }
        say(format_args!("{}", answer.status));
        for (name, value) in shown_fields(answer) {
            say(format_args!("{name}: {}", text::line(&value)));
        }
        if let Some(path) = &self.output {
            let written = std::fs::write(path, &answer.body);
            written.map_err(|error| {
                Failure::new(format_args!("--output {}: {error}", path.display()))
            })?;
            say(format_args!(
                "{} bytes in {}",
                answer.body.len(),
                path.display()
            ));
            return Ok(ExitCode::SUCCESS);
        }
        if !std::io::stdout().is_terminal() {
            return output::write(&answer.body).map(|_| ExitCode::SUCCESS);
        }
        match std::str::from_utf8(&answer.body) {
            Ok("") => Ok(ExitCode::SUCCESS),
            Ok(body) => output::write(text::lines(body) + "\n").map(|_| ExitCode::SUCCESS),
            Err(_) => {
                say(format_args!(
                    "{} bytes that are no text: --output FILE keeps them",
                    answer.body.len()
                ));
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Shows what would be sent, and asks.
async fn confirmed(action: &ResolvedAction, size: Option<usize>) -> Result<bool, Failure> {
    let body = size.map_or_else(String::new, |size| format!(" with {size} bytes"));
    let request = format!("{} {}{body}", action.method(), action.url());
    say(format_args!("{}", text::line(&request)));
    if let Some(description) = &action.action().description {
        say(format_args!("{}", text::line(description.as_str())));
    }
    let answer = tokio::task::spawn_blocking(|| {
        let mut stderr = std::io::stderr().lock();
        write!(stderr, "Send this? [y/N] ").and_then(|()| stderr.flush())?;
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    let answer = answer.await.map_err(Failure::new)?.map_err(Failure::new)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// The fields worth showing; bytes that are no text are replaced.
fn shown_fields(answer: &Answer) -> impl Iterator<Item = (&'static str, String)> {
    SHOWN_FIELDS.into_iter().flat_map(|name| {
        let values = answer.headers.get_all(name).iter();
        values.map(move |value| (name, String::from_utf8_lossy(value.as_bytes()).into_owned()))
    })
}

/// The answer as JSON: a body of JSON as it is, other text as a string, and of anything else its size alone.
fn document(answer: &Answer) -> Value {
    let mut fields: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in &answer.headers {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        fields.entry(name.to_string()).or_default().push(value);
    }
    let body = match std::str::from_utf8(&answer.body) {
        Ok(body) => serde_json::from_str(body).unwrap_or_else(|_| Value::from(body)),
        Err(_) => Value::Null,
    };
    json!({
        "status": answer.status.as_u16(),
        "headers": fields,
        "body": body,
        "bytes": answer.body.len(),
    })
}
