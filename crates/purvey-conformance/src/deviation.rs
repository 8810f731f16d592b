//! Cases that Purvey answers otherwise on purpose.

/// A case whose expectation is not what the protocol asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// The vector's identifier.
    pub vector: &'static str,
    /// The case's name.
    pub case: &'static str,
    /// Why Purvey's answer is the right one.
    pub reason: &'static str,
}

/// All of them. The adapter answers them `failed`, as it must; the runner shows them apart.
pub const DEVIATIONS: &[Deviation] = &[Deviation {
    vector: "protocol-version",
    case: "newer-compatible-minor",
    reason: "the vector still expects 1.7 to be accepted; draft -01 supports exactly 1.0 and rejects any other document whole",
}];

/// The deviation that this case is.
pub fn of(vector: &str, case: &str) -> Option<&'static Deviation> {
    DEVIATIONS
        .iter()
        .find(|deviation| deviation.vector == vector && deviation.case == case)
}
