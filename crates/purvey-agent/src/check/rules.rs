//! The rules that a deployed Service is held to. Their ids are stable: programs may go by them.

use super::Severity;

/// One rule of the protocol as far as it can be seen from outside.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// The stable id, such as `page.next.own-url`.
    pub id: &'static str,
    /// How bad it is when the rule is broken.
    pub severity: Severity,
    /// Where the rule comes from: a section of ODP 1.0, or of the RFC that it builds on.
    pub section: &'static str,
    /// What holds when the rule is kept.
    pub statement: &'static str,
}

macro_rules! rules {
    ($($name:ident = $id:literal, $severity:ident, $section:literal, $statement:literal;)*) => {
        $(pub(super) static $name: Rule = Rule {
            id: $id,
            severity: Severity::$severity,
            section: $section,
            statement: $statement,
        };)*
        /// Every rule, in the order in which they are looked at.
        pub(super) static ALL: &[&Rule] = &[$(&$name),*];
    };
}

rules! {
    CHECK_INCOMPLETE = "check.incomplete", Warning, "check", "The check ends before its bound on requests.";

    HTTP_RESPONSE = "http.response", Error, "RFC 9110", "Every request is answered, with a whole response within its limits.";
    HTTP_SERVER_ERROR = "http.server-error", Error, "RFC 9110 §15.6", "No request makes the Service fail (5xx).";
    HTTP_REDIRECT = "http.redirect", Error, "§7", "Redirects stay at the origin, are no more than five, and do not go in circles.";
    HTTP_RETRY_AFTER = "http.retry-after", Error, "§6", "A 429 says in Retry-After when to come back.";
    HTTP_HEAD = "http.head", Warning, "RFC 9110 §9.3.2", "HEAD is answered as GET is, without a body.";
    HTTP_METHOD = "http.method", Warning, "RFC 9110 §15.5.6", "A method that a resource does not have is answered with 405 or 501.";
    HTTP_ALLOW = "http.allow", Warning, "RFC 9110 §15.5.6", "A 405 lists the permitted methods in Allow.";
    HTTP_NOT_ACCEPTABLE = "http.not-acceptable", Error, "§1", "An Accept that excludes application/odp+json is answered with 406.";

    DOCUMENT_MEDIA_TYPE = "document.media-type", Error, "§1", "Documents are application/odp+json.";
    DOCUMENT_SIZE = "document.size", Error, "§7", "A document is within its limit of bytes.";
    DOCUMENT_DEPTH = "document.depth", Error, "§7", "A document is nested no deeper than its limit.";
    DOCUMENT_JSON = "document.json", Error, "§7", "A document is JSON in UTF-8, without duplicate members and with nothing after it.";
    DOCUMENT_VERSION = "document.version", Error, "§1", "A top-level document carries odp_version 1.0.";
    DOCUMENT_VALID = "document.valid", Error, "§2–5", "Every member of a document follows its rules.";

    PROBLEM_MEDIA_TYPE = "problem.media-type", Error, "§6", "Failures are application/problem+json.";
    PROBLEM_SIZE = "problem.size", Error, "§7", "A problem has at most 16,384 bytes.";
    PROBLEM_VALID = "problem.valid", Error, "§6", "A problem has type, title, status and code in their exact form.";
    PROBLEM_CODE = "problem.code", Error, "§6", "A problem has the code that the protocol has for its case.";
    PROBLEM_PARAMS = "problem.invalid-params", Warning, "§6", "INVALID_REQUEST names the member or parameter that is wrong.";

    SERVICE_REACHABLE = "service.reachable", Error, "§2", "The Service Document is public: 200 without credentials.";
    SERVICE_ETAG = "service.etag", Warning, "§2", "The Service Document has an ETag.";
    SERVICE_CORS = "service.cors", Note, "Fetch", "Pages of other origins may read the Service Document (Access-Control-Allow-Origin).";
    ETAG_NOT_MODIFIED = "etag.not-modified", Error, "§3", "If-None-Match with the current ETag is answered with 304.";
    LANGUAGE_CONTENT = "language.content-language", Error, "§2", "Content-Language says which of the localizations a document is in.";
    LANGUAGE_VARY = "language.vary", Error, "§2", "Vary names Accept-Language.";
    LANGUAGE_LOOKUP = "language.lookup", Error, "§2", "A language of the localizations is served when it is asked for.";
    LANGUAGE_FALLBACK = "language.fallback", Error, "§2", "A language that is not there leads to the default language, not to an error.";
    LANGUAGE_ETAG = "language.etag", Error, "§2", "The ETags of different languages differ.";

    AUTHENTICATION_NOT_REQUIRED = "authentication.not-required", Error, "§2", "An operation that needs no authentication, or takes it optionally, does not ask for it.";
    AUTHENTICATION_REQUIRED = "authentication.required", Warning, "§2", "An operation that requires authentication answers nobody without it.";
    AUTHENTICATION_CHALLENGE = "authentication.challenge", Warning, "§13", "A 401 carries WWW-Authenticate.";

    LIST_STATUS = "list.status", Error, "§3", "A list that is advertised is answered with 200.";
    LIST_LIMIT = "list.limit", Error, "§3", "A limit that is no integer from 1 through 100 is answered with 400.";
    REPRESENTATION_INVALID = "representation.invalid", Error, "§4", "A representation other than terse and full, or two of them, is answered with 400.";
    PAGE_LIMIT = "page.limit", Error, "§3", "A page has no more items than its limit.";
    PAGE_ETAG = "page.etag", Error, "§3", "A page that was fetched with GET has an ETag.";
    PAGE_NEXT_VALID = "page.next.valid", Error, "§3", "next is a Resource Reference of at most 2,048 ASCII characters.";
    PAGE_NEXT_ORIGIN = "page.next.origin", Error, "§3", "next stays at the origin of the Service.";
    PAGE_NEXT_OWN_URL = "page.next.own-url", Error, "§3", "next is not the URL of its own page.";
    PAGE_NEXT_LOOP = "page.next.loop", Error, "§3", "next does not lead back to an earlier page.";
    PAGE_NEXT_STATUS = "page.next.status", Error, "§3", "next is answered with 200 to GET.";
    PAGE_NEXT_REPEATABLE = "page.next.repeatable", Error, "§3", "A continuation gives the same page each time it is followed.";
    PAGE_NEXT_TAMPERED = "page.next.tampered", Error, "§3", "A continuation that was changed is refused with a problem.";
    PAGE_REPEATED = "page.repeated", Error, "§3", "No identity repeats within one traversal.";
    PAGE_ORDER = "page.order", Warning, "§3", "The order of a list does not depend on the size of its pages.";
    TERSE_ACTIONS = "terse.actions", Error, "§4", "A Terse Representation has no actions.";

    GET_STATUS = "get.status", Error, "§2", "A resource that is listed can be retrieved.";
    GET_ID = "get.id", Error, "§4", "The resource that comes is the one that was asked for.";
    GET_NOT_FOUND = "get.not-found", Error, "§6", "An identifier that does not exist is answered with 404.";
    GET_ETAG = "get.etag", Warning, "§3", "A retrieved resource has an ETag.";
    REPRESENTATION_DEFAULT = "representation.default", Error, "§4", "A retrieval without representation is Full.";
    TERSE_FIELDS = "terse.fields", Error, "§4", "A Terse Representation has nothing that Full lacks, at the same place and of the same type.";
    TERSE_TRUNCATED = "terse.truncated", Error, "§4", "A Terse Representation omits and never truncates.";
    TERSE_DETAIL_FIELDS = "terse.detail-fields", Error, "§4", "detail_fields names all that Full adds, by the shortest pointers, or is absent.";
    ATTRIBUTES_SCHEMA = "attributes.schema", Error, "§10", "The schema of the attributes can be fetched and understood.";
    ATTRIBUTES_MATCH = "attributes.match", Error, "§4", "Full attributes are valid against their schema.";
    ACTION_RESOLVES = "action.resolves", Error, "§4", "What an Action refers to can be fetched and is unambiguous.";
    SUPPORTING_REACHABLE = "supporting.reachable", Warning, "§11", "Schemas and OpenAPI documents at other origins can be reached from here.";
    OFFERING_COLLECTION = "offering.collection", Error, "§4", "The Collections of an Offering exist.";

    HIERARCHY_EDGE = "hierarchy.edge", Error, "§4", "Parents exist, form no cycle, and lie no more than 32 edges deep.";
    MEMBERSHIP_LISTED = "membership.listed", Error, "§4", "The Offerings listed under a Collection name it in collection_ids.";
    MEMBERSHIP_COMPLETE = "membership.complete", Error, "§4", "Each Offering that names a Collection is listed under it.";
    COLLECTION_UNKNOWN = "collection.unknown", Error, "§6", "The Offerings of a Collection that does not exist are answered with 404.";

    CAPABILITY_SOURCE = "capability.source", Error, "§5", "Each source of filters and sorts is valid as a whole and within its limits.";
    CAPABILITY_CONFLICT = "capability.conflict", Error, "§5", "No id is published by the Service and by a Collection.";
    CAPABILITY_SORT_REFERENCE = "capability.sort-reference", Error, "§5", "Sorts order by filters that are effective.";

    SEARCH_STATUS = "search.status", Error, "§5", "A search that fits the advertised contract is answered with 200, also when nothing matches.";
    SEARCH_CONSTRAINT = "search.constraint", Error, "§5", "A search without a constraint is answered with 400.";
    SEARCH_QUERY = "search.query", Error, "§5", "A query that is blank or has more than 256 code points is answered with 400.";
    SEARCH_VERSION = "search.version", Error, "§1", "A request of another protocol version is answered with 400.";
    SEARCH_LIMIT = "search.limit", Error, "§3", "A limit that is no integer from 1 through 100 is answered with 400.";
    SEARCH_MALFORMED = "search.malformed", Error, "§7", "A body that is not JSON, has duplicate members or is too deep is answered with 400.";
    SEARCH_MEDIA_TYPE = "search.media-type", Error, "§1", "A body of another media type is answered with 415.";
    SEARCH_TOO_LARGE = "search.too-large", Error, "§7", "A body of more than 65,536 bytes is answered with 413.";
    SEARCH_FILTER_UNKNOWN = "search.filter.unknown", Error, "§5", "A filter that is not advertised is answered with 400.";
    SEARCH_FILTER_OPERATOR = "search.filter.operator", Error, "§5", "An operator that a filter does not advertise is answered with 400.";
    SEARCH_FILTER_VALUE = "search.filter.value", Error, "§5", "A value of another type than the filter's is answered with 400.";
    SEARCH_FILTER_COUNT = "search.filter.count", Error, "§5", "More than 32 filters are answered with 400.";
    SEARCH_SORT_UNKNOWN = "search.sort.unknown", Error, "§5", "A sort that is not advertised is answered with 400.";
    SEARCH_REFINEMENT_UNKNOWN = "search.refinement.unknown", Error, "§5", "A refinement by what is no refinable filter is answered with 400.";
    SEARCH_DESCENDANTS = "search.descendants", Error, "§5", "include_descendants without collection_id is answered with 400.";
    SEARCH_COLLECTION_UNKNOWN = "search.collection.unknown", Error, "§5", "A Collection that does not exist is answered with 404.";
    SEARCH_COLLECTION_SCOPE = "search.collection.scope", Error, "§5", "A search in a Collection finds direct members alone; descendants only add to them.";
    SEARCH_PARENT = "search.parent", Error, "§5", "parent_id finds the roots or the direct children, and no others.";
    FILTER_NO_MATCH = "filter.no-match", Error, "§5", "eq with a value that nothing has finds nothing.";
    FILTER_EXISTS = "filter.exists", Error, "§5", "exists divides the Offerings in two: what has a value and what has none.";
    FILTER_EQ = "filter.eq", Error, "§5", "eq and in with the same value find the same, and nothing that exists false finds.";
    FILTER_ORDER = "filter.order", Error, "§5", "A wider bound finds whatever a narrower one finds.";
    REFINEMENT_CONTINUATION = "refinement.continuation", Error, "§5", "Refinements are on the initial page alone, and only when asked for.";
    REFINEMENT_VALID = "refinement.valid", Error, "§5", "Groups are of the filters that were asked for, with 1 through 32 distinct values of their type.";
    REFINEMENT_ZERO = "refinement.zero", Error, "§5", "No value is counted with zero.";
    REFINEMENT_COUNT = "refinement.count", Error, "§5", "A count is the number of Offerings that eq with the value finds.";
    SORT_ORDER = "sort.order", Error, "§5", "Results are ordered as the sort's first key says.";

    AGENT_READS = "agent.reads", Error, "§14", "An Agent can use what the Service answers.";
}
