//! Codes of the Unified Code for Units of Measure.

use crate::report::{Place, Report};
use crate::shape;
use serde_json::Value;

/// Characters of a UCUM code at most (the protocol's schema).
const CODE_CHARS: usize = 64;

/// A case-sensitive UCUM code of 1 through 64 characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UcumCode(Box<str>);

impl UcumCode {
    /// The code, when `text` is one.
    pub fn parse(text: &str) -> Option<Self> {
        let bounded = !text.is_empty() && text.len() <= CODE_CHARS;
        (bounded && is_code(text)).then(|| Self(text.into()))
    }

    /// Reads a JSON string; notes one that is no code.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let text = shape::string(report, place, value)?;
        let code = Self::parse(&text);
        if code.is_none() {
            report.add(
                place,
                format!("Must be a case-sensitive UCUM code of at most {CODE_CHARS} characters."),
            );
        }
        code
    }

    /// The code.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether `text` follows the UCUM grammar with atoms of the UCUM tables.
fn is_code(text: &str) -> bool {
    // Annotations may hold any printable ASCII; nothing may hold anything else.
    if !text.bytes().all(|b| (33..=126).contains(&b)) {
        return false;
    }
    let mut input = Input(text.strip_prefix('/').unwrap_or(text));
    input.term() && input.0.is_empty()
}

/// What is left to read; all of it ASCII.
struct Input<'a>(&'a str);

impl Input<'_> {
    fn take(&mut self, c: char) -> bool {
        let rest = self.0.strip_prefix(c);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// Components joined by `.` and `/`.
    fn term(&mut self) -> bool {
        while self.component() {
            if !self.take('.') && !self.take('/') {
                return true;
            }
        }
        false
    }

    /// A unit, a factor, a term in parentheses, or an annotation; the first three may be annotated.
    fn component(&mut self) -> bool {
        if self.0.starts_with('{') {
            return self.annotation();
        }
        let main = if self.take('(') {
            self.term() && self.take(')')
        } else {
            self.unit() || self.digits()
        };
        main && (!self.0.starts_with('{') || self.annotation())
    }

    fn annotation(&mut self) -> bool {
        match self.0[1..]
            .find(['{', '}'])
            .map(|at| self.0.split_at(at + 1))
        {
            Some((_, rest)) if rest.starts_with('}') => {
                self.0 = &rest[1..];
                true
            }
            _ => false,
        }
    }

    /// An atom, prefixed or not, with an exponent or without.
    fn unit(&mut self) -> bool {
        let len = match self.0 {
            // The only atoms outside brackets that hold what ends the others.
            text if text.starts_with("10*") || text.starts_with("10^") => 3,
            text => symbol_len(text),
        };
        let (symbol, rest) = self.0.split_at(len);
        if !is_unit(symbol) {
            return false;
        }
        self.0 = rest;
        let signed = self.take('+') || self.take('-');
        self.digits() || !signed
    }

    fn digits(&mut self) -> bool {
        let rest = self.0.trim_start_matches(|c: char| c.is_ascii_digit());
        let some = rest.len() < self.0.len();
        self.0 = rest;
        some
    }
}

/// Bytes of the symbol that `text` begins with: up to a digit, sign or operator outside square brackets.
fn symbol_len(text: &str) -> usize {
    let mut bracketed = false;
    text.bytes()
        .position(|b| {
            bracketed = match b {
                b'[' => true,
                b']' => false,
                _ => bracketed,
            };
            !bracketed
                && matches!(
                    b,
                    b'0'..=b'9' | b'+' | b'-' | b'.' | b'/' | b'(' | b')' | b'{' | b'}'
                )
        })
        .unwrap_or(text.len())
}

fn is_unit(symbol: &str) -> bool {
    let listed =
        |table: &str, symbol: &str| table.split_ascii_whitespace().any(|atom| atom == symbol);
    listed(METRIC, symbol)
        || listed(PLAIN, symbol)
        || PREFIXES
            .split_ascii_whitespace()
            .filter_map(|prefix| symbol.strip_prefix(prefix))
            .any(|atom| listed(METRIC, atom))
}

const PREFIXES: &str = "Q R Y Z E P T G M k h da d c m u n p f a z y r q Ki Mi Gi Ti";

/// Atoms that take a prefix.
const METRIC: &str = "
    m s g rad K C cd mol sr Hz N Pa J W A V F Ohm S Wb Cel T H lm lx Bq Gy Sv
    l L ar t bar u eV pc [c] [h] [k] [eps_0] [mu_0] [e] [m_e] [m_p] [G] [g] [ly] gf
    Ky dyn erg P Bi St Mx G Oe Gb sb Lmb ph Ci R RAD REM
    cal_[15] cal_[20] cal_m cal_IT cal_th cal tex m[H2O] m[Hg] eq osm g% kat U [iU] [IU]
    Np B B[SPL] B[V] B[mV] B[uV] B[10.nV] B[W] B[kW] st mho bit By Bd";

