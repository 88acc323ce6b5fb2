//! Records of comma-separated values.

use std::borrow::Cow;

/// The records of a text with the line on which each begins, from 1. Fields may stand in double quotes,
/// and then hold commas, line ends and doubled quotes. Blank lines do not count.
pub(super) fn records(text: &str) -> Records<'_> {
    Records { rest: text, line: 1 }
}

/// See [`records`].
#[derive(Debug)]
pub(super) struct Records<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Iterator for Records<'a> {
    type Item = (usize, Vec<Cow<'a, str>>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = self.line;
            if self.rest.is_empty() {
                return None;
            }
            let mut fields = Vec::new();
            while self.field(&mut fields) {}
            if fields.iter().any(|field| !field.trim().is_empty()) || fields.len() > 1 {
                return Some((line, fields));
            }
        }
    }
}

impl<'a> Records<'a> {
    /// Takes a field; true if another one follows in the record.
    fn field(&mut self, fields: &mut Vec<Cow<'a, str>>) -> bool {
        let mut value = Cow::Borrowed("");
        if let Some(quoted) = self.rest.strip_prefix('"') {
            self.rest = quoted;
            loop {
                let end = self.rest.find('"').unwrap_or(self.rest.len());
                let (part, rest) = self.rest.split_at(end);
                self.line += part.matches('\n').count();
                value += part;
                self.rest = rest.strip_prefix('"').unwrap_or(rest);
                let Some(rest) = self.rest.strip_prefix('"') else { break };
                value += "\"";
                self.rest = rest;
            }
        }
        let end = self.rest.find([',', '\n']).unwrap_or(self.rest.len());
        let (part, rest) = self.rest.split_at(end);
        value += part.strip_suffix('\r').unwrap_or(part);
        fields.push(value);
        let mut rest = rest.chars();
        let more = rest.next();
        self.line += usize::from(more == Some('\n'));
        self.rest = rest.as_str();
        more == Some(',')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &str) -> Vec<(usize, Vec<Cow<'_, str>>)> {
        records(text).collect()
    }

    #[test]
    fn quotes_keep_commas_and_lines() {
        let text = "a,b\r\n\n1,\"x, \"\"y\"\"\nz\"\n,\n\"open";
        let want: Vec<(usize, Vec<Cow<'_, str>>)> = vec![
            (1, vec!["a".into(), "b".into()]),
            (3, vec!["1".into(), "x, \"y\"\nz".into()]),
            (5, vec!["".into(), "".into()]),
            (6, vec!["open".into()]),
        ];
        assert_eq!(all(text), want);
    }

    proptest! {
        #[test]
        fn what_is_quoted_comes_back(rows in prop::collection::vec(
            prop::collection::vec("[a-z\",\n\r ]{0,6}", 2..4), 0..5,
        )) {
            let quoted = |row: &Vec<String>| -> String {
                let fields: Vec<String> =
                    row.iter().map(|field| format!("\"{}\"", field.replace('"', "\"\""))).collect();
                fields.join(",") + "\n"
            };
            let text: String = rows.iter().map(quoted).collect();
            let got: Vec<Vec<String>> = records(&text)
                .map(|(_, row)| row.into_iter().map(Cow::into_owned).collect())
                .collect();
            prop_assert_eq!(got, rows);
        }

        #[test]
        fn no_text_panics_or_never_ends(text in "[a\",\n\r]{0,40}") {
            prop_assert!(records(&text).count() <= text.len());
        }
    }
}
