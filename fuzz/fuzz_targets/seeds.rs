//! Writes sound inputs for each target to `corpus/`, so that fuzzing begins with something that is read.

#[path = "../../crates/windvane-world/tests/data/readers.rs"]
#[allow(dead_code)]
mod readers;

use std::fs;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let (files, archive, arrow) = readers::seeds(folder.path());
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for target in ["open", "import_npz", "import_arrow"] {
        fs::create_dir_all(corpus.join(target))?;
    }
    for (number, file) in files.iter().enumerate() {
        fs::write(corpus.join(format!("open/{}", readers::FILES[number])), [&[number as u8], &file[..]].concat())?;
    }
    fs::write(corpus.join("import_npz/sound.npz"), archive)?;
    fs::write(corpus.join("import_arrow/sound.arrow"), arrow)
}