/// Atoms that take none.
const PLAIN: &str = "
    10* 10^ [pi] % [ppth] [ppm] [ppb] [pptr] gon deg ' '' min h d a_t a_j a_g a wk mo_s mo_j mo_g mo AU [lbf_av]
    [in_i] [ft_i] [yd_i] [mi_i] [fth_i] [nmi_i] [kn_i] [sin_i] [sft_i] [syd_i] [cin_i] [cft_i] [cyd_i] [bf_i] [cr_i]
    [mil_i] [cml_i] [hd_i]
    [ft_us] [yd_us] [in_us] [rd_us] [ch_us] [lk_us] [rch_us] [rlk_us] [fth_us] [fur_us] [mi_us] [acr_us] [srd_us]
    [smi_us] [sct] [twp] [mil_us]
    [in_br] [ft_br] [rd_br] [ch_br] [lk_br] [fth_br] [pc_br] [yd_br] [mi_br] [nmi_br] [kn_br] [acr_br]
    [gal_us] [bbl_us] [qt_us] [pt_us] [gil_us] [foz_us] [fdr_us] [min_us] [crd_us] [bu_us] [gal_wi] [pk_us] [dqt_us]
    [dpt_us] [tbs_us] [tsp_us] [cup_us] [foz_m] [cup_m] [tsp_m] [tbs_m]
    [gal_br] [pk_br] [bu_br] [qt_br] [pt_br] [gil_br] [foz_br] [fdr_br] [min_br]
    [gr] [lb_av] [oz_av] [dr_av] [scwt_av] [lcwt_av] [ston_av] [lton_av] [stone_av] [pwt_tr] [oz_tr] [lb_tr]
    [sc_ap] [dr_ap] [oz_ap] [lb_ap] [oz_m]
    [lne] [pnt] [pca] [pnt_pr] [pca_pr] [pied] [pouce] [ligne] [didot] [cicero]
    [degF] [degR] [degRe] [Cal] [Btu_39] [Btu_59] [Btu_60] [Btu_m] [Btu_IT] [Btu_th] [Btu] [HP] [den]
    [in_i'H2O] [in_i'Hg] [PRU] [wood'U] [diop] [p'diop] %[slope] [mesh_i] [Ch] [drp] [hnsf'U] [MET]
    [hp'_X] [hp'_C] [hp'_M] [hp'_Q] [hp_X] [hp_C] [hp_M] [hp_Q] [kp_X] [kp_C] [kp_M] [kp_Q]
    [pH] [S] [HPF] [LPF] [arb'U] [USP'U] [GPL'U] [MPL'U] [APL'U] [beth'U] [anti'Xa'U] [todd'U] [dye'U] [smgy'U]
    [bdsk'U] [ka'U] [knk'U] [mclg'U] [tb'U] [CCID_50] [TCID_50] [EID_50] [PFU] [FFU] [CFU] [IR] [BAU] [AU]
    [Amb'a'1'U] [PNU] [Lf] [D'ag'U] [FEU] [ELU] [EU]
    Ao b att [psi] circ sph [car_m] [car_Au] [smoot] [m/s2/Hz^0.5] [NTU] [FNU] bit_s";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_standard() {
        for code in [
            "1",
            "d",
            "h",
            "m",
            "kg",
            "%",
            "Cel",
            "[degF]",
            "km/h",
            "m/s2",
            "kg.m/s2",
            "/min",
            "10*3/uL",
            "10*-6",
            "10^6",
            "mm[Hg]",
            "[in_i'H2O]",
            "m[H2O]",
            "{request}",
            "{count}/d",
            "/100{WBC}",
            "mg{total}/dL",
            "(kg.m)/(s2.A)",
            "GiBy",
            "Mbit/s",
            "kW.h",
            "dB[SPL]",
            "uV",
            "dam",
            "[m/s2/Hz^0.5]",
            "a_j",
            "''",
            "s-1",
            "m+2",
            "ng/(24.h)",
            "k[iU]/mL",
        ] {
            assert!(UcumCode::parse(code).is_some(), "{code}");
        }
    }

    #[test]
    fn other_texts_are_no_codes() {
        for code in [
            "", "days", "KG", "kkg", "kmin", "m/", "/", "m..s", "m s", "(m", "m)", "()", "{", "{a",
            "{a{b}}", "m-", "m^2", "m*s", "[in", "in_i", "µm", "USD", "gpu-hour", "2m", "{é}",
            "//m", "m//s",
        ] {
            assert!(UcumCode::parse(code).is_none(), "{code}");
        }
        assert!(UcumCode::parse(&"m.".repeat(32)).is_none());
        assert!(UcumCode::parse(&format!("m{{{}}}", "x".repeat(61))).is_some());
        assert!(UcumCode::parse(&format!("m{{{}}}", "x".repeat(62))).is_none());
    }
}
