//! HTTP requests to a server under test.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::Method;
use reqwest::blocking::{Client as Http, RequestBuilder};
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::server::ADMIN_TOKEN;

/// An answer, read to its end.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body's bytes as they came.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("not JSON ({e}), status {}: {}", self.status, self.text()))
    }

    /// The body as text, for a person.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A header's text; none when it is absent.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let value = self.headers.get(name)?;
        Some(value.to_str().expect("a header of text"))
    }

    /// This answer if it has the status, else a panic that shows it.
    pub fn expect_status(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }
}

/// A client of one server: a connection pool and the operator's token.
#[derive(Clone, Debug)]
pub struct Client {
    http: Http,
    url: String,
    base: OnceLock<String>,
}

impl Client {
    /// A client of the server at this URL (without a path).
    #[must_use]
    pub fn new(url: &str) -> Self {
        let http = Http::builder()
            .timeout(Duration::from_secs(30))
            .no_proxy()
            // Bodies are kept as they came, whatever other crates of the workspace switch on.
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .expect("a client");
        Self {
            http,
            url: url.to_owned(),
            base: OnceLock::new(),
        }
    }

    fn request(&self, method: Method, target: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{target}", self.url))
    }

    fn send(request: RequestBuilder) -> reqwest::Result<Answer> {
        let response = request.send()?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Answer {
            status,
            headers,
            body: response.bytes()?.to_vec(),
        })
    }

    /// `GET` of a path with its query.
    ///
    /// # Errors
    /// When there is no whole answer.
    pub fn try_get(&self, target: &str) -> reqwest::Result<Answer> {
        Self::send(self.request(Method::GET, target))
    }

    /// `GET` of a path with its query; no answer is a panic.
    #[must_use]
    pub fn get(&self, target: &str) -> Answer {
        self.try_get(target)
            .unwrap_or_else(|e| panic!("GET {target}: {e}"))
    }

    /// Any method, with these headers and no body; no answer is a panic.
    #[must_use]
    pub fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Answer {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let mut request = self.request(method, target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Self::send(request).unwrap_or_else(|e| panic!("{target}: {e}"))
    }

    /// `POST` of a search; no answer is a panic.
    #[must_use]
    pub fn search(&self, target: &str, request: &Value, headers: &[(&str, &str)]) -> Answer {
        let mut post = self
            .request(Method::POST, target)
            .header("content-type", "application/odp+json")
            .body(request.to_string());
        for (name, value) in headers {
            post = post.header(*name, *value);
        }
        Self::send(post).unwrap_or_else(|e| panic!("POST {target}: {e}"))
    }

    /// The operator's `GET`; no answer is a panic.
    #[must_use]
    pub fn stored(&self, target: &str) -> Answer {
        Self::send(self.request(Method::GET, target).bearer_auth(ADMIN_TOKEN))
            .unwrap_or_else(|e| panic!("GET {target}: {e}"))
    }

    /// The operator's `PUT` of a document.
    ///
    /// # Errors
    /// When there is no whole answer: the write may have happened or not.
    pub fn put(&self, target: &str, document: &Value) -> reqwest::Result<Answer> {
        Self::send(self.operator(
            Method::PUT,
            target,
            "application/odp+json",
            document.to_string(),
        ))
    }

    /// The operator's `DELETE`.
    ///
    /// # Errors
    /// When there is no whole answer: the write may have happened or not.
    pub fn delete(&self, target: &str) -> reqwest::Result<Answer> {
        Self::send(
            self.request(Method::DELETE, target)
                .bearer_auth(ADMIN_TOKEN),
        )
    }

    /// The operator's `POST` of NDJSON.
    ///
    /// # Errors
    /// When there is no whole answer: any of the writes may have happened or not.
    pub fn post_lines(&self, target: &str, lines: String) -> reqwest::Result<Answer> {
        Self::send(self.operator(Method::POST, target, "application/x-ndjson", lines))
    }

    fn operator(&self, method: Method, target: &str, media: &str, body: String) -> RequestBuilder {
        self.request(method, target)
            .bearer_auth(ADMIN_TOKEN)
            .header("content-type", media)
            .body(body)
    }

    /// The target of a path of the protocol, below the base that the Service Document names.
    #[must_use]
    pub fn operation(&self, path: &str) -> String {
        let base = self.base.get_or_init(|| {
            let service = self.get("/.well-known/odp").expect_status(200).json();
            let base = service["http"]["endpoint_base"]
                .as_str()
                .expect("an endpoint base");
            base.trim_end_matches('/').to_owned()
        });
        format!("{base}{path}")
    }

    /// All items from this target on, page by page; anything but pages is a panic.
    #[must_use]
    pub fn items(&self, target: &str) -> Vec<Value> {
        let mut items = Vec::new();
        let mut target = Some(target.to_owned());
        while let Some(page) = target {
            let answer = self.get(&page);
            assert_eq!(answer.status, 200, "{page}: {}", answer.text());
            let (of_page, next) = page_of(&answer);
            items.extend(of_page);
            target = next;
        }
        items
    }
}

/// The items of a page, and the target of the next one.
#[must_use]
pub fn page_of(answer: &Answer) -> (Vec<Value>, Option<String>) {
    let Value::Object(mut page) = answer.json() else {
        panic!("not a page: {}", answer.text())
    };
    let Some(Value::Array(items)) = page.remove("items") else {
        panic!("a page without items: {}", answer.text())
    };
    let next = page.remove("next").map(|next| {
        let next = next.as_str().expect("next is a string");
        next.find("://")
            .map_or(next, |scheme| {
                let rest = &next[scheme + 3..];
                rest.find('/').map_or("/", |path| &rest[path..])
            })
            .to_owned()
    });
    (items, next)
}
