//! OpenAPI 3.1 documents, as far as an Action needs them: one operation, its parameters and its body (ODP §4).

use crate::issue::{Fault, IssueCode};
use crate::schema::{Schema, percent_decoded};
use crate::supporting::{Supporting, undecodable};
use crate::transport::Class;
use http::Method;
use purvey_odp::decode::{Bounds, decode};
use purvey_odp::pointer::push_token;
use serde_json::{Map, Value};
use std::sync::Arc;
use url::Url;

/// Local references in a row that are followed.
const REFERENCES: usize = 8;
/// The members of a path item that are operations. TRACE is one too, but none to invoke.
const METHODS: [&str; 8] = [
    "get", "put", "post", "delete", "options", "head", "patch", "trace",
];
/// The dialects that schemas of an OpenAPI 3.1 document can be read in.
const DIALECTS: [&str; 2] = [
    "https://spec.openapis.org/oas/3.1/dialect/base",
    "https://json-schema.org/draft/2020-12/schema",
];

/// A document, and where it was found.
#[derive(Debug)]
pub(super) struct Document {
    url: Url,
    value: Value,
}

/// One operation of a document.
#[derive(Clone, Debug)]
pub(super) struct OpenApi {
    document: Arc<Document>,
    pub(super) method: Method,
    /// The server, without a trailing slash, and the path with `{name}` for its parameters.
    pub(super) url: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    /// Media types of a successful answer; empty when nothing is said.
    pub(super) accepts: Vec<String>,
}

/// A parameter of an operation.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) location: Location,
    pub(super) required: bool,
    /// Whether each element of an array is a parameter of its own (in a query).
    pub(super) explode: bool,
    /// The JSON Pointer of its schema.
    pub(super) schema: Option<String>,
}

/// Where a parameter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Location {
    Path,
    Query,
    Header,
    /// In a form that is not written here: a cookie, a deep object, a media type.
    Elsewhere,
}

/// The body of an operation.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub(super) required: bool,
    /// Media type, and the JSON Pointer of its schema.
    pub(super) contents: Vec<(String, Option<String>)>,
}

/// Why an Action cannot be used whose operation is in no document.
pub(super) fn nowhere() -> Fault {
    Fault::new(
        IssueCode::OperationMissing,
        "Neither the Action nor the Service names an OpenAPI document.",
    )
}

fn invalid(message: impl Into<String>) -> Fault {
    Fault::new(IssueCode::Invalid, message)
}

impl Document {
    /// Reads the document at `url`: JSON of at most 1,048,576 bytes and 32 nested containers, of OpenAPI 3.1.
    pub(super) async fn fetch(supporting: &Supporting<'_>, url: Url) -> Result<Self, Fault> {
        let fetched = supporting.fetch(Class::OpenApi, url).await?;
        let value = decode(&fetched.body, Bounds::OPENAPI)
            .map_err(|error| undecodable("OpenAPI document", &error))?;
        let version = value.get("openapi").and_then(Value::as_str);
        if !version.is_some_and(is_3_1) {
            return Err(Fault::new(
                IssueCode::Unsupported,
                "The OpenAPI document is not of version 3.1.",
            ));
        }
        let mut url = fetched.url;
        url.set_fragment(None);
        Ok(Self { url, value })
    }

    fn root(&self) -> Result<&Map<String, Value>, Fault> {
        let root = self.value.as_object();
        root.ok_or_else(|| invalid("The OpenAPI document is not an object."))
    }

    /// What stands at `pointer`, after the local references that lead on from there; and where that is.
    fn follow(&self, mut pointer: String) -> Result<(String, &Value), Fault> {
        for _ in 0..=REFERENCES {
            let missing = || invalid(format!("The OpenAPI document has nothing at {pointer}."));
            let value = self.value.pointer(&pointer).ok_or_else(missing)?;
            let Some(reference) = value.get("$ref") else {
                return Ok((pointer, value));
            };
            let target = reference.as_str().and_then(|text| text.strip_prefix('#'));
            pointer = target.and_then(percent_decoded).ok_or_else(|| {
                let message = "The OpenAPI document refers to another document.";
                Fault::new(IssueCode::Unsupported, message)
            })?;
        }
        Err(invalid("The OpenAPI document refers in a circle."))
    }

    /// The pointers of every path item that has operations: path, pointer; webhooks have no path.
    fn path_items(&self) -> impl Iterator<Item = (Option<&str>, String)> {
        let members = |name: &'static str| {
            let map = self.value.get(name).and_then(Value::as_object);
            map.into_iter().flat_map(Map::keys).map(move |key| {
                let mut pointer = format!("/{name}");
                push_token(&mut pointer, key);
                (name, key.as_str(), pointer)
            })
        };
        members("paths")
            .chain(members("webhooks"))
            .map(|(name, key, pointer)| ((name == "paths").then_some(key), pointer))
    }

    /// The pointers of the schemas that have names.
    fn named_schemas(&self) -> Vec<String> {
        let schemas = self.value.pointer("/components/schemas");
        let names = schemas.and_then(Value::as_object).into_iter().flatten();
        names
            .map(|(name, _)| {
                let mut pointer = "/components/schemas".to_owned();
                push_token(&mut pointer, name);
                pointer
            })
            .collect()
    }
}

