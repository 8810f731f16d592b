//! Every number of the protocol, once. Byte limits count decoded bytes; depth counts containers, the top-level one as 1.

/// Request body, in bytes.
pub const REQUEST_BYTES: usize = 65_536;
/// Service Document, in bytes.
pub const SERVICE_DOCUMENT_BYTES: usize = 65_536;
/// Service Document, in nested containers.
pub const SERVICE_DOCUMENT_DEPTH: usize = 8;
/// One Collection or Offering retrieved by itself, in bytes.
pub const RESOURCE_BYTES: usize = 524_288;
/// One page of a list, a search or a linked capability source, in bytes.
pub const PAGE_BYTES: usize = 524_288;
/// Items on one page.
pub const PAGE_ITEMS: usize = 100;
/// Smallest and largest `limit` of a list or search.
pub const PAGE_LIMIT: std::ops::RangeInclusive<u64> = 1..=100;
/// Problem Details body, in bytes.
pub const PROBLEM_BYTES: usize = 16_384;
/// OpenAPI document, in bytes.
pub const OPENAPI_BYTES: usize = 1_048_576;
/// OpenAPI document, in nested containers.
pub const OPENAPI_DEPTH: usize = 32;
/// Branding image, in bytes.
pub const BRANDING_IMAGE_BYTES: usize = 1_048_576;
/// Every JSON document but the Service Document and OpenAPI, in nested containers.
pub const JSON_DEPTH: usize = 16;
/// One attribute schema, in bytes.
pub const ATTRIBUTE_SCHEMA_BYTES: usize = 262_144;
/// All documents of one schema graph together, in bytes.
pub const SCHEMA_GRAPH_BYTES: usize = 1_048_576;
/// Documents of one schema graph.
pub const SCHEMA_GRAPH_DOCUMENTS: usize = 16;
/// Reference depth of one schema graph.
pub const SCHEMA_GRAPH_DEPTH: usize = 8;
/// Pages of one linked capability source.
pub const CAPABILITY_PAGES: usize = 16;
/// Redirects followed for one resource.
pub const REDIRECTS: usize = 5;
/// Seconds for which every `next` works, at least.
pub const CONTINUATION_SECONDS: u64 = 3_600;
/// `next`, in ASCII characters.
pub const NEXT_CHARS: usize = 2_048;
/// `http.endpoint_base`, in ASCII characters.
pub const ENDPOINT_BASE_CHARS: usize = 2_048;
/// Local Resource Identifier, in ASCII characters.
pub const IDENTIFIER_CHARS: usize = 128;
/// Capability identifier (filter, sort, service unit code), in ASCII characters.
pub const CAPABILITY_IDENTIFIER_CHARS: usize = 64;
/// `name` and `title`, in code points.
pub const NAME_CHARS: usize = 128;
/// `description` and an image's `alt`, in code points.
pub const DESCRIPTION_CHARS: usize = 1_024;
/// Tags in `localizations`.
pub const LOCALIZATIONS: usize = 16;
/// Entries of `keywords`.
pub const KEYWORDS: usize = 32;
/// One keyword, in code points.
pub const KEYWORD_CHARS: usize = 64;
/// All keywords together, in code points.
pub const KEYWORDS_CHARS: usize = 1_024;
/// Entries of `payment_origins`.
pub const PAYMENT_ORIGINS: usize = 16;
/// Entries of `images`.
pub const IMAGES: usize = 16;
/// An image's `height` and `width`, in CSS pixels.
pub const IMAGE_PIXELS: u64 = 65_535;
/// Entries of `actions`.
pub const ACTIONS: usize = 16;
/// `rel` and a local Action `id`, in characters.
pub const ACTION_RELATION_CHARS: usize = 64;
/// `operation_id` of an OpenAPI target, in characters.
pub const OPERATION_ID_CHARS: usize = 128;
/// Entries of `response_content_types`.
pub const RESPONSE_CONTENT_TYPES: usize = 8;
/// Entries of `detail_fields`.
pub const DETAIL_FIELDS: usize = 32;
/// One JSON Pointer of `detail_fields`, in printable ASCII characters.
pub const DETAIL_FIELD_CHARS: usize = 256;
/// Edges from a Collection through its parents.
pub const HIERARCHY_EDGES: usize = 32;
/// Search text, in code points.
pub const QUERY_CHARS: usize = 256;
/// Filter Expressions of one request.
pub const FILTER_EXPRESSIONS: usize = 32;
/// Values of one `in` expression.
pub const IN_VALUES: usize = 100;
/// Refinements of one request, and groups of one response.
pub const REFINEMENTS: usize = 16;
/// Buckets of one refinement group.
pub const REFINEMENT_VALUES: usize = 32;
/// Largest refinement count: the largest integer every JSON reader holds exactly.
pub const REFINEMENT_COUNT: u64 = 9_007_199_254_740_991;
/// Keys of one Sort Definition.
pub const SORT_KEYS: usize = 3;
/// Filter Definitions of an inline source.
pub const INLINE_FILTERS: usize = 32;
/// Sort Definitions of an inline source.
pub const INLINE_SORTS: usize = 16;
/// Filter Definitions of an effective catalog.
pub const EFFECTIVE_FILTERS: usize = 1_024;
/// Sort Definitions of an effective catalog.
pub const EFFECTIVE_SORTS: usize = 128;
/// Entries of `invalid_params`.
pub const INVALID_PARAMS: usize = 32;
/// `name` of an `invalid_params` entry, in code points.
pub const INVALID_PARAM_NAME_CHARS: usize = 256;
/// `reason` of an `invalid_params` entry, in code points.
pub const INVALID_PARAM_REASON_CHARS: usize = 1_024;
/// `detail` of a problem, in code points.
pub const PROBLEM_DETAIL_CHARS: usize = 2_048;
/// A problem's `code`, in characters.
pub const PROBLEM_CODE_CHARS: usize = 64;
/// Retries of one operation.
pub const RETRIES: u32 = 3;
/// Seconds of waiting over one operation and its retries.
pub const RETRY_SECONDS: u64 = 30;
