//! Text that others wrote, made fit for a terminal.

/// `text` with everything escaped that could steer a terminal, turn a line around or hide something.
pub(crate) fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_harmless(&mut out, text);
    out
}

/// `text` as one line: the same, and whitespace of any kind and length is one space.
pub(crate) fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        push_harmless(&mut out, word);
    }
    out
}

/// A JSON document in which strings hold no character that [`harmless`] would escape: they are escaped as JSON does.
pub(crate) fn json(document: &str) -> String {
    let mut out = String::with_capacity(document.len());
    let mut units = [0; 2];
    for c in document.chars() {
        if is_plain(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut units) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
    out
}

/// The same for a document as it came, in which line ends and tabs divide members; what is not UTF-8 is replaced.
pub(crate) fn json_as_received(document: &[u8]) -> String {
    String::from_utf8_lossy(document)
        .split_inclusive(['\n', '\t'])
        .map(|piece| match piece.strip_suffix(['\n', '\t']) {
            Some(text) => json(text) + &piece[text.len()..],
            None => json(piece),
        })
        .collect()
}

/// Text of several lines, otherwise [`harmless`].
pub(crate) fn lines(text: &str) -> String {
    let mut lines = text.lines().map(harmless);
    let first = lines.next().unwrap_or_default();
    lines.fold(first, |all, line| all + "\n" + &line)
}

fn push_harmless(out: &mut String, text: &str) {
    for c in text.chars() {
        if is_plain(c) {
            out.push(c);
        } else {
            out.extend(c.escape_debug());
        }
    }
}

/// Whether a character shows as itself and does nothing else. The two joiners do, since some scripts need them.
fn is_plain(c: char) -> bool {
    match c {
        ' '..='~' | '\u{200c}' | '\u{200d}' => true,
        c if c.is_ascii() => false,
        c => {
            // The standard library knows what can be printed; after a letter it takes combining marks for what they are.
            let after_letter: String = ['a', c].iter().collect();
            after_letter.escape_debug().nth(1) == Some(c)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_escaped_and_the_rest_is_not() {
        assert_eq!(harmless("it's \"déjà\" C:\\"), "it's \"déjà\" C:\\");
        assert_eq!(
            harmless("a\u{1b}[2Jb\u{202e}\n"),
            "a\\u{1b}[2Jb\\u{202e}\\n"
        );
        assert_eq!(
            harmless("\u{7f}\u{9b}\u{200b}\u{2066}\u{feff}\u{e0041}"),
            "\\u{7f}\\u{9b}\\u{200b}\\u{2066}\\u{feff}\\u{e0041}"
        );
        // Combining accents, vowel signs, joiners, emoji with a variation selector, wide characters.
        for text in [
            "e\u{301}",
            "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940}",
            "\u{1f469}\u{200d}\u{1f467}",
            "\u{2602}\u{fe0f}",
            "木工",
        ] {
            assert_eq!(harmless(text), text);
        }
    }

    #[test]
    fn a_line_has_no_whitespace_but_single_spaces() {
        assert_eq!(
            line("  a\r\n\tb\u{a0}\u{2028}\u{85} c\u{b}d\u{1b}[0m "),
            "a b c d\\u{1b}[0m"
        );
        assert_eq!(line("\n\t"), "");
    }

    #[test]
    fn json_stays_the_same_document() {
        let document = serde_json::json!({"a": "x\u{7f}\u{9b}31m\u{202e}\u{e0041}\u{a0}é\n\u{1b}"});
        let text = json(&document.to_string());
        assert_eq!(
            text,
            r#"{"a":"x\u007f\u009b31m\u202e\udb40\udc41\u00a0é\n\u001b"}"#
        );
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            document
        );
    }

    #[test]
    fn a_received_document_keeps_its_lines() {
        let received = b"{\n\t\"a\": \"\x1b[2J\xff\",\r\n\"b\": \"\xc2\x9b\"}";
        assert_eq!(
            json_as_received(received),
            "{\n\t\"a\": \"\\u001b[2J\u{fffd}\",\\u000d\n\"b\": \"\\u009b\"}"
        );
        assert_eq!(lines("a\x1b\nb\r\nc\n"), "a\\u{1b}\nb\nc");
    }
}
