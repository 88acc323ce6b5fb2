//! Reading a log.

use crate::JournalError;
use crate::format::{FORMAT_VERSION, Head, Header, MAGIC, PREFIX};
use std::io::Read;

/// Bytes at the end of a log that give no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Where they begin, from the start of the log.
    pub at: u64,
    /// How many they are.
    pub bytes: u64,
}

/// How a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Behind a frame.
    Whole,
    /// Amid a frame, as where a program was killed, or in zeros, as where a machine lost its power: what is
    /// before it is all that was written before it.
    Torn(Loss),
    /// In something that is no frame: what was written behind it is lost.
    Damaged(Loss),
}

impl Ending {
    /// The bytes that give no frame, if there are any.
    pub fn loss(self) -> Option<Loss> {
        match self {
            Self::Whole => None,
            Self::Torn(loss) | Self::Damaged(loss) => Some(loss),
        }
    }
}

/// Gives the frames of a log, one after the other.
///
/// It reads in small pieces: wrap a file in a `BufReader`.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    header: Header,
    payload: Vec<u8>,
    /// Behind the last whole frame.
    offset: u64,
    ending: Option<Ending>,
}

/// What comes next in a log.
enum Next {
    Frame,
    End(Ending),
}

impl<R: Read> Reader<R> {
    /// Reads a log's header.
    ///
    /// # Errors
    ///
    /// When the input cannot be read, is no log, or one whose header is newer or incomplete.
    pub fn open(input: R) -> Result<Self, JournalError> {
        let header = Header::new("", 0);
        let mut this = Self { input, header, payload: Vec::new(), offset: 0, ending: None };
        let mut prefix = [0; PREFIX];
        let count = this.fill(&mut prefix)?;
        let (magic, version) = prefix.split_at(MAGIC.len());
        if !MAGIC.starts_with(&magic[..count.min(MAGIC.len())]) {
            return Err(JournalError::Foreign);
        }
        if count < PREFIX {
            return Err(JournalError::Header);
        }
        let version = version.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
        if version != FORMAT_VERSION {
            return Err(JournalError::Version(version));
        }
        this.offset = PREFIX as u64;
        match this.read()? {
            Next::Frame => {}
            Next::End(_) => return Err(JournalError::Header),
        }
        this.header = serde_json::from_slice(&this.payload).map_err(|_| JournalError::Header)?;
        Ok(this)
    }

    /// What the log says that it is.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The next frame; `None` at the end of what can be read, and from then on.
    ///
    /// # Errors
    ///
    /// When the input cannot be read. A cut or damaged log is no error: see [`ending`](Self::ending).
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, JournalError> {
        if self.ending.is_some() {
            return Ok(None);
        }
        match self.read()? {
            Next::Frame => Ok(Some(&self.payload)),
            Next::End(ending) => {
                self.ending = Some(ending);
                Ok(None)
            }
        }
    }

    /// How the log ends; `None` as long as there may be frames.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// Where the next frame begins: after the last one, where the log can be gone on with.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    fn read(&mut self) -> Result<Next, JournalError> {
        let mut head = [0; Head::SIZE];
        let count = self.fill(&mut head)?;
        if count == 0 {
            return Ok(Next::End(Ending::Whole));
        }
        if count < Head::SIZE {
            return Ok(Next::End(Ending::Torn(self.loss(count as u64))));
        }
        let Some(Head { length, checksum }) = Head::from_bytes(head) else {
            return self.end(&head);
        };
        self.payload.clear();
        // What is not there takes no memory, whatever the length says.
        let count = self.input.by_ref().take(length.into()).read_to_end(&mut self.payload)?;
        if count < length as usize {
            return Ok(Next::End(Ending::Torn(self.loss((Head::SIZE + count) as u64))));
        }
        if crc32c::crc32c(&self.payload) != checksum {
            let payload = std::mem::take(&mut self.payload);
            return self.end(&[&head[..], &payload].concat());
        }
        self.offset += Head::SIZE as u64 + u64::from(length);
        Ok(Next::Frame)
    }

    /// Reads what is left, of which `begun` was read and is no frame.
    fn end(&mut self, begun: &[u8]) -> Result<Next, JournalError> {
        let mut bytes = begun.len() as u64;
        let mut blank = begun.iter().all(|byte| *byte == 0);
        let mut buffer = vec![0; 1 << 16];
        loop {
            let count = self.fill(&mut buffer)?;
            if count == 0 {
                break;
            }
            bytes += count as u64;
            blank &= buffer[..count].iter().all(|byte| *byte == 0);
        }
        let loss = self.loss(bytes);
        Ok(Next::End(if blank { Ending::Torn(loss) } else { Ending::Damaged(loss) }))
    }

    fn loss(&self, bytes: u64) -> Loss {
        Loss { at: self.offset, bytes }
    }

    /// Fills `buffer` as far as there is input; returns how far.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, JournalError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.input.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(filled)
    }
}
