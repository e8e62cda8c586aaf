//! Columns of numbers in an Arrow file, read with every length checked.
//!
//! The layout is walked by hand over verified flatbuffers: Arrow's own reader trusts the lengths that a file claims, and
//! a damaged one would end in a panic or an allocation without bounds.

use crate::episodes::npy::Dtype;
use arrow_ipc::{Field, MessageHeader, Precision, RecordBatch, Type, root_as_footer, root_as_message};

/// What every file begins and ends with.
const MAGIC: &[u8] = b"ARROW1";
/// Deepest nesting of lists and structs.
const DEEPEST: usize = 16;

/// Numbers of one type: `rows` of `width`.
#[derive(Debug)]
pub(super) struct Leaf<'a> {
    /// Path of field names, for instance `observations.position`.
    pub(super) name: String,
    /// Numbers in a row.
    pub(super) width: usize,
    /// Whether a row is one number and not a list.
    pub(super) is_scalar: bool,
    dtype: Dtype,
    bytes: &'a [u8],
}

/// One batch of rows: the leaves of each column asked for.
#[derive(Debug)]
pub(super) struct Rows<'a> {
    /// Number of rows.
    pub(super) count: usize,
    /// In the order asked for; a struct has several leaves.
    pub(super) columns: Vec<Vec<Leaf<'a>>>,
}

impl Leaf<'_> {
    /// Whether it holds only whole numbers by type.
    pub(super) fn is_integer(&self) -> bool {
        self.dtype.is_integer()
    }

    /// The number at `place`, counted over all rows.
    pub(super) fn number(&self, place: usize) -> f64 {
        match self.dtype {
            Dtype::F16 => half::f16::from_bits(self.read(place)).to_f64(),
            Dtype::F32 => f64::from(self.read::<f32>(place)),
            Dtype::F64 => self.read::<f64>(place),
            _ => self.integer(place) as f64,
        }
    }

    /// The whole number at `place`; floating-point types are cut off, so ask [`Self::is_integer`] first.
    pub(super) fn integer(&self, place: usize) -> i128 {
        match self.dtype {
            Dtype::Bool => i128::from(self.bytes[place / 8] >> (place % 8) & 1),
            Dtype::I8 => self.read::<i8>(place).into(),
            Dtype::I16 => self.read::<i16>(place).into(),
            Dtype::I32 => self.read::<i32>(place).into(),
            Dtype::I64 => self.read::<i64>(place).into(),
            Dtype::U8 => self.read::<u8>(place).into(),
            Dtype::U16 => self.read::<u16>(place).into(),
            Dtype::U32 => self.read::<u32>(place).into(),
            Dtype::U64 => self.read::<u64>(place).into(),
            Dtype::F16 | Dtype::F32 | Dtype::F64 => self.number(place) as i128,
        }
    }

    fn read<T: bytemuck::AnyBitPattern>(&self, place: usize) -> T {
        let size = size_of::<T>();
        bytemuck::pod_read_unaligned(&self.bytes[place * size..(place + 1) * size])
    }
}

/// Reads the columns `wanted` of all batches in a file; an error is a sentence.
pub(super) fn read<'a>(file: &'a [u8], wanted: &[&str]) -> Result<Vec<Rows<'a>>, String> {
    let framed = file.len() >= 2 * MAGIC.len() + 8 && file.starts_with(MAGIC) && file.ends_with(MAGIC);
    if !framed {
        return Err("not an Arrow file: it does not begin and end with ARROW1".into());
    }
    let trailer = file.len() - MAGIC.len() - 4;
    let length = i32_at(file, trailer).unwrap_or(0);
    let footer = trailer
        .checked_sub(length as usize)
        .filter(|_| length > 0)
        .ok_or("the footer is longer than the file")?;
    let footer =
        root_as_footer(&file[footer..trailer]).map_err(|error| format!("the footer is damaged: {error}"))?;
    let fields = footer.schema().and_then(|schema| schema.fields()).ok_or("the file has no schema")?;
    let fields: Vec<Field<'_>> = fields.iter().collect();
    let blocks = footer.recordBatches().ok_or("the file has no rows")?;
    let mut batches = Vec::new();
    for block in blocks {
        let part = |from: i64, length: i64| {
            let from = usize::try_from(from).ok()?;
            file.get(from..from.checked_add(usize::try_from(length).ok()?)?)
        };
        let cut = "a batch lies outside the file";
        let head = part(block.offset(), block.metaDataLength().into()).ok_or(cut)?;
        let body = block.offset().checked_add(block.metaDataLength().into()).ok_or(cut)?;
        let body = part(body, block.bodyLength()).ok_or(cut)?;
        // Eight bytes stand before the message: a marker and its length.
        let message = root_as_message(head.get(8..).unwrap_or(&[]))
            .map_err(|error| format!("a batch is damaged: {error}"))?;
        let batch =
            message.header_as_record_batch().filter(|_| message.header_type() == MessageHeader::RecordBatch);
        let batch = batch.ok_or("a block of the file is no batch of rows")?;
        batches.push(read_batch(&fields, &batch, body, wanted)?);
    }
    Ok(batches)
}

