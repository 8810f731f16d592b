//! `purvey catalog explain`

use super::{open, print_json};
use crate::failure::{Failure, print};
use purvey_catalog::{
    Access, Error,
    catalog::{Explanation, SearchRequest},
    search::{RefinementTrace, SegmentTrace},
    text::WordMatch,
};
use purvey_odp::{
    decode::{Bounds, Decoder},
    language::AcceptLanguage,
    offering::Representation,
    report::Invalid,
    request::OfferingSearchRequest,
};
use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// A search to explain.
#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// Directory of the catalog
    #[arg(long, value_name = "DIR", env = "PURVEY_DATA")]
    data: PathBuf,
    /// The body of a search-offerings request; - is standard input
    #[arg(value_name = "REQUEST")]
    request: PathBuf,
    /// Deliver Full items, as ?representation=full does
    #[arg(long)]
    full: bool,
    /// Audience that the caller belongs to; may be repeated [default: the public]
    #[arg(long = "audience", value_name = "AUDIENCE")]
    audiences: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Explain {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let name = self.request.display();
        let refused = |invalid: &Invalid| Failure::usage(format_args!("{name}: {invalid}"));
        let access = Access::new(self.audiences)
            .map_err(|invalid| Failure::usage(format_args!("--audience: {invalid}")))?;
        let request = read(&self.request)?;
        let request = OfferingSearchRequest::validate(request).map_err(|error| refused(&error))?;
        let explained = open(&self.data)?.explain(&SearchRequest {
            request,
            representation: match self.full {
                true => Representation::Full,
                false => Representation::Terse,
            },
            accept_language: AcceptLanguage::parse(None),
            access,
        });
        let explanation = explained.map_err(|error| match error {
            Error::Invalid(invalid) => refused(&invalid),
            Error::NotFound => Failure::usage(format_args!(
                "{name}: /collection_id: There is no such Collection."
            )),
            error => error.into(),
        })?;
        if self.json {
            print_json(&explanation)?;
        } else {
            for line in lines(&explanation) {
                print(format_args!("{line}"))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The request's JSON, within the protocol's bounds.
fn read(path: &Path) -> Result<serde_json::Value, Failure> {
    let failed =
        |error: &dyn std::fmt::Display| Failure::usage(format_args!("{}: {error}", path.display()));
    let mut input: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(File::open(path).map_err(|error| failed(&error))?)
    };
    let mut decoder = Decoder::new(Bounds::REQUEST);
    let mut buffer = [0; 8 * 1_024];
    loop {
        let read = input.read(&mut buffer).map_err(|error| failed(&error))?;
        if read == 0 {
            return decoder.finish().map_err(|error| failed(&error));
        }
        let piece = buffer.get(..read).unwrap_or_default();
        decoder.push(piece).map_err(|error| failed(&error))?;
    }
}

/// What a person reads.
fn lines(explanation: &Explanation) -> Vec<String> {
    let list = |items: &[String]| match items {
        [] => "none".to_owned(),
        items => items.join("; "),
    };
    let more = if explanation.more {
        ", and more match"
    } else {
        ""
    };
    let mut lines = vec![
        format!(
            "generation   {} in {} segments",
            explanation.generation, explanation.segments
        ),
        format!(
            "text         {}",
            if explanation.has_query { "yes" } else { "no" }
        ),
    ];
    lines.extend(explanation.words.iter().map(of_word));
    lines.extend([
        format!("filters      {}", list(&explanation.filters)),
        format!("scope        {}", explanation.scope.unwrap_or("all")),
        format!("order        {}", list(&explanation.order)),
        format!("refinements  {}", list(&explanation.refinements)),
        format!("page         {} items{more}", explanation.items),
        format!(
            "time         prepare {}, search {} (uniting {}), deliver {}",
            time(explanation.prepare_us),
            time(explanation.search_us),
            time(explanation.trace.unite_us),
            time(explanation.deliver_us)
        ),
    ]);
    for segment in &explanation.trace.segments {
        lines.push(of_segment(segment));
        lines.extend(segment.refinements.iter().map(of_refinement));
    }
    lines
}

fn of_word(word: &WordMatch) -> String {
    let others = match word.forms.as_slice() {
        [] => String::new(),
        forms => format!(", or {forms:?}"),
    };
    let prefix = if word.is_prefix {
        ", or what begins so"
    } else {
        ""
    };
    format!(
        "  word {:?}{others}{prefix}: {} documents, {}",
        word.word,
        word.documents,
        time(word.time_us)
    )
}

fn of_segment(segment: &SegmentTrace) -> String {
    format!(
        "segment {}: {} documents, {} candidates, {} matching; {} filters remembered; scope and text {}, filters {}, counts {}, order {}",
        segment.segment,
        segment.documents,
        segment.candidates,
        segment.matching,
        segment.remembered,
        time(segment.scope_us),
        time(segment.filters_us),
        time(segment.refinements_us),
        time(segment.order_us),
    )
}

fn of_refinement(refinement: &RefinementTrace) -> String {
    format!(
        "  count {}: {:?} over {} documents and {} values",
        refinement.filter_id, refinement.plan, refinement.documents, refinement.values
    )
}

fn time(microseconds: u64) -> String {
    format!("{:.2} ms", microseconds as f64 / 1_000.0)
}
