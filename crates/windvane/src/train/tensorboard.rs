//! TensorBoard event files, written directly: a record is a length, a protobuf `Event`, and two checksums.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// One event file of scalars.
#[derive(Debug)]
pub struct EventFile {
    file: File,
}

impl EventFile {
    /// Starts a new event file in `folder`, beside any that earlier parts of the run left there.
    pub fn create(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let now = now();
        let name = format!(
            "events.out.tfevents.{:010}.{:06}.{}.windvane",
            now as u64,
            now.fract() * 1e6,
            std::process::id()
        );
        let mut this = Self { file: File::create_new(folder.join(name))? };
        let mut event = header(now, 0);
        bytes_field(&mut event, 3, b"brain.Event:2");
        this.record(&event)?;
        Ok(this)
    }

    /// Appends the values measured at `step`.
    pub fn scalars<'a>(
        &mut self,
        step: u64,
        values: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> io::Result<()> {
        let mut summary = Vec::new();
        for (tag, value) in values {
            let mut entry = Vec::new();
            bytes_field(&mut entry, 1, tag.as_bytes());
            entry.push(2 << 3 | 5);
            entry.extend_from_slice(&(value as f32).to_le_bytes());
            bytes_field(&mut summary, 1, &entry);
        }
        let mut event = header(now(), step);
        bytes_field(&mut event, 5, &summary);
        self.record(&event)
    }

    fn record(&mut self, event: &[u8]) -> io::Result<()> {
        let length = (event.len() as u64).to_le_bytes();
        let mut record = Vec::with_capacity(event.len() + 16);
        record.extend_from_slice(&length);
        record.extend_from_slice(&masked_crc32c(&length).to_le_bytes());
        record.extend_from_slice(event);
        record.extend_from_slice(&masked_crc32c(event).to_le_bytes());
        self.file.write_all(&record)
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

/// `Event { double wall_time = 1; int64 step = 2; .. }`
fn header(wall_time: f64, step: u64) -> Vec<u8> {
    let mut event = vec![1 << 3 | 1];
    event.extend_from_slice(&wall_time.to_le_bytes());
    event.push(2 << 3);
    varint(&mut event, step);
    event
}

fn bytes_field(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    out.push(number << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The record format's checksum: CRC-32C, rotated and offset so that checksums of checksums differ.
fn masked_crc32c(bytes: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82F6_3B78 & (crc & 1).wrapping_neg());
        }
    }
    (!crc).rotate_right(15).wrapping_add(0xA282_EAD8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_agrees_with_the_published_vector() {
        // CRC-32C("123456789") = 0xE3069283.
        assert_eq!(masked_crc32c(b"123456789"), 0xE306_9283_u32.rotate_right(15).wrapping_add(0xA282_EAD8));
    }

    #[test]
    fn varints_carry_seven_bits_a_byte() {
        let mut out = Vec::new();
        varint(&mut out, 300);
        assert_eq!(out, [0xAC, 0x02]);
    }
}