fn read_batch<'a>(
    fields: &[Field<'_>],
    batch: &RecordBatch<'_>,
    body: &'a [u8],
    wanted: &[&str],
) -> Result<Rows<'a>, String> {
    if batch.compression().is_some() {
        return Err("batches are compressed; write them without compression".into());
    }
    let count = usize::try_from(batch.length()).map_err(|_| "a negative number of rows")?;
    let mut walk = Walk { batch, body, node: 0, buffer: 0 };
    let mut columns: Vec<Vec<Leaf<'a>>> = wanted.iter().map(|_| Vec::new()).collect();
    for field in fields {
        let name = field.name().unwrap_or_default();
        let mut leaves = Vec::new();
        walk.field(field, name, count, 1, 0, &mut leaves).map_err(|problem| format!("{name}: {problem}"))?;
        if let Some(place) = wanted.iter().position(|wanted| *wanted == name) {
            columns[place] = leaves;
        }
        // Whatever follows (infos of any shape) need not be understood.
        if columns.iter().all(|leaves| !leaves.is_empty()) {
            return Ok(Rows { count, columns });
        }
    }
    let missing = wanted.iter().zip(&columns).find(|(_, leaves)| leaves.is_empty());
    Err(format!("there is no column {}", missing.map_or("", |(name, _)| name)))
}

/// The way through the nodes and buffers of a batch, in the order of its fields.
struct Walk<'a, 'b> {
    batch: &'b RecordBatch<'b>,
    body: &'a [u8],
    node: usize,
    buffer: usize,
}

impl<'a> Walk<'a, '_> {
    fn field(
        &mut self,
        field: &Field<'_>,
        name: &str,
        rows: usize,
        width: usize,
        depth: usize,
        leaves: &mut Vec<Leaf<'a>>,
    ) -> Result<(), String> {
        if depth > DEEPEST || field.dictionary().is_some() {
            return Err("is nested too deeply or encoded by a dictionary".into());
        }
        let count = rows.checked_mul(width).ok_or("has more numbers than fit a 64-bit machine")?;
        self.next_node(count)?;
        let _validity = self.next_buffer()?;
        let children = || field.children().into_iter().flatten();
        match field.type_type() {
            Type::FixedSizeList => {
                let size = field.type_as_fixed_size_list().map_or(0, |list| list.listSize());
                let width = usize::try_from(size)
                    .ok()
                    .and_then(|size| size.checked_mul(width))
                    .filter(|&width| width > 0);
                let width = width.ok_or(format!("lists of {size}"))?;
                let item = children().next().ok_or("a list without items")?;
                self.field(&item, name, rows, width, depth + 1, leaves)?;
                if let Some(leaf) = leaves.last_mut() {
                    leaf.is_scalar = false;
                }
                Ok(())
            }
            Type::Struct_ => children().try_for_each(|child| {
                let name = format!("{name}.{}", child.name().unwrap_or_default());
                self.field(&child, &name, rows, width, depth + 1, leaves)
            }),
            _ => {
                let dtype = dtype_of(field)?;
                let needed = match dtype {
                    Dtype::Bool => Some(count.div_ceil(8)),
                    _ => count.checked_mul(dtype.size()),
                };
                let bytes = self.next_buffer()?;
                let bytes = needed
                    .and_then(|needed| bytes.get(..needed))
                    .ok_or("has fewer bytes than its length says")?;
                leaves.push(Leaf { name: name.to_owned(), width, is_scalar: true, dtype, bytes });
                Ok(())
            }
        }
    }

    fn next_node(&mut self, length: usize) -> Result<(), String> {
        let node =
            self.batch.nodes().filter(|nodes| self.node < nodes.len()).map(|nodes| *nodes.get(self.node));
        self.node += 1;
        match node {
            Some(node) if usize::try_from(node.length()) != Ok(length) => {
                Err(format!("has length {}, expected {length}", node.length()))
            }
            Some(node) if node.null_count() != 0 => Err("has missing values".into()),
            Some(_) => Ok(()),
            None => Err("has no length".into()),
        }
    }

    fn next_buffer(&mut self) -> Result<&'a [u8], String> {
        let buffers = self.batch.buffers().filter(|buffers| self.buffer < buffers.len());
        let buffer = *buffers.ok_or("has no data")?.get(self.buffer);
        self.buffer += 1;
        let range = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        range
            .and_then(|(start, length)| self.body.get(start..start.checked_add(length)?))
            .ok_or_else(|| "lies outside the file".into())
    }
}

fn dtype_of(field: &Field<'_>) -> Result<Dtype, String> {
    let dtype = match field.type_type() {
        Type::Bool => Some(Dtype::Bool),
        Type::Int => field.type_as_int().and_then(|int| match (int.bitWidth(), int.is_signed()) {
            (8, true) => Some(Dtype::I8),
            (16, true) => Some(Dtype::I16),
            (32, true) => Some(Dtype::I32),
            (64, true) => Some(Dtype::I64),
            (8, false) => Some(Dtype::U8),
            (16, false) => Some(Dtype::U16),
            (32, false) => Some(Dtype::U32),
            (64, false) => Some(Dtype::U64),
            _ => None,
        }),
        Type::FloatingPoint => field.type_as_floating_point().and_then(|float| match float.precision() {
            Precision::HALF => Some(Dtype::F16),
            Precision::SINGLE => Some(Dtype::F32),
            Precision::DOUBLE => Some(Dtype::F64),
            _ => None,
        }),
        _ => None,
    };
    dtype.ok_or_else(|| {
        format!(
            "is of type {}; expected numbers, flags, fixed-size lists or structs of them",
            field.type_type().variant_name().unwrap_or("unknown")
        )
    })
}

fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