/// Whether a version is 3.1 with any patch.
fn is_3_1(version: &str) -> bool {
    let patch = version.strip_prefix("3.1.");
    patch.is_some_and(|patch| patch.starts_with(|c: char| c.is_ascii_digit()))
}

/// An operation that bears the wanted id: its path, where its path item and itself are, its method.
struct Found<'d> {
    path: Option<&'d str>,
    item: String,
    pointer: String,
    method: &'static str,
}

impl OpenApi {
    /// The one operation of `document` whose `operationId` is `id`.
    pub(super) fn find(document: &Arc<Document>, id: &str) -> Result<Self, Fault> {
        let mut found = Vec::new();
        for (path, pointer) in document.path_items() {
            // A path item that leads elsewhere cannot be seen, and hurts only those who look for it.
            let Ok((item, value)) = document.follow(pointer) else {
                continue;
            };
            for method in METHODS {
                let operation = value.get(method);
                let own = operation.and_then(|operation| operation.get("operationId"));
                if own.and_then(Value::as_str) == Some(id) {
                    found.push(Found {
                        path,
                        pointer: format!("{item}/{method}"),
                        item: item.clone(),
                        method,
                    });
                }
            }
        }
        let missing = || {
            let message = "The OpenAPI document has no operation of this id that has a path.";
            Fault::new(IssueCode::OperationMissing, message)
        };
        if found.len() > 1 {
            return Err(Fault::new(
                IssueCode::OperationAmbiguous,
                "The OpenAPI document has several operations of this id.",
            ));
        }
        let found = found.pop().ok_or_else(missing)?;
        let path = found.path.ok_or_else(missing)?;
        Self::read(document, path, &found)
    }

    fn read(document: &Arc<Document>, path: &str, found: &Found<'_>) -> Result<Self, Fault> {
        let (_, operation) = document.follow(found.pointer.clone())?;
        let method = found.method.to_ascii_uppercase();
        let method = Method::from_bytes(method.as_bytes())
            .ok()
            .filter(|method| *method != Method::TRACE);
        let method = method.ok_or_else(|| {
            let message = "The method of the operation cannot be invoked.";
            Fault::new(IssueCode::Unsupported, message)
        })?;
        let mut parameters = Vec::new();
        for owner in [&found.item, &found.pointer] {
            read_parameters(document, owner, &mut parameters)?;
        }
        check_path(path, &parameters)?;
        Ok(Self {
            method,
            url: format!("{}{path}", server(document, found)?),
            parameters,
            body: read_body(document, &found.pointer)?,
            accepts: accepted(document, operation),
            document: document.clone(),
        })
    }

    pub(super) fn content_types(&self) -> impl Iterator<Item = &str> {
        let contents = self.body.iter().flat_map(|body| &body.contents);
        contents.map(|(media, _)| media.as_str())
    }

    /// The types that the schema at `pointer` names, and where the schema of its items is; none where it names none.
    pub(super) fn types(&self, pointer: &str) -> (Vec<&str>, String) {
        let Ok((pointer, schema)) = self.document.follow(pointer.to_owned()) else {
            return (Vec::new(), String::new());
        };
        let types = match schema.get("type") {
            Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect(),
            other => other.and_then(Value::as_str).into_iter().collect(),
        };
        (types, format!("{pointer}/items"))
    }

    /// The schema at `pointer` of the document.
    pub(super) fn schema(&self, pointer: &str) -> Result<Schema, Fault> {
        let root = self.document.root()?;
        let dialect = root.get("jsonSchemaDialect");
        if dialect.is_some_and(|dialect| !DIALECTS.iter().any(|known| dialect == known)) {
            return Err(Fault::new(
                IssueCode::Unsupported,
                "The schemas of the OpenAPI document are of a dialect that is not supported.",
            ));
        }
        Schema::embedded(
            root,
            &self.document.url,
            pointer,
            self.document.named_schemas(),
        )
    }
}

