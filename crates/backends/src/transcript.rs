//! The text of one choice, out of frames that repeat all of it or bring only what is new.

/// Frames that must all begin with their predecessor before all frames are taken to do so. Pieces that
/// happen to repeat one another (`=`, `==`, …) end earlier.
const SURE: usize = 8;

/// What a frame did to the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    Nothing,
    /// It grew; what is new begins at this byte.
    Grown(usize),
    /// It is another one.
    Rewritten,
}

/// How a server sends text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mode {
    /// Each frame so far began with the one before, so both ways are possible. Holds where in the
    /// text each frame ended: should a frame come that does not, all were pieces.
    Unsure(Vec<usize>),
    /// Each frame holds all text so far (SGLang's default).
    Whole,
    /// Each frame holds what is new (SGLang's `--incremental-streaming-output` and its kin).
    Pieces,
}

/// The text of one choice.
#[derive(Debug)]
pub(crate) struct Transcript {
    text: String,
    mode: Mode,
}

impl Default for Transcript {
    fn default() -> Self {
        Self { text: String::new(), mode: Mode::Unsure(Vec::new()) }
    }
}

impl Transcript {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Takes the text of a frame. `is_repeat` says that the frame's token count did not rise, `is_last`
    /// that it has a finish reason: only then may a text get shorter (a stop string is cut off).
    pub(crate) fn take(&mut self, frame: &str, is_repeat: bool, is_last: bool) -> Change {
        if frame.is_empty() {
            return Change::Nothing;
        }
        let Mode::Unsure(ends) = &mut self.mode else {
            return if self.mode == Mode::Whole { self.replace(frame) } else { self.append(frame) };
        };
        // The end of a cumulative text may still change while it is half a character.
        if frame.starts_with(self.text.trim_end_matches('\u{FFFD}')) {
            if is_repeat && frame == self.text {
                return Change::Nothing;
            }
            ends.push(frame.len());
            if ends.len() >= SURE {
                self.mode = Mode::Whole;
            }
            return self.replace(frame);
        }
        if is_repeat && is_last && self.text.starts_with(frame) {
            self.mode = Mode::Whole;
            return self.replace(frame);
        }
        let pieces = ends.iter().map(|&end| self.text.get(..end).unwrap_or(&self.text));
        self.text = pieces.chain([frame]).collect();
        self.mode = Mode::Pieces;
        Change::Rewritten
    }

    fn append(&mut self, frame: &str) -> Change {
        let from = self.text.len();
        self.text.push_str(frame);
        Change::Grown(from)
    }

    fn replace(&mut self, frame: &str) -> Change {
        match frame.strip_prefix(self.text.as_str()) {
            Some("") => Change::Nothing,
            Some(tail) => self.append(tail),
            None => {
                self.text.clear();
                self.text.push_str(frame);
                Change::Rewritten
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text after frames whose counts all rise.
    fn read(frames: &[&str]) -> String {
        let mut transcript = Transcript::default();
        for frame in frames {
            transcript.take(frame, false, false);
        }
        transcript.text
    }

    #[test]
    fn cumulative_frames_are_not_joined() {
        assert_eq!(read(&["a", "ab", "abc"]), "abc");
        assert_eq!(read(&["Hi", "Hi", "Hi", "Hi"]), "Hi");
        assert_eq!(read(&["", "a"]), "a");
    }

    #[test]
    fn pieces_are_joined() {
        assert_eq!(read(&["a", "b", "b", ""]), "abb");
        assert_eq!(read(&["=", "==", "====", "x"]), "=======x");
        assert_eq!(read(&[" the", " then", " a"]), " the then a");
    }

    #[test]
    fn half_a_character_may_change() {
        assert_eq!(read(&["x", "x\u{FFFD}", "x🙂", "x🙂y"]), "x🙂y");
    }

    #[test]
    fn a_stop_string_may_be_cut_off() {
        let mut transcript = Transcript::default();
        assert_eq!(transcript.take("ab.", false, false), Change::Grown(0));
        assert_eq!(transcript.take("ab.", true, false), Change::Nothing);
        assert_eq!(transcript.take("ab", true, true), Change::Rewritten);
        assert_eq!(transcript.text(), "ab");
    }

    #[test]
    fn once_sure_a_frame_replaces_the_text() {
        let mut frames: Vec<String> = (1..20).map(|n| "ab".repeat(n)).collect();
        frames.push("other".to_owned());
        let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
        assert_eq!(read(&frames), "other");
    }
}
