//! A small Service written for these tests alone: it keeps every rule that the check looks at, until a fault is put in.

// Two programs have this module, each at its own place.
#[path = "shelf.rs"]
mod shelf;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use shelf::{collections, document, find, ids, in_collection, offerings, schema, sorts, terse};

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn target(&self) -> String {
        let pairs: Vec<_> = self.query.iter().map(|(k, v)| format!("{k}={v}")).collect();
        match pairs.is_empty() {
            true => self.path.clone(),
            false => format!("{}?{}", self.path, pairs.join("&")),
        }
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The body as JSON; null when it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// A response as it is about to go.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
    /// Bytes to send instead of `body`.
    pub(crate) raw: Option<Vec<u8>>,
}

impl Response {
    fn document(body: Value) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".to_owned(), "application/odp+json".to_owned())],
            body,
            raw: None,
        }
    }

    pub(crate) fn problem(status: u16, code: &str, param: Option<(&str, &str)>) -> Self {
        let mut body = json!({
            "type": format!("https://offeringprotocol.org/problems/{}", code.to_lowercase().replace('_', "-")),
            "title": "No", "status": status, "code": code,
        });
        if let Some((place, name)) = param {
            body["invalid_params"] = json!([{"in": place, "name": name, "reason": "Is wrong."}]);
        }
        Self {
            status,
            headers: vec![(
                "content-type".to_owned(),
                "application/problem+json".to_owned(),
            )],
            body,
            raw: None,
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.unset(name);
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn unset(&mut self, name: &str) {
        self.headers.retain(|(key, _)| key != name);
    }
}

/// What a fault does to a response that was right.
pub(crate) type Fault = Box<dyn Fn(&Request, &mut Response) + Send + Sync>;

struct Service {
    fault: Fault,
    sequences: Mutex<HashMap<String, Sequence>>,
}

#[derive(Clone, Hash)]
struct Sequence {
    path: String,
    ids: Vec<String>,
    limit: usize,
    full: bool,
}

/// Starts the Service with a fault; gives its origin. It runs until the test process ends.
pub(crate) fn start(fault: Fault) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let service = Arc::new(Service {
        fault,
        sequences: Mutex::default(),
    });
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let service = Arc::clone(&service);
            std::thread::spawn(move || service.serve(stream));
        }
    });
    origin
}

fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 8192];
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        match stream.read(&mut buffer).ok()? {
            0 => return None,
            n => bytes.extend_from_slice(&buffer[..n]),
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?);
    let headers: HashMap<_, _> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers
        .get("content-length")
        .map_or(0, |n| n.parse().unwrap());
    let mut body = bytes[end + 4..].to_vec();
    while body.len() < length {
        match stream.read(&mut buffer).ok()? {
            0 => return None,
            n => body.extend_from_slice(&buffer[..n]),
        }
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = query.split('&').filter(|pair| !pair.is_empty());
    Some(Request {
        method,
        path: path.to_owned(),
        query: query
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
        headers,
        body,
    })
}

