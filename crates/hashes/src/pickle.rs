//! What Python's `pickle.dumps` writes with protocol 5, of the two shapes that are hashed.

use crate::Item;

/// A frame is closed before the first item that finds it this long.
const FRAME: usize = 64 * 1024;

const PROTOCOL: &[u8] = &[0x80, 5];
const FRAME_OPCODE: u8 = 0x95;
const MEMOIZE: u8 = 0x94;
const STOP: u8 = b'.';

/// `(parent, tokens, None)`.
pub(crate) fn item(item: &Item<'_>, bytes: &mut Vec<u8>) {
    let mut frames = Frames::open(bytes);
    frames.length(item.parent.len(), b'C', b'B');
    frames.bytes.extend(item.parent);
    frames.bytes.push(MEMOIZE);
    tuple(&mut frames, item.tokens);
    frames.boundary();
    frames.bytes.extend([b'N', 0x87, MEMOIZE, STOP]);
    frames.close();
}

/// A text.
pub(crate) fn text(text: &str, bytes: &mut Vec<u8>) {
    let mut frames = Frames::open(bytes);
    frames.length(text.len(), 0x8c, b'X');
    frames.bytes.extend(text.as_bytes());
    frames.bytes.extend([MEMOIZE, STOP]);
    frames.close();
}

/// A tuple of integers; short ones have opcodes of their own.
fn tuple(frames: &mut Frames<'_>, numbers: &[u32]) {
    frames.boundary();
    if numbers.is_empty() {
        frames.bytes.push(b')'); // not remembered
        return;
    }
    if numbers.len() > 3 {
        frames.bytes.push(b'(');
    }
    for number in numbers.iter().copied() {
        frames.boundary();
        let all = number.to_le_bytes();
        match number {
            0..0x100 => frames.bytes.extend([b'K', all[0]]),
            0x100..0x1_0000 => frames.bytes.extend([b'M', all[0], all[1]]),
            0x1_0000..0x8000_0000 => {
                frames.bytes.push(b'J');
                frames.bytes.extend(all);
            }
            // Signed, so a byte longer.
            _ => frames.bytes.extend([0x8a, 5, all[0], all[1], all[2], all[3], 0]),
        }
    }
    frames.bytes.push(match numbers.len() {
        1 => 0x85,
        2 => 0x86,
        3 => 0x87,
        _ => b't',
    });
    frames.bytes.push(MEMOIZE);
}

/// The parts that a pickle is written in, each with its length before it.
struct Frames<'a> {
    bytes: &'a mut Vec<u8>,
    /// Where the open frame begins.
    start: usize,
}

impl<'a> Frames<'a> {
    fn open(bytes: &'a mut Vec<u8>) -> Self {
        bytes.extend(PROTOCOL);
        let mut frames = Self { bytes, start: 0 };
        frames.begin();
        frames
    }

    fn begin(&mut self) {
        self.start = self.bytes.len();
        self.bytes.push(FRAME_OPCODE);
        self.bytes.extend([0; 8]);
    }

    /// The length of what follows, in one byte after `short` or in four after `long`.
    fn length(&mut self, length: usize, short: u8, long: u8) {
        if let Ok(length) = u8::try_from(length) {
            self.bytes.extend([short, length]);
        } else {
            self.bytes.push(long);
            // Nothing that is hashed here has 4 GB.
            self.bytes.extend(u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
        }
    }

    fn size(&self) -> usize {
        self.bytes.len() - self.start - 9
    }

    /// Between two items: the place where a long frame ends.
    fn boundary(&mut self) {
        if self.size() >= FRAME {
            self.close();
            self.begin();
        }
    }

    /// Writes the frame's length; a frame of less than four bytes is written without one.
    fn close(&mut self) {
        let length = self.size();
        if length >= 4 {
            let place = self.start + 1..self.start + 9;
            self.bytes[place].copy_from_slice(&(length as u64).to_le_bytes());
        } else {
            self.bytes.drain(self.start..self.start + 9);
        }
    }
}
