"""Nothing that goes wrong takes the interpreter down."""

import subprocess
import sys

import pytest

import windvane
from windvane import _core


def test_a_panic_is_an_ordinary_exception():
    with pytest.raises(RuntimeError, match="a mistake in windvane itself, please report it: at noon"):
        _core._panic("at noon")
    assert _core.worlds()


@pytest.mark.parametrize(
    "path, kind", [("nowhere", FileNotFoundError), (".", ValueError)], ids=["missing", "no agent"]
)
def test_loading_what_is_no_agent(path, kind, tmp_path, command):
    place = tmp_path / path
    with pytest.raises(kind) as raised:
        windvane.load(place)
    done = command("adapt", place, "--goal", "1,1")
    assert done.stderr.removeprefix("error: ").strip() == str(raised.value)


def test_a_damaged_agent_is_an_error(run, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ["config.json", "model.safetensors"]:
        (folder / name).write_bytes((run / "model" / name).read_bytes())
    windvane.load(folder)
    whole = (folder / "model.safetensors").read_bytes()
    for damaged in (whole[:100], whole[: len(whole) // 2], b"", b"\xff" * 64):
        (folder / "model.safetensors").write_bytes(damaged)
        with pytest.raises(ValueError, match="model.safetensors"):
            windvane.load(folder)


def test_the_command_has_the_programs_exit_codes(command, tmp_path):
    assert command("envs").returncode == 0
    assert command("no-such").returncode == 2
    failed = command("doctor", tmp_path / "nothing")
    assert (failed.returncode, failed.stdout) == (1, "") and failed.stderr.startswith("error: ")
    assert "four-rooms" in command("envs").stdout


def test_a_reader_that_has_enough_is_no_failure(tmp_path):
    import sysconfig

    line = f"set -o pipefail; {sysconfig.get_path('scripts')}/windvane man | head -1"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout


def test_the_module_runs_as_a_command_and_does_not_need_gymnasium():
    done = subprocess.run([sys.executable, "-m", "windvane", "--version"], capture_output=True, text=True)
    assert done.returncode == 0 and windvane.__version__ in done.stdout
    look = "import sys; sys.argv = ['windvane']; import windvane; print('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look], capture_output=True, text=True).stdout == "False\n"