impl Service {
    fn serve(&self, mut stream: TcpStream) {
        let Some(request) = read(&mut stream) else {
            return;
        };
        let mut response = self.answer(&request);
        (self.fault)(&request, &mut response);
        let body = response
            .raw
            .clone()
            .unwrap_or_else(|| response.body.to_string().into_bytes());
        let body = match response.status {
            304 => Vec::new(),
            _ => body,
        };
        let mut head = format!("HTTP/1.1 {} X\r\nconnection: close\r\n", response.status);
        for (name, value) in &response.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if response.status != 304 {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let _ = stream.write_all(head.as_bytes());
        if request.method != "HEAD" {
            let _ = stream.write_all(&body);
        }
    }

    /// The right answer, with all that belongs to its delivery.
    fn answer(&self, request: &Request) -> Response {
        let get = matches!(request.method.as_str(), "GET" | "HEAD");
        let search = request.path.ends_with("/search");
        let post = search && request.method == "POST";
        if !get && !post {
            let mut refused = Response::problem(405, "METHOD_NOT_ALLOWED", None);
            refused.set(
                "allow",
                if search {
                    "GET, HEAD, POST"
                } else {
                    "GET, HEAD"
                },
            );
            return refused;
        }
        let accept = request.header("accept");
        let supporting = request.path == "/thing.json";
        if !accept.contains("odp+json") && !accept.contains("*/*") && !supporting {
            return Response::problem(406, "NOT_ACCEPTABLE", None);
        }
        let mut response = match request.method.as_str() {
            "POST" => self.search(request),
            _ => self.get(request),
        };
        if response.status != 200 {
            return response;
        }
        let german = request.header("accept-language").starts_with("de");
        let language = if german { "de" } else { "en" };
        let mut hasher = DefaultHasher::new();
        (language, response.body.to_string()).hash(&mut hasher);
        let etag = format!("\"{:x}\"", hasher.finish());
        response.set("content-language", language);
        response.set("vary", "accept-language");
        response.set("access-control-allow-origin", "*");
        if request.method != "POST" {
            if request.header("if-none-match") == etag {
                response.status = 304;
            }
            response.set("etag", &etag);
        }
        response
    }

    fn get(&self, request: &Request) -> Response {
        let Ok(full) = representation(request) else {
            return Response::problem(400, "INVALID_REQUEST", Some(("query", "representation")));
        };
        if let Some(cursor) = request.parameter("cursor") {
            let (name, offset) = cursor.split_once('.').unwrap_or((cursor, ""));
            let sequence = self.sequences.lock().unwrap().get(name).cloned();
            return match (sequence, offset.parse()) {
                (Some(sequence), Ok(offset)) => self.page(name, &sequence, offset),
                _ => Response::problem(400, "INVALID_REQUEST", Some(("query", "cursor"))),
            };
        }
        let segments: Vec<_> = request.path.trim_start_matches('/').split('/').collect();
        match segments.as_slice() {
            [".well-known", "odp"] => Response::document(document()),
            ["thing.json"] => {
                let mut schema = Response::document(schema());
                schema.set("content-type", "application/schema+json");
                schema
            }
            ["odp", "sorts"] => Response::document(json!({"odp_version": "1.0", "items": sorts()})),
            ["odp", "collections"] => self.list(request, ids(&collections()), full),
            ["odp", "offerings"] => self.list(request, ids(&offerings()), full),
            ["odp", "collections", id, "offerings"] => {
                if find(&collections(), id).is_none() {
                    return Response::problem(404, "NOT_FOUND", None);
                }
                let members = offerings().into_iter().filter(|o| in_collection(o, id));
                self.list(request, ids(&members.collect::<Vec<_>>()), full)
            }
            ["odp", "collections" | "offerings", id] => {
                let all = if segments[1] == "offerings" {
                    offerings()
                } else {
                    collections()
                };
                let full = full || request.parameter("representation").is_none();
                match find(&all, id) {
                    Some(item) => {
                        let mut document = json!({"odp_version": "1.0"});
                        let shown = if full { item.clone() } else { terse(item) };
                        for (name, value) in shown.as_object().unwrap() {
                            document[name] = value.clone();
                        }
                        Response::document(document)
                    }
                    None => Response::problem(404, "NOT_FOUND", None),
                }
            }
            _ => Response::problem(404, "NOT_FOUND", None),
        }
    }

    fn list(&self, request: &Request, ids: Vec<String>, full: bool) -> Response {
        let limit = match request.parameter("limit").map(str::parse::<usize>) {
            None => 50,
            Some(Ok(limit)) if (1..=100).contains(&limit) => limit,
            Some(_) => return Response::problem(400, "INVALID_REQUEST", Some(("query", "limit"))),
        };
        let sequence = Sequence {
            path: request.path.clone(),
            ids,
            limit,
            full,
        };
        self.begin(sequence)
    }

    fn begin(&self, sequence: Sequence) -> Response {
        let mut hasher = DefaultHasher::new();
        sequence.hash(&mut hasher);
        let name = format!("{:016x}", hasher.finish());
        let page = self.page(&name, &sequence, 0);
        self.sequences.lock().unwrap().insert(name, sequence);
        page
    }

    fn page(&self, name: &str, sequence: &Sequence, offset: usize) -> Response {
        let all = match sequence.path.contains("offerings") {
            true => offerings(),
            false => collections(),
        };
        let of_page = sequence.ids.iter().skip(offset).take(sequence.limit);
        let items: Vec<_> = of_page
            .map(|id| find(&all, id).unwrap())
            .map(|item| {
                if sequence.full {
                    item.clone()
                } else {
                    terse(item)
                }
            })
            .collect();
        let mut page = json!({"odp_version": "1.0", "items": items});
        let next = offset + sequence.limit;
        if next < sequence.ids.len() {
            page["next"] = json!(format!("{}?cursor={name}.{next}", sequence.path));
        }
        Response::document(page)
    }

    fn search(&self, request: &Request) -> Response {
        let invalid = |name: &str| Response::problem(400, "INVALID_REQUEST", Some(("body", name)));
        let Ok(full) = representation(request) else {
            return Response::problem(400, "INVALID_REQUEST", Some(("query", "representation")));
        };
        if request.header("content-type") != "application/odp+json" {
            return Response::problem(415, "UNSUPPORTED_MEDIA_TYPE", None);
        }
        if request.body.len() > 65_536 {
            return Response::problem(413, "REQUEST_TOO_LARGE", None);
        }
        let text = String::from_utf8_lossy(&request.body);
        let twice = text.matches("\"query\":").count() > 1;
        let deep = text.contains(&"[".repeat(16));
        let body = request.json();
        if !body.is_object() || twice || deep {
            return invalid("");
        }
        if body["odp_version"] != "1.0" {
            return invalid("/odp_version");
        }
        if !body["limit"].is_null() && !(1..=100).contains(&body["limit"].as_u64().unwrap_or(0)) {
            return invalid("/limit");
        }
        if let Some(query) = body["query"].as_str()
            && (query.trim().is_empty() || query.chars().count() > 256)
        {
            return invalid("/query");
        }
        let limit = usize::try_from(body["limit"].as_u64().unwrap_or(50)).unwrap();
        let query = body["query"].as_str().unwrap_or("").to_lowercase();
        let named = |item: &Value| {
            item["name"]
                .as_str()
                .unwrap()
                .to_lowercase()
                .contains(&query)
        };
        let sequence = |ids| Sequence {
            path: request.path.clone(),
            ids,
            limit,
            full,
        };
        if request.path.contains("collections") {
            if body.get("query").is_none() && body.get("parent_id").is_none() {
                return invalid("");
            }
            let fits = |item: &Value| match body.get("parent_id") {
                None => true,
                Some(Value::Null) => item.get("parent_ids").is_none(),
                Some(id) => item["parent_ids"]
                    .as_array()
                    .is_some_and(|ids| ids.contains(id)),
            };
            let found = collections().into_iter().filter(|c| named(c) && fits(c));
            return self.begin(sequence(ids(&found.collect::<Vec<_>>())));
        }
        if body.get("query").is_none() && body.get("filters").is_none() {
            return invalid("");
        }
        if body.get("include_descendants").is_some() && body.get("collection_id").is_none() {
            return invalid("/include_descendants");
        }
        let filters = body["filters"].as_array().cloned().unwrap_or_default();
        if filters.len() > 32 {
            return invalid("/filters");
        }
        let collection = body["collection_id"].as_str();
        if collection.is_some_and(|id| find(&collections(), id).is_none()) {
            return Response::problem(404, "NOT_FOUND", None);
        }
        let at_child = collection == Some("child");
        if let Some(pointer) = filters.iter().find_map(|filter| wrong(filter, at_child)) {
            return invalid(&format!("/filters/0{pointer}"));
        }
        let sort = body["sort"].as_str();
        if sort.is_some_and(|sort| find(&sorts(), sort).is_none()) {
            return invalid("/sort");
        }
        let refinements = body["refinements"].as_array().cloned().unwrap_or_default();
        if refinements.iter().any(|id| id != "kind") {
            return invalid("/refinements/0");
        }
        let within = |item: &Value| match collection {
            None => true,
            Some("root") if body["include_descendants"] == true => {
                in_collection(item, "root") || in_collection(item, "child")
            }
            Some(id) => in_collection(item, id),
        };
        let candidates: Vec<_> = offerings()
            .into_iter()
            .filter(|o| named(o) && within(o))
            .collect();
        let passes = |item: &Value, but: &str| {
            let others = filters.iter().filter(|filter| filter["id"] != but);
            others.into_iter().all(|filter| matches(item, filter))
        };
        let mut found: Vec<_> = candidates
            .iter()
            .filter(|o| passes(o, ""))
            .cloned()
            .collect();
        if let Some(sort) = sort {
            let down = sort == "largest";
            found.sort_by_key(|item| {
                let size = item["attributes"]["size"].as_i64();
                (
                    size.is_none(),
                    size.map(|size| if down { -size } else { size }),
                )
            });
        }
        let mut response = self.begin(sequence(ids(&found)));
        if !refinements.is_empty() {
            let mut counts: Vec<(String, u64)> = Vec::new();
            for item in candidates.iter().filter(|item| passes(item, "kind")) {
                if let Some(kind) = item["attributes"]["kind"].as_str() {
                    match counts.iter_mut().find(|(known, _)| known == kind) {
                        Some((_, count)) => *count += 1,
                        None => counts.push((kind.to_owned(), 1)),
                    }
                }
            }
            let values: Vec<_> = counts
                .iter()
                .map(|(value, count)| json!({"value": value, "count": count}))
                .collect();
            response.body["refinements"] = json!([{"filter_id": "kind", "values": values}]);
        }
        response
    }
}

fn representation(request: &Request) -> Result<bool, ()> {
    let values: Vec<_> = request
        .query
        .iter()
        .filter(|(key, _)| key == "representation")
        .map(|(_, value)| value.as_str())
        .collect();
    match values.as_slice() {
        [] | ["terse"] => Ok(false),
        ["full"] => Ok(true),
        _ => Err(()),
    }
}

/// Where a Filter Expression is wrong.
fn wrong(filter: &Value, at_child: bool) -> Option<&'static str> {
    let (text, operators): (bool, &[&str]) = match filter["id"].as_str() {
        Some("kind") => (true, &["eq", "in", "exists"]),
        // What the Collection advertises.
        Some("shade") if at_child => (true, &["eq", "exists"]),
        Some("size") => (false, &["eq", "lt", "lte", "gt", "gte", "exists"]),
        _ => return Some("/id"),
    };
    let operator = filter["operator"].as_str().unwrap();
    if !operators.contains(&operator) {
        return Some("/operator");
    }
    let value = &filter["value"];
    let typed = |value: &Value| {
        if text {
            value.is_string()
        } else {
            value.is_i64()
        }
    };
    let right = match operator {
        "exists" => value.is_boolean(),
        "in" => value
            .as_array()
            .is_some_and(|values| values.iter().all(typed)),
        _ => typed(value),
    };
    (!right).then_some("/value")
}

fn matches(item: &Value, filter: &Value) -> bool {
    let value = &item["attributes"][filter["id"].as_str().unwrap()];
    let wanted = &filter["value"];
    let compare = |fits: fn(i64, i64) -> bool| match (value.as_i64(), wanted.as_i64()) {
        (Some(value), Some(wanted)) => fits(value, wanted),
        _ => false,
    };
    match filter["operator"].as_str().unwrap() {
        "exists" => value.is_null() != wanted.as_bool().unwrap(),
        "in" => wanted.as_array().unwrap().contains(value),
        "eq" => value == wanted,
        "lt" => compare(|a, b| a < b),
        "lte" => compare(|a, b| a <= b),
        "gt" => compare(|a, b| a > b),
        _ => compare(|a, b| a >= b),
    }
}
