//! The header of NumPy's `.npy` files: format 1 and 2. What we write is little endian and in C order.

use std::io::{self, Read};

/// What every file begins with.
const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Longest header that is read; NumPy's own are below 200 bytes for any array of numbers.
const LONGEST: usize = 1 << 16;
/// Bytes before the data in the files we write: room for any shape, and every element type stays aligned.
pub(crate) const OUR_HEADER: usize = 128;

/// Element types that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dtype {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
}

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Type of the elements.
    pub(crate) dtype: Dtype,
    /// Whether the first byte of an element counts most.
    pub(crate) big_endian: bool,
    /// Whether the first axis counts fastest (Fortran order) and not the last.
    pub(crate) fortran: bool,
    /// Length of each axis.
    pub(crate) shape: Vec<usize>,
}

impl Dtype {
    const ALL: [(Self, &'static str, usize); 12] = [
        (Self::Bool, "|b1", 1),
        (Self::I8, "|i1", 1),
        (Self::I16, "<i2", 2),
        (Self::I32, "<i4", 4),
        (Self::I64, "<i8", 8),
        (Self::U8, "|u1", 1),
        (Self::U16, "<u2", 2),
        (Self::U32, "<u4", 4),
        (Self::U64, "<u8", 8),
        (Self::F16, "<f2", 2),
        (Self::F32, "<f4", 4),
        (Self::F64, "<f8", 8),
    ];

    fn entry(self) -> (Self, &'static str, usize) {
        Self::ALL[self as usize]
    }

    /// NumPy's name, for instance `<f4`.
    pub(crate) fn name(self) -> &'static str {
        self.entry().1
    }

    /// Bytes of an element.
    pub(crate) fn size(self) -> usize {
        self.entry().2
    }

    /// Whether it holds only whole numbers.
    pub(crate) fn is_integer(self) -> bool {
        !matches!(self, Self::F16 | Self::F32 | Self::F64)
    }

    /// The type that NumPy calls `name`, and whether it is big endian.
    fn parse(name: &str) -> Option<(Self, bool)> {
        let big = name.strip_prefix('>');
        let little = big.map_or_else(|| name.to_owned(), |kind| format!("<{kind}"));
        Self::ALL.iter().find(|entry| entry.1 == little).map(|entry| (entry.0, big.is_some()))
    }
}

impl Header {
    /// An array as we write it.
    pub(crate) fn new(dtype: Dtype, shape: Vec<usize>) -> Self {
        Self { dtype, big_endian: false, fortran: false, shape }
    }

    /// Number of elements; nothing if it does not fit a 64-bit machine.
    pub(crate) fn elements(&self) -> Option<usize> {
        self.shape.iter().try_fold(1_usize, |product, &axis| product.checked_mul(axis))
    }

    /// Bytes of data that follow the header.
    pub(crate) fn bytes(&self) -> Option<usize> {
        self.elements()?.checked_mul(self.dtype.size())
    }

    /// Length of the first axis.
    pub(crate) fn rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }

    /// The header as bytes, padded to [`OUR_HEADER`], so that it can be rewritten in place as a file grows.
    pub(crate) fn encode(&self) -> [u8; OUR_HEADER] {
        let axes: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        // Python writes (3,) for one axis and (3, 2) for two.
        let shape = if let [axis] = &axes[..] { format!("{axis},") } else { axes.join(", ") };
        let text =
            format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({shape}), }}", self.dtype.name());
        let mut bytes = [b' '; OUR_HEADER];
        bytes[..6].copy_from_slice(MAGIC);
        bytes[6..8].copy_from_slice(&[1, 0]);
        bytes[8..10].copy_from_slice(&((OUR_HEADER - 10) as u16).to_le_bytes());
        bytes[10..10 + text.len()].copy_from_slice(text.as_bytes());
        bytes[OUR_HEADER - 1] = b'\n';
        bytes
    }

    /// Reads a header and says how many bytes it took; an error is a sentence for [`crate::WorldError::Data`].
    pub(crate) fn read(reader: &mut impl Read) -> Result<(Self, usize), String> {
        let mut start = [0; 8];
        fill(reader, &mut start)?;
        if &start[..6] != MAGIC {
            return Err("not a .npy array: its first six bytes are not \\x93NUMPY".into());
        }
        let mut length = [0; 4];
        let width = match (start[6], start[7]) {
            (1, 0) => 2,
            (2, 0) => 4,
            (major, minor) => {
                return Err(format!(".npy format {major}.{minor} is not known; expected 1.0 or 2.0"));
            }
        };
        fill(reader, &mut length[..width])?;
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST {
            return Err(format!("a .npy header of {length} bytes; expected at most {LONGEST}"));
        }
        let mut text = vec![0; length];
        fill(reader, &mut text)?;
        let text = std::str::from_utf8(&text).map_err(|_| "the .npy header is not text".to_owned())?;
        Ok((Self::parse(text)?, 8 + width + length))
    }

    /// Parses the dictionary, for instance `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }`.
    fn parse(text: &str) -> Result<Self, String> {
        let bad =
            || format!("the .npy header does not parse: {:?}", text.chars().take(120).collect::<String>());
        let body = text.trim().strip_prefix('{').and_then(|t| t.strip_suffix('}')).ok_or_else(bad)?;
        let (mut dtype, mut fortran, mut shape) = (None, None, None);
        let mut rest = body.trim();
        while !rest.is_empty() {
            let (key, after) = quoted(rest).ok_or_else(bad)?;
            let value = after.trim_start().strip_prefix(':').ok_or_else(bad)?.trim_start();
            rest = match key {
                "descr" => {
                    let (name, after) = quoted(value)
                        .ok_or("the array has named fields or objects; expected plain numbers".to_owned())?;
                    dtype = Some(Dtype::parse(name).ok_or_else(|| unsupported(name))?);
                    after
                }
                "fortran_order" => {
                    let (flag, after) = flag(value).ok_or_else(bad)?;
                    fortran = Some(flag);
                    after
                }
                "shape" => {
                    let (axes, after) = tuple(value).ok_or_else(bad)?;
                    shape = Some(axes);
                    after
                }
                _ => return Err(bad()),
            };
            rest = rest.trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
        let (Some((dtype, big_endian)), Some(fortran), Some(shape)) = (dtype, fortran, shape) else {
            return Err(bad());
        };
        let header = Self { dtype, big_endian, fortran, shape };
        header.bytes().ok_or_else(|| format!("shape {:?} is larger than any memory", header.shape))?;
        Ok(header)
    }
}

