//! Search requests.
