//! Writing a log.

use crate::JournalError;
use crate::format::{FORMAT_VERSION, Head, Header, MAGIC};
use std::io::Write;

/// Appends frames to a log.
///
/// Each frame is handed over in one `write_all`, so that an unbuffered file holds whole frames whenever the
/// program is killed between two of them. What is gathered before it is written is the choice of the one who
/// wraps the file.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    frame: Vec<u8>,
    written: u64,
    broken: bool,
}

impl<W: Write> Writer<W> {
    /// Begins a log with its header.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn create(out: W, header: &Header) -> Result<Self, JournalError> {
        let mut this = Self::resume(out);
        this.frame.extend_from_slice(&MAGIC);
        this.frame.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        let payload = serde_json::to_vec(header).map_err(std::io::Error::from)?;
        this.append(&payload)?;
        Ok(this)
    }

    /// Goes on with a log: `out` must stand behind its last whole frame
    /// ([`Reader::offset`](crate::Reader::offset)), with nothing after it.
    pub fn resume(out: W) -> Self {
        Self { out, frame: Vec::new(), written: 0, broken: false }
    }

    /// Appends one frame.
    ///
    /// # Errors
    ///
    /// When it cannot be written; then nothing more can be appended, since part of the frame may be there.
    pub fn push(&mut self, payload: &[u8]) -> Result<(), JournalError> {
        self.frame.clear();
        self.append(payload)
    }

    /// Flushes what the output gathers.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn flush(&mut self) -> Result<(), JournalError> {
        self.guarded(Write::flush)
    }

    /// Bytes that this writer handed over.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The output, as it is.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// The output.
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    fn append(&mut self, payload: &[u8]) -> Result<(), JournalError> {
        let head = Head::of(payload)?;
        let mut frame = std::mem::take(&mut self.frame);
        frame.extend_from_slice(&head.to_bytes());
        frame.extend_from_slice(payload);
        let result = self.guarded(|out| out.write_all(&frame));
        if result.is_ok() {
            self.written += frame.len() as u64;
        }
        // Kept for the next one, unless this one was out of the common.
        if frame.capacity() <= KEPT {
            self.frame = frame;
        }
        result
    }

    fn guarded(
        &mut self,
        act: impl FnOnce(&mut W) -> std::io::Result<()>,
    ) -> Result<(), JournalError> {
        if self.broken {
            return Err(JournalError::Broken);
        }
        let result = act(&mut self.out);
        self.broken = result.is_err();
        Ok(result?)
    }
}

/// Memory kept from one frame to the next, in bytes at most.
const KEPT: usize = 1 << 20;
