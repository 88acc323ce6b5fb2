//! Forms with files (`multipart/form-data`, RFC 7578).

use std::borrow::Cow;

/// A field of a form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) value: &'a [u8],
}

impl Field<'_> {
    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.value)
    }
}

/// The fields of a body of this type, in order; `None` for what is no form.
pub(crate) fn fields<'a>(content_type: &str, body: &'a [u8]) -> Option<Vec<Field<'a>>> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let boundary = parameter(parameters, "boundary").filter(|boundary| !boundary.is_empty())?;
    let first = format!("--{boundary}");
    let next = format!("\r\n--{boundary}");
    let mut rest = body.strip_prefix(first.as_bytes())?;
    let mut fields = Vec::new();
    loop {
        if rest.starts_with(b"--") {
            return Some(fields);
        }
        rest = rest.strip_prefix(b"\r\n")?;
        let (part, behind) = split(rest, next.as_bytes())?;
        let (head, value) = split(part, b"\r\n\r\n")?;
        fields.push(Field { name: name(head)?, value });
        rest = behind;
    }
}

/// What is before and behind the first `needle`.
fn split<'a>(bytes: &'a [u8], needle: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let first = *needle.first()?;
    let mut from = 0;
    while let Some(at) = bytes.get(from..)?.iter().position(|byte| *byte == first) {
        let start = from + at;
        if bytes.get(start..)?.starts_with(needle) {
            return Some((bytes.get(..start)?, bytes.get(start + needle.len()..)?));
        }
        from = start + 1;
    }
    None
}

/// The name in a part's `Content-Disposition`.
fn name(head: &[u8]) -> Option<Cow<'_, str>> {
    let head = std::str::from_utf8(head).ok()?;
    let line = head.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-disposition").then_some(value)
    })?;
    parameter(line.split_once(';')?.1, "name").map(Cow::Borrowed)
}

/// The value of a parameter, without its quotes.
fn parameter<'a>(parameters: &'a str, wanted: &str) -> Option<&'a str> {
    parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim().trim_matches('"'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "multipart/form-data; boundary=\"edge\"";

    #[test]
    fn fields_come_in_order() {
        let body = "--edge\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\
            Content-Type: audio/wav\r\n\r\nRIFF\r\n--edg\r\n--edge\r\n\
            Content-Disposition: form-data; name=model\r\n\r\n\r\n--edge--\r\n";
        let fields = fields(TYPE, body.as_bytes()).expect("a form");
        let seen: Vec<_> = fields.iter().map(|field| (&*field.name, field.value)).collect();
        assert_eq!(seen, [("file", &b"RIFF\r\n--edg"[..]), ("model", b"")]);
        assert_eq!(fields[0].text(), "RIFF\r\n--edg");
    }

    #[test]
    fn what_is_no_form_is_none() {
        let part = "--edge\r\nContent-Disposition: form-data; name=a\r\n\r\nx";
        for (kind, body) in [
            ("application/json", "{}"),
            ("multipart/form-data", "--edge--"),
            ("multipart/form-data; boundary=", "----"),
            (TYPE, ""),
            (TYPE, "--edge"),
            (TYPE, part),
            (TYPE, "--edge\r\n\r\n\r\nx\r\n--edge--"),
            (TYPE, "--edge\r\nContent-Disposition: form-data\r\n\r\nx\r\n--edge--"),
        ] {
            assert_eq!(fields(kind, body.as_bytes()), None, "{kind} {body}");
        }
        assert_eq!(fields(TYPE, b"--edge--"), Some(Vec::new()));
    }
}