/// Adds the parameters of a path item or an operation; one of the same name and place replaces an earlier one.
fn read_parameters(
    document: &Document,
    owner: &str,
    parameters: &mut Vec<Parameter>,
) -> Result<(), Fault> {
    let at = format!("{owner}/parameters");
    let list = document.value.pointer(&at).and_then(Value::as_array);
    for i in 0..list.map_or(0, Vec::len) {
        let (own, value) = document.follow(format!("{at}/{i}"))?;
        let text = |name| value.get(name).and_then(Value::as_str);
        let (Some(name), Some(place)) = (text("name"), text("in")) else {
            return Err(invalid("A parameter has no name or place."));
        };
        let style = text("style");
        let location = match (place, style) {
            _ if value.get("content").is_some() => Location::Elsewhere,
            ("path", None | Some("simple")) => Location::Path,
            ("query", None | Some("form")) => Location::Query,
            ("header", None | Some("simple")) => Location::Header,
            _ => Location::Elsewhere,
        };
        let flag = |name| value.get(name).and_then(Value::as_bool);
        let parameter = Parameter {
            name: name.to_owned(),
            location,
            required: flag("required").unwrap_or(false),
            explode: flag("explode").unwrap_or(true),
            schema: value.get("schema").map(|_| format!("{own}/schema")),
        };
        if parameter.required && location == Location::Elsewhere {
            return Err(Fault::new(
                IssueCode::Unsupported,
                "The operation requires a parameter in a form that is not supported.",
            ));
        }
        parameters.retain(|earlier| earlier.name != name || earlier.location != location);
        parameters.push(parameter);
    }
    Ok(())
}

/// Every `{name}` of a path needs a parameter, and the other way round.
fn check_path(path: &str, parameters: &[Parameter]) -> Result<(), Fault> {
    let malformed = || invalid("The path of the operation does not fit its parameters.");
    let mut rest = path;
    let mut names = Vec::new();
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or_else(malformed)?;
        if before.contains('}') || name.is_empty() {
            return Err(malformed());
        }
        names.push(name);
        rest = after;
    }
    let of_path = |parameter: &&Parameter| parameter.location == Location::Path;
    let mut own = parameters.iter().filter(of_path);
    let fits = path.starts_with('/')
        && !rest.contains('}')
        && own.clone().count() == names.len()
        && own.all(|parameter| names.contains(&parameter.name.as_str()));
    fits.then_some(()).ok_or_else(malformed)
}

/// The first server of the operation, its path item or the document, without a trailing slash. A document without any means
/// the root of where it was found.
fn server(document: &Document, found: &Found<'_>) -> Result<String, Fault> {
    let owners = [&*found.pointer, &*found.item, ""];
    let server = owners
        .into_iter()
        .find_map(|owner| document.value.pointer(&format!("{owner}/servers/0")));
    let mut text = match server {
        None => "/".to_owned(),
        Some(server) => server
            .get("url")
            .and_then(Value::as_str)
            .ok_or_else(|| invalid("A server of the OpenAPI document has no url."))?
            .to_owned(),
    };
    let variables = server.and_then(|server| server.get("variables"));
    for (name, variable) in variables.and_then(Value::as_object).into_iter().flatten() {
        if let Some(default) = variable.get("default").and_then(Value::as_str) {
            text = text.replace(&format!("{{{name}}}"), default);
        }
    }
    let url = document.url.join(&text).ok();
    let url = url.filter(|url| url.query().is_none() && url.fragment().is_none());
    let url = url.filter(|_| !text.contains(['{', '}']));
    let url = url.ok_or_else(|| invalid("A server of the OpenAPI document has no usable url."))?;
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn read_body(document: &Document, operation: &str) -> Result<Option<Body>, Fault> {
    let at = format!("{operation}/requestBody");
    if document.value.pointer(&at).is_none() {
        return Ok(None);
    }
    let (at, body) = document.follow(at)?;
    let contents = body.get("content").and_then(Value::as_object);
    let contents = contents.into_iter().flatten().map(|(media, content)| {
        let mut pointer = format!("{at}/content");
        push_token(&mut pointer, media);
        let schema = content.get("schema").map(|_| format!("{pointer}/schema"));
        (media.clone(), schema)
    });
    Ok(Some(Body {
        required: body.get("required") == Some(&Value::Bool(true)),
        contents: contents.collect(),
    }))
}

/// The media types of the answers that mean success.
fn accepted(document: &Document, operation: &Value) -> Vec<String> {
    let responses = operation.get("responses").and_then(Value::as_object);
    let mut accepted = Vec::new();
    for (status, response) in responses.into_iter().flatten() {
        let reference = response.get("$ref").and_then(Value::as_str);
        let target = reference.and_then(|text| percent_decoded(text.strip_prefix('#')?));
        let response = match target.map(|pointer| document.follow(pointer)) {
            None => response,
            Some(Ok((_, response))) => response,
            Some(Err(_)) => continue,
        };
        let content = response.get("content").and_then(Value::as_object);
        if status.starts_with('2') {
            accepted.extend(content.into_iter().flat_map(Map::keys).cloned());
        }
    }
    accepted
}