fn fill(reader: &mut impl Read, bytes: &mut [u8]) -> Result<(), String> {
    reader.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => "the file ends within its .npy header".to_owned(),
        _ => format!("reading the .npy header: {error}"),
    })
}

fn unsupported(name: &str) -> String {
    let known: Vec<&str> = Dtype::ALL.iter().map(|entry| entry.1).collect();
    format!("dtype {name:?} is not supported; expected one of {}, or their big-endian forms", known.join(" "))
}

/// A Python string, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|&c| c == '\'' || c == '"')?;
    text[1..].split_once(quote)
}

fn flag(text: &str) -> Option<(bool, &str)> {
    let named = |name, value| text.strip_prefix(name).map(|rest| (value, rest));
    named("False", false).or_else(|| named("True", true))
}

/// A tuple of counts, and what follows it.
fn tuple(text: &str) -> Option<(Vec<usize>, &str)> {
    let (inside, rest) = text.strip_prefix('(')?.split_once(')')?;
    let inside = inside.trim();
    let inside = inside.strip_suffix(',').unwrap_or(inside);
    if inside.is_empty() {
        return Some((Vec::new(), rest));
    }
    let axes = inside.split(',').map(|axis| axis.trim().parse().ok()).collect::<Option<Vec<_>>>()?;
    Some((axes, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Result<(Header, usize), String> {
        Header::read(&mut &bytes[..])
    }

    fn with_text(text: &str) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(dtype in 0..Dtype::ALL.len(), shape in prop::collection::vec(0..1_000_000_usize, 0..4)) {
            let header = Header::new(Dtype::ALL[dtype].0, shape);
            prop_assume!(header.bytes().is_some());
            prop_assert_eq!(read(&header.encode()), Ok((header, OUR_HEADER)));
        }

        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), text in ".{0,80}") {
            let _ = read(&bytes);
            let _ = read(&with_text(&text));
            let _ = read(&with_text(&format!("{{'descr': '<f4', 'shape': ({text}), 'fortran_order': False}}")));
        }
    }

    #[test]
    fn dtypes_stand_in_the_table_at_their_own_place() {
        assert!(Dtype::ALL.iter().enumerate().all(|(place, entry)| entry.0 as usize == place));
    }

    #[test]
    fn bad_headers_say_what_is_wrong() {
        let cases = [
            ("{'descr': '<c8', 'fortran_order': False, 'shape': (3,), }", "dtype \"<c8\" is not supported"),
            ("{'descr': '>U4', 'fortran_order': False, 'shape': (3,), }", "dtype \">U4\" is not supported"),
            ("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (3,), }", "named fields"),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846976, 1024), }",
                "larger than any memory",
            ),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }", "does not parse"),
            ("{'descr': '<f4', 'fortran_order': False}", "does not parse"),
        ];
        for (text, expected) in cases {
            let error = read(&with_text(text)).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(read(b"PK\x03\x04....").unwrap_err().contains("not a .npy array"));
        assert!(read(&MAGIC[..4]).unwrap_err().contains("ends within"));
        assert!(read(b"\x93NUMPY\x03\x00").unwrap_err().contains("format 3.0"));
        assert!(read(b"\x93NUMPY\x02\x00\xff\xff\xff\xff").unwrap_err().contains("4294967295 bytes"));
    }
}
