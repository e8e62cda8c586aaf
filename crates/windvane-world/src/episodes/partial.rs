//! The folder `DIR.partial`: whose it is, and writing into it without ever leaving half a file.

use super::journal::JOURNAL_FILE;
use super::meta::{META_FILE, Meta, Plan, first_difference};
use super::{ACTIONS, CONTEXT_IDS, EPISODE_OFFSETS, GROUP_IDS, OBSERVATIONS, TERMINATED};
use crate::error::WorldError;
use serde::Serialize;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// What an unfinished data set will be; gone once it is complete.
pub(super) const PLAN_FILE: &str = "plan.json";

/// Makes or takes over the folder of an unfinished `out`, and says whether it only lacks its final name.
///
/// It is taken over only if it is ours and was begun with the same plan; otherwise nothing in it is touched.
pub(super) fn claim(out: &Path, plan: &Plan) -> Result<(PathBuf, bool), WorldError> {
    refuse_existing(out)?;
    let mut name =
        out.file_name().ok_or_else(|| WorldError::data(out, "output", "is not a folder name"))?.to_owned();
    name.push(".partial");
    let partial = out.with_file_name(name);
    if !partial.exists() {
        fs::create_dir_all(&partial)
            .map_err(|error| WorldError::io(&partial, "creating the folder", error))?;
        return Ok((partial, false));
    }
    for name in names_in(&partial)? {
        if !is_ours(&name) {
            let problem =
                "is not a file of an unfinished data set; move the folder away, or choose another output";
            return Err(WorldError::data(&partial, name, problem));
        }
    }
    let other = |difference: String| {
        WorldError::data(
            &partial,
            "plan",
            format!(
                "was begun with other settings ({difference}); finish it with those, or remove it to start over"
            ),
        )
    };
    let plan_path = partial.join(PLAN_FILE);
    if plan_path.exists() {
        let begun = super::meta::read_json::<Plan>(&plan_path)?;
        return plan_difference(&begun, plan).map_or(Ok((partial.clone(), false)), |at| Err(other(at)));
    }
    if partial.join(META_FILE).exists() {
        let finished = Meta::read(&partial)?.plan;
        return if finished == *plan { Ok((partial, true)) } else { Err(other("it is complete".into())) };
    }
    Ok((partial, false))
}

/// The plan of the complete data set at `out`; nothing if there is none.
pub(crate) fn finished_plan(out: &Path) -> Option<Plan> {
    Meta::read(out).ok().map(|meta| meta.plan)
}

/// Where two plans first differ, and how; as they are written, because that is how one of them came here.
pub(crate) fn plan_difference(begun: &Plan, now: &Plan) -> Option<String> {
    let value =
        |plan: &Plan| serde_json::to_string(plan).and_then(|text| serde_json::from_str::<Value>(&text));
    match (value(begun), value(now)) {
        (Ok(begun), Ok(now)) => first_difference(&begun, &now),
        (Err(error), _) | (_, Err(error)) => Some(error.to_string()),
    }
}

/// An output that exists is never overwritten.
pub(crate) fn refuse_existing(out: &Path) -> Result<(), WorldError> {
    if out.symlink_metadata().is_ok() {
        return Err(WorldError::data(
            out,
            "output",
            "already exists; nothing was changed. Choose another name or remove it",
        ));
    }
    Ok(())
}

fn names_in(folder: &Path) -> Result<Vec<String>, WorldError> {
    let names = fs::read_dir(folder).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned())).collect()
    });
    names.map_err(|error| WorldError::io(folder, "listing the folder", error))
}

fn is_ours(name: &str) -> bool {
    let name = name.strip_suffix(".tmp").unwrap_or(name);
    let columns = [OBSERVATIONS, ACTIONS, EPISODE_OFFSETS, GROUP_IDS, TERMINATED, CONTEXT_IDS];
    [PLAN_FILE, META_FILE, JOURNAL_FILE].contains(&name)
        || name.strip_suffix(".npy").is_some_and(|column| columns.contains(&column))
}

fn to_text(value: &impl Serialize) -> io::Result<String> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(text)
}

/// Writes a JSON file whole or not at all.
pub(super) fn write_json(folder: &Path, name: &str, value: &impl Serialize) -> Result<(), WorldError> {
    let path = folder.join(name);
    let temporary = folder.join(format!("{name}.tmp"));
    let write = || {
        let mut file = File::create(&temporary)?;
        file.write_all(to_text(value)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, &path)
    };
    write().map_err(|error| WorldError::io(&path, "writing", error))
}

/// Removes a file of ours, if it is there.
pub(super) fn remove(path: &Path) -> Result<(), WorldError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(WorldError::io(path, "removing", error)),
        _ => Ok(()),
    }
}

/// Waits until the names in a folder are on disk.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), WorldError> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    // Only Unix lets a folder be opened and synced; elsewhere a rename is as durable as it gets.
    if cfg!(unix) {
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|error| WorldError::io(folder, "syncing the folder", error))?;
    }
    Ok(())
}
