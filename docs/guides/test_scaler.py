"""The installed frameworks' scalers, each recorded in a real training and checked against scaletrace. For pytest."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
SCALETRACE = os.environ.get("SCALETRACE", "scaletrace")


@pytest.mark.parametrize("framework", ["torch", "flax", "deepspeed"])
def test_scaler_follows_its_rule(framework, tmp_path):
    if importlib.util.find_spec(framework) is None:
        pytest.skip(framework + " is not installed")
    case = tmp_path / framework
    subprocess.run([sys.executable, HERE / f"record_{framework}.py", case], check=True)
    done = subprocess.run([SCALETRACE, "check", case], stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stdout
