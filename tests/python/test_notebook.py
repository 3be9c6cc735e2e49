"""The notebook runs from the first cell to the last, and is stored without outputs."""


import pytest
from conftest import ROOT

NOTEBOOK = ROOT / "python/notebooks/quickstart.ipynb"
nbformat = pytest.importorskip("nbformat")


def test_the_stored_notebook_holds_no_outputs():
    notebook = nbformat.read(NOTEBOOK, 4)
    nbformat.validate(notebook)
    assert [c for c in notebook.cells if c.cell_type == "code" and (c.outputs or c.execution_count)] == []


def test_the_notebook_runs(tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("matplotlib")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("CTK_ROOT", str(ROOT))
    monkeypatch.setenv("CTK_OUTPUT", str(tmp_path / "out"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "matplotlib"))
    notebook = nbformat.read(NOTEBOOK, 4)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]
    assert not [o for o in outputs if o.output_type == "error"]
    assert [o for o in outputs if "image/png" in o.get("data", {})]      # the plot of bits
    assert (tmp_path / "out/report.json").exists()
